/*
 * What the batcher (src/batch) costs and gains.
 *
 *	bench-batch            nanoseconds for a decision and an admission, with 8 models of 4
 *classes and 1000 requests queued in each bench-batch rates      requests a second at 99 % and 99.9
 *% answered in time, by policy: the median of five seeds, simulated (src/batch/batch_simulate.h)
 *	bench-batch overload   what is answered, late and shed beyond the rate of 99 %
 *
 * Each workload has three models. A batch of b requests takes alpha + beta b ms, give or take 3 %,
 * and one of 500 takes 2 ms longer; at most 32 run together.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/sort.h"
#include "batch/batch.h"
#include "batch/batch_simulate.h"

enum { MODELS = 3, ROWS = 32, SEEDS = 5 };

/* ---- what a decision costs ---- */

enum { MANY = 8, QUEUED = 1000, DECISIONS = 500, ROUNDS = 200 };

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return ORDER(x, y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, ascending);
	return v[n / 2];
}

static uint64_t seed;

/* Deadlines from .5 to 3 s away: nothing is late, and no two lie in order. */
static void fill_in(struct batch_item *item, uint64_t now)
{
	item->arrived_ns = now;
	item->deadline_ns = now + 500000000 + hash_mix(++seed) % 2500000000u;
	item->start_by_ns = BATCH_NEVER;
	item->rows = 1;
}

static void admit(struct batch_model *m, struct batch_item *item, uint64_t now)
{
	uint64_t retry;
	fill_in(item, now);
	if (batch_admit(m, item, now, &retry) != BATCH_ADMITTED)
		abort();
}

static void measure(enum batch_policy policy)
{
	struct batcher *b = batcher_new(policy);
	struct batch_model *m[MANY];
	struct batch_item *items = calloc(MANY * BATCH_CLASSES * QUEUED, sizeof *items);
	struct batch_run *run = calloc(1, sizeof *run);
	double *decision = calloc(DECISIONS, sizeof *decision), timer = now_ns();
	double least[2] = { 1e30, 1e30 }, requests = 0;
	uint64_t now = 1000000;
	if (!items || !run || !decision)
		abort();
	for (int i = 0; i < 1000; i++)
		now_ns();
	timer = (now_ns() - timer) / 1000;
	for (uint32_t i = 0; i < MANY; i++) {
		m[i] = batch_model_add(b, &(struct batch_model_config){ .max_rows = ROWS,
						  .max_queue = 2 * BATCH_CLASSES * QUEUED });
		for (uint32_t rows = 1; rows <= ROWS; rows *= 2)
			for (int k = 0; k < 3; k++)
				batch_learn(m[i], rows, 10000 + 1000 * (uint64_t)rows);
	}
	for (uint32_t i = 0; i < MANY * BATCH_CLASSES * QUEUED; i++) {
		items[i].class = i / MANY % BATCH_CLASSES;
		admit(m[i % MANY], &items[i], now);
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		double admissions = 0;
		uint64_t n = 0;
		for (uint32_t i = 0; i < DECISIONS; i++) {
			const double start = now_ns();
			batch_next(b, now, now, run);
			decision[i] = now_ns() - start - timer;
			now += 10000 + 1000 * (uint64_t)run->rows;
			struct batch_model *ran = run->model;
			batch_done(b, run, now);
			const double before = now_ns();
			for (uint32_t k = 0; k < run->n; k++)
				admit(ran, run->item[k], now);
			admissions += now_ns() - before - timer;
			n += run->n;
		}
		least[0] = fmin(least[0], median(decision, DECISIONS));
		least[1] = fmin(least[1], admissions / (double)n);
		requests += (double)n;
	}
	printf("%-6s a decision: %4.0f ns (%.1f requests); an admission: %3.0f ns\n",
		batch_policy_name(policy), least[0], requests / (ROUNDS * DECISIONS), least[1]);
	batcher_free(b);
	free(items);
	free(run);
	free(decision);
}

/* ---- what it gains ---- */

struct workload {
	const char *name;
	struct {
		double alpha_ms, beta_ms, deadline_ms, share;
	} model[MODELS];
};

static const struct workload workloads[] = {
	{ "A", { { 1.0, .15, 25, .35 }, { 2.5, .55, 60, .15 }, { .4, .06, 10, .5 } } },
	{ "B", { { 3.0, .5, 120, .15 }, { .3, .02, 10, .6 }, { 1.5, .3, 40, .25 } } },
};

struct setting {
	enum batch_policy policy;
	double delay_ms;
	uint32_t max_rows;
	bool timeout; /* requests that wait until their deadline are dropped */
};

