/*
 * Training: rows from CSV, forests from rows, files from forests, and what is refused.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/crc.h"
#include "predict/model.h"
#include "predict/predictor.h"
#include "train/dataset.h"
#include "train/train.h"
#include "zoo.h"

static struct zoo zoo;

static struct fit_row *random_rows(size_t n)
{
	struct fit_row *rows = calloc(n, sizeof *rows);
	zoo_init(&zoo, 11, 0);
	for (size_t i = 0; i < n; i++) {
		for (int k = 0; k < FEATURES; k++)
			rows[i].x[k] = (float)(10 * zoo_uniform(&zoo));
		rows[i].weight = 1;
		rows[i].y = sinf(rows[i].x[0]) + 0.3f * rows[i].x[1] * (rows[i].x[2] > 5) +
			    0.1f * (float)zoo_normal(&zoo);
	}
	return rows;
}

/* Node by node, by the definition. */
static float walk_plainly(const struct forest *f, const float *x)
{
	float sum = f->bias;
	for (uint32_t t = 0; t < f->trees; t++) {
		const size_t first = (size_t)t << f->depth;
		uint32_t at = 1;
		while (at < 1u << f->depth) {
			const struct forest_node *n = &f->nodes[first + at];
			at = x[n->feature] < n->threshold ? 2 * at : 2 * at + 1;
		}
		sum += forest_leaves(f)[first + at - (1u << f->depth)];
	}
	return sum;
}

static struct forest *random_forest(uint32_t trees, uint32_t depth)
{
	struct forest *f = calloc(1, forest_bytes(trees, depth));
	f->trees = trees;
	f->depth = depth;
	f->bias = 0.5f;
	float *leaves = (float *)forest_leaves(f);
	for (size_t i = 0; i < (size_t)trees << depth; i++) {
		f->nodes[i].feature = (uint32_t)(zoo_uniform(&zoo) * FEATURES);
		f->nodes[i].threshold = (float)(10 * zoo_uniform(&zoo));
		leaves[i] = (float)zoo_normal(&zoo);
	}
	return f;
}

static void the_forest_answers_as_its_trees_do_one_by_one(void **state)
{
	struct fit_row *rows = random_rows(200);
	for (uint32_t depth = 1; depth <= FOREST_MOST_DEPTH; depth++)
		for (uint32_t trees = 8; trees <= 40; trees += 8) {
			struct forest *f = random_forest(trees, depth);
			assert_null(forest_check(f, forest_bytes(trees, depth), FEATURES));
			for (int i = 0; i < 200; i++)
				assert_true(fabsf(forest_ask(f, rows[i].x) -
						    walk_plainly(f, rows[i].x)) < 1e-4f);
			free(f);
		}
	free(rows);
}

static void a_forest_that_cannot_be_walked_is_refused(void **state)
{
	zoo_init(&zoo, 1, 0);
	struct forest *f = random_forest(8, 4);
	const size_t bytes = forest_bytes(8, 4);
	assert_int_equal(forest_bytes(7, 4), 0);
	assert_int_equal(forest_bytes(8, 9), 0);
	assert_int_equal(forest_bytes(1u << 30, 4), 0);
	assert_non_null(forest_check(f, bytes - 1, FEATURES));
	assert_non_null(forest_check(f, 3, FEATURES));
	f->nodes[17].feature = FEATURES;
	assert_non_null(forest_check(f, bytes, FEATURES));
	f->nodes[17].feature = 0;
	f->nodes[18].threshold = NAN;
	assert_non_null(forest_check(f, bytes, FEATURES));
	f->nodes[18].threshold = 0;
	assert_null(forest_check(f, bytes, FEATURES));
	((float *)forest_leaves(f))[3] = INFINITY;
	assert_non_null(forest_check(f, bytes, FEATURES));
	free(f);
}

