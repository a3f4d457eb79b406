/*
 * A growing table of the device memory that this process owns, keyed by the address or handle that
 * frees it. It lives in memory of its own.
 *
 * Its lock must be held to read or change it. The wait for the lock is bounded. A thread that
 * shares its holder's thread-local storage, as bare clones may, does not wait at all. Without the
 * lock the allocation is not counted. The holder blocks signals and calls no driver.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
