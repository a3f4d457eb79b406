/*
 * join/join.c against programs whose truth is known: threads that launch, queue deeply,
 * wait, and lose calls or work; and against a plain alignment by dynamic programming.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/hash.h"
#include "join/join.h"

struct plan {
	uint32_t threads;
	uint32_t calls;           /* of each thread */
	uint32_t pattern;         /* calls until the program repeats itself; 0: never does */
	uint32_t kernels;         /* different ones */
	uint32_t wait_every;      /* calls of a thread; 0: never */
	uint32_t kernel_ns;       /* on the device, about */
	uint32_t early;           /* ns that a number may be given out before the call begins */
	uint32_t step;            /* numbers given out from one call to the next */
	uint32_t lost_activities; /* of 10 000 */
	uint32_t lost_calls;      /* of 10 000 */
	uint32_t gap_activity_at; /* a run of calls whose work is lost */
	uint32_t gap_calls_at;
	uint32_t gap_activity, gap_calls; /* how long */
	uint32_t streams;                 /* in all, of each thread its own; 0: not known */
	uint64_t seed;
};

struct event { /* a call, and its work */
	struct join_call call;
	struct join_activity activity;
	bool has_call, has_activity;
};

struct scene {
	struct event *events; /* by number */
	size_t count;
	struct join_call *calls;
	struct join_activity *activity;
	uint32_t *truth; /* by work: the call */
	uint32_t *found;
	size_t call_count, activity_count;
};

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += 0x9e3779b97f4a7c15u;
	return below ? hash_mix(state) % below : 0;
}

struct thread {
	uint64_t now, device_free, made;
};

static uint32_t kernel_of(const struct plan *p, uint32_t thread, uint64_t made)
{
	if (!p->pattern)
		return (uint32_t)draw(p->kernels) + 1;
	return (uint32_t)(hash_mix(made % p->pattern + thread * 977 + 5) % p->kernels) + 1;
}

static struct event make_event(
	const struct plan *p, struct thread *t, uint32_t thread, uint64_t number, uint64_t given)
{
	const bool wait = p->wait_every && t->made % p->wait_every == p->wait_every - 1;
	struct event e = { .has_call = true, .has_activity = true };
	const uint32_t kernel = kernel_of(p, thread, t->made++);
	e.call.thread = thread;
	e.call.begin_ns = p->early ? given - 200 + draw(p->early + 200) : given - 200 - draw(400);
	e.call.end_ns = given + 1000 + draw(800);
	e.call.kind = e.activity.kind = wait ? JOIN_SYNC : JOIN_KERNEL;
	e.call.name = e.activity.name = wait ? 3 : kernel;
	e.call.shape = e.activity.shape = wait ? 0 : kernel * 7919;
	e.activity.correlation = number;
	if (p->streams) {
		e.call.stream = 0x100; /* as with a default stream of each thread's */
		e.activity.stream = 100 + thread % p->streams;
	}
	if (wait) {
		if (e.call.end_ns < t->device_free)
			e.call.end_ns = t->device_free + 900;
		e.activity.start_ns = given + 20;
		e.activity.end_ns = e.call.end_ns - 50;
	} else {
		const uint64_t free = t->device_free > given + 1500 ? t->device_free : given + 1500;
		e.activity.start_ns = free + draw(300);
		e.activity.end_ns = t->device_free =
			e.activity.start_ns + p->kernel_ns / 2 + draw(p->kernel_ns);
	}
	t->now = e.call.end_ns + 300 + draw(900);
	return e;
}

static int by_begin(const void *a, const void *b)
{
	const struct event *const *x = a, *const *y = b;
	const uint64_t s = (*x)->call.begin_ns, t = (*y)->call.begin_ns;
	return s < t ? -1 : s > t;
}

static void split(struct scene *s)
{
	const struct event **order = calloc(s->count, sizeof *order);
	for (size_t i = 0; i < s->count; i++)
		order[i] = &s->events[i];
	qsort(order, s->count, sizeof *order, by_begin);
	uint32_t *index = calloc(s->count, sizeof *index);
	for (size_t i = 0; i < s->count; i++) {
		index[order[i] - s->events] =
			order[i]->has_call ? (uint32_t)s->call_count : JOIN_NONE;
		if (order[i]->has_call)
			s->calls[s->call_count++] = order[i]->call;
	}
	for (size_t i = 0; i < s->count; i++) {
		if (!s->events[i].has_activity)
			continue;
		s->truth[s->activity_count] = index[i];
		s->activity[s->activity_count++] = s->events[i].activity;
	}
	free(order);
	free(index);
}