/* The best first split of one feature, by trying each. */
static float best_threshold(const struct fit_row *rows, size_t n, int f, double *ret_worth)
{
	float threshold = 0;
	*ret_worth = 0;
	for (size_t at = 0; at < n; at++) {
		double sum[2] = { 0 }, weight[2] = { 0 }, mean = 0, all = 0;
		for (size_t i = 0; i < n; i++) {
			mean += (double)(rows[i].weight * rows[i].y);
			all += (double)rows[i].weight;
		}
		for (size_t i = 0; i < n; i++) {
			const bool right = rows[i].x[f] >= rows[at].x[f];
			sum[right] += (double)rows[i].weight * ((double)rows[i].y - mean / all);
			weight[right] += (double)rows[i].weight;
		}
		const double worth =
			sum[0] * sum[0] / (weight[0] + 1) + sum[1] * sum[1] / (weight[1] + 1);
		if (weight[0] >= 2 && weight[1] >= 2 && worth > *ret_worth) {
			*ret_worth = worth;
			threshold = rows[at].x[f];
		}
	}
	return threshold;
}

static void a_tree_begins_with_the_best_split_of_all(void **state)
{
	const size_t n = 200; /* fewer than there are bins, so each value is a threshold */
	struct fit_row *rows = random_rows(n);
	double best = 0;
	float threshold = 0;
	int feature = -1;
	for (size_t i = 0; i < n; i++)
		rows[i].weight = 0.5f + (float)zoo_uniform(&zoo);
	for (int f = 0; f < FEATURES; f++) {
		double worth;
		const float at = best_threshold(rows, n, f, &worth);
		if (worth > best) {
			best = worth;
			threshold = at;
			feature = f;
		}
	}
	struct forest *f = fit_forest(rows, n, NULL);
	assert_int_equal(f->nodes[1].feature, feature);
	assert_true(f->nodes[1].threshold == threshold);
	free(f);
	free(rows);
}

static void the_forest_learns_what_rows_have_in_common(void **state)
{
	const size_t n = 4000; /* the second half is not shown */
	struct fit_row *rows = random_rows(n);
	struct forest *f = fit_forest(rows, n / 2, NULL), *same = fit_forest(rows, n / 2, NULL);
	double off = 0, plain = 0;
	assert_null(forest_check(f, forest_bytes(f->trees, f->depth), FEATURES));
	assert_memory_equal(f, same, forest_bytes(f->trees, f->depth));
	for (size_t i = n / 2; i < n; i++) {
		off += fabs((double)(forest_ask(f, rows[i].x) - rows[i].y));
		plain += fabs((double)(f->bias - rows[i].y));
	}
	assert_true(off < 0.2 * plain);
	free(f);
	free(same);
	free(rows);
}

static void one_row_and_rows_alike_make_a_forest_that_says_their_mean(void **state)
{
	struct fit_row rows[8] = { 0 };
	for (size_t n = 1; n <= 8; n++) {
		rows[n - 1].y = (float)n;
		rows[n - 1].weight = 1;
		struct forest *f = fit_forest(rows, n, NULL);
		assert_true(fabsf(forest_ask(f, rows[0].x) - ((float)n + 1) / 2) < 1e-4f);
		free(f);
	}
}

static const char table[] =
	"kernel,grid_x,block_x,args0,args1,regs,ns,order,app,cc,sms,device,bytes\n"
	"\"void k<1, \"\"2\"\">(int)\",10,128,7,,32,1500.5,2,a,9.0,132,NVIDIA H200,1e6\r\n"
	"\n"
	"gemm_a,10,256,0x10,5,,2500,1,b,9.0,132,NVIDIA H200,\n"
	"gemm_a,10,256,16,5,40,,3,b,9.0,132,NVIDIA H200,\n";

