/* The process's share of its quota, and the bytes that one call requests from it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook/sched/member.h"

/*
 * A growing table of the device memory that this process owns (owned.c), keyed by the address or
 * handle that frees it. It lives in memory of its own.
 *
 * Its lock must be held to read or change it. The wait for the lock is bounded. A thread that
 * shares its holder's thread-local storage, as bare clones may, does not wait at all. Without the
 * lock the allocation is not counted. The holder blocks signals and calls no driver.
 */
enum owned_kind {
	OWNED_NONE,
	OWNED_CONTEXT,  /* by CUcontext */
	OWNED_BLOCK,    /* by address */
	OWNED_MANAGED,  /* by address */
	OWNED_ASYNC,    /* by address; of a pool of the driver */
	OWNED_ARRAY,    /* by CUarray or CUmipmappedArray */
	OWNED_EXTERNAL, /* by CUexternalMemory */
	OWNED_HANDLE,   /* by CUmemGenericAllocationHandle; its memory: */
	OWNED_PHYSICAL, /* by a number of ours; lives while it has handles or mappings */
	OWNED_MAPPING,  /* by address */
	OWNED_GRAPHS,   /* by device: what the graphs of a process keep there */
	OWNED_LIMIT,    /* by context and CUlimit: what it reserves beyond its first value */
};

struct owned {
	uint64_t key;
	uint64_t bytes;
	uint64_t context;  /* with which it ends; 0: with none */
	uint64_t physical; /* of handles and mappings: whose */
	uint32_t kind;     /* enum owned_kind; OWNED_NONE: empty */
	uint16_t device;
	uint16_t uses;    /* of handles and physical memory */
	uint32_t gone;    /* the place was used: a search goes on behind it */
	uint8_t exported; /* of physical memory: a descriptor was made, which is one of its uses */
	uint8_t imported; /* it came by one: how large it is, is known when it is mapped */
};

bool owned_lock(void);
void owned_unlock(void);

/* With the lock. */
struct owned *owned_find(enum owned_kind kind, uint64_t key);
bool owned_put(const struct owned *o); /* in place of what has that key; false: no memory */
void owned_drop(struct owned *o);
struct owned *owned_next(struct owned *o); /* all of them: from NULL to NULL */

/* In a forked child: nothing, and the lock is free. */
void owned_forget(void);

#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

/* A call on its way to the driver with what it will take. */
struct claim {
	struct member *member; /* NULL: it is not counted */
	uint64_t bytes;
	uint64_t context;  /* 0: what is allocated does not end with it */
	uint64_t since_ns; /* CLOCK_MONOTONIC */
};

/* On the current context's device, or on that one.  False: the quota has no room, and nothing was
 * taken. */
bool claim_begin(struct claim *c, uint64_t bytes);
bool claim_begin_on(struct claim *c, int device, uint64_t bytes);

/* The driver has answered: on success it is remembered by what it will be freed by.  The answer. */
int claim_end(struct claim *c, int result, enum owned_kind kind, uint64_t key);

/* The same for what is remembered otherwise: whether it counts. */
void claim_settle(const struct claim *c, bool counts);

/* Before something is freed, and behind it: what the driver has refused to free is still there. */
bool give_begin(struct owned *ret, enum owned_kind kind, uint64_t key);
int give_end(const struct owned *o, bool known, int result);

/* The device of an index of this process. */
void account_give(uint16_t device, enum owned_kind kind, uint64_t bytes);

/* The current context takes memory of its own, which is counted from its first call here on. */
void context_seen(struct member *m);

/* In a forked child. */
void account_forget(void);

/* Around a call that changes what this process has, on whatever device. */
void account_changes(bool begins);

/* Counts as freed what ended with a context: all but the memory of pools and graphs, and what is
 * mapped. */
void context_ended(uint64_t context);

/* A size as the driver has it. */
uint64_t whole_blocks(uint64_t bytes);

/* A refusal, in the recording: how much was asked for, and who held what. */
/* Also counts it. */
void refusal_count(const struct member *m, uint64_t bytes);
void refusal_report(const struct member *m, uint64_t bytes);

/*
 * Memory that is out here and idle elsewhere: others are told of it, and give back what they can
 * with their next call.  Under --wait-memory the call that wants it waits for so long.
 */
struct reclaim {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: it has not begun */
};

/* Whether to try again, after a nap. */
bool reclaim_goes_on(struct reclaim *w, struct member *m, uint64_t bytes);
void reclaim_ends(struct member *m, bool in_vain);

/* The memory that the driver's own pools keep. */
/* Has the pools of a device give back what is idle and beyond the quota. */
void pools_trim(struct member *m);

/* The graphs' memory may have changed: a launch, or a free of what no call has allocated. */
void graphs_changed(void);

void pools_forget(void);
