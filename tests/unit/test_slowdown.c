/*
 * The budget of best effort follows the slowdown of requests: held against pairs of programs whose
 * answer is known, on a clock of their own.
 *
 * A pair is a latency program (how long a request takes, how often one comes), a best-effort one
 * (how long its kernels are, how much it has to have in flight so that its host does not slow it
 * down) and a law of what its work in flight does to a request.  The best constant budget's results
 * are found by trying them.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "share/alone.h"
#include "share/slowdown.h"

#define PAIRS  ROUNDS(200, 20)
#define TICK   5000000u
#define LEAST  40000.0
#define MOST   20000000.0
#define TARGET SLOWDOWN_DEFAULT

struct pair {
	double lasts_ns, spread; /* of a request alone */
	uint32_t run;            /* tokens of which it consists, told together */
	double rate;             /* a second */
	bool is_periodic;
	double kernel_ns, hungry_ns; /* in flight, with which it has half of its rate */
	double busy;                 /* share of the time in which it has work on the device */
	double harm;                 /* of a ns in flight, to a request */
	uint32_t meets;              /* so often a request finds work in flight */
};

static uint64_t chance;

static double draw(void)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (double)(chance >> 11) / 9007199254740992.0;
}

static double between(double low, double high)
{
	return low * pow(high / low, draw());
}

static double normal(void)
{
	return sqrt(-2 * log(1 - draw())) * cos(6.283185307179586 * draw());
}

static struct pair some_pair(void)
{
	struct pair p = { .lasts_ns = between(200e3, 20e6), .spread = between(0.01, 0.1) };
	p.rate = between(0.03, 0.3) / p.lasts_ns * 1e9;
	p.rate = p.rate > 1000 ? 1000 : p.rate < 20 ? 20 : p.rate;
	p.is_periodic = draw() < 0.3;
	p.run = draw() < 0.5 ? 1 : (uint32_t)between(2, 200);
	p.kernel_ns = between(5e3, 400e3);
	p.hungry_ns = between(5e3, 300e3);
	p.busy = draw() < 0.7 ? 1 : between(0.6, 1);
	p.harm = between(0.3, 1);
	p.meets = 1;
	return p;
}

/* Some tokens of an answer are late, and best effort gets in before them. */
static struct pair some_long_pair(void)
{
	struct pair p = some_pair();
	p.lasts_ns = between(20e6, 200e6);
	p.rate = fmax(1, between(0.1, 0.3) / p.lasts_ns * 1e9);
	p.meets = (uint32_t)between(1 + p.run / 8.0, p.run);
	return p;
}

struct run {
	struct pair pair;
	struct slowdown *loop; /* NULL: a constant budget */
	double budget_ns;
	double now_ns, due_ns, free_ns; /* free: when the latency program is */
	double held_since_ns;           /* -1: not held */
	double work_ns, held_ns;        /* of best effort */
	/* Requests of which the loop has not heard. */
	struct {
		double end_ns;
		uint64_t request;
	} ended[4096];
	uint32_t head, tail;
	/* The users' times from `from_ns` on. */
	double from_ns, from_work_ns, from_held_ns;
	float *took;
	uint32_t count, room;
	double waited_ns; /* and their waits */
};

static double efficiency(const struct pair *p, double budget_ns)
{
	const double n = budget_ns > p->kernel_ns ? budget_ns : p->kernel_ns;
	return p->busy * n / (n + p->hungry_ns);
}

static double in_flight(const struct pair *p, double budget_ns)
{
	const double whole =
		budget_ns > p->kernel_ns ? floor((budget_ns - p->kernel_ns) / p->kernel_ns) : 0;
	return draw() < p->busy ? p->kernel_ns * (draw() + whole) : 0;
}

static double gap(const struct pair *p)
{
	return 1e9 / p->rate * (p->is_periodic ? 1 + 0.1 * (draw() - 0.5) : -log(1 - draw()));
}

