/*
 * The chain of predictors against kernels whose law is known (zoo.h), and its parts against slow
 * and plain versions of themselves.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/crc.h"
#include "base/hash.h"
#include "predict/approx.h"
#include "predict/fit_nnls.h"
#include "predict/fit_shape.h"
#include "predict/predict.h"
#include "predict/predictor.h"
#include "predict/score.h"
#include "predict/tables.h"
#include "zoo.h"

static const struct predict_sizes sizes = { .launches = 4096, .kernels = 64 };
static struct zoo zoo;

static struct predict fresh_of(const struct predict_sizes *of, double noise)
{
	struct predict p;
	const size_t bytes = predict_bytes(of);
	zoo_init(&zoo, 7, noise);
	void *memory = aligned_alloc(64, bytes);
	assert_non_null(memory);
	assert_int_equal(predict_init(&p, memory, bytes, of, &zoo.device), 0);
	return p;
}

static struct predict fresh(double noise)
{
	return fresh_of(&sizes, noise);
}

static struct predict_sample sample_of(unsigned k, unsigned shape, double factor)
{
	static uint64_t order;
	struct predict_sample s = { .order = ++order };
	s.measured_ns = factor * zoo_launch(&zoo, k, shape, &s.launch);
	return s;
}

static struct predict_answer ask(const struct predict *p, const struct predict_launch *l)
{
	struct predict_answer a;
	memset(&a, 0xff, sizeof a);
	predict_ask(p, l, &a);
	return a;
}

static double off(float told, double measured)
{
	return fabs((double)told / measured - 1);
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	assert_true(n > 0);
	qsort(v, n, sizeof v[0], by_size);
	return v[n / 2];
}

static void logarithms_are_those_of_libm(void **state)
{
	for (double x = 1e-30; x < 1e30; x *= 1.00731)
		assert_true(fabs((double)approx_log2((float)x) - log2((double)(float)x)) <
			    1e-6 + 1e-7 * fabs(log2(x)));
	for (float x = -125; x < 127; x += 0.00917f)
		assert_true(fabs((double)approx_exp2(x) / exp2((double)x) - 1) < 1e-6);
	assert_true(approx_exp2(1e30f) > 1e38f && is_finite(approx_exp2(1e30f)));
	assert_true(approx_exp2(-1e30f) < 1e-37f && approx_exp2(-1e30f) >= 0);
}

static void the_checksum_is_crc_32c(void **state)
{
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(crc32c("", 0), 0);
}

static void quantiles_are_those_of_a_sorted_array(void **state)
{
	float v[SCORES];
	double sorted[SCORES];
	zoo_init(&zoo, 3, 0);
	for (size_t n = 1; n <= SCORES; n++)
		for (double q = 0.1; q < 1; q += 0.2) {
			for (size_t i = 0; i < n; i++)
				sorted[i] = v[i] = (float)zoo_normal(&zoo);
			qsort(sorted, n, sizeof sorted[0], by_size);
			const size_t rank = (size_t)ceil((double)(n + 1) * q - 1e-9);
			assert_true((double)score_quantile(v, n, q) ==
				    sorted[rank > n ? n - 1 : rank - 1]);
		}
}

static double misfit(const struct normal *n, const double x[NNLS_TERMS])
{
	double sum = 0;
	for (int i = 0; i < NNLS_TERMS; i++) {
		for (int j = 0; j < NNLS_TERMS; j++)
			sum += x[i] * n->a[i][j] * x[j];
		sum -= 2 * n->b[i] * x[i];
	}
	return sum;
}

/* Coordinate descent: slow, and without a decision that could be wrong. */
static void solve_slowly(const struct normal *n, double x[NNLS_TERMS])
{
	memset(x, 0, NNLS_TERMS * sizeof x[0]);
	for (int turn = 0; turn < 200000; turn++) {
		const int i = turn % NNLS_TERMS;
		double gradient = n->b[i];
		for (int j = 0; j < NNLS_TERMS; j++)
			gradient -= n->a[i][j] * x[j];
		x[i] += n->a[i][i] > 0 ? gradient / n->a[i][i] : 0;
		x[i] = x[i] < 0 ? 0 : x[i];
	}
}

static void least_squares_find_the_least(void **state)
{
	zoo_init(&zoo, 5, 0);
	for (int turn = 0; turn < 60; turn++) {
		struct normal n = { 0 };
		double fast[NNLS_TERMS], slow[NNLS_TERMS];
		for (int i = 0; i < NNLS_TERMS - 1 + turn; i++) {
			double terms[NNLS_TERMS];
			for (int k = 0; k < NNLS_TERMS; k++)
				terms[k] = zoo_normal(&zoo) * pow(10, k % 3) *
					   !(turn % 7 == 1 && k == 2);
			normal_add(&n, terms, 1 + turn % 3);
		}
		normal_solve(&n, fast);
		solve_slowly(&n, slow);
		for (int k = 0; k < NNLS_TERMS; k++)
			assert_true(fast[k] >= 0);
		/* the ridge moves it a little */
		assert_true(misfit(&n, fast) <= misfit(&n, slow) + 1e-3 * fabs(misfit(&n, slow)));
	}
}

/* An observation that is added and taken out again leaves what was there, also of a term that is
 * then always 0. */
