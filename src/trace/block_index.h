/*
 * Where the chunks of a live trace have gone.  A chunk that trace_open() saw may be drained, and
 * written anew, before it is loaded: then its content stands in a block, in a container that may
 * have been begun since.  Blocks never move, so an index of them that is brought up to date when
 * one is missing finds every chunk that is gone.  Any thread may ask.
 */
#ifndef WEIR_TRACE_BLOCK_INDEX_H
#define WEIR_TRACE_BLOCK_INDEX_H

#include "trace/trace.h"

/* Internal to src/trace. */
struct block_index *block_index_new(void);
void block_index_free(struct block_index *m);

/* The block that this chunk became: true, and *ret_block, or false. */
bool block_index_find(
	const struct trace *t, const struct chunk_ref *ref, struct chunk_ref *ret_block);

#endif
