/* Comparing recordings: the statistics, the fail conditions, and what two made traces say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff/fail_condition.h"
#include "model/statistic.h"
#include "diff_file.h"
#include "maker.h"

#define near(a, b, most) assert_true(fabs((double)(a) - (double)(b)) <= (most))

/* Quantiles as every table of Student's distribution has them. */
static void students_distribution_is_that_of_the_tables(void **state)
{
	near(stat_student_p(1, 1), 0.5, 1e-9);
	near(stat_student_p(12.7062, 1), 0.05, 1e-6);
	near(stat_student_p(2.776445, 4), 0.05, 1e-7);
	near(stat_student_p(-3.169273, 10), 0.01, 1e-7);
	near(stat_student_p(1.959964, 1e7), 0.05, 1e-6);
	near(stat_student_p(0, 7), 1, 1e-12);
	assert_true(isnan(stat_student_p(NAN, 3)));
	near(stat_student_limit(0.05, 4), 2.776445, 1e-5);
	near(stat_student_limit(0.05, 1e7), 1.959964, 1e-5);
}

static void ranks_are_counted_exactly(void **state)
{
	const double low[] = { 1, 2, 3, 4, 5 }, high[] = { 6, 7, 8, 9, 10 };
	near(stat_ranks_p(low, 5, high, 5), 2.0 / 252, 1e-12);
	near(stat_ranks_p(high, 5, low, 5), 2.0 / 252, 1e-12);
	near(stat_ranks_p(low, 3, high, 3), 2.0 / 20, 1e-12);
	near(stat_ranks_p(low, 5, low, 5), 1, 1e-12);
	/* Ranks 1, 3, 3, 3, 5: six of the ten pairs sum to 4 or 8, as far from 6 as these. */
	const double a[] = { 1, 2, 2 }, b[] = { 2, 3 };
	near(stat_ranks_p(a, 3, b, 2), 0.6, 1e-12);
	assert_true(isnan(stat_ranks_p(a, 3, b, 0)));
}

/* The approximation is taken for more than 16 values; here it is close to what is exact. */
static void many_ranks_are_approximated(void **state)
{
	double a[20], b[20];
	for (int i = 0; i < 20; i++) {
		a[i] = i;
		b[i] = i + 0.5;
	}
	assert_true(stat_ranks_p(a, 20, b, 20) > 0.7);
	for (int i = 0; i < 20; i++)
		b[i] = i + 12;
	assert_true(stat_ranks_p(a, 20, b, 20) < 1e-4);
}

static void few_runs_are_compared_by_their_logarithms(void **state)
{
	const double a[] = { 100, 101, 99 }, b[] = { 120, 121, 119 }, wide[] = { 80, 160, 125 };
	assert_true(stat_runs_p(a, 3, b, 3) < 0.001);
	assert_true(stat_runs_p(a, 3, wide, 3) > 0.3);
	assert_true(isnan(stat_runs_p(a, 1, b, 3)));
	const double zero[] = { 0, 0 }, five[] = { 5, 5 };
	near(stat_runs_p(zero, 2, five, 2), 0, 0);
	near(stat_runs_p(five, 2, five, 2), 1, 0);
}

static void durations_are_compared_by_histograms(void **state)
{
	struct hist a = { 0 }, b = { 0 };
	double longer = -1;
	for (uint64_t i = 0; i < 4; i++)
		hist_add(&a, i);
	assert_true(isnan(stat_hist_p(&a, &a, &longer)));
	near(longer, -1, 0);
	for (uint64_t i = 0; i < 200; i++) {
		hist_add(&a, 1000 + i % 50);
		hist_add(&b, 1100 + i % 50);
	}
	assert_true(stat_hist_p(&a, &b, &longer) < 1e-6);
	near(longer, 1, 1e-9);
	near(stat_hist_p(&a, &a, &longer), 1, 1e-9);
	near(longer, 0.5, 1e-9);
	const struct hist_moments m = stat_moments(&b);
	near(m.mean, 1124.5, 4);
	near(m.n, 200, 0);
	hist_fini(&a);
	hist_fini(&b);
}

