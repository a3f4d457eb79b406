/*
 * Counts the launches submitted to each stream and those known to be done. The begin and end of a
 * request follow from these counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "hook/sched/hold.h"

#define STREAM_WAITS 4u
#define STREAM_SKIPS 3u /* requests that a stream may prolong while no call waits for it */

struct stream_work {
	_Atomic uintptr_t key;      /* 0: nobody's */
	_Atomic uint64_t submitted; /* entered; partner: share_work.inside, see streams_submit() */
	_Atomic uint64_t retired;   /* known to be done; at most submitted, but for a moment.
				     * is_done()   looks at it before submitted */
	_Atomic uint64_t newest;    /* streams_epoch when the last was entered */
	struct hold_stream held;
	_Atomic uint32_t waiters;    /* calls that wait for it now */
	_Atomic uint32_t skipped;    /* requests that had ended without it since a call waited */
	_Atomic uint64_t skipped_at; /* streams_epoch at the last of them */
	_Atomic uint32_t waits_put;  /* of waits[], ever */
	bool blocking;               /* the legacy stream waits for it */
	/* It goes on when the first `upto` of others are done: those before its own number `at`. */
	struct stream_wait {
		_Atomic(struct stream_work *) other; /* NULL: none */
		uint64_t upto, at;
	} waits[STREAM_WAITS];
} __attribute__((aligned(64)));

/* How many calls have waited for all streams. */
extern _Atomic uint64_t streams_epoch __attribute__((visibility("hidden")));

/* The stream's entry; that of one that has nothing left is given away when all are taken.
 * Per-thread default streams are told apart.  When none is left, further streams share the last
 * one. */
struct stream_work *streams_of(void *stream, int per_thread);

/* The same, but NULL when nothing was submitted to it. */
struct stream_work *streams_find(void *stream, int per_thread);

/* One more is about to be submitted; a full barrier.  Its partner is that of go_outside(): of the
 * two at least one sees the other's word, that the program is inside or that the stream has work.
 */
static inline void streams_submit(struct stream_work *s)
{
	store_relaxed(&s->newest, load_relaxed(&streams_epoch));
	atomic_fetch_add_explicit(&s->submitted, 1, memory_order_seq_cst);
	cpu_fence_behind_rmw();
}

/* The same without a barrier (cpu_add): between threads on one stream a launch may get lost,
 * and with it for a moment that the stream is not done. */
static inline void streams_count(struct stream_work *s)
{
	store_relaxed(&s->newest, load_relaxed(&streams_epoch));
	cpu_add((uint64_t *)&s->submitted, 1);
}

/* The driver has refused one: it is not to be waited for.  Beside others it goes when they do. */
void streams_take_back(struct stream_work *s);

/* The first `upto` are done, and what they have waited for. */
void streams_retire(struct stream_work *s, uint64_t upto);

/* All streams are done to which nothing was submitted since streams_epoch was `when`: all, or those
 * that the legacy stream waits for. */
void streams_retire_all(uint64_t when, bool blocking_only);

/* The stream goes, and its handle may come again. */
void streams_end(struct stream_work *s);

bool streams_are_done(void);

/* A call that waits for the stream, or asks whether it is done, begins; has returned. */
void streams_await(struct stream_work *s);
void streams_awaited(struct stream_work *s);

/*
 * A program may leave work on a stream that it never waits for: what is prefetched, or written
 * back.  Such work belongs to no request, or one would last for ever.  A stream is left if the last
 * STREAM_SKIPS requests had ended without it, and no call has waited for it or asked about it since
 * the first of them.
 */
bool streams_is_left(const struct stream_work *s);

/* Whether a stream that is not left has work: the request lasts. */
bool streams_have_request(void);

/* A wait for that stream has returned.  If nobody waits for the others that have work, the request
 * would have ended without them. */
void streams_skip(const struct stream_work *waited);

/* An event was recorded behind what is submitted to the stream now; NULL: behind nothing that is
 * known here, or it is no more. */
void streams_note_event(void *event, struct stream_work *s);

/* The work that a completed event stands for.  False: it is not known. */
bool streams_of_event(void *event, struct stream_work **ret_s, uint64_t *ret_upto);

/* Work that is submitted to s from now on runs when the first `upto` of the other are done. */
void streams_note_wait(struct stream_work *s, struct stream_work *other, uint64_t upto);

void streams_forget(void);