static struct scene play(const struct plan *p)
{
	const size_t total = (size_t)p->threads * p->calls;
	struct scene s = { .events = calloc(total, sizeof *s.events),
		.calls = calloc(total, sizeof *s.calls),
		.activity = calloc(total, sizeof *s.activity),
		.truth = calloc(total, sizeof *s.truth),
		.found = calloc(total, sizeof *s.found) };
	struct thread *threads = calloc(p->threads, sizeof *threads);
	uint64_t number = 1000;
	state = p->seed;
	for (uint32_t i = 0; i < p->threads; i++)
		threads[i].now = 1000000 + draw(5000);
	for (s.count = 0; s.count < total; s.count++) {
		uint32_t next = 0;
		while (threads[next].made == p->calls)
			next++;
		for (uint32_t i = next; i < p->threads; i++)
			if (threads[i].made < p->calls && threads[i].now < threads[next].now)
				next = i;
		number += 1 + draw(2 * p->step - 1);
		struct event *e = &s.events[s.count];
		*e = make_event(p, &threads[next], next, number, threads[next].now + 700);
		const bool wait = e->call.kind == JOIN_SYNC;
		e->has_activity = draw(10000) >= p->lost_activities &&
				  (s.count < p->gap_activity_at ||
					  s.count >= p->gap_activity_at + p->gap_activity);
		e->has_call =
			draw(10000) >= p->lost_calls &&
			(s.count < p->gap_calls_at || s.count >= p->gap_calls_at + p->gap_calls);
		e->has_activity |= wait && !p->gap_activity;
	}
	free(threads);
	split(&s);
	assert_int_equal(
		join_calls(s.calls, s.call_count, s.activity, s.activity_count, s.found), 0);
	return s;
}

static void scene_fini(struct scene *s)
{
	free(s->events);
	free(s->calls);
	free(s->activity);
	free(s->truth);
	free(s->found);
}

struct score {
	size_t wanted, found, right;
};

static struct score score_of(const struct scene *s)
{
	struct score c = { 0 };
	for (size_t i = 0; i < s->activity_count; i++) {
		if (s->activity[i].kind == JOIN_SYNC)
			continue;
		c.wanted += s->truth[i] != JOIN_NONE;
		c.found += s->found[i] != JOIN_NONE;
		c.right += s->found[i] != JOIN_NONE && s->found[i] == s->truth[i];
	}
	return c;
}

/* The promises of join.h for any pair, whatever the truth is. */
static void check_pairs(const struct scene *s)
{
	bool *used = calloc(s->call_count + 1, sizeof *used);
	for (size_t i = 0; i < s->activity_count; i++) {
		if (s->found[i] == JOIN_NONE)
			continue;
		const struct join_call *c = &s->calls[s->found[i]];
		const struct join_activity *w = &s->activity[i];
		assert_true(s->found[i] < s->call_count);
		assert_false(used[s->found[i]]);
		used[s->found[i]] = true;
		assert_int_equal(c->kind, w->kind);
		assert_true(c->name == w->name && c->shape == w->shape);
		assert_true(c->begin_ns <= w->start_ns + 20000);
	}
	free(used);
}

static void expect(const struct plan *p, double found, double right)
{
	struct scene s = play(p);
	check_pairs(&s);
	const struct score c = score_of(&s);
	if (c.found < found * c.wanted || c.right < right * c.found)
		fail_msg("found %zu and right %zu of %zu", c.found, c.right, c.wanted);
	scene_fini(&s);
}

static void one_thread_loses_nothing(void **unused)
{
	expect(
		&(struct plan){
			.threads = 1, .calls = 20000, .kernels = 9, .kernel_ns = 5000, .step = 1 },
		1, 1);
	expect(
		&(struct plan){
			.threads = 1, .calls = 20000, .kernels = 1, .kernel_ns = 900, .step = 4 },
		1, 1);
}

