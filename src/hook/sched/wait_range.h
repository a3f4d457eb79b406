/* Why a launch waited, in the recording: a range around the wait that says for whom and by which
 * policy.  A launch that waits for this program's own work leaves none: that is how it always is.
 */
#ifndef WEIR_HOOK_SCHED_WAIT_RANGE_H
#define WEIR_HOOK_SCHED_WAIT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/sched/member.h"
#include "share/rule.h"

/* other: whose request it is, an index of slots; SHARE_SLOTS: not known.  True: one has begun, and
 * is to be ended by this thread. */
bool wait_range_begins(const struct member *m, enum rule_reason reason, uint32_t other);
void wait_range_ends(void);

#endif
