/*
 * Fitting the parts of a model to rows of features.  Everything is deterministic: the same rows and
 * seed give the same bytes.
 */
#pragma once

#include "base/error.h"
#include "predict/forest.h"
#include "predict/network.h"

/* One launch as a model sees it, and what it should say. */
struct fit_row {
	float x[FEATURES];
	float y; /* log2(time / bound) */
	float weight;
};

/* Told how far it is; may be NULL. */
struct fit_progress {
	void (*show)(void *data, uint64_t done, uint64_t all);
	void *data;
	uint64_t done, all;
};

void fit_step(struct fit_progress *p);

/* Four quantiles at once, by the loss that each is the least of (Koenker and Bassett 1978), with
 * Adam (Kingma and Ba 2015). */
void fit_network(const struct fit_row *rows, size_t n, uint64_t seed, struct fit_progress *progress,
	struct network *ret_network);
#define FIT_NETWORK_STEPS 40 /* calls of fit_step() */

#define FIT_TREES 32
#define FIT_DEPTH 6

/* With XGBoost's library, which is loaded when first asked for.  The block is the caller's to free.
 * -ENOSYS when the library is not there, -EIO with its own words when it fails. */
int fit_forest(const struct fit_row *rows, size_t n, uint64_t seed, struct fit_progress *progress,
	struct forest **ret_forest, struct error *err);