static void observations_can_be_taken_out_again(void **state)
{
	struct normal all = { 0 }, rest = { 0 }, part = { 0 };
	double without[NNLS_TERMS], solved[NNLS_TERMS];
	zoo_init(&zoo, 6, 0);
	for (int i = 0; i < 40; i++) {
		double terms[NNLS_TERMS];
		for (int k = 0; k < NNLS_TERMS; k++)
			terms[k] = zoo_uniform(&zoo) * pow(10, k % 4) * (k != 3 || i % 8 == 0);
		normal_add(&all, terms, 1);
		normal_add(i % 8 ? &rest : &part, terms, 1);
	}
	normal_less(&all, &part);
	normal_solve(&all, without);
	normal_solve(&rest, solved);
	for (int k = 0; k < NNLS_TERMS; k++)
		assert_float_equal(without[k], solved[k], 1e-6);
	assert_true(without[3] == 0);
}

static void a_launch_that_ran_twice_is_known(void **state)
{
	struct predict p = fresh(0);
	struct predict_sample s = sample_of(3, 2, 1);
	assert_int_equal(ask(&p, &s.launch).tier, PREDICT_BOUND);
	assert_true(predict_learn(&p, &s));
	assert_int_equal(ask(&p, &s.launch).tier, PREDICT_ONCE);
	assert_true(predict_learn(&p, &s));
	const struct predict_answer a = ask(&p, &s.launch);
	assert_int_equal(a.tier, PREDICT_EXACT);
	assert_true(off(a.t50_ns, s.measured_ns) < 1e-5);
	assert_true(a.t90_ns > a.t50_ns && a.confidence > 0.9f);
	/* without its key it is the same launch */
	s.launch.key = 0;
	assert_int_equal(ask(&p, &s.launch).tier, PREDICT_EXACT);
	free(p.tables);
}

/* History must not tell another fit than arithmetic does. */
static void the_fit_is_the_same_whoever_answers(void **state)
{
	struct predict p = fresh(0);
	for (unsigned k = 0; k < ZOO_KERNELS; k++) {
		struct predict_sample s = sample_of(k, k % ZOO_SHAPES, 1);
		const struct predict_answer before = ask(&p, &s.launch);
		predict_learn(&p, &s);
		const struct predict_answer after = ask(&p, &s.launch);
		assert_int_equal(after.tier, PREDICT_ONCE);
		assert_true(before.launches && after.launches);
		assert_int_equal(before.blocks_per_sm, after.blocks_per_sm);
		assert_true(before.occupancy == after.occupancy && before.waves == after.waves);
		assert_true(before.sm_fill == after.sm_fill);
		assert_true(before.lane_efficiency == after.lane_efficiency);
	}
	free(p.tables);
}

static void fit_follows_from_geometry(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 1, .regs = 32, .has_regs = true };
	const struct predict_launch l = {
		.kernel = &k, .grid = { 66, 1, 1 }, .block = { 48, 1, 1 }
	};
	const struct predict_answer a = ask(&p, &l);
	assert_int_equal(a.blocks_per_sm, 32);
	assert_true(a.occupancy == 1 && a.sm_fill == 0.5f && a.lane_efficiency == 0.75f);
	assert_true(a.waves == 66.0f / (132 * 32));
	free(p.tables);
}

static void an_outlier_moves_little_and_a_new_regime_all(void **state)
{
	struct predict p = fresh(0);
	const double usual = sample_of(0, 0, 1).measured_ns;
	struct predict_sample s;
	for (int i = 0; i < 20; i++) {
		s = sample_of(0, 0, 1 + 0.001 * (i % 5));
		predict_learn(&p, &s);
	}
	s = sample_of(0, 0, 1.8);
	predict_learn(&p, &s);
	assert_true(off(ask(&p, &s.launch).t50_ns, usual) < 0.01);
	s = sample_of(0, 0, 3);
	predict_learn(&p, &s);
	assert_true(off(ask(&p, &s.launch).t50_ns, usual) < 0.01);
	predict_learn(&p, &s);
	assert_true(off(ask(&p, &s.launch).t50_ns, 3 * usual) < 0.01);
	free(p.tables);
}

static void a_slow_first_run_is_forgotten(void **state)
{
	struct predict p = fresh(0);
	struct predict_sample s = sample_of(0, 0, 1.6);
	predict_learn(&p, &s);
	s = sample_of(0, 0, 1);
	predict_learn(&p, &s);
	assert_true(off(ask(&p, &s.launch).t50_ns, s.measured_ns) < 1e-5);
	free(p.tables);
}

/* As a file has it whose program was killed in the middle of a change. */
static void a_change_that_was_not_ended_is_ended_by_the_next(void **state)
{
	struct predict p = fresh(0);
	struct predict_sample s = sample_of(0, 0, 1);
	predict_learn(&p, &s);
	for (uint32_t i = 0; i < sizes.launches; i++)
		tables_entries(p.tables)[i].sequence |= 1;
	assert_int_not_equal(ask(&p, &s.launch).tier, PREDICT_ONCE);
	predict_learn(&p, &s);
	assert_int_equal(ask(&p, &s.launch).tier, PREDICT_EXACT);
	free(p.tables);
}

static void more_launches_than_room_push_out_the_oldest(void **state)
{
	static const struct predict_sizes few = { .launches = 256, .kernels = 64 };
	struct predict p = fresh_of(&few, 0);
	struct predict_sample s = sample_of(0, 0, 1);
	for (uint32_t i = 0; i < 4 * few.launches; i++) {
		s.launch.arg[1] = i;
		s.launch.key = 0;
		s.order = (uint64_t)i << 20;
		assert_true(predict_learn(&p, &s));
	}
	assert_int_equal(ask(&p, &s.launch).tier, PREDICT_ONCE);
	s.launch.arg[1] = 0;
	assert_int_equal(ask(&p, &s.launch).tier, PREDICT_SHAPE);
	free(p.tables);
}

