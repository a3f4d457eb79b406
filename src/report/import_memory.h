/*
 * Allocations as torch.profiler notes them: an instant each, with an address, a size that is
 * negative when it is given back, and how much was allocated then.  They become calls of
 * functions that the trace's schema declares.
 *
 * What was allocated before the profile began is not told one by one, but its sum is: blocks of
 * it that are given back later become allocations at the beginning, the rest one block per
 * device whose address is its number + 1, so that the live set is what the allocator said.
 *
 * Internal to src/report.  Zeroed memory is empty.
 */
#ifndef WEIR_REPORT_IMPORT_MEMORY_H
#define WEIR_REPORT_IMPORT_MEMORY_H

#include "report/import_store.h"

struct memory_event {
	uint64_t ns;
	uint32_t thread; /* of the store */
	uint32_t device;
	uint64_t address;
	int64_t bytes;  /* of no more than 63 bits */
	uint64_t total; /* allocated on the device after it; valid with has_total */
	bool has_total;
};

struct memory_device {
	uint32_t number, thread;
	uint64_t before; /* allocated before the first event, and not yet told one by one */
};

struct memory_import {
	uint16_t before, alloc, free; /* functions, once declared */
	ARRAY(size_t) early;          /* calls of the store that belong to the beginning */
	struct map live;              /* address, device: 1 allocated, 0 given back */
	struct map device_map;
	ARRAY(struct memory_device) devices;
};

/* Puts the event into the store.  0 or -ENOMEM. */
int import_memory_event(struct memory_import *m, struct store *s, const struct memory_event *e);

/* Puts what was allocated before and never given back.  0 or -ENOMEM. */
int import_memory_finish(struct memory_import *m, struct store *s);
void import_memory_fini(struct memory_import *m);

#endif
