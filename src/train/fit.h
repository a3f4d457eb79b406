/*
 * Fitting a model to rows of features.  The same rows give the same bytes.
 */
#pragma once

#include "predict/feature.h"
#include "predict/forest.h"

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

#define FIT_TREES 32
#define FIT_DEPTH 6

/* At least one row.  The caller frees the forest.  Calls fit_step() for each tree. */
struct forest *fit_forest(const struct fit_row *rows, size_t n, struct fit_progress *progress);
