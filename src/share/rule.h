/*
 * The decision about a best-effort launch, as a function of what the program has read. The injected
 * library asks it before each launch, and so do simulations and tests. Pure, host safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "share/segment.h"

/* Whether launches of a program are asked nothing. */
static inline bool rule_is_free(const struct share_slot *s, const struct share_file *f)
{
	return load_relaxed(&s->grant.mode) == MODE_OPEN || load_relaxed(&f->arbiter.open);
}

/* Whether they wait for nobody: all that they have to keep to is grant.alone_ns.  The first request
 * of those that rest ends it at once. */
static inline bool rule_is_alone(const struct share_slot *s, const struct share_device *d)
{
	const uint32_t mode = load_relaxed(&s->grant.mode),
		       requests = (uint32_t)load_relaxed(&d->requests);
	const bool rest = load_relaxed(&s->grant.rest) == requests + 1 && !share_any(d->active);
	return mode != MODE_HOLD && mode != MODE_BUDGET && (!share_any(d->present) || rest);
}

enum rule_verdict { RULE_GO, RULE_WAIT, RULE_CAP };

/* Why, for those who wait: what the recording says. */
enum rule_reason {
	REASON_NONE,
	REASON_REQUEST, /* a latency program is inside a request */
	REASON_SOON,    /* its next request is expected before the launch would end */
	REASON_BUDGET,  /* as much is in flight as may be */
	REASON_TURN,    /* it is another program's turn */
	REASON_COUNT
};

struct rule_launch {
	uint64_t t90_ns; /* predicted; of a kernel never seen a large one */
	bool may_be_capped;
	bool is_small; /* a copy that is in nobody's way, unless many are */
};

struct rule_view {
	bool alone;           /* no latency program is there, or all rest */
	bool active;          /* one is inside a request that is believed */
	bool on_device;       /* the launch waits there, behind a hold, for those that are */
	uint64_t inflight_ns; /* what is left of this program's work at full width */
	uint64_t capped_ns;   /* and of what runs on part of the SMs */
	uint64_t now_ns;      /* CLOCK_MONOTONIC; needed when next_ns is not 0 */
	uint64_t next_ns;     /* when the next request is expected; 0: can't be told */
};

/* So much may be left in flight when the next long launch goes: it then follows without a pause. */
#define RULE_LEAD_NS 1000u

/* Work that goes ahead of holds: so long it may take until a change of class is felt. */
#define RULE_AHEAD_NS 20000000u

static inline bool rule_fits(uint64_t inflight, uint64_t more, uint64_t budget)
{
	return inflight <= RULE_LEAD_NS || inflight + more <= budget;
}

/* Work at full width lasts so many budgets at most. */
#define RULE_FULL_BUDGETS 3u

/* A launch that was never measured counts as this while nobody is waited for: so that few of them
 * are in flight, however long they are. */
#define RULE_UNKNOWN_ALONE 4u /* of alone_ns */

/* Capped, as far as the budget for that goes: it meets requests, so that it does not grow with the
 * budget of what does not. */
static inline enum rule_verdict rule_cap(const struct share_grant *g, const struct rule_view *v,
	const struct rule_launch *l, uint32_t sms, enum rule_verdict otherwise,
	enum rule_reason *ret_reason)
{
	if (!sms || !l->may_be_capped)
		return otherwise;
	const uint64_t full = g->full_below_ns / RULE_FULL_BUDGETS,
		       budget = g->budget_ns < full ? g->budget_ns : full;
	*ret_reason = REASON_BUDGET;
	return rule_fits(v->capped_ns, l->t90_ns, budget) ? RULE_CAP : RULE_WAIT;
}

/* The next request can be told: until it comes everything may run that ends before. */
static inline bool rule_meets_next(
	const struct share_grant *g, const struct rule_view *v, const struct rule_launch *l)
{
	return g->ahead_ns && v->next_ns && v->now_ns < v->next_ns + g->ahead_ns &&
	       v->now_ns + v->inflight_ns + v->capped_ns + l->t90_ns + g->ahead_ns > v->next_ns;
}

static inline bool rule_next_is_known(const struct share_grant *g, const struct rule_view *v)
{
	return g->ahead_ns && v->next_ns && v->now_ns < v->next_ns + g->ahead_ns;
}

/* ret_sms: of RULE_CAP. */
static inline enum rule_verdict rule_of(const struct share_grant *g, const struct rule_view *v,
	const struct rule_launch *l, uint32_t *ret_sms, enum rule_reason *ret_reason)
{
	const bool active = v->active && g->mode != MODE_BUDGET;
	*ret_reason = REASON_NONE;
	*ret_sms = g->cap_sms;
	if (g->mode == MODE_OPEN)
		return RULE_GO;
	*ret_reason = REASON_TURN;
	if (g->mode == MODE_HOLD)
		return RULE_WAIT;
	if (v->alone || l->is_small) {
		*ret_reason = REASON_BUDGET;
		return rule_fits(v->inflight_ns, l->t90_ns, g->alone_ns) ? RULE_GO : RULE_WAIT;
	}
	if (v->on_device) {
		*ret_reason = REASON_BUDGET;
		return rule_fits(v->inflight_ns, l->t90_ns, RULE_AHEAD_NS) ? RULE_GO : RULE_WAIT;
	}
	*ret_reason = REASON_REQUEST;
	if (active)
		return rule_cap(
			g, v, l, g->mode == MODE_CAP ? g->cap_sms : 0, RULE_WAIT, ret_reason);
	if (rule_meets_next(g, v, l)) {
		*ret_reason = REASON_SOON;
		*ret_sms = g->cap_ahead_sms;
		return rule_cap(g, v, l, g->cap_ahead_sms, RULE_WAIT, ret_reason);
	}
	if (g->cap_sms && !rule_next_is_known(g, v) && l->t90_ns > g->full_below_ns &&
		l->may_be_capped)
		return rule_cap(g, v, l, g->cap_sms, RULE_WAIT, ret_reason);
	*ret_reason = REASON_BUDGET;
	return rule_fits(v->inflight_ns, l->t90_ns, g->budget_ns) ? RULE_GO : RULE_WAIT;
}