static void note(struct run *r, double took_ns, double waited_ns)
{
	if (r->now_ns < r->from_ns || r->count == r->room)
		return;
	r->took[r->count++] = (float)took_ns;
	r->waited_ns += waited_ns;
}

static void request(struct run *r)
{
	const struct pair *p = &r->pair;
	const double begin = r->due_ns > r->free_ns ? r->due_ns : r->free_ns;
	const double own = p->lasts_ns * exp(p->spread * normal());
	const bool held = r->held_since_ns >= 0;
	double left = 0;
	for (uint32_t i = 0; i < (held ? 1 : p->meets); i++)
		left += in_flight(p, r->budget_ns);
	if (held)
		left = left > begin - r->held_since_ns ? left - (begin - r->held_since_ns) : 0;
	const double end = begin + own + p->harm * left;
	r->work_ns += left;
	if (!held && begin > r->free_ns)
		r->work_ns += efficiency(p, r->budget_ns) * (begin - r->free_ns);
	r->ended[r->head % 4096].end_ns = end;
	r->ended[r->head++ % 4096].request = share_packed((uint64_t)(end - begin) / p->run, p->run,
		(left <= 0 ? SHARE_ALONE : 0) | (p->is_periodic ? SHARE_REGULAR : 0));
	if (!held)
		note(r, end - begin, begin - r->due_ns);
	r->free_ns = end;
	r->due_ns += gap(p);
}

/* As policy fit has it. */
static double least_of(const struct pair *p)
{
	return fmax(LEAST, slowdown_least(p->lasts_ns / p->run, TARGET));
}

static void step(struct run *r)
{
	static struct slowdown_input in;
	uint64_t heard[4096];
	uint32_t n = 0;
	while (r->tail != r->head && r->ended[r->tail % 4096].end_ns <= r->now_ns)
		heard[n++] = r->ended[r->tail++ % 4096].request;
	if (!r->loop)
		return;
	in = (struct slowdown_input){ .now_ns = (uint64_t)r->now_ns + 1,
		.has_best_effort = true,
		.first_ns = fmin(fmax(LEAST, r->pair.lasts_ns / 4), 8e6),
		.least_ns = least_of(&r->pair),
		.most_ns = MOST };
	in.seen[3] =
		(struct slowdown_seen){ .who = 7, .target = TARGET, .request = heard, .count = n };
	slowdown_step(r->loop, &in);
	r->budget_ns = r->loop->budget_ns;
	if (r->loop->window && r->held_since_ns < 0)
		r->held_since_ns = r->now_ns;
	if (!r->loop->window)
		r->held_since_ns = -1;
}

static void run_until(struct run *r, double ns)
{
	while (r->now_ns < ns) {
		const bool is_long = r->pair.lasts_ns > 20e6;
		const double tick = fmax(
			r->held_since_ns >= 0 ? 1e6 : TICK, is_long ? r->pair.lasts_ns / 8 : 0);
		r->now_ns += tick;
		if (r->held_since_ns >= 0)
			r->held_ns += tick;
		while ((r->due_ns > r->free_ns ? r->due_ns : r->free_ns) < r->now_ns)
			request(r);
		if (r->free_ns < r->now_ns) { /* between requests */
			if (r->held_since_ns < 0)
				r->work_ns += efficiency(&r->pair, r->budget_ns) *
					      (r->now_ns - r->free_ns);
			r->free_ns = r->now_ns;
		}
		step(r);
	}
}

/* The results since from_ns. */
struct gave {
	double p50, p90, work, held, load;
};

static int by_size(const void *one, const void *two)
{
	const float a = *(const float *)one, b = *(const float *)two;
	return (a > b) - (a < b);
}

static struct gave gave(struct run *r)
{
	qsort(r->took, r->count, sizeof *r->took, by_size);
	const double ns = r->now_ns - r->from_ns, alone = r->pair.lasts_ns;
	assert_true(r->count > 50);
	return (struct gave){ (double)r->took[r->count / 2] / alone,
		(double)r->took[r->count * 9 / 10] / (alone * exp(1.2816 * r->pair.spread)),
		(r->work_ns - r->from_work_ns) / ns, (r->held_ns - r->from_held_ns) / ns,
		r->pair.rate * alone / 1e9 };
}

