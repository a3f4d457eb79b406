/*
 * Decides whether two sets of times differ by more than chance explains. Pure functions, with the
 * same answer for the same numbers.
 *
 * p is the two-sided probability of a difference at least as large without a real one, or NAN if
 * the numbers cannot tell.
 */
#pragma once

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

/*
 * Two medians, how far off their difference may be, and whether it is chance.
 *
 * below, above: how far the 99 % interval of b's median less a's reaches to either side of it;
 * noise: the one of them that is towards 0.  The interval of each median is the one between order
 * statistics (of six values and less: lowest to highest); their logarithms are put together as Zou
 * and Donner (2008) do it, for an interval of b in units of a.  With fewer runs than
 * STAT_RUNS_ORDERED on a side the interval is that of Welch's t of the logarithms, since so few
 * have no order statistics that far out.  p is that of stat_hist_p() or stat_runs_p().  A median of
 * no values is 0.
 */
#define STAT_RUNS_ORDERED 8u
struct stat_medians {
	double a, b, below, above, noise, p;
};
struct stat_medians stat_hist_medians(
	const struct hist *a, const struct hist *b, double *ret_longer);
struct stat_medians stat_runs_medians(double *a, size_t na, double *b, size_t nb); /* sorts */

/* From below, above, a and b. */
double stat_noise(const struct stat_medians *m);

/* p of a difference that is normal around 0 and has this noise. */
double stat_noise_p(double difference, double noise);

/* Half the width of the 95 % interval of the total of so many runs, of which h has some, drawn by
 * chance; NAN when there are fewer than two. */
double stat_estimate_error(const struct hist *h, double runs);
