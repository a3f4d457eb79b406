/*
 * How much device time the queued work with a deadline up to some time takes: a Fenwick tree over
 * bins of a millisecond (2^20 ns), which rolls with the time. Later deadlines than its horizon are
 * in its last bin; what is overdue is a sum of its own. Each class has a tree.
 */
#pragma once

#include <stdint.h>

#include "batch/batch.h"

enum {
	DEMAND_BIN_BITS = 20,
	DEMAND_BINS = 4096,
};

struct batch_demand {
	uint64_t first; /* the bin of the present, counted from the clock's zero */
	uint64_t all[BATCH_CLASSES], overdue[BATCH_CLASSES];
	uint64_t tree[BATCH_CLASSES][DEMAND_BINS + 1], bin[BATCH_CLASSES][DEMAND_BINS];
};

/* Time passes; at most DEMAND_BINS steps. */
void demand_advance(struct batch_demand *d, uint64_t now);
/* The bin, which is remembered with the item for demand_drop(): its lowest 32 bits are enough. */
uint32_t demand_add(struct batch_demand *d, uint32_t class, uint64_t deadline, uint32_t ns);
void demand_drop(struct batch_demand *d, uint32_t class, uint32_t bin, uint32_t ns);
/* Demand of the class and higher ones, with a deadline in the bin of that time or before. */
uint64_t demand_ns(const struct batch_demand *d, uint32_t class, uint64_t deadline);