static void a_table_becomes_launches(void **state)
{
	struct dataset d = { 0 };
	struct error err;
	assert_int_equal(dataset_csv(&d, table, sizeof table - 1, "t.csv", &err), 0);
	assert_int_equal(d.samples.n, 2);
	assert_int_equal(d.without_time, 1);
	assert_int_equal(d.cc, 90);
	assert_int_equal(d.sms, 132);
	assert_string_equal(d.device, "NVIDIA H200");
	assert_string_equal(d.names.v[0], "void k<1, \"2\">(int)");
	assert_int_equal(d.kernels.n, 3);
	const struct predict_sample *second = &d.samples.v[0], *first = &d.samples.v[1];
	assert_int_equal(first->launch.args, 2);
	assert_int_equal(first->launch.arg[0], 16);
	assert_false(first->launch.kernel->has_regs);
	assert_int_equal(first->launch.kernel->family, FAMILY_GEMM);
	assert_false(first->launch.has_bytes);
	assert_true(second->measured_ns == 1500.5);
	assert_true(second->launch.has_bytes && second->launch.bytes == 1e6);
	assert_int_equal(second->launch.grid[1], 1);
	assert_int_equal(second->app, 0);
	assert_int_equal(first->app, 1);
	assert_true(first->order == 1 && second->order == 2);
	dataset_fini(&d);
}

/* A row without a family has that of the kernel's name, whatever other rows say. */
static void each_row_has_its_own_family(void **state)
{
	static const char text[] = "kernel,family,grid_x,block_x,ns\n"
				   "gemm_a,sort,1,32,10\n"
				   "gemm_a,,1,32,10\n"
				   "gemm_a,reduce,1,32,10\n";
	static const enum predict_family families[] = { FAMILY_SORT, FAMILY_GEMM, FAMILY_REDUCE };
	struct dataset d = { 0 };
	struct error err;
	assert_int_equal(dataset_csv(&d, text, sizeof text - 1, "t.csv", &err), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(d.samples.v[i].launch.kernel->family, families[i]);
	dataset_fini(&d);
}

static void a_table_that_is_none_says_where(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "", "no line that names the columns" },
		{ "kernel,grid_x\n", "line 1: there is no column 'block_x'" },
		{ "kernel,grid_x,block_x,ns\nk,1,1,abc\n", "line 2: ns 'abc'" },
		{ "kernel,grid_x,block_x,ns\nk,1,1,-4\n", "line 2: ns '-4'" },
		{ "kernel,grid_x,block_x,ns\nk,1,1,nan\n", "line 2: ns 'nan'" },
		{ "kernel,grid_x,block_x,ns\n\nk,99999999999,1,4\n", "line 3: grid_x" },
		{ "kernel,grid_x,block_x,ns\n,1,1,4\n", "line 2: the kernel has no name" },
		{ "kernel,grid_x,block_x,ns\n\"k\"x,1,1,4\n", "closing quote" },
		{ "kernel,grid_x,block_x,ns,cc\nk,1,1,4,6.1\n", "compute capability '6.1'" },
		{ "kernel,grid_x,block_x,ns,cc\nk,1,1,4,9.0\nk,1,1,4,8.0\n", "another device" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct dataset d = { 0 };
		struct error err = { 0 };
		assert_int_equal(dataset_csv(&d, rows[i].text, strlen(rows[i].text), "t.csv", &err),
			-EINVAL);
		if (!strstr(err.text, rows[i].words))
			fail_msg("'%s' does not say '%s'", err.text, rows[i].words);
		dataset_fini(&d);
	}
}

static void work_of_zero_is_no_bound(void **state)
{
	static const char text[] =
		"kernel,grid_x,block_x,flops,bytes,ns\nk,1,1,0,0,5\nk,1,1,9,9,0\n";
	struct dataset d = { 0 };
	assert_int_equal(dataset_csv(&d, text, sizeof text - 1, "t.csv", NULL), 0);
	assert_int_equal(d.samples.n, 1);
	assert_int_equal(d.without_time, 1);
	assert_false(d.samples.v[0].launch.has_flops || d.samples.v[0].launch.has_bytes);
	dataset_fini(&d);
}

static struct predict_sample *stream(size_t n)
{
	struct predict_sample *v = calloc(n, sizeof *v);
	zoo_init(&zoo, 21, 0.01);
	for (size_t i = 0; i < n; i++)
		v[i] = zoo_next(&zoo, i << 20);
	return v;
}

static int train(struct predict_sample *v, size_t n, struct model_file **ret_file,
	struct train_report *report, struct error *err)
{
	const struct train_options o = { .device = "NVIDIA H200" };
	return train_model(&zoo.device, v, n, &o, ret_file, report, err);
}

