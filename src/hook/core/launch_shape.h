/*
 * The shape of one launch. A wrapper fills the shape once, before the driver's call, and whoever
 * looks at the launch gets a pointer to it: the gate, the timer, the record, predictions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda_types.h"
#include "event/args.h"

struct launch_shape {
	const void *what; /* kernel or graph; NULL: a memcpy or a memset, of `bytes` */
	void *stream;
	const struct cu_launch_config *config; /* of a launch that has one: for its attributes */
	uint64_t bytes;
	uint32_t grid[3], block[3], shared;
	bool per_thread; /* stream 0 is the thread's own */
	bool plain;      /* a kernel that may go to another stream: no cluster, no attributes */
};

static inline uint64_t launch_blocks(const struct launch_shape *s)
{
	return (uint64_t)s->grid[0] * s->grid[1] * s->grid[2];
}

static inline struct launch_shape shape_of_config(
	const struct cu_launch_config *c, const void *kernel, bool per_thread)
{
	if (!c)
		return (struct launch_shape){ .what = kernel, .per_thread = per_thread };
	return (struct launch_shape){ .what = kernel,
		.stream = c->stream,
		.config = c,
		.grid = { c->grid_x, c->grid_y, c->grid_z },
		.block = { c->block_x, c->block_y, c->block_z },
		.shared = c->shared_bytes,
		.per_thread = per_thread,
		.plain = !(c->attrs && c->attr_count) };
}

struct function;

/* A launch's record holds this besides the shape. */
struct launch_given {
	const struct function *function;
	struct launch_args args;
	bool has_args, keep, predict;
};
