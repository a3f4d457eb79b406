/*
 * Follows one recording while it is written: calls and launches of each process, busy time of GPUs,
 * and times of kernels.
 *
 * A look costs the new part and the headers of chunks that may still change. Closed chunks are
 * forgotten. Everything before the first look is skipped, because rates do not need it, except
 * names. The content of the file is never trusted. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

#define FOLLOW_PROCESSES 4096u  /* that are kept of a recording; those of the living */
#define FOLLOW_NAMES     65536u /* of kernels, of all its processes */
#define FOLLOW_BLOCKS    8u     /* that are unpacked in a look: of more, launches are estimated */
#define FOLLOW_DEVICES   16u

struct follow;

struct follow_process {
	uint32_t pid;
	uint64_t calls, launches; /* since it is watched */
	/* For GPU activities since then, if all are timed: CLOCK_MONOTONIC of the first's start and
	 * of the last's end, and for how long of that some GPU ran one.  until 0: none was seen. */
	uint64_t from_ns, until_ns, busy_ns;
	uint64_t look_from_ns; /* the first start of those of the last look; 0: there was none */
	uint8_t uuid[FOLLOW_DEVICES][16];
};

/* A kernel that has run. */
struct follow_kernel {
	uint32_t pid;
	const char *name; /* as the program has it, perhaps cut; "" when it is not known */
	uint64_t name_hash;
	const uint8_t *uuid; /* of its GPU; zeros: not known */
	const struct gpu_activity *ran;
};

/* The receiver of kernels; NULL: nobody. */
struct follow_sink {
	void (*kernel)(void *data, const struct follow_kernel *k);
	void *data;
};

/* 0, or -errno: it can't be read, or is no trace. */
int follow_open(const char *path, struct follow **ret_f);
void follow_close(struct follow *f);

void follow_look(struct follow *f, const struct follow_sink *to);

/* As of the last look. */
const struct trace_header *follow_header(const struct follow *f);
uint64_t follow_file_bytes(const struct follow *f);
/* A process by its number; NULL: nothing of it has been seen. */
const struct follow_process *follow_find(const struct follow *f, uint32_t pid);