static void count_from_now(struct run *r)
{
	r->from_ns = r->now_ns;
	r->from_work_ns = r->work_ns;
	r->from_held_ns = r->held_ns;
	r->count = 0;
}

static float took[100000];

static struct run begin(const struct pair *p, struct slowdown *loop, double budget_ns)
{
	return (struct run){ .pair = *p,
		.loop = loop,
		.budget_ns = budget_ns,
		.held_since_ns = -1,
		.due_ns = gap(p),
		.took = took,
		.room = sizeof took / sizeof *took };
}

static struct gave with_constant(const struct pair *p, double budget_ns)
{
	static struct run r;
	r = begin(p, NULL, budget_ns);
	run_until(&r, 2500 / p->rate * 1e9);
	return gave(&r);
}

static double worse(const struct gave *g)
{
	return g->p50 > g->p90 ? g->p50 : g->p90;
}

static double allowed(const struct pair *p)
{
	return p->is_periodic ? TARGET : slowdown_allowed(TARGET, p->rate * p->lasts_ns / 1e9);
}

/* The results of the best constant budget; least_ns if all are too much. */
static struct gave best(const struct pair *p, double *ret_budget_ns)
{
	struct gave best = with_constant(p, LEAST);
	*ret_budget_ns = LEAST;
	for (double b = LEAST * 1.2; b < MOST; b *= 1.2) {
		const struct gave g = with_constant(p, b);
		if (worse(&g) > allowed(p))
			break;
		best = g;
		*ret_budget_ns = b;
	}
	return best;
}

static struct slowdown loop;

/* As those of another run. */
static struct run run_of(const struct pair *p)
{
	memset(&loop, 0, sizeof loop);
	return begin(p, &loop, 0);
}

/* Whether what was given from now on, for so many requests, is what it is to be. */
static bool is_right(struct run *r, double requests, const struct gave *most, bool says)
{
	const struct pair *p = &r->pair;
	const double limit = fmax(allowed(p), worse(most));
	count_from_now(r);
	run_until(r, r->now_ns + requests / p->rate * 1e9 + 10e9);
	const struct gave g = gave(r);
	const bool right = worse(&g) < limit + 0.03 && g.work > 0.95 * most->work && g.held <= 0.03;
	if (says && !right)
		printf("%.0f us in %u, of which %u meet, %.0f/s %s, kernels %.0f us, half at %.0f us, busy %.2f, harm %.2f: p50 %.3f p90 %.3f of %.3f, work %.3f of %.3f, held %.3f\n",
			p->lasts_ns / 1e3, p->run, p->meets, p->rate,
			p->is_periodic ? "periodic" : "random", p->kernel_ns / 1e3,
			p->hungry_ns / 1e3, p->busy, p->harm, g.p50, g.p90, limit, g.work,
			most->work, g.held);
	assert_true(worse(&g) < limit + 0.08 && g.work > 0.8 * most->work && g.held <= 0.03);
	return right;
}

static void any_pair_is_steered_to_its_target(void **state)
{
	int off = 0;
	for (int i = 0; i < PAIRS; i++) {
		double budget;
		chance = (uint64_t)i * 7919 + 1;
		const struct pair p = some_pair();
		const struct gave most = best(&p, &budget);
		struct run r = run_of(&p);
		run_until(&r, 600 / p.rate * 1e9 + 2e9);
		off += !is_right(&r, 3000, &most, true);
		const double lasts = slowdown_lasts(&loop.program[3]) / p.lasts_ns;
		assert_true(lasts > 0.95 && lasts < 1.05);
	}
	assert_in_range(off, 0, PAIRS / 100);
}

