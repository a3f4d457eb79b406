/*
 * How a server of models would do: the models of a repository, with the latencies that an earlier
 * run of the server saved there, under arrivals that are described, once for each policy. The
 * policies are the functions of the server, under a virtual clock (batch/batch_simulate.h).
 *
 * Functions return 0 or -errno and a sentence. One thread owns a question.
 */
#pragma once

#include "base/array.h"
#include "base/error.h"
#include "batch/batch_simulate.h"

struct serving_model {
	char *name;
	uint64_t version; /* the newest that has a saved latency */
	bool is_named;    /* arrivals name it */
	double *typical_ns;
	ARRAY(uint64_t) arrivals;
	struct simulated_model simulated;
};

struct serving {
	const char *repository;
	double seconds; /* 0: until the last arrival of a file, or 60 */
	uint64_t seed;
	uint64_t delay_ns; /* as the server's --delay */
	enum batch_policy policies[BATCH_POLICIES];
	size_t policy_count; /* 0: all */
	ARRAY(struct serving_model) models;
	ARRAY(char *) left_out; /* models without a saved latency */
	double rest;            /* requests a second of the models that no arrivals name; 0: none */
	struct simulated *results[BATCH_POLICIES]; /* by model, and the sum last */
};

/* -ENOENT: no model has a saved latency. */
int serving_load(struct serving *w, const char *repository, struct error *err);
/* poisson:RATE for all models together, MODEL=poisson:RATE, or a file of lines "SECONDS [MODEL]".
 */
int serving_arrive(struct serving *w, const char *how, struct error *err);
/* -EINVAL: nothing arrives. */
int serving_run(struct serving *w, struct error *err);
void serving_put_text(const struct serving *w, FILE *out);
void serving_put_json(const struct serving *w, FILE *out);
void serving_fini(struct serving *w);
