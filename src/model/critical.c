/* The critical path: see critical_fill() in timeline.h. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/expect.h"
#include "base/radix.h"
#include "base/search.h"
#include "model/host_time.h"
#include "model/timeline.h"

#include "base/banned.h"

const char *const path_part_name[PATH_PARTS] = {
	[PATH_COMPUTING] = "computing",
	[PATH_COMMUNICATING] = "communicating",
	[PATH_COPYING] = "copying",
	[PATH_QUEUE] = "queue",
	[PATH_LAUNCH] = "launch",
	[PATH_HOST] = "host",
	[PATH_WAITING] = "waiting",
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
	[PATH_BEFORE] = "before the first GPU activity",
	[PATH_AFTER] = "after the last GPU activity",
};

#define NONE UINT32_MAX

/* An activity that begins so soon after the one before it in its stream waited for it alone. */
#define HANDOVER_NS 10000u

struct ended {
	uint64_t end_ns;
	uint32_t activity;
};

struct walker {
	struct report *r;
	const struct timeline *t;
	const struct host_time *host;
	struct ended *ended; /* all activities, by end */
	uint32_t *previous;  /* the activity before in the same stream, or NONE */
	uint64_t *path_ns;
	uint64_t start_ns; /* where the path must end */
	uint64_t at;       /* how far back it has come */
};

static void spend(struct walker *w, enum path_part part, uint64_t until)
{
	if (until >= w->at)
		return;
	w->path_ns[part] += w->at - until;
	expect_slow(w->path_ns[part] <= w->r->wall_ns, "no part of the path is longer than all");
	w->at = until;
}

static int index_activities(struct walker *w)
{
	const size_t n = w->t->activities.n;
	uint32_t *last = malloc((w->t->stream_count + 1) * sizeof *last);
	w->ended = malloc(n * sizeof *w->ended);
	w->previous = malloc(n * sizeof *w->previous);
	if (!last || !w->ended || !w->previous) {
		free(last);
		return -ENOMEM;
	}
	for (size_t i = 0; i <= w->t->stream_count; i++)
		last[i] = NONE;
	for (uint32_t i = 0; i < n; i++) {
		const struct activity *p = &w->t->activities.v[i];
		const bool known = p->stream != NO_STREAM;
		w->ended[i] = (struct ended){ p->end_ns, i };
		w->previous[i] = known ? last[p->stream] : NONE;
		last[known ? p->stream : w->t->stream_count] = i;
	}
	free(last);
	return radix_sort(w->ended, n, sizeof *w->ended, offsetof(struct ended, end_ns),
		sizeof w->ended->end_ns);
}

/* The activity that ended last, at `ns` at the latest, and began before; or NONE. */
static uint32_t ended_by(const struct walker *w, uint64_t ns)
{
	size_t low = SEARCH(i, 0, w->t->activities.n, w->ended[i].end_ns <= ns);
	while (low && w->t->activities.v[w->ended[low - 1].activity].start_ns >= ns)
		low--; /* of no length, at that very moment */
	expect(!low || w->ended[low - 1].activity < w->t->activities.n,
		"the activity found is one of all");
	return low ? w->ended[low - 1].activity : NONE;
}

/* Back along a thread, from a call to the last wait that something on a device ended. */
static uint32_t follow_host(struct walker *w, const struct caller *call)
{
	uint64_t from = call->start_ns;
	for (const struct host_span *s; (s = host_time_wait(w->host, call->thread, from));) {
		const uint32_t waited = ended_by(w, s->end_ns);
		from = s->start_ns;
		if (waited == NONE || w->t->activities.v[waited].end_ns < s->start_ns)
			continue;
		spend(w, PATH_HOST, s->end_ns);
		spend(w, PATH_WAITING, w->t->activities.v[waited].end_ns);
		return waited;
	}
	return NONE;
}

/*
 * What the activity waited for last: another activity, or NONE and the path is at its beginning.
 * Of a recording that is read in part, what was launched before the part had been queued when it
 * began, and behind what is not known.
 */
