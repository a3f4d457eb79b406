/*
 * The index of the exporter of Kineto's JSON: numbered ranges, the call of each activity, and
 * allocated bytes over time. export_chrome.c writes and chrome_index.c finds. Zeroed memory is an
 * empty index.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "event/format.h"
#include "export/export.h"

struct chrome_range {
	struct range r; /* external is always there: made up where the trace has none */
	uint32_t process;
	uint32_t parent; /* the operator or annotation around it; UINT32_MAX: none */
	uint32_t caller; /* of a function of Python's: the one around it; or UINT32_MAX */
};

/* An allocation or a free, with what was allocated on its device after it. */
struct chrome_memory {
	uint64_t ticks, pointer, bytes;
	uint64_t total, reserved; /* reserved is valid with has_reserved */
	uint32_t process, pid, tid, device;
	bool is_free, has_reserved;
	bool seen;      /* by the allocator's profiler: an event of the trace */
	bool allocator; /* of the program's own; else the driver's */
};

/* From an operator to the one of the backward pass that it made necessary. */
struct chrome_pair {
	uint32_t forward, backward; /* into ranges */
};

struct chrome_index {
	ARRAY(struct chrome_range) ranges; /* by process, thread, begin, outer before inner */
	ARRAY(struct chrome_memory) memory;
	ARRAY(struct chrome_pair) pairs;
	struct map outer; /* process, tid, ticks, function of a call: the link that it asked for */
	struct map asked; /* link: index of its call in `calls`, where that is not the link's own */
	ARRAY(uint64_t) calls; /* ticks */
};

/* Reads ranges and, where runtime calls were recorded, calls.  0 or -errno. */
int chrome_index_make(struct chrome_index *n, struct export *x);
void chrome_index_fini(struct chrome_index *n);

/* The operator or annotation that the thread was in; NULL: none. */
const struct chrome_range *chrome_range_at(
	const struct chrome_index *n, uint32_t process, uint32_t tid, uint64_t ticks);

/* The link of the outermost call that launched activities; NULL for calls inside of it too. */
const struct call_link *chrome_link_of(
	const struct chrome_index *n, const struct export *x, const struct export_call *c);

/* When that call began. */
uint64_t chrome_issued_at(
	const struct chrome_index *n, const struct export *x, const struct call_link *link);

/* Takes the call if it allocates or frees. */
void chrome_memory_add(struct chrome_index *n, const struct export *x, const struct export_call *c);

/* When all are there: puts them in the order of time and finds totals and sizes of frees; where
 * there are an allocator's events the driver's go. */
void chrome_memory_finish(struct chrome_index *n);

/* Whether the range is part of a backward pass. */
bool chrome_is_backward(struct export *x, const struct chrome_range *g);
