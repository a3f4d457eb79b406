/*
 * Finds which thread wakes which other, for the critical path. No recording says so, because
 * condition variables and queues are no calls of CUDA. Two things show it.
 *
 * Threads that take turns are never in calls at the same time. If chance would have brought them
 * together several times, they are one lane, and each one's last act causes the next one's.
 *
 * For other pairs each long idle gap of one thread is examined. Does it end soon after the other
 * returned from a wait or became idle? If that happens far more often than by chance, the one wakes
 * the other. With too few cases the answer is unknown. Gaps are counted between two given calls,
 * and behind a given call.
 */
#include "path/causes.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/radix.h"
#include "base/search.h"

#define LANES_MOST 64u /* of one process: what more threads do is nobody's cause */

/* Chance would have brought two threads together so often that it is none if it never did. */
#define MEETINGS_LEAST 3.0

#define IDLE_NS     10000u /* a shorter gap is on the way from call to call */
#define WAKE_NS     80000u /* from what wakes a thread to its next call, with what it does before */
#define FUNCTION_NS 250000u /* from what a host function waits for to what it wakes */
#define STOP_NS     100000u /* a thread that then does nothing for so long has ended its part */

/* How much likelier than by chance, as a logarithm: to know.  Among many places one agrees by
 * chance, so the logarithm of their number comes on top.  To suspect, less is enough. */
#define SURELY 2.0
#define LESS   0.5

/* The least time from what wakes a thread to its next call, where no gap shows less. */
#define WAKE_LEAST_NS 15000u

struct turn { /* a call */
	uint64_t start_ns, end_ns;
	uint32_t member;
};

struct member {
	uint32_t thread, lane;
	uint64_t calls, busy_ns, last_ns;
};

struct turns {
	struct host *h;
	struct member members[LANES_MOST];
	uint32_t n;
	ARRAY(struct turn) calls;
	uint32_t met[LANES_MOST][LANES_MOST];
};

/* Calls with hardly any time between are one turn. */
static void add_call(struct turns *t, struct member *m, const struct mark *at)
{
	if (m->calls && at->start_ns < m->last_ns + IDLE_NS) {
		m->busy_ns += at->end_ns - m->last_ns;
		t->calls.v[t->calls.n - 1].end_ns = at->end_ns;
	} else {
		t->calls.v[t->calls.n++] = (struct turn){ at->start_ns, at->end_ns, t->n };
		m->calls++;
		m->busy_ns += at->end_ns - at->start_ns;
	}
	m->last_ns = at->end_ns;
}

static void list_turns(struct turns *t, uint32_t process)
{
	t->n = 0;
	t->calls.n = 0;
	for (uint32_t i = 0; i < t->h->in->thread_count && t->n < LANES_MOST; i++) {
		const struct lane *lane = &t->h->lanes.v[i];
		if (lane->process != process || !lane->marks.n)
			continue;
		struct member *m = &t->members[t->n];
		*m = (struct member){ .thread = i, .lane = i };
		array_reserve(&t->calls, lane->marks.n);
		array_each(const struct mark, at, lane->marks) {
			if (at->kind == MARK_MOMENT)
				continue;
			add_call(t, m, at);
		}
		t->n++;
	}
	if (t->n >= 2)
		RADIX_SORT(t->calls, start_ns);
}

static uint64_t count_meetings(struct turns *t)
{
	uint64_t last = 0;
	for (uint32_t k = 0; k < t->n; k++)
		t->members[k].last_ns = 0;
	memset(t->met, 0, sizeof t->met);
	array_each(const struct turn, c, t->calls) {
		for (uint32_t k = 0; k < t->n; k++)
			if (k != c->member && t->members[k].last_ns > c->start_ns) {
				t->met[k][c->member]++;
				t->met[c->member][k]++;
			}
		t->members[c->member].last_ns = c->end_ns;
		last = MAX(c->end_ns, last);
	}
	return t->calls.n ? last - t->calls.v[0].start_ns : 0;
}

