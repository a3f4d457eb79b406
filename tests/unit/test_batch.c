/* The batcher by itself, under a virtual clock: queues, admission, policies. */
#include "unit.h"

#include <errno.h>

#include "base/hash.h"
#include "batch/batch.h"
#include "batch/batch_core.h"

#define MS UINT64_C(1000000)

struct bench {
	struct batcher *b;
	struct batch_model *m[4];
	struct batch_run run;
	struct batch_item item[65536];
	uint32_t items;
};

static struct bench *bench_new(enum batch_policy policy)
{
	struct bench *t = calloc(1, sizeof *t);
	assert_non_null(t);
	t->b = batcher_new(policy);
	return t;
}

static void bench_free(struct bench *t)
{
	batcher_free(t->b);
	free(t);
}

/* A model whose batch takes alpha + beta * rows. */
static struct batch_model *model(
	struct bench *t, int i, struct batch_model_config c, uint64_t alpha, uint64_t beta)
{
	c.name = "m";
	c.max_rows = c.max_rows ? c.max_rows : 32;
	t->m[i] = batch_model_add(t->b, &c);
	for (uint32_t rows = 1; rows <= c.max_rows && alpha + beta; rows++)
		for (int k = 0; k < 3; k++)
			batch_learn(t->m[i], rows, alpha + beta * rows);
	return t->m[i];
}

static struct batch_item *item(struct bench *t, uint64_t arrived, uint64_t deadline)
{
	struct batch_item *x = &t->item[t->items++];
	*x = (struct batch_item){
		.arrived_ns = arrived,
		.deadline_ns = deadline,
		.start_by_ns = BATCH_NEVER,
		.rows = 1,
	};
	return x;
}

static enum batch_refusal admit(struct batch_model *m, struct batch_item *x)
{
	uint64_t retry;
	return batch_admit(m, x, x->arrived_ns, &retry);
}

static struct batch_item *admitted(struct bench *t, int m, uint64_t arrived, uint64_t deadline)
{
	struct batch_item *x = item(t, arrived, deadline);
	assert_int_equal(admit(t->m[m], x), BATCH_ADMITTED);
	return x;
}

static uint32_t next(struct bench *t, uint64_t now)
{
	batch_next(t->b, now, now, &t->run);
	return t->run.n;
}

static void a_batch_takes_what_is_queued_by_deadline(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_item *x[5];
	model(t, 0, (struct batch_model_config){ .max_rows = 4 }, MS, MS);
	for (int i = 0; i < 5; i++)
		x[i] = admitted(t, 0, 1, (100 - (uint64_t)i) * MS);
	assert_int_equal(batch_queued(t->m[0]), 5);
	assert_int_equal(next(t, 2), 4);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(t->run.item[i], x[4 - i]);
	assert_int_equal(t->run.rows, 4);
	assert_ptr_equal(t->run.model, t->m[0]);
	assert_int_equal(t->run.predicted_ns, batch_predict(t->m[0], 4));
	batch_done(t->b, &t->run, 5 * MS);
	assert_int_equal(next(t, 5 * MS), 1);
	batch_done(t->b, &t->run, 7 * MS);
	assert_int_equal(next(t, 7 * MS), 0);
	assert_true(t->run.wake_ns == BATCH_NEVER);
	bench_free(t);
}

static void what_cannot_be_in_time_is_refused_or_shed(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	uint64_t retry = 0;
	model(t, 0, (struct batch_model_config){ .max_rows = 1 }, 10 * MS, 0);
	struct batch_item *hopeless = item(t, 1, 5 * MS);
	assert_int_equal(batch_admit(t->m[0], hopeless, 1, &retry), BATCH_TOO_LATE);
	assert_true(retry > 5 * MS);
	batch_cancel(t->m[0], hopeless); /* is in no queue */
	/* Four of 10 ms and a margin, of which the fourth would not be in time. */
	for (int i = 0; i < 3; i++)
		admitted(t, 0, 1, 40 * MS);
	assert_int_equal(admit(t->m[0], item(t, 1, 40 * MS)), BATCH_TOO_LATE);
	assert_int_equal(batch_queued(t->m[0]), 3);
	/* The device was away. */
	assert_int_equal(next(t, 35 * MS), 0);
	assert_int_equal(t->run.shed, 3);
	assert_int_equal(batch_queued(t->m[0]), 0);
	bench_free(t);
}

