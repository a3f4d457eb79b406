/*
 * Executable graphs, as far as predicting their launches needs: what kernels they launch, and what
 * ran of one launch put together again.
 *
 * A signature stands for the kernels of a graph with their shapes, in no order.  Setting and
 * finding are for any thread, in calls; the rest is for who hands over device times, one thread at
 * a time.
 */
#ifndef WEIR_HOOK_ONLINE_GRAPH_RUNS_H
#define WEIR_HOOK_ONLINE_GRAPH_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

/* The signature of kernels whose own signatures have this sum. */
uint64_t graphs_signature(uint64_t sum);

/* 0: what it launches is not known, or not any more. */
void graphs_set(uint64_t exec, uint64_t signature);
uint64_t graphs_find(uint64_t exec);

/* What has come of one launch so far. */
struct graph_run {
	uint64_t correlation; /* 0: free */
	uint64_t from_ns, to_ns, sum;
	uint32_t device;
};

/* A kernel that ran in a graph.  Of many launches that never get whole the oldest are given up. */
void graphs_add(const struct gpu_activity *w, uint64_t signature);

/* The runs that there are: the next from *at on, or NULL.  Whoever has used one frees it. */
struct graph_run *graphs_next(uint32_t *at);

void graphs_forget(void);

#endif
