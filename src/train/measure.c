/* Errors of predictions in numbers: see evaluate.h. */
#include <math.h>
#include <stdlib.h>

#include "train/evaluate.h"
#include "base/sort.h"

struct pair {
	double predicted, measured;
	size_t at; /* in a window */
};

static double predicted_by(const struct eval_point *p, int predictor)
{
	return predictor ? (double)p->baseline_ns[predictor - 1] : (double)p->t50_ns;
}

static bool counts(const struct eval_point *p, struct eval_filter f, int predictor)
{
	const double predicted = predicted_by(p, predictor);
	const bool family = !f.family || (p->family == f.family) != f.but_family;
	return (f.tier == PREDICT_TIERS || p->tier == f.tier) && p->measured_ns >= f.from_ns &&
	       p->measured_ns < f.below_ns && family && p->known_cost >= f.known_cost &&
	       p->shapes >= f.shapes && p->tier != PREDICT_UNKNOWN && isfinite(predicted) &&
	       predicted > 0;
}

ORDERING(by_predicted, struct pair, ORDER(a->predicted, b->predicted),
	ORDER(a->measured, b->measured))

/* Swaps that a merge sort by the measured makes: pairs in the wrong order. */
static double inversions(struct pair *v, struct pair *scratch, size_t n)
{
	if (n < 2)
		return 0;
	const size_t half = n / 2;
	double count = inversions(v, scratch, half) + inversions(v + half, scratch, n - half);
	size_t a = 0, b = half, to = 0;
	while (a < half || b < n) {
		const bool left = b == n || (a < half && v[a].measured <= v[b].measured);
		count += left ? 0 : (double)(half - a);
		scratch[to++] = left ? v[a++] : v[b++];
	}
	for (size_t i = 0; i < n; i++)
		v[i] = scratch[i];
	return count;
}

/* Ties in what was predicted count as predicted right: of two alike neither is wrong. */
static double tau_of(struct pair *v, struct pair *scratch, size_t n)
{
	const double pairs = (double)n * (double)(n - 1) / 2;
	qsort(v, n, sizeof *v, by_predicted);
	return pairs > 0 ? 1 - 2 * inversions(v, scratch, n) / pairs : 1;
}

ORDERING(by_predicted_then_at, struct pair, ORDER(a->predicted, b->predicted), ORDER(a->at, b->at))

/* The sum of the times at which each has ended. */
static double turnaround(const struct pair *v, size_t n)
{
	double sum = 0, now = 0;
	for (size_t i = 0; i < n; i++) {
		now += v[i].measured;
		sum += now;
	}
	return sum;
}

static double window_regret(const struct pair *v, size_t n)
{
	struct pair queue[EVAL_WINDOW];
	for (size_t i = 0; i < n; i++)
		queue[i] = (struct pair){ v[i].predicted, v[i].measured, i };
	qsort(queue, n, sizeof queue[0], by_predicted_then_at);
	const double predicted = turnaround(queue, n);
	for (size_t i = 0; i < n; i++)
		queue[i].predicted = queue[i].measured;
	qsort(queue, n, sizeof queue[0], by_predicted_then_at);
	return predicted / turnaround(queue, n) - 1;
}

static double regret_of(const struct pair *v, size_t n)
{
	const size_t window = MIN(n, EVAL_WINDOW);
	double sum = 0;
	for (size_t i = 0; i + window <= n; i += window)
		sum += window_regret(v + i, window);
	return sum / (double)(n / window);
}

static double quantile(double *v, size_t n, double q)
{
	qsort(v, n, sizeof v[0], order_real);
	const size_t at = (size_t)(q * (double)n);
	return v[at < n ? at : n - 1];
}

static void measure_pairs(struct pair *v, double *off, struct pair *scratch, struct eval_cell *c)
{
	double sum = 0, all = 0;
	for (size_t i = 0; i < c->n; i++) {
		off[i] = fabs(v[i].predicted / v[i].measured - 1);
		sum += fabs(v[i].predicted - v[i].measured);
		all += v[i].measured;
	}
	c->weighted = sum / all;
	c->regret = regret_of(v, c->n);
	c->median = quantile(off, c->n, 0.5);
	c->p90 = quantile(off, c->n, 0.9);
	for (size_t i = 0; i < c->n; i++)
		off[i] = fabs(log(v[i].predicted / v[i].measured));
	c->log_median = quantile(off, c->n, 0.5);
	c->tau = tau_of(v, scratch, c->n);
}

static void measure_t90(const eval_points *points, struct eval_filter f, struct eval_cell *c)
{
	double covered = 0, loss = 0, all = 0;
	array_each(const struct eval_point, p, *points) {
		if (!counts(p, f, 0))
			continue;
		const double over = (double)p->measured_ns - (double)p->t90_ns;
		covered += over <= 0;
		loss += over > 0 ? 0.9 * over : -0.1 * over;
		all += (double)p->measured_ns;
	}
	c->has_t90 = true;
	c->coverage = covered / (double)c->n;
	c->pinball = loss / all;
}

void eval_measure(const eval_points *points, struct eval_filter filter, int predictor,
	struct eval_cell *ret_cell)
{
	struct pair *v = xcalloc(points->n + 1, 2 * sizeof *v);
	double *off = xcalloc(points->n + 1, sizeof *off);
	struct eval_cell c = { 0 };
	array_each(const struct eval_point, p, *points)
		if (counts(p, filter, predictor))
			v[c.n++] = (struct pair){ .predicted = predicted_by(p, predictor),
				.measured = (double)p->measured_ns };
	if (c.n) {
		measure_pairs(v, off, v + points->n + 1, &c);
		if (!predictor)
			measure_t90(points, filter, &c);
	}
	*ret_cell = c;
	free(v);
	free(off);
}
