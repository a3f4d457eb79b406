/*
 * The walk along the critical path, from the end of the recording back: see path.h.  Each step goes
 * to what was waited for last, and the time between counts as a part.
 */
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "event/format.h"
#include "path/causes.h"

const char *const path_part_name[PATH_PARTS] = {
	[PATH_COMPUTING] = "computing",
	[PATH_COMMUNICATING] = "communicating",
	[PATH_COPYING] = "copying",
	[PATH_QUEUE] = "queue",
	[PATH_LAUNCH] = "launch",
	[PATH_HOST] = "host",
	[PATH_WAITING] = "waiting",
	[PATH_OVERLAPPED] = "overlapped",
	[PATH_UNKNOWN] = "unknown",
	[PATH_BEFORE] = "before",
	[PATH_AFTER] = "after",
};

const char *const path_part_text[PATH_PARTS] = {
	[PATH_COMPUTING] = "kernels running",
	[PATH_COMMUNICATING] = "communication between devices",
	[PATH_COPYING] = "memcpy and memset",
	[PATH_QUEUE] = "queued behind other GPU activities",
	[PATH_LAUNCH] = "launch latency: from the call's return to the start on the GPU",
	[PATH_HOST] = "host, in CUDA calls or outside",
	[PATH_WAITING] = "host synchronizing: from the end on the GPU to the call's return",
	[PATH_OVERLAPPED] = "host and GPU at once: the GPU alone would take as long",
	[PATH_UNKNOWN] = "not known: what two paths that fit do not share",
	[PATH_BEFORE] = "before the first GPU activity",
	[PATH_AFTER] = "after the last GPU activity",
};

/* Close doubts make at most one of so many parts of the wall time unknown. */
#define UNKNOWN_PART 50u

/* If two times fit and one is so many times shorter, the shorter one is the cause. */
#define SURELY_LESS 4u

struct walker {
	const struct host *h;
	uint64_t ns[PATH_PARTS];
	uint64_t at;       /* how far back it has come */
	uint32_t activity; /* at whose end it is, or NONE: at the beginning of the recording */
	bool other;        /* where the recording fits two causes, it takes the other one … */
	enum doubt doubt;  /* … and it came by such a place */
	bool decides; /* of close doubts, since enough is unknown: it takes the likelier cause */
};

/* In front of the first activity there is one part. */
static void spend(struct walker *w, enum path_part part, uint64_t until)
{
	if (part != PATH_BEFORE)
		until = MAX(until, w->h->in->t->activities.v[0].start_ns);
	if (until >= w->at)
		return;
	w->ns[part] += w->at - until;
	expect_slow(w->ns[part] <= w->h->in->wall_ns, "no part of the path is longer than all");
	w->at = until;
}

/* The activity whose end let the wait return. */
static uint32_t leave_wait(struct walker *w, const struct mark *m, uint32_t activity)
{
	spend(w, PATH_HOST, m->end_ns);
	spend(w, m->host_function ? PATH_HOST : PATH_WAITING,
		w->h->in->t->activities.v[activity].end_ns);
	return activity;
}

/* Back along threads, from a call to the last wait that something on a device ended. */
static uint32_t follow_host(struct walker *w, const struct caller *call)
{
	uint32_t lane = w->h->lane_of[call->thread];
	uint32_t mark = host_mark_at(w->h, lane, call->start_ns);
	while (mark != NONE) {
		enum doubt doubt;
		const struct cause c = host_cause(w->h, lane, mark, w->other, &doubt);
		w->doubt = doubt > w->doubt ? doubt : w->doubt;
		lane = c.lane;
		mark = c.mark;
		if (mark == NONE)
			break;
		const struct mark *m = &w->h->lanes.v[lane].marks.v[mark];
		const uint32_t waited = host_waited(w->h, m);
		if (waited != NONE && m->end_ns <= call->start_ns)
			return leave_wait(w, m, waited);
	}
	return NONE;
}

/* The last cause that held an activity up. */
enum held { HELD_BEFORE, HELD_LAUNCH, HELD_EITHER };

/* If two are over before it and fit, the one less beyond its least time is likelier. The other
 * would have been over in time by chance. */
static enum held likelier(uint64_t before_ns, uint64_t launch_ns)
{
	return launch_ns * SURELY_LESS < before_ns   ? HELD_LAUNCH
	       : before_ns * SURELY_LESS < launch_ns ? HELD_BEFORE
						     : HELD_EITHER;
}

/* Whether its launch held the activity up longer than what was before it on the device.  It begins
 * very soon after the latter, or it did not wait for that. */
