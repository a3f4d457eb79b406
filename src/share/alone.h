/*
 * The time of latency programs' requests alone, kept in DIR/alone from run to run, by GPU and
 * command line. With it the arbiter steers a restarted program from the first requests on.
 * Measurements of the program itself replace it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/slowdown.h"

#define KNOWN_MOST 64u

struct known_program {
	uint8_t uuid[16];
	uint64_t command;
	struct slowdown_alone alone;
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

const struct slowdown_alone *known_find(
	const struct known *k, const uint8_t uuid[16], uint64_t command);

void known_put(struct known *k, const uint8_t uuid[16], uint64_t command,
	const struct slowdown_alone *alone);
