/*
 * Turns torch.profiler's allocation events into events of functions that the schema declares. Each
 * has an address, a size (negative for a free) and the bytes allocated after it. They are converted
 * when all have been read, because the file groups them by thread.
 *
 * The profile starts in the middle, and other threads allocate too. But each event states the
 * allocated bytes, so the size of everything missing is known. The importer adds earlier blocks, at
 * the address of their later free or a made-up one, blocks in the middle, and frees. So live memory
 * equals the allocator's own number at each event. Internal to src/import. Zeroed memory is empty.
 */
#pragma once

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

/* Keeps the event. */
void import_memory_event(struct memory_import *m, struct store *s, const struct memory_event *e);

/* Puts all events, and what they tell of others, into the store. */
void import_memory_finish(struct memory_import *m, struct store *s);
void import_memory_fini(struct memory_import *m);