/* Ten of a thousand, 100 to 109 us: a mean of 104.5, 9.17 as their variance. */
static void totals_are_estimated_from_a_few(void **state)
{
	struct hist few = { 0 };
	assert_true(isnan(stat_estimate_error(&few, 100)));
	hist_add(&few, 100000);
	assert_true(isnan(stat_estimate_error(&few, 100)));
	near(stat_estimate_error(&few, 1), 0, 0);
	for (uint64_t i = 1; i < 10; i++)
		hist_add(&few, 100000 + i * 1000);
	const double error = 2.262157 * 1000 * sqrt(9.1667e6 / 10 * (1 - 10.0 / 1000));
	near(stat_estimate_error(&few, 1000) / error, 1, 0.06); /* of buckets, not of values */
	near(stat_estimate_error(&few, 10), 0, 0);
	hist_fini(&few);
}

/* The 99 % intervals of the median of 1 to 101 are 51 ± 13; ± 13 / √2 of four times as many. */
static void medians_have_noise(void **state)
{
	struct hist a = { 0 }, b = { 0 };
	double longer, few[] = { 3, 1, 2 }, more[] = { 14, 11, 12, 13 };
	double eight[] = { 8, 1, 2, 3, 4, 5, 6, 7 }, also[] = { 18, 11, 12, 13, 14, 15, 16, 17 };
	for (uint64_t i = 1; i <= 101; i++) {
		hist_add(&a, i);
		hist_add(&b, i + 100);
	}
	struct stat_medians m = stat_hist_medians(&a, &b, &longer);
	near(m.a, 51, 0);
	near(m.b, 151, 0);
	near(m.noise, 151 * (1 - exp(-hypot(log(64.0 / 51), log(151.0 / 138)))), 1);
	m = stat_hist_medians(&a, &a, &longer);
	near(m.b - m.a, 0, 0);
	near(m.p, 1, 1e-9);
	m = stat_runs_medians(few, 3, more, 4);
	near(m.a, 2, 0);
	near(m.b, 12.5, 0);
	/* Welch's t: logarithms of means .5973 and 2.5216, errors .3212 and .0517, 2.1 degrees. */
	const double half = stat_student_limit(0.01, 2.1045) * hypot(0.32117, 0.05171);
	near(m.noise, 2 * exp(2.52157 - 0.59725) * (1 - exp(-half)), 0.02);
	m = stat_runs_medians(eight, 8, also, 8);
	near(m.noise, 14.5 * (1 - exp(-hypot(log(8 / 4.5), log(14.5 / 11)))), 1e-9);
	m = stat_runs_medians(few, 0, more, 4);
	near(m.a, 0, 0);
	assert_true(isnan(m.p));
	hist_fini(&a);
	hist_fini(&b);
}

static void the_median_of_an_even_number_is_between(void **state)
{
	double v[] = { 4, 1, 3, 2 };
	near(stat_median(v, 4), 2.5, 0);
	near(stat_median(v, 3), 2, 0);
	near(stat_median(v, 0), 0, 0);
}

static struct fail_condition parsed(const char *text)
{
	struct fail_condition g;
	struct error err = { .text = "" };
	if (condition_parse(text, &g, &err))
		fail_msg("%s", err.text);
	return g;
}

static void fail_conditions_are_read(void **state)
{
	struct fail_condition g = parsed("p95 > +5%");
	assert_int_equal(g.metric, METRIC_P95);
	assert_int_equal(g.table, TABLE_KERNELS);
	assert_int_equal(g.against, AGAINST_PCT);
	near(g.value, 5, 0);
	g = parsed("  call   total of cuda* >=-1.5ms ");
	assert_int_equal(g.table, TABLE_CALLS);
	assert_int_equal(g.metric, METRIC_TOTAL);
	assert_int_equal(g.op, OP_LEAST);
	assert_int_equal(g.against, AGAINST_CHANGE);
	near(g.value, -1.5e6, 1e-6);
	assert_string_equal(g.pattern, "cuda*");
	g = parsed("peak_bytes>8 GiB");
	assert_int_equal(g.metric, METRIC_TOTAL_OF_RUN);
	assert_int_equal(g.total, TOTAL_PEAK);
	near(g.value, 8.0 * (1 << 30), 0);
	g = parsed("errors != 0");
	assert_int_equal(g.op, OP_OTHER);
	g = parsed("count of void k<int, 3>(float*) > 7");
	assert_string_equal(g.pattern, "void k<int, 3>(float*)");
	g = parsed("total of \"a of b\" == +0");
	assert_string_equal(g.pattern, "a of b");
	g = parsed("operator slower of aten::* > 0");
	assert_int_equal(g.metric, METRIC_SLOWER);
	assert_int_equal(g.table, TABLE_OPERATORS);
	g = parsed("phase p50 of forward > +5%");
	assert_int_equal(g.metric, METRIC_P50);
	assert_int_equal(g.table, TABLE_PHASES);
}