/* How often they would have met if neither minded the other; 0: they met. */
static double missed(const struct member *a, const struct member *b, uint32_t met, uint64_t span_ns)
{
	const double one = (double)a->calls * (double)b->busy_ns;
	const double two = (double)b->calls * (double)a->busy_ns;
	return met || !span_ns ? 0 : (one + two) / (double)span_ns;
}

/* The two lanes that are likeliest to take turns. */
static bool find_pair(const struct turns *t, uint64_t span_ns, uint32_t *ret_one, uint32_t *ret_two)
{
	double most = 0;
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct member *a = &t->members[k], *b = &t->members[i];
			const double now = missed(a, b, t->met[i][k], span_ns);
			if (a->lane != a->thread || b->lane != b->thread || now <= most)
				continue;
			most = now;
			*ret_one = k;
			*ret_two = i;
		}
	return most >= MEETINGS_LEAST;
}

/* From then on they are as one thread. */
static void join(struct turns *t, uint32_t one, uint32_t two)
{
	const uint32_t from = t->members[two].lane;
	t->members[one].calls += t->members[two].calls;
	t->members[one].busy_ns += t->members[two].busy_ns;
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->members[i].lane == from)
			t->members[i].lane = t->members[one].lane;
		t->met[one][i] += t->met[two][i];
		t->met[i][one] += t->met[i][two];
	}
}

static void choose_lanes(struct turns *t, uint64_t span_ns)
{
	uint32_t one = 0, two = 0;
	while (find_pair(t, span_ns, &one, &two))
		join(t, one, two);
}

static void append(struct lane *to, struct lane *from)
{
	array_reserve(&to->marks, from->marks.n);
	memcpy(to->marks.v + to->marks.n, from->marks.v, from->marks.n * sizeof *from->marks.v);
	to->marks.n += from->marks.n;
	array_free(&from->marks);
	RADIX_SORT(to->marks, start_ns);
}

static void join_process(struct turns *t, uint32_t process)
{
	list_turns(t, process);
	if (t->n < 2)
		return;
	choose_lanes(t, count_meetings(t));
	for (uint32_t i = 0; i < t->n; i++) {
		const struct member *m = &t->members[i];
		if (m->lane == m->thread)
			continue;
		t->h->lane_of[m->thread] = m->lane;
		append(&t->h->lanes.v[m->lane], &t->h->lanes.v[m->thread]);
	}
}

void host_join_lanes(struct host *h)
{
	struct turns *t = xcalloc(1, sizeof *t);
	uint32_t processes = 0;
	for (uint32_t i = 0; i < h->in->thread_count; i++)
		if (h->lanes.v[i].process >= processes)
			processes = h->lanes.v[i].process + 1;
	for (uint32_t p = 0; p < processes; p++) {
		t->h = h;
		join_process(t, p);
	}
	array_free(&t->calls);
	free(t);
}

static void list_edges(const struct host *h, struct lane *lane)
{
	for (uint32_t i = 0; i < lane->marks.n; i++) {
		const struct mark *m = &lane->marks.v[i];
		const bool stops = i + 1 == lane->marks.n || m[1].start_ns >= m->end_ns + STOP_NS;
		if (host_waited(h, m) == NONE && !stops)
			continue;
		*array_push(&lane->edges) = (struct edge){ m->end_ns, i };
	}
}

/* The last edge at that time, or NULL. */
static const struct edge *edge_before(const struct lane *lane, uint64_t ns)
{
	const size_t n = SEARCH(i, 0, lane->edges.n, lane->edges.v[i].ns <= ns);
	return n ? &lane->edges.v[n - 1] : NULL;
}

/* The same, of those that a wait is. */
static const struct edge *wait_before(const struct host *h, const struct lane *lane, uint64_t ns)
{
	size_t n = SEARCH(i, 0, lane->edges.n, lane->edges.v[i].ns <= ns);
	while (n && host_waited(h, &lane->marks.v[lane->edges.v[n - 1].mark]) == NONE)
		n--;
	return n ? &lane->edges.v[n - 1] : NULL;
}

