/*
 * Making blocks: one chunk, compressed (docs/reference/trace-format.md, "Packed form").  For
 * packing a finished file and for draining one that is being written.  One thread uses a maker.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/* Writes a packed trace.  The first failure is kept, and nothing is written after it. */
struct block_writer {
	FILE *out;
	uint64_t bytes; /* written so far */
	int failed;     /* -errno */
	struct block_maker maker;
};

void block_writer_put(struct block_writer *w, const void *data, size_t bytes);

/* A block that is made, and one of a chunk that lies in memory or was loaded. */
void block_writer_block(
	struct block_writer *w, const struct block_header *b, const uint8_t *payload);
void block_writer_chunk(
	struct block_writer *w, const struct chunk_header *head, const void *payload, size_t bytes);

/* The header over what stands in its place, when all is written.  Returns w->failed. */
int block_writer_finish(struct block_writer *w, const struct trace_header *h);