static void long_requests_are_steered_to_it_too(void **state)
{
	int off = 0;
	for (int i = 0; i < ROUNDS(12, 4); i++) {
		double budget;
		chance = (uint64_t)i * 4211 + 1;
		const struct pair p = some_long_pair();
		const struct gave most = best(&p, &budget);
		struct run r = run_of(&p);
		run_until(&r, 1500 / p.rate * 1e9);
		off += !is_right(&r, 3000, &most, true);
	}
	assert_in_range(off, 0, 1);
}

/* From the first request beside best effort on: the time until ten looks in a row are near what it
 * is to be, of pairs of 100 to 200 requests a second. */
static void it_settles_within_seconds(void **state)
{
	float settled[100];
	for (int i = 0; i < 100; i++) {
		double budget, near = 0;
		chance = (uint64_t)i * 104729 + 5;
		struct pair p = some_pair();
		p.rate = between(100, 200);
		p.lasts_ns = between(0.05, 0.25) / p.rate * 1e9;
		const struct gave most = best(&p, &budget);
		struct run r = run_of(&p);
		loop.budget_ns = i % 2 ? LEAST : 3e6; /* far from it, on both sides */
		loop.moved = true;
		while (near < 10 && r.now_ns < 60e9) {
			run_until(&r, r.now_ns + 50e6);
			near = efficiency(&p, r.budget_ns) >
						       0.93 * most.work /
							       (1 - p.rate * p.lasts_ns / 1e9) *
							       0.9 &&
					       r.budget_ns < 1.6 * fmax(budget, p.kernel_ns)
				       ? near + 1
				       : 0;
		}
		settled[i] = (float)((r.now_ns - 500e6) / 1e9);
	}
	qsort(settled, 100, sizeof *settled, by_size);
	printf("settled after %.2f s in the median, p90 %.2f s\n", (double)settled[50],
		(double)settled[90]);
	assert_true(settled[50] < 2 && settled[90] < 6);
}

static void it_follows_a_pair_that_changes(void **state)
{
	int off = 0;
	for (int i = 0; i < ROUNDS(30, 6); i++) {
		double budget;
		chance = (uint64_t)i * 6007 + 9;
		struct pair p = some_pair(), other = some_pair();
		struct run r = run_of(&p);
		run_until(&r, 1000 / p.rate * 1e9);
		r.pair.kernel_ns = other.kernel_ns;
		r.pair.hungry_ns = other.hungry_ns;
		r.pair.harm = other.harm;
		const struct gave most = best(&r.pair, &budget);
		r.took = took;
		run_until(&r, r.now_ns + 1500 / p.rate * 1e9 + 5e9);
		off += !is_right(&r, 3000, &most, true);
	}
	assert_in_range(off, 0, 1);
}

/* All that runs takes a third longer from now on, and again less. */
static void a_change_of_clocks_is_no_slowdown(void **state)
{
	int off = 0;
	for (int i = 0; i < ROUNDS(30, 6); i++) {
		double budget;
		chance = (uint64_t)i * 3571 + 2;
		const struct pair before = some_pair();
		struct run r = run_of(&before);
		run_until(&r, 1000 / before.rate * 1e9);
		for (int k = 0; k < 2; k++) {
			const double by = k ? 1 / 1.33 : 1.33;
			r.pair.lasts_ns *= by;
			r.pair.kernel_ns *= by;
			const struct gave most = best(&r.pair, &budget);
			run_until(&r, r.now_ns + 3000 / before.rate * 1e9 + 30e9);
			off += !is_right(&r, 3000, &most, true);
		}
	}
	assert_in_range(off, 0, 2);
}

static struct slowdown_input input;

/* So many requests, at once; whether best effort is held. */
static bool feed(uint32_t n, double ns, bool alone)
{
	uint64_t heard[64];
	for (uint32_t i = 0; i < n; i++)
		heard[i] = share_packed((uint64_t)ns, 1, alone);
	input.now_ns += TICK;
	input.seen[0].request = heard;
	input.seen[0].count = n;
	slowdown_step(&loop, &input);
	return loop.window;
}