struct gap {
	uint64_t from_ns, to_ns;
};

/* The time in front of a mark in which its lane did nothing that is known. */
static struct gap gap_before(const struct host *h, const struct lane *lane, uint32_t mark)
{
	const struct mark *m = &lane->marks.v[mark];
	const uint64_t from = mark ? m[-1].end_ns : h->in->start_ns;
	return (struct gap){ from < m->start_ns ? from : m->start_ns, m->start_ns };
}

/* A host function may begin at the very return of the call that gave it. */
static bool is_inside(const struct lane *from, const struct edge *e, struct gap g)
{
	return e && (e->ns > g.from_ns || (from->owner != NONE && e->ns == g.from_ns));
}

/* The lane's place in its program: between which calls. */
#define MARK_PLACE(m) ((uint64_t)(m).thread << 16 | (m).fn)
static struct map_key place_key(const struct host *h, uint32_t lane, uint32_t mark)
{
	const struct mark *m = &h->lanes.v[lane].marks.v[mark];
	return MAP_KEY(lane, mark ? MARK_PLACE(m[-1]) : UINT64_MAX, MARK_PLACE(*m));
}

/* The same before any call: what a thread does next does not change what it waits for. */
static struct map_key wider(struct map_key key)
{
	return MAP_KEY(key.w[0], key.w[1], UINT64_MAX);
}

static bool is_first(struct map_key key)
{
	return key.w[1] == UINT64_MAX;
}

/* How often an edge stood at the end of an idle gap of a place, and how often by chance. */
struct evidence {
	double gaps, soon, any, chance;
	double only; /* of soon: no other lane's edge stood there */
};

/* How long before the end of the gap: the time that a host function takes is not known. */
static uint64_t window_of(const struct lane *from)
{
	return from->owner == NONE ? WAKE_NS : FUNCTION_NS;
}

struct weights {
	struct host *h;
	struct evidence *v; /* by place * (lanes + 1) + the lane; the last: any of them */
	bool *related;      /* by lane * lanes + lane: one wakes the other after its first call */
	uint64_t *soonest_ns;
	double surely; /* what a place must have, but for a lane's first call */
};

static double chance_of(const struct weights *w, const struct lane *from, struct gap g)
{
	const uint64_t length = g.to_ns - g.from_ns;
	const double rate = (double)from->edges.n / (double)w->h->in->wall_ns;
	const uint64_t window = window_of(from);
	return 1 - exp(-rate * (double)MIN(length, window));
}

static void weigh_gap(struct weights *w, uint32_t lane, struct gap g, struct evidence *v)
{
	const size_t n = w->h->lanes.n;
	const bool tells = g.to_ns - g.from_ns >= WAKE_NS;
	bool any = false;
	uint32_t soon = 0, only = 0;
	double none = 1;
	for (uint32_t i = 0; i < n; i++) {
		const struct lane *from = &w->h->lanes.v[i];
		if (i == lane || from->process != w->h->lanes.v[lane].process || !from->edges.n ||
			(!tells && from->owner != lane))
			continue;
		const struct edge *last = edge_before(from, g.to_ns);
		const bool inside = is_inside(from, last, g);
		const bool near = inside && g.to_ns - last->ns <= window_of(from);
		const double chance = chance_of(w, from, g);
		v[i].gaps++;
		v[i].chance += chance;
		v[i].any += inside;
		v[i].soon += near;
		none *= 1 - chance;
		any |= inside;
		soon += near;
		only = near ? i : only;
	}
	if (!tells)
		return;
	v[n].gaps++;
	v[n].chance += 1 - none;
	v[n].any += any;
	v[n].soon += soon > 0;
	v[only].only += soon == 1;
}

/* By how much it is likelier than by chance, as a logarithm. */
static double surplus(const struct evidence *v)
{
	const double others = v->gaps - v->soon;
	if (v->soon <= v->chance)
		return 0;
	const double without = others > 0 ? others * log(others / (v->gaps - v->chance)) : 0;
	return v->soon * log(v->soon / v->chance) + without;
}

