/*
 * What a best-effort program does with a launch: the whole decision, as a function of what it has
 * read.  The injected library asks it before each launch, the simulation of recorded programs and
 * the tests ask the same function.  Pure; host safe.
 */
#ifndef WEIR_SHARE_RULE_H
#define WEIR_SHARE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/segment.h"

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
};

struct rule_view {
	bool active;          /* a latency program is inside a request that is believed */
	uint64_t inflight_ns; /* predicted work of this program that is not done */
	uint64_t now_ns;      /* CLOCK_MONOTONIC; needed when next_ns is not 0 */
	uint64_t next_ns;     /* when the next request is expected; 0: can't be told */
};

static inline enum rule_verdict rule_of(const struct share_grant *g, const struct rule_view *v,
	const struct rule_launch *l, enum rule_reason *ret_reason)
{
	const bool can_cap = g->cap_sms && l->may_be_capped;
	*ret_reason = REASON_NONE;
	if (g->mode == MODE_OPEN)
		return RULE_GO;
	*ret_reason = REASON_TURN;
	if (g->mode == MODE_HOLD)
		return RULE_WAIT;
	const bool active = v->active && g->mode != MODE_BUDGET;
	*ret_reason = REASON_REQUEST;
	if (active && !(g->mode == MODE_CAP && can_cap))
		return RULE_WAIT;
	*ret_reason = REASON_BUDGET;
	if (v->inflight_ns && v->inflight_ns + l->t90_ns > g->budget_ns)
		return RULE_WAIT;
	if (active)
		return RULE_CAP;
	if (g->ahead_ns && v->next_ns && v->now_ns < v->next_ns + g->ahead_ns) {
		/* The next request can be told: until it comes everything may run that ends before.
		 */
		*ret_reason = REASON_SOON;
		if (v->now_ns + v->inflight_ns + l->t90_ns + g->ahead_ns <= v->next_ns)
			return RULE_GO;
		return can_cap ? RULE_CAP : RULE_WAIT;
	}
	return g->cap_always && can_cap && l->t90_ns > g->full_below_ns ? RULE_CAP : RULE_GO;
}

#endif
