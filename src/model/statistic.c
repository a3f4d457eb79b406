/* Tests whether two sets of times differ. */
#include "model/statistic.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/sort.h"
#include "base/xmalloc.h"

#define EXACT_MOST   16u /* values of both sides together whose ranks are counted exactly */
#define RANKS_NEED   5u  /* a side: below, no difference of ranks can be below p = 0.01 */
#define FRACTION_END 300 /* terms of a continued fraction; 50 are many */

double stat_median(double *v, size_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof *v, order_real);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Lentz's evaluation of the continued fraction of the incomplete beta function (DLMF 8.17.22). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double h = d;
	for (int m = 1; m < FRACTION_END; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		h *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		h *= d * c;
		if (fabs(d * c - 1) < 1e-14)
			break;
	}
	return h;
}

static double incomplete_beta(double a, double b, double x)
{
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	const double front =
		exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stat_student_p(double t, double df)
{
	if (isnan(t) || !(df > 0))
		return NAN;
	if (isinf(t))
		return 0;
	if (df > 1e6) /* the fraction converges slowly there, and the normal is as good */
		return erfc(fabs(t) / sqrt(2));
	return incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double stat_student_limit(double p, double df)
{
	double low = 0, high = 1e6;
	for (int i = 0; i < 80; i++) {
		const double middle = (low + high) / 2;
		*(stat_student_p(middle, df) > p ? &low : &high) = middle;
	}
	return high;
}

/* The degrees of freedom of Welch's t: from the squared errors of both means. */
static double welch_freedom(double ea, double na, double eb, double nb)
{
	const double both = ea + eb;
	return both > 0 ? both * both / (ea * ea / (na - 1) + eb * eb / (nb - 1)) : na + nb - 2;
}

/* Welch's test from means, variances and counts; NAN below two values a side. */
static double stat_welch_p(
	double mean_a, double var_a, double na, double mean_b, double var_b, double nb)
{
	if (na < 2 || nb < 2)
		return NAN;
	const double ea = var_a / na, eb = var_b / nb, both = ea + eb;
	if (!(both > 0))
		return mean_a == mean_b ? 1 : 0;
	return stat_student_p((mean_b - mean_a) / sqrt(both), welch_freedom(ea, na, eb, nb));
}

struct ranked {
	double value;
	bool of_b;
};

ORDERING(ranked_order, struct ranked, ORDER(a->value, b->value))

/* Twice the rank of each, so that those of ties are whole; returns the sum of t³ - t of ties. */
static double rank(const struct ranked *v, size_t n, unsigned *twice)
{
	double ties = 0;
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && v[end].value == v[i].value;)
			end++;
		for (size_t k = i; k < end; k++)
			twice[k] = (unsigned)(i + end + 1);
		const double t = (double)(end - i);
		ties += t * t * t - t;
	}
	return ties;
}

#define SUM_MOST (EXACT_MOST * (EXACT_MOST + 1))

/* The share of all ways to choose nb of the ranks whose sum is as far from the middle. */
static double exact_p(const unsigned *twice, size_t n, size_t nb, unsigned sum)
{
	static_assert(EXACT_MOST <= 16, "the table is on the stack");
	double ways[EXACT_MOST + 1][SUM_MOST + 1] = { { 1 } };
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1 < nb ? i + 1 : nb; k > 0; k--)
			for (unsigned s = SUM_MOST; s >= twice[i]; s--)
				ways[k][s] += ways[k - 1][s - twice[i]];
	const double middle = (double)(nb * (n + 1));
	double all = 0, far = 0;
	for (unsigned s = 0; s <= SUM_MOST; s++) {
		all += ways[nb][s];
		if (fabs(s - middle) >= fabs(sum - middle))
			far += ways[nb][s];
	}
	expect(far <= all, "what is far off is part of all");
	return far / all;
}

/* The normal approximation with continuity and ties corrected. */
static double normal_p(double u, double na, double nb, double ties)
{
	const double n = na + nb, middle = na * nb / 2;
	const double var = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
	if (!(var > 0))
		return 1;
	const double off = fabs(u - middle) - 0.5;
	return off <= 0 ? 1 : erfc(off / sqrt(var) / sqrt(2));
}

