/*
 * Plays the streams of a program in two passes. The forward pass places each step and fits the
 * steps between two measured moments. The backward pass moves ends before everything that must
 * follow.
 *
 * The backward pass always succeeds. A step was called before anything that waits for it, so no
 * bound from behind lies before one from the front.
 */
#include "reconstruct/play.h"

#include <math.h>

#include "base/expect.h"
#include "base/sort.h"

#define WAITED_NS   5000u  /* a host that took longer than this and return_ns has waited */
#define SD_MOST     3.0    /* standard deviations that durations may be off */
#define ALIKE_MOST  0.3    /* … and the part of all of them */
#define LEARN_MOST  100000 /* delays above are something else's: ns */
#define LEARN_LEAST 8u     /* so many measured ones are worth more than what is usual */

const struct play_delays play_usual = {
	.reach_ns = 3000,
	.behind_ns = 1200,
	.return_ns = 6000,
	.measure_ns = 2000,
};

/* The state while a program is played: arrays by step. */
struct player {
	const struct play_program *p;
	struct play_time *times;
	uint32_t *before; /* the step before it in its stream, or PLAY_NONE */
	uint64_t *most;   /* it ended then at the latest */
	double *variance; /* of where it ends */
	uint64_t *dur;    /* as fitted */
	uint32_t *newest; /* by stream: its last step so far */
	bool *is_fixed;   /* a measured moment: nothing in front of it is fitted again */
	size_t next_edge, next_wait;
};

static double square(double x)
{
	return x * x;
}

/* When the device could begin with it, were its stream idle. */
static uint64_t reach(const struct player *q, const struct play_step *s)
{
	const int64_t delay = q->p->delays.reach_ns;
	if (s->is_mark)
		return s->called_ns;
	const uint64_t from = s->blocks ? s->called_ns : s->returned_ns;
	const uint64_t at = delay < 0 && (uint64_t)-delay > from ? 0 : from + (uint64_t)delay;
	return MAX(at, s->called_ns);
}

static bool follows_work(const struct player *q, uint32_t i)
{
	const uint32_t before = q->before[i];
	return before != PLAY_NONE && !q->p->steps.v[i].is_mark && !q->p->steps.v[before].is_mark;
}

/* When the stream is free for step i. */
static uint64_t stream_free(const struct player *q, uint32_t i)
{
	const uint32_t before = q->before[i];
	const uint64_t gap = follows_work(q, i) ? q->p->delays.behind_ns : 0;
	return before == PLAY_NONE ? 0 : q->times[before].end_ns + gap;
}

/* The same of what it waits for in other streams.  Edges come in the order of steps. */
static uint64_t others_done(struct player *q, uint32_t i, double *ret_variance)
{
	uint64_t done = 0;
	for (; q->next_edge < q->p->edges.n && q->p->edges.v[q->next_edge].after == i;
		q->next_edge++) {
		const uint32_t before = q->p->edges.v[q->next_edge].before;
		if (!expect(before < i, "what is waited for was called before") ||
			q->times[before].end_ns <= done)
			continue;
		done = q->times[before].end_ns;
		*ret_variance = q->variance[before];
	}
	return done;
}

static void place(struct player *q, uint32_t i)
{
	const struct play_step *s = &q->p->steps.v[i];
	double variance = 0;
	const uint64_t other = others_done(q, i, &variance), free_at = stream_free(q, i);
	const uint64_t reached = reach(q, s), ready = MAX(reached, other);
	const uint64_t start = MAX(ready, free_at);
	q->times[i] = (struct play_time){ .start_ns = start,
		.end_ns = start + q->dur[i],
		.is_behind = q->before[i] != PLAY_NONE && free_at >= ready,
		.is_idle = reached > free_at && reached > other };
	if (q->times[i].is_behind)
		variance = q->variance[q->before[i]];
	else if (other < ready || !variance)
		variance = s->is_mark ? 0 : square((double)q->p->delays.measure_ns);
	q->variance[i] = variance + square((double)s->dur_sd_ns);
}

/* Steps that ran without a pause and without a measured moment between them. */
struct chain {
	uint32_t first, count;
	double variance, dur;
};

static struct chain chain_to(const struct player *q, uint32_t i)
{
	struct chain c = { 0 };
	for (;; i = q->before[i]) {
		c.first = i;
		c.count++;
		c.variance += square((double)q->p->steps.v[i].dur_sd_ns);
		c.dur += (double)q->dur[i];
		if (!q->times[i].is_behind || q->is_fixed[i] || q->is_fixed[q->before[i]])
			return c;
	}
}

static uint64_t changed(uint64_t dur, double by)
{
	const double to = (double)dur + by;
	return to < 1 ? (dur ? 1 : 0) : (uint64_t)to;
}

/* By how much a chain may be wrong: each duration by itself, and all of them in the same way. */
static double most_wrong(const struct chain *c)
{
	return SD_MOST * sqrt(c->variance) + ALIKE_MOST * c->dur;
}

/* Lets the steps up to i end later by so much, or sooner where it is negative: each by its part of
 * what is uncertain, and all by less where the moment itself is. */