/* The oracle: of those that are queued, the earliest deadline, and of equal ones the first. */
static uint32_t first_of(const struct bench *t, const bool *queued)
{
	uint32_t first = UINT32_MAX;
	for (uint32_t i = 0; i < t->items; i++)
		if (queued[i] && (first == UINT32_MAX ||
					 t->item[i].deadline_ns < t->item[first].deadline_ns))
			first = i;
	return first;
}

static void requests_come_in_order_whatever_is_cancelled(void **state)
{
	enum { STEPS = 6000 };
	static bool queued[STEPS];
	struct bench *t = bench_new(BATCH_EDF);
	model(t, 0, (struct batch_model_config){ .max_rows = 1 }, 0, 0);
	for (uint64_t step = 0; step < STEPS; step++) {
		const uint64_t chance = hash_mix(step) % 100;
		/* The queue grows to hundreds and shrinks to none, three times. */
		const uint64_t comes = step % 2000 < 1000 ? 70 : 20;
		if (chance < comes) {
			admitted(t, 0, 1, MS * (100 + hash_mix(~step) % 200));
			queued[t->items - 1] = true;
		} else if (chance < comes + 10 && t->items) {
			const uint32_t gone = (uint32_t)(hash_mix(~step) % t->items);
			batch_cancel(t->m[0], &t->item[gone]);
			queued[gone] = false;
		} else {
			const uint32_t first = first_of(t, queued);
			assert_int_equal(next(t, 2), first != UINT32_MAX);
			if (first == UINT32_MAX)
				continue;
			assert_ptr_equal(t->run.item[0], &t->item[first]);
			queued[first] = false;
			t->run.failed = true;
			batch_done(t->b, &t->run, 2);
		}
	}
	bench_free(t);
}

static void what_is_queued_is_short_by_what_it_typically_takes(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	model(t, 0, (struct batch_model_config){ .max_rows = 4 }, MS, MS);
	model(t, 1, (struct batch_model_config){ .max_rows = 1 }, 2 * MS, 0);
	model(t, 2, (struct batch_model_config){ .max_rows = 1 }, 0, 0);
	assert_false(batch_is_short(t->b, BATCH_NEVER)); /* nothing */
	for (int i = 0; i < 3; i++)
		admitted(t, 0, 1, BATCH_NEVER);
	assert_true(batch_is_short(t->b, 4 * MS));
	assert_false(batch_is_short(t->b, 4 * MS - 1));
	for (int i = 0; i < 2; i++)
		admitted(t, 0, 1, BATCH_NEVER);
	assert_true(batch_is_short(t->b, 10 * MS)); /* two batches, of at most 4 rows */
	assert_false(batch_is_short(t->b, 6 * MS - 1));
	admitted(t, 1, 1, BATCH_NEVER);
	assert_true(batch_is_short(t->b, 12 * MS));
	assert_false(batch_is_short(t->b, 8 * MS - 1));
	admitted(t, 2, 1, BATCH_NEVER); /* of which nothing is known */
	assert_false(batch_is_short(t->b, BATCH_NEVER));
	bench_free(t);
}

static void a_queue_has_a_bound_over_all_classes(void **state)
{
	struct bench *t = bench_new(BATCH_FIFO);
	model(t, 0, (struct batch_model_config){ .max_queue = 3 }, MS, MS);
	for (uint32_t i = 0; i < 3; i++) {
		struct batch_item *x = item(t, 1, BATCH_NEVER);
		x->class = i;
		assert_int_equal(admit(t->m[0], x), BATCH_ADMITTED);
	}
	assert_int_equal(admit(t->m[0], item(t, 1, BATCH_NEVER)), BATCH_QUEUE_FULL);
	batch_cancel(t->m[0], &t->item[1]);
	assert_int_equal(admit(t->m[0], item(t, 1, BATCH_NEVER)), BATCH_ADMITTED);
	assert_int_equal(next(t, 2), 3);
	for (uint32_t i = 0; i < t->run.n; i++)
		assert_ptr_not_equal(t->run.item[i], &t->item[1]);
	bench_free(t);
}