/* The law of each kernel of the zoo, found from 16 shapes without knowing its arguments. */
static void a_kernel_is_known_from_its_shapes(void **state)
{
	struct predict p = fresh(0);
	double errors[ZOO_KERNELS * 8];
	size_t n = 0;
	for (unsigned k = 0; k < ZOO_KERNELS; k++)
		for (unsigned shape = 0; shape < ZOO_SHAPES; shape++) {
			struct predict_sample s = sample_of(k, shape, 1);
			s.launch.has_bytes = s.launch.has_flops = false;
			const struct predict_answer a = ask(&p, &s.launch);
			/* some shapes of the zoo are the same */
			if (shape >= 2 * FIT_FEWEST)
				assert_true(a.tier >= PREDICT_SHAPE);
			if (shape >= 16)
				errors[n++] = off(a.t50_ns, s.measured_ns);
			predict_learn(&p, &s);
		}
	assert_true(median(errors, n) < 0.02);
	free(p.tables);
}

/* Twenty times the largest that was seen. */
static void a_line_goes_on_beyond_what_was_seen(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 77, .regs = 32, .has_regs = true };
	struct predict_sample s = { .launch = { .kernel = &k, .block = { 256, 1, 1 }, .args = 2 } };
	for (uint32_t i = 1; i <= 13; i++) {
		const uint32_t blocks = i <= 12 ? 500 * i * i : 20 * 500 * 144;
		s.launch.grid[0] = blocks;
		s.launch.grid[1] = s.launch.grid[2] = 1;
		s.launch.arg[0] = 256 * blocks;
		s.launch.arg[1] = 3;
		s.measured_ns = 2000 + 0.5 * blocks;
		if (i == 13)
			assert_true(off(ask(&p, &s.launch).t50_ns, s.measured_ns) < 0.05);
		predict_learn(&p, &s);
	}
	free(p.tables);
}

/* A law fills in a launch and says its time.  How far off the second half of sixty launches is. */
static double off_by_law(double (*law)(struct predict_launch *l))
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 81, .regs = 64, .has_regs = true };
	double errors[30];
	for (int i = 0; i < 60; i++) {
		struct predict_sample s = { .launch = { .kernel = &k, .block = { 256, 1, 1 } } };
		s.launch.grid[1] = s.launch.grid[2] = 1;
		s.measured_ns = law(&s.launch);
		if (i >= 30)
			errors[i - 30] = off(ask(&p, &s.launch).t50_ns, s.measured_ns);
		predict_learn(&p, &s);
	}
	free(p.tables);
	return median(errors, COUNT_OF(errors));
}

/* Four blocks fit on an SM.  Up to two of them take as long as one. */
static double latency(struct predict_launch *l)
{
	l->grid[0] = (uint32_t)(132 * exp2(5 * zoo_uniform(&zoo) - 1));
	l->args = 1;
	l->arg[0] = (uint64_t)(100 + 9000 * zoo_uniform(&zoo));
	const double rounds = ceil(l->grid[0] / 132.0);
	return 2000 + 100.0 * (double)l->arg[0] * (rounds > 2 ? rounds : 2);
}

static void blocks_that_wait_for_memory_take_as_long_as_one(void **state)
{
	assert_true(off_by_law(latency) < 0.02);
}

/* Half of the shapes are bound by bytes, half by FLOPs, each with an efficiency of its own. */
static double two_ceilings(struct predict_launch *l)
{
	l->grid[0] = 132 * 40;
	l->args = 1;
	l->arg[0] = zoo.random; /* another launch */
	l->flops = exp2(30 + 8 * zoo_uniform(&zoo));
	l->bytes = exp2(26 + 6 * zoo_uniform(&zoo));
	l->has_flops = l->has_bytes = true;
	l->unit = GPU_FP32;
	return 3000 + l->bytes / zoo.device.dram_bytes_ns / 0.9 +
	       l->flops / zoo.device.flops_ns[GPU_FP32] / 0.4;
}

static void bytes_and_flops_have_a_ceiling_each(void **state)
{
	assert_true(off_by_law(two_ceilings) < 0.02);
}

/* Every eighth launch is half as long again. */
static double now_and_then_slow(struct predict_launch *l)
{
	static unsigned count;
	l->grid[0] = 132 * (uint32_t)(1 + 100 * zoo_uniform(&zoo));
	l->args = 1;
	l->arg[0] = (uint64_t)(100 + 9000 * zoo_uniform(&zoo));
	return (1000 + (double)(l->grid[0] * l->arg[0]) / 100) * (count++ % 8 == 3 ? 1.5 : 1);
}

static void outliers_do_not_bend_the_law(void **state)
{
	assert_true(off_by_law(now_and_then_slow) < 0.01);
}

