/*
 * When nothing ran, and why; and what ran alone.  See hint_facts.h.
 *
 * A pause belongs to the work that ends it, and that to its call.  From the end of the work before
 * until that call begins, the thread is looked at: what it did when the device ran dry is the
 * cause, save for what it then spent in no call at all, allocating, or loading code.
 */
#include "report/hint_facts.h"

#include <errno.h>

#include "base/map.h"

#include "base/banned.h"

#define ONCE_NS      500000u /* a pause of that length or more may be one that came up once */
#define OFTEN        4u
#define BETWEEN_MOST 10000u /* longer, and it was something else than one kernel after another */
#define LATENCY_MOST 20000u /* a launch that takes longer was held up by something else */

struct gap {
	uint64_t from, to;
	const struct hint_work *next;
};

struct split {
	uint64_t ns[PAUSES];
};

static uint64_t overlap(uint64_t a, uint64_t b, uint64_t from, uint64_t to)
{
	a = a > from ? a : from;
	b = b < to ? b : to;
	return b > a ? b - a : 0;
}

static enum hint_pause cause_of(uint8_t kind)
{
	static const uint8_t causes[HINT_CALLS] = { [HINT_LAUNCH] = PAUSE_LAUNCH,
		[HINT_SYNC] = PAUSE_SYNC,
		[HINT_COPY] = PAUSE_SYNC,
		[HINT_ALLOC] = PAUSE_ALLOC,
		[HINT_FREE] = PAUSE_ALLOC,
		[HINT_LOAD] = PAUSE_LOAD };
	return causes[kind];
}

static void move(struct split *s, enum hint_pause to, uint64_t ns)
{
	const uint64_t most = s->ns[PAUSE_UNKNOWN];
	ns = ns < most ? ns : most;
	s->ns[PAUSE_UNKNOWN] -= ns;
	s->ns[to] += ns;
}

/*
 * The calls before `asked`, backwards, as far as they reach into the pause.  Returns what the
 * thread was in when the device ran dry.
 */
static enum hint_pause split_host(
	const struct hint_facts *f, const struct gap *p, uint32_t asked, struct split *s)
{
	const struct hint_call *v = f->calls.v;
	enum hint_pause blocked = PAUSE_LAUNCH;
	uint64_t until = v[asked].begin_ns < p->to ? v[asked].begin_ns : p->to;
	for (uint32_t i = asked; until > p->from; i--) {
		const bool first = !i || v[i - 1].thread != v[asked].thread;
		const uint64_t end = first ? 0 : v[i - 1].end_ns;
		const uint64_t outside = overlap(end, until, p->from, p->to);
		if (outside >= HINT_ELSEWHERE_NS)
			move(s, PAUSE_HOST, outside);
		if (first)
			break;
		const enum hint_pause cause = cause_of(v[i - 1].kind);
		if (cause == PAUSE_ALLOC || cause == PAUSE_LOAD)
			move(s, cause, overlap(v[i - 1].begin_ns, end, p->from, p->to));
		if (v[i - 1].begin_ns <= p->from && end > p->from)
			blocked = cause;
		until = v[i - 1].begin_ns;
	}
	return blocked;
}

static bool between(const struct gap *p, bool same)
{
	return !same && !p->next->in_graph && p->next->kind == WORK_KERNEL &&
	       p->to - p->from < BETWEEN_MOST;
}

static struct split split_pause(const struct hint_facts *f, const struct gap *when)
{
	const uint64_t earlier = when->from < f->latency_ns ? when->from : f->latency_ns;
	const struct gap moved = { when->from - earlier, when->to - earlier, when->next };
	const struct gap *p = &moved; /* as the host saw it */
	struct split s = { .ns = { [PAUSE_UNKNOWN] = p->to - p->from } };
	const uint32_t asked = p->next->call;
	if (p->next->in_graph && asked == HINT_NONE)
		move(&s, PAUSE_DEVICE, p->to - p->from);
	if (asked == HINT_NONE)
		return s;
	const struct hint_call *c = &f->calls.v[asked];
	const bool same = p->next > f->work.v && p->next[-1].call == asked; /* as in a graph */
	if (same || c->end_ns <= p->from) {
		move(&s, between(p, same) ? PAUSE_BETWEEN : PAUSE_DEVICE, p->to - p->from);
		return s;
	}
	const enum hint_pause blocked = split_host(f, p, asked, &s);
	const bool staged = p->next->from == PLACE_PAGEABLE || p->next->to == PLACE_PAGEABLE;
	move(&s, c->begin_ns <= p->from && staged ? PAUSE_COPY : blocked, p->to - p->from);
	return s;
}