static void a_class_has_a_bound_of_its_own(void **state)
{
	for (int policy = 0; policy < BATCH_POLICIES; policy++) {
		struct bench *t = bench_new((enum batch_policy)policy);
		model(t, 0, (struct batch_model_config){ .max_rows = 8, .max_class = { 0, 2 } }, MS,
			MS);
		for (uint32_t i = 0; i < 4; i++) {
			struct batch_item *x = item(t, 1, i % 2 ? BATCH_NEVER : 10000 * MS);
			x->class = 1;
			assert_int_equal(
				admit(t->m[0], x), i < 2 ? BATCH_ADMITTED : BATCH_QUEUE_FULL);
			admitted(t, 0, 1, 10000 * MS);
		}
		assert_int_equal(next(t, 2), 6);
		struct batch_item *x = item(t, 2, BATCH_NEVER);
		x->class = 1;
		assert_int_equal(admit(t->m[0], x), BATCH_ADMITTED);
		bench_free(t);
	}
}

static void groups_run_apart_and_none_starves(void **state)
{
	for (int policy = 0; policy < BATCH_POLICIES; policy++) {
		struct bench *t = bench_new((enum batch_policy)policy);
		uint32_t ran = 0;
		model(t, 0, (struct batch_model_config){ 0 }, MS, MS);
		for (uint32_t i = 0; i < 12; i++)
			admitted(t, 0, 1 + i, 10000 * MS + i)->group = 0;
		/* The group is looked at when it is queued: a second model for that. */
		model(t, 1, (struct batch_model_config){ 0 }, MS, MS);
		for (uint32_t i = 0; i < 12; i++) {
			struct batch_item *x = item(t, 1 + i, 10000 * MS + i);
			x->group = i % 3;
			assert_int_equal(admit(t->m[1], x), BATCH_ADMITTED);
		}
		for (uint64_t now = 20; next(t, now); now += 100) {
			for (uint32_t i = 1; i < t->run.n; i++)
				assert_int_equal(t->run.item[i]->group, t->run.item[0]->group);
			ran += t->run.n;
			batch_done(t->b, &t->run, now + 50);
		}
		assert_int_equal(ran, 24);
		bench_free(t);
	}
}

static void an_efficient_batch_goes_before_one_that_can_wait(void **state)
{
	for (int policy = BATCH_SLACK; policy <= BATCH_EDF; policy += BATCH_EDF) {
		struct bench *t = bench_new((enum batch_policy)policy);
		model(t, 0, (struct batch_model_config){ 0 }, 4 * MS, MS / 10);
		model(t, 1, (struct batch_model_config){ 0 }, 0, 2 * MS);
		for (int i = 0; i < 20; i++)
			admitted(t, 0, 1, 200 * MS);
		admitted(t, 1, 1, 100 * MS);
		assert_true(next(t, 2) > 0);
		assert_ptr_equal(t->run.model, t->m[policy == BATCH_EDF]);
		bench_free(t);
		if (policy == BATCH_EDF)
			break;
	}
	/* Not if that one could then be late. */
	struct bench *t = bench_new(BATCH_SLACK);
	model(t, 0, (struct batch_model_config){ 0 }, 4 * MS, MS / 10);
	model(t, 1, (struct batch_model_config){ 0 }, 0, 2 * MS);
	for (int i = 0; i < 20; i++)
		admitted(t, 0, 1, 200 * MS);
	admitted(t, 1, 1, 6 * MS);
	assert_int_equal(next(t, 2), 1);
	assert_ptr_equal(t->run.model, t->m[1]);
	bench_free(t);
}