/* Without bytes the bound is a yardstick, and says nothing about launches with. */
static void what_is_known_of_a_launch_keeps_shapes_apart(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 82, .regs = 32, .has_regs = true };
	struct predict_sample s = { .launch = { .kernel = &k, .block = { 256, 1, 1 } } };
	s.launch.grid[1] = s.launch.grid[2] = 1;
	for (uint32_t i = 1; i <= 12; i++) {
		s.launch.grid[0] = 1000 * i;
		s.launch.has_bytes = i % 2;
		s.launch.bytes = 1e6 * i;
		s.measured_ns = 20000 + 5000.0 * i;
		predict_learn(&p, &s);
	}
	assert_int_equal(shape_slot(&p, &k, 0)->head.shapes, 6);
	assert_int_equal(shape_slot(&p, &k, 1)->head.shapes, 6);
	assert_null(shape_slot(&p, &k, 2));
	/* but blocks are blocks */
	s.launch.has_bytes = s.launch.has_flops = true;
	s.launch.flops = 1e6;
	s.launch.unit = GPU_FP32;
	s.launch.grid[0] = 3500;
	struct predict_answer a = ask(&p, &s.launch);
	assert_int_equal(a.tier, PREDICT_SHAPE);
	assert_true(off(a.t50_ns, 37500) < 0.02);
	free(p.tables);
}

/* From one shape: four times the blocks take four times as long, but for the microsecond that every
 * kernel takes. */
static void what_no_kernel_is_shorter_than_is_not_scaled(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 84, .regs = 32, .has_regs = true };
	struct predict_sample s = { .launch = { .kernel = &k, .block = { 1024, 1, 1 } } };
	s.launch.grid[1] = s.launch.grid[2] = 1;
	s.launch.grid[0] = 10000;
	s.measured_ns = zoo.device.floor_ns + 60000;
	predict_learn(&p, &s);
	s.launch.grid[0] = 40000;
	const struct predict_answer a = ask(&p, &s.launch);
	assert_int_equal(a.tier, PREDICT_NEAR);
	assert_true(off(a.t50_ns, zoo.device.floor_ns + 240000) < 1e-4);
	free(p.tables);
}

/* Half a logarithm is a root. */
static void a_power_law_is_found(void **state)
{
	struct power_sums sums = { 0 };
	float weights[POWER_TERMS];
	for (int i = 0; i < 200; i++) {
		float terms[POWER_TERMS] = { 1 };
		for (int k = 1; k < 5; k++)
			terms[k] = 10 * (float)zoo_uniform(&zoo);
		power_add(&sums, terms, 3 + terms[1] - 0.5f * terms[2]);
	}
	power_solve(&sums, 0.03, weights);
	assert_float_equal(weights[0], 3, 0.05);
	assert_float_equal(weights[1], 1, 0.01);
	assert_float_equal(weights[2], -0.5f, 0.01);
	for (int k = 3; k < POWER_TERMS; k++)
		assert_float_equal(weights[k], 0, 0.01);
}

/* One block more than there are SMs, and one SM works twice as long as the others. */
static void the_bound_is_that_of_the_SM_with_most_blocks(void **state)
{
	struct predict_device d;
	assert_int_equal(predict_device_find("NVIDIA H200", 90, 0, &d), 0);
	const struct predict_kernel k = { .id = 1, .regs = 32, .has_regs = true };
	struct predict_launch l = { .kernel = &k,
		.grid = { d.sms, 1, 1 },
		.block = { 256, 1, 1 },
		.has_flops = true,
		.unit = GPU_FP32,
		.flops = d.flops_ns[GPU_FP32] * 50e3 };
	struct predict_question q = { .launch = &l, .device = &d };
	assert_true(question_shape(&q));
	assert_float_equal(q.bound_ns, 50e3, 1);
	l.grid[0] = d.sms + 1;
	l.flops = l.flops / d.sms * l.grid[0];
	assert_true(question_shape(&q));
	assert_float_equal(q.bound_ns, 100e3, 1);
	/* what one block does is done by one SM, however many there are */
	l.grid[0] = 1;
	l.flops = d.flops_ns[GPU_FP32] * 50e3 / d.sms;
	assert_true(question_shape(&q));
	assert_float_equal(q.bound_ns, 50e3, 1);
}

/* A kernel whose siblings ran in many shapes is predicted from them, and as new. */
static void siblings_tell_of_a_kernel_that_did_not_run(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel known = { .id = 79, .group = 5, .regs = 32, .has_regs = true };
	const struct predict_kernel unseen = { .id = 80, .group = 5, .regs = 32, .has_regs = true };
	struct predict_sample s = { .launch = { .kernel = &known, .block = { 256, 1, 1 } } };
	s.launch.grid[1] = s.launch.grid[2] = 1;
	for (uint32_t i = 1; i <= 20; i++) {
		s.launch.grid[0] = 2000 * i;
		s.measured_ns = 3000 + 10.0 * s.launch.grid[0];
		predict_learn(&p, &s);
	}
	s.launch.kernel = &unseen;
	s.launch.grid[0] = 21000;
	const struct predict_answer a = ask(&p, &s.launch);
	assert_int_equal(a.tier, PREDICT_COLD);
	assert_true(off(a.t50_ns, 213000) < 0.03);
	free(p.tables);
}

static struct predict_sample some_blocks(const struct predict_kernel *k, uint32_t blocks, double ns)
{
	struct predict_sample s = { .launch = { .kernel = k, .block = { 256, 1, 1 } } };
	s.launch.grid[0] = blocks;
	s.launch.grid[1] = s.launch.grid[2] = 1;
	s.measured_ns = ns;
	return s;
}

/* One sibling that runs in thousands of shapes does not crowd out another, and what is told is
 * sensible after each of them, whichever shapes have just been replaced. */