static bool next_pause(const struct hint_facts *f, size_t *i, uint64_t *covered, struct gap *ret)
{
	for (; *i < f->work.n; (*i)++) {
		const struct hint_work *w = &f->work.v[*i];
		const uint64_t from = *covered;
		*covered = w->end_ns > from ? w->end_ns : from;
		if (*i && w->start_ns > from) {
			*ret = (struct gap){ from, w->start_ns, w };
			(*i)++;
			return true;
		}
	}
	return false;
}

/*
 * A pause that came up once is no part of a loop: compiling, reading input, warming up.  In a loop
 * the same work follows on the same work, with a pause of about the same length.
 */
struct turn {                    /* from one kind of work to another */
	uint64_t longest[OFTEN]; /* pauses, longest first */
};

struct turns {
	struct map map;
	ARRAY(struct turn) v;
};

static struct map_key turn_key(const struct gap *p)
{
	const struct hint_work *a = p->next - 1, *b = p->next;
	return MAP_KEY((uint64_t)a->kernel << 32 | b->kernel, (uint64_t)a->kind << 8 | b->kind);
}

static int note_turn(struct turns *t, const struct gap *p)
{
	uint32_t *at = map_get(&t->map, turn_key(p));
	if (!at)
		return -ENOMEM;
	if (*at == MAP_NONE) {
		struct turn *new = array_push(&t->v);
		if (!new)
			return -ENOMEM;
		*new = (struct turn){ 0 };
		*at = (uint32_t)(t->v.n - 1);
	}
	uint64_t ns = p->to - p->from;
	for (size_t i = 0; i < OFTEN; i++) {
		uint64_t *kept = &t->v.v[*at].longest[i];
		const uint64_t less = ns < *kept ? ns : *kept;
		*kept = ns > *kept ? ns : *kept;
		ns = less;
	}
	return 0;
}

static bool came_up_once(const struct turns *t, const struct gap *p)
{
	const uint32_t at = map_find(&t->map, turn_key(p));
	const uint64_t ns = p->to - p->from;
	return ns >= ONCE_NS && at != MAP_NONE && ns / 4 > t->v.v[at].longest[OFTEN - 1];
}

static void add_pause(struct hint_facts *f, const struct gap *p)
{
	const struct split s = split_pause(f, p);
	for (int c = 0; c < PAUSES; c++) {
		if (!s.ns[c] || c == PAUSE_LOAD)
			continue;
		f->pauses[c].count++;
		f->pauses[c].ns += s.ns[c];
		f->counted_ns += s.ns[c];
	}
}

static int sum_pauses(struct hint_facts *f, struct turns *t)
{
	struct gap p;
	uint64_t covered = 0, idle = 0;
	int e = 0;
	for (size_t i = 0; !e && next_pause(f, &i, &covered, &p);) {
		idle += p.to - p.from;
		e = note_turn(t, &p);
	}
	if (e)
		return e;
	f->counted_ns = f->work.n ? covered - f->work.v[0].start_ns - idle : 0;
	covered = 0;
	for (size_t i = 0; next_pause(f, &i, &covered, &p);)
		if (!came_up_once(t, &p))
			add_pause(f, &p);
	return 0;
}

/* Work that contains several others is given less than it had: the safe side. */
static void sum_alone(struct hint_facts *f)
{
	uint64_t covered = 0;
	for (size_t i = 0; i < f->work.n; i++) {
		struct hint_work *w = &f->work.v[i];
		const uint64_t next = i + 1 < f->work.n ? f->work.v[i + 1].start_ns : UINT64_MAX;
		const uint64_t from = w->start_ns > covered ? w->start_ns : covered;
		const uint64_t to = w->end_ns < next ? w->end_ns : next;
		w->alone_ns = to > from ? to - from : 0;
		covered = w->end_ns > covered ? w->end_ns : covered;
		if (w->kernel != HINT_NONE)
			f->kernels.v[w->kernel].alone_ns += w->alone_ns;
	}
}

static uint64_t find_latency(const struct hint_facts *f)
{
	uint64_t least = LATENCY_MOST;
	for (size_t i = 0; i < f->work.n; i++) {
		const struct hint_work *w = &f->work.v[i];
		const struct hint_call *c = w->call == HINT_NONE ? NULL : &f->calls.v[w->call];
		if (!c || w->kind != WORK_KERNEL || c->begin_ns >= w->start_ns)
			continue;
		least = w->start_ns - c->begin_ns < least ? w->start_ns - c->begin_ns : least;
	}
	return least < LATENCY_MOST ? least : 0;
}

int facts_pauses(struct hint_facts *f)
{
	struct turns t = { 0 };
	f->latency_ns = find_latency(f);
	sum_alone(f);
	const int e = sum_pauses(f, &t);
	map_fini(&t.map);
	array_free(&t.v);
	return e;
}
