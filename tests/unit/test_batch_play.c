/* The batcher at work, under a virtual clock: what holds whatever arrives, and how good it is. */
#include "unit.h"

#include <math.h>

#include "base/hash.h"
#include "batch/batch.h"
#include "workload.h"

#define MS UINT64_C(1000000)

static uint64_t some(uint64_t *random, uint64_t below)
{
	*random += 0x9e3779b97f4a7c15u;
	return hash_mix(*random) % below;
}

enum { MODELS = 4, ITEMS = 1500 };
enum fate { COMING, QUEUED, REFUSED, CANCELLED, SHED, RAN };

struct thing {
	struct batch_item item; /* first */
	uint32_t model;
	enum fate fate;
};

struct world {
	enum batch_policy policy;
	uint64_t random;
	struct batcher *b;
	struct batch_model *m[MODELS];
	struct batch_model_config config[MODELS];
	uint64_t alpha[MODELS], beta[MODELS];
	struct thing thing[ITEMS];
	uint32_t arrived, queued, late, late_by_surprise;
	struct batch_run run;
};

static bool is_predictive(const struct world *w)
{
	return w->policy == BATCH_SLACK || w->policy == BATCH_EDF;
}

static void make_models(struct world *w)
{
	for (uint32_t i = 0; i < MODELS; i++) {
		struct batch_model_config *c = &w->config[i];
		*c = (struct batch_model_config){
			.max_rows = 1 + (uint32_t)some(&w->random, 16),
			.max_queue = 5 + (uint32_t)some(&w->random, 100),
			.max_delay_ns = some(&w->random, 2) * some(&w->random, 3 * MS),
			.preserve_ordering = !some(&w->random, 4),
		};
		if (c->max_rows > 8 && some(&w->random, 2)) {
			c->preferred[c->preferreds++] = 4;
			c->preferred[c->preferreds++] = 8;
			c->buckets[c->nbuckets++] = 2;
			c->buckets[c->nbuckets++] = 8;
			c->buckets[c->nbuckets++] = c->max_rows;
		}
		w->alpha[i] = 10000 + some(&w->random, MS);
		w->beta[i] = 1000 + some(&w->random, MS / 4);
		w->m[i] = batch_model_add(w->b, c);
		for (uint32_t rows = 1; rows <= c->max_rows; rows++)
			for (int k = 0; k < 3; k++)
				batch_learn(w->m[i], rows, w->alpha[i] + w->beta[i] * rows);
	}
}

static void arrive(struct world *w, uint64_t now)
{
	struct thing *x = &w->thing[w->arrived++];
	uint64_t retry = 0;
	x->model = (uint32_t)some(&w->random, MODELS);
	const uint32_t most = w->config[x->model].max_rows;
	x->item = (struct batch_item){
		.arrived_ns = now,
		.deadline_ns = some(&w->random, 4) ? now + some(&w->random, 40 * MS) : BATCH_NEVER,
		.start_by_ns = some(&w->random, 8) ? BATCH_NEVER : now + some(&w->random, 20 * MS),
		.rows = 1 + (uint32_t)some(&w->random, most < 4 ? most : 4),
		.class = (uint32_t)some(&w->random, BATCH_CLASSES),
		.group = (uint32_t)some(&w->random, 3) * 64, /* one remainder: a hard case */
	};
	const uint32_t before = batch_queued(w->m[x->model]);
	const enum batch_refusal why = batch_admit(w->m[x->model], &x->item, now, &retry);
	x->fate = why == BATCH_ADMITTED ? QUEUED : REFUSED;
	w->queued += x->fate == QUEUED;
	assert_int_equal(why == BATCH_QUEUE_FULL, before == w->config[x->model].max_queue);
	assert_true(why != BATCH_TOO_LATE || is_predictive(w));
	assert_true((why == BATCH_ADMITTED) == !retry);
	if (why == BATCH_ADMITTED && is_predictive(w))
		assert_true(x->item.trial || x->item.predicted_end_ns <= x->item.deadline_ns);
	assert_int_equal(batch_queued(w->m[x->model]), before + (why == BATCH_ADMITTED ? 1 : 0));
}

