/*
 * Rules about time in which nothing ran, or one thing ran alone.
 *
 * The report says why nothing ran (model/timeline.c), in parts: the host's state, or queued work. A
 * rule needs the cause. That is the host's state when the device ran dry, without the host's later
 * time outside calls, in allocations, or in loading code.
 */
#include "hint/hint_facts.h"

#include "base/expect.h"
#include "base/radix.h"
#include "base/xmalloc.h"
#include "model/host_time.h"

#define ONCE_NS      500000u /* an idle gap of that length or more may be no part of a loop */
#define OFTEN        3u
#define BETWEEN_MOST 10000u /* longer, and it was something else than one kernel after another */

const char *const gap_cause_name[GAP_CAUSES] = {
	[GAP_SYNC] = "sync",
	[GAP_COPY] = "copy",
	[GAP_ALLOC] = "alloc",
	[GAP_LOAD] = "load",
	[GAP_LAUNCH] = "launch",
	[GAP_HOST] = "host",
	[GAP_BETWEEN] = "between",
	[GAP_DEVICE] = "queued",
	[GAP_UNKNOWN] = "unknown",
};

const struct gap_cause_words gap_cause_words[GAP_CAUSES] = {
	[GAP_SYNC] = { WALL_WAITING, ", and until it had launched again" },
	[GAP_COPY] = { WALL_WAITING, " that copies memory which is not pinned" },
	[GAP_ALLOC] = { WALL_DRIVER, "",
		"idle: host in a CUDA call that allocates or frees memory" },
	[GAP_LOAD] = { WALL_DRIVER, "", "idle: host in a CUDA call that loads code" },
	[GAP_LAUNCH] = { WALL_LAUNCHING, ", and until that had begun" },
	[GAP_HOST] = { WALL_HOST, "" },
	[GAP_BETWEEN] = { WALL_QUEUED, ", from one kernel to the next" },
	[GAP_DEVICE] = { WALL_QUEUED, "" },
	[GAP_UNKNOWN] = { WALL_UNKNOWN, "" },
};

struct gap {
	uint64_t from, to;
	const struct hint_activity *last, *next; /* last: NULL before the first of the window */
};

struct split {
	uint64_t ns[GAP_CAUSES];
};

static enum gap_cause cause_of_state(uint8_t state)
{
	switch (state) {
	case HOST_COPYING:
	case HOST_WAITING:
		return GAP_SYNC;
	case HOST_ALLOCATING:
	case HOST_LONG_ALLOC:
		return GAP_ALLOC;
	case HOST_LOADING:
	case HOST_LONG_LOAD:
		return GAP_LOAD;
	default:
		return GAP_LAUNCH;
	}
}

/* Copies that the host itself brings to where they can be read, or back. */
static bool is_staged(const struct hint_activity *w)
{
	return w->from == MEMORY_KIND_PAGEABLE || w->to == MEMORY_KIND_PAGEABLE;
}

static enum gap_cause queued(const struct gap *p, const struct idle *i)
{
	const bool launched = i->issued != ISSUED_BY_SAME_CALL && !p->next->in_graph;
	return launched && p->next->kind == GPU_KERNEL && p->to - p->from < BETWEEN_MOST
		       ? GAP_BETWEEN
		       : GAP_DEVICE;
}

static enum gap_cause cause_of(const struct gap *p, const struct idle *i)
{
	if (i->what == IDLE_UNKNOWN)
		return p->next->in_graph ? GAP_DEVICE : GAP_UNKNOWN;
	if (i->issued == ISSUED_BEFORE || i->issued == ISSUED_BY_SAME_CALL)
		return queued(p, i);
	if (i->what == HOST_ELSEWHERE)
		return GAP_HOST;
	const enum gap_cause own = i->what == IDLE_QUEUED ? GAP_LAUNCH : cause_of_state(i->what);
	if (own == GAP_ALLOC || own == GAP_LOAD)
		return own;
	if (i->issued == ISSUED_DURING && is_staged(p->next))
		return GAP_COPY;
	return cause_of_state(i->blocked);
}