double stat_ranks_p(const double *a, size_t na, const double *b, size_t nb)
{
	const size_t n = na + nb;
	double p;
	if (!na || !nb)
		return NAN;
	struct ranked *v = xcalloc(n, sizeof *v);
	unsigned *twice = xcalloc(n, sizeof *twice);
	for (size_t i = 0; i < n; i++)
		v[i] = (struct ranked){ i < na ? a[i] : b[i - na], i >= na };
	qsort(v, n, sizeof *v, ranked_order);
	const double ties = rank(v, n, twice);
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i].of_b ? twice[i] : 0;
	if (n <= EXACT_MOST)
		p = exact_p(twice, n, nb, (unsigned)sum);
	else
		p = normal_p(
			sum / 2 - (double)nb * (double)(nb + 1) / 2, (double)na, (double)nb, ties);
	free(v);
	free(twice);
	return p;
}

static void moments_of(const double *v, size_t n, bool logs, double *ret_mean, double *ret_var)
{
	double sum = 0, squares = 0;
	for (size_t i = 0; i < n; i++)
		sum += logs ? log(v[i]) : v[i];
	const double mean = n ? sum / (double)n : 0;
	for (size_t i = 0; i < n; i++) {
		const double off = (logs ? log(v[i]) : v[i]) - mean;
		squares += off * off;
	}
	*ret_mean = mean;
	*ret_var = n > 1 ? squares / (double)(n - 1) : 0;
}

static bool all_positive(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(v[i] > 0))
			return false;
	return true;
}

double stat_runs_p(const double *a, size_t na, const double *b, size_t nb)
{
	double mean_a, var_a, mean_b, var_b;
	if (na < 2 || nb < 2)
		return NAN;
	if (na >= RANKS_NEED && nb >= RANKS_NEED)
		return stat_ranks_p(a, na, b, nb);
	const bool logs = all_positive(a, na) && all_positive(b, nb);
	moments_of(a, na, logs, &mean_a, &var_a);
	moments_of(b, nb, logs, &mean_b, &var_b);
	return stat_welch_p(mean_a, var_a, (double)na, mean_b, var_b, (double)nb);
}

struct hist_moments stat_moments(const struct hist *h)
{
	struct hist_moments m = { 0 };
	double squares = 0;
	uint64_t value, count;
	for (unsigned at = 0; hist_next(h, &at, &value, &count);) {
		m.n += (double)count;
		m.sum += (double)count * (double)value;
	}
	m.mean = m.n > 0 ? m.sum / m.n : 0;
	for (unsigned at = 0; hist_next(h, &at, &value, &count);)
		squares += (double)count * ((double)value - m.mean) * ((double)value - m.mean);
	m.var = m.n > 1 ? squares / (m.n - 1) : 0;
	expect(m.n == (double)h->count, "a histogram's values add up to its count");
	expect(m.var >= 0, "a variance is not below 0");
	return m;
}

double stat_hist_p(const struct hist *a, const struct hist *b, double *ret_longer)
{
	uint64_t va = 0, ca = 0, vb = 0, cb = 0;
	unsigned at_a = 0, at_b = 0;
	double below = 0, u = 0, ties = 0; /* below: values of a passed; u: pairs that b wins */
	if (a->count < STAT_ENOUGH || b->count < STAT_ENOUGH)
		return NAN;
	bool has_a = hist_next(a, &at_a, &va, &ca), has_b = hist_next(b, &at_b, &vb, &cb);
	while (has_a || has_b) {
		const bool of_a = has_a && (!has_b || va <= vb),
			   of_b = has_b && (!has_a || vb <= va);
		const double na = of_a ? (double)ca : 0, nb = of_b ? (double)cb : 0, t = na + nb;
		u += nb * (below + na / 2);
		below += na;
		ties += t * t * t - t;
		if (of_a)
			has_a = hist_next(a, &at_a, &va, &ca);
		if (of_b)
			has_b = hist_next(b, &at_b, &vb, &cb);
	}
	*ret_longer = u / ((double)a->count * (double)b->count);
	expect(*ret_longer >= 0 && *ret_longer <= 1 + 1e-9, "a share is between none and all");
	return normal_p(u, (double)a->count, (double)b->count, ties);
}

