/*
 * Device times without CUPTI: of one launch in N, between two events.
 *
 * A wrapper of a launch asks event_timer_begin() before the driver; mostly the answer is NULL and
 * has cost a counter.  Otherwise there is an event on the launch's own stream, and
 * event_timer_end() records the one behind it.  What they say is collected when later launches are
 * timed, and at the end of the program; nothing ever waits for a device.
 *
 * Which launches: some in a row, then as many times N that are not timed, by lot, so that a program
 * that repeats itself does not show the same kernels always.  In a row, since an event that ends
 * one launch can begin the next, when nothing came between, and the driver has to be asked less.
 * Not while anybody captures, and not those that may begin before the kernel in front of them has
 * ended, which an event would keep them from.
 *
 * A duration is from the one event to the other: of the kernel and of what the device waited for
 * it, which on an idle stream is about the time that launching took.  When it began is estimated.
 *
 * Events are of a context and made as they are needed, some hundreds at most; any thread takes
 * the next.  No locks, no memory of the heap; signal handlers may come between any two lines.
 */
#ifndef WEIR_HOOK_TIME_EVENT_TIMER_H
#define WEIR_HOOK_TIME_EVENT_TIMER_H

#include <stdbool.h>
#include <stdint.h>

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
extern uint32_t event_timer_adapts;
void event_timer_adapt(void); /* before it starts */

/* Whether too little is known of what takes equally long: then it is this one's turn. */
bool event_timer_is_new(uint64_t what, uint64_t shape);

static inline void event_timer_want(uint64_t what, uint64_t shape)
{
	if (__builtin_expect(event_timer_adapts, 0) && event_timer_is_new(what, shape))
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
