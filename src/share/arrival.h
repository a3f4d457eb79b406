/*
 * Expects a program's next request from the pattern of earlier ones. Pure, host safe.
 *
 * The known patterns are a fixed pause after the last end (a closed loop), equal distances (a
 * clock), and quick succession (the tokens of an answer). Requests in quick succession last a
 * moment longer than their synchronisations say.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/segment.h"

#define ARRIVAL_REGULAR  0.04f /* of the mean: it hardly changes */
#define ARRIVAL_QUICK_NS SHARE_QUICK_NS
#define ARRIVAL_QUICK    0.7f /* of all pauses: most are */
#define ARRIVAL_PART     4u   /* requests, of a run without an end */

/* A mean and the mean distance from it. */
struct arrival_mean {
	float ns, off_ns;
};

struct arrival {
	struct arrival_mean gap;   /* from end to begin */
	struct arrival_mean every; /* from begin to begin */
	struct arrival_mean quick; /* pauses that are quick */
	struct arrival_mean lasts; /* from begin to end */
	float quick_share;
	uint64_t begun_ns, ended_ns; /* of the last; 0: none yet */
};

static inline void arrival_learn(struct arrival_mean *m, float ns)
{
	const float weight = 0.125f, off = ns > m->ns ? ns - m->ns : m->ns - ns;
	if (m->ns <= 0) {
		*m = (struct arrival_mean){ ns, ns };
		return;
	}
	m->off_ns += weight * (off - m->off_ns);
	m->ns += weight * (ns - m->ns);
}

static inline void arrival_begins(struct arrival *a, uint64_t now)
{
	const uint64_t gap = a->ended_ns && now > a->ended_ns ? now - a->ended_ns : 0;
	if (a->begun_ns && now > a->begun_ns)
		arrival_learn(&a->every, (float)(now - a->begun_ns));
	if (gap) {
		arrival_learn(&a->gap, (float)gap);
		a->quick_share += 0.125f * ((gap < ARRIVAL_QUICK_NS) - a->quick_share);
	}
	if (gap && gap < ARRIVAL_QUICK_NS)
		arrival_learn(&a->quick, (float)gap);
	a->begun_ns = now;
}

/* Mostly they come in quick succession. */
static inline bool arrival_is_quick(const struct arrival *a)
{
	return a->quick_share > ARRIVAL_QUICK;
}

/* A closed loop, or a clock. */
static inline bool arrival_follows_end(const struct arrival *a)
{
	return a->gap.ns > 0 && a->gap.off_ns < ARRIVAL_REGULAR * a->gap.ns &&
	       a->gap.off_ns <= a->every.off_ns;
}

static inline bool arrival_is_clock(const struct arrival *a)
{
	return a->every.ns > 0 && a->every.off_ns < ARRIVAL_REGULAR * a->every.ns;
}

static inline bool arrival_is_regular(const struct arrival *a)
{
	return arrival_follows_end(a) || arrival_is_clock(a);
}

/* When the next is expected, 0: nobody can tell. */
static inline uint64_t arrival_ends(struct arrival *a, uint64_t now)
{
	if (a->begun_ns <= a->ended_ns) /* it began as one of another class */
		return 0;
	arrival_learn(&a->lasts, (float)(now - a->begun_ns));
	a->ended_ns = now;
	if (arrival_follows_end(a))
		return now + (uint64_t)a->gap.ns;
	if (arrival_is_clock(a))
		return a->begun_ns + (uint64_t)a->every.ns;
	if (arrival_is_quick(a))
		return now + (uint64_t)(a->quick.ns + 2 * a->quick.off_ns);
	return 0;
}

/*
 * Requests in quick succession are one to whoever waits for the last of them: they take, each, what
 * they and the pauses between them take in the mean.  Such a run is told whole.  If it has no end,
 * as of a program that is always busy, each request is waited for, and what is told are parts.
 */
struct arrival_run {
	uint64_t begun_ns, ended_ns;
	uint64_t mark;  /* what the first was told of others' work */
	uint32_t count; /* 0: there is none */
	bool alone;     /* no work of others was there from then on */
	bool goes_on;   /* it is a part */
};

/* mark: of others' work while it ran; 0: there was some. */
static inline void arrival_run_add(
	struct arrival_run *r, uint64_t begun, uint64_t ended, uint64_t mark)
{
	if (!r->count)
		*r = (struct arrival_run){
			.begun_ns = begun, .mark = mark, .alone = mark != 0, .goes_on = r->goes_on
		};
	r->alone = r->alone && mark == r->mark;
	r->ended_ns = ended;
	r->count++;
}

/* Whether others' work has begun or ended since: a part that is long enough counts by itself. */
static inline bool arrival_run_breaks(const struct arrival_run *r, uint64_t mark)
{
	const bool same = r->alone ? mark == r->mark : !mark;
	return r->goes_on && r->count >= ARRIVAL_PART && !same;
}

/* Whether requests come like that: the pauses are little beside them. */
static inline bool arrival_makes_runs(const struct arrival *a)
{
	return arrival_is_quick(a) && SHARE_PAUSES * a->quick.ns < a->lasts.ns;
}

/* Whether one that is open has ended, when the next begins then; at most so many are together. */
static inline bool arrival_run_ends(const struct arrival_run *r, uint64_t begins)
{
	return r->count && (begins > r->ended_ns + ARRIVAL_QUICK_NS || r->count >= SHARE_RUN);
}

/* Ends it; what is told of it. */
static inline uint64_t arrival_run_end(struct arrival_run *r, uint64_t begins)
{
	const bool cut = begins <= r->ended_ns + ARRIVAL_QUICK_NS;
	const uint64_t request = share_packed((r->ended_ns - r->begun_ns) / r->count, r->count,
		(r->alone ? SHARE_ALONE : 0) | (cut || r->goes_on ? SHARE_PART : 0));
	*r = (struct arrival_run){ .goes_on = cut };
	return request;
}
