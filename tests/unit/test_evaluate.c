/*
 * Judging predictions: numbers against their definitions, and splits that hold out what they say.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "train/evaluate.h"
#include "train/train.h"
#include "zoo.h"

static struct zoo zoo;

static const struct eval_filter all = { .tier = PREDICT_TIERS, .from_ns = 0, .below_ns = INFINITY };

static eval_points random_points(size_t n)
{
	eval_points points = { 0 };
	zoo_init(&zoo, 6, 0);
	for (size_t i = 0; i < n; i++) {
		struct eval_point *p = array_push(&points);
		*p = (struct eval_point){
			.measured_ns = (float)(1000 + 1e6 * zoo_uniform(&zoo)),
			.tier = zoo_uniform(&zoo) < 0.5 ? PREDICT_EXACT : PREDICT_SHAPE,
			.shapes = (uint32_t)i % 10,
		};
		p->t50_ns = p->measured_ns * (float)exp(0.2 * zoo_normal(&zoo));
		p->t90_ns = 1.3f * p->t50_ns;
		for (int b = 0; b < BASELINES; b++)
			p->baseline_ns[b] = p->measured_ns * (float)exp(0.4 * zoo_normal(&zoo));
		if (i % 10 == 0)
			p->baseline_ns[BASELINE_LAST] = NAN;
	}
	return points;
}

/* Pair by pair, as Kendall defined it. */
static double tau_slowly(const eval_points *points)
{
	double agree = 0, pairs = 0;
	for (size_t i = 0; i < points->n; i++)
		for (size_t j = 0; j < i; j++) {
			const struct eval_point *a = &points->v[i], *b = &points->v[j];
			const double told = (double)a->t50_ns - (double)b->t50_ns;
			const double measured = (double)a->measured_ns - (double)b->measured_ns;
			agree += told * measured > 0 ? 1 : -1;
			pairs++;
		}
	return agree / pairs;
}

static void measures_are_what_they_are_called(void **state)
{
	eval_points points = random_points(700);
	struct eval_cell c, last;
	size_t covered = 0, below = 0;
	eval_measure(&points, all, 0, &c);
	assert_int_equal(c.n, 700);
	assert_true(fabs(c.tau - tau_slowly(&points)) < 1e-9);
	for (size_t i = 0; i < points.n; i++) {
		const struct eval_point *p = &points.v[i];
		covered += p->measured_ns <= p->t90_ns;
		below += fabs((double)p->t50_ns / (double)p->measured_ns - 1) < c.median;
	}
	assert_true(fabs(c.coverage - (double)covered / 700) < 1e-9);
	assert_int_equal(below, 350);
	assert_true(c.p90 > c.median && c.log_median > 0 && c.weighted > 0 && c.has_t90);
	/* who could not tell is not counted */
	eval_measure(&points, all, 1 + BASELINE_LAST, &last);
	assert_int_equal(last.n, 630);
	assert_true(!last.has_t90 && last.median > c.median);
	array_free(&points);
}

/* Three launches of 1, 2 and 4 us, told as 3, 2 and 1: they end after 4, 6 and 7 us, and by their
 * true times after 1, 3 and 7.  Told as 1, 1, 1 they run as they came. */
static void regret_is_what_a_wrong_order_costs(void **state)
{
	static const float measured[] = { 2000, 1000, 4000 };
	static const float told[] = { 2, 3, 1 };
	eval_points points = { 0 };
	struct eval_cell c;
	for (int i = 0; i < 3; i++) {
		struct eval_point *p = array_push(&points);
		*p = (struct eval_point){
			.measured_ns = measured[i], .t50_ns = told[i], .tier = PREDICT_EXACT
		};
		for (int b = 0; b < BASELINES; b++)
			p->baseline_ns[b] = b == BASELINE_RATIO ? measured[i] : 1;
	}
	eval_measure(&points, all, 0, &c);
	assert_true(fabs(c.regret - (17.0 / 11 - 1)) < 1e-9);
	eval_measure(&points, all, 1 + BASELINE_RATIO, &c);
	assert_true(fabs(c.regret - (0)) < 1e-9);
	eval_measure(&points, all, 1 + BASELINE_LAST, &c);
	assert_true(fabs(c.regret - (12.0 / 11 - 1)) < 1e-9);
	array_free(&points);
}

/* Two windows of 64, in one of which two of 1 and 2 us are told in the wrong order; what is left
 * over is in no window. */
static void regret_is_the_mean_of_full_windows(void **state)
{
	eval_points points = { 0 };
	struct eval_cell c;
	for (int i = 0; i < 2 * EVAL_WINDOW + 5; i++) {
		struct eval_point *p = array_push(&points);
		const float t = i % EVAL_WINDOW == 1 ? 2 : i % EVAL_WINDOW == 0 ? 1 : 10;
		const bool wrong = i < 2 || i > 2 * EVAL_WINDOW;
		*p = (struct eval_point){ .measured_ns = t, .tier = PREDICT_EXACT };
		p->t50_ns = wrong ? 3 - t + 5 * (t > 2) : t;
	}
	double right = 1 + 3;
	for (int i = 2; i < EVAL_WINDOW; i++)
		right += 3 + 10 * (i - 1);
	eval_measure(&points, all, 0, &c);
	assert_true(fabs(c.regret - (1 / right / 2)) < 1e-9);
	array_free(&points);
}

