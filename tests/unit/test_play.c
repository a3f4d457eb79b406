/*
 * Playing the calls of a program (src/reconstruct/play.c): what it must obey, for programs made at
 * random, whatever is said of durations; and where work lies when all is known.
 */
#include "unit.h"

#include "reconstruct/play.h"

#define PROGRAMS 400
#define STREAMS  5u
#define EVENTS   4u

static uint64_t state = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

/* A program that could have run: host times go on, a wait is for what was called before. */
struct maker {
	struct play_program p;
	uint64_t now;
	uint32_t newest[STREAMS], event[EVENTS];
};

static uint32_t add_step(struct maker *m, uint32_t stream, bool is_mark)
{
	const uint64_t took = random_below(8) ? 500 + random_below(5000) : random_below(300000);
	const uint64_t measured = m->now + random_below(200000);
	*array_push(&m->p.steps) = (struct play_step){ .called_ns = m->now,
		.returned_ns = m->now + took,
		.dur_ns = random_below(3) ? random_below(50000) : random_below(5000000),
		.dur_sd_ns = random_below(20000),
		.start_ns = measured,
		.end_ns = measured + random_below(100000),
		.stream = stream,
		.is_mark = is_mark,
		.is_measured = !is_mark && !random_below(6),
		.blocks = !random_below(10) };
	m->now += took * random_below(2) + random_below(3000);
	return m->newest[stream] = (uint32_t)(m->p.steps.n - 1);
}

static void add_await(struct maker *m, uint32_t stream)
{
	const uint32_t before = m->event[random_below(EVENTS)];
	const uint32_t after = add_step(m, stream, true);
	if (before != PLAY_NONE)
		*array_push(&m->p.edges) = (struct play_edge){ before, after };
}

static void add_wait(struct maker *m)
{
	const uint32_t first = (uint32_t)m->p.waited.n, all = random_below(2);
	for (uint32_t i = 0; i < STREAMS; i++)
		if (m->newest[i] != PLAY_NONE && (all || !random_below(3)))
			*array_push(&m->p.waited) = m->newest[i];
	const uint64_t took = random_below(2) ? random_below(4000) : random_below(3000000);
	*array_push(&m->p.waits) =
		(struct play_wait){ m->now, m->now + took, first, (uint32_t)m->p.waited.n - first };
	m->now += took;
}

static struct maker make(void)
{
	struct maker m = { .now = 1000000000 };
	m.p.streams = STREAMS;
	m.p.delays = play_usual;
	m.p.delays.reach_ns = (int64_t)random_below(8000) - 2000;
	for (uint32_t i = 0; i < STREAMS; i++)
		m.newest[i] = PLAY_NONE;
	for (uint32_t i = 0; i < EVENTS; i++)
		m.event[i] = PLAY_NONE;
	for (uint64_t n = 1 + random_below(300); n; n--) {
		const uint32_t stream = (uint32_t)random_below(STREAMS);
		const uint64_t what = random_below(10);
		if (what == 0)
			m.event[random_below(EVENTS)] = add_step(&m, stream, true);
		else if (what == 1)
			add_await(&m, stream);
		else if (what == 2)
			add_wait(&m);
		else
			add_step(&m, stream, false);
	}
	return m;
}

static void check_streams(const struct play_program *p, const struct play_time *t)
{
	uint64_t end[STREAMS] = { 0 };
	for (size_t i = 0; i < p->steps.n; i++) {
		const struct play_step *s = &p->steps.v[i];
		assert_true(t[i].end_ns >= t[i].start_ns);
		assert_true(t[i].start_ns >= s->called_ns);
		assert_true(t[i].start_ns >= end[s->stream]);
		end[s->stream] = t[i].end_ns;
	}
}

static void check_order(const struct play_program *p, const struct play_time *t)
{
	for (size_t i = 0; i < p->edges.n; i++)
		assert_true(t[p->edges.v[i].after].start_ns >= t[p->edges.v[i].before].end_ns);
	for (size_t i = 0; i < p->waits.n; i++) {
		const struct play_wait *w = &p->waits.v[i];
		for (uint32_t k = w->first; k < w->first + w->count; k++)
			assert_true(t[p->waited.v[k]].end_ns <= w->returned_ns);
	}
}

static void random_programs_obey_order_calls_and_waits(void **state_)
{
	for (int i = 0; i < PROGRAMS; i++) {
		struct maker m = make();
		struct play_time *t = calloc(m.p.steps.n + 1, sizeof *t);
		assert_non_null(t);
		play(&m.p, t);
		check_streams(&m.p, t);
		check_order(&m.p, t);
		free(t);
		play_program_fini(&m.p);
	}
}

static struct play_program launches(uint32_t n, uint64_t every_ns, uint64_t dur_ns, uint64_t sd_ns)
{
	struct play_program p = { .streams = 1,
		.delays = { .return_ns = 1000, .measure_ns = 100 } };
	for (uint32_t i = 0; i < n; i++)
		*array_push(&p.steps) = (struct play_step){ .called_ns = 1000 + i * every_ns,
			.returned_ns = 1500 + i * every_ns,
			.dur_ns = dur_ns,
			.dur_sd_ns = sd_ns };
	return p;
}

