/* See marks.h.  The lock is tried, never waited for: who does not get it goes on unmarked. */
#include "hook/sched/marks.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/check.h"
#include "hook/core/call.h"
#include "hook/core/own_calls.h"

#define NO_TIMING  2u /* CU_EVENT_DISABLE_TIMING */
#define BOUNDS     4u
#define GUESS_OFF  100   /* times as long as guessed: then it was no guess */
#define SENDING_NS 3000u /* from a launch's return to its begin on an idle device */
#define SHARP_NS   4000u /* a mark has come within so much of when it was last asked after */

static void submit(struct marks *m, const struct gated *g, bool is_dated)
{
	const uint64_t now = is_dated ? monotonic_ns() + SENDING_NS : 0;
	const uint64_t from = load_relaxed(&m->ends_ns) > now ? load_relaxed(&m->ends_ns) : now;
	store_relaxed(&m->ends_ns, from + g->took_ns);
	add_alone(&m->submitted_ns, g->took_ns);
	if (g->lane)
		add_alone(&m->capped_ns, g->took_ns);
}

static void retire(struct marks *m, const struct mark *k)
{
	add_alone(&m->retired_ns, k->ns);
	add_alone(&m->capped_ns, -k->capped_ns);
}

uint64_t marks_inflight(const struct marks *m, uint64_t now)
{
	if (lock_is_vain(&m->lock)) /* nobody may ever see what is there end */
		return 0;
	const uint64_t retired = load_relaxed(&m->retired_ns);
	const uint64_t submitted = load_relaxed(&m->submitted_ns);
	const uint64_t ends = load_relaxed(&m->ends_ns);
	const uint64_t all = submitted > retired ? submitted - retired : 0;
	const uint64_t capped = marks_capped(m);
	if (capped)
		return all > capped ? all - capped : 0;
	if (ends > now)
		return ends - now < all ? ends - now : all;
	/* Overdue: of one mark that is as it may be, of more the predictions are too short. */
	return m->head - m->tail > 1 ? all : 0;
}

/* How many are to come. */
static uint32_t count(const struct marks *m)
{
	return m->head - m->tail;
}

static bool of_this_context(struct marks *m)
{
	void *context = current_context();
	if (!m->context)
		m->context = context;
	return context && m->context == context;
}

static void empty(struct marks *m)
{
	m->next = (struct mark){ 0 };
	store_relaxed(&m->next_measures, false);
}

/* Turns the collected launches into a mark, or takes them for done. */
static void put(struct marks *m, struct share_slot *slot)
{
	struct own_calls own;
	struct mark *at = &m->ring[m->head % MARKS];
	void *const event = at->event;
	own_calls_begin(&own);
	bool done = count(m) < MARKS && of_this_context(m) &&
		    load_relaxed(&hook_hot.captures) <= 0 && real_at(FN_cuEventCreate) &&
		    real_at(FN_cuEventRecord_ptsz);
	*at = m->next;
	at->event = event;
	done = done && (event || !REAL(cuEventCreate)(&at->event, NO_TIMING)) &&
	       !REAL_OF(cuEventRecord, at->per_thread)(at->event, at->stream);
	if (done) {
		m->head++;
		if (load_relaxed(&m->next_measures))
			store_relaxed(&m->measuring, m->head);
	} else {
		retire(m, &m->next);
		add_relaxed(&slot->counts.unmarked, m->next.launches);
	}
	empty(m);
	own_calls_end(&own);
}

/* Best effort in flight: what it has published.  While it is held it has none. */
static bool is_idle(const struct share_slot *s)
{
	return load_relaxed(&s->work.submitted_ns) == load_relaxed(&s->work.retired_ns);
}

static bool none_active(const struct others *o)
{
	const struct share_device *d = o->device;
	if (share_any(d->active))
		return false;
	each_bit(i, w, load_relaxed(&d->members[w]) & ~load_relaxed(&d->present[w]))
		if (i != o->index && !is_idle(&o->file->slots[i]))
			return false;
	return true;
}

static uint64_t requests_of(const struct others *o)
{
	return load_relaxed(&o->device->requests);
}

static void begin(struct marks *m, const struct others *others)
{
	struct mark *n = &m->next;
	n->teaches = n->alike = true;
	n->first_ns = monotonic_ns();
	n->requests = requests_of(others);
	n->first_alone = none_active(others);
	n->first_idle = m->head == m->tail;
}

