/*
 * Joins activities that CUPTI saw on a device to the calls that the hook recorded, although neither
 * knows of the other.
 *
 * CUPTI numbers a process's calls in order (correlation) between their begin and end, or just
 * before for a surrounding runtime call. It writes the number into the activity. So both sides are
 * sequences in the same order, apart from overlaps between threads and losses. A call and its
 * activity agree in kind, name and shape, and:
 *
 *	begin of the call  <~  its number is given out  <=  end of the call
 *	its number is given out  <=  start of any activity with this or a higher number
 *
 * If several calls fit, the first to begin is taken. Then most matches of a thread and stream
 * handle show the device stream, and the rest is tried again with it. Threads with streams of their
 * own are thus told apart. Equal overlapping calls on a shared stream may be confused, because
 * nothing recorded distinguishes them.
 *
 * Pure: no I/O, no clock, memory from malloc alone. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define JOIN_NONE UINT32_MAX

enum join_kind { JOIN_KERNEL = 1, JOIN_MEMCPY, JOIN_MEMSET, JOIN_GRAPH, JOIN_SYNC };

/* A call that launched activities, or waited.  Times: nanoseconds of the clock of the activities.
 */
struct join_call {
	uint64_t begin_ns, end_ns;
	uint64_t shape; /* kernels: of grid and block; memcpys, memsets: bytes; 0 fits any */
	uint32_t name;  /* kernels: who; copies: direction; graphs: what is in them; 0 fits any */
	uint8_t kind;   /* enum join_kind */
	uint8_t blocks; /* the activity is done when it returns */
	uint32_t thread;
	uint32_t id;     /* the caller's */
	uint64_t stream; /* the handle that it was given, and 1 more; 0 not known */
};

/* All activities of one correlation. */
struct join_activity {
	uint64_t correlation;
	uint64_t start_ns, end_ns; /* of the first, of the last */
	uint64_t shape;
	uint32_t name;
	uint8_t kind;
	uint32_t stream; /* what tells the streams that activities ran on; 0 not known */
};

/* Puts calls into the order of begin. */
void join_sort(struct join_call *calls, size_t count);

/*
 * calls: in the order of begin.  activities: in the order of correlation, each once.  Fills
 * ret_call[i] with the index of the call that launched activities[i], or JOIN_NONE; no call is
 * given twice.  At most UINT32_MAX - 1 of each: -EOVERFLOW; else 0 or -errno.
 */
int join_calls(const struct join_call *calls, size_t call_count,
	const struct join_activity *activities, size_t activity_count, uint32_t *ret_call);
