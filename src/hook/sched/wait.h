/* A best-effort launch waits for its turn: src/share/rule.h asked again and again, for no longer
 * than the slot's patience. */
#pragma once

#include "base/atomic.h"
#include "hook/sched/member.h"
#include "hook/core/gate.h"
#include "share/rule.h"

#define UNKNOWN_NS 1000000u /* of a kernel that was never seen */

/* The least time that a launch counts as.  One that was never measured may be long: while nobody is
 * waited for, few of them are in flight. */
static inline uint64_t wait_least_ns(const struct member *m, const struct cost *c)
{
	return cost_is_measured(c) || !rule_is_alone(m->slot, m->device)
		       ? 0
		       : load_relaxed(&m->slot->grant.alone_ns) / RULE_UNKNOWN_ALONE;
}

/* When the launch may go; with g->lane when on fewer SMs. */
void wait_for_turn(struct gated *g, struct member *m, const struct launch_shape *l);
