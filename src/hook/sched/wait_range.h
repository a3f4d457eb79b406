/* Why a launch waited, in the recording: a range around the wait that says for whom and by which
 * policy.  A launch that waits for this program's own work leaves none: that is how it always is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook/sched/member.h"
#include "share/rule.h"

/* other: whose request it is, an index of slots; SHARE_SLOTS: not known.  frame: an address in the
 * frame of who waits.  True: one has begun. */
bool wait_range_begins(
	const struct member *m, enum rule_reason reason, uint32_t other, const void *frame);

/* Ends this thread's waits whose frames are no deeper than this one: its own, and what was left by
 * longjmp before.  (On another stack a frame that lives may seem left; it is recorded as shorter.)
 */
void wait_range_ends(const void *frame);

/* How a launch goes on that does not wait until no request is active: a range of no length. */
enum wait_way {
	WAY_FREE,
	WAY_CAPPED,    /* on fewer SMs */
	WAY_EXPIRED,   /* it has waited for as long as any may, or what was like it has in vain */
	WAY_ON_DEVICE, /* it waits there, behind a hold */
	WAY_SHARE,     /* its program has had less than its share */
};
void wait_range_marks(const struct member *m, enum wait_way way, uint32_t other);