static void deep_queues_do_not_matter(void **unused)
{
	expect(&(struct plan){ .threads = 1,
		       .calls = 20000,
		       .pattern = 37,
		       .kernels = 5,
		       .kernel_ns = 200000,
		       .step = 3,
		       .wait_every = 1000 },
		1, 1);
}

static void threads_overlap(void **unused)
{
	for (uint32_t threads = 2; threads <= 32; threads *= 2)
		expect(&(struct plan){ .threads = threads,
			       .calls = 4000,
			       .kernels = 40,
			       .kernel_ns = 4000,
			       .step = 2,
			       .seed = threads },
			.999, .95);
}

static void numbers_are_given_out_by_the_call_around(void **unused)
{
	for (uint32_t threads = 1; threads <= 8; threads *= 2)
		expect(&(struct plan){ .threads = threads,
			       .calls = 4000,
			       .kernels = 40,
			       .kernel_ns = 4000,
			       .step = 2,
			       .early = 900,
			       .seed = threads },
			.998, .96);
}

static void identical_kernels_of_threads_all_find_a_call(void **unused)
{
	expect(
		&(struct plan){
			.threads = 8, .calls = 4000, .kernels = 1, .kernel_ns = 4000, .step = 2 },
		1, .25);
}

static void identical_kernels_are_distinguished_by_their_streams(void **unused)
{
	for (uint32_t threads = 2; threads <= 32; threads *= 2)
		expect(&(struct plan){ .threads = threads,
			       .calls = 4000,
			       .kernels = 1,
			       .kernel_ns = 4000,
			       .step = 2,
			       .streams = threads,
			       .seed = threads },
			1, 1);
	expect(&(struct plan){ .threads = 8,
		       .calls = 4000,
		       .kernels = 3,
		       .kernel_ns = 4000,
		       .step = 2,
		       .wait_every = 100,
		       .streams = 8,
		       .lost_activities = 20 },
		.99, .99);
}

static void lost_work_costs_only_itself(void **unused)
{
	for (uint64_t seed = 0; seed < 8; seed++)
		expect(&(struct plan){ .threads = 1,
			       .calls = 10000,
			       .pattern = 61,
			       .kernels = 12,
			       .kernel_ns = 3000,
			       .step = 1,
			       .lost_activities = 100,
			       .seed = seed },
			.995, .98);
}

static void lost_calls_cost_only_themselves(void **unused)
{
	for (uint64_t seed = 0; seed < 8; seed++)
		expect(&(struct plan){ .threads = 1,
			       .calls = 10000,
			       .pattern = 61,
			       .kernels = 12,
			       .kernel_ns = 3000,
			       .step = 1,
			       .lost_calls = 100,
			       .seed = seed },
			.99, .98);
}

static void threads_that_lose_both(void **unused)
{
	for (uint64_t seed = 0; seed < 8; seed++)
		expect(&(struct plan){ .threads = 4,
			       .calls = 5000,
			       .pattern = 97,
			       .kernels = 30,
			       .kernel_ns = 3000,
			       .step = 2,
			       .lost_activities = 50,
			       .lost_calls = 50,
			       .wait_every = 200,
			       .seed = seed },
			.98, .95);
}

static void a_lost_buffer_of_work_is_stepped_over(void **unused)
{
	struct plan p = { .threads = 1,
		.calls = 60000,
		.pattern = 113,
		.kernels = 20,
		.kernel_ns = 3000,
		.step = 1,
		.gap_activity_at = 20000,
		.gap_activity = 20000 };
	expect(&p, .99, .97);
	p.wait_every = 500;
	expect(&p, .99, .99);
	p.step = 3;
	expect(&p, .98, .97);
}

static void calls_that_were_not_recorded_for_a_while(void **unused)
{
	expect(&(struct plan){ .threads = 2,
		       .calls = 30000,
		       .pattern = 113,
		       .kernels = 20,
		       .kernel_ns = 1500,
		       .step = 2,
		       .gap_calls_at = 20000,
		       .gap_calls = 20000,
		       .wait_every = 1000 },
		.99, .97);
}