static void begin_input(void)
{
	memset(&loop, 0, sizeof loop);
	input = (struct slowdown_input){ .now_ns = 1,
		.has_best_effort = true,
		.has_caps = true,
		.first_ns = 250e3,
		.least_ns = LEAST,
		.most_ns = MOST };
	input.seen[0] = (struct slowdown_seen){ .who = 1, .target = TARGET };
}

static void without_requests_nothing_changes(void **state)
{
	begin_input();
	for (int i = 0; i < 20000; i++)
		assert_false(feed(0, 0, false));
	assert_true(loop.budget_ns == 250e3);
	for (int i = 0; i < 20000; i++) /* one in ten seconds: windows would not see it */
		assert_false(feed(i % 2000 == 0, 1e6, false));
	assert_true(loop.budget_ns == 250e3 && loop.windows_ns == 0);
	assert_int_equal(loop.program[0].steer.reason, STEER_NO_BASELINE);
}

static void what_is_known_of_before_is_used_at_once(void **state)
{
	begin_input();
	feed(1, 1e6, false);
	slowdown_remember(
		&loop.program[0], &(struct slowdown_alone){ 1e6, 1.1e6, 1.3e6, 32 }, false);
	for (int i = 0; i < 40; i++)
		feed(2, 1.5e6, false);
	assert_true(loop.budget_ns < 250e3);
	assert_int_equal(loop.program[0].steer.alone_p50_ns, 1000000);
	assert_in_range(loop.program[0].steer.p50, 1490, 1510);
	assert_true(slowdown_lasts(&loop.program[0]) == 32e6);
}

/* Best effort always has work, so that requests never are alone: that is tried for five seconds. */
static void what_cannot_be_found_is_not_sought_for_ever(void **state)
{
	begin_input();
	for (int i = 0; i < 60000; i++)
		feed(1, 1e6, false);
	assert_int_equal(loop.program[0].steer.reason, STEER_NO_BASELINE);
	assert_true(loop.windows_ns > 4e9 && loop.windows_ns < 5.5e9 + 0.022 * loop.passed_ns);
}

/* Windows of requests of 50 ms: what is known from before makes them rare at once, and says nothing
 * of requests where it was measured under MPS and these are not, or the other way. */
static void windows_are_rare_where_requests_were_measured(void **state)
{
	const struct slowdown_alone known = { 50e6, 52e6, 55e6, 1 };
	const struct {
		bool remembers, elsewhere;
		double least, most;
	} t[] = { { false, false, 0.15, 0.21 }, { true, true, 0.01, 0.023 },
		{ true, false, 0, 0.011 } };
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		begin_input();
		feed(1, 50e6, false);
		if (t[i].remembers)
			slowdown_remember(&loop.program[0], &known, t[i].elsewhere);
		for (int k = 1; k < 4000; k++) /* 20 s */
			feed(k % 40 == 0, 51e6, false);
		const double beyond =
			loop.windows_ns - 2 * (8e6 + 2 * 50e6); /* the credit of the begin */
		assert_true(beyond < t[i].most * loop.passed_ns);
		assert_true(loop.windows_ns > t[i].least * loop.passed_ns);
		assert_int_equal(loop.program[0].steer.alone_p50_ns,
			t[i].remembers && !t[i].elsewhere ? 50000000 : 0);
	}
}

/* A program that starts has requests of another kind, up to twenty times quicker or slower: they
 * are no baseline for long, and the budget does not fall for those that are much quicker. */
