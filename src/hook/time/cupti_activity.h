/*
 * Activity records of CUPTI: layouts as cupti_activity.h of CUDA 13.0 publishes them.
 */
#ifndef WEIR_HOOK_TIME_CUPTI_ACTIVITY_H
#define WEIR_HOOK_TIME_CUPTI_ACTIVITY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum activity_kind {
	ACTIVITY_COPY = 1,
	ACTIVITY_SET = 2,
	ACTIVITY_KERNEL = 10, /* CONCURRENT_KERNEL: leaves concurrency as it is */
	ACTIVITY_PEER_COPY = 22,
	ACTIVITY_WAIT = 38,
};

struct activity_kernel {
	uint32_t kind;
	uint16_t cache, registers;
	uint32_t shared_requested;
	uint32_t padding;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t shared_static, shared_dynamic, local, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_set, carveout, padding2;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit, graph;
};
static_assert(offsetof(struct activity_kernel, name) == 104, "cupti_activity.h");
static_assert(offsetof(struct activity_kernel, graph_node) == 144, "cupti_activity.h");
static_assert(offsetof(struct activity_kernel, graph) == 156, "cupti_activity.h");

struct activity_copy {
	uint32_t kind;
	uint8_t direction, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint32_t runtime_correlation, padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};
static_assert(offsetof(struct activity_copy, correlation) == 44, "cupti_activity.h");
static_assert(offsetof(struct activity_copy, graph_node) == 64, "cupti_activity.h");

struct activity_set {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, place;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};
static_assert(offsetof(struct activity_set, place) == 50, "cupti_activity.h");
static_assert(offsetof(struct activity_set, graph) == 72, "cupti_activity.h");

struct activity_wait {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

/* When it started and ended, of kinds that we record ourselves; false for others. */
static inline bool activity_span(const void *record, uint64_t *ret_start, uint64_t *ret_end)
{
#define SPAN_OF(type)                                                                              \
	*ret_start = ((const struct type *)record)->start;                                         \
	*ret_end = ((const struct type *)record)->end;                                             \
	return true
	switch (*(const uint32_t *)record) {
	case ACTIVITY_KERNEL:
		SPAN_OF(activity_kernel);
	case ACTIVITY_COPY:
		SPAN_OF(activity_copy);
	case ACTIVITY_SET:
		SPAN_OF(activity_set);
	case ACTIVITY_WAIT:
		SPAN_OF(activity_wait);
	default:
		return false;
	}
#undef SPAN_OF
}

#endif