static void delay_waits_for_a_preferred_size(void **state)
{
	struct bench *t = bench_new(BATCH_DELAY);
	const struct batch_model_config c = {
		.max_rows = 8,
		.max_delay_ns = 5 * MS,
		.preferred = { 2, 4 },
		.preferreds = 2,
	};
	model(t, 0, c, MS, MS);
	admitted(t, 0, 1 * MS, BATCH_NEVER);
	assert_int_equal(next(t, 2 * MS), 0);
	assert_int_equal(t->run.wake_ns, 6 * MS); /* the oldest has waited for long enough */
	for (int i = 0; i < 2; i++)
		admitted(t, 0, 2 * MS, BATCH_NEVER);
	assert_int_equal(next(t, 2 * MS), 2);
	batch_done(t->b, &t->run, 3 * MS);
	assert_int_equal(next(t, 3 * MS), 0);
	assert_int_equal(t->run.wake_ns, 7 * MS);
	assert_int_equal(next(t, 7 * MS), 1);
	batch_done(t->b, &t->run, 8 * MS);
	for (int i = 0; i < 9; i++) {
		struct batch_item *x = item(t, 8 * MS, BATCH_NEVER);
		x->start_by_ns = i == 4 ? 10 * MS : BATCH_NEVER;
		assert_int_equal(admit(t->m[0], x), BATCH_ADMITTED);
	}
	assert_int_equal(next(t, 8 * MS), 4); /* the largest preferred size */
	batch_done(t->b, &t->run, 9 * MS);
	assert_int_equal(next(t, 20 * MS), 4); /* the cursor meets the timeout */
	assert_int_equal(t->run.shed, 1);
	bench_free(t);
}

static void classes_get_their_weights(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	uint64_t now = 1, ns[2] = { 0 };
	model(t, 0, (struct batch_model_config){ .max_rows = 1 }, MS, 0);
	model(t, 1, (struct batch_model_config){ .max_rows = 1 }, MS, 0);
	batcher_set_class_weight(t->b, 0, 3);
	batcher_set_class_weight(t->b, 1, 1);
	for (int i = 0; i < 4000; i++) {
		struct batch_item *x = item(t, now, BATCH_NEVER);
		x->class = (uint32_t)i % 2;
		assert_int_equal(admit(t->m[i % 2], x), BATCH_ADMITTED);
	}
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(next(t, now), 1);
		ns[t->run.item[0]->class] += MS;
		now += MS;
		batch_done(t->b, &t->run, now);
	}
	assert_in_range(ns[1] / MS, 235, 265);
	bench_free(t);
}

/* Requests without a deadline, or of a low class, get their part beside work that never ends. */
static void nobody_starves(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	uint64_t now = 1000 * MS, waited[3] = { 0 }, last[3] = { now, now, now };
	model(t, 0, (struct batch_model_config){ 0 }, MS, MS / 10);
	model(t, 1, (struct batch_model_config){ .max_rows = 2 }, 0, 3 * MS); /* gains nothing */
	for (int round = 0; round < 1000; round++) {
		/* Some of each kind are always there. */
		while (batch_queued(t->m[0]) < 100) {
			struct batch_item *x = item(t, now, now + 200 * MS);
			admit(t->m[0], x);
		}
		while (batch_queued(t->m[1]) < 4) {
			struct batch_item *x = item(t, now, BATCH_NEVER);
			x->class = t->items % 2 ? 0 : 3;
			admit(t->m[1], x);
		}
		assert_true(next(t, now) > 0);
		now += t->run.predicted_ns;
		for (uint32_t i = 0; i < t->run.n; i++) {
			const uint32_t kind = t->run.model == t->m[0] ? 0
					      : t->run.item[i]->class ? 2
								      : 1;
			waited[kind] =
				now - last[kind] > waited[kind] ? now - last[kind] : waited[kind];
			last[kind] = now;
		}
		batch_done(t->b, &t->run, now);
	}
	for (int kind = 0; kind < 3; kind++) {
		assert_true(waited[kind] < 1000 * MS);
		assert_true(now - last[kind] < 1000 * MS);
	}
	bench_free(t);
}