static void what_is_known_of_others_is_forgotten(void **state)
{
	for (int k = 0; k < 100; k++) {
		chance = (uint64_t)k * 7867 + 3;
		const double others = between(0.05e6, 20e6);
		const bool is_quicker = others<1.0e6 / 1.6, is_slower = others> 1.6e6;
		begin_input();
		input.has_best_effort = false;
		for (int i = 0; i < 30; i++)
			feed(1, others, true);
		assert_false(slowdown_has_begun(&loop.program[0]));
		input.has_best_effort = true;
		int held = 0, first = 0;
		for (int i = 1; i <= 4000; i++) {
			const bool window = loop.window;
			feed(1, window ? 1.0e6 : 1.02e6, window);
			held += window;
			first = first ? first : loop.program[0].steer.p50 == 1020 ? i : 0;
			assert_true(!is_quicker || loop.budget_ns >= 250e3);
		}
		assert_true(slowdown_has_begun(&loop.program[0]));
		assert_int_equal(loop.program[0].steer.alone_p50_ns, 1000000);
		assert_in_range(first, 1, is_quicker || is_slower ? 200 : 4000);
		assert_in_range(held, 1, 200);
	}
}

/* Slower than asked with the least budget: caps go, and it is told. */
static void what_cannot_be_met_is_told(void **state)
{
	begin_input();
	for (int i = 0; i < 20; i++)
		feed(1, 1e6, true);
	for (int i = 0; i < 2000; i++)
		if (!feed(2, 2e6, false))
			feed(0, 0, false);
	assert_true(loop.budget_ns == LEAST);
	assert_int_equal(loop.squeeze, SLOWDOWN_SQUEEZES);
	assert_int_equal(loop.program[0].steer.reason, STEER_LEAST);
	assert_in_range(loop.program[0].steer.p90, 1990, 2010);
}

static void a_setting_that_is_fixed_stays(void **state)
{
	begin_input();
	input.is_fixed = true;
	for (int i = 0; i < 2000; i++)
		assert_false(feed(1, i % 2 ? 1e6 : 2e6, i % 2));
	assert_true(loop.budget_ns == 250e3);
	assert_int_equal(loop.program[0].steer.reason, STEER_FIXED);
	assert_in_range(loop.program[0].steer.p90, 1900, 2100);
}

/* The worst of all requests only: the 99th percentile takes what the others leave. */
static void a_tail_is_held_too(void **state)
{
	begin_input();
	for (int i = 0; i < 120; i++)
		feed(1, 1e6, true);
	for (int i = 0; i < 4000; i++)
		feed(1, i % 30 ? 1.12e6 : 1.8e6, false);
	assert_in_range(loop.program[0].steer.p99, 1700, 1900);
	assert_true(loop.program[0].tail < 0.7);
	assert_true(loop.budget_ns < 250e3);
}

/* Any process that may write to the file says anything. */
static void nonsense_is_survived(void **state)
{
	begin_input();
	chance = 1;
	for (int i = 0; i < 20000; i++) {
		uint64_t heard[8];
		for (int k = 0; k < 8; k++)
			heard[k] = (uint64_t)(draw() * 18446744073709549568.0) >>
				   (unsigned)(64 * draw());
		input.now_ns += (uint64_t)(draw() * 2e7);
		for (uint32_t k = 0; k < 3; k++)
			input.seen[k] = (struct slowdown_seen){ .who = (uint64_t)(draw() * 3),
				.target = 1 + draw() * draw(),
				.request = heard,
				.count = (uint32_t)(draw() * 9) };
		slowdown_step(&loop, &input);
		assert_true(loop.budget_ns >= LEAST && loop.budget_ns <= MOST);
	}
	assert_true(loop.windows_ns < 0.21 * loop.passed_ns + 1e8); /* all are new */
}

/* The 99th percentile of requests that come at random and take `lasts` each, one after another. */
static double tail_of_queue(double load, double lasts)
{
	enum { N = 200000 };
	float *latency = malloc(N * sizeof *latency);
	double free_at = 0, now = 0;
	chance = 1;
	for (int i = 0; i < N; i++) {
		now -= log(1 - draw()) / load;
		free_at = fmax(free_at, now) + lasts;
		latency[i] = (float)(free_at - now);
	}
	qsort(latency, N, sizeof *latency, by_size);
	const double p99 = (double)latency[N / 100 * 99];
	free(latency);
	return p99;
}

