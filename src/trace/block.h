/*
 * Making blocks: one chunk, compressed (docs/reference/trace-format.md, "Packed form").  For
 * packing a finished file and for draining one that is being written.  One thread uses a maker.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "event/format.h"
#include "trace/columns.h"
#include "trace/trace.h"

struct block_maker {
	struct splitter split;
	void *zstd;
	uint8_t *columns;
	size_t columns_room;
	uint8_t *packed; /* the payload of the block made last: header.bytes of it */
	size_t packed_room;
	struct block_header header;

	/* Sums over all blocks made. */
	uint64_t records;
	uint64_t torn;    /* unfinished records left out */
	uint64_t damaged; /* chunks that end in bytes that are no records */
};

/* level: zstd's.  0 or -errno; block_maker_fini() takes it either way. */
void block_maker_init(struct block_maker *m, int level);
void block_maker_fini(struct block_maker *m);

/* Packs what trace_load() has put into buf, of a chunk that said `head`.  0 or -errno. */
int block_make(struct block_maker *m, const struct chunk_header *head, const struct chunk_buf *buf);

/* After a change of the header. */
void block_sign(struct block_header *b);