static bool is_sure(const struct evidence *v, double surely)
{
	return v->soon * 2 >= v->any && surplus(v) >= surely;
}

static bool is_always(const struct evidence *v)
{
	return v->gaps - v->soon <= v->gaps / 10;
}

/*
 * A thread that puts a host function into a stream and then is idle waits for it, unless most such
 * gaps say otherwise.  A thread that waits for several is woken by each of them now and then.
 */
static enum wakes judge(
	const struct evidence *v, const struct evidence *any, double surely, bool own_function)
{
	if (own_function)
		return v->soon * 2 >= v->any && v->soon > 0 ? WAKES : WAKES_NOT;
	if (is_sure(any, surely) && v->only > 0)
		return is_always(any) ? WAKES_ALWAYS : WAKES;
	if (v->soon * 4 < v->any)
		return WAKES_NOT;
	const double more = surplus(v);
	if (more >= surely)
		return is_always(v) ? WAKES_ALWAYS : WAKES;
	return more >= surely - LESS ? WAKES_MAYBE : WAKES_NOT;
}

/* For each idle gap of all lanes: what is done with it. */
typedef void gap_fn(struct weights *w, uint32_t lane, uint32_t mark, struct gap g);

static void each_gap(struct weights *w, gap_fn *do_it)
{
	for (uint32_t i = 0; i < w->h->lanes.n; i++)
		for (uint32_t k = 0; k < w->h->lanes.v[i].marks.n; k++) {
			const struct gap g = gap_before(w->h, &w->h->lanes.v[i], k);
			if (g.to_ns - g.from_ns >= IDLE_NS)
				do_it(w, i, k, g);
		}
}

static void number_place(struct weights *w, uint32_t lane, uint32_t mark, struct gap g)
{
	const struct map_key key = place_key(w->h, lane, mark);
	map_number(&w->h->places, key);
	map_number(&w->h->places, wider(key));
}

static void weigh_place(struct weights *w, uint32_t lane, uint32_t mark, struct gap g)
{
	const uint32_t place = map_find(&w->h->places, place_key(w->h, lane, mark));
	if (expect(place != MAP_NONE, "a gap has its place"))
		weigh_gap(w, lane, g, &w->v[place * (w->h->lanes.n + 1)]);
}

static struct evidence *evidence_at(const struct weights *w, struct map_key key)
{
	const uint32_t place = map_find(&w->h->places, key);
	return expect(place != MAP_NONE, "each place is known, and the wider one")
		       ? &w->v[place * (w->h->lanes.n + 1)]
		       : w->v;
}

static void add_to_wider(struct weights *w, struct map_key key)
{
	const struct evidence *from = evidence_at(w, key);
	struct evidence *to = evidence_at(w, wider(key));
	for (size_t i = 0; to != from && i <= w->h->lanes.n; i++) {
		to[i].gaps += from[i].gaps;
		to[i].soon += from[i].soon;
		to[i].any += from[i].any;
		to[i].chance += from[i].chance;
		to[i].only += from[i].only;
	}
}

static void judge_place(struct weights *w, uint32_t place, struct map_key key)
{
	const size_t n = w->h->lanes.n;
	const struct evidence *v = evidence_at(w, key), *wide = evidence_at(w, wider(key));
	const double surely = is_first(key) ? SURELY : w->surely;
	for (size_t i = 0; i < n; i++) {
		const bool own = w->h->lanes.v[i].owner == key.w[0];
		const enum wakes here = judge(&v[i], &v[n], surely, own);
		const enum wakes there = judge(&wide[i], &wide[n], surely, own);
		const enum wakes more = MAX(here, there);
		w->h->wakes[place * n + i] = (uint8_t)more;
		if (more >= WAKES && !is_first(key))
			w->related[key.w[0] * n + i] = w->related[i * n + key.w[0]] = true;
	}
}

