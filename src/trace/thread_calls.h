/*
 * Reads the calls of a trace thread by thread.
 *
 * Records stand in the order in which calls ended. A reader that needs the nesting goes backwards:
 * newest chunk first, and each from its end. Then a call comes before those inside it, and the open
 * calls are a stack.
 *
 *	struct thread_calls c;
 *	int e = thread_calls_init(&c, t);
 *	while (!e && (e = thread_calls_next(&c)) > 0)
 *		for (size_t i = c.calls.n; i-- > 0;) …
 *	thread_calls_fini(&c);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "trace/trace.h"

/* Indexes of chunks. */
struct thread_chunks {
	ARRAY(uint32_t) v;
};

/* The chunks of calls by process and thread, and of a thread by age. */
void trace_thread_chunks(const struct trace *t, bool newest_first, struct thread_chunks *ret_list);

/*
 * Which thread each chunk of calls, counts or ranges is of, by chunk: numbers from 0, of one
 * thread id the older thread first.  An id that comes again in a process is another thread: its
 * chunks of a kind are counted from 0 once more.  Other chunks have MAP_NONE.  The caller frees the
 * array.
 */
void trace_number_threads(const struct trace *t, uint32_t **ret_numbers);

struct thread_calls {
	const struct trace *t;
	struct chunk_buf buf; /* the chunk at hand */
	struct thread_chunks chunks;
	size_t next;                        /* of chunks */
	const struct chunk_ref *last;       /* the chunk at hand, as long as it is */
	bool new_thread;                    /* it is its thread's first */
	ARRAY(const struct record *) calls; /* of it, but for an allocator's, as they ended */
};

void thread_calls_init(struct thread_calls *c, const struct trace *t);

/* The next chunk: 1, 0 when there is none, or -errno.  Damaged ones are passed over. */
int thread_calls_next(struct thread_calls *c);
void thread_calls_fini(struct thread_calls *c);
