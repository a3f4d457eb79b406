/* The rank test of Mann and Whitney. */
#include "monitor/rank.h"

#include <math.h>

float rank_median(const float *sorted, size_t n)
{
	return n ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : 0;
}

float rank_quantile(const float *sorted, size_t n, double q)
{
	const size_t at = (size_t)(q * (double)n);
	return n ? sorted[at < n ? at : n - 1] : 0;
}

/* How many from *i on have the value x; *i moves behind them. */
static size_t run_of(const float *v, size_t n, size_t *i, float x)
{
	const size_t first = *i;
	while (*i < n && v[*i] == x)
		(*i)++;
	return *i - first;
}

double rank_p(const float *below, size_t n, const float *above, size_t m)
{
	const double all = (double)(n + m);
	double u = 0, ties = 0; /* u: pairs in which the one of `above` is larger */
	for (size_t i = 0, k = 0; i < n || k < m;) {
		const float x = k == m || (i < n && below[i] < above[k]) ? below[i] : above[k];
		const double before = (double)i;
		const double same = (double)run_of(below, n, &i, x);
		const double here = (double)run_of(above, m, &k, x);
		const double tied = same + here;
		u += here * (before + same / 2);
		ties += tied * tied * tied - tied;
	}
	const double pairs = (double)n * (double)m;
	const double variance = pairs / 12 * (all + 1 - ties / (all * (all - 1)));
	if (!(pairs > 0) || !(variance > 0))
		return 1;
	return erfc((u - pairs / 2 - 0.5) / sqrt(2 * variance)) / 2;
}