static void less_is_allowed_where_requests_queue(void **state)
{
	assert_true(fabs(slowdown_allowed(1.15, 0) - 1.15) < 0.001);
	assert_true(slowdown_allowed(1.15, 0.9) >= 1.075);
	for (double load = 0.02; load < 0.45; load += 0.07) {
		const double times = slowdown_allowed(1.15, load),
			     tail = tail_of_queue(load, times) / tail_of_queue(load, 1);
		assert_true(times > 1.075 && tail > 1.10 && tail < 1.175);
	}
}

static void put(struct known *k, const uint8_t uuid[16], uint64_t command,
	struct slowdown_alone alone, uint32_t fills)
{
	struct known_program p = { .command = command, .alone = alone, .fills = fills };
	memcpy(p.uuid, uuid, sizeof p.uuid);
	known_put(k, &p);
}

static void what_was_measured_is_kept(void **state)
{
	static const uint8_t one[16] = { 1, 0xab }, other[16] = { 2 };
	static struct known k, again;
	const uint64_t last = 2 * KNOWN_MOST, first = KNOWN_MOST + 1;
	char path[] = "/tmp/weir-alone.XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	for (uint64_t i = 1; i <= last; i++)
		put(&k, one, i, (struct slowdown_alone){ (double)i, 2e6, 3e6, 32.5 }, 60);
	put(&k, one, last, (struct slowdown_alone){ 5e5, 6e5, 7e5, 1 }, 0);
	put(&k, one, 0, (struct slowdown_alone){ 1, 2, 3, 1 }, 0);
	put(&k, one, 7, (struct slowdown_alone){ 3, 2, 1, 1 }, 0);
	put(&k, one, 8, (struct slowdown_alone){ 1, 2, 3, 0 }, 0);
	put(&k, one, 9, (struct slowdown_alone){ 1, 2, 3, SHARE_RUN + 1.0 }, 0);
	put(&k, one, 10, (struct slowdown_alone){ 1, 2, 3, 1 }, 101);
	assert_true(k.changed && known_write(&k, path) && !k.changed);
	close(fd);
	known_read(&again, path);
	assert_int_equal(again.count, KNOWN_MOST);
	assert_true(known_find(&again, one, last)->alone.p50_ns == 5e5);
	assert_ptr_equal(known_find(&again, NULL, last), known_find(&again, one, last));
	assert_true(known_find(&again, one, first)->alone.p50_ns == (double)first);
	assert_true(known_find(&again, one, first)->alone.run == 32.5);
	assert_int_equal(known_find(&again, one, first)->fills, 60);
	assert_null(known_find(&again, one, KNOWN_MOST));
	assert_null(known_find(&again, other, last));
	assert_null(known_find(&again, one, 0));
	unlink(path);
}

/* A guess tells weir run whether MPS suits the program, and gives way to what was measured. */
static void a_guess_is_kept_where_nothing_was_measured(void **state)
{
	static const uint8_t gpu[16] = { 1 };
	static struct known k, again;
	char path[] = "/tmp/weir-alone.XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	begin_input();
	struct known_program p = { .uuid = { 1 }, .command = 9, .mps = 1, .guess = 1 };
	assert_false(slowdown_guess(&loop.program[0], &p.alone));
	for (int i = 0; i < 80; i++)
		feed(1, i % 3 ? 60e6 : 55e6, false);
	assert_false(slowdown_learnt(&loop.program[0], &(struct slowdown_alone){ 0 }));
	assert_true(slowdown_guess(&loop.program[0], &p.alone) && p.alone.p50_ns == 55e6);
	known_put(&k, &p);
	assert_true(known_write(&k, path));
	known_read(&again, path);
	const struct known_program *is = known_find(&again, gpu, 9);
	assert_true(is && is->guess && known_takes_turns(is));
	p.guess = 0;
	p.alone.p50_ns = 50e6;
	known_put(&again, &p);
	p.guess = 1;
	for (p.mps = 0; p.mps < 2; p.mps++) {
		known_put(&again, &p);
		is = known_find(&again, gpu, 9);
		assert_true(!is->guess && is->mps == 1 && is->alone.p50_ns == 50e6);
	}
	close(fd);
	unlink(path);
}

