/*
 * The cost of one prediction, in nanoseconds, on this machine:
 *
 *	bench-predict
 *
 * hot: calls back to back, each about another of 256 launches; the median of 401 batches.  cold:
 * before each call so many bytes are written over that the caches hold little else, as a program
 * does between its launches, and the launch is put together anew; the median of 801 calls, less
 * what reading the clock takes.  The kernels are those of tests/unit/zoo.c, and the model is
 *trained on them first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cpu.h"
#include "predict/model.h"
#include "predict/predictor.h"
#include "train/train.h"
#include "zoo.h"

#define ROWS       256
#define HOT_CALLS  1024
#define HOT_TURNS  401
#define COLD_TURNS 801
#define LEARNT     6000

struct bench {
	struct zoo zoo;
	struct predict p, model_only;
	struct predict_sample rows[ROWS];  /* seen before */
	struct predict_launch fresh[ROWS]; /* the same in shapes not seen */
	float features[ROWS][FEATURES];
	struct predict_model model;
	struct predict_kernel strangers[ROWS];
	struct predict_launch unseen[ROWS]; /* of kernels not seen */
	struct predict_sample *learnt;
};

static struct bench b;
static volatile float sink;
static char *trash;
static double ns_per_tick, clock_ticks;

typedef void call_fn(unsigned i);

static void ask_launch(const struct predict *p, const struct predict_launch *l)
{
	struct predict_answer a;
	predict_ask(p, l, &a);
	sink = a.t50_ns + a.t90_ns + a.waves;
}

static void ask_history(unsigned i)
{
	ask_launch(&b.p, &b.rows[i % ROWS].launch);
}

static void ask_shape(unsigned i)
{
	ask_launch(&b.p, &b.fresh[i % ROWS]);
}

static void ask_unseen(unsigned i)
{
	ask_launch(&b.model_only, &b.unseen[i % ROWS]);
}

static void ask_siblings(unsigned i)
{
	ask_launch(&b.p, &b.unseen[i % ROWS]);
}

static void ask_fit(unsigned i)
{
	struct predict_question q = { .launch = &b.rows[i % ROWS].launch, .device = &b.zoo.device };
	question_shape(&q);
	sink = q.waves;
}

static void ask_forest(unsigned i)
{
	sink = forest_ask(b.model.forest, b.features[i % ROWS]);
}

static int by_size(const void *a, const void *c)
{
	const double x = *(const double *)a, y = *(const double *)c;
	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof v[0], by_size);
	return v[n / 2];
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void calibrate(void)
{
	static double v[COLD_TURNS];
	const uint64_t start = now_ns(), ticks = cpu_ticks();
	while (now_ns() - start < 50000000)
		;
	ns_per_tick = (double)(now_ns() - start) / (double)(cpu_ticks() - ticks);
	for (int i = 0; i < COLD_TURNS; i++) {
		const uint64_t before = cpu_ticks_behind();
		v[i] = (double)(cpu_ticks_behind() - before);
	}
	clock_ticks = median(v, COLD_TURNS);
}

static double hot(call_fn *call)
{
	static double v[HOT_TURNS];
	for (int turn = 0; turn < HOT_TURNS; turn++) {
		const uint64_t start = cpu_ticks();
		for (unsigned i = 0; i < HOT_CALLS; i++)
			call(i * 61);
		v[turn] = (double)(cpu_ticks() - start) * ns_per_tick / HOT_CALLS;
	}
	return median(v, HOT_TURNS);
}

static void touch(unsigned i)
{
	const struct predict_launch *launches[] = { &b.rows[i % ROWS].launch, &b.fresh[i % ROWS],
		&b.unseen[i % ROWS] };
	for (size_t k = 0; k < sizeof launches / sizeof launches[0]; k++)
		sink = (float)(predict_key(launches[k]) & 1);
	for (int k = 0; k < FEATURES; k++)
		sink = b.features[i % ROWS][k];
}

static double cold(call_fn *call, size_t bytes)
{
	static double v[COLD_TURNS];
	for (unsigned turn = 0; turn < COLD_TURNS; turn++) {
		for (size_t i = 0; i < bytes; i += 64)
			trash[i]++;
		/* the launch itself is what the caller has just put together */
		touch(turn * 61);
		const uint64_t start = cpu_ticks_behind();
		call(turn * 61);
		v[turn] = ((double)(cpu_ticks_behind() - start) - clock_ticks) * ns_per_tick;
	}
	return median(v, COLD_TURNS);
}

static void print_row(const char *name, call_fn *call)
{
	printf("%-44s %8.0f %10.0f %10.0f\n", name, hot(call), cold(call, 3 << 20),
		cold(call, 16 << 20));
}

static bool train(struct predict_model *ret_m)
{
	const struct train_options o = { 0 };
	struct train_rows rows;
	struct model_file *f;
	struct error err;
	train_rows_of(&b.zoo.device, b.learnt, LEARNT, &rows);
	const int ret = train_fit(&b.zoo.device, &rows, NULL, &o, &f, &err);
	train_rows_fini(&rows);
	return !ret && !model_open(f, f->file_bytes, ret_m, &err);
}

static bool init(struct predict *p)
{
	const struct predict_sizes sizes = { .launches = 4096, .kernels = 256 };
	const size_t bytes = predict_bytes(&sizes);
	const size_t page = 2u << 20, room = (bytes + page - 1) & ~(page - 1);
	void *memory = aligned_alloc(page, room);
	if (memory)
		madvise(memory, room, MADV_HUGEPAGE); /* as the hook does */
	return memory && !predict_init(p, memory, bytes, &sizes, &b.zoo.device);
}

static void prepare(void)
{
	for (uint64_t i = 0; i < LEARNT; i++) {
		b.learnt[i] = zoo_next(&b.zoo, i << 20);
		predict_learn(&b.p, &b.learnt[i]);
	}
	for (unsigned i = 0; i < ROWS; i++) {
		/* the newest are surely still in the tables */
		b.rows[i] = b.learnt[LEARNT - 1 - i];
		predict_learn(&b.p, &b.rows[i]);
		b.rows[i].launch.key = 0;
		b.fresh[i] = b.rows[i].launch;
		b.fresh[i].grid[0] += 1 + i;
		b.strangers[i] = *b.rows[i].launch.kernel;
		b.strangers[i].id ^= 0x5555;
		b.unseen[i] = b.rows[i].launch;
		b.unseen[i].kernel = &b.strangers[i];
		struct predict_question q = { .launch = &b.rows[i].launch,
			.device = &b.zoo.device };
		question_shape(&q);
		feature_fill(&q, 0, b.features[i]);
	}
}

int main(void)
{
	zoo_init(&b.zoo, 3, 0.01);
	trash = calloc(16, 1 << 20);
	b.learnt = calloc(LEARNT, sizeof *b.learnt);
	if (!trash || !b.learnt || !init(&b.p) || !init(&b.model_only))
		return 3;
	prepare();
	calibrate();
	printf("%-44s %8s %10s %10s\n", "ns a call, medians", "hot", "cold 3 MB", "cold 16 MB");
	print_row("launch seen before: the whole chain", ask_history);
	print_row("kernel seen in other shapes: the whole chain", ask_shape);
	print_row("kernel not seen, siblings: the whole chain", ask_siblings);
	print_row("occupancy, waves and bound alone", ask_fit);
	if (!train(&b.model))
		return 3;
	print_row("forest of 32 trees of depth 6 alone", ask_forest);
	predict_swap(&b.model_only, &b.model);
	print_row("kernel not seen, forest: the whole chain", ask_unseen);
	return 0;
}
