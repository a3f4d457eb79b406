/*
 * A lane holds the hook's knowledge of a thread outside that thread.
 *
 * Nothing tells the hook of a thread's end: pthread keys allocate, and a destructor of the program
 * may call CUDA after ours. So a thread's mappings stand in a lane, in memory that is never
 * unmapped. A thread that refills a chunk checks a few lanes and clears those of ended threads. A
 * new thread takes over a free lane with its account and counters, which are sums and continue.
 * There are as many lanes as threads recorded at one time, and a few more.
 *
 * A lane belongs to its thread while `owner` names it. The thread that clears it swaps that for
 * LANE_TAKEN. Each owner adds one in the upper half, so a late swap cannot take the lane from a
 * later thread with the same id.
 */
#pragma once

#include "record/writer.h"

#define LANE_TAKEN UINT32_MAX

/* Chunks that a thread keeps mapped behind the open one; more where none may go yet. */
#define LANE_KEPT 7
#define LANE_MOST 31

/* Chunks that found no place among the kept, since each of those holds a range that has not ended:
 * a page of them.  A program that pushes and never pops fills many. */
#define PARKED 254
struct parked {
	struct parked *before;
	uint64_t count;
	struct mapped chunks[PARKED];
};

/* The chunks of a writer. */
struct track {
	struct mapped open;
	/* Full chunks that are still mapped, oldest first: a record of this thread that a signal
	 * handler interrupted may be in one; and one that was drained is used again, which saves
	 * the page faults of a new one. */
	struct mapped kept[LANE_MOST];
	uint32_t unclosed;     /* of kept: bit i is set where an open range is in */
	struct parked *parked; /* the newest page, or NULL; all are open, and stay so */
};

struct lane {
	/* turn << 32 | thread id; id 0: free.  claim() and release() hand all of the lane over by
	 * it; that a thread is gone the kernel says, with a barrier. */
	_Atomic uint64_t owner;
	_Atomic(struct thread_account *) account; /* in the file; make_lane(), take_over() */
	struct counter *counters;                 /* in the file, or NULL */
	struct track calls, ranges, stacks, requests;
	/* For requests, which few threads of few programs write: no thread-local one for each. */
	struct writer served;
};

/* The lane that this thread has, or NULL. */
struct lane *lane_own(void);

/* The lane of this thread, taken over or made; NULL: there is no room for one. */
struct lane *lane_take(struct recorder *r, uint32_t tid);

static inline struct track *lane_track(struct lane *lane, uint32_t kind)
{
	return kind == CHUNK_RANGES     ? &lane->ranges
	       : kind == CHUNK_STACKS   ? &lane->stacks
	       : kind == CHUNK_REQUESTS ? &lane->requests
					: &lane->calls;
}

/* Clears a few lanes of threads that are gone. */
void lanes_sweep(struct recorder *r);

/* Parks a chunk for as long as its thread lives.  False: there is no memory for the list. */
bool track_park(struct track *t, const struct mapped *m);

void lanes_forget(void); /* after a fork: there are none */

/* The end of the whole ranges (requests) of a chunk: slots that nobody took are zeros. */
uint32_t slots_room(uint32_t bytes, uint32_t kind);

/* Room for an account of this process, or NULL. */
struct thread_account *account_reserve(struct recorder *r);
