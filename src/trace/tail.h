/*
 * Follows a raw trace while it is written, for `weir trace` and for tests. Each record is delivered
 * once, soon after it was committed.
 *
 * Threads are merged by the end of calls within one poll, and polls follow each other. One owner
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "event/format.h"

struct tail;

/* The file must have its header; -EAGAIN while it is still shorter than that. */
int tail_open(const char *path, struct tail **ret_tail, struct error *err);
void tail_close(struct tail *tail);

/*
 * For the one reader that a recording is made for: from now on chunks of calls that are full
 * and handed over are given back to their threads, which write them again, so that the file
 * stays small.  0 or -errno.
 */
int tail_consume(struct tail *tail, const char *path);

/*
 * Calls `call` for each new record of calls (CHUNK_EVENTS) and of names (CHUNK_META), names
 * first.  The pointers are valid during the call.  Returns how many there were, or -errno.
 */
int64_t tail_poll(struct tail *tail,
	void (*call)(void *context, const struct chunk_header *chunk, const struct record *r),
	void *context);

/* The header as of the last poll. */
const struct trace_header *tail_header(const struct tail *tail);
