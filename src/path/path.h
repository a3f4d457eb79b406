/*
 * The critical path: the causes that made the program end when it did, followed back to the
 * beginning. docs/explanation/critical-path.md explains the dependencies and how unrecorded causes
 * are found.
 *
 *	threads.c  what each thread is known to have done when
 *	order.c    what streams, events and host functions order; which activity ends a wait
 *	wakes.c    which thread makes which other go on
 *	walk.c     back from cause to cause
 *	slack.c    the same dependencies with a host that takes no time
 *
 * One owner thread, and memory from malloc alone. Internal to src/model, apart from the names of
 * parts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

struct trace;

/* The parts of the path; they add up to the wall time. */
enum path_part {
	PATH_COMPUTING,
	PATH_COMMUNICATING,
	PATH_COPYING,
	PATH_QUEUE,   /* from one GPU activity to the next */
	PATH_LAUNCH,  /* from a call's return to the start of its activity */
	PATH_HOST,    /* the host, on its way to a call */
	PATH_WAITING, /* from the end of the activity to the return of the call that waits for it */
	PATH_OVERLAPPED, /* of the last three, what GPU activities would take if the host did not */
	PATH_UNKNOWN,    /* what two paths that fit do not share */
	PATH_BEFORE,     /* the host, before the first activity began */
	PATH_AFTER,      /* after the last activity ended */
	PATH_PARTS
};

extern const char *const path_part_name[PATH_PARTS], *const path_part_text[PATH_PARTS];

#define NO_CALL   UINT32_MAX
#define NO_STREAM UINT32_MAX

/* An activity that kept a device busy. */
struct activity {
	uint64_t start_ns, end_ns;
	uint64_t bytes;  /* 0: not known, or none */
	uint32_t call;   /* into path_input.calls, or NO_CALL */
	uint32_t row;    /* into report.activities */
	uint32_t device; /* into report.devices */
	uint32_t stream; /* below path_input.stream_count, or NO_STREAM */
	uint16_t kind;   /* enum gpu_activity_kind */
	bool communicates;
};

/* A call that launched activities. */
struct caller {
	uint64_t start_ns, end_ns;
	uint64_t first_ns; /* when its first activity began; 0: none did */
	uint32_t thread;
};

/* A moment at which a thread is known to have run, apart from calls: the begin or end of a range.
 */
struct moment {
	uint64_t ns;
	uint32_t thread;
};

/* A call that waited for a stream, as a profiler says beside it. */
struct stream_wait {
	uint32_t call;   /* into path_input.calls */
	uint32_t stream; /* below path_input.stream_count */
};

/* All that the path is found from. */
struct timeline {
	ARRAY(struct activity) activities; /* by start, once timeline_fill() has run */
	ARRAY(struct caller) calls;
	ARRAY(struct moment) moments; /* likewise by thread, then by time */
	ARRAY(struct stream_wait) waits;
	size_t stream_count;
};

struct path_input {
	const struct trace *trace;
	const struct timeline *t;
	const struct map *threads; /* (process, tid) to a thread's number, below thread_count */
	size_t thread_count;
	uint64_t start_ns, wall_ns; /* the path's end, and its length */
};

struct path {
	uint64_t ns[PATH_PARTS];
	uint64_t host_most_ns;       /* what a host that takes no time would save of it */
	ARRAY(uint64_t) activity_ns; /* beside each activity: how much of it is on the path */
};

/* Finds the path of a timeline that has activities.  0 or -errno; path_fini() follows in either
 * case. */
int path_find(const struct path_input *in, struct path *ret_path);
void path_fini(struct path *p);