static void fail_conditions_that_make_no_sense_are_refused_with_a_reason(void **state)
{
	static const char *const wrong[][2] = { { "", "compares nothing" },
		{ "p95", "compares nothing" }, { "p95 = 5ms", "compares nothing" },
		{ "> 5", "which metric" }, { "p96 > 5ms", "no metric" },
		{ "kernel wall > 5s", "no metric" }, { "p95 > 5%", "write +5%" },
		{ "p95 > 5", "compares a time" }, { "wall > 3MiB", "compares a time" },
		{ "calls > 3ms", "compares a number" }, { "peak_bytes > 3ms", "number of bytes" },
		{ "p95 >", "no value" }, { "p95 > fast", "no value" }, { "p95 > 0x10", "no value" },
		{ "p95 > inf", "no value" }, { "p95 > 1e999s", "no value" },
		{ "p95 > 5 parsecs", "no value" }, { "p95 of > 5ms", "'of' and a name" },
		{ "p95 on x > 5ms", "'of' and a name" }, { "wall of x > 5s", "whole run" },
		{ "new > +1", "plain number" } };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct fail_condition g;
		struct error err = { .text = "" };
		assert_int_not_equal(condition_parse(wrong[i][0], &g, &err), 0);
		if (!strstr(err.text, wrong[i][1]))
			fail_msg("of '%s' is said: %s", wrong[i][0], err.text);
	}
}

struct kind {
	const char *name;
	int count;
	uint32_t ns;
	uint64_t random; /* 0: durations scatter by a few percent; else what they are drawn from */
};