static void sizes_that_never_ran_are_between_those_that_did(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	const struct batch_model_config c = {
		.max_rows = 40, .buckets = { 1, 4, 8, 32 }, .nbuckets = 4
	};
	struct batch_model *m = model(t, 0, c, 0, 0);
	assert_int_equal(batch_predict(m, 1), 0);
	for (int k = 0; k < 3; k++) {
		batch_learn(m, 1, 2 * MS);
		batch_learn(m, 8, 9 * MS);
		batch_learn(m, 8, k ? 9 * MS : 90 * MS); /* once, cold */
	}
	assert_int_equal(batch_bucket(m, 3), 4);
	assert_int_equal(batch_typical(m, 3), 5 * MS); /* runs as 4 */
	assert_int_equal(batch_typical(m, 8), 9 * MS);
	assert_int_equal(batch_bucket(m, 33), 33);
	assert_in_range(batch_typical(m, 9), 33 * MS - 10, 33 * MS + 10); /* 32: on the same line */
	assert_true(batch_predict(m, 8) > batch_typical(m, 8));
	bench_free(t);
}

static void a_batch_that_failed_teaches_nothing(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ 0 }, MS, MS);
	const uint64_t before = batch_predict(m, 1);
	for (int failed = 1; failed >= 0; failed--) {
		for (uint64_t k = 1; k <= 20; k++) {
			admitted(t, 0, k * 1000 * MS, BATCH_NEVER);
			assert_int_equal(next(t, k * 1000 * MS), 1);
			t->run.failed = failed;
			batch_done(t->b, &t->run, k * 1000 * MS + 1000);
		}
		assert_int_equal(batch_predict(m, 1) == before, failed);
	}
	bench_free(t);
}

/* One request with so much time, which runs in 2 ms if it is admitted. */
static bool asked_on_a_fast_device(struct bench *t, uint64_t now, uint64_t within)
{
	if (admit(t->m[0], item(t, now, now + within)) != BATCH_ADMITTED)
		return false;
	assert_int_equal(next(t, now), 1);
	batch_done(t->b, &t->run, now + 2 * MS);
	return true;
}

/* The model's memory is away: 20 ms go by before its next batch, and no more before the one after.
 */
static void what_is_done_before_a_batch_is_promised_and_not_learnt(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ 0 }, MS, MS / 10);
	const uint64_t one = batch_predict(m, 1);
	batch_model_before(m, 20 * MS);
	assert_int_equal(batch_predict(m, 1), one + 20 * MS);
	assert_int_equal(admit(m, item(t, 0, one + 19 * MS)), BATCH_TOO_LATE);
	for (uint64_t turn = 0; turn < 50; turn++) {
		const uint64_t now = turn * 100 * MS;
		batch_model_before(m, 20 * MS);
		admitted(t, 0, now, now + one + 21 * MS);
		batch_next(t->b, now, now, &t->run);
		assert_int_equal(t->run.n, 1);
		assert_int_equal(t->run.before_ns, 20 * MS);
		batch_model_before(m, 0);
		t->run.spent_ns = 18 * MS;
		batch_done(t->b, &t->run, now + 18 * MS + MS + MS / 10);
	}
	assert_true(batch_typical(m, 1) < 12 * MS / 10 && batch_typical(m, 1) > MS);
	assert_int_equal(admit(m, item(t, 5000 * MS, 5000 * MS + one + MS)), BATCH_ADMITTED);
	bench_free(t);
}

static void a_device_that_was_slow_is_tried_again(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ 0 }, MS, MS);
	uint64_t now = 1000 * MS;
	for (int k = 0; k < 50; k++, now += 60 * MS) {
		admitted(t, 0, now, BATCH_NEVER);
		assert_int_equal(next(t, now), 1);
		batch_done(t->b, &t->run, now + 50 * MS);
	}
	assert_true(batch_predict(m, 1) > 10 * MS);
	/* A request that the model never did in time is not tried at all. */
	for (int k = 0; k < 100; k++, now += 10 * MS)
		assert_false(asked_on_a_fast_device(t, now, MS));
	int in_time = 0;
	for (int k = 0; k < 200; k++, now += 10 * MS)
		in_time += asked_on_a_fast_device(t, now, 10 * MS) && k >= 100;
	assert_true(in_time >= 95);
	bench_free(t);
}

