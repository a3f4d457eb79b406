/*
 * Two workloads of three models each, for the batcher's tests and bench-batch. A batch of b
 * requests takes alpha + beta b ms, give or take 3 %, and one of 500 takes 2 ms longer; at most 32
 * run together. Requests arrive at random (Poisson). Deterministic by its seed.
 */
#pragma once

#include "batch/batch_simulate.h"

enum { WORKLOAD_MODELS = 3, WORKLOAD_ROWS = 32 };

struct workload {
	const char *name;
	struct {
		double alpha_ms, beta_ms, deadline_ms, share;
	} model[WORKLOAD_MODELS];
};

extern const struct workload workloads[2];

struct setting {
	enum batch_policy policy;
	double delay_ms;
	uint32_t max_rows;
	bool timeout; /* requests that wait until their deadline are dropped */
};

/* One for each model, and their sum last.  `with` has the seconds, the seed and the like. */
void workload_play(const struct workload *w, const struct setting *s, double rate,
	struct simulation with, struct simulated ret[WORKLOAD_MODELS + 1]);
/* The highest rate at which so large a share is answered in time. */
double workload_rate(const struct workload *w, const struct setting *s, double share,
	double seconds, uint64_t seed);
