/*
 * The facets of a report: parts that are made one by one, each by the module that owns it, so that
 * whoever wants one list of a trace pays for that list alone.  src/report/report_make.c has their
 * table: what each needs, who makes it, who frees it.
 */
#pragma once

#include <stdint.h>

/* In the order in which they are made. */
enum facet {
	FACET_CALLS,      /* calls by function, failures, copies by calls, wall time, totals */
	FACET_CALL_TIMES, /* the durations of each function's calls */
	FACET_KERNELS,    /* kernels by name, from their launches */
	FACET_WAITS,      /* calls that wait for the GPU, one by one */
	FACET_THREADS,    /* what each thread did */
	FACET_STREAMS,    /* how many streams and contexts calls used */
	FACET_STACKS,     /* call stacks, and calls by them */
	FACET_MEMORY,     /* allocations, replayed */
	FACET_LINKS,      /* which call launched which GPU activity */
	FACET_DEVICE,     /* GPU activities, operators, streams, devices, idle time */
	FACET_BLAME,      /* who kept the host from asking, of each idle gap */
	FACET_PREDICTION, /* what was predicted, against what was measured */
	FACET_GPU_STATES, /* samples of NVML */
	FACET_REQUESTS,   /* requests to a server of models, and their batches */
	FACET_HINTS,      /* conclusions: what could be gained */
	FACET_WARNINGS,   /* what is missing or damaged */
	FACETS
};

/* A set of them, as bits. */
#define FACET(name)      (1u << FACET_##name)
#define FACETS_ALL       (((1u << FACETS) - 1) & ~FACET(WAITS)) /* of the whole report */
#define FACETS_BUT_HINTS (FACETS_ALL & ~FACET(HINTS))

/* The facets that one walk over all calls counts. */
#define FACETS_TALLIED                                                                             \
	(FACET(CALLS) | FACET(CALL_TIMES) | FACET(KERNELS) | FACET(WAITS) | FACET(THREADS) |       \
		FACET(STREAMS) | FACET(MEMORY) | FACET(PREDICTION))
