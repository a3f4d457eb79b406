/*
 * How a server of models would do: the models of a repository, with the latencies that an earlier
 * run of the server saved there, under arrivals that are described, once for each policy. The
 * policies are the functions of the server, under a virtual clock (batch/batch_simulate.h).
 *
 * Functions return 0 or -errno and a sentence. One thread owns a question.
 */
#ifndef WEIR_WHATIF_SERVED_H
#define WEIR_WHATIF_SERVED_H

#include "base/array.h"
#include "base/error.h"
#include "batch/batch_simulate.h"

struct served_model {
	char *name;
	uint64_t version; /* the newest that has a saved latency */
	bool is_told;     /* arrivals name it */
	double *typical_ns;
	ARRAY(uint64_t) arrivals;
	struct simulated_model simulated;
};

struct served {
	const char *repository;
	double seconds; /* 0: until the last arrival of a file, or 60 */
	uint64_t seed;
	enum batch_policy policies[BATCH_POLICIES];
	size_t policy_count; /* 0: all */
	ARRAY(struct served_model) models;
	ARRAY(char *) left_out; /* models without a saved latency */
	double rest;            /* requests a second of the models that no arrivals name; 0: none */
	struct simulated *results[BATCH_POLICIES]; /* by model, and the sum last */
};

/* -ENOENT: no model has a saved latency. */
int served_load(struct served *w, const char *repository, struct error *err);
/* poisson:RATE for all models together, MODEL=poisson:RATE, or a file of lines "SECONDS [MODEL]".
 */
int served_arrive(struct served *w, const char *how, struct error *err);
/* -EINVAL: nothing arrives. */
int served_run(struct served *w, struct error *err);
void served_put_text(const struct served *w, FILE *out);
void served_put_json(const struct served *w, FILE *out);
void served_fini(struct served *w);

#endif
