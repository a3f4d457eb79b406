/*
 * Counts all calls of a trace with several threads, each in its own struct tally, of which the
 * first becomes the sum. One owner thread. The content belongs to it until tallies_fini().
 */
#pragma once

#include "model/tally.h"

#define TALLIES_MOST 64u

struct worker;
struct tallies {
	struct worker *workers;
	uint32_t *thread_numbers; /* by chunk */
	unsigned count;
};

/* Counts what those facets need, with so many threads, 0 for as many as there are processors.  0 or
 * -errno; tallies_fini() follows in either case. */
int tallies_gather(struct tallies *t, const struct trace *trace, const struct meta *meta,
	uint32_t facets, unsigned threads);
void tallies_fini(struct tallies *t);

struct tally *tallies_sum(const struct tallies *t);

/* The allocations that each has seen, which remain its own; how many lists. */
unsigned tallies_memory(const struct tallies *t, struct memory_list lists[static MEMORY_LISTS]);