/* The sum over the models is the last. */
static void play(const struct workload *w, const struct setting *s, double rate, double seconds,
	uint64_t with_seed, struct simulated *ret)
{
	double typical[MODELS][ROWS + 1];
	struct simulated_model models[MODELS];
	for (int i = 0; i < MODELS; i++) {
		for (int rows = 1; rows <= ROWS; rows++)
			typical[i][rows] =
				(w->model[i].alpha_ms + w->model[i].beta_ms * rows) * 1e6;
		models[i] = (struct simulated_model){
			.config = { .max_rows = s->max_rows,
				.max_queue = 100000,
				.max_delay_ns = (uint64_t)(s->delay_ms * 1e6) },
			.deadline_ns = (uint64_t)(w->model[i].deadline_ms * 1e6),
			.timeout_ns = s->timeout ? (uint64_t)(w->model[i].deadline_ms * 1e6)
						 : BATCH_NEVER,
			.rate = rate * w->model[i].share,
			.typical_ns = typical[i],
			.deviation = .03,
		};
	}
	simulate(&(struct simulation){ .policy = s->policy,
			 .models = models,
			 .model_count = MODELS,
			 .seconds = seconds,
			 .seed = with_seed,
			 .hiccup_share = .002,
			 .hiccup_ns = 2000000 },
		ret);
}

static double goodput(const struct workload *w, const struct setting *s, double rate,
	double seconds, uint64_t with)
{
	struct simulated ret[MODELS + 1];
	play(w, s, rate, seconds, with, ret);
	const double share = simulated_goodput(&ret[MODELS]);
	simulated_fini(ret, MODELS);
	return share;
}

/* The highest rate at which so large a share is answered in time: median of the seeds. */
static double find_rate(const struct workload *w, const struct setting *s, double share)
{
	double found[SEEDS];
	for (int i = 0; i < SEEDS; i++) {
		double low = 200, high = 6000;
		while (high - low > 10) {
			const double middle = (low + high) / 2;
			if (goodput(w, s, middle, 20, (uint64_t)i + 1) >= share)
				low = middle;
			else
				high = middle;
		}
		found[i] = low;
	}
	return median(found, SEEDS);
}

static void find_best(const struct workload *w, const struct setting *s, double best[2])
{
	static const double shares[2] = { .99, .999 };
	double rate[2];
	for (int i = 0; i < 2; i++) {
		rate[i] = find_rate(w, s, shares[i]);
		best[i] = fmax(best[i], rate[i]);
	}
	printf("%s  %-5s  %3.1f ms  %2u rows%-10s %6.0f /s  %6.0f /s\n", w->name,
		batch_policy_name(s->policy), s->delay_ms, s->max_rows,
		s->timeout ? ", timeout" : "", rate[0], rate[1]);
	fflush(stdout);
}

static void rates(const struct workload *w)
{
	static const double delays[] = { 0, .5, 1, 2, 4 };
	double fixed[2] = { 0 }, slack[2] = { 0 }, edf[2] = { 0 };
	for (uint32_t rows = 8; rows <= ROWS; rows *= 2)
		for (size_t i = 0; i < sizeof delays / sizeof *delays; i++)
			for (int timeout = 0; timeout < (rows == ROWS ? 2 : 1); timeout++)
				find_best(w,
					&(struct setting){ BATCH_DELAY, delays[i], rows, timeout },
					fixed);
	find_best(w, &(struct setting){ BATCH_EDF, 0, ROWS, false }, edf);
	find_best(w, &(struct setting){ BATCH_SLACK, 0, ROWS, false }, slack);
	printf("%s  slack against the best delay: %+.0f %% at 99 %%, %+.0f %% at 99.9 %%\n",
		w->name, 100 * (slack[0] / fixed[0] - 1), 100 * (slack[1] / fixed[1] - 1));
}

static void overload(const struct workload *w)
{
	const struct setting s = { BATCH_SLACK, 0, ROWS, false };
	const double full = find_rate(w, &s, .99);
	for (int pct = 100; pct <= 300; pct += 50) {
		struct simulated ret[MODELS + 1];
		play(w, &s, full * pct / 100, 20, 1, ret);
		const struct simulated *all = &ret[MODELS];
		const double admitted = (double)(all->arrived - all->refused - all->full);
		printf("%s  %3d %% of %.0f /s: %6.0f /s in time; of those admitted %.3f %% late, %.2f %% shed\n",
			w->name, pct, full, (double)all->met / 20,
			100 * (double)all->late / admitted, 100 * (double)all->shed / admitted);
		simulated_fini(ret, MODELS);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "cost";
	if (!strcmp(what, "cost"))
		for (int p = 0; p < BATCH_POLICIES; p++)
			measure((enum batch_policy)p);
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
		if (!strcmp(what, "rates"))
			rates(&workloads[i]);
		else if (!strcmp(what, "overload"))
			overload(&workloads[i]);
	return 0;
}
