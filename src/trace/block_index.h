/*
 * Finds the moved chunks of a live trace. A chunk that trace_open() saw may be drained and
 * rewritten before it is loaded. Its content then stands in a block, perhaps of a new container.
 *
 * Blocks never move, so an index of them finds every missing chunk if it is updated when one is
 * missing. Any thread may ask.
 */
#pragma once

#include "trace/trace.h"

/* Internal to src/trace. */
struct block_index *block_index_new(void);
void block_index_free(struct block_index *m);

/* The block that this chunk became: true, and *ret_block, or false. */
bool block_index_find(
	const struct trace *t, const struct chunk_ref *ref, struct chunk_ref *ret_block);
