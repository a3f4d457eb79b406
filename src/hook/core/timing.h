/*
 * Whether a launch is timed with events: one in N (time/event_timer.h). Most launches cost a
 * counter.
 */
#pragma once

#include "base/atomic.h"
#include "hook/core/hook_parts.h"
#include "hook/core/launch_shape.h"

struct sample; /* a launch that is being timed */

/* A launch that is timed, once the driver has answered. */
struct timed_call {
	uint64_t begun, took; /* ticks */
	uint32_t fn;          /* enum fn */
	int result;
	uint16_t kind;     /* enum gpu_activity_kind */
	uint8_t direction; /* of memcpys: enum copy_direction, 0 not known */
};

/* How many launches of this thread until the next that is timed. */
extern __thread uint32_t timing_left __attribute__((tls_model("initial-exec")));

/* Whether the first few launches of each kernel and shape are timed whatever the turn, and memcpys
 * and memsets as well: for a timeline that is to be reconstructed. */
extern _Atomic uint32_t timing_adapts __attribute__((visibility("hidden")));

/* Before a launch.  NULL: this one is not timed. */
static inline struct sample *timing_begin(uint32_t fn, const struct launch_shape *s)
{
	if (__builtin_expect(!load_relaxed(&timing_adapts) && --timing_left, 1))
		return NULL;
	return hook_above.timing_take(fn, s);
}
