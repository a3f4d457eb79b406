/*
 * Replays the recorded program with a host that takes no time, which leaves the time that devices
 * need. An activity begins when its own dependencies have ended, and those that its thread waited
 * for before the launch.
 */
#include "path/causes.h"

#include <stdlib.h>

#include "base/expect.h"
#include "base/radix.h"
#include "base/search.h"

/* A lane goes on: after an activity, or after another lane. */
struct resume {
	uint64_t ns;       /* as recorded */
	uint32_t lane;     /* that goes on … */
	uint32_t from;     /* … after this one, or NONE … */
	uint32_t activity; /* … or after this one */
};

/* From then on, as recorded, a lane is not before clock_ns of the replay. */
struct reached {
	uint64_t ns, clock_ns;
};

struct reached_list {
	ARRAY(struct reached) v;
};

struct replay {
	const struct host *h;
	ARRAY(struct resume) resumes; /* by time */
	struct reached_list *lanes;
	uint64_t *start_ns; /* of activities, in the replay */
	uint64_t first_ns;
};

static void list_resumes(struct replay *r)
{
	for (uint32_t i = 0; i < r->h->lanes.n; i++) {
		const struct lane *lane = &r->h->lanes.v[i];
		for (uint32_t k = 0; k < lane->marks.n; k++) {
			const struct mark *m = &lane->marks.v[k];
			enum doubt doubt;
			const struct cause c = host_cause(r->h, i, k, false, &doubt);
			array_reserve(&r->resumes, 2);
			if (c.lane != i)
				r->resumes.v[r->resumes.n++] =
					(struct resume){ m->start_ns, i, c.lane, NONE };
			/* Even where it had ended before the call: a faster host would wait. */
			if (m->activity != NONE)
				r->resumes.v[r->resumes.n++] =
					(struct resume){ m->end_ns, i, NONE, m->activity };
		}
	}
	RADIX_SORT(r->resumes, ns);
}

static uint64_t clock_at(const struct replay *r, uint32_t lane, uint64_t ns)
{
	const struct reached_list *l = &r->lanes[lane];
	const size_t n = SEARCH(i, 0, l->v.n, l->v.v[i].ns <= ns);
	return n ? l->v.v[n - 1].clock_ns : r->first_ns;
}

static uint64_t end_of(const struct replay *r, uint32_t activity)
{
	const struct activity *p = &r->h->in->t->activities.v[activity];
	return r->start_ns[activity] + (p->end_ns - p->start_ns);
}

static void resume(struct replay *r, const struct resume *at)
{
	const uint64_t now = clock_at(r, at->lane, at->ns);
	const uint64_t other =
		at->from == NONE ? end_of(r, at->activity) : clock_at(r, at->from, at->ns);
	if (other <= now)
		return;
	*array_push(&r->lanes[at->lane].v) = (struct reached){ at->ns, other };
}

/* Whether the activity had been launched before the other ended: nothing but that held it up. */
static bool was_queued(const struct replay *r, uint32_t activity, uint32_t before)
{
	const struct timeline *t = r->h->in->t;
	const uint32_t call = t->activities.v[activity].call;
	return call != NO_CALL && t->calls.v[call].end_ns <= t->activities.v[before].end_ns;
}

/* Behind another activity: as soon after it as they come, or with the overlap that they had. */
static uint64_t start_behind(const struct replay *r, uint32_t activity, uint32_t before)
{
	const struct activity *v = r->h->in->t->activities.v;
	if (v[before].end_ns > v[activity].start_ns)
		return r->start_ns[before] + (v[activity].start_ns - v[before].start_ns);
	const uint64_t gap = v[activity].start_ns - v[before].end_ns;
	if (r->h->behind_host[activity])
		return end_of(r, before);
	const bool keep = gap <= HANDOVER_NS && was_queued(r, activity, before);
	return end_of(r, before) + (keep ? gap : r->h->handover_ns);
}

static void start(struct replay *r, uint32_t activity)
{
	const struct timeline *t = r->h->in->t;
	const struct activity *p = &t->activities.v[activity];
	const uint32_t behind[] = { host_behind(r->h, activity), r->h->previous[activity],
		r->h->awaits[activity] };
	uint64_t at = r->first_ns;
	if (p->call != NO_CALL) {
		const struct caller *c = &t->calls.v[p->call];
		at = clock_at(r, r->h->lane_of[c->thread], c->start_ns);
	}
	for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
		if (behind[i] == NONE || !expect(behind[i] != activity, "nothing waits for itself"))
			continue;
		const uint64_t ready = start_behind(r, activity, behind[i]);
		at = MAX(ready, at);
	}
	r->start_ns[activity] = at;
}

static void play(struct replay *r)
{
	const struct timeline *t = r->h->in->t;
	size_t next = 0;
	for (uint32_t i = 0; i < t->activities.n; i++) {
		for (; next < r->resumes.n && r->resumes.v[next].ns <= t->activities.v[i].start_ns;
			next++)
			resume(r, &r->resumes.v[next]);
		start(r, i);
	}
}

static uint64_t saved(const struct replay *r)
{
	const struct timeline *t = r->h->in->t;
	const uint64_t recorded = r->h->ended[t->activities.n - 1].end_ns;
	uint64_t end = 0;
	for (uint32_t i = 0; i < t->activities.n; i++)
		end = MAX(end_of(r, i), end);
	return recorded > end ? recorded - end : 0;
}

void host_replay(const struct host *h, uint64_t *ret_saved_ns)
{
	struct replay r = { .h = h, .first_ns = h->in->t->activities.v[0].start_ns };
	r.lanes = xcalloc(h->lanes.n + 1, sizeof *r.lanes);
	r.start_ns = xcalloc(h->in->t->activities.n, sizeof *r.start_ns);
	list_resumes(&r);
	play(&r);
	*ret_saved_ns = saved(&r);
	for (size_t i = 0; i < h->lanes.n; i++)
		array_free(&r.lanes[i].v);
	free(r.lanes);
	free(r.start_ns);
	array_free(&r.resumes);
}
