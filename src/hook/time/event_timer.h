/*
 * Takes device times without CUPTI: one launch in N, between two events.
 *
 * A launch's wrapper calls event_timer_begin() before the driver, which mostly returns NULL at the
 * cost of a counter. Otherwise an event is on the launch's stream, and event_timer_end() records
 * the second one. Later launches and the end of the program collect the results. Nothing waits for
 * a device.
 *
 * Some launches in a row are timed, then N times as many are not, with a random offset against
 * periodic programs. In a row one event can end a launch and begin the next. Launches are skipped
 * during captures. A launch that may overlap the kernel before it is also skipped, since an event
 * would prevent the overlap.
 *
 * A duration includes the device's wait for the kernel, which on an idle stream is about the
 * launch's own time. The begin of a kernel is estimated. Events belong to a context, some hundreds
 * at most, and any thread takes the next. There are no locks and no heap. Signal handlers may come
 * between any two lines.
 */
#ifndef WEIR_HOOK_TIME_EVENT_TIMER_H
#define WEIR_HOOK_TIME_EVENT_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "cuda_types.h"
#include "fn_ids.h"

struct sample; /* a launch that is being timed */

/* What was launched, once the driver has answered. */
struct event_timer_call {
	uint64_t begun, took; /* ticks */
	uint64_t function;    /* of kernels */
	uint64_t bytes;       /* of memcpys and memsets */
	uint32_t fn;          /* enum fn */
	uint32_t grid[3], block[3], shared;
	uint16_t kind;     /* enum gpu_activity_kind */
	uint8_t direction; /* of copies: enum copy_direction, 0 not known */
};

/* How many launches of this thread until the next that is sampled. */
extern __thread uint32_t event_timer_left __attribute__((tls_model("initial-exec")));

/* Whether the first few launches of each kernel and shape are timed whatever the turn, and copies
 * and sets of memory as launches are: for a timeline that is to be reconstructed. */
extern _Atomic uint32_t event_timer_adapts;
void event_timer_adapt(void); /* before it starts */

/* Whether too little is known of what takes equally long: then it is this one's turn. */
bool event_timer_is_new(uint64_t what, uint64_t shape);

static inline void event_timer_want(uint64_t what, uint64_t shape)
{
	if (__builtin_expect(load_relaxed(&event_timer_adapts), 0) &&
		event_timer_is_new(what, shape))
		event_timer_left = 1;
}

struct sample *event_timer_take(void *stream, bool per_thread);
struct sample *event_timer_take_config(const struct cu_launch_config *config, bool per_thread);

/* Before a launch.  NULL: this one is not timed. */
static inline struct sample *event_timer_begin(void *stream, int per_thread)
{
	if (__builtin_expect(--event_timer_left != 0, 1))
		return NULL;
	return event_timer_take(stream, per_thread);
}

static inline struct sample *event_timer_begin_config(
	const struct cu_launch_config *c, int per_thread)
{
	if (__builtin_expect(--event_timer_left != 0, 1))
		return NULL;
	return event_timer_take_config(c, per_thread);
}

/* After it, with its result. */
void event_timer_end(struct sample *s, int result, const struct event_timer_call *call);

/* The shape is the configuration's. */
void event_timer_end_config(struct sample *s, int result, const struct event_timer_call *call,
	const struct cu_launch_config *config);

void event_timer_forget(void); /* after a fork */
void event_timer_at_exit(void);

#endif