static void a_busy_sibling_leaves_room_for_the_others(void **state)
{
	double errors[2000];
	struct predict p = fresh(0);
	const struct predict_kernel rare = { .id = 1, .group = 5, .regs = 200, .has_regs = true };
	const struct predict_kernel busy = { .id = 2, .group = 5, .regs = 32, .has_regs = true };
	const struct predict_kernel like_rare = {
		.id = 3, .group = 5, .regs = 200, .has_regs = true
	};
	const struct predict_kernel like_busy = {
		.id = 4, .group = 5, .regs = 32, .has_regs = true
	};
	for (uint32_t i = 1; i <= 12; i++) {
		const struct predict_sample s = some_blocks(&rare, 3000 * i, 400.0 * 3000 * i);
		predict_learn(&p, &s);
	}
	for (uint32_t i = 1; i <= 2000; i++) {
		const uint32_t blocks = 1000 + 17 * (i * 769 % 2000);
		const struct predict_sample s = some_blocks(&busy, blocks, 40.0 * blocks);
		predict_learn(&p, &s);
		const struct predict_sample other = some_blocks(&like_busy, blocks + 9, 0);
		const struct predict_answer a = ask(&p, &other.launch);
		assert_int_equal(a.tier, PREDICT_COLD);
		errors[i - 1] = off(a.t50_ns, 40.0 * (blocks + 9));
		assert_true(i < 60 || errors[i - 1] < 1);
	}
	assert_true(median(errors, COUNT_OF(errors)) < 0.05);
	const struct predict_sample s = some_blocks(&like_rare, 17000, 0);
	const struct predict_answer a = ask(&p, &s.launch);
	assert_int_equal(a.tier, PREDICT_COLD);
	assert_true(off(a.t50_ns, 400.0 * 17000) < 0.3);
	free(p.tables);
}

/* If history has no room, a launch is new each time, to its siblings too. */
static void a_shape_that_history_forgets_again_and_again_stays_sensible(void **state)
{
	const struct predict_sizes few = { .launches = 4, .kernels = 64 };
	const struct predict_kernel known = { .id = 1, .group = 5, .regs = 32, .has_regs = true };
	const struct predict_kernel unseen = { .id = 2, .group = 5, .regs = 32, .has_regs = true };
	struct predict p = fresh_of(&few, 0);
	for (uint32_t i = 0; i < 20 * 600; i++) {
		const uint32_t blocks = 3000 * (1 + i % 20);
		const struct predict_sample s = some_blocks(&known, blocks, 40.0 * blocks);
		predict_learn(&p, &s);
	}
	const struct predict_sample s = some_blocks(&unseen, 31000, 0);
	const struct predict_answer a = ask(&p, &s.launch);
	assert_int_equal(a.tier, PREDICT_COLD);
	assert_true(off(a.t50_ns, 40.0 * 31000) < 0.05);
	free(p.tables);
}

/* Eight arguments, of which two carry the work together. */
static void a_product_of_two_arguments_is_found_among_eight(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 78, .regs = 32, .has_regs = true };
	struct predict_sample s = { .launch = { .kernel = &k, .block = { 256, 1, 1 }, .args = 8 } };
	double errors[20];
	for (int i = 0; i < 60; i++) {
		for (int a = 0; a < 8; a++)
			s.launch.arg[a] = 1 + (uint64_t)(4096 * zoo_uniform(&zoo));
		s.launch.grid[0] = 264;
		s.launch.grid[1] = s.launch.grid[2] = 1;
		s.measured_ns = 2000 + 0.01 * (double)(s.launch.arg[2] * s.launch.arg[5]);
		if (i >= 40)
			errors[i - 40] = off(ask(&p, &s.launch).t50_ns, s.measured_ns);
		predict_learn(&p, &s);
	}
	const struct shape_fit *fit = &shape_slot(&p, &k, 0)->head.fit;
	assert_int_equal(fit->kind, FIT_LINEAR);
	assert_int_equal(fit->first + fit->second, 7);
	assert_true(median(errors, COUNT_OF(errors)) < 0.01);
	free(p.tables);
}

struct tally {
	double off[20000], covered;
	size_t n;
};

/* How much longer everything runs now than the history says. */
static double slowdown(const struct predict *p)
{
	return (double)load_float(&p->tables->hot.slower[false]);
}

/* Predict, then learn: what deployment is. */
static void t90_holds_nine_times_of_ten_in_every_tier(void **state)
{
	static struct tally tallies[PREDICT_TIERS];
	struct predict p = fresh(0.02);
	for (uint64_t i = 0; i < 20000; i++) {
		const struct predict_sample s = zoo_next(&zoo, i << 20);
		const struct predict_answer a = ask(&p, &s.launch);
		struct tally *t = &tallies[a.tier];
		t->off[t->n++] = off(a.t50_ns, s.measured_ns);
		t->covered += s.measured_ns <= (double)a.t90_ns;
		assert_true(predict_learn(&p, &s));
	}
	for (int tier = PREDICT_BOUND; tier < PREDICT_TIERS; tier++) {
		struct tally *t = &tallies[tier];
		if (t->n)
			print_message("  %s: %zu, median %.4f, covered %.3f\n",
				predict_tier_word((enum predict_tier)tier), t->n,
				median(t->off, t->n), t->covered / (double)t->n);
	}
	struct tally *exact = &tallies[PREDICT_EXACT];
	assert_true(exact->n > 15000);
	assert_in_range((int)(1000 * exact->covered / (double)exact->n), 880, 920);
	assert_true(median(exact->off, exact->n) < 0.02);
	assert_true(exact->off[exact->n * 9 / 10] < 0.05);
	assert_true(slowdown(&p) == 1);
	free(p.tables);
}