static enum held held_up_by(const struct host *h, const struct caller *call, uint32_t activity,
	uint32_t before, uint64_t ready)
{
	const uint64_t start = h->in->t->activities.v[activity].start_ns;
	if (h->behind_host[activity]) /* whose end is not recorded */
		return call->end_ns > ready && call->end_ns + HANDOVER_NS / 2 >= start
			       ? HELD_LAUNCH
			       : HELD_BEFORE;
	if (before != NONE && ready + h->handover_most_ns >= start && ready <= start &&
		call->end_ns + h->launch_least_ns <= start &&
		call->end_ns + h->launch_most_ns >= start) {
		const uint64_t earliest = ready + h->handover_least_ns;
		return likelier(start > earliest ? start - earliest : 0,
			start - call->end_ns - h->launch_least_ns);
	}
	const uint64_t soon = h->handover_most_ns * (before == h->previous[activity] ? 1 : 2);
	const bool at_once = ready >= call->start_ns && ready + soon >= start;
	return !at_once && (call->end_ns >= ready || call->end_ns + HANDOVER_NS >= start)
		       ? HELD_LAUNCH
		       : HELD_BEFORE;
}

/*
 * The last thing that the activity waited for: another activity, or NONE and the path is at its
 * beginning. In a recording that is read in part, work that was launched before the part had been
 * queued when it began, and the work ahead of it is not known.
 */
static uint32_t follow(struct walker *w, uint32_t activity)
{
	const struct timeline *t = w->h->in->t;
	const struct activity *p = &t->activities.v[activity];
	const struct caller *call = p->call == NO_CALL ? NULL : &t->calls.v[p->call];
	const uint64_t returned = call ? call->end_ns : 0;
	const uint32_t before = host_behind(w->h, activity);
	const uint64_t ready = before == NONE ? 0 : t->activities.v[before].end_ns;
	if (call && returned >= ready && returned < w->h->in->start_ns) {
		spend(w, PATH_QUEUE, t->activities.v[0].start_ns);
		return NONE;
	}
	enum held held = call ? held_up_by(w->h, call, activity, before, ready) : HELD_BEFORE;
	if (held == HELD_EITHER) {
		w->doubt = w->doubt ? w->doubt : DOUBT_CLOSE;
		held = w->other ? HELD_LAUNCH : HELD_BEFORE;
	}
	if (held == HELD_LAUNCH) {
		spend(w, PATH_LAUNCH, returned);
		return follow_host(w, call);
	}
	if (before != NONE)
		spend(w, w->h->behind_host[activity] ? PATH_HOST : PATH_QUEUE, ready);
	return before;
}

static enum path_part part_of(const struct activity *p)
{
	if (p->kind == GPU_MEMCPY || p->kind == GPU_MEMSET)
		return PATH_COPYING;
	return p->communicates ? PATH_COMMUNICATING : PATH_COMPUTING;
}

/* At the beginning, which is where the host began, or where nothing is known to go back to. */
static void finish(struct walker *w)
{
	const uint64_t first = w->h->in->t->activities.v[0].start_ns;
	w->activity = NONE;
	spend(w, PATH_HOST, first);
	spend(w, PATH_BEFORE, w->h->in->start_ns);
	expect(w->at == w->h->in->start_ns, "the critical path ends where the recording begins");
}

/* One activity back; how much of it is on the path. */
static uint64_t step(struct walker *w)
{
	const struct activity *p = &w->h->in->t->activities.v[w->activity];
	const uint64_t from = w->at;
	spend(w, part_of(p), p->start_ns);
	const uint64_t ns = from - w->at;
	w->activity = follow(w, w->activity);
	if (w->activity == NONE)
		finish(w);
	return ns;
}

static bool is_together(const struct walker *one, const struct walker *two)
{
	return one->activity == two->activity && one->at == two->at;
}

/* Goes on until both are at the same end of an activity. */
static void walk_apart(struct walker *one, struct walker *two, size_t *steps)
{
	while (!is_together(one, two) && *steps) {
		struct walker *later =
			two->activity == NONE || (one->activity != NONE && one->at >= two->at)
				? one
				: two;
		step(later);
		--*steps;
	}
	if (!is_together(one, two)) {
		finish(one);
		finish(two);
	}
}

/* How much of the way two walkers do not share. */
static uint64_t difference(const struct walker *one, const struct walker *two)
{
	uint64_t ns = 0;
	for (int i = 0; i < PATH_PARTS; i++)
		ns += one->ns[i] > two->ns[i] ? one->ns[i] - two->ns[i] : 0;
	return ns;
}

