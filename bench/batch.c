/*
 * The costs and gains of the batcher (src/batch).
 *
 *	bench-batch            nanoseconds for a decision and an admission, with 8 models of 4
 *	                       classes and 1000 requests queued in each
 *	bench-batch rates      requests a second at 99 % and 99.9 % answered in time, by policy:
 *	                       the median of five seeds, simulated (src/batch/batch_simulate.h)
 *	bench-batch overload   the shares answered, late and shed beyond the rate of 99 %
 *
 * The workloads are those of the unit tests (tests/unit/workload.h).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/sort.h"
#include "batch/batch.h"
#include "workload.h"

enum { MODELS = WORKLOAD_MODELS, ROWS = WORKLOAD_ROWS, SEEDS = 5, SECONDS = 20 };

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

struct queues {
	struct batcher *b;
	struct batch_model *m[MANY];
	struct batch_item *items;
	uint64_t now;
};

static struct queues full_queues(enum batch_policy policy)
{
	struct queues q = {
		.b = batcher_new(policy),
		.items = calloc(MANY * BATCH_CLASSES * QUEUED, sizeof *q.items),
		.now = 1000000,
	};
	if (!q.items)
		abort();
	for (uint32_t i = 0; i < MANY; i++) {
		q.m[i] = batch_model_add(q.b, &(struct batch_model_config){ .max_rows = ROWS,
						      .max_queue = 2 * BATCH_CLASSES * QUEUED });
		for (uint32_t rows = 1; rows <= ROWS; rows *= 2)
			for (int k = 0; k < 3; k++)
				batch_learn(q.m[i], rows, 10000 + 1000 * (uint64_t)rows);
	}
	for (uint32_t i = 0; i < MANY * BATCH_CLASSES * QUEUED; i++) {
		q.items[i].class = i / MANY % BATCH_CLASSES;
		admit(q.m[i % MANY], &q.items[i], q.now);
	}
	return q;
}

/* The time of a decision and of an admission of the requests that it took, which come back. */
static uint32_t decide(struct queues *q, double *ret_decision, double *ret_admissions)
{
	static struct batch_run run;
	const double start = now_ns();
	batch_next(q->b, q->now, q->now, &run);
	const double decided = now_ns();
	struct batch_model *m = run.model;
	q->now += 10000 + 1000 * (uint64_t)run.rows;
	batch_done(q->b, &run, q->now);
	const double before = now_ns();
	for (uint32_t k = 0; k < run.n; k++)
		admit(m, run.item[k], q->now);
	*ret_admissions = now_ns() - before;
	*ret_decision = decided - start;
	return run.n;
}

static void measure(enum batch_policy policy)
{
	static double decision[DECISIONS];
	struct queues q = full_queues(policy);
	double least[2] = { 1e30, 1e30 }, requests = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		double admissions = 0, one, n = 0;
		for (uint32_t i = 0; i < DECISIONS; i++) {
			n += decide(&q, &decision[i], &one);
			admissions += one;
		}
		least[0] = fmin(least[0], median(decision, DECISIONS));
		least[1] = fmin(least[1], admissions / n);
		requests += n;
	}
	printf("%-6s a decision: %4.0f ns (%.1f requests); an admission: %3.0f ns\n",
		batch_policy_name(policy), least[0], requests / (ROUNDS * DECISIONS), least[1]);
	batcher_free(q.b);
	free(q.items);
}

/* The highest rate at which so large a share is answered in time: median of the seeds. */
static double find_rate(const struct workload *w, const struct setting *s, double share)
{
	double found[SEEDS];
	for (uint64_t i = 0; i < SEEDS; i++)
		found[i] = workload_rate(w, s, share, SECONDS, i + 1);
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
		workload_play(w, &s, full * pct / 100,
			(struct simulation){ .seconds = SECONDS, .seed = 1 }, ret);
		const struct simulated *all = &ret[MODELS];
		const double admitted = (double)(all->arrived - all->refused - all->full);
		printf("%s  %3d %% of %.0f /s: %6.0f /s in time; of those admitted %.3f %% late, %.2f %% shed\n",
			w->name, pct, full, (double)all->met / SECONDS,
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