static void fit(struct player *q, uint32_t i, double late_ns, double moment_sd_ns)
{
	const struct chain c = chain_to(q, i);
	const double most = most_wrong(&c), late = fmin(fmax(late_ns, -most), most);
	const double share = c.variance > 0 ? late / (c.variance + square(moment_sd_ns)) : 0;
	/* Backward, with what those in front will have moved by then. */
	double by = share * c.variance;
	for (uint32_t k = i, left = c.count; left; left--, k = q->before[k]) {
		const double own = share * square((double)q->p->steps.v[k].dur_sd_ns);
		struct play_time *t = &q->times[k];
		q->dur[k] = changed(q->dur[k], own);
		t->end_ns = changed(t->end_ns, by);
		by -= own;
		t->start_ns = changed(t->start_ns, by);
	}
	expect(fabs(by) <= fabs(late) * 1e-6 + 1, "a chain moves as asked");
	q->variance[i] = fmin(q->variance[i], square(moment_sd_ns) + 1);
}

/* A step that was measured lies where it was, and its stream had come to it by then. */
static void pin(struct player *q, uint32_t i)
{
	const struct play_step *s = &q->p->steps.v[i];
	struct play_time *t = &q->times[i];
	const uint32_t before = q->before[i];
	const uint64_t start = MAX(s->start_ns, s->called_ns);
	const double sd = (double)q->p->delays.measure_ns;
	if (before != PLAY_NONE && !q->is_fixed[before] &&
		(t->is_behind || q->times[before].end_ns > start)) {
		const uint64_t gap = follows_work(q, i) ? q->p->delays.behind_ns : 0;
		fit(q, before, (double)start - (double)(q->times[before].end_ns + gap), sd);
	}
	t->start_ns = before == PLAY_NONE ? start : MAX(start, q->times[before].end_ns);
	t->end_ns = MAX(t->start_ns, s->end_ns);
	q->dur[i] = t->end_ns - t->start_ns;
	q->variance[i] = square(sd);
	q->is_fixed[i] = true;
}

/* The step that ends last of those that a host waited for. */
static uint32_t last_of(const struct player *q, const struct play_wait *w)
{
	uint32_t last = PLAY_NONE;
	for (uint32_t k = w->first; k < w->first + w->count; k++) {
		const uint32_t i = q->p->waited.v[k];
		q->most[i] = MIN(q->most[i], w->returned_ns);
		if (last == PLAY_NONE || q->times[i].end_ns > q->times[last].end_ns)
			last = i;
	}
	return last;
}

/* A host may return long after the work has ended, when something else had its processor. */
static bool comes_late(const struct player *q, uint32_t i, double late_ns, double moment_sd_ns)
{
	const struct chain c = chain_to(q, i);
	return late_ns > SD_MOST * (sqrt(c.variance) + moment_sd_ns);
}

/* A host that really waited went on a moment after the work had ended. */
static void settle(struct player *q, const struct play_wait *w)
{
	const uint64_t back = q->p->delays.return_ns, took = w->returned_ns - w->called_ns;
	uint32_t i = last_of(q, w);
	const bool waited = took > back + WAITED_NS;
	if (i == PLAY_NONE)
		return;
	const uint64_t at = w->returned_ns - MIN(back, took);
	if (!waited && q->times[i].end_ns <= w->returned_ns)
		return;
	/* Events have no length: what they stand behind is fitted. */
	while (q->p->steps.v[i].is_mark && q->times[i].is_behind && !q->is_fixed[i])
		i = q->before[i];
	const double late = (double)at - (double)q->times[i].end_ns;
	const double sd = (double)MAX(back / 2, q->p->delays.measure_ns);
	if (q->is_fixed[i] || comes_late(q, i, late, sd))
		return;
	fit(q, i, late, sd);
	q->is_fixed[i] = true;
}

static void settle_until(struct player *q, uint64_t ns)
{
	while (q->next_wait < q->p->waits.n && q->p->waits.v[q->next_wait].called_ns < ns)
		settle(q, &q->p->waits.v[q->next_wait++]);
}

static void forward(struct player *q)
{
	const struct play_program *p = q->p;
	for (uint32_t i = 0; i < p->steps.n; i++) {
		const struct play_step *s = &p->steps.v[i];
		settle_until(q, s->called_ns);
		q->before[i] = q->newest[s->stream];
		q->newest[s->stream] = i;
		q->dur[i] = s->is_mark ? 0 : s->dur_ns;
		q->most[i] = UINT64_MAX;
		place(q, i);
		if (s->is_measured)
			pin(q, i);
	}
	settle_until(q, UINT64_MAX);
}

/* Nothing ends after `most`: it moves to the front as a whole, as far as its call. */
static void bound(struct player *q, uint32_t i)
{
	struct play_time *t = &q->times[i];
	const uint64_t called = q->p->steps.v[i].called_ns;
	t->start_ns = MAX(t->start_ns, called);
	t->end_ns = MAX(t->end_ns, t->start_ns);
	if (t->end_ns <= q->most[i])
		return;
	const uint64_t dur = t->end_ns - t->start_ns, end = MAX(q->most[i], called);
	t->end_ns = end;
	t->start_ns = end - called > dur ? end - dur : called;
	t->is_bounded = true;
}

