/*
 * The states of launching threads over time: launching, waiting, in another call, or outside calls.
 * Built from the calls in the trace. Internal to src/model.
 *
 * Nested calls do not count. A gap of less than HOST_GAP_NS between two calls counts as launching,
 * because a framework needs it between launches.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "trace/trace.h"

#define HOST_GAP_NS 100000u

enum host_state {
	HOST_LAUNCHING,  /* launching, and what is needed for that */
	HOST_ALLOCATING, /* shortly allocating or freeing, on the way to that */
	HOST_LOADING,    /* shortly in a call about code or contexts */
	HOST_COPYING,    /* shortly in a call that copies: it may have waited */
	HOST_WAITING,    /* synchronizing, or in a copy that waits for its end */
	HOST_DRIVER,     /* long in a call of another kind … */
	HOST_LONG_ALLOC, /* … that allocates or frees */
	HOST_LONG_LOAD,  /* … that loads code, or makes contexts */
	HOST_ELSEWHERE,  /* in no call */
	HOST_STATES
};

struct host_span {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint8_t state;             /* enum host_state */
};

struct host_thread {
	ARRAY(struct host_span) spans; /* by time, apart from each other */
	size_t cursor;
};

struct host_time {
	ARRAY(struct host_thread) threads;
};

/* threads: (process, tid) to the number of a thread, 0 to count - 1; calls of others are passed
 * over.  0 or -errno; damaged chunks are passed over. */
int host_time_make(
	const struct trace *t, const struct map *threads, size_t count, struct host_time *ret_h);
void host_time_fini(struct host_time *h);

/* Adds the time from `from` to `to` to ns, by state.  From call to call, `from` of a thread may
 * not go back. */
void host_time_split(
	struct host_time *h, uint32_t thread, uint64_t from, uint64_t to, uint64_t ns[HOST_STATES]);

/* The thread's state at that time. */
enum host_state host_time_state(const struct host_time *h, uint32_t thread, uint64_t ns);