#define NOISE_LEVEL 0.99
#define NOISE_Z     2.5758 /* of the normal distribution, 99 % is within */

struct interval {
	double low, median, high;
};

/* How far from the middle of n values the order statistics are between which the median is. */
static double reach(double n)
{
	return fmin(NOISE_Z / 2 / sqrt(n), 0.5);
}

static struct interval hist_interval(const struct hist *h)
{
	if (!h->count)
		return (struct interval){ 0 };
	const double off = reach((double)h->count);
	return (struct interval){ (double)hist_at(h, 0.5 - off), (double)hist_at(h, 0.5),
		(double)hist_at(h, 0.5 + off) };
}

static struct interval runs_interval(double *v, size_t n)
{
	const double median = stat_median(v, n);
	if (!n)
		return (struct interval){ 0 };
	const double off = reach((double)n) * (double)n, half = (double)(n - 1) / 2;
	const double low = floor(half - off), high = ceil(half + off);
	return (struct interval){ v[low > 0 ? (size_t)low : 0], median,
		v[high < (double)n ? (size_t)high : n - 1] };
}

double stat_noise(const struct stat_medians *m)
{
	return m->b < m->a ? m->above : m->below;
}

double stat_noise_p(double difference, double noise)
{
	if (!(noise > 0))
		return difference == 0 ? 1 : 0;
	return erfc(fabs(difference) / noise * NOISE_Z / sqrt(2));
}

/* Logarithms are put together, as of a ratio, so that A and B may change places. */
static struct stat_medians medians_of(struct interval a, struct interval b, double p)
{
	expect(a.low <= a.median && a.median <= a.high, "a median is inside its interval");
	struct stat_medians m = { .a = a.median,
		.b = b.median,
		.below = hypot(a.high - a.median, b.median - b.low),
		.above = hypot(a.median - a.low, b.high - b.median),
		.p = p };
	if (a.low > 0 && b.low > 0) {
		m.below = m.b * -expm1(-hypot(log(a.high / a.median), log(b.median / b.low)));
		m.above = m.b * expm1(hypot(log(a.median / a.low), log(b.high / b.median)));
	}
	m.noise = stat_noise(&m);
	return m;
}

struct stat_medians stat_hist_medians(
	const struct hist *a, const struct hist *b, double *ret_longer)
{
	return medians_of(hist_interval(a), hist_interval(b), stat_hist_p(a, b, ret_longer));
}

/* The interval of b's mean by a's, of logarithms, around the medians. */
static void take_few(struct stat_medians *m, const double *a, size_t na, const double *b, size_t nb)
{
	double mean_a, var_a, mean_b, var_b;
	moments_of(a, na, true, &mean_a, &var_a);
	moments_of(b, nb, true, &mean_b, &var_b);
	const double ea = var_a / (double)na, eb = var_b / (double)nb;
	const double half =
		stat_student_limit(1 - NOISE_LEVEL, welch_freedom(ea, (double)na, eb, (double)nb)) *
		sqrt(ea + eb);
	const double ratio = exp(mean_b - mean_a);
	m->below = m->a * ratio * (1 - exp(-half));
	m->above = m->a * ratio * (exp(half) - 1);
	m->noise = stat_noise(m);
}

struct stat_medians stat_runs_medians(double *a, size_t na, double *b, size_t nb)
{
	const double p = stat_runs_p(a, na, b, nb);
	struct stat_medians m = medians_of(runs_interval(a, na), runs_interval(b, nb), p);
	if (!isnan(p) && (na < STAT_RUNS_ORDERED || nb < STAT_RUNS_ORDERED) &&
		all_positive(a, na) && all_positive(b, nb))
		take_few(&m, a, na, b, nb);
	return m;
}

/* The usual error of a mean, times runs; less by what was drawn, since that is known. */
double stat_estimate_error(const struct hist *h, double runs)
{
	const struct hist_moments m = stat_moments(h);
	if (m.n < 2)
		return m.n >= runs ? 0 : NAN;
	const double left = runs > m.n ? 1 - m.n / runs : 0;
	return stat_student_limit(0.05, m.n - 1) * runs * sqrt(m.var / m.n * left);
}