static uint64_t drawn(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Scattered by up to a third, or of two kinds, or with some that take ten times as long. */
static uint32_t drawn_ns(const struct kind *k, uint64_t *seed)
{
	const uint32_t ns = k->ns + (uint32_t)(drawn(seed) % (1 + k->ns / (3 + k->random % 40)));
	const bool other = drawn(seed) % 10 < k->random % 7;
	return k->random % 3 == 1 && other ? 2 * ns : k->random % 3 == 2 && other ? 10 * ns : ns;
}

/* Launches of kernels. */
static void make(const char *path, const struct kind *kinds, size_t n, unsigned seed)
{
	struct maker *m = maker_new(path, maker_schema, 1u << 20);
	const int meta = maker_thread(m, CHUNK_META, 100, 100, "main");
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	uint64_t ticks = 2000000, seeds = 0x9e3779b97f4a7c15 * (seed + 1);
	for (size_t k = 0; k < n; k++) {
		maker_name(m, meta, ticks, 0x1000 + k, kinds[k].name);
		for (int i = 0; i < kinds[k].count; i++) {
			const uint64_t args[LAUNCH_WORDS] = { 0x1000 + k, 0, 1ull << 32 | 8,
				32ull << 32 | 1, 1ull << 32 | 1 };
			const uint32_t off = (unsigned)(i * 37 + (int)seed * 11) % 21;
			const struct record r = { .ticks = ticks,
				.dur = kinds[k].random ? drawn_ns(&kinds[k], &seeds)
						       : kinds[k].ns + kinds[k].ns * off / 400,
				.fn = FN_LAUNCH,
				.words = RECORD_WORDS + LAUNCH_WORDS };
			maker_put(m, calls, r, args);
			ticks += r.dur + 1000;
		}
	}
	maker_finish(m, ticks + 5000000, false);
}

static const struct diff_row *row(const struct diff *d, enum diff_table table, const char *name)
{
	for (size_t i = 0; i < d->rows[table].n; i++)
		if (!strcmp(d->rows[table].v[i].name, name))
			return &d->rows[table].v[i];
	fail_msg("there is no row %s", name);
	return NULL;
}

static const struct kind before[] = { { "steady", 100, 5000, 0 }, { "worse", 100, 5000, 0 },
	{ "better", 100, 8000, 0 }, { "left", 10, 2000, 0 }, { "rare", 2, 1000, 0 } };
static const struct kind after[] = { { "steady", 100, 5010, 0 }, { "worse", 100, 6000, 0 },
	{ "better", 100, 6000, 0 }, { "come", 10, 3000, 0 }, { "rare", 2, 5000, 0 } };

static void one_run_a_side_is_judged_by_its_calls(void **state)
{
	struct diff *d;
	struct judgement j;
	make("diff_a.weir", before, 5, 1);
	make("diff_b.weir", after, 5, 2);
	diff_new(&d, 3);
	add_file(d, DIFF_A, "diff_a.weir");
	add_file(d, DIFF_B, "diff_b.weir");
	unlink("diff_a.weir");
	unlink("diff_b.weir");
	diff_finish(d);
	assert_int_equal(row(d, TABLE_KERNELS, "steady")->change.verdict, VERDICT_SAME);
	assert_int_equal(row(d, TABLE_KERNELS, "worse")->change.verdict, VERDICT_SLOWER);
	assert_int_equal(row(d, TABLE_KERNELS, "better")->change.verdict, VERDICT_FASTER);
	assert_int_equal(row(d, TABLE_KERNELS, "left")->change.verdict, VERDICT_GONE);
	assert_int_equal(row(d, TABLE_KERNELS, "come")->change.verdict, VERDICT_NEW);
	assert_int_equal(row(d, TABLE_KERNELS, "rare")->change.verdict, VERDICT_NONE);
	assert_string_equal(d->rows[TABLE_KERNELS].v[0].name, "better");
	near(row(d, TABLE_KERNELS, "worse")->change.pct, 20, 1);
	near(row(d, TABLE_KERNELS, "worse")->longer, 1, 0.01);

	const struct fail_condition conditions[] = { parsed("p95 > +5%"), parsed("slower > 0"),
		parsed("total of steady > +5%"), parsed("p50 of left > 0ns"),
		parsed("count of come == 10"), parsed("launches > 1000"),
		parsed("total of come > +1%") };
	const bool fires[] = { true, true, false, false, true, false, true };
	for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
		condition_judge(&conditions[i], d, &j);
		if (j.failed != fires[i])
			fail_msg("%s: %d", conditions[i].text, j.failed);
	}
	condition_judge(&conditions[0], d, &j);
	assert_string_equal(j.where, "rare");
	assert_int_equal(j.rows, 2);
	diff_free(d);
}

/* A hundred queries, of which those that failed were timed and the others counted. */
static void make_queries(const char *path, uint64_t failed)
{
	struct maker *m = maker_new(path, maker_schema, 1u << 20);
	const int calls = maker_thread(m, CHUNK_EVENTS, 100, 100, "main");
	const struct counter c[FN_EVENT_QUERY + 1] = { [FN_EVENT_QUERY] = {
							       .count = 100 - failed } };
	maker_chunk(m, CHUNK_COUNTERS, 100, 100, c, sizeof c);
	for (uint64_t i = 0; i < failed; i++) {
		const uint64_t event = 5;
		const struct record r = { .ticks = 2000000 + i * 1000,
			.dur = 100,
			.fn = FN_EVENT_QUERY,
			.result = 77,
			.words = RECORD_WORDS + 1 };
		maker_put(m, calls, r, &event);
	}
	maker_finish(m, 5000000, false);
}

static void times_of_some_calls_are_not_compared_as_those_of_all(void **state)
{
	struct diff *d;
	make_queries("diff_a.weir", 10);
	make_queries("diff_b.weir", 40);
	diff_new(&d, 3);
	add_file(d, DIFF_A, "diff_a.weir");
	add_file(d, DIFF_B, "diff_b.weir");
	unlink("diff_a.weir");
	unlink("diff_b.weir");
	diff_finish(d);
	const struct diff_row *query = row(d, TABLE_CALLS, "cuEventQuery");
	near(query->value[DIFF_A].count, 100, 0);
	assert_true(isnan(query->value[DIFF_A].total_ns) && isnan(query->value[DIFF_B].total_ns));
	assert_true(isnan(query->total_pct) && isnan(query->value[DIFF_A].median_ns));
	assert_int_equal(query->change.verdict, VERDICT_SAME);
	diff_free(d);
}

