/*
 * Times plans on the first GPU: graphs of launches over rotating buffers, so that no launch finds
 * its data in a cache, in rounds of which the median counts.
 */
#pragma once

#include "kernels/plan.h"

enum { MEASURE_ROUNDS = 25, MEASURE_PLANS = 4 };

struct measure;

/* A context of the first GPU, current in this thread.  0, or a negative number of enum
 * weir_kernels_status. */
int measure_open(struct measure **ret, struct error *err);
void measure_close(struct measure *m); /* or NULL */

/* Nanoseconds of a run of each of n plans of the same operation and shape: rounds go through them
 * forwards and backwards by turns. */
int measure_plans(struct measure *m, struct weir_plan *const *plans, size_t n, double *ret_ns,
	struct error *err);
