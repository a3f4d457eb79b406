/*
 * The time of latency programs' requests alone, kept in DIR/alone from run to run, by GPU, command
 * line and folder. With it weir run knows whether MPS suits the program, and the arbiter steers it
 * from the first requests on. Measurements of the program itself replace it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/slowdown.h"

#define KNOWN_MOST 64u

struct known_program {
	uint8_t uuid[16];
	uint64_t command; /* key of what weir run was given */
	struct slowdown_alone alone;
	uint32_t fills; /* per cent of the SMs that its widest launch fills; 0: unknown */
	uint32_t mps;   /* 1: measured under MPS */
	uint32_t guess; /* 1: none was alone, and all three are those of the least delayed ones */
};

/* The newest stand last. */
struct known {
	uint32_t count;
	bool changed;
	struct known_program program[KNOWN_MOST];
};

/* Lines that say nothing possible are passed over; without a file nothing is known. */
void known_read(struct known *k, const char *path);

/* False: it could not be written, and the file is as it was. */
bool known_write(struct known *k, const char *path);

/* uuid: NULL for the newest of any GPU. */
const struct known_program *known_find(
	const struct known *k, const uint8_t uuid[16], uint64_t command);

void known_put(struct known *k, const struct known_program *p);

/* To the loop that steers it now, under MPS or not: what was guessed, or measured the other way, is
 * no time to compare with. */
void known_remind(const struct known_program *k, uint32_t mps, struct slowdown_program *p);

/* Whether requests are so long, and kernels so wide, that best effort hardly runs beside them. MPS
 * would only make them slower. */
bool known_takes_turns(const struct known_program *p);