static void cancel(struct world *w)
{
	struct thing *x = &w->thing[some(&w->random, w->arrived)];
	batch_cancel(w->m[x->model], &x->item); /* of what is in no queue: nothing */
	if (x->fate != QUEUED)
		return;
	x->fate = CANCELLED;
	w->queued--;
}

static void take(struct world *w, struct batch_item *item, enum fate fate)
{
	struct thing *x = (struct thing *)item;
	assert_int_equal(x->fate, QUEUED);
	x->fate = fate;
	w->queued--;
}

static void check_run(struct world *w)
{
	const struct batch_run *r = &w->run;
	const uint32_t i = ((struct thing *)r->item[0])->model;
	uint32_t rows = 0;
	assert_ptr_equal(r->model, w->m[i]);
	for (uint32_t k = 0; k < r->n; k++) {
		const struct batch_item *item = r->item[k];
		take(w, r->item[k], RAN);
		assert_int_equal(((struct thing *)item)->model, i);
		assert_int_equal(item->group, r->item[0]->group);
		assert_true(item->start_by_ns >= r->began_ns);
		if (is_predictive(w))
			assert_true(
				item->trial || item->deadline_ns >= r->began_ns + r->predicted_ns);
		rows += item->rows;
	}
	assert_int_equal(rows, r->rows);
	assert_true(rows <= w->config[i].max_rows);
	assert_true(r->bucket >= rows && r->bucket <= w->config[i].max_rows);
}

/* A run takes a little more or less than predicted, and rarely much more. */
static uint64_t run(struct world *w, uint64_t now)
{
	const uint32_t i = ((struct thing *)w->run.item[0])->model;
	const uint64_t typical = w->alpha[i] + w->beta[i] * w->run.bucket;
	const uint64_t end = now + typical * (95 + some(&w->random, 10)) / 100 +
			     (some(&w->random, 100) ? 0 : 2 * MS);
	for (uint32_t k = 0; k < w->run.n; k++) {
		const bool late = end > w->run.item[k]->deadline_ns && !w->run.item[k]->trial;
		w->late += late;
		w->late_by_surprise += late && end > w->run.began_ns + w->run.predicted_ns;
	}
	batch_done(w->b, &w->run, end);
	return end;
}

/* Returns when to look again. */
static uint64_t decide(struct world *w, uint64_t now)
{
	batch_next(w->b, now, now, &w->run);
	for (uint32_t k = 0; k < w->run.shed; k++)
		take(w, w->run.gone[k], SHED);
	if (w->run.n) {
		check_run(w);
		return run(w, now);
	}
	assert_true(
		w->policy == BATCH_DELAY || !w->queued); /* the device never idles beside work */
	assert_true(!w->queued || (w->run.wake_ns > now && w->run.wake_ns < now + 4 * MS));
	return w->run.wake_ns;
}

