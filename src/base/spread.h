/*
 * Mean and standard deviation of values as they come, in one pass that does not cancel (Welford
 * 1962).  Zeroed memory is empty.
 */
#pragma once

#include <math.h>
#include <stdint.h>

struct spread {
	uint64_t count;
	double mean;
	double squares; /* sum of the squared distances from the mean */
};

static inline void spread_add(struct spread *s, uint64_t value)
{
	const double away = (double)value - s->mean;
	s->mean += away / (double)++s->count;
	s->squares += away * ((double)value - s->mean);
}

/* Deviation of a sample: valid with two values and more. */
static inline double spread_deviation(const struct spread *s)
{
	return s->count > 1 ? sqrt(s->squares / (double)(s->count - 1)) : 0;
}