static void trained_models_know_kernels_that_they_never_saw(void **state)
{
	const size_t n = ROUNDS(12000, 4000);
	struct predict_sample *v = stream(n);
	struct model_file *f = NULL;
	struct predict_model m;
	struct train_report report;
	struct error err = { 0 };
	assert_int_equal(train(v, n, &f, &report, &err), 0);
	const struct train_score *s = &report.alone.forest;
	print_message("  held out %.3f / %.3f, ratio %.3f / %.3f\n", (double)s->median,
		(double)s->p90, (double)report.alone.ratio.median, (double)report.alone.ratio.p90);
	assert_true(s->median < 0.2f && s->median < report.alone.ratio.median);
	if (model_open(f, f->file_bytes, &m, &err))
		fail_msg("%s", err.text);
	free(f);
	free(v);
}

static void too_few_launches_make_no_model(void **state)
{
	struct predict_sample *v = stream(30);
	struct model_file *f = NULL;
	struct train_report report;
	struct error err = { 0 };
	assert_int_equal(train(v, 30, &f, &report, &err), -ENODATA);
	assert_non_null(strstr(err.text, "are needed"));
	assert_int_equal(train(v, 0, &f, &report, &err), -ENODATA);
	free(v);
}

/* A model of launches that take `factor` times what they do. */
static struct model_file *some_model(double factor)
{
	struct predict_sample *v = stream(3000);
	struct model_file *f = NULL;
	struct train_rows rows;
	struct error err = { 0 };
	const struct train_options o = { .device = "NVIDIA H200" };
	for (int i = 0; i < 3000; i++)
		v[i].measured_ns *= factor;
	train_rows_of(&zoo.device, v, 3000, &rows);
	assert_int_equal(train_fit(&zoo.device, &rows, NULL, &o, &f, &err), 0);
	train_rows_fini(&rows);
	free(v);
	return f;
}

static void reseal(struct model_file *f)
{
	const size_t from = offsetof(struct model_file, check) + sizeof f->check;
	f->check = crc32c((const char *)f + from, f->file_bytes - from);
}

