/*
 * Time as a tree of process, thread, ranges, calls and kernels. One pass over a trace makes it, and
 * it becomes a picture or a file for other tools.
 *
 * By device, each GPU activity weighs its own time, under the call and the ranges that launched it.
 * By host, each call weighs its time without the calls inside, and a launch's time is its kernel's.
 * Memory grows with the number of different stacks, ranges and links, not with that of calls. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "trace/trace.h"

enum frame_kind {
	FRAME_ALL,
	FRAME_PROCESS,
	FRAME_THREAD,
	FRAME_RANGE,
	FRAME_RUNTIME,
	FRAME_DRIVER,
	FRAME_KERNEL,
	FRAME_MOVE, /* a copy or a set */
	FRAME_CODE, /* a function of the program, of its call stack */
	FRAME_OTHER,
};

#define FLAME_NONE UINT32_MAX

struct flame_node {
	uint32_t name; /* index into names */
	uint32_t parent;
	uint32_t first_child, next; /* by total, largest first; FLAME_NONE ends */
	uint16_t kind;              /* enum frame_kind */
	uint16_t depth;             /* of the root: 0 */
	uint64_t self_ns;
	uint64_t total_ns; /* with all below */
	uint64_t count;    /* calls or GPU activities that ended here */
};

struct flame {
	ARRAY(struct flame_node) nodes; /* parents before children; 0 is the root */
	ARRAY(char *) names;
	struct map name_map, node_map;
	bool by_device;
	uint32_t
		sampled; /* by device: one launch in so many was timed, and weights are estimates */
	char program[256];
};

enum flame_by { FLAME_AUTO, FLAME_DEVICE, FLAME_HOST };

/* 0 or -errno.  FLAME_AUTO: by device where the trace has GPU activities. */
int flame_make(const struct trace *t, enum flame_by by, struct flame **ret_f, struct error *err);
void flame_free(struct flame *f);

/* The node of a name below parent; makes it when there is none. */
uint32_t flame_child(struct flame *f, uint32_t parent, enum frame_kind kind, const char *name);
void flame_add(struct flame *f, uint32_t node, uint64_t ns);

/* Sums totals and sorts children: before anything is written. */
void flame_finish(struct flame *f);

/* For a sampled trace, by device: makes what was timed the estimate of what ran, kernel by kernel
 * as the report has it.  Nothing otherwise. */
struct report;
void flame_estimate(struct flame *f, const struct report *r);

/* One writer a format; errors show in ferror(out). */
void flame_put_folded(const struct flame *f, FILE *out);
void flame_put_speedscope(const struct flame *f, FILE *out);
void flame_put_svg(const struct flame *f, FILE *out);