static void filters_part_the_points(void **state)
{
	eval_points points = random_points(500);
	struct eval_cell exact, shape, eight, early, late;
	const struct eval_filter of_exact = {
		.tier = PREDICT_EXACT, .from_ns = 0, .below_ns = INFINITY
	};
	const struct eval_filter of_shape = {
		.tier = PREDICT_SHAPE, .from_ns = 0, .below_ns = INFINITY
	};
	const struct eval_filter below = { .tier = PREDICT_TIERS, .from_ns = 0, .below_ns = 5e5f };
	const struct eval_filter above = {
		.tier = PREDICT_TIERS, .from_ns = 5e5f, .below_ns = INFINITY
	};
	const struct eval_filter of_eight = {
		.tier = PREDICT_TIERS, .below_ns = INFINITY, .shapes = 8
	};
	eval_measure(&points, of_exact, 0, &exact);
	eval_measure(&points, of_shape, 0, &shape);
	eval_measure(&points, of_eight, 0, &eight);
	eval_measure(&points, below, 0, &early);
	eval_measure(&points, above, 0, &late);
	assert_int_equal(exact.n + shape.n, 500);
	assert_int_equal(eight.n, 100);
	assert_int_equal(early.n + late.n, 500);
	assert_true(exact.n && shape.n && early.n && late.n);
	array_free(&points);
}

static void nothing_is_measured_of_nothing(void **state)
{
	eval_points none = { 0 };
	struct eval_cell c;
	eval_measure(&none, all, 0, &c);
	assert_int_equal(c.n, 0);
}

static struct predict_sample *stream(size_t n)
{
	struct predict_sample *v = calloc(n, sizeof *v);
	zoo_init(&zoo, 31, 0.01);
	for (size_t i = 0; i < n; i++)
		v[i] = zoo_next(&zoo, i << 20);
	return v;
}

static size_t of_tier(const eval_points *points, enum predict_tier tier)
{
	size_t n = 0;
	for (size_t i = 0; i < points->n; i++)
		n += points->v[i].tier == tier;
	return n;
}

/* Kernels held out are not known from their siblings, nor families from their kernels. */
static void what_is_held_out_was_not_learnt(void **state)
{
	const size_t n = ROUNDS(3000, 800);
	struct predict_sample *v = stream(n);
	const struct train_options o = { 0 };
	struct train_rows rows;
	struct model_file *f = NULL;
	struct predict_model m;
	struct error err;
	train_rows_of(&zoo.device, v, n, &rows);
	assert_int_equal(train_fit(&zoo.device, &rows, NULL, &o, &f, &err), 0);
	assert_int_equal(model_open(f, f->file_bytes, &m, &err), 0);
	for (int split = 0; split < EVAL_SPLITS; split++) {
		eval_points points;
		assert_int_equal(eval_run((enum eval_split)split, &zoo.device, v, n, &m, NULL,
					 &points, &err),
			0);
		const size_t known =
			points.n - of_tier(&points, PREDICT_COLD) - of_tier(&points, PREDICT_BOUND);
		if (split == EVAL_KERNEL || split == EVAL_FAMILY)
			assert_int_equal(known, 0);
		if (split == EVAL_FAMILY)
			assert_int_equal(of_tier(&points, PREDICT_COLD), 0);
		if (split != EVAL_EXTRAPOLATION)
			assert_int_equal(points.n, n);
		else
			assert_in_range(points.n, n / 10, n * 4 / 10);
		array_free(&points);
	}
	train_rows_fini(&rows);
	free(f);
	free(v);
}

static void the_chain_beats_the_plain_rules_when_used(void **state)
{
	const size_t n = ROUNDS(8000, 3000);
	struct predict_sample *v = stream(n);
	const struct eval_filter shape = {
		.tier = PREDICT_SHAPE, .from_ns = 0, .below_ns = INFINITY
	};
	const struct eval_filter exact = {
		.tier = PREDICT_EXACT, .from_ns = 0, .below_ns = INFINITY
	};
	eval_points points;
	struct error err;
	assert_int_equal(
		eval_run(EVAL_PREQUENTIAL, &zoo.device, v, n, NULL, NULL, &points, &err), 0);
	for (int predictor = 1; predictor < EVAL_PREDICTORS; predictor++) {
		struct eval_cell own, other;
		eval_measure(&points, exact, 0, &own);
		eval_measure(&points, exact, predictor, &other);
		assert_true(own.median < other.median);
		eval_measure(&points, shape, 0, &own);
		eval_measure(&points, shape, predictor, &other);
		assert_true(own.median < other.median && own.p90 < other.p90);
	}
	array_free(&points);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures_are_what_they_are_called),
		cmocka_unit_test(regret_is_what_a_wrong_order_costs),
		cmocka_unit_test(regret_is_the_mean_of_full_windows),
		cmocka_unit_test(filters_part_the_points),
		cmocka_unit_test(nothing_is_measured_of_nothing),
		cmocka_unit_test(what_is_held_out_was_not_learnt),
		cmocka_unit_test(the_chain_beats_the_plain_rules_when_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