static void only_what_was_measured_the_same_way_is_compared_with(void **state)
{
	for (uint32_t i = 0; i < 8; i++) {
		const struct known_program k = {
			.alone = { 1e6, 1.1e6, 1.2e6, 32 }, .guess = i & 1, .mps = i >> 1 & 1
		};
		struct slowdown_program p = { 0 };
		known_remind(&k, i >> 2, &p);
		const bool is_same = !k.guess && k.mps == i >> 2;
		assert_true(slowdown_lasts(&p) == (is_same ? 32e6 : 0));
		assert_int_equal(p.was_elsewhere, !is_same);
	}
}

/* Answers of 32 tokens, requests of 1 ms, and what leaves SMs to best effort. */
static void long_requests_on_all_sms_take_turns(void **state)
{
	struct known_program p = { .alone = { 1.4e6, 1.5e6, 1.6e6, 32 }, .fills = 100 };
	assert_true(known_takes_turns(&p));
	p.fills = 0;
	assert_true(known_takes_turns(&p));
	p.fills = 50;
	assert_false(known_takes_turns(&p));
	p = (struct known_program){ .alone = { 18e6, 18e6, 18e6, 1 }, .fills = 100 };
	assert_true(known_takes_turns(&p)); /* and goes on to */
	p.mps = 1;
	assert_false(known_takes_turns(&p));
	p = (struct known_program){ .alone = { 1e6, 1e6, 1e6, 1 }, .fills = 100 };
	assert_false(known_takes_turns(&p));
}

static void a_file_of_anything_is_survived(void **state)
{
	static struct known k;
	char path[] = "/tmp/weir-alone.XXXXXX";
	const int fd = mkstemp(path);
	chance = 3;
	for (int i = 0; i < 20000; i++)
		dprintf(fd, "%c", "0123456789abcdef .-\nnife"[(int)(draw() * 24)]);
	dprintf(fd, "\n01000000000000000000000000000000 9 nan inf -1 1 1 1\n");
	dprintf(fd, "01000000000000000000000000000000 9 1e99 1e99 1e99 1 1 1\n");
	close(fd);
	known_read(&k, path);
	for (uint32_t i = 0; i < k.count; i++)
		assert_true(k.program[i].alone.p50_ns >= 1 && k.program[i].alone.p99_ns < 1e13);
	unlink(path);
	memset(&k, 0, sizeof k);
	known_read(&k, path); /* there is none */
	assert_int_equal(k.count, 0);
	assert_false(known_write(&k, "/nowhere/alone"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_pair_is_steered_to_its_target),
		cmocka_unit_test(long_requests_are_steered_to_it_too),
		cmocka_unit_test(it_settles_within_seconds),
		cmocka_unit_test(it_follows_a_pair_that_changes),
		cmocka_unit_test(a_change_of_clocks_is_no_slowdown),
		cmocka_unit_test(without_requests_nothing_changes),
		cmocka_unit_test(what_is_known_of_before_is_used_at_once),
		cmocka_unit_test(what_cannot_be_found_is_not_sought_for_ever),
		cmocka_unit_test(windows_are_rare_where_requests_were_measured),
		cmocka_unit_test(what_is_known_of_others_is_forgotten),
		cmocka_unit_test(what_cannot_be_met_is_told),
		cmocka_unit_test(a_setting_that_is_fixed_stays),
		cmocka_unit_test(a_tail_is_held_too),
		cmocka_unit_test(nonsense_is_survived),
		cmocka_unit_test(less_is_allowed_where_requests_queue),
		cmocka_unit_test(what_was_measured_is_kept),
		cmocka_unit_test(a_guess_is_kept_where_nothing_was_measured),
		cmocka_unit_test(only_what_was_measured_the_same_way_is_compared_with),
		cmocka_unit_test(long_requests_on_all_sms_take_turns),
		cmocka_unit_test(a_file_of_anything_is_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
