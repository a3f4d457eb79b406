/* A best-effort launch waits for its turn: src/share/rule.h asked again and again, for no longer
 * than the slot's patience. */
#ifndef WEIR_HOOK_SCHED_WAIT_H
#define WEIR_HOOK_SCHED_WAIT_H

#include "hook/sched/member.h"
#include "hook/sched/gated.h"

#define UNKNOWN_NS 1000000u /* of a kernel that was never seen */

/* When the launch may go; with g->lane when on fewer SMs. */
void wait_for_turn(struct gated *g, struct member *m, const struct sched_launch *l);

#endif
