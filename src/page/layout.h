/*
 * Reduces a timeline to as many items as a picture can hold.
 *
 * A lane is a stream, the calls of a thread, or its ranges, or the requests to a server. It has
 * rows of items that do not overlap. If there are more events than requested, short neighbours
 * merge. Time is cut into bins of 2^n ns. Events shorter than a bin that begin in the same bin
 * become one item. n is as small as possible, so long events stay as they are.
 *
 * Memory grows with the requested items, ranges and links, not with calls. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "model/report.h"

#define LAYOUT_NONE UINT32_MAX

enum lane_kind {
	LANE_STREAM,   /* of a device; items may overlap */
	LANE_SPANS,    /* on a device: from the first to the last activity of an annotation */
	LANE_RANGES,   /* of a thread: operators, annotations, NVTX */
	LANE_PYTHON,   /* of a thread */
	LANE_OTHER,    /* of a thread: ranges that need not nest */
	LANE_CALLS,    /* of a thread */
	LANE_REQUESTS, /* to a server of models; a row for each at one time */
	LANE_KINDS,
};

struct layout_lane {
	uint16_t kind; /* enum lane_kind */
	uint32_t process;
	uint32_t tid;
	uint32_t device, context, stream;
};

/* Facts of an item beyond name and time. */
struct layout_detail {
	uint64_t bytes;
	uint32_t grid[3], block[3];
	uint32_t shared, shared_static, registers;
	uint32_t kernel; /* of a launch: a name, or LAYOUT_NONE */
	uint32_t text;   /* a name, or LAYOUT_NONE: the call with its arguments */
	uint32_t error;  /* a name, or LAYOUT_NONE */
	uint32_t valid;  /* enum detail_valid */
	uint32_t unused; /* so that equal ones are equal byte by byte */
};

enum detail_valid {
	DETAIL_SHAPE = 1,
	DETAIL_SHARED = 2,
	DETAIL_REGISTERS = 4,
	DETAIL_BYTES = 8,
};

struct layout_item {
	uint64_t start_ns, end_ns; /* since the trace began */
	uint64_t busy_ns;          /* of it: events */
	uint64_t longest_ns;       /* of these events, whose name this is */
	uint64_t link;             /* correlation; 0 none, or several events */
	uint32_t name;
	uint32_t detail; /* LAYOUT_NONE: none, or several events */
	uint32_t count;  /* events */
	uint32_t parts;  /* items that it was made of, by layout_coarsen() */
};

struct layout_row {
	uint32_t lane;
	uint32_t depth;
	ARRAY(struct layout_item) items; /* finished: by start */
};

struct layout {
	size_t most;     /* items, when finished */
	uint64_t bin_ns; /* 0: every event is an item of its own */
	uint64_t events;
	uint64_t items;
	ARRAY(struct layout_lane) lanes;
	ARRAY(struct layout_row) rows; /* finished: by lane, then depth */
	ARRAY(char *) names;
	ARRAY(struct layout_detail) details;
	struct map lane_map, row_map, name_map, detail_map;
};

/* 0 or -errno.  r must outlive nothing: what is needed is copied. */
int layout_make(const struct report *r, size_t most, struct layout **ret_t, struct error *err);
void layout_free(struct layout *t);

/* Parts of layout_make() that tests use alone. */
uint32_t layout_name(struct layout *t, const char *name);
uint32_t layout_detail(struct layout *t, const struct layout_detail *d);
uint32_t layout_lane(struct layout *t, const struct layout_lane *lane);
void layout_add(struct layout *t, uint32_t lane, uint32_t depth, const struct layout_item *item);
void layout_finish(struct layout *t);

/* For a finished layout: items are merged further until there are at most so many, in the same
 * order.
 */
void layout_coarsen(struct layout *t, size_t most);

/* Internal: fills t with all that the trace holds. */
int layout_read(struct layout *t, const struct report *r);

const char *lane_kind_name(unsigned kind);