static void backward(struct player *q)
{
	size_t e = q->p->edges.n;
	for (uint32_t i = (uint32_t)q->p->steps.n; i--;) {
		struct play_time *t = &q->times[i];
		const uint32_t before = q->before[i];
		bound(q, i);
		if (before != PLAY_NONE)
			q->most[before] = MIN(q->most[before], t->start_ns);
		for (; e && q->p->edges.v[e - 1].after == i; e--) {
			const uint32_t other = q->p->edges.v[e - 1].before;
			q->most[other] = MIN(q->most[other], t->start_ns);
		}
		t->sd_ns = (uint64_t)sqrt(fmin(q->variance[i], 1e36));
	}
}

/* A moment between two measured ones is no less certain than seen from the later one. */
static void meet(struct player *q)
{
	for (uint32_t i = (uint32_t)q->p->steps.n; i--;) {
		const uint32_t before = q->before[i];
		if (before == PLAY_NONE || !q->times[i].is_behind)
			continue;
		const double from_behind =
			q->variance[i] + square((double)q->p->steps.v[i].dur_sd_ns);
		q->variance[before] = fmin(q->variance[before], from_behind);
	}
}

void play(const struct play_program *p, struct play_time *ret_times)
{
	const size_t n = p->steps.n;
	struct player q = { .p = p,
		.times = ret_times,
		.before = xcalloc(n + 1, sizeof *q.before),
		.most = xcalloc(n + 1, sizeof *q.most),
		.variance = xcalloc(n + 1, sizeof *q.variance),
		.dur = xcalloc(n + 1, sizeof *q.dur),
		.newest = xmalloc((p->streams + 1) * sizeof *q.newest),
		.is_fixed = xcalloc(n + 1, sizeof *q.is_fixed) };
	for (uint32_t i = 0; i < p->streams; i++)
		q.newest[i] = PLAY_NONE;
	forward(&q);
	meet(&q);
	backward(&q);
	free_all(q.before, q.most, q.variance, q.dur, q.newest, q.is_fixed);
}

struct delays {
	ARRAY(int64_t) v;
};

ORDERING(delay_order, int64_t, ORDER(*a, *b))

static void note(struct delays *d, uint64_t from, uint64_t to)
{
	const int64_t delay = (int64_t)(to - from);
	int64_t *at = delay > -LEARN_MOST && delay < LEARN_MOST ? array_push(&d->v) : NULL;
	if (at)
		*at = delay;
}

static int64_t median(struct delays *d, int64_t usual)
{
	SORT(d->v, delay_order);
	const int64_t m = d->v.n < LEARN_LEAST ? usual : d->v.v[d->v.n / 2];
	array_free(&d->v);
	return m;
}

static uint64_t not_negative(int64_t x)
{
	return x > 0 ? (uint64_t)x : 0;
}

static int64_t learn_reach(const struct play_program *p, const struct play_time *times)
{
	struct delays d = { 0 };
	for (size_t i = 0; i < p->steps.n; i++) {
		const struct play_step *s = &p->steps.v[i];
		if (s->is_measured && !s->blocks && !s->is_mark && times[i].is_idle)
			note(&d, s->returned_ns, s->start_ns);
	}
	return median(&d, p->delays.reach_ns);
}

static uint64_t learn_behind(const struct play_program *p)
{
	struct delays d = { 0 };
	uint32_t *newest = xmalloc((p->streams + 1) * sizeof *newest);
	for (uint32_t i = 0; i < p->streams; i++)
		newest[i] = PLAY_NONE;
	for (uint32_t i = 0; i < p->steps.n; i++) {
		const struct play_step *s = &p->steps.v[i];
		const uint32_t before = newest[s->stream];
		const struct play_step *b = before == PLAY_NONE ? NULL : &p->steps.v[before];
		if (s->is_measured && b && b->is_measured && b->end_ns > s->returned_ns)
			note(&d, b->end_ns, s->start_ns);
		newest[s->stream] = i;
	}
	free(newest);
	return not_negative(median(&d, (int64_t)p->delays.behind_ns));
}

static uint64_t learn_return(const struct play_program *p)
{
	struct delays d = { 0 };
	array_each(const struct play_wait, w, p->waits) {
		const struct play_step *s =
			w->count == 1 ? &p->steps.v[p->waited.v[w->first]] : NULL;
		if (s && s->is_measured && s->end_ns > w->called_ns)
			note(&d, s->end_ns, w->returned_ns);
	}
	return not_negative(median(&d, (int64_t)p->delays.return_ns));
}

struct play_delays play_learn(const struct play_program *p, const struct play_time *times)
{
	return (struct play_delays){ .reach_ns = learn_reach(p, times),
		.behind_ns = learn_behind(p),
		.return_ns = learn_return(p),
		.measure_ns = p->delays.measure_ns };
}

void play_program_fini(struct play_program *p)
{
	array_free(&p->steps, &p->edges, &p->waits, &p->waited);
}
