/*
 * Log-linear buckets of a histogram:
 *
 *	value           octave                      bucket in it
 *	0 … 127         0                           value
 *	128 … 255       1                           value - 128
 *	256 … 511       2                           (value - 256) / 2
 *	2^e …           e - HIST_BITS + 1           the HIST_BITS bits below the highest
 */
#include "base/hist.h"
#include "base/xmalloc.h"

#include <stdlib.h>

#define BUCKETS (1u << HIST_BITS)

static unsigned octave_of(uint64_t value)
{
	const int top = 63 - __builtin_clzll(value | 1);
	const int octave = top < HIST_BITS ? 0 : top - HIST_BITS + 1;
	return octave < HIST_OCTAVES ? (unsigned)octave : HIST_OCTAVES - 1;
}

static unsigned bucket_of(uint64_t value, unsigned octave)
{
	if (octave == 0)
		return (unsigned)value;
	const uint64_t bucket = (value >> (octave - 1)) - BUCKETS;
	return bucket < BUCKETS ? (unsigned)bucket : BUCKETS - 1;
}

static uint64_t middle_of(unsigned octave, unsigned bucket)
{
	if (octave == 0)
		return bucket;
	const uint64_t width = (uint64_t)1 << (octave - 1);
	return ((uint64_t)(BUCKETS + bucket) << (octave - 1)) + (width - 1) / 2;
}

static uint64_t *buckets(struct hist *h, unsigned octave)
{
	if (!h->octave[octave])
		h->octave[octave] = xcalloc(BUCKETS, sizeof(uint64_t));
	return h->octave[octave];
}

void hist_add_times(struct hist *h, uint64_t value, uint64_t times)
{
	const unsigned octave = octave_of(value);
	if (!times)
		return;
	uint64_t *b = buckets(h, octave);
	b[bucket_of(value, octave)] += times;
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count += times;
}

void hist_add(struct hist *h, uint64_t value)
{
	hist_add_times(h, value, 1);
}

void hist_merge(struct hist *h, const struct hist *from)
{
	if (from->count && (!h->count || from->min < h->min))
		h->min = from->min;
	for (unsigned o = 0; o < HIST_OCTAVES; o++) {
		if (!from->octave[o])
			continue;
		uint64_t *b = buckets(h, o);
		for (unsigned i = 0; i < BUCKETS; i++)
			b[i] += from->octave[o][i];
	}
	h->count += from->count;
	if (from->max > h->max)
		h->max = from->max;
}

uint64_t hist_at(const struct hist *h, double p)
{
	if (!h->count)
		return 0;
	const double exact = p * (double)h->count; /* nearest rank: the smallest value with … */
	uint64_t rank = (uint64_t)exact; /* … at least that many at or below it, from 0 */
	if (rank && (double)rank >= exact)
		rank--;
	for (unsigned o = 0; o < HIST_OCTAVES; o++) {
		for (unsigned i = 0; h->octave[o] && i < BUCKETS; i++) {
			if (rank < h->octave[o][i]) {
				const uint64_t v = middle_of(o, i);
				return v > h->max ? h->max : v < h->min ? h->min : v;
			}
			rank -= h->octave[o][i];
		}
	}
	return h->max;
}

bool hist_next(const struct hist *h, unsigned *at, uint64_t *ret_value, uint64_t *ret_count)
{
	for (unsigned i = *at; i < HIST_OCTAVES * BUCKETS; i++) {
		const unsigned octave = i / BUCKETS, bucket = i % BUCKETS;
		if (!h->octave[octave] || !h->octave[octave][bucket])
			continue;
		*at = i + 1;
		*ret_value = middle_of(octave, bucket);
		*ret_count = h->octave[octave][bucket];
		return true;
	}
	return false;
}

void hist_fini(struct hist *h)
{
	if (!h)
		return;
	for (unsigned o = 0; o < HIST_OCTAVES; o++)
		free(h->octave[o]);
	*h = (struct hist){ 0 };
}
