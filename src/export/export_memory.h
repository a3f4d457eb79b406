/*
 * The code that exporters of allocations share. Calls come chunk by chunk, but the formats need the
 * order of time and each free with its allocation. So 48 bytes an event are kept until the end.
 */
#pragma once

#include "base/array.h"
#include "export/export.h"

enum block_what { /* in the order in which those of one tick are taken */
	BLOCK_FREE,
	BLOCK_UNMAP, /* only while they are collected: frees all mappings in it */
	SEGMENT_FREE,
	SEGMENT_ALLOC,
	BLOCK_ALLOC,
	BLOCK_FAILED, /* an allocation that was refused */
};

struct block_event {
	uint64_t ticks;
	uint64_t pointer, bytes;
	uint64_t stream; /* 0 for calls that have none */
	uint32_t process, tid;
	uint32_t range; /* allocations: into meta.names, or META_NONE */
	uint16_t fn_id;
	uint8_t what; /* enum block_what */
	bool mark;    /* of an allocation: the sink's */
};

struct block_log {
	ARRAY(struct block_event) events;
};

/* Takes the call, if it is about memory of a GPU: handles of virtual memory come as what is mapped
 * of them. */
void block_log_add(struct block_log *log, const struct export_call *c);

/*
 * Hands all events over in the order of time.  `alloc` is what a free frees; frees of what nobody
 * was seen allocating are left out, and a block that another one is allocated over is freed before.
 * At the end those that are live come once more, with `live`, by process and address.
 */
struct block_sink {
	void (*event)(void *context, const struct block_event *e, struct block_event *alloc);
	void (*live)(void *context, const struct block_event *e); /* may be NULL */
	void *context;
};
int block_log_play(struct block_log *log, struct export *x, const struct block_sink *sink);