/* Launches of 5 us differ by a tenth from their second run, those of 1 ms by a hundredth; what is
 * told of the second after the first holds for 90 % of both. */
static void t90_holds_for_short_launches_and_for_long_ones(void **state)
{
	struct predict p = fresh(0);
	const struct predict_kernel k = { .id = 83, .regs = 32, .has_regs = true };
	struct predict_sample s = { .launch = { .kernel = &k, .block = { 256, 1, 1 }, .args = 1 } };
	unsigned covered[2] = { 0 };
	s.launch.grid[0] = s.launch.grid[1] = s.launch.grid[2] = 1;
	for (int i = 0; i < 4000; i++) {
		const bool is_long = i % 2;
		const double usual = is_long ? 1e6 : 5e3, noise = is_long ? 0.01 : 0.1;
		s.launch.arg[0] = (uint64_t)i;
		for (int run = 0; run < 2; run++) {
			s.order++;
			s.measured_ns = usual * exp(noise * zoo_normal(&zoo));
			const struct predict_answer a = ask(&p, &s.launch);
			covered[is_long] += run && s.measured_ns <= (double)a.t90_ns;
			predict_learn(&p, &s);
		}
	}
	for (int is_long = 0; is_long < 2; is_long++)
		assert_in_range(covered[is_long], 2000 * 88 / 100, 2000 * 92 / 100);
	free(p.tables);
}

/* Each launch in turn differs from the one before by more, without an end: what came true lags
 * behind, and t90 holds in 90 % of cases all the same. */
static void t90_holds_while_everything_becomes_less_sure(void **state)
{
	struct predict_tables *t = fresh(0).tables;
	struct predict_answer a;
	unsigned covered = 0;
	for (int i = 0; i < 8000; i++) {
		const double off = zoo_normal(&zoo) * exp2(i / 400.0) * 1e-6;
		score_answer(t, PREDICT_EXACT, 50000, 0, SCALE_LEAST, &a);
		covered += 50000 * exp2(off) <= (double)a.t90_ns;
		score_push(t, &a, 50000 * exp2(off));
	}
	print_message("  covered %u of 8000\n", covered);
	assert_in_range(covered, 8000 * 88 / 100, 8000 * 92 / 100);
	free(t);
}

static void what_slows_everything_is_not_learned_as_the_kernels(void **state)
{
	struct predict p = fresh(0.01);
	for (uint64_t i = 0; i < 6000; i++) {
		struct predict_sample s = zoo_next(&zoo, i << 20);
		s.measured_ns *= i > 4000 ? 1.3 : 1;
		predict_learn(&p, &s);
	}
	assert_true(fabs(slowdown(&p) - 1.3) < 0.03);
	/* a launch that has not run since is predicted as slow as it will be now */
	const struct predict_sample s = sample_of(0, 0, 1);
	struct predict_answer a = ask(&p, &s.launch);
	if (a.tier == PREDICT_EXACT)
		assert_true(off(a.t50_ns, 1.3 * s.measured_ns) < 0.03);
	for (uint64_t i = 6000; i < 9000; i++) {
		const struct predict_sample again = zoo_next(&zoo, i << 20);
		predict_learn(&p, &again);
	}
	assert_true(fabs(slowdown(&p) - 1) < 0.03);
	free(p.tables);
}

/* The SMs' clock falls, and memory's does not: what is bound by memory takes as long as before, and
 * nothing that is told of it may change; the others' own history follows in twenty runs. */
static void a_clock_that_slows_some_is_learnt_by_those(void **state)
{
	struct predict p = fresh(0);
	int late = 0;
	for (int round = 0; round < 60; round++)
		for (unsigned k = 0; k < 24; k++) {
			const bool arithmetic = k % 2;
			struct predict_sample s =
				sample_of(k, 0, round >= 30 && arithmetic ? 1.25 : 1);
			const struct predict_answer a = ask(&p, &s.launch);
			const bool wrong = off(a.t50_ns, s.measured_ns) > 0.05;
			if (round >= 30 && !arithmetic)
				assert_false(wrong);
			if (round >= 30 && wrong)
				late = round - 30;
			predict_learn(&p, &s);
		}
	assert_in_range(late, 1, 20);
	assert_true(slowdown(&p) == 1);
	free(p.tables);
}

static void neighbours_do_not_spoil_the_history(void **state)
{
	struct predict p = fresh(0);
	struct predict_sample s = sample_of(0, 0, 1);
	const double usual = s.measured_ns;
	for (int i = 0; i < 10; i++)
		predict_learn(&p, &s);
	s.launch.contended = true;
	s.measured_ns = 2 * usual;
	for (int i = 0; i < 64; i++)
		predict_learn(&p, &s);
	assert_true(off(ask(&p, &s.launch).t50_ns, 2 * usual) < 0.01);
	s.launch.contended = false;
	assert_true(off(ask(&p, &s.launch).t50_ns, usual) < 0.01);
	free(p.tables);
}

