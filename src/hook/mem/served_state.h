/* The pool of one device, as served.c and served_handles.c know it.  All with its lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hook/core/pages.h"
#include "hook/sched/member.h"
#include "hook/core/lock.h"
#include "hook/core/own_calls.h"
#include "pool/pool.h"

#define SLOT_BYTES                                                                                 \
	(8ull << 20)          /* mapping costs by the handle: measured best between 2 and 32 MiB */
#define SERVED_ELSEWHERE (-1) /* no result of the driver's: let it serve */
#define SERVED_LATER     (-2) /* when work in flight has come to frees */
#define NOT_READY        600  /* CUresult */
#define ENDED_STREAM     ((void *)-1)
#define WHOLE_CONTEXT    ((void *)-2) /* in place of a stream: all streams of the context */
#define CONTEXT_TAG      1u           /* of frees that all streams are to come to */
#define MOST_LEFT        1024

enum served_state { SERVED_NONE, SERVED_STARTING, SERVED_READY, SERVED_DECLINED };

struct served_stream {
	bool taken;
	bool frees; /* since the event was recorded */
	void *stream;
	void *event;           /* behind its frees */
	uint64_t recorded;     /* pool_now() when it was; 0: it has come, or never was */
	uint64_t shared;       /* of `shares`, when its frees became everybody's */
	uint64_t seen;         /* shares that it waits for already */
	_Atomic uint64_t last; /* pool_now() at the last free of CONTEXT_TAG; stands for itself */
};

struct served {
	_Atomic uint32_t state; /* stored with release behind served_begin(), loaded with acquire by
				 * of_device() */
	struct lock lock;
	bool is_calling;         /* the driver: served_calls() */
	struct own_calls own;    /* the holder's */
	bool has_pushed;         /* the context, over the holder's */
	uint64_t calls_since_ns; /* CLOCK_MONOTONIC, where is_calling */
	/* Freed without the lock: leave() swaps `has_left` in, with release, behind an address.
	 * free_left() swaps it out, with acquire, before it looks for addresses.  With stores in
	 * place of swaps, one of two threads that leave some would release its address to nobody.
	 */
	_Atomic bool has_left;
	_Atomic uint64_t left[MOST_LEFT];
	struct pool *pool;
	uint64_t base, bytes; /* of addresses */
	struct member *member;
	void *context;            /* in which it began */
	_Atomic uint64_t readers; /* a bit for each device that may use the memory.  served_reach()
				   * sets one and takes the lock to map; let_reach() has the lock */
	uint64_t shares, host_seen;
	bool is_tight; /* there was no new memory once */
	/* Only memory that cuMemAlloc gave can be opened by other processes: the driver gives it.
	 */
	bool is_ordered_only;
	_Atomic bool is_driver_used; /* the program has a pool of its own for allocations that name
					none; stands for itself */
	struct served_stream streams[POOL_TAGS];
} OWN_PAGES;

bool served_begin(struct served *s, struct member *m);
void served_end(struct served *s);

/* Before a call to the driver with the lock: handlers are held back and captures undisturbed until
 * it is given up, and the context is the pool's.  Operations that need no driver make no call of
 * it: it is the rule, and takes some tens of nanoseconds. */
void served_calls(struct served *s);

/* An event behind what the stream of that tag has freed. */
bool served_record(struct served *s, uint32_t tag);

/* Looks how far the streams have come: whether some are still to come to a free. */
bool served_poll(struct served *s);

/* Says to others what it could give them, at once or when its streams have come to their frees. */
static inline void served_publish(const struct served *s)
{
	const struct pool_counters *c = &s->pool->counters;
	store_relaxed(
		&s->member->slot->memory.spare, (c->idle_slots + c->waiting_slots) * SLOT_BYTES);
}

/* Handles for all slots of a block: 0, CUDA_ERROR_OUT_OF_MEMORY or SERVED_LATER. */
int served_back(struct served *s, const struct pool_place *at);
bool served_release_idle(struct served *s);
void served_give_wanted(struct served *s);
void served_let_reach(struct served *s); /* all readers all that is mapped */
