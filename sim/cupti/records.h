/*
 * Records of the double of CUPTI, laid out as cupti_activity.h of CUDA 13.0 publishes them, as
 * far as somebody reads them; what is not simulated is padding and zero.
 */
#ifndef SIM_CUPTI_RECORDS_H
#define SIM_CUPTI_RECORDS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_SERIAL_KERNEL = 3,
	KIND_KERNEL = 10,
	KIND_SYNC = 38,
	KINDS = 64,
};

struct record_kernel {
	uint32_t kind;
	uint16_t cache, registers;
	uint32_t shared_requested, pad;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	uint32_t grid[3], block[3];
	uint32_t shared_static, shared_dynamic, local, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_set, carveout, pad2;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit, graph;
	uint8_t rest[56];
};
static_assert(sizeof(struct record_kernel) == 216, "cupti_activity.h");
static_assert(offsetof(struct record_kernel, correlation) == 92, "cupti_activity.h");

struct record_memcpy {
	uint32_t kind;
	uint8_t direction, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint32_t runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint8_t rest[20];
};
static_assert(sizeof(struct record_memcpy) == 96, "cupti_activity.h");

struct record_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory_kind;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, pad2;
};
static_assert(offsetof(struct record_memset, graph) == 72, "cupti_activity.h");

struct record_sync {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
};

#endif