/* The calls of each run agree, but the runs do not: no verdict can be had of that. */
static void several_runs_are_judged_by_how_runs_differ(void **state)
{
	const struct kind slow = { "k", 100, 6000, 0 }, fast = { "k", 100, 5000, 0 },
			  middle = { "k", 100, 5500, 0 };
	const struct kind *const noisy[2][3] = { { &slow, &fast, &middle },
		{ &middle, &slow, &fast } };
	const struct kind *const clear[2][3] = { { &fast, &fast, &fast }, { &slow, &slow, &slow } };
	for (int c = 0; c < 2; c++) {
		struct diff *d;
		diff_new(&d, 3);
		for (unsigned i = 0; i < 6; i++) {
			make("diff_run.weir", c ? clear[i / 3][i % 3] : noisy[i / 3][i % 3], 1, i);
			add_file(d, i < 3 ? DIFF_A : DIFF_B, "diff_run.weir");
		}
		diff_finish(d);
		assert_int_equal(row(d, TABLE_KERNELS, "k")->change.verdict,
			c ? VERDICT_SLOWER : VERDICT_SAME);
		diff_free(d);
	}
}

/* More or fewer launches of the same length are neither faster nor slower. */
static void how_often_something_happens_is_no_speed(void **state)
{
	static const struct kind some[] = { { "k", 1800, 5000, 0 }, { "more", 100, 4000, 0 } },
				 more[] = { { "k", 2000, 5000, 0 }, { "more", 300, 3000, 0 } };
	for (int several = 0; several < 2; several++) {
		struct diff *d;
		diff_new(&d, 3);
		for (unsigned i = 0; i < (several ? 6 : 2); i++) {
			make("diff_often.weir", i % 2 ? more : some, 2, 1);
			add_file(d, i % 2 ? DIFF_B : DIFF_A, "diff_often.weir");
		}
		diff_finish(d);
		const struct diff_row *k = row(d, TABLE_KERNELS, "k");
		assert_int_equal(k->change.verdict, VERDICT_SAME);
		near(k->change.pct, 0, 0.5);
		near(k->total_pct, 11.1, 0.5);
		k = row(d, TABLE_KERNELS, "more");
		assert_int_equal(k->change.verdict, VERDICT_FASTER);
		near(k->change.pct, -25, 1);
		assert_true(k->total_ns > 0);
		diff_free(d);
	}
}

/* Two processes may run a kernel of one name: a run's median is that of all its launches. */
static void rows_of_one_name_are_one(void **state)
{
	static const struct kind both[] = { { "k", 300, 5000, 0 }, { "k", 100, 9000, 0 } };
	struct diff *d;
	diff_new(&d, 3);
	for (unsigned i = 0; i < 4; i++) {
		make("diff_twice.weir", both, 2, i);
		add_file(d, i % 2 ? DIFF_B : DIFF_A, "diff_twice.weir");
	}
	diff_finish(d);
	near(row(d, TABLE_KERNELS, "k")->value[DIFF_A].median_ns, 5100, 150);
	near(row(d, TABLE_KERNELS, "k")->value[DIFF_A].count, 400, 0);
	diff_free(d);
}

static void agrees(const struct diff *d, const struct diff_change *c, double a, double b)
{
	if (c->verdict == VERDICT_FASTER || c->verdict == VERDICT_SLOWER) {
		assert_true(c->verdict == VERDICT_FASTER ? b < a : b > a);
		assert_true(fabs(b - a) / a * 100 > c->noise_pct);
		assert_true(fabs(b - a) / a * 100 >= d->threshold_pct);
		assert_true(c->p < 0.01);
	}
	if (!isnan(c->pct) && a > 0)
		near(c->pct, (b - a) / a * 100, 1e-6);
	if (a == b && c->p == 1)
		assert_int_equal(c->verdict, VERDICT_SAME);
}

