/*
 * CUDA streams by class: given out, returned, given out again in the same context.  Through the
 * driver that is found in the running process.  Any thread, no locks.
 */
#pragma once

#include <stdint.h>

#define POOL_STREAMS 64u

struct pool_stream {
	/* The state of stream_pool.c.  put() stores it with release behind what follows, which is
	 * of who has it in work; take() and stream_pool_return() acquire. */
	_Atomic uint32_t state;
	uint32_t class;
	_Atomic uint32_t pid; /* a forked child has none of its parent's; a hint without take() */
	_Atomic(void *) stream;
	void *context;
	uint64_t context_id; /* addresses of contexts come again */
};

struct stream_pool {
	struct pool_stream stream[POOL_STREAMS];
};

/* WEIR_OK, or why not. */
int stream_pool_get(struct stream_pool *p, uint32_t class, void **ret_stream);
int stream_pool_return(struct stream_pool *p, void *stream);

/* The returned streams of the current context. */
void stream_pool_destroy(struct stream_pool *p);

/* Nobody uses it any more: it is empty. */
void stream_pool_forget(struct stream_pool *p);
