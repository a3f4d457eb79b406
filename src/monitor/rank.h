/*
 * The rank-sum test of Mann and Whitney (1947): whether one set of values tends to be above
 * another, whatever their distribution.  Pure.
 */
#pragma once

#include <stddef.h>

/* The median of sorted values; 0 without any. */
float rank_median(const float *sorted, size_t n);

/* The value that the fraction q of them does not exceed; 0 without any. */
float rank_quantile(const float *sorted, size_t n, double q);

/*
 * The probability that `above` is as far above `below` as it is, or farther, if both have one
 * distribution: the normal approximation with ties and continuity corrected, which for sets that do
 * not overlap is larger than the exact one, so cautious.  Both sorted.  1 without values.
 */
double rank_p(const float *below, size_t n, const float *above, size_t m);
