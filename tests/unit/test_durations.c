/*
 * How long kernels take that were timed in part (src/reconstruct/durations.c): of generated runs,
 * whose kernels take a time that is known.  Streams have not always the room to run beside each
 * other, so that a kernel waits between the event in front of it and its begin, and an event says
 * that it took longer.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "reconstruct/durations.h"

enum { RUNS = 200 };

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static double exponential(double mean)
{
	return -mean * log(1 - uniform());
}

struct run {
	double ns, deviation; /* of a kernel, and of that the share that launches differ by */
	double wait_ns;       /* the mean of how long one waits for room */
	double changed;       /* times as long behind the window */
	int both, after; /* launches in CUPTI's window, and of those behind it that events time */
};

static const struct duration_key key = { .level = { { { 1 } }, { { 2 } }, { { 3 } } } };

static uint64_t at_least_one(double ns)
{
	return ns < 1 ? 1 : (uint64_t)ns;
}

static double took(const struct run *r, double scale)
{
	return fmax(r->ns * scale * (1 + r->deviation * normal()), 100);
}

static double waited(const struct run *r)
{
	return exponential(r->wait_ns) + 100 * normal();
}

static struct duration estimate(const struct run *r)
{
	struct durations d = { 0 };
	for (int i = 0; i < r->both; i++) {
		const double ns = took(r, 1);
		durations_add(
			&d, &key, at_least_one(ns), at_least_one(ns + waited(r)), DURATION_EXACT);
	}
	for (int i = 0; i < r->after; i++)
		durations_add(
			&d, &key, at_least_one(took(r, r->changed) + waited(r)), 0, DURATION_EVENT);
	durations_settle(&d);
	const struct duration found = durations_get(&d, &key);
	durations_fini(&d);
	return found;
}

/* How many of the runs are estimated within `within` of what is true. */
static int good_runs(struct run (*draw)(void), double within)
{
	int good = 0;
	for (int i = 0; i < RUNS; i++) {
		state = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
		const struct run r = draw();
		const double truth = r.ns * r.changed;
		const double off = fabs((double)estimate(&r).ns / truth - 1);
		good += off < within;
	}
	return good;
}

static struct run crowded(void)
{
	const double ns = 5000 + 300000 * uniform();
	return (struct run){ .ns = ns,
		.deviation = 0.01 + 0.1 * uniform(),
		.wait_ns = 2 * ns * uniform(),
		.changed = 1,
		.both = 60 + (int)(200 * uniform()),
		.after = 2 + (int)(100 * uniform()) };
}

static void waits_for_room_are_not_taken_for_work(void **unused)
{
	assert_in_range(good_runs(crowded, 0.05), RUNS * 95 / 100, RUNS);
}

static struct run slowed(void)
{
	struct run r = crowded();
	r.wait_ns = 0;
	r.changed = 1.2 + uniform();
	r.after += 20;
	return r;
}

static void a_run_that_gets_slower_is_seen_by_events(void **unused)
{
	assert_in_range(good_runs(slowed, 0.05), RUNS * 95 / 100, RUNS);
}

static struct run crowded_and_slowed(void)
{
	struct run r = crowded();
	r.wait_ns /= 4;
	r.changed = 1.6 + uniform();
	r.after += 100;
	return r;
}

static void both_at_one_time_are_told_apart(void **unused)
{
	assert_in_range(good_runs(crowded_and_slowed, 0.1), RUNS * 90 / 100, RUNS);
}

/* One event's time is known no better than events of its kind vary. */
static void an_event_says_how_far_it_may_be_off(void **unused)
{
	for (int i = 0; i < RUNS; i++) {
		state = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
		const struct run r = crowded();
		const struct duration d = estimate(&r);
		assert_true(d.event_more_ns > 0.6 * r.wait_ns - 100 &&
			    d.event_more_ns < 1.5 * r.wait_ns + 100);
		assert_true(d.event_sd_ns > 0.4 * r.wait_ns && d.event_sd_ns < 2 * r.wait_ns + 200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_room_are_not_taken_for_work),
		cmocka_unit_test(a_run_that_gets_slower_is_seen_by_events),
		cmocka_unit_test(both_at_one_time_are_told_apart),
		cmocka_unit_test(an_event_says_how_far_it_may_be_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
