/*
 * One worker's counts: filled record by record, merged when all chunks are done.  Internal to
 * src/model and src/memory.
 */
#pragma once

#include "base/map.h"
#include "model/facet.h"
#include "model/memory_op.h"
#include "model/report.h"

#define FN_IDS 0x10000u

struct launch_run { /* of one kernel in one chunk */
	uint32_t chunk;
	size_t first, count; /* in ticks */
};

/* How long the launches of one kernel took on the host, and when they began. */
struct kernel_times {
	uint64_t kernel; /* as in struct shape_row */
	struct hist hist;
	ARRAY(uint64_t) ticks; /* of FACET_MEMORY, as are the runs */
	ARRAY(struct launch_run) runs;
};

struct tally {
	const struct trace *trace;
	const struct meta *meta;
	const uint32_t *thread_numbers; /* by chunk, of whoever gathers */
	uint32_t facets;                /* what is counted; rows of calls always are */
	uint32_t chunk;                 /* the one at hand; its process and thread */
	uint32_t process;
	uint32_t tid;

	uint32_t *row_of; /* by function id: index into calls plus 1 */
	ARRAY(struct call_row) calls;
	struct map failure_map;
	ARRAY(struct failure_row) failures;
	struct map shape_map;
	ARRAY(struct shape_row) shapes;
	struct map times_map;
	ARRAY(struct kernel_times) times;
	struct map thread_map;
	ARRAY(struct thread_sums) threads;
	struct thread_sums *thread; /* of the chunk at hand */
	uint64_t *graph_launches;   /* by step */
	uint64_t unnamed_graphs;
	ARRAY(struct wait_call) waits;
	ARRAY(struct memory_op) memory;
	ARRAY(struct vmm_op) vmm;
	ARRAY(struct call_span) memory_spans;
	ARRAY(struct reserved_note) reserved;
	ARRAY(struct memory_source) sources;
	struct map source_map;
	uint32_t last_source;
	struct map streams, contexts;
	uint64_t last_stream, last_context; /* the one seen last, to skip the map */
	uint64_t inner_ticks; /* begin of the driver's last launch or wait in the chunk at hand */

	uint64_t torn, damaged_chunks;
	uint64_t predicted,
		unpredicted; /* launches that were asked about: with an answer, without */
	uint64_t first_ticks, last_ticks;
};

/* Whether a tally is interested in the chunk. */
bool chunk_has_calls(const struct chunk_ref *c);

void tally_init(struct tally *t, const struct trace *trace, const struct meta *meta,
	const uint32_t *thread_numbers, uint32_t facets);
void tally_fini(struct tally *t);

/* Counts chunk i, which is loaded. */
void tally_chunk(struct tally *t, size_t i, const struct chunk_buf *buf);

/* Adds from to t, all but its memory operations and when launches began: those are many, and read
 * where they are. */
void tally_merge(struct tally *t, const struct tally *from);

/* The count of one shape of one kernel. */
void tally_shape(struct tally *t, uint64_t kernel, const struct launch_shape *shape, uint64_t count,
	uint64_t ticks, bool graph);

/* Keeps in common the shape of most launches; of several such the same one in whatever order they
 * come, so that what calls say and what the device says agree. */
void tally_common(struct launch_shape *common, uint64_t *most, const struct launch_shape *shape,
	uint64_t count);
