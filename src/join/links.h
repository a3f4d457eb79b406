/*
 * Gives all readers of a trace the call of each GPU activity. If the trace names the calls itself
 * (chunks of kind links), these count. For processes with correlations and no links, as in
 * recordings with CUPTI, the calls are joined (join/join.h).
 */
#pragma once

#include <stdint.h>

#include "base/array.h"
#include "trace/meta.h"
#include "trace/trace.h"

struct call_link {
	uint64_t correlation;
	uint64_t ticks; /* when the call began */
	uint64_t dur;   /* ticks; 0: not known */
	uint32_t process;
	uint32_t tid;
	uint16_t fn;
};

struct links {
	ARRAY(struct call_link) v; /* by process, correlation, ticks */
	uint64_t activities;       /* GPU activities for which a call was looked for */
	uint64_t joined;           /* of activities: whose call was found */
	uint64_t checked; /* of joined: kernels whose name, grid and block agree with the call's */
	uint64_t early;   /* of joined: that started before their call began */
	uint64_t lost;    /* GPU activities that are missing, as who collected them says */
};

/* Reads the trace once or twice.  0 or -errno; damaged chunks are passed over. */
int links_load(const struct trace *t, const struct meta *m, struct links *ret_links);
void links_fini(struct links *l);

/* The same in the order of the calls: by process, thread and time.  Numbers of links. */
struct links_by_call {
	const struct links *l;
	ARRAY(uint32_t) v;
};

/* l must stay as it is. */
void links_by_call(const struct links *l, struct links_by_call *ret_calls);

/* The place of the first link of a thread whose call began then or later, and the link there, if
 * its call is of that thread and began at `to` at the latest; else NULL. */
size_t links_from(const struct links_by_call *c, uint32_t process, uint32_t tid, uint64_t ticks);
const struct call_link *links_until(
	const struct links_by_call *c, size_t at, uint32_t process, uint32_t tid, uint64_t to);

/* The link of a GPU activity, or NULL.  *hint: where the last one was, 0 at first. */
const struct call_link *links_of(
	const struct links *l, uint32_t process, const struct gpu_activity *w, size_t *hint);

/* The link of a correlation, or NULL. */
const struct call_link *links_find(
	const struct links *l, uint32_t process, uint64_t correlation, size_t *hint);
