/*
 * Whether two sets of times differ by more than chance explains: pure functions, the same
 * answer for the same numbers.
 *
 * p is the probability of a difference at least as large when there is none, both sides
 * counted; NAN when the numbers cannot tell.
 */
#ifndef WEIR_MODEL_STATISTIC_H
#define WEIR_MODEL_STATISTIC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hist.h"

/* The middle of n values, the mean of two when n is even; sorts v.  0 for none. */
double stat_median(double *v, size_t n);

/*
 * Values of single runs.  With five or more on each side by ranks (Mann and Whitney 1947, exact
 * up to 16 in all, then the normal approximation), which assumes nothing; with fewer by
 * Welch's t (1947) of the logarithms, since ranks of so few cannot tell.  Fewer than two on a
 * side: NAN.
 */
double stat_runs_p(const double *a, size_t na, const double *b, size_t nb);

/* Mann and Whitney's test alone: exact with ties when na + nb <= 16. */
double stat_ranks_p(const double *a, size_t na, const double *b, size_t nb);

/* Welch's test from means, variances and counts; NAN below two values a side. */
double stat_welch_p(double mean_a, double var_a, double na, double mean_b, double var_b, double nb);

/* P(|T| > t) of Student's distribution. */
double stat_student_p(double t, double df);

/* The t that |T| exceeds with probability p: the half width of an interval, in standard errors. */
double stat_student_limit(double p, double df);

struct hist_moments {
	double n, sum, mean, var; /* var: of a sample; 0 below two values */
};
struct hist_moments stat_moments(const struct hist *h);

/*
 * Single durations as histograms: Mann and Whitney's test with ties.  *ret_longer: the share
 * of pairs, one value of a and one of b, in which b's is larger, equal ones half: 0.5 without a
 * difference.  Untouched, and NAN returned, when either has fewer than STAT_ENOUGH values.
 */
#define STAT_ENOUGH 5u
double stat_hist_p(const struct hist *a, const struct hist *b, double *ret_longer);

/* P(the total of nb values of b differs from that of a's by chance): the totals' errors are those
 * of independent draws. */
double stat_totals_p(const struct hist *a, const struct hist *b);

/* The same of totals that are estimated: `runs` of which h has some, drawn by chance. */
double stat_estimates_p(const struct hist *a, double runs_a, const struct hist *b, double runs_b);

/* Half the width of the 95 % interval of the total of so many runs, of which h has some, drawn by
 * chance; NAN when there are fewer than two. */
double stat_estimate_error(const struct hist *h, double runs);

#endif