/* If there are more calls than room, each is as likely as another to be remembered. */
static void remember(struct mark *n, struct cost *c, uint64_t submitted_ns)
{
	const uint32_t lot = (uint32_t)(submitted_ns * 0x9e3779b97f4a7c15u >> 32),
		       at = n->calls < MARK_COSTS ? n->calls : lot % (n->calls + 1);
	n->alike = n->alike && (!n->calls || c == n->cost[0]);
	if (at < MARK_COSTS)
		n->cost[at] = c;
	n->calls++;
}

static void collect(struct marks *m, const struct others *others, const struct gated *g)
{
	struct mark *n = &m->next;
	if (!n->launches)
		begin(m, others);
	n->slower = n->launches ? n->slower : g->slower;
	n->teaches = n->teaches && !g->more && n->slower == g->slower &&
		     (!n->launches || n->stream == g->own_stream);
	n->stream = g->own_stream;
	n->per_thread = g->per_thread;
	n->launches += 1 + g->more;
	n->ns += g->took_ns;
	n->capped_ns += g->lane ? g->took_ns : 0;
	remember(n, g->cost, load_relaxed(&m->submitted_ns));
	if (!cost_is_measured(g->cost))
		store_relaxed(&m->next_measures, true);
}

void marks_stream_ends(struct marks *m, struct share_slot *slot, const void *stream)
{
	if (!m->next.launches || m->next.stream != stream || !lock_take(&m->lock, LOCK_NAPS))
		return;
	if (m->next.launches && m->next.stream == stream)
		put(m, slot);
	lock_give(&m->lock);
}

bool marks_are_measuring(const struct marks *m)
{
	return load_relaxed(&m->next_measures) ||
	       (count(m) && (int32_t)(load_relaxed(&m->measuring) - m->tail) > 0);
}

bool marks_have_room(const struct marks *m)
{
	return count(m) < MARKS;
}

static void teach(const struct mark *k, struct share_slot *slot, uint64_t span)
{
	const float scale = k->ns ? (float)span / (float)k->ns : 1;
	const uint32_t costs = MIN(k->calls, MARK_COSTS);
	bool known = k->ns > 0;
	for (uint32_t i = 0; i < costs; i++)
		known = known && cost_is_measured(k->cost[i]);
	if (known) {
		add_alone(&slot->counts.predicted_ns, k->ns);
		add_alone(&slot->counts.measured_ns, span);
		add_alone(&slot->counts.off_ns, span > k->ns ? span - k->ns : k->ns - span);
	}
	if (k->alike)
		cost_learn(k->cost[0], (float)span / (float)k->calls);
	for (uint32_t i = 0; !k->alike && i < costs; i++)
		cost_correct(k->cost[i], scale);
}

/* It took no longer: what it takes alone nobody saw.  Predictions of twice that or more are
 * corrected.  A launch that was never measured counts as measured after some of these, or others
 * would wait for it alone for ever. */
static void bound(const struct mark *k, uint64_t most)
{
	struct cost *c = k->cost[0];
	const float ns = (float)most / k->slower;
	if (most < k->ns / 2 && k->launches == k->calls)
		for (uint32_t i = 0; i < MIN(k->calls, MARK_COSTS); i++)
			cost_correct(k->cost[i], (float)most / (float)k->ns);
	if (k->launches != 1 || cost_is_measured(c))
		return;
	const uint32_t bounds = load_relaxed(&c->bounds);
	float guess = load_relaxed(&c->guess_ns), least = load_relaxed(&c->least_ns);
	least = !bounds || ns < least ? ns : least;
	guess = guess <= 0 || ns < guess ? ns : guess;
	store_relaxed(&c->least_ns, least);
	store_relaxed(&c->guess_ns, guess);
	store_relaxed(&c->bounds, bounds + 1);
	if (bounds + 1 >= BOUNDS)
		cost_learn(c, least > GUESS_OFF * guess ? least : guess);
}

/* Since when the device was at the mark's work: from when the one before came, or, when there was
 * nothing to do before it, from when it was sent.  0: nobody knows. */
static uint64_t begun(const struct marks *m, const struct mark *k)
{
	if (m->came_ns >= k->first_ns)
		return m->came_stream == k->stream ? m->came_ns : 0;
	return k->first_idle ? k->first_ns + SENDING_NS : 0;
}