static void recordings_that_begin_at_different_times(void **unused)
{
	struct plan p = { .threads = 1,
		.calls = 8000,
		.pattern = 50,
		.kernels = 9,
		.step = 1,
		.kernel_ns = 3000,
		.wait_every = 300,
		.gap_calls = 4000 };
	expect(&p, .99, .98);
	p.gap_calls = 0;
	p.gap_activity = 4000;
	expect(&p, .90, .93); /* a guess until the first wait */
}

static void nothing_at_all(void **unused)
{
	const struct join_call call = { .begin_ns = 5, .end_ns = 6, .kind = JOIN_KERNEL };
	const struct join_activity activity = {
		.correlation = 1, .start_ns = 9, .end_ns = 10, .kind = JOIN_KERNEL
	};
	uint32_t found = 7;
	assert_int_equal(join_calls(NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(join_calls(&call, 1, NULL, 0, NULL), 0);
	assert_int_equal(join_calls(NULL, 0, &activity, 1, &found), 0);
	assert_int_equal(found, JOIN_NONE);
	assert_int_equal(join_calls(&call, 1, &activity, 1, &found), 0);
	assert_int_equal(found, 0);
}

static void a_call_never_begins_after_its_work(void **unused)
{
	const struct join_call call = {
		.begin_ns = 1000000, .end_ns = 1001000, .kind = JOIN_KERNEL
	};
	const struct join_activity activity = {
		.correlation = 1, .start_ns = 900000, .end_ns = 950000, .kind = JOIN_KERNEL
	};
	uint32_t found;
	assert_int_equal(join_calls(&call, 1, &activity, 1, &found), 0);
	assert_int_equal(found, JOIN_NONE);
}

static void a_copy_that_blocks_ends_after_its_work(void **unused)
{
	const struct join_call calls[] = {
		{ .begin_ns = 1000,
			.end_ns = 2000,
			.shape = 64,
			.name = 2,
			.kind = JOIN_MEMCPY,
			.blocks = 1 },
		{ .begin_ns = 500000,
			.end_ns = 560000,
			.shape = 64,
			.name = 2,
			.kind = JOIN_MEMCPY,
			.blocks = 1 },
	};
	const struct join_activity activity = { 9, 510000, 550000, 64, 2, JOIN_MEMCPY, 0 };
	uint32_t found;
	assert_int_equal(join_calls(calls, 2, &activity, 1, &found), 0);
	assert_int_equal(found, 1);
}

static void graphs_are_distinguished_by_what_they_hold(void **unused)
{
	const struct join_call calls[] = {
		{ .begin_ns = 1000, .end_ns = 2000, .name = 5, .kind = JOIN_GRAPH },
		{ .begin_ns = 3000, .end_ns = 4000, .name = 6, .kind = JOIN_GRAPH },
		{ .begin_ns = 5000, .end_ns = 6000, .name = 5, .kind = JOIN_GRAPH },
	};
	const struct join_activity activity[] = { { 1, 3500, 3600, 0, 6, JOIN_GRAPH, 0 },
		{ 2, 9000, 9900, 0, 5, JOIN_GRAPH, 0 }, { 3, 9950, 9990, 0, 77, JOIN_GRAPH, 0 } };
	uint32_t found[3];
	assert_int_equal(join_calls(calls, 3, activity, 2, found), 0);
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 2);
	/* One of which a node was lost is a graph all the same. */
	assert_int_equal(join_calls(calls, 3, activity + 2, 1, found), 0);
	assert_int_equal(found[0], 0);
}

/* The plain way: the longest common subsequence under the same bounds, of one thread. */
static size_t longest(const struct scene *s)
{
	const size_t n = s->call_count, m = s->activity_count;
	uint32_t *row = calloc(n + 1, sizeof *row);
	for (size_t w = 0; w < m; w++) {
		uint32_t corner = 0;
		for (size_t c = 0; c < n; c++) {
			const uint32_t above = row[c + 1];
			const bool fits = s->calls[c].kind == s->activity[w].kind &&
					  s->calls[c].name == s->activity[w].name &&
					  s->calls[c].begin_ns <= s->activity[w].start_ns + 20000;
			const uint32_t best = above > row[c] ? above : row[c];
			row[c + 1] = fits && corner + 1 > best ? corner + 1 : best;
			corner = above;
		}
	}
	const size_t most = row[n];
	free(row);
	return most;
}

static void finds_nearly_as_many_as_the_plain_way(void **unused)
{
	for (uint64_t seed = 1; seed < 60; seed++) {
		struct plan p = { .threads = 1,
			.calls = 300,
			.pattern = seed % 3 ? 23 : 0,
			.kernels = 1 + (uint32_t)seed % 7,
			.kernel_ns = seed % 2 ? 900 : 30000,
			.step = 1 + (uint32_t)seed % 4,
			.lost_activities = 100 * (seed % 4),
			.lost_calls = 100 * (seed % 5 > 2),
			.seed = seed };
		struct scene s = play(&p);
		check_pairs(&s);
		const size_t most = longest(&s), found = score_of(&s).found;
		if (found + 4 < most * 90 / 100)
			fail_msg("seed %d: found %zu of %zu", (int)seed, found, most);
		scene_fini(&s);
	}
}

static void sorting_keeps_equal_calls_in_order(void **unused)
{
	struct join_call calls[999];
	state = 3;
	for (uint32_t i = 0; i < COUNT_OF(calls); i++)
		calls[i] = (struct join_call){ .begin_ns = draw(100), .id = i };
	join_sort(calls, COUNT_OF(calls));
	for (uint32_t i = 1; i < COUNT_OF(calls); i++)
		assert_true(calls[i - 1].begin_ns < calls[i].begin_ns ||
			    (calls[i - 1].begin_ns == calls[i].begin_ns &&
				    calls[i - 1].id < calls[i].id));
}

/* Said, not judged: how long ten million launches of four threads take. */
static void ten_million_launches(void **unused)
{
	if (!getenv("WEIR_JOIN_SPEED"))
		skip();
	struct plan p = { .threads = 4,
		.calls = 2500000,
		.pattern = 301,
		.kernels = 60,
		.kernel_ns = 2000,
		.step = 2,
		.lost_activities = 1 };
	struct scene s = play(&p);
	struct timespec a, b;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	assert_int_equal(
		join_calls(s.calls, s.call_count, s.activity, s.activity_count, s.found), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	const struct score c = score_of(&s);
	print_message("%zu calls: %.3f s, found %zu, right %zu of %zu\n", s.call_count,
		(double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, c.found,
		c.right, c.wanted);
	scene_fini(&s);
}

/* A level that leaves out the launches of most kernels: the others are not looked for for ever,
 * and nothing is joined that does not fit. */
static void most_work_without_calls(void **unused)
{
	struct plan p = { .threads = 1,
		.calls = 200000,
		.pattern = 301,
		.kernels = 60,
		.kernel_ns = 2000,
		.step = 2,
		.wait_every = 1000 };
	struct scene s = play(&p);
	for (size_t i = 0; i < s.call_count; i++)
		if (s.calls[i].kind == JOIN_KERNEL)
			s.calls[i].name += 1000;
	assert_int_equal(
		join_calls(s.calls, s.call_count, s.activity, s.activity_count, s.found), 0);
	assert_int_equal(score_of(&s).found, 0);
	scene_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_loses_nothing),
		cmocka_unit_test(deep_queues_do_not_matter),
		cmocka_unit_test(threads_overlap),
		cmocka_unit_test(numbers_are_given_out_by_the_call_around),
		cmocka_unit_test(identical_kernels_of_threads_all_find_a_call),
		cmocka_unit_test(identical_kernels_are_distinguished_by_their_streams),
		cmocka_unit_test(lost_work_costs_only_itself),
		cmocka_unit_test(lost_calls_cost_only_themselves),
		cmocka_unit_test(threads_that_lose_both),
		cmocka_unit_test(a_lost_buffer_of_work_is_stepped_over),
		cmocka_unit_test(calls_that_were_not_recorded_for_a_while),
		cmocka_unit_test(recordings_that_begin_at_different_times),
		cmocka_unit_test(nothing_at_all),
		cmocka_unit_test(a_call_never_begins_after_its_work),
		cmocka_unit_test(a_copy_that_blocks_ends_after_its_work),
		cmocka_unit_test(graphs_are_distinguished_by_what_they_hold),
		cmocka_unit_test(finds_nearly_as_many_as_the_plain_way),
		cmocka_unit_test(sorting_keeps_equal_calls_in_order),
		cmocka_unit_test(most_work_without_calls),
		cmocka_unit_test(ten_million_launches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