static void expect_refusal(const struct model_file *f, size_t bytes, const char *words)
{
	struct predict_model m;
	struct error err = { 0 };
	assert_int_equal(model_open(f, bytes, &m, &err), -EINVAL);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static void a_bad_model_is_refused_with_the_reason(void **state)
{
	struct model_file *f = some_model(1);
	struct model_file *bad = aligned_alloc(MODEL_ALIGN, f->file_bytes);
	const size_t n = f->file_bytes;
	struct predict_model m;
	struct error err = { 0 };
	if (model_open(f, n, &m, &err))
		fail_msg("%s", err.text);
#define BAD(change, words)                                                                         \
	do {                                                                                       \
		memcpy(bad, f, n);                                                                 \
		change;                                                                            \
		expect_refusal(bad, n, words);                                                     \
	} while (0)
	BAD(bad->magic[0] = 'X', "not a model");
	BAD(bad->version = 2, "version 2");
	BAD(bad->low[0] += 1, "damaged");
	BAD(bad->file_bytes++, "cut short");
	BAD((bad->schema ^= 1, reseal(bad)), "other features");
	BAD((bad->low[3] = NAN, reseal(bad)), "not finite");
	BAD((bad->high[3] = bad->low[3] - 1, reseal(bad)), "range is empty");
	BAD((bad->families[2][1].scale = -1, reseal(bad)), "not finite");
	BAD((bad->forest_offset = 8, reseal(bad)), "not inside");
	BAD((bad->forest_offset = UINT64_MAX - 63, reseal(bad)), "not inside");
	BAD((bad->forest_bytes = UINT64_MAX, reseal(bad)), "not inside");
	BAD((bad->forest_bytes = 0, reseal(bad)), "cut short");
	BAD((memset(bad->device, 'x', 64), reseal(bad)), "without end");
	expect_refusal(f, n - 1, "cut short");
	expect_refusal(f, 5, "not a model");
	/* a forest that answers the less the more blocks there are */
	memcpy(bad, f, n);
	struct forest *forest = (struct forest *)((char *)bad + bad->forest_offset);
	float *leaves = (float *)forest_leaves(forest);
	for (size_t i = 0; i < (size_t)forest->trees << forest->depth; i++) {
		forest->nodes[i] =
			(struct forest_node){ (float)(i >> forest->depth), FEATURE_bound };
		leaves[i] = i & 1 ? -3 : 0;
	}
	bad->answer_low = -1000;
	for (int i = 0; i < FEATURES; i++) {
		bad->low[i] = -1e6f;
		bad->high[i] = 1e6f;
	}
	reseal(bad);
	expect_refusal(bad, n, "implausible");
	free(bad);
	free(f);
}

static void a_new_model_replaces_the_old_only_if_it_is_no_worse(void **state)
{
	const struct predict_sizes sizes = { .launches = 1024, .kernels = 64 };
	const size_t bytes = predict_bytes(&sizes);
	void *memory = aligned_alloc(64, bytes);
	struct model_file *good = some_model(1), *other = some_model(1.01), *bad = some_model(3);
	struct predict_sample *recent = stream(2000);
	struct predict_model m[3];
	const struct predict_model *old = NULL;
	struct predict p;
	struct error err = { 0 };
	assert_int_equal(predict_init(&p, memory, bytes, &sizes, &zoo.device), 0);
	assert_int_equal(model_open(good, good->file_bytes, &m[0], &err), 0);
	assert_int_equal(model_open(other, other->file_bytes, &m[1], &err), 0);
	assert_int_equal(model_open(bad, bad->file_bytes, &m[2], &err), 0);
	assert_int_equal(predict_offer(&p, &m[0], recent, 2000, &old, &err), 0);
	assert_null(old);
	assert_int_equal(predict_offer(&p, &m[2], recent, 2000, &old, &err), -ERANGE);
	assert_non_null(strstr(err.text, "The old one stays"));
	assert_ptr_equal(atomic_load(&p.model), &m[0]);
	/* with nothing to compare on, the newer one is taken */
	assert_int_equal(predict_offer(&p, &m[1], recent, 0, &old, &err), 0);
	assert_ptr_equal(old, &m[0]);
	/* a kernel that never ran is the model's to tell */
	struct predict_answer a;
	predict_ask(&p, &recent[0].launch, &a);
	assert_int_equal(a.tier, PREDICT_COLD);
	assert_true(a.class_only); /* without siblings that ran */
	/* of a family that was not in training only the order of magnitude is predicted */
	struct predict_kernel stranger = *recent[0].launch.kernel;
	struct predict_launch l = recent[0].launch;
	stranger.id = stranger.group = 77;
	stranger.family = FAMILY_SORT;
	l.kernel = &stranger;
	l.key = 0;
	predict_ask(&p, &l, &a);
	assert_int_equal(a.tier, PREDICT_BOUND);
	assert_true(a.class_only);
	good->sms = 104;
	assert_int_equal(predict_offer(&p, &m[0], recent, 0, &old, &err), -ENODEV);
	assert_non_null(strstr(err.text, "104 SMs"));
	free(good);
	free(other);
	free(bad);
	free(recent);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_forest_answers_as_its_trees_do_one_by_one),
		cmocka_unit_test(a_forest_that_cannot_be_walked_is_refused),
		cmocka_unit_test(a_tree_begins_with_the_best_split_of_all),
		cmocka_unit_test(the_forest_learns_what_rows_have_in_common),
		cmocka_unit_test(one_row_and_rows_alike_make_a_forest_that_says_their_mean),
		cmocka_unit_test(a_table_becomes_launches),
		cmocka_unit_test(each_row_has_its_own_family),
		cmocka_unit_test(a_table_that_is_none_says_where),
		cmocka_unit_test(work_of_zero_is_no_bound),
		cmocka_unit_test(trained_models_know_kernels_that_they_never_saw),
		cmocka_unit_test(too_few_launches_make_no_model),
		cmocka_unit_test(a_bad_model_is_refused_with_the_reason),
		cmocka_unit_test(a_new_model_replaces_the_old_only_if_it_is_no_worse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
