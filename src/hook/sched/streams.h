/*
 * What was submitted to each stream and what of it is known to be done, as counts of launches: from
 * these a request's begin and end are told.
 */
#ifndef WEIR_HOOK_SCHED_STREAMS_H
#define WEIR_HOOK_SCHED_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

struct stream_work {
	uintptr_t key;      /* 0: nobody's */
	uint64_t submitted; /* entered */
	uint64_t retired;   /* known to be done; at most submitted, but for a moment */
} __attribute__((aligned(64)));

/* The stream's entry.  Per-thread default streams are told apart.  When all are taken, further
 * streams share the last one, and are done when everything is. */
struct stream_work *streams_of(void *stream, int per_thread);

/* The same, but NULL when nothing was submitted to it. */
struct stream_work *streams_find(void *stream, int per_thread);

/* One more is about to be submitted; a full barrier. */
static inline void streams_submit(struct stream_work *s)
{
	__atomic_fetch_add(&s->submitted, 1, __ATOMIC_SEQ_CST);
}

/* The same without a barrier, one instruction: between threads on one stream a launch may get lost,
 * and with it for a moment that the stream is not done. */
static inline void streams_count(struct stream_work *s)
{
	__asm__ volatile("addq $1, %0" : "+m"(s->submitted) : : "cc");
}

/* The first `upto` are done. */
void streams_retire(struct stream_work *s, uint64_t upto);

/* All that was submitted by now, of each stream, into upto[]; and its other half. */
void streams_retire_all(void);

bool streams_are_done(void);

/* An event was recorded behind what is submitted to the stream now. */
void streams_note_event(void *event, struct stream_work *s);

/* What an event that has come stands for.  False: it is not known. */
bool streams_of_event(void *event, struct stream_work **ret_s, uint64_t *ret_upto);

void streams_forget(void);

#endif
