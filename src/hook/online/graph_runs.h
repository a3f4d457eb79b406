/*
 * Executable graphs as predictions need them: their kernels, and one launch reassembled from the
 * kernels that ran.
 *
 * A signature stands for a graph's kernels with their shapes, in no order. Any thread may set and
 * find one inside a call. One thread at a time, the one that delivers device times, calls the rest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

/* The signature of kernels whose own signatures have this sum. */
uint64_t graphs_signature(uint64_t sum);

/* 0: what it launches is not known, or not any more. */
void graphs_set(uint64_t exec, uint64_t signature);
uint64_t graphs_find(uint64_t exec);

/* The known activities of one launch so far. */
struct graph_run {
	uint64_t correlation; /* 0: free */
	uint64_t from_ns, to_ns, sum;
	uint32_t device;
};

/* A kernel that ran in a graph.  If many launches never become whole, the oldest are given up. */
void graphs_add(const struct gpu_activity *w, uint64_t signature);

/* The runs that there are: the next from *at on, or NULL.  The caller frees one that it has used.
 */
struct graph_run *graphs_next(uint32_t *at);

void graphs_forget(void);