static void live(struct world *w)
{
	const uint64_t between = 20000 + some(&w->random, MS);
	uint64_t next = 1000 * MS, look = 0;
	while (w->arrived < ITEMS || w->queued) {
		const bool comes = w->arrived < ITEMS && next <= look;
		const uint64_t now = comes || look == BATCH_NEVER ? next : look;
		if (comes || look == BATCH_NEVER) {
			assert_true(w->arrived < ITEMS); /* or something is stuck */
			arrive(w, now);
			if (!some(&w->random, 10))
				cancel(w);
			if (!some(&w->random, 300))
				batcher_set_policy(w->b, w->policy);
			next = now +
			       (some(&w->random, 50) ? some(&w->random, 2 * between) : 30 * MS);
		}
		/* Busy until then: what came meanwhile waits. */
		if (!w->run.n || now >= look)
			look = decide(w, now);
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_true(w->thing[i].fate != COMING && w->thing[i].fate != QUEUED);
	for (uint32_t i = 0; i < MODELS; i++)
		assert_int_equal(batch_queued(w->m[i]), 0);
	if (is_predictive(w))
		assert_int_equal(w->late, w->late_by_surprise);
}

static void whatever_arrives_is_treated_by_the_rules(void **state)
{
	for (uint64_t seed = 1; seed <= ROUNDS(200, 20); seed++)
		for (int policy = 0; policy < BATCH_POLICIES; policy++) {
			struct world *w = calloc(1, sizeof *w);
			assert_non_null(w);
			w->policy = (enum batch_policy)policy;
			w->random = hash_mix(seed);
			w->b = batcher_new(w->policy);
			make_models(w);
			live(w);
			batcher_free(w->b);
			free(w);
		}
}

enum { PATIENT = 4, CROWD = 4096 };

/* PATIENT requests of each model without a deadline are always queued, beside others in time. */
struct crowd {
	uint64_t random, now, longest_ns, most_waited_ns;
	struct batcher *b;
	struct batch_model *m[MODELS];
	uint32_t models, next, class[MODELS];
	uint64_t alpha[MODELS], beta[MODELS];
	uint64_t each_ns; /* between requests with a deadline */
	struct batch_item item[CROWD], waiting[MODELS][PATIENT];
	uint64_t met, broken;
	struct batch_run run;
};

static void make_crowd(struct crowd *w, enum batch_policy policy, uint64_t seed)
{
	*w = (struct crowd){ .random = hash_mix(seed), .now = 1000 * MS };
	w->b = batcher_new(policy);
	w->models = 1 + (uint32_t)some(&w->random, MODELS);
	double each = 0;
	for (uint32_t i = 0; i < w->models; i++) {
		const uint32_t most = 1 + (uint32_t)some(&w->random, 16);
		w->alpha[i] = MS / 10 + some(&w->random, MS);
		w->beta[i] = MS / 10;
		w->class[i] = (uint32_t)some(&w->random, BATCH_CLASSES);
		w->m[i] = batch_model_add(w->b, &(struct batch_model_config){ .max_rows = most });
		for (uint32_t rows = 1; rows <= most; rows++)
			for (int k = 0; k < 3; k++)
				batch_learn(w->m[i], rows, w->alpha[i] + w->beta[i] * rows);
		each += (double)batch_typical(w->m[i], most) / most / w->models;
		if (batch_predict(w->m[i], most) > w->longest_ns)
			w->longest_ns = batch_predict(w->m[i], most);
	}
	w->each_ns = (uint64_t)(each * 100 / (double)(50 + some(&w->random, 150)));
}

static void come(struct crowd *w, uint64_t at)
{
	const uint32_t i = (uint32_t)some(&w->random, w->models);
	struct batch_item *item = &w->item[w->next++ % CROWD];
	uint64_t retry;
	*item = (struct batch_item){
		.arrived_ns = at,
		.deadline_ns = at + 5 * MS + some(&w->random, 100 * MS),
		.start_by_ns = BATCH_NEVER,
		.class = w->class[i],
	};
	batch_admit(w->m[i], item, at, &retry);
}

static void wait_again(struct crowd *w, struct batch_item *item)
{
	const uint32_t i = (uint32_t)(item - w->waiting[0]) / PATIENT;
	uint64_t retry;
	*item = (struct batch_item){
		.arrived_ns = w->now,
		.deadline_ns = BATCH_NEVER,
		.start_by_ns = BATCH_NEVER,
		.class = w->class[i],
	};
	assert_int_equal(batch_admit(w->m[i], item, w->now, &retry), BATCH_ADMITTED);
}

static void run_crowd(struct crowd *w)
{
	batch_next(w->b, w->now, w->now, &w->run);
	uint64_t end = w->now + w->each_ns;
	for (uint32_t i = 0; i < w->models; i++)
		if (w->run.n && w->run.model == w->m[i])
			end = w->now + w->alpha[i] + w->beta[i] * w->run.rows;
	for (uint64_t at = w->now + w->each_ns; at <= end; at += w->each_ns)
		come(w, at);
	w->now = end;
	if (!w->run.n)
		return;
	batch_done(w->b, &w->run, end);
	for (uint32_t k = 0; k < w->run.n; k++) {
		struct batch_item *item = w->run.item[k];
		const uint64_t took = end - item->arrived_ns;
		w->met += item->deadline_ns != BATCH_NEVER && end <= item->deadline_ns;
		w->broken += !item->trial && end > item->deadline_ns;
		if (item->deadline_ns == BATCH_NEVER) {
			if (took > w->most_waited_ns)
				w->most_waited_ns = took;
			wait_again(w, item);
		}
	}
}

/* The work before it in its lane, four batches and its own, at its share; and one that runs. */
static uint64_t longest_wait(const struct crowd *w)
{
	static const double weights[BATCH_CLASSES] = { 8, 4, 2, 1 };
	double all = 0, least = 8;
	for (uint32_t c = 0; c < BATCH_CLASSES; c++) {
		bool has = false;
		for (uint32_t i = 0; i < w->models; i++)
			has |= w->class[i] == c;
		all += has ? weights[c] * 17 / 16 : 0;
		least = has ? weights[c] / 16 : least;
	}
	const double before = (4 + w->models * PATIENT + 1) * (double)w->longest_ns;
	return (uint64_t)(before * all / least) + w->longest_ns;
}

/* The longest wait of one without a deadline, as a share of the bound. */
static double live_in_crowd(struct crowd *w, bool patient)
{
	const uint64_t bound = longest_wait(w), until = w->now + 2 * bound;
	for (uint32_t i = 0; patient && i < w->models * PATIENT; i++)
		wait_again(w, &w->waiting[i / PATIENT][i % PATIENT]);
	while (w->now < until)
		run_crowd(w);
	assert_int_equal(w->broken, 0);
	for (uint32_t i = 0; patient && i < w->models * PATIENT; i++) {
		const uint64_t waits = w->now - w->waiting[i / PATIENT][i % PATIENT].arrived_ns;
		if (waits > w->most_waited_ns)
			w->most_waited_ns = waits;
	}
	return (double)w->most_waited_ns / (double)bound;
}

static void who_has_no_deadline_waits_no_longer_than_its_share_allows(void **state)
{
	static const enum batch_policy policies[] = { BATCH_SLACK, BATCH_EDF };
	struct crowd *w = malloc(sizeof *w);
	uint64_t met[2] = { 0 };
	double longest = 0;
	assert_non_null(w);
	for (uint64_t seed = 1; seed <= ROUNDS(60, 6); seed++)
		for (size_t p = 0; p < COUNT_OF(policies); p++)
			for (int patient = 0; patient < 2; patient++) {
				make_crowd(w, policies[p], seed);
				const double share = live_in_crowd(w, patient);
				longest = fmax(longest, share);
				met[patient] += w->met;
				batcher_free(w->b);
			}
	print_message("waited at most %.2f of the bound; beside them %.3f are answered in time\n",
		longest, (double)met[1] / (double)met[0]);
	assert_true(longest <= 1);
	assert_true((double)met[1] >= .9 * (double)met[0]);
	free(w);
}

enum { FEW = 8 };

struct puzzle {
	uint32_t n, model[FEW];
	uint64_t deadline[FEW], alpha[2], beta[2];
};

/* The most that can be answered of those that are left, at time t: tries all batches. */
static uint32_t best_of(const struct puzzle *p, uint32_t left, uint64_t t)
{
	uint32_t best = 0;
	for (uint32_t m = 0; m < 2; m++) {
		uint32_t own = 0;
		for (uint32_t i = 0; i < p->n; i++)
			own |= left >> i & 1 && p->model[i] == m ? 1u << i : 0;
		for (uint32_t batch = own; batch; batch = (batch - 1) & own) {
			const uint32_t rows = (uint32_t)__builtin_popcount(batch);
			const uint64_t end = t + p->alpha[m] + p->beta[m] * rows;
			bool in_time = rows <= 4;
			for (uint32_t i = 0; i < p->n; i++)
				in_time &= !(batch >> i & 1) || p->deadline[i] >= end;
			if (!in_time)
				continue;
			const uint32_t all = rows + best_of(p, left & ~batch, end);
			best = all > best ? all : best;
		}
	}
	return best;
}

/* All are there at the beginning. */
static uint32_t answered(const struct puzzle *p, enum batch_policy policy)
{
	static struct batch_run run;
	struct batcher *b = batcher_new(policy);
	struct batch_item item[FEW];
	struct batch_model *m[2];
	uint64_t t = 1000 * MS, retry;
	uint32_t met = 0;
	for (uint32_t i = 0; i < 2; i++) {
		m[i] = batch_model_add(b, &(struct batch_model_config){ .max_rows = 4 });
		/* So often that the margin is gone. */
		for (int k = 0; k < 3; k++)
			for (uint32_t rows = 1; rows <= 4; rows++)
				batch_learn(
					m[i], rows, (p->alpha[i] + p->beta[i] * rows) * 10 / 11);
	}
	for (uint32_t i = 0; i < p->n; i++) {
		item[i] = (struct batch_item){
			.arrived_ns = t,
			.deadline_ns = t + p->deadline[i],
			.start_by_ns = BATCH_NEVER,
			.rows = 1,
		};
		batch_admit(m[p->model[i]], &item[i], t, &retry);
	}
	for (batch_next(b, t, t, &run); run.n; batch_next(b, t, t, &run)) {
		const uint32_t i = run.model == m[1];
		t += p->alpha[i] + p->beta[i] * run.rows;
		for (uint32_t k = 0; k < run.n; k++)
			met += run.item[k]->deadline_ns >= t;
		run.predicted_ns = 0; /* learns nothing */
		batch_done(b, &run, t);
	}
	batcher_free(b);
	return met;
}

static void few_requests_fare_almost_as_well_as_they_can(void **state)
{
	uint64_t random = 7;
	uint32_t possible = 0, got[BATCH_POLICIES] = { 0 };
	for (int round = 0; round < ROUNDS(300, 60); round++) {
		struct puzzle p = { .n = 2 + (uint32_t)some(&random, FEW - 1) };
		uint64_t all = 0;
		for (uint32_t m = 0; m < 2; m++) {
			p.alpha[m] = some(&random, 3 * MS);
			p.beta[m] = MS / 10 + some(&random, MS);
			all += p.alpha[m] + 4 * p.beta[m];
		}
		for (uint32_t i = 0; i < p.n; i++) {
			p.model[i] = (uint32_t)some(&random, 2);
			p.deadline[i] = MS + some(&random, all);
		}
		const uint32_t best = best_of(&p, (1u << p.n) - 1, 0);
		possible += best;
		for (int policy = 0; policy < BATCH_POLICIES; policy++) {
			const uint32_t met = answered(&p, (enum batch_policy)policy);
			assert_true(met <= best);
			got[policy] += met;
		}
	}
	print_message("of %u that can be answered: slack %u, edf %u, fifo %u\n", possible,
		got[BATCH_SLACK], got[BATCH_EDF], got[BATCH_FIFO]);
	assert_true(got[BATCH_SLACK] >= possible * 85 / 100);
	assert_true(got[BATCH_SLACK] > got[BATCH_FIFO]);
}

/* The share of requests in batches that took longer than predicted, in each phase. */
struct promises {
	uint64_t change_ns, back_ns;
	uint32_t batches;              /* in this phase */
	uint64_t requests[3], late[3]; /* before, slow, back: of the 20,000 that count */
	int phase;
};

static void watch_promises(void *arg, const struct batch_run *run, uint64_t end_ns)
{
	static const uint32_t left_out[3] = { 500, 50, 50 };
	struct promises *p = arg;
	const int phase = (run->began_ns >= p->change_ns) + (run->began_ns >= p->back_ns);
	p->batches = phase == p->phase ? p->batches + 1 : 1;
	p->phase = phase;
	if (p->batches <= left_out[phase] || p->requests[phase] >= 20000)
		return;
	p->requests[phase] += run->n;
	p->late[phase] += end_ns > run->began_ns + run->predicted_ns ? run->n : 0;
}

static void one_promise_in_a_hundred_is_broken(void **state)
{
	int wrong = 0;
	for (int w = 0; w < 2; w++)
		for (uint64_t seed = 1; seed <= ROUNDS(5, 1); seed++) {
			struct promises p = { .change_ns = 12000 * MS, .back_ns = 24000 * MS };
			struct simulated ret[WORKLOAD_MODELS + 1];
			workload_play(&workloads[w],
				&(struct setting){ BATCH_SLACK, 0, WORKLOAD_ROWS, false }, 2400,
				(struct simulation){ .seconds = 36,
					.seed = seed,
					.change = 1.3,
					.change_ns = p.change_ns,
					.back_ns = p.back_ns,
					.watch = watch_promises,
					.arg = &p },
				ret);
			for (int k = 0; k < 3; k++) {
				const double share = (double)p.late[k] / (double)p.requests[k];
				assert_true(p.requests[k] >= 20000);
				print_message("%s%.2f %%", k ? ", " : "", 100 * share);
				wrong += !(share >= .005 && share <= .015);
			}
			print_message("  workload %s, seed %d\n", workloads[w].name, (int)seed);
			simulated_fini(ret, WORKLOAD_MODELS);
		}
	assert_int_equal(wrong, 0);
}

static const struct setting slack = { BATCH_SLACK, 0, WORKLOAD_ROWS, false };

static double goodput(const struct workload *w, double rate)
{
	struct simulated ret[WORKLOAD_MODELS + 1];
	workload_play(w, &slack, rate, (struct simulation){ .seconds = 20, .seed = 1 }, ret);
	const double share = simulated_goodput(&ret[WORKLOAD_MODELS]);
	simulated_fini(ret, WORKLOAD_MODELS);
	return share;
}

static void slack_carries_more_than_any_fixed_delay(void **state)
{
	static const double delays[] = { 0, .5, 1, 2, 4 };
	for (int w = 0; w < 2; w++) {
		double best[2] = { 0 };
		for (size_t i = 0; i < ROUNDS(COUNT_OF(delays), 1); i++)
			for (uint32_t rows = 16; rows <= WORKLOAD_ROWS; rows *= 2)
				for (int k = 0; k < 2; k++) {
					const double rate = workload_rate(&workloads[w],
						&(struct setting){
							BATCH_DELAY, delays[i], rows, false },
						k ? .999 : .99, 20, 1);
					best[k] = rate > best[k] ? rate : best[k];
				}
		print_message("workload %s: the best delay answers 99 %% of %.0f a second in time, "
			      "99.9 %% of %.0f\n",
			workloads[w].name, best[0], best[1]);
		assert_true(goodput(&workloads[w], 1.2 * best[0]) >= .99);
		assert_true(goodput(&workloads[w], 1.4 * best[1]) >= .999);
	}
}

static void overload_is_refused_and_costs_nothing(void **state)
{
	for (int w = 0; w < 2; w++) {
		const double full = workload_rate(&workloads[w], &slack, .99, 20, 1);
		double in_time = 0;
		for (int pct = 100; pct <= 300; pct += 50) {
			struct simulated ret[WORKLOAD_MODELS + 1];
			workload_play(&workloads[w], &slack, full * pct / 100,
				(struct simulation){ .seconds = 20, .seed = 1 }, ret);
			const struct simulated *all = &ret[WORKLOAD_MODELS];
			in_time = pct == 100 ? (double)all->met : in_time;
			assert_true((double)all->late <=
				    .005 * (double)(all->arrived - all->refused - all->full));
			assert_true((double)all->met >= .97 * in_time);
			for (int i = 0; i < WORKLOAD_MODELS; i++) /* none is given up */
				assert_true(simulated_goodput(&ret[i]) > .01);
			simulated_fini(ret, WORKLOAD_MODELS);
		}
	}
}

enum { NOISY_ITEMS = 30000 };

/* One device for ten seconds as it should be, for ten with long breaks, and then again as before.
 */
struct noisy {
	const struct workload *workload;
	uint64_t random, now, next, ends;
	struct batcher *b;
	struct batch_model *m[WORKLOAD_MODELS];
	struct batch_item item[NOISY_ITEMS];
	uint32_t arrived, counted, met;
	struct batch_run run;
};

#define NOISE_FROM (11000 * MS)
#define NOISE_END  (21000 * MS)
#define COUNTED    (36000 * MS)
#define NOISY_END  (46000 * MS)
#define NOISY_EACH (MS * 7 / 4)

static void begin_run(struct noisy *n)
{
	batch_next(n->b, n->now, n->now, &n->run);
	for (uint32_t i = 0; n->run.n && i < WORKLOAD_MODELS; i++) {
		if (n->run.model != n->m[i])
			continue;
		const double ms = n->workload->model[i].alpha_ms +
				  n->workload->model[i].beta_ms * n->run.rows;
		n->ends = n->now + (uint64_t)(ms * 1e6) + some(&n->random, MS / 50);
		if (n->now > NOISE_FROM && n->now < NOISE_END && !some(&n->random, 3))
			n->ends += some(&n->random, 40 * MS);
	}
}

static void end_run(struct noisy *n)
{
	n->now = n->ends;
	batch_done(n->b, &n->run, n->now);
	for (uint32_t i = 0; i < n->run.n; i++)
		n->met += n->run.item[i]->arrived_ns >= COUNTED &&
			  n->now <= n->run.item[i]->deadline_ns;
	n->run.n = 0;
}

static void arrive_noisy(struct noisy *n)
{
	struct batch_item *x = &n->item[n->arrived++];
	const double at = (double)some(&n->random, 1000) / 1000;
	uint64_t retry;
	uint32_t i = 0;
	for (double sum = n->workload->model[0].share; i < WORKLOAD_MODELS - 1 && at >= sum;)
		sum += n->workload->model[++i].share;
	n->now = n->next;
	n->next += some(&n->random, 2 * NOISY_EACH);
	*x = (struct batch_item){ .arrived_ns = n->now,
		.deadline_ns = n->now + (uint64_t)(n->workload->model[i].deadline_ms * 1e6),
		.start_by_ns = BATCH_NEVER,
		.class = 1 };
	n->counted += n->now >= COUNTED;
	batch_admit(n->m[i], x, n->now, &retry);
}

static void learn_workload(struct noisy *n)
{
	for (uint32_t i = 0; i < WORKLOAD_MODELS; i++) {
		n->m[i] = batch_model_add(
			n->b, &(struct batch_model_config){ .max_rows = WORKLOAD_ROWS });
		for (uint32_t rows = 1; rows <= WORKLOAD_ROWS; rows *= 2)
			batch_learn(n->m[i], rows,
				(uint64_t)(1e6 * (n->workload->model[i].alpha_ms +
							 n->workload->model[i].beta_ms * rows)));
	}
}

static void after_noise_it_carries_what_it_carried(void **state)
{
	struct noisy *n = malloc(sizeof *n);
	assert_non_null(n);
	for (int w = 0; w < 2; w++)
		for (uint64_t seed = 1; seed <= ROUNDS(3, 1); seed++) {
			*n = (struct noisy){ .workload = &workloads[w],
				.random = hash_mix(seed),
				.now = 1000 * MS,
				.next = 1000 * MS };
			n->b = batcher_new(BATCH_SLACK);
			learn_workload(n);
			while (n->now < NOISY_END) {
				if (!n->run.n)
					begin_run(n);
				if (n->run.n && n->ends <= n->next)
					end_run(n);
				else
					arrive_noisy(n);
			}
			batcher_free(n->b);
			print_message("workload %s, seed %d: %u of %u\n", workloads[w].name,
				(int)seed, n->met, n->counted);
			assert_true(n->met >= .995 * n->counted);
		}
	free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_arrives_is_treated_by_the_rules),
		cmocka_unit_test(who_has_no_deadline_waits_no_longer_than_its_share_allows),
		cmocka_unit_test(few_requests_fare_almost_as_well_as_they_can),
		cmocka_unit_test(one_promise_in_a_hundred_is_broken),
		cmocka_unit_test(slack_carries_more_than_any_fixed_delay),
		cmocka_unit_test(overload_is_refused_and_costs_nothing),
		cmocka_unit_test(after_noise_it_carries_what_it_carried),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
