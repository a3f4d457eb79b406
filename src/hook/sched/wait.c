/* Makes a launch wait for its turn. */
#include "hook/sched/wait.h"

#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bounded.h"
#include "base/sys.h"
#include "hook/core/own_calls.h"
#include "hook/core/process.h"
#include "hook/core/strings.h"
#include "hook/range/range.h"
#include "hook/sched/cap.h"
#include "hook/sched/hold.h"
#include "record/sandbox.h"
#include "share/rule.h"

#define SMALL_BYTES (1u << 20) /* of a copy; less keeps no request waiting */
#define AWAKE_NS    200000u    /* so long it asks without sleeping */
#define AHEAD_NS    2000000u   /* of its own work so much has to be left before it sleeps */
#define NAP_NS      50000
#define DEATH_NS    5000000u /* so often it asks whether they still live */
#define STALE_NS    1000000000u

struct waiting {
	uint64_t since_ns, asked_ns; /* 0: not yet */
	uint64_t until_ns;           /* the request that it waits for is expected to last */
	enum rule_reason reason;
	uint32_t other; /* whose request that is; SHARE_SLOTS: none */
	bool expired;
	bool on_device;  /* it goes behind a hold */
	bool for_share;  /* it may go though a request is active: below its share */
	bool for_others; /* not for its own bound alone */
	bool in_vain;
	bool uncapped; /* caps can't be had */
	bool recorded; /* a range around it has begun */
	bool shut_in;  /* system calls may be what ends the program */
};

/* Why a launch waited, in the recording: a range around the wait that says for whom and by which
 * policy. */
static const char *const why[REASON_COUNT] = {
	[REASON_REQUEST] = "waits for a request",
	[REASON_SOON] = "waits for a request that is expected",
	[REASON_TURN] = "waits for another program's turn",
};

/* Stack addresses of this thread's open waits: a handler may wait in the middle of one. */
#define NESTED 4u
static __thread struct {
	uint32_t depth;
	uintptr_t frame[NESTED];
} open __attribute__((tls_model("initial-exec")));

/* "pid=1234 program=server policy=fit" */
static uint32_t details(const struct member *m, uint32_t other)
{
	char text[128];
	struct bounded b = BOUNDED(text);
	const char *policy = m->file->arbiter.policy;
	if (other < SHARE_SLOTS) {
		const struct share_who *w = &m->file->slots[other].who;
		bounded_put(&b, "pid=");
		bounded_decimal(&b, w->pid);
		bounded_put(&b, " program=");
		bounded_bytes(&b, w->name, strnlen(w->name, SHARE_NAME));
		bounded_put(&b, " ");
	}
	bounded_put(&b, "policy=");
	bounded_bytes(&b, policy, strnlen(policy, sizeof m->file->arbiter.policy));
	return string_of(bounded_end(&b));
}

/* A launch that waits for this program's own work leaves no range: that is how it always is. other:
 * whose request it is; frame: an address in the frame of who waits.  True: one has begun. */
static bool range_begins(
	const struct member *m, enum rule_reason reason, uint32_t other, const void *frame)
{
	if (!why[reason] || open.depth == NESTED || !ranges_are_kept() || !ranges_wanted())
		return false;
	open.frame[open.depth++] = (uintptr_t)frame;
	const struct range_text text = range_of_weir(why[reason], details(m, other));
	range_push(&text);
	return true;
}

/* How a launch goes on that does not wait until no request is active: a range of no length. */
enum wait_way {
	WAY_FREE,
	WAY_CAPPED,    /* on fewer SMs */
	WAY_EXPIRED,   /* it has waited for as long as any may, or what was like it has in vain */
	WAY_ON_DEVICE, /* it waits there, behind a hold */
	WAY_SHARE,     /* its program has had less than its share */
};

static const char *const ways[] = {
	[WAY_CAPPED] = "goes to fewer SMs",
	[WAY_EXPIRED] = "has waited for long enough",
	[WAY_ON_DEVICE] = "waits on the GPU",
	[WAY_SHARE] = "goes on for its share",
};

static void range_marks(const struct member *m, enum wait_way way, uint32_t other)
{
	if (way == WAY_FREE || !ranges_are_kept() || !ranges_wanted())
		return;
	const struct range_text text = range_of_weir(ways[way], details(m, other));
	range_mark(&text);
}

/* Ends this thread's waits whose frames are no deeper than this one: its own, and what was left by
 * longjmp before.  (On another stack a frame that lives may seem left; it is recorded as shorter.)
 */
static void range_ends(const void *frame)
{
	while (open.depth && open.frame[open.depth - 1] <= (uintptr_t)frame) {
		open.depth--;
		range_pop(string_of("weir"));
	}
}

/* If a request began longer ago than anybody waits, nothing is known of it any more.  One may have
 * begun since the clock was read. */
