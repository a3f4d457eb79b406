/*
 * Lanes: what the hook knows of a thread outside of it.
 *
 * There is no hook on the end of a thread: pthread keys allocate, and a destructor of the program
 * may call CUDA after ours.  So what a thread has mapped stands in a lane, in memory that is never
 * unmapped; whoever refills a chunk looks at a few lanes, and clears those whose thread is no more.
 * A thread that comes takes over a lane that is free, with its account and its counters, which are
 * sums and go on.  There are as many lanes as threads have recorded at one time, a few more, and no
 * more however many threads come and go.
 *
 * A lane is its thread's alone while `owner` names it; whoever clears it swaps that for LANE_TAKEN.
 * Each owner counts one more in the upper half: who has seen that a thread is gone, and then swaps,
 * must not take the lane from a later thread of the same id.
 */
#ifndef WEIR_RECORD_LANE_H
#define WEIR_RECORD_LANE_H

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
	_Atomic uint64_t owner;         /* turn << 32 | thread id; id 0: free */
	struct thread_account *account; /* in the file */
	struct counter *counters;       /* in the file, or NULL */
	struct track calls, ranges, stacks;
};

/* The lane of this thread, taken over or made; NULL: there is no room for one. */
struct lane *lane_take(struct recorder *r, uint32_t tid);

static inline struct track *lane_track(struct lane *lane, uint32_t kind)
{
	return kind == CHUNK_RANGES   ? &lane->ranges
	       : kind == CHUNK_STACKS ? &lane->stacks
				      : &lane->calls;
}

/* Clears a few lanes of threads that are gone. */
void lanes_sweep(struct recorder *r);

/* Parks a chunk for as long as its thread lives.  False: there is no memory for the list. */
bool track_park(struct track *t, const struct mapped *m);

void lanes_forget(void); /* after a fork: there are none */

/* Where the whole ranges of a chunk end: slots that nobody took are zeros. */
uint32_t ranges_room(uint32_t bytes);

/* Room for an account of this process, or NULL. */
struct thread_account *account_reserve(struct recorder *r);

#endif