/* Whether nobody else had the device since then. */
static bool was_alone(const struct marks *m, const struct mark *k, const struct others *others)
{
	const bool chained = m->came_ns >= k->first_ns;
	return none_active(others) && (chained ? m->came_alone : k->first_alone) &&
	       requests_of(others) == (chained ? m->requests : k->requests);
}

/* The oldest has come.  Sharp: it had not a moment before. */
static void came(struct marks *m, struct share_slot *slot, const struct others *others)
{
	const struct mark *k = &m->ring[m->tail % MARKS];
	const uint64_t now = monotonic_ns(), since = begun(m, k);
	const uint64_t span = since && now > since ? now - since : 0;
	const bool sharp = now - m->not_yet_ns < SHARP_NS + span / 32;
	if (sharp && k->teaches && span && !k->capped_ns && was_alone(m, k, others)) {
		teach(k, slot, span);
	} else {
		add_alone(&slot->counts.contended, sharp && span);
		bound(k, span ? span : now - k->first_ns);
	}
	m->came_ns = sharp ? now : 0;
	m->came_stream = k->stream;
	m->came_alone = none_active(others);
	m->requests = requests_of(others);
	retire(m, k);
	m->tail++;
	store_relaxed(
		&m->ends_ns, now + load_relaxed(&m->submitted_ns) - load_relaxed(&m->retired_ns));
}

/* Under the lock, between own_calls_begin() and _end(). */
static void look(struct marks *m, struct share_slot *slot, const struct others *others)
{
	while (count(m)) {
		const int answer = REAL(cuEventQuery)(m->ring[m->tail % MARKS].event);
		if (answer == NOT_READY) {
			m->not_yet_ns = monotonic_ns();
			break;
		}
		came(m, slot, others); /* on an error as well: nothing can be waited for */
	}
}

void marks_ask(struct marks *m, struct share_slot *slot, const struct others *others)
{
	struct own_calls own;
	if (!count(m) || !real_at(FN_cuEventQuery))
		return;
	own_calls_begin(&own);
	if (lock_try(&m->lock)) {
		look(m, slot, others);
		lock_give(&m->lock);
	}
	own_calls_end(&own);
}

/* A program that never waits never asks, and there is no room in the end. */
static void make_room(struct marks *m, struct share_slot *slot, const struct others *others)
{
	struct own_calls own;
	if (count(m) <= MARKS / 2 || !real_at(FN_cuEventQuery))
		return;
	own_calls_begin(&own);
	look(m, slot, others);
	own_calls_end(&own);
}

void marks_add(struct marks *m, struct share_slot *slot, const struct others *others,
	const struct gated *g, struct quantum quantum)
{
	if (!lock_try(&m->lock)) {
		add_relaxed(&slot->counts.unmarked, 1);
		return;
	}
	submit(m, g, quantum.is_dated);
	collect(m, others, g);
	if (m->next.ns >= quantum.ns || !cost_is_measured(g->cost)) {
		make_room(m, slot, others);
		put(m, slot);
	}
	lock_give(&m->lock);
}

void marks_cut(struct marks *m, struct share_slot *slot, const struct others *others)
{
	if (!m->next.launches || !lock_try(&m->lock))
		return;
	if (m->next.launches) {
		make_room(m, slot, others);
		put(m, slot);
	}
	lock_give(&m->lock);
}

static void drop(struct marks *m)
{
	m->tail = m->head;
	empty(m);
	store_relaxed(&m->retired_ns, load_relaxed(&m->submitted_ns));
	store_relaxed(&m->capped_ns, 0);
	store_relaxed(&m->ends_ns, 0);
	m->came_ns = 0;
}

void marks_retire_all(struct marks *m)
{
	if (load_relaxed(&m->submitted_ns) == load_relaxed(&m->retired_ns) || !lock_try(&m->lock))
		return;
	drop(m);
	lock_give(&m->lock);
}

static void leave(struct marks *m, bool destroy)
{
	if (!lock_take(&m->lock, LOCK_NAPS))
		return;
	for (uint32_t i = 0; i < MARKS; i++) {
		if (destroy && m->ring[i].event && real_at(FN_cuEventDestroy_v2))
			REAL(cuEventDestroy_v2)(m->ring[i].event);
		m->ring[i].event = NULL;
	}
	m->context = NULL;
	drop(m);
	lock_give(&m->lock);
}

void marks_leave(struct marks *m)
{
	leave(m, true);
}

void marks_forget(struct marks *m)
{
	leave(m, false);
}