#define KINDS 40

/* Returns how many verdicts there were that say anything. */
static size_t verdicts_agree(uint64_t *seed, unsigned runs, double threshold_pct)
{
	static char names[KINDS][8];
	struct kind kinds[DIFF_SIDES][KINDS];
	struct diff *d;
	size_t said = 0;
	diff_new(&d, threshold_pct);
	for (size_t i = 0; i < KINDS; i++) {
		snprintf(names[i], sizeof names[i], "k%zu", i);
		for (int s = 0; s < DIFF_SIDES; s++)
			kinds[s][i] = (struct kind){ names[i], 1 + (int)(drawn(seed) % 150),
				4000 + (uint32_t)(drawn(seed) % 800), 1 + drawn(seed) % 1000 };
	}
	for (unsigned i = 0; i < 2 * runs; i++) {
		make("diff_drawn.weir", kinds[i % 2], KINDS, (unsigned)drawn(seed));
		add_file(d, i % 2 ? DIFF_B : DIFF_A, "diff_drawn.weir");
	}
	diff_finish(d);
	for (size_t i = 0; i < d->rows[TABLE_KERNELS].n; i++) {
		const struct diff_row *r = &d->rows[TABLE_KERNELS].v[i];
		agrees(d, &r->change, r->value[DIFF_A].median_ns, r->value[DIFF_B].median_ns);
		said += r->change.verdict > VERDICT_SAME;
	}
	for (int t = 0; t < DIFF_SUMS; t++)
		agrees(d, &d->sums[t].change, d->sums[t].side[DIFF_A], d->sums[t].side[DIFF_B]);
	diff_free(d);
	return said;
}

static void a_verdict_never_contradicts_the_change_beside_it(void **state)
{
	uint64_t seed = 20261123;
	size_t said = 0;
	for (int i = 0; i < 10; i++)
		said += verdicts_agree(&seed, 1, i % 2 ? 3 : 0);
	assert_true(said > 100);
	for (unsigned runs = 2; runs < 8; runs++)
		verdicts_agree(&seed, runs, runs % 2 ? 3 : 0);
}

/* Equal sides have not become faster or slower, whatever the threshold. */
static void equal_samples_are_the_same(void **state)
{
	struct kind kinds[KINDS];
	uint64_t seed = 7;
	for (unsigned runs = 1; runs < 7; runs++) {
		struct diff *d;
		diff_new(&d, 0);
		for (size_t i = 0; i < KINDS; i++)
			kinds[i] = (struct kind){ "k", 20, 5000, 1 + drawn(&seed) % 1000 };
		for (unsigned i = 0; i < 2 * runs; i++) {
			make("diff_equal.weir", kinds, KINDS, i / 2);
			add_file(d, i % 2 ? DIFF_B : DIFF_A, "diff_equal.weir");
		}
		diff_finish(d);
		assert_int_equal(row(d, TABLE_KERNELS, "k")->change.verdict, VERDICT_SAME);
		diff_free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(students_distribution_is_that_of_the_tables),
		cmocka_unit_test(ranks_are_counted_exactly),
		cmocka_unit_test(many_ranks_are_approximated),
		cmocka_unit_test(few_runs_are_compared_by_their_logarithms),
		cmocka_unit_test(durations_are_compared_by_histograms),
		cmocka_unit_test(totals_are_estimated_from_a_few),
		cmocka_unit_test(medians_have_noise),
		cmocka_unit_test(the_median_of_an_even_number_is_between),
		cmocka_unit_test(fail_conditions_are_read),
		cmocka_unit_test(fail_conditions_that_make_no_sense_are_refused_with_a_reason),
		cmocka_unit_test(one_run_a_side_is_judged_by_its_calls),
		cmocka_unit_test(times_of_some_calls_are_not_compared_as_those_of_all),
		cmocka_unit_test(several_runs_are_judged_by_how_runs_differ),
		cmocka_unit_test(how_often_something_happens_is_no_speed),
		cmocka_unit_test(rows_of_one_name_are_one),
		cmocka_unit_test(a_verdict_never_contradicts_the_change_beside_it),
		cmocka_unit_test(equal_samples_are_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