static bool believed(const struct member *m, uint32_t i, uint64_t now)
{
	const struct share_slot *s = &m->file->slots[i];
	const uint64_t begun = load_acquire(&s->work.begun_ns);
	const uint64_t apart = now > begun ? now - begun : begun - now;
	return i != m->index && apart < m->max_wait_ns;
}

static uint64_t end_of(const struct share_slot *s)
{
	const uint64_t end = load_relaxed(&s->work.begun_ns) + load_relaxed(&s->work.lasts_ns);
	return end ? end : 1;
}

/* Until when the first of them is expected to last; 0: there is none. */
static uint64_t active_until(const struct member *m, uint64_t now, uint32_t *ret_other)
{
	each_bit(i, w, load_acquire(&m->device->active[w])) {
		*ret_other = i;
		if (believed(m, i, now))
			return end_of(&m->file->slots[i]);
	}
	return 0;
}

/* The earliest request that is expected, later than `since`: one that should have come and did not
 * says nothing of others'.  0: none. */
static uint64_t next_request(const struct member *m, uint64_t since)
{
	uint64_t next = 0;
	each_bit(i, w, load_relaxed(&m->device->present[w])) {
		const uint64_t at = load_relaxed(&m->file->slots[i].work.next_ns);
		if (at > since && (!next || at < next))
			next = at;
	}
	return next;
}

/* Caps need somebody who watches over them, and turns somebody who gives the next. */
static struct share_grant grant_of(const struct member *m, uint64_t now)
{
	struct share_grant g = share_grant(m->slot);
	const uint64_t beat = load_relaxed(&m->file->arbiter.heartbeat_ns);
	if (now <= beat + STALE_NS)
		return g;
	g.cap_sms = g.cap_ahead_sms = 0;
	if (g.mode != MODE_OPEN)
		g.mode = member_is_latency(m) ? MODE_OPEN : MODE_GATE;
	return g;
}

/* A launch that was never measured is measured first, by waiting for it, and the work ahead stays
 * counted. */
static bool may_go_ahead(const struct gated *g, struct member *m)
{
	return cost_is_measured(g->cost) && hold_is_ready(&m->hold, m->slot) &&
	       !marks_are_measuring(&m->marks) && marks_have_room(&m->marks);
}

static enum rule_verdict ask(struct gated *g, struct member *m, const struct launch_shape *l,
	struct waiting *w, uint32_t *ret_sms)
{
	const uint64_t now = monotonic_ns();
	const struct share_grant grant = grant_of(m, now);
	w->other = SHARE_SLOTS;
	w->until_ns = active_until(m, now, &w->other);
	const bool alone = rule_is_alone(m->slot, m->device);
	w->on_device = !alone && may_go_ahead(g, m);
	const struct rule_view view = { .alone = alone,
		.active = w->until_ns,
		.on_device = w->on_device,
		.inflight_ns = marks_inflight(&m->marks, now),
		.capped_ns = marks_capped(&m->marks),
		.now_ns = now,
		.next_ns = grant.ahead_ns && now > grant.ahead_ns
				   ? next_request(m, now - grant.ahead_ns)
				   : 0 };
	w->for_share = view.active && grant.mode == MODE_BUDGET;
	w->for_others |= !view.alone;
	/* The launch may go now or ahead: the smaller cap counts. */
	const uint32_t fewest = grant.cap_ahead_sms && grant.cap_ahead_sms < grant.cap_sms
					? grant.cap_ahead_sms
					: grant.cap_sms;
	const uint64_t t90 = cost_t90(g->cost, UNKNOWN_NS), least = wait_least_ns(m, g->cost);
	const struct rule_launch launch = { .t90_ns = t90 > least ? t90 : least,
		.may_be_capped = !w->uncapped && cap_is_safe(g->cost, m->sms, fewest),
		.is_small = !l->what && l->bytes < SMALL_BYTES };
	return rule_of(&grant, &view, &launch, ret_sms, &w->reason);
}

/* If nobody else watches, the waiting thread buries the dead: a bit of theirs would be believed. */
static void bury(struct member *m, struct waiting *w, uint64_t now)
{
	if (now - w->asked_ns < DEATH_NS)
		return;
	w->asked_ns = now;
	for (uint32_t i = 0; i < SHARE_SLOTS; i++)
		if (share_bit(m->device->active, i))
			share_bury_slot(m->file, i);
}

/* Sleeping is for what lasts: a nap takes half as long again as it is asked for. */
static void pause_a_moment(const struct waiting *w, bool long_enough)
{
	const struct timespec nap = { 0, NAP_NS };
	if (long_enough && !w->shut_in) {
		sys(nanosleep, &nap, NULL);
		return;
	}
	for (int i = 0; i < 16; i++)
		cpu_pause();
	if (!w->shut_in)
		sys(sched_yield); /* the program that it waits for may be in want of this core */
}