/* Somebody started a thread, so its first gap has a cause more often than others have.  But it
 * comes once, and chance explains it as well: unless the two wake each other elsewhere. */
static void judge_first(struct weights *w, uint32_t place, struct map_key key)
{
	const size_t n = w->h->lanes.n;
	const struct evidence *v = evidence_at(w, key);
	for (size_t i = 0; is_first(key) && i < n; i++) {
		uint8_t *wakes = &w->h->wakes[place * n + i];
		if (w->related[key.w[0] * n + i] && v[i].soon > 0 && w->h->lanes.v[i].owner == NONE)
			*wakes = WAKES;
		else if (*wakes >= WAKES)
			*wakes = WAKES_MAYBE;
	}
}

static void judge_all(struct weights *w)
{
	const struct map *places = &w->h->places;
	for (size_t i = 0; i < places->size; i++)
		if (places->slots[i].taken)
			add_to_wider(w, places->slots[i].key);
	for (size_t i = 0; i < places->size; i++)
		if (places->slots[i].taken)
			judge_place(w, places->slots[i].value, places->slots[i].key);
	for (size_t i = 0; i < places->size; i++)
		if (places->slots[i].taken)
			judge_first(w, places->slots[i].value, places->slots[i].key);
}

/* A lane takes a while from its waking until its next call; less if a long gap has shown that.  A
 * lane that waits for its own function is idle for so long at least. */
static bool is_late_enough(const struct host *h, uint32_t lane, const struct lane *from,
	uint64_t woken_ns, struct gap g)
{
	const uint64_t ns = g.to_ns - (from->owner == lane ? g.from_ns : woken_ns);
	return ns >= WAKE_LEAST_NS || ns >= h->soonest_ns[lane];
}

/* The edge of another lane that may have ended the idle gap.  Whether a lane is suspected matters
 * only if it had waited for a device: else it is the host either way. */
static const struct edge *edge_of(const struct host *h, uint32_t lane, const struct lane *from,
	enum wakes wakes, struct gap g)
{
	const struct edge *last = wakes >= WAKES         ? edge_before(from, g.to_ns)
				  : wakes == WAKES_MAYBE ? wait_before(h, from, g.to_ns)
							 : NULL;
	if (!is_inside(from, last, g) || !is_late_enough(h, lane, from, last->ns, g))
		return NULL;
	return wakes == WAKES_ALWAYS || last->ns + window_of(from) >= g.to_ns ? last : NULL;
}

/* A host function that waited for no activity waited for the call that gave it. */
static struct cause function_cause(const struct host *h, uint32_t lane, uint32_t mark)
{
	const uint32_t owner = h->lanes.v[lane].owner;
	const uint64_t given = h->lanes.v[lane].marks.v[mark].start_ns;
	return (struct cause){ owner, given ? host_mark_at(h, owner, given - 1) : NONE };
}

/* The possible cause of a lane's going on: itself, or another. */
struct suspect {
	struct cause cause;
	uint64_t ns; /* when; 0: a lane that had not waited before */
	enum wakes wakes;
};

static struct suspect suspect_alone(const struct host *h, uint32_t lane, uint32_t mark)
{
	const struct mark *last = mark ? &h->lanes.v[lane].marks.v[mark - 1] : NULL;
	const bool waited = last && host_waited(h, last) != NONE;
	return (struct suspect){ { lane, mark ? mark - 1 : NONE }, waited ? last->end_ns : 0,
		WAKES };
}

/* The two suspects that did something last; but a host function of the lane itself rather than
 * another thread. */
