/*
 * Chunks of GPU activities, ranges, links, samples and requests (docs/reference/trace-format.md,
 * "GPU activities, ranges and links"): arrays of records of one size, and their packed form.
 * Nothing here keeps state. Any thread may read its own buffer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "event/format.h"
#include "trace/trace.h"

/* Bytes of a record of such a chunk; 0 for other kinds of chunk. */
size_t array_record_bytes(uint16_t chunk_kind);

/*
 * The records of a loaded chunk, slots that hold nothing left out; false at the end.  Start
 * with at = 0.  A time that runs backwards comes out with end_ns = start_ns, a range that never
 * ended with the end of the recording.
 */
bool activity_next(const struct chunk_buf *buf, size_t *at, struct gpu_activity *ret_activity);
bool range_next(const struct chunk_buf *buf, size_t *at, struct range *ret_range);
bool request_next(const struct chunk_buf *buf, size_t *at, struct served_request *ret_request);

/*
 * The same of a whole trace, chunk after chunk.  Members that the caller does not set are zero at
 * the beginning.  False at the end, or after a failure of the machine, which `error` tells: a walk
 * that got there has nothing to free.  Damaged chunks are passed over, and counted if `damaged` is
 * not NULL.
 *
 *	struct cursor at = { .t = t };
 *	for (struct gpu_activity w; trace_next_activity(&at, &w);)
 *		...
 *	return at.error;
 */
struct cursor {
	const struct trace *t;
	const struct chunk_ref *ref; /* the chunk of the record at hand */
	struct chunk_buf *buf;       /* NULL: own */
	struct chunk_buf own;
	uint64_t *damaged;
	size_t chunk;           /* the next */
	size_t at;              /* in the chunk at hand */
	struct records records; /* of it, for calls */
	int error;              /* 0 or -errno */
	bool inside;
	bool as_measured; /* activities: with what a pair of events measured besides the work */
	uint64_t *
		left_out; /* counts activities of which events only know that they took no longer */
};

/*
 * The wait of a stream for the host is taken off what a pair of events measured.  If the wait was
 * long (SLOW_HOST_NS), or the event behind was late, the rest is no duration, and the activity is
 * left out.  `as_measured` gives all as they were measured.
 */
bool trace_next_activity(struct cursor *c, struct gpu_activity *ret_activity);
const struct record *trace_next_call(struct cursor *c); /* valid until the next; NULL: false */
bool trace_next_range(struct cursor *c, struct range *ret_range);
bool trace_next_link(struct cursor *c, struct link *ret_link);
bool trace_next_sample(struct cursor *c, struct gpu_sample *ret_sample);
bool trace_next_request(struct cursor *c, struct served_request *ret_request);
bool trace_next_account(struct cursor *c, struct thread_account *ret_account);

/* Saturating: what a range covers is [ticks, range_end()). */
static inline uint64_t range_end(const struct range *r)
{
	return r->dur > UINT64_MAX - r->ticks ? UINT64_MAX : r->ticks + r->dur;
}

/* Whether ranges of this kind nest, and activities belong to the innermost of them. */
static inline bool range_nests(uint16_t kind)
{
	return kind == RANGE_OPERATOR || kind == RANGE_ANNOTATION || kind == RANGE_NVTX;
}

/* Whether the activity keeps a device busy, and is no sum of others. */
static inline bool activity_is_work(uint16_t kind)
{
	return kind == GPU_KERNEL || kind == GPU_MEMCPY || kind == GPU_MEMSET || kind == GPU_GRAPH;
}

/* How long the stream waited for the host between the events that timed it; else 0. */
static inline uint64_t activity_waited_ns(const struct gpu_activity *w)
{
	return w->valid & GPU_STREAM_IDLE ? (uint32_t)w->host_ns : 0;
}

/* Whether a kernel of that name, demangled, is a collective operation. */
static inline bool activity_communicates(const char *name)
{
	return !strncmp(name, "nccl", 4);
}

/* "HtoD", "pinned", "kernel", "operator"; NULL for numbers that have no name. */
const char *copy_direction_name(unsigned direction);
const char *activity_direction(const struct gpu_activity *w); /* NULL also for what is no copy */
const char *activity_memory_kind_name(unsigned kind);
const char *activity_kind_name(unsigned kind);
const char *request_outcome_name(unsigned outcome);
#define WAIT_STREAM 3u /* the kind of a wait for one stream */
const char *range_kind_name(unsigned kind);

/* Encoding 2: count records of `each` bytes (a multiple of 4), word by word.  out and in hold
 * count * each bytes and do not overlap. */
void words_split(const uint8_t *in, size_t count, size_t each, uint8_t *out);
void words_join(const uint8_t *in, size_t count, size_t each, uint8_t *out);