static void nonsense_is_neither_learned_nor_predicted(void **state)
{
	struct predict p = fresh(0);
	const struct predict_sample good = sample_of(0, 0, 1);
	static const double times[] = { 0, -1, NAN, INFINITY, -INFINITY, 1e300 };
	for (size_t i = 0; i < COUNT_OF(times); i++) {
		struct predict_sample s = good;
		s.measured_ns = times[i];
		assert_false(predict_learn(&p, &s));
	}
	static const uint32_t absurd[] = { 0, 70000, UINT32_MAX };
	for (size_t i = 0; i < COUNT_OF(absurd) * 6; i++) {
		struct predict_sample s = good;
		uint32_t *dims = i % 6 < 3 ? s.launch.grid : s.launch.block;
		dims[i % 3] = absurd[i / 6];
		s.launch.key = 0;
		if (i % 6 == 0 && absurd[i / 6] == 70000)
			continue; /* a grid may be that long */
		assert_false(predict_learn(&p, &s));
		const struct predict_answer a = ask(&p, &s.launch);
		assert_int_equal(a.tier, PREDICT_UNKNOWN);
		assert_false(a.launches);
	}
	assert_int_equal(p.tables->learned, 0);
	free(p.tables);
}

/* FLOPs and bytes that cannot be are as if they were not known. */
static void work_that_makes_no_sense_is_not_believed(void **state)
{
	struct predict p = fresh(0);
	static const double activity[] = { 0, -5, NAN, INFINITY, 1e300 };
	struct predict_sample s = sample_of(0, 0, 1);
	s.launch.has_bytes = s.launch.has_flops = false;
	const struct predict_answer plain = ask(&p, &s.launch);
	s.launch.has_bytes = s.launch.has_flops = true;
	s.launch.unit = GPU_FP32;
	for (size_t i = 0; i < COUNT_OF(activity); i++) {
		s.launch.bytes = s.launch.flops = activity[i];
		const struct predict_answer a = ask(&p, &s.launch);
		assert_true(a.t50_ns == plain.t50_ns);
	}
	s.launch.bytes = 1e12;
	assert_true(ask(&p, &s.launch).t50_ns > 1e8f);
	free(p.tables);
}

static void kept_tables_go_on_where_they_were(void **state)
{
	struct predict p = fresh(0.01), q;
	const size_t bytes = predict_bytes(&sizes);
	for (uint64_t i = 0; i < 3000; i++) {
		const struct predict_sample s = zoo_next(&zoo, i << 20);
		predict_learn(&p, &s);
	}
	predict_seal(&p);
	char *copy = aligned_alloc(64, bytes);
	memcpy(copy, p.tables, bytes);
	assert_int_equal(predict_attach(&q, copy, bytes, &zoo.device), 0);
	for (uint64_t i = 0; i < 500; i++) {
		const struct predict_sample s = zoo_next(&zoo, i << 20);
		const struct predict_answer a = ask(&p, &s.launch), b = ask(&q, &s.launch);
		assert_true(a.t50_ns == b.t50_ns && a.t90_ns == b.t90_ns && a.tier == b.tier);
	}
	struct predict_device other = zoo.device;
	other.sms = 104;
	assert_int_equal(predict_attach(&q, copy, bytes, &other), -ENODEV);
	other = zoo.device;
	other.uuid[3] = 1; /* told by one side alone */
	assert_int_equal(predict_attach(&q, copy, bytes, &other), 0);
	assert_int_equal(predict_attach(&q, copy, bytes - 1, NULL), -EINVAL);
	assert_int_equal(predict_attach(&q, copy, 10, NULL), -EINVAL);
	copy[bytes / 2] ^= 1;
	assert_int_equal(predict_attach(&q, copy, bytes, NULL), -EBADMSG);
	copy[0] ^= 1;
	assert_int_equal(predict_attach(&q, copy, bytes, NULL), -EINVAL);
	free(copy);
	free(p.tables);
}

/* With a checksum that is right: a file may be made by anybody. */
static void tables_that_would_lead_out_of_bounds_are_refused(void **state)
{
	struct predict p = fresh(0.01), q;
	struct predict_tables *t = p.tables;
	const size_t bytes = predict_bytes(&sizes);
	memset(&t->device.sm, 0, sizeof t->device.sm); /* by which is divided */
	predict_seal(&p);
	assert_int_equal(predict_attach(&q, t, bytes, &zoo.device), 0);
	assert_memory_equal(&t->device, &zoo.device, sizeof zoo.device);
	tables_slots(t)[t->kernels - 1].head.shapes = SHAPES + 1;
	predict_seal(&p);
	assert_int_equal(predict_attach(&q, t, bytes, &zoo.device), -EBADMSG);
	tables_slots(t)[t->kernels - 1].head.shapes = 0;
	tables_siblings(t)[tables_sibling_slots(t) - 1].head.shapes =
		SIBLING_SHAPES + SIBLING_WAITING;
	predict_seal(&p);
	assert_int_equal(predict_attach(&q, t, bytes, &zoo.device), -EBADMSG);
	tables_siblings(t)[tables_sibling_slots(t) - 1].head.shapes = 0;
	t->log_ratios[FAMILIES - 1][KNOWN_COSTS - 1].n = UINT32_MAX;
	predict_seal(&p);
	assert_int_equal(predict_attach(&q, t, bytes, &zoo.device), -EBADMSG);
	free(p.tables);
}