static uint32_t follow(struct walker *w, uint32_t activity)
{
	const struct activity *p = &w->t->activities.v[activity];
	uint32_t before = w->previous[activity];
	uint64_t ready = before == NONE ? 0 : w->t->activities.v[before].end_ns;
	const struct caller *call = p->call == NO_CALL ? NULL : &w->t->calls.v[p->call];
	const uint64_t returned = call ? call->end_ns : 0;
	if (returned < w->at && ready + HANDOVER_NS < w->at && returned + HANDOVER_NS < w->at) {
		const uint32_t other = ended_by(w, w->at);
		if (other != NONE && w->t->activities.v[other].end_ns > ready) {
			before = other;
			ready = w->t->activities.v[other].end_ns;
		}
	}
	if (call && returned >= ready && returned < w->start_ns) {
		spend(w, PATH_QUEUE, w->t->activities.v[0].start_ns);
		return NONE;
	}
	if (call && returned >= ready) {
		spend(w, PATH_LAUNCH, returned);
		return follow_host(w, call);
	}
	if (before != NONE)
		spend(w, PATH_QUEUE, ready);
	return before;
}

static enum path_part part_of(const struct activity *p)
{
	if (p->kind == GPU_MEMCPY || p->kind == GPU_MEMSET)
		return PATH_COPYING;
	return p->communicates ? PATH_COMMUNICATING : PATH_COMPUTING;
}

/* A path that ends where the host began, or where nothing is known to go back to. */
static void walk(struct walker *w)
{
	uint32_t activity = w->ended[w->t->activities.n - 1].activity;
	spend(w, PATH_AFTER, w->t->activities.v[activity].end_ns);
	/* Equal times could lead round in a circle. */
	for (size_t steps = 0; activity != NONE && steps < w->t->activities.n; steps++) {
		const struct activity *p = &w->t->activities.v[activity];
		const uint64_t before = w->at;
		spend(w, part_of(p), p->start_ns);
		w->r->activities.v[p->row].path_ns += before - w->at;
		activity = follow(w, activity);
	}
	spend(w, PATH_HOST, w->t->activities.v[0].start_ns);
	spend(w, PATH_BEFORE, w->start_ns);
	expect(w->at == w->start_ns, "the critical path ends where the recording begins");
}

/* How long the stream that worked longest did so; kernels of a graph may overlap in one. */
static int busiest_stream(const struct timeline *t, uint64_t *ret_ns)
{
	struct {
		uint64_t until, ns;
	} *streams = calloc(t->stream_count + 1, sizeof *streams);
	if (!streams)
		return -ENOMEM;
	for (size_t i = 0; i < t->activities.n; i++) {
		const struct activity *p = &t->activities.v[i];
		const uint32_t s = p->stream;
		if (s == NO_STREAM || p->end_ns <= streams[s].until)
			continue;
		const uint64_t from =
			p->start_ns > streams[s].until ? p->start_ns : streams[s].until;
		streams[s].ns += p->end_ns - from;
		streams[s].until = p->end_ns;
		*ret_ns = streams[s].ns > *ret_ns ? streams[s].ns : *ret_ns;
	}
	free(streams);
	return 0;
}

/* A path through the host may be hardly longer than one through a stream that was busy too. */
static int find_host_most(struct report *r, const struct timeline *t)
{
	struct analysis *a = &r->analysis;
	const uint64_t *ns = a->path_ns;
	const uint64_t host = ns[PATH_HOST] + ns[PATH_LAUNCH] + ns[PATH_WAITING];
	const uint64_t all = r->wall_ns - ns[PATH_BEFORE] - ns[PATH_AFTER];
	uint64_t busiest = 0;
	const int e = busiest_stream(t, &busiest);
	const uint64_t rest = all > busiest ? all - busiest : 0;
	a->path_host_most_ns = host < rest ? host : rest;
	expect(busiest <= r->wall_ns, "a stream is busy for the wall time at most");
	return e;
}

int critical_fill(
	struct report *r, const struct timeline *t, const struct host_time *h, uint64_t start_ns)
{
	struct walker w = { .r = r,
		.t = t,
		.host = h,
		.path_ns = r->analysis.path_ns,
		.start_ns = start_ns,
		.at = start_ns + r->wall_ns };
	int e = index_activities(&w);
	if (!e) {
		walk(&w);
		e = find_host_most(r, t);
	}
	free(w.ended);
	free(w.previous);
	return e;
}
