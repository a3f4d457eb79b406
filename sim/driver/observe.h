/*
 * The device tells its work to whoever asked: the double of CUPTI.  Until somebody asks, nothing
 * here costs anything.
 *
 * Dates are CLOCK_MONOTONIC also in virtual time, where work is done at the call: it is said
 * to start when it was handed over or what it waits for has ended, and to take as long as the
 * latency law says.  So that the host is not told of work that ends after it was waited for,
 * waits last until that date once somebody observes.
 */
#pragma once

#include <stdint.h>

/* Kinds, directions and memory kinds are the numbers of cupti_activity.h. */
enum observed_kind {
	OBSERVED_MEMCPY = 1,
	OBSERVED_MEMSET = 2,
	OBSERVED_KERNEL = 10,
	OBSERVED_SYNC = 38,
};

enum observed_sync {
	OBSERVED_EVENT = 1,
	OBSERVED_STREAM_EVENT = 2,
	OBSERVED_STREAM = 3,
	OBSERVED_CONTEXT = 4
};

struct observed {
	uint32_t kind;
	uint32_t number; /* of the call that asked for it: they ascend */
	uint32_t device, context, stream;
	uint32_t what, from, to; /* copies: direction and memory kinds; syncs: of what */
	uint64_t start_ns, end_ns;
	uint64_t bytes;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t grid[3], block[3];
	uint32_t shared_static, shared_dynamic;
	uint32_t registers;
	const char *name; /* only during the call */
};

/* Exported by libcuda.so.1; NULL ends it.  Called under the driver lock: the observer may
 * call nothing of CUDA. */
void weir_sim_observe(void (*observer)(const struct observed *what));
