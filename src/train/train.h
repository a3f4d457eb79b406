/*
 * Makes a model file from recorded launches.
 *
 * Repeated launches count once, with their median. The rows are dealt into folds, and a model of
 * the others predicts each fold. That is done with each kernel in a fold of its own, so that
 * siblings are known, and with siblings together. If the family's usual ratio is better than the
 * model with known siblings, no model is made. The file keeps the error without siblings.
 */
#pragma once

#include "base/error.h"
#include "predict/model.h"
#include "train/fit.h"

#define TRAIN_FEWEST 40 /* distinct launches */

/* The launches of a dataset, each once. */
struct train_rows {
	struct train_row *v;
	size_t n;
	size_t kernels, groups;
	bool together; /* siblings are in one fold */
};

struct train_row {
	const struct predict_sample *sample; /* one of those with the key */
	float measured_ns;                   /* their median */
	float bound_ns;
	float y; /* log2(measured / bound) */
	enum predict_family family;
	unsigned known_cost;
	uint64_t group;
};

/* Contended launches and those that make no sense are left out. */
void train_rows_of(const struct predict_device *d, const struct predict_sample *samples, size_t n,
	struct train_rows *ret_rows);
void train_rows_fini(struct train_rows *r);

struct train_options {
	uint64_t created;   /* seconds since 1970, for the file; 0: not known */
	const char *device; /* name, for the file */
	struct fit_progress progress;
};

/* How far it is off, |t/measured - 1|, on kernels that were not known. */
struct train_score {
	float median, p90;
};

struct train_scores {
	struct train_score forest, ratio; /* ratio: the family's usual one */
};

struct train_report {
	size_t launches, kernels, groups;
	struct train_scores siblings; /* where siblings of the kernel were known */
	struct train_scores alone;    /* where none were */
};

/* A model fitted to all rows; its errors are not known and are set to those of `like`, or to a
 * factor of two without it.  *ret_bytes is aligned to MODEL_ALIGN and the caller's to free. */
int train_fit(const struct predict_device *d, const struct train_rows *rows,
	const struct model_file *like, const struct train_options *o, struct model_file **ret_bytes,
	struct error *err);

/* As told above.  -ENODATA when there are too few launches, -EDOM when the model is no better than
 * the family's usual ratio (the report is filled then, too). */
int train_model(const struct predict_device *d, const struct predict_sample *samples, size_t n,
	const struct train_options *o, struct model_file **ret_bytes,
	struct train_report *ret_report, struct error *err);