static bool is_long(const struct member *m, const struct waiting *w, uint64_t now)
{
	if (w->reason == REASON_REQUEST) /* not while its end is near */
		return now - w->since_ns > AWAKE_NS &&
		       (now + AWAKE_NS < w->until_ns || now > w->until_ns + AWAKE_NS);
	if (w->reason != REASON_BUDGET)
		return now - w->since_ns > AWAKE_NS;
	return load_relaxed(&m->marks.ends_ns) > now + AHEAD_NS && !marks_are_measuring(&m->marks);
}

/* Work in flight may wait for this very launch, or for one behind it: until some of it is seen to
 * end, nobody waits for it again. */
static bool is_in_vain(struct member *m, struct waiting *w)
{
	if (w->reason != REASON_BUDGET || m->marks.stuck != m->marks.tail + 1)
		return false;
	const struct others others = member_others(m);
	marks_ask(&m->marks, m->slot, &others);
	return w->in_vain = m->marks.stuck == m->marks.tail + 1;
}

/* False: patience has ended. */
static bool wait_more(struct member *m, struct waiting *w)
{
	const uint64_t now = monotonic_ns();
	if (!w->since_ns) {
		w->since_ns = w->asked_ns = now;
		w->shut_in = sandbox_is_closed(NULL);
	}
	w->expired = now - w->since_ns >= m->max_wait_ns;
	if (w->expired && w->reason == REASON_BUDGET)
		m->marks.stuck = m->marks.tail + 1;
	if (w->expired)
		return false;
	if (!w->recorded)
		w->recorded = range_begins(m, w->reason, w->other, w);
	const struct others others = member_others(m);
	if (m->marks.head == m->marks.tail)
		marks_cut(&m->marks, m->slot, &others);
	pause_a_moment(w, is_long(m, w, now));
	if (!w->shut_in)
		bury(m, w, now);
	return true;
}

/* False: it can't be had. */
static bool enter_cap(struct gated *g, struct member *m, const struct launch_shape *l, uint32_t sms)
{
	struct own_calls own;
	own_calls_begin(&own);
	g->lane = cap_enter(m->ordinal, sms, l->stream, l->per_thread, &g->stream);
	own_calls_end(&own);
	if (!g->lane)
		return false;
	add_relaxed(&m->slot->counts.capped, 1);
	g->slower = (float)m->sms / (float)sms;
	g->took_ns = (uint64_t)((float)g->took_ns * g->slower);
	return true;
}

/* False: no hold could be put in front of it. */
static bool go(struct gated *g, struct member *m, const struct launch_shape *l, struct waiting *w)
{
	const struct hold_of of = member_hold(m);
	return !w->on_device ||
	       hold_put(&m->hold, &of, g->held, g->took_ns, l->stream, l->per_thread);
}

/* Gates may be opened, a capture may begin, and the program end, while it waits. */
static bool is_still_gated(const struct member *m)
{
	return load_relaxed(&hook_hot.captures) <= 0 && load_relaxed(&hook_hot.gate) &&
	       !rule_is_free(m->slot, m->file);
}

static enum wait_way way_of(const struct gated *g, const struct waiting *w)
{
	return g->lane                       ? WAY_CAPPED
	       : w->expired || w->in_vain    ? WAY_EXPIRED
	       : w->for_share                ? WAY_SHARE
	       : w->on_device && w->until_ns ? WAY_ON_DEVICE
					     : WAY_FREE;
}

void wait_for_turn(struct gated *g, struct member *m, const struct launch_shape *l)
{
	struct waiting w = { 0 };
	uint32_t sms = 0;
	range_ends(&w); /* what was left in the middle */
	while (is_still_gated(m)) {
		const enum rule_verdict verdict = ask(g, m, l, &w, &sms);
		if ((verdict == RULE_GO && go(g, m, l, &w)) ||
			(verdict == RULE_CAP && enter_cap(g, m, l, sms)))
			break;
		w.uncapped = w.uncapped || verdict == RULE_CAP;
		if (verdict == RULE_WAIT && (is_in_vain(m, &w) || !wait_more(m, &w)))
			break;
		const struct others others = member_others(m);
		marks_ask(&m->marks, m->slot, &others);
		store_relaxed(&m->slot->work.retired_ns, load_relaxed(&m->marks.retired_ns));
	}
	range_ends(&w);
	range_marks(m, way_of(g, &w), w.other);
	/* A program that is alone only keeps its own work within a bound, and waits for nobody. */
	if (w.since_ns && w.for_others)
		share_count_wait(&m->slot->counts, monotonic_ns() - w.since_ns, w.expired);
}