/* Errors in close doubts even out: once enough is unknown, the likelier way is taken. */
static bool is_unknown(struct walker *w, uint64_t ns, const struct path *path)
{
	if (w->doubt == DOUBT_CLOSE &&
		path->ns[PATH_UNKNOWN] + ns > w->h->in->wall_ns / UNKNOWN_PART)
		w->decides = true;
	return w->doubt == DOUBT_WAKES || !w->decides;
}

/* If the recording fits two causes, skips to where both ways meet: what they do not share. */
static uint64_t skip_unknown(
	struct walker *w, const struct walker *from, size_t *steps, const struct path *path)
{
	struct walker one = *w, two = *from;
	size_t left = *steps;
	two.other = true;
	step(&two);
	walk_apart(&one, &two, &left);
	const uint64_t ns = difference(&one, &two);
	if (!is_unknown(w, ns, path))
		return 0;
	for (int i = 0; i < PATH_PARTS; i++)
		one.ns[i] = MIN(one.ns[i], two.ns[i]);
	*w = one;
	*steps = left;
	return ns;
}

/* One activity back, or behind what is not known. */
static void walk_on(struct walker *w, size_t *steps, struct path *path)
{
	const struct walker from = *w;
	w->doubt = DOUBT_NONE;
	path->activity_ns.v[from.activity] += step(w);
	if (!--*steps)
		finish(w);
	else if (w->doubt == DOUBT_WAKES || (w->doubt && !w->decides))
		path->ns[PATH_UNKNOWN] += skip_unknown(w, &from, steps, path);
	for (int i = 0; i < PATH_PARTS; i++) {
		path->ns[i] += w->ns[i];
		w->ns[i] = 0;
	}
}

static void walk(const struct host *h, struct path *path)
{
	const struct timeline *t = h->in->t;
	struct walker w = {
		.h = h,
		.at = h->in->start_ns + h->in->wall_ns,
		.activity = h->ended[t->activities.n - 1].activity,
	};
	size_t steps = 2 * t->activities.n; /* equal times could lead round in a circle */
	path->ns[PATH_AFTER] = w.at - t->activities.v[w.activity].end_ns;
	w.at -= path->ns[PATH_AFTER];
	while (w.activity != NONE)
		walk_on(&w, &steps, path);
}

/* A host that takes no time may not save all of its share of the path: activities that are not on
 * the path would be then. */
static void bound_host(struct path *p, uint64_t saved_ns)
{
	static const enum path_part parts[] = { PATH_HOST, PATH_WAITING, PATH_LAUNCH };
	const uint64_t all = p->ns[PATH_HOST] + p->ns[PATH_WAITING] + p->ns[PATH_LAUNCH];
	uint64_t more = all > saved_ns ? all - saved_ns : 0;
	p->host_most_ns = all - more;
	p->ns[PATH_OVERLAPPED] = more;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const uint64_t taken = more < p->ns[parts[i]] ? more : p->ns[parts[i]];
		p->ns[parts[i]] -= taken;
		more -= taken;
	}
	expect(!more, "the host's parts have what is taken from them");
}

static int prepare(struct host *h)
{
	int e = host_read(h);
	if (!e)
		host_join_lanes(h);
	if (!e)
		host_order(h);
	if (!e)
		host_find_wakes(h);
	return e;
}

static int find(struct host *h, struct path *ret_path)
{
	uint64_t saved;
	const size_t n = h->in->t->activities.n;
	const int e = prepare(h);
	if (e)
		return e;
	array_reserve(&ret_path->activity_ns, n);
	memset(ret_path->activity_ns.v, 0, n * sizeof *ret_path->activity_ns.v);
	ret_path->activity_ns.n = n;
	host_replay(h, &saved);
	walk(h, ret_path);
	bound_host(ret_path, saved);
	return 0;
}

int path_find(const struct path_input *in, struct path *ret_path)
{
	struct host h = { .in = in };
	*ret_path = (struct path){ 0 };
	const int e = find(&h, ret_path);
	for (size_t i = 0; i < h.lanes.n; i++)
		array_free(&h.lanes.v[i].marks, &h.lanes.v[i].edges);
	array_free(&h.lanes, &h.orders);
	free_all(h.lane_of, h.ended, h.previous, h.awaits, h.behind_host, h.wakes, h.soonest_ns,
		h.latest_ns);
	map_fini(&h.places);
	return e;
}

void path_fini(struct path *p)
{
	array_free(&p->activity_ns);
}
