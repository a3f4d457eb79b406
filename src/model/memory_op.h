/*
 * The effects of calls on memory: allocations, frees and virtual memory calls. A report's workers
 * note them, and src/memory replays them in the order of time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "event/format.h"
#include "event/schema.h"

struct memory_op {
	uint64_t ticks;
	uint64_t pointer;
	uint64_t bytes;
	uint32_t process;
	uint32_t source; /* index into sources */
	uint32_t end;    /* of an allocation, once replayed: the operation that freed it */
	uint16_t fn_id;
	uint8_t kind;
	bool free;
};
#define MEMORY_NEVER UINT32_MAX

/* The source of an allocation: each combination that occurs, once. */
struct memory_source {
	uint64_t stream, pool; /* pool 0: the device's own */
	uint32_t process, tid;
	bool has_stream; /* in the order of a stream, so from a pool */
	bool unseen;     /* by a profiler, so the thread is not known */
};

static inline struct map_key memory_source_key(const struct memory_source *s)
{
	return MAP_KEY((uint64_t)s->process << 32 | s->tid, s->stream, s->pool,
		(uint64_t)s->has_stream << 1 | s->unseen);
}

/* A call's effect on addresses and handles of virtual memory. */
enum vmm_what {
	VMM_NOTHING,
	VMM_UNMAP, /* in the order in which those of one tick are taken */
	VMM_RELEASE,
	VMM_GIVE_BACK,
	VMM_RESERVE, /* addresses; or a segment, which another allocator cuts into blocks */
	VMM_CREATE,
	VMM_MAP,
};

struct vmm_op {
	uint64_t ticks;
	uint64_t pointer; /* address; VMM_CREATE, VMM_RELEASE: handle */
	uint64_t bytes;
	uint64_t handle; /* VMM_MAP */
	uint32_t process;
	uint32_t tid;
	uint16_t fn_id;
	uint8_t what; /* enum vmm_what */
	bool segment;
};

/* A class of functions of imported traces: what an allocator had done when its profiler began, and
 * what the profiler did not see.  A block without a known address has a small number instead, from
 * 1. */
#define MEMORY_UNSEEN "unseen"

/* The bytes that an allocator above the driver reported as its own, on one device, at a moment. */
struct reserved_note {
	uint64_t ticks, bytes;
	uint32_t process, device;
};

/* When a thread was in a call that gives out memory or takes it back. */
struct call_span {
	uint64_t start_ticks, end_ticks;
	uint32_t fn_id;
};

struct kernel_times;

struct memory_list { /* of one worker */
	struct memory_op *ops;
	size_t count;
	const struct call_span *spans;
	size_t span_count;
	const struct reserved_note *reserved;
	size_t reserved_count;
	const struct memory_source *sources;
	size_t source_count;
	const struct vmm_op *vmm;
	size_t vmm_count;
	const struct kernel_times *times; /* tally.h */
	size_t times_count;
};

#define MEMORY_LISTS 65u /* at most: one a worker, and one more */

/* The call's effect on virtual memory: enum vmm_what. */
uint8_t memory_vmm_role(const struct schema_fn *fn);

/* Whether the function gives out memory or addresses, or takes them back. */
enum memory_call { MEMORY_CALL_NO, MEMORY_CALL, MEMORY_CALL_WAITS /* for the GPU */ };
uint8_t memory_call_of(const struct schema_fn *fn);

/* False when the record says nothing of what is reserved. */
bool memory_reserved_note(
	const struct schema_fn *fn, const struct record *r, struct reserved_note *ret_note);

/* False when the record does not hold what it should. */
bool memory_vmm_op(
	const struct schema_fn *fn, uint8_t role, const struct record *r, struct vmm_op *ret_op);