static uint64_t sum_of(const struct split *s)
{
	uint64_t ns = 0;
	for (int c = 0; c < GAP_CAUSES; c++)
		ns = sat_add(ns, s->ns[c]);
	return ns;
}

/* The report's parts of the idle gap; *at goes on to the first of the next. */
static struct split split_gap(const struct hint_facts *f, const struct gap *p, size_t *at)
{
	const struct analysis *a = &f->report->analysis;
	struct split s = { 0 };
	while (*at < a->idle.n && a->idle.v[*at].until_ns < p->to)
		(*at)++;
	for (; *at < a->idle.n && a->idle.v[*at].until_ns == p->to; (*at)++)
		if (a->idle.v[*at].what != IDLE_OFF) /* of which nobody can say why */
			s.ns[cause_of(p, &a->idle.v[*at])] += a->idle.v[*at].ns;
	expect(sum_of(&s) <= p->to - p->from, "the causes of an idle gap are part of it");
	return s;
}

static bool next_gap(const struct hint_facts *f, size_t *i, uint64_t *covered, struct gap *ret)
{
	for (; *i < f->activities.n; (*i)++) {
		const struct hint_activity *w = &f->activities.v[*i];
		const uint64_t from = *covered;
		expect(!*i || w[-1].start_ns <= w->start_ns,
			"activities come in the order of time");
		*covered = MAX(w->end_ns, from);
		if (w->start_ns > from) {
			*ret = (struct gap){ from, w->start_ns, *i ? w - 1 : NULL, w };
			(*i)++;
			return true;
		}
	}
	return false;
}

/*
 * An idle gap that came up once or twice is no part of a loop: compiling, reading input, warming
 * up.  In a loop the same activity comes before it or after it, with an idle gap of about the same
 * length: what ended last may be another in each step, or what runs next.
 */
enum side { BEFORE, AFTER, SIDES };

struct turn {                    /* idle gaps before a kind of activity, or after it */
	uint64_t longest[OFTEN]; /* idle gaps, longest first */
	uint64_t host_ns;        /* of those that count: the host was in no call */
};

struct turns {
	struct map map;
	ARRAY(struct turn) v;
};

static struct map_key turn_key(const struct gap *p, enum side side)
{
	const struct hint_activity *w = side == BEFORE ? p->next : p->last;
	return w ? MAP_KEY((uint64_t)w->kernel << 32 | (uint32_t)w->what << 8 | w->kind, side)
		 : MAP_KEY(SIDES);
}

static void add_turn(struct turns *t, const struct gap *p, enum side side)
{
	struct turn *turn = MAP_ROW(&t->map, turn_key(p, side), &t->v, (struct turn){ 0 });
	uint64_t ns = p->to - p->from;
	for (size_t i = 0; i < OFTEN; i++) {
		uint64_t *kept = &turn->longest[i];
		const uint64_t less = MIN(ns, *kept);
		*kept = MAX(ns, *kept);
		ns = less;
		expect(!i || *kept <= kept[-1], "the longest idle gaps of a turn come first");
	}
}

static struct turn *turn_of(struct turns *t, const struct gap *p, enum side side)
{
	const uint32_t at = map_find(&t->map, turn_key(p, side));
	return expect(at < t->v.n, "an idle gap is one of a turn") ? &t->v.v[at] : NULL;
}

static bool came_up_seldom(struct turns *t, const struct gap *p)
{
	const uint64_t ns = p->to - p->from;
	bool seldom = ns >= ONCE_NS;
	for (enum side s = 0; s < SIDES && seldom; s++) {
		const struct turn *turn = turn_of(t, p, s);
		seldom = turn && ns / 4 > turn->longest[OFTEN - 1];
	}
	return seldom;
}

static void add_host(struct hint_facts *f, struct turn *turn, const struct gap *p, uint64_t ns)
{
	turn->host_ns += ns;
	if (turn->host_ns <= f->host_most_ns)
		return;
	f->host_most_ns = turn->host_ns;
	f->host_before = p->next;
}

