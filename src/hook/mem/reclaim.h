/*
 * Memory that is out here and idle elsewhere: others are told of it, and give back what they can
 * with their next call.  Under --wait-memory the call that wants it waits for so long.
 */
#pragma once

#include "hook/sched/member.h"

struct reclaim {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: it has not begun */
};

/* Whether to try again, after a nap. */
bool reclaim_goes_on(struct reclaim *w, struct member *m, uint64_t bytes);
void reclaim_ends(struct member *m, bool in_vain);