static void a_slow_device_is_tried_seldom(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	model(t, 0, (struct batch_model_config){ 0 }, MS, MS);
	uint64_t now = 1000 * MS;
	int tried = 0;
	for (int k = 0; k < 1000; k++, now += 10 * MS)
		if (admit(t->m[0], item(t, now, now + 10 * MS)) == BATCH_ADMITTED) {
			tried += k >= 100;
			assert_int_equal(next(t, now), 1);
			batch_done(t->b, &t->run, now + 9 * MS + 50 * MS);
			now += 50 * MS;
		}
	assert_true(tried <= 100); /* of 900 */
	bench_free(t);
}

static void after_noise_promises_are_in_band_again(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ .max_rows = 1 }, MS, 0);
	uint64_t now = 1000 * MS, widest = 0;
	for (uint64_t k = 0; k < 450; k++, now += 100 * MS) {
		const bool noisy = k < 400;
		admitted(t, 0, now, BATCH_NEVER);
		assert_int_equal(next(t, now), 1);
		batch_done(t->b, &t->run,
			now + MS + hash_mix(k) % (noisy && k % 4 == 0 ? 20 * MS : MS / 20));
		widest = batch_predict(m, 1) > widest ? batch_predict(m, 1) : widest;
	}
	assert_true(widest > 4 * MS);
	assert_in_range(batch_predict(m, 1), MS, MS * 3 / 2);
	bench_free(t);
}

/* Runs that are all shorter than the median are no reason to promise without a margin. */
static void a_calm_device_keeps_a_margin(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ .max_rows = 1 }, MS, 0);
	for (uint64_t k = 0, now = 1000 * MS; k < 40; k++, now += 100 * MS) {
		admitted(t, 0, now, BATCH_NEVER);
		assert_int_equal(next(t, now), 1);
		batch_done(t->b, &t->run, now + MS);
	}
	assert_in_range(batch_predict(m, 1), MS * 102 / 100, MS * 11 / 10);
	bench_free(t);
}

/* Taken for ten times as slow once, a size is asked again when others show that all is well. */
static void a_size_that_was_slow_once_is_not_for_ever(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ .max_rows = 4 }, MS, MS);
	uint64_t now = 1000 * MS;
	for (int k = 0; k < 20; k++)
		batch_learn(m, 4, 50 * MS);
	assert_true(batch_predict(m, 4) > 20 * MS);
	for (int k = 0; k < 300; k++, now += 100 * MS) {
		admitted(t, 0, now, BATCH_NEVER);
		assert_int_equal(next(t, now), 1);
		batch_done(t->b, &t->run, now + 2 * MS);
	}
	assert_in_range(batch_predict(m, 4), 5 * MS, 6 * MS);
	bench_free(t);
}

/* However much is expected of others: it runs at once. */
static void a_device_without_work_takes_what_it_can_answer(void **state)
{
	struct bench *t = bench_new(BATCH_SLACK);
	uint64_t now = 1000 * MS;
	model(t, 0, (struct batch_model_config){ 0 }, MS, MS / 2);
	model(t, 1, (struct batch_model_config){ .max_rows = 1 }, MS, 0);
	for (int k = 0; k < 5000; k++, now += MS / 10) {
		struct batch_item *x = item(t, now, now + 6 * MS / 5);
		if (admit(t->m[1], x) == BATCH_ADMITTED)
			batch_cancel(t->m[1], x);
	}
	admitted(t, 0, now, now + 25 * MS);
	/* Now there is work, and room is kept for what is expected. */
	assert_int_equal(admit(t->m[0], item(t, now, now + 25 * MS)), BATCH_TOO_LATE);
	bench_free(t);
}