static void wait_for(struct play_program *p, uint32_t step, uint64_t from, uint64_t to)
{
	*array_push(&p->waited) = step;
	*array_push(&p->waits) = (struct play_wait){ from, to, (uint32_t)p->waited.n - 1, 1 };
}

static void a_fast_host_fills_the_stream(void **state_)
{
	struct play_program p = launches(10, 1000, 50000, 100);
	struct play_time t[10];
	play(&p, t);
	assert_int_equal(t[0].start_ns, 1500);
	for (int i = 1; i < 10; i++)
		assert_int_equal(t[i].start_ns, t[i - 1].end_ns);
	assert_int_equal(t[9].end_ns, 1500 + 10 * 50000);
	play_program_fini(&p);
}

static void a_slow_host_leaves_gaps(void **state_)
{
	struct play_program p = launches(10, 80000, 50000, 100);
	struct play_time t[10];
	play(&p, t);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(t[i].start_ns, 1500 + 80000 * i);
		assert_int_equal(t[i].end_ns - t[i].start_ns, 50000);
		assert_true(t[i].is_idle);
	}
	play_program_fini(&p);
}

/* Ten launches are said to take 50 us, and the host that waited shows that they took 53. */
static void a_wait_says_how_long_it_took_together(void **state_)
{
	struct play_program p = launches(10, 1000, 50000, 5000);
	struct play_time t[10];
	wait_for(&p, 9, 20000, 1500 + 530000 + 1000);
	play(&p, t);
	assert_in_range(t[9].end_ns, 1500 + 529000, 1500 + 531000);
	for (int i = 0; i < 10; i++)
		assert_in_range(t[i].end_ns - t[i].start_ns, 52800, 53200);
	play_program_fini(&p);
}

static void a_host_that_comes_back_much_later_says_nothing(void **state_)
{
	struct play_program p = launches(10, 1000, 50000, 1000);
	struct play_time t[10];
	wait_for(&p, 9, 20000, 1500 + 900000);
	play(&p, t);
	assert_int_equal(t[9].end_ns, 1500 + 500000);
	play_program_fini(&p);
}

/* It can't have come back before: something took less than is said. */
static void a_host_that_comes_back_sooner_is_right(void **state_)
{
	struct play_program p = launches(10, 1000, 50000, 2000);
	struct play_time t[10];
	wait_for(&p, 9, 20000, 1500 + 480000);
	play(&p, t);
	assert_true(t[9].end_ns <= 1500 + 480000);
	for (int i = 0; i < 10; i++)
		assert_in_range(t[i].end_ns - t[i].start_ns, 47000, 48500);
	play_program_fini(&p);
}

/* The best-known time changes least. */
static void the_uncertain_give_way(void **state_)
{
	struct play_program p = launches(2, 1000, 50000, 100);
	struct play_time t[2];
	p.steps.v[1].dur_sd_ns = 20000;
	wait_for(&p, 1, 20000, 1500 + 120000 + 1000);
	play(&p, t);
	assert_in_range(t[0].end_ns - t[0].start_ns, 49990, 50010);
	assert_in_range(t[1].end_ns - t[1].start_ns, 69900, 70100);
	play_program_fini(&p);
}

static void what_was_measured_lies_where_it_was(void **state_)
{
	struct play_program p = launches(3, 1000, 50000, 2000);
	struct play_time t[3];
	p.steps.v[1].is_measured = true;
	p.steps.v[1].start_ns = 53500;
	p.steps.v[1].end_ns = 90000;
	play(&p, t);
	assert_int_equal(t[1].start_ns, 53500);
	assert_int_equal(t[1].end_ns, 90000);
	assert_in_range(t[0].end_ns, 53400, 53500);
	assert_int_equal(t[2].start_ns, 90000);
	assert_true(t[1].sd_ns < t[2].sd_ns);
	play_program_fini(&p);
}

static void a_stream_waits_for_the_event_of_another(void **state_)
{
	struct play_program p = launches(2, 1000, 50000, 100);
	struct play_time t[2];
	p.streams = 2;
	p.steps.v[1].stream = 1;
	play(&p, t);
	assert_int_equal(t[1].start_ns, 2500);
	*array_push(&p.edges) = (struct play_edge){ 0, 1 };
	play(&p, t);
	assert_int_equal(t[1].start_ns, t[0].end_ns);
	play_program_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs_obey_order_calls_and_waits),
		cmocka_unit_test(a_fast_host_fills_the_stream),
		cmocka_unit_test(a_slow_host_leaves_gaps),
		cmocka_unit_test(a_wait_says_how_long_it_took_together),
		cmocka_unit_test(a_host_that_comes_back_much_later_says_nothing),
		cmocka_unit_test(a_host_that_comes_back_sooner_is_right),
		cmocka_unit_test(the_uncertain_give_way),
		cmocka_unit_test(what_was_measured_lies_where_it_was),
		cmocka_unit_test(a_stream_waits_for_the_event_of_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