static void find_suspects(const struct host *h, uint32_t lane, uint32_t mark, struct suspect ret[2])
{
	const struct lane *v = h->lanes.v;
	const struct gap g = gap_before(h, &v[lane], mark);
	const uint32_t place = map_find(&h->places, place_key(h, lane, mark));
	ret[0] = ret[1] = suspect_alone(h, lane, mark);
	for (uint32_t i = 0; i < h->lanes.n && expect(place != MAP_NONE, "a gap has its place");
		i++) {
		const enum wakes wakes = h->wakes[place * h->lanes.n + i];
		const struct edge *last = edge_of(h, lane, &v[i], wakes, g);
		if (i == lane || v[i].process != v[lane].process || !last)
			continue;
		const uint64_t ns = v[i].owner == lane ? UINT64_MAX : last->ns;
		const struct suspect new = { { i, last->mark }, ns, wakes };
		if (ns >= ret[0].ns) {
			ret[1] = ret[0];
			ret[0] = new;
		} else if (ns >= ret[1].ns) {
			ret[1] = new;
		}
	}
}

/* The suspect that did something last is the cause.  But if the lane may have been waking up for
 * the one before, it no longer slept when the last came. */
struct cause host_cause(
	const struct host *h, uint32_t lane, uint32_t mark, bool other, enum doubt *ret_doubt)
{
	const struct gap g = gap_before(h, &h->lanes.v[lane], mark);
	struct suspect s[2];
	*ret_doubt = DOUBT_NONE;
	if (h->lanes.v[lane].owner != NONE)
		return function_cause(h, lane, mark);
	if (!h->wakes || g.to_ns - g.from_ns < IDLE_NS)
		return suspect_alone(h, lane, mark).cause;
	find_suspects(h, lane, mark, s);
	const bool maybe = s[0].wakes == WAKES_MAYBE;
	if (maybe)
		*ret_doubt = DOUBT_WAKES;
	else if (s[0].ns != UINT64_MAX && s[0].cause.lane != s[1].cause.lane &&
		 s[1].wakes >= WAKES && s[1].ns + h->latest_ns[lane] >= g.to_ns)
		*ret_doubt = DOUBT_CLOSE;
	return s[*ret_doubt && other ? !maybe : maybe].cause;
}

/* From what woke a lane to its next call, where nothing else may have. */
static void learn_delay(struct weights *w, uint32_t lane, uint32_t mark, struct gap g)
{
	struct suspect s[2];
	if (g.to_ns - g.from_ns < WAKE_NS || w->h->lanes.v[lane].owner != NONE)
		return;
	find_suspects(w->h, lane, mark, s);
	if (s[0].wakes < WAKES || s[0].ns == UINT64_MAX || s[0].cause.lane == lane ||
		s[1].ns + WAKE_NS >= s[0].ns)
		return;
	const uint64_t ns = g.to_ns - s[0].ns;
	w->soonest_ns[lane] = MIN(ns, w->soonest_ns[lane]);
	w->h->latest_ns[lane] = MAX(ns, w->h->latest_ns[lane]);
}

static void weigh(struct weights *w)
{
	struct host *h = w->h;
	each_gap(w, number_place);
	w->v = xcalloc(h->places.taken * (h->lanes.n + 1) + 1, sizeof *w->v);
	h->wakes = xcalloc(h->places.taken * h->lanes.n + 1, sizeof *h->wakes);
	w->related = xcalloc(h->lanes.n * h->lanes.n, sizeof *w->related);
	w->surely = SURELY + log((double)h->places.taken + 1);
	each_gap(w, weigh_place);
	judge_all(w);
	h->soonest_ns = xcalloc(h->lanes.n, sizeof *h->soonest_ns);
	h->latest_ns = xcalloc(h->lanes.n, sizeof *h->latest_ns);
	w->soonest_ns = xmalloc(h->lanes.n * sizeof *w->soonest_ns);
	memset(w->soonest_ns, 0xff, h->lanes.n * sizeof *w->soonest_ns);
	each_gap(w, learn_delay);
	free(h->soonest_ns);
	h->soonest_ns = w->soonest_ns;
}

void host_find_wakes(struct host *h)
{
	struct weights w = { .h = h };
	if (h->lanes.n < 2)
		return;
	for (size_t i = 0; i < h->lanes.n; i++)
		list_edges(h, &h->lanes.v[i]);
	weigh(&w);
	free(w.v);
	free(w.related);
}