static void add_gap(struct hint_facts *f, struct turns *t, const struct gap *p, size_t *at)
{
	const struct split s = split_gap(f, p, at);
	struct turn *turn = turn_of(t, p, BEFORE);
	if (turn)
		add_host(f, turn, p, s.ns[GAP_HOST]);
	for (int c = 0; c < GAP_CAUSES; c++) {
		if (!s.ns[c] || c == GAP_LOAD)
			continue;
		f->idle_gaps[c].count++;
		f->idle_gaps[c].ns += s.ns[c];
		f->counted_ns += s.ns[c];
	}
}

static void sum_gaps(struct hint_facts *f, struct turns *t)
{
	struct gap p;
	const uint64_t from = f->window.from_ns;
	uint64_t covered = from, idle = 0;
	for (size_t i = 0; next_gap(f, &i, &covered, &p);) {
		idle += p.to - p.from;
		for (enum side s = 0; s < SIDES; s++)
			add_turn(t, &p, s);
	}
	expect(idle <= covered - from, "idle gaps lie in the window");
	f->counted_ns = covered - from - idle;
	covered = from;
	for (size_t i = 0, at = 0; next_gap(f, &i, &covered, &p);)
		if (came_up_seldom(t, &p))
			f->once_ns += p.to - p.from;
		else
			add_gap(f, t, &p, &at);
}

struct edge { /* where an activity begins or ends */
	uint64_t ns;
	uint32_t activity;
	bool ends;
};

struct busy { /* a device: how many of its activities run, and the sum of their numbers */
	uint64_t running, sum;
};

struct sweep {
	struct hint_facts *f;
	ARRAY(struct edge) edges; /* by time */
	struct map map;           /* of devices */
	ARRAY(struct busy) devices;
	double *alone_ns; /* of activities */
};

static struct busy *device_of(struct sweep *s, uint32_t activity)
{
	return MAP_ROW(&s->map, MAP_KEY(s->f->activities.v[activity].device), &s->devices,
		(struct busy){ 0 });
}

/* Devices that work side by side share the time, so that all is no more than the time of all. */
static void share_time(struct sweep *s, uint64_t ns)
{
	unsigned busy = 0;
	array_each(const struct busy, b, s->devices)
		busy += b->running > 0;
	array_each(const struct busy, b, s->devices)
		if (b->running == 1)
			s->alone_ns[b->sum] += (double)ns / busy;
}

static void cross(struct sweep *s, const struct edge *e)
{
	struct busy *b = device_of(s, e->activity);
	b->running += e->ends ? -1ull : 1ull;
	b->sum += e->ends ? -(uint64_t)e->activity : e->activity;
}

static void list_edges(struct sweep *s)
{
	for (uint32_t i = 0; i < s->f->activities.n; i++) {
		const struct hint_activity *w = &s->f->activities.v[i];
		array_reserve(&s->edges, 2);
		s->edges.v[s->edges.n++] = (struct edge){ w->start_ns, i, false };
		s->edges.v[s->edges.n++] = (struct edge){ w->end_ns, i, true };
	}
	RADIX_SORT(s->edges, ns);
}

/* While nothing else ran on its device. */
static void sum_alone(struct hint_facts *f)
{
	struct sweep s = { .f = f, .alone_ns = xcalloc(f->activities.n + 1, sizeof(double)) };
	list_edges(&s);
	for (size_t i = 0; i < s.edges.n; i++) {
		if (i && s.edges.v[i].ns > s.edges.v[i - 1].ns)
			share_time(&s, s.edges.v[i].ns - s.edges.v[i - 1].ns);
		cross(&s, &s.edges.v[i]);
	}
	for (size_t i = 0; i < f->activities.n; i++) {
		struct hint_activity *w = &f->activities.v[i];
		w->alone_ns = (uint64_t)s.alone_ns[i];
		expect(w->alone_ns <= w->end_ns - w->start_ns,
			"an activity is alone while it runs");
		if (w->kernel != HINT_NONE)
			f->kernels.v[w->kernel].alone_ns += w->alone_ns;
	}
	map_fini(&s.map);
	array_free(&s.edges, &s.devices);
	free(s.alone_ns);
}

void facts_idle_gaps(struct hint_facts *f)
{
	struct turns t = { 0 };
	sum_alone(f);
	sum_gaps(f, &t);
	map_fini(&t.map);
	array_free(&t.v);
}