static void latency_is_kept_as_text(void **state)
{
	static const char *const wrong[] = { "", "weir-latency 2\n", "weir-latency 1\nmargin x\n",
		"weir-latency 1\nmargin 0.1 deviation 0.02\nrows 0 ns 5 runs 1\n",
		"weir-latency 1\nmargin 0.1 deviation 0.02\nrows 2000 ns 5 runs 1\n",
		"weir-latency 1\nmargin 0.1 deviation 0.02\nrows 2 ns nan runs 1\n",
		"weir-latency 1\nmargin -1 deviation 0.02\n" };
	struct bench *t = bench_new(BATCH_SLACK);
	struct batch_model *m = model(t, 0, (struct batch_model_config){ 0 }, MS, MS);
	struct batch_model *other = model(t, 1, (struct batch_model_config){ 0 }, 0, 0);
	struct error err;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	batch_latency_put(m, out);
	fclose(out);
	FILE *in = fmemopen(text, n, "r");
	assert_int_equal(batch_latency_read(other, in, &err), 0);
	fclose(in);
	free(text);
	for (uint32_t rows = 1; rows <= 32; rows++)
		assert_int_equal(batch_predict(m, rows), batch_predict(other, rows));
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		in = *wrong[i] ? fmemopen((void *)wrong[i], strlen(wrong[i]), "r")
			       : fopen("/dev/null", "r");
		assert_int_equal(batch_latency_read(other, in, &err), -EINVAL);
		fclose(in);
	}
	assert_int_equal(batch_predict(m, 7), batch_predict(other, 7));
	bench_free(t);
}

static void demand_is_the_sum_of_what_is_due(void **state)
{
	enum { N = 400 };
	static struct {
		uint64_t deadline;
		uint32_t class, bin, ns;
		bool in;
	} work[N];
	struct batch_demand *d = calloc(1, sizeof *d);
	uint64_t now = UINT64_C(5000) << DEMAND_BIN_BITS, random = 1;
	demand_advance(d, now);
	for (int round = 0; round < 20000; round++) {
		const uint32_t i = (uint32_t)(hash_mix(++random) % N);
		if (work[i].in) {
			demand_drop(d, work[i].class, work[i].bin, work[i].ns);
		} else {
			work[i].class = hash_mix(random) >> 40 & 3;
			work[i].ns = 1000 + (uint32_t)i;
			work[i].deadline = now + hash_mix(random) % 5000 * MS;
			work[i].bin = demand_add(d, work[i].class, work[i].deadline, work[i].ns);
		}
		work[i].in = !work[i].in;
		if (round % 10 == 0)
			now += hash_mix(random + 7) % (round % 1000 ? 20 : 6000) * MS;
		demand_advance(d, now);
		const uint64_t until = now + hash_mix(random + 9) % 4000 * MS;
		uint64_t want = 0;
		for (int k = 0; k < N; k++)
			if (work[k].in && work[k].class <= 2 &&
				(int32_t)(work[k].bin - (uint32_t)(until >> DEMAND_BIN_BITS)) <= 0)
				want += work[k].ns;
		assert_int_equal(demand_ns(d, 2, until), want);
	}
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_takes_what_is_queued_by_deadline),
		cmocka_unit_test(what_cannot_be_in_time_is_refused_or_shed),
		cmocka_unit_test(requests_come_in_order_whatever_is_cancelled),
		cmocka_unit_test(what_is_queued_is_short_by_what_it_typically_takes),
		cmocka_unit_test(a_queue_has_a_bound_over_all_classes),
		cmocka_unit_test(a_class_has_a_bound_of_its_own),
		cmocka_unit_test(groups_run_apart_and_none_starves),
		cmocka_unit_test(an_efficient_batch_goes_before_one_that_can_wait),
		cmocka_unit_test(delay_waits_for_a_preferred_size),
		cmocka_unit_test(classes_get_their_weights),
		cmocka_unit_test(nobody_starves),
		cmocka_unit_test(sizes_that_never_ran_are_between_those_that_did),
		cmocka_unit_test(a_batch_that_failed_teaches_nothing),
		cmocka_unit_test(what_is_done_before_a_batch_is_promised_and_not_learnt),
		cmocka_unit_test(a_device_that_was_slow_is_tried_again),
		cmocka_unit_test(a_slow_device_is_tried_seldom),
		cmocka_unit_test(after_noise_promises_are_in_band_again),
		cmocka_unit_test(a_calm_device_keeps_a_margin),
		cmocka_unit_test(a_size_that_was_slow_once_is_not_for_ever),
		cmocka_unit_test(a_device_without_work_takes_what_it_can_answer),
		cmocka_unit_test(latency_is_kept_as_text),
		cmocka_unit_test(demand_is_the_sum_of_what_is_due),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
