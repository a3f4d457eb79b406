/*
 * A day of a machine's durations, made up: what a detector of regressions meets where nothing is
 * wrong, and where something is.  Deterministic by its seed; the clock is the caller's.
 *
 * A kernel's duration is its own level, times
 *	- noise of its own (0.5 to 5 %, log-normal), in one launch of a hundred a long tail;
 *	- a wander of its own, 0.3 %, over minutes;
 *	- the clock of its GPU: 1 % with the time of day, 0.5 % over half an hour, in steps of 15
 * MHz;
 *	- bursts, some six an hour: 5 to 60 s in which all kernels of a GPU take 1.1 to 2 times as
 * long. Launches, 0.2 to 8 a second, come by the load: a tenth at night, and a fifth of the kernels
 * pause for hours then. Requests, 10 to 200 a second, take 15 % longer at the day's peak, scatter
 * by 30 %, and have a tail of 1 in 100 that takes 5 to 50 times as long.
 */
#pragma once

#include <stdint.h>

#include "monitor/regress.h"

struct noise_config {
	uint64_t seed;
	uint32_t kernels, requests; /* series of each */
	double begins_h;            /* time of day */
	double seconds;
	double slow_at, slow_by;         /* from when on, and by what factor; by 0: never */
	uint32_t slow_first, slow_count; /* which series: kernels, then requests */
};

struct noise_result {
	uint64_t raised;       /* alarms of series that are not slow, or not yet */
	uint32_t found;        /* slow series that were found */
	double found_within;   /* s: of the slowest of them to be found */
	double found_each[64]; /* of the first; 0: not found */
	struct regress_counts counts;
};

/* Feeds r, which is new. */
void noise_run(const struct noise_config *c, struct regress *r, struct noise_result *ret);

/* How much a kernel's own noise is, as its logarithm's standard deviation. */
double noise_of_kernel(uint64_t seed, uint32_t kernel);

/* How often it is launched at the day's peak. */
double noise_launches_per_s(uint64_t seed, uint32_t kernel);