static void of_another_device_of_the_kind_times_are_first_guesses(void **state)
{
	struct predict p = fresh(0), q;
	const size_t bytes = predict_bytes(&sizes);
	struct predict_device here = zoo.device;
	struct predict_sample s = zoo_next(&zoo, 0);
	p.tables->device.uuid[0] = 1;
	here.uuid[0] = 2;
	for (uint64_t i = 0; i < 100; i++) {
		s.order = i << 20;
		predict_learn(&p, &s);
	}
	const struct predict_answer there = ask(&p, &s.launch);
	assert_int_equal(predict_attach(&q, p.tables, bytes, &here), -EXDEV);
	assert_int_equal(predict_attach(&q, p.tables, bytes, NULL), 0);
	predict_transfer(&q, &here);
	const struct predict_answer guess = ask(&q, &s.launch);
	assert_int_equal(guess.tier, PREDICT_ONCE);
	assert_float_equal(guess.t50_ns, there.t50_ns, 0.001 * there.t50_ns);
	assert_true(guess.t90_ns > 1.1f * guess.t50_ns && guess.confidence < there.confidence);
	assert_int_equal(predict_attach(&p, q.tables, bytes, &here), 0);
	s.measured_ns *= 1.3; /* slower, and no slow first run */
	predict_learn(&q, &s);
	assert_float_equal(ask(&q, &s.launch).t50_ns, s.measured_ns, 0.001 * s.measured_ns);
	free(p.tables);
}

static void several_devices_have_one_name_together(void **state)
{
	const uint8_t a[16] = { 1 }, b[16] = { 2 }, none[16] = { 0 };
	struct predict_uuids one = { 0 }, two = { 0 }, other = { 0 };
	predict_uuid_add(&one, a);
	assert_memory_equal(one.all, a, 16);
	predict_uuid_add(&two, a);
	predict_uuid_add(&two, b);
	assert_memory_not_equal(two.all, a, 16);
	assert_memory_not_equal(two.all, none, 16);
	predict_uuid_add(&other, a);
	predict_uuid_add(&other, none);
	predict_uuid_add(&other, b);
	assert_memory_equal(other.all, none, 16);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
	static const struct predict_sizes bad[] = { { 0, 64 }, { 64, 0 }, { 100, 64 }, { 64, 65 },
		{ 1u << 31, 64 }, { 64, 1u << 31 }, { 1, 1 } };
	struct predict p;
	char memory[64];
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(predict_bytes(&bad[i]), 0);
		assert_int_equal(
			predict_init(&p, memory, sizeof memory, &bad[i], &zoo.device), -EINVAL);
	}
	assert_int_equal(predict_init(&p, memory, sizeof memory, &sizes, &zoo.device), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logarithms_are_those_of_libm),
		cmocka_unit_test(the_checksum_is_crc_32c),
		cmocka_unit_test(quantiles_are_those_of_a_sorted_array),
		cmocka_unit_test(least_squares_find_the_least),
		cmocka_unit_test(observations_can_be_taken_out_again),
		cmocka_unit_test(a_launch_that_ran_twice_is_known),
		cmocka_unit_test(the_fit_is_the_same_whoever_answers),
		cmocka_unit_test(fit_follows_from_geometry),
		cmocka_unit_test(an_outlier_moves_little_and_a_new_regime_all),
		cmocka_unit_test(a_slow_first_run_is_forgotten),
		cmocka_unit_test(a_change_that_was_not_ended_is_ended_by_the_next),
		cmocka_unit_test(more_launches_than_room_push_out_the_oldest),
		cmocka_unit_test(a_kernel_is_known_from_its_shapes),
		cmocka_unit_test(a_line_goes_on_beyond_what_was_seen),
		cmocka_unit_test(blocks_that_wait_for_memory_take_as_long_as_one),
		cmocka_unit_test(bytes_and_flops_have_a_ceiling_each),
		cmocka_unit_test(outliers_do_not_bend_the_law),
		cmocka_unit_test(what_is_known_of_a_launch_keeps_shapes_apart),
		cmocka_unit_test(what_no_kernel_is_shorter_than_is_not_scaled),
		cmocka_unit_test(a_power_law_is_found),
		cmocka_unit_test(the_bound_is_that_of_the_SM_with_most_blocks),
		cmocka_unit_test(siblings_tell_of_a_kernel_that_did_not_run),
		cmocka_unit_test(a_busy_sibling_leaves_room_for_the_others),
		cmocka_unit_test(a_shape_that_history_forgets_again_and_again_stays_sensible),
		cmocka_unit_test(a_product_of_two_arguments_is_found_among_eight),
		cmocka_unit_test(t90_holds_nine_times_of_ten_in_every_tier),
		cmocka_unit_test(t90_holds_for_short_launches_and_for_long_ones),
		cmocka_unit_test(t90_holds_while_everything_becomes_less_sure),
		cmocka_unit_test(what_slows_everything_is_not_learned_as_the_kernels),
		cmocka_unit_test(a_clock_that_slows_some_is_learnt_by_those),
		cmocka_unit_test(neighbours_do_not_spoil_the_history),
		cmocka_unit_test(nonsense_is_neither_learned_nor_predicted),
		cmocka_unit_test(work_that_makes_no_sense_is_not_believed),
		cmocka_unit_test(kept_tables_go_on_where_they_were),
		cmocka_unit_test(tables_that_would_lead_out_of_bounds_are_refused),
		cmocka_unit_test(of_another_device_of_the_kind_times_are_first_guesses),
		cmocka_unit_test(several_devices_have_one_name_together),
		cmocka_unit_test(sizes_that_cannot_be_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
