/*
 * One device that serves models by a policy, under a virtual clock: the same code that decides in
 * the server, told arrivals instead of receiving them, and drawn durations instead of running
 * anything. Equal input gives equal answers on every machine. Arrivals are the same for every
 * policy, so policies differ by what they do and not by luck.
 */
#pragma once

#include "base/hist.h"
#include "batch/batch.h"

struct simulated_model {
	struct batch_model_config config;
	uint64_t deadline_ns; /* after its arrival; BATCH_NEVER: none */
	uint64_t timeout_ns;  /* in the queue; BATCH_NEVER: none */
	uint32_t class;
	double rate;              /* requests a second, Poisson; not with arrivals */
	const uint64_t *arrivals; /* ascending, from 0 on; NULL: by rate */
	size_t arrival_count;
	/* The true time of a batch: typically so long by its rows, with a deviation (log-normal).
	 */
	const double *typical_ns; /* [max_rows + 1] */
	double deviation;
};

struct simulation {
	enum batch_policy policy;
	const struct simulated_model *models;
	uint32_t model_count;
	double seconds; /* in which requests arrive; the last are still answered */
	uint64_t seed;
	double hiccup_share; /* of batches, which take so much longer */
	uint64_t hiccup_ns;
	/* All batches that begin in this time take so many times as long. */
	uint64_t change_ns, back_ns;
	double change;
	/* After each batch, if anybody wants to know; its items are still there. */
	void (*watch)(void *arg, const struct batch_run *run, uint64_t end_ns);
	void *arg;
};

struct simulated {
	uint64_t arrived, refused, full, shed, late, met;
	uint64_t batches, busy_ns;
	uint64_t broken;     /* requests in batches that took longer than predicted */
	struct hist latency; /* of those answered */
};

/* One for each model, and their sum last: ret has model_count + 1. */
void simulate(const struct simulation *s, struct simulated *ret);
/* The share of all that arrived that was answered in time; 1, if none arrived. */
double simulated_goodput(const struct simulated *s);
void simulated_fini(struct simulated *s, uint32_t count);
