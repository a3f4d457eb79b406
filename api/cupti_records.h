/*
 * Activity records of CUPTI, laid out as cupti_activity.h of CUDA 13.0 publishes them: what the
 * injected library reads and the simulated CUPTI writes.  Members that neither knows are padding.
 * Earlier versions of a record end sooner: read no further than the field in question.
 */
#ifndef WEIR_API_CUPTI_RECORDS_H
#define WEIR_API_CUPTI_RECORDS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_SERIAL_KERNEL = 3,
	CUPTI_KERNEL = 10, /* CONCURRENT_KERNEL: leaves concurrency as it is */
	CUPTI_SYNC = 38,
};

struct cupti_kernel {
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
	uint8_t rest[56];
};
static_assert(sizeof(struct cupti_kernel) == 216, "cupti_activity.h");
static_assert(offsetof(struct cupti_kernel, correlation) == 92, "cupti_activity.h");
static_assert(offsetof(struct cupti_kernel, name) == 104, "cupti_activity.h");
static_assert(offsetof(struct cupti_kernel, graph_node) == 144, "cupti_activity.h");
static_assert(offsetof(struct cupti_kernel, graph) == 156, "cupti_activity.h");

struct cupti_memcpy {
	uint32_t kind;
	uint8_t direction, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint32_t runtime_correlation, padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint8_t rest[20];
};
static_assert(sizeof(struct cupti_memcpy) == 96, "cupti_activity.h");
static_assert(offsetof(struct cupti_memcpy, correlation) == 44, "cupti_activity.h");
static_assert(offsetof(struct cupti_memcpy, graph_node) == 64, "cupti_activity.h");

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, padding2;
};
static_assert(offsetof(struct cupti_memset, memory_kind) == 50, "cupti_activity.h");
static_assert(offsetof(struct cupti_memset, graph) == 72, "cupti_activity.h");

struct cupti_sync {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

/* When it started and ended, of the kinds above; false for others. */
static inline bool cupti_span(const void *record, uint64_t *ret_start, uint64_t *ret_end)
{
#define SPAN_OF(type)                                                                              \
	*ret_start = ((const struct type *)record)->start;                                         \
	*ret_end = ((const struct type *)record)->end;                                             \
	return true
	switch (*(const uint32_t *)record) {
	case CUPTI_KERNEL:
		SPAN_OF(cupti_kernel);
	case CUPTI_MEMCPY:
		SPAN_OF(cupti_memcpy);
	case CUPTI_MEMSET:
		SPAN_OF(cupti_memset);
	case CUPTI_SYNC:
		SPAN_OF(cupti_sync);
	default:
		return false;
	}
#undef SPAN_OF
}

#endif
