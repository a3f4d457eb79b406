/*
 * Allocations as torch.profiler notes them: an instant each, with an address, a size that is
 * negative when it is given back, and how much was allocated then.  They become events of
 * functions that the trace's schema declares, when all have been read: each thread's stand
 * together in the file, and what was live when is known only in the order of time.
 *
 * Not all that an allocator does is there: the profile begins in the middle, and threads that it
 * does not look at allocate too.  But each event says how much was allocated, so what is missing
 * is known by its size, and what nobody was seen doing is put in: blocks of the time before, of
 * the address at which they are given back later, or one made up; blocks of made-up addresses in
 * the middle; and frees.  So the live set is at every event what the allocator said.
 *
 * Internal to src/import.  Zeroed memory is empty.
 */
#ifndef WEIR_IMPORT_IMPORT_MEMORY_H
#define WEIR_IMPORT_IMPORT_MEMORY_H

#include "import/import_store.h"

struct memory_event {
	uint64_t ns;
	uint32_t thread; /* of the store */
	uint32_t device;
	uint64_t address;
	int64_t bytes;     /* of no more than 63 bits */
	uint64_t total;    /* allocated on the device after it; valid with has_total */
	uint64_t reserved; /* valid with has_reserved */
	bool has_total, has_reserved;

	bool freed;     /* of an allocation: its free comes */
	uint32_t place; /* the device's index */
	uint32_t order; /* in the file */
};

struct memory_block {
	uint64_t address, bytes;
	uint32_t place;
};

/* Into blocks; those that are not live any more may stay. */
struct memory_blocks {
	uint32_t *v;
	size_t n, room;
};

struct memory_device { /* of one process */
	uint32_t number, thread;
	bool begun;
	uint64_t now;               /* live, as the new trace has it */
	uint64_t before;            /* of it: live before the first event, and of no block yet */
	struct memory_blocks loose; /* that no event frees: to be freed where nobody looks */
	struct memory_blocks firm;  /* that an event seems to free later: only if need be */
};

struct memory_import {
	ARRAY(struct memory_event) events;
	ARRAY(struct memory_device) devices;
	uint16_t alloc, free, before, unseen, gone; /* functions, once declared */
	ARRAY(size_t) early;                        /* calls that belong to the beginning */
	ARRAY(struct memory_block) blocks;
	struct map live; /* device, address: the block, or MAP_NONE */
	struct map device_map;
	uint64_t made_up; /* addresses so far */
	uint64_t last_ns;
};

/* Keeps the event.  0 or -ENOMEM. */
int import_memory_event(struct memory_import *m, struct store *s, const struct memory_event *e);

/* Puts all events, and what they tell of others, into the store.  0 or -ENOMEM. */
int import_memory_finish(struct memory_import *m, struct store *s);
void import_memory_fini(struct memory_import *m);

#endif
