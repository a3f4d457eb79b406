/* Quantiles by the nearest rank. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/sort.h"

struct durations {
	ARRAY(uint64_t) v; /* ns */
};

static inline int durations_order(const void *one, const void *two)
{
	return ORDER(*(const uint64_t *)one, *(const uint64_t *)two);
}

/* A quantile of the durations that SORT(d->v, durations_order) has put in order; `otherwise` if
 * there are none. */
static inline uint64_t durations_quantile(const struct durations *d, double q, uint64_t otherwise)
{
	const double exact = q * (double)d->v.n;
	size_t rank = (size_t)exact;
	rank += (double)rank < exact;
	return d->v.n ? d->v.v[rank ? rank - 1 : 0] : otherwise;
}
