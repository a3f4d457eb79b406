/*
 * Finds the launch of a kernel that ran, while the program runs.
 *
 * Launches go into a ring, from any thread and from signal handlers. One thread at a time gives
 * each to the next kernel of its signature: name, grid, block and shared memory. Launches of one
 * signature count as running in the order of their calls. If the ring overflows before a look at
 * it, everything that waits is dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "predict/predict.h"

/* Room for what is below; false when there is none. */
bool match_start(void);

uint64_t match_signature(
	uint64_t kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);

/* The same of a kernel by its name, as it was compiled. */
uint64_t match_name(
	const char *name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);

/* A launch begun at `ticks`. */
void match_push(uint64_t signature, uint64_t ticks, const struct predict_launch *l);

/* The functions below are for the thread that hands over device times, one at a time. */

/* Looks at what was launched since the last time. */
void match_take(void);

/* Whether a launch of that signature waits. */
bool match_waits(uint64_t signature);

/* The launch of a kernel that began then: its kernel, key and arguments.  false: not known. */
bool match_pop(uint64_t signature, uint64_t start_ns, struct predict_launch *ret_l);
