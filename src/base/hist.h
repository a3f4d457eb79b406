/*
 * A histogram of 64-bit values for percentiles. Each power of two has 128 equal buckets, so a
 * percentile is off by at most 0.4 %, and values below 256 are exact. Zeroed memory is an empty
 * histogram, powers of two take memory when first hit, and one thread owns it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HIST_BITS    7 /* buckets a power of two, as a power of two */
#define HIST_OCTAVES (64 - HIST_BITS + 1)

struct hist {
	uint64_t *octave[HIST_OCTAVES];
	uint64_t count;
	uint64_t min; /* with max, exact; valid when count is not 0 */
	uint64_t max;
};

void hist_add(struct hist *h, uint64_t value);

/* The same value, `times` times. */
void hist_add_times(struct hist *h, uint64_t value, uint64_t times);

void hist_merge(struct hist *h, const struct hist *from);

/* The smallest value that the fraction p (0…1) of all does not exceed; 0 when empty. */
uint64_t hist_at(const struct hist *h, double p);

/* Its buckets, smallest value first: `value` stands for its bucket.  Start with *at = 0; false at
 * the end. */
bool hist_next(const struct hist *h, unsigned *at, uint64_t *ret_value, uint64_t *ret_count);

void hist_fini(struct hist *h);
