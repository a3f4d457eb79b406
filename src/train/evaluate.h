/*
 * Measures predictions in these splits:
 *
 *	prequential   each launch is predicted, then learnt, in order, as in use
 *	kernel        kernels that were never seen, siblings held out with them
 *	sibling       kernels that were never seen, but siblings were; others are not asked
 *	family        families that were never seen
 *	application   applications that were never seen; their kernels may be known from others
 *	extrapolation the larger three tenths from the smaller seven, by the bound
 *	random        rows at random; too good, since neighbours of each row are known
 *
 * In all but the first, a model is trained anew on the rest.
 */
#pragma once

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "predict/model.h"
#include "predict/predictor.h"
#include "train/fit.h"

/* Plain predictors, to hold predictions against. */
enum baseline {
	BASELINE_LAST,    /* what the launch took last, else the kernel */
	BASELINE_MEDIAN,  /* median of the kernel's times */
	BASELINE_RATIO,   /* bound times the kernel's median ratio to it */
	BASELINE_NEAREST, /* the kernel's nearest shape, scaled by the bounds */
	BASELINES
};

#define BASELINE_SPAN 256 /* newest times and shapes that are looked at, of each kernel */

struct baseline_shape {
	uint64_t key;
	float t_ns, bound_ns, place[4 + PREDICT_ARGS];
};

struct baseline_kernel {
	uint32_t n, shapes;
	float last_ns;
	float t_ns[BASELINE_SPAN], ratio[BASELINE_SPAN];
	struct baseline_shape shape[BASELINE_SPAN];
};

struct baselines {
	struct map kernels, keys;
	ARRAY(struct baseline_kernel *) kernel;
	ARRAY(float) last; /* by key */
	/* ratios to the bound of kernels that are new, by family and known cost; of 0: all */
	ARRAY(float) ratios[FAMILIES][3];
};

/* For a kernel that never ran all say the same: the bound times its family's usual ratio, else that
 * of all.  NAN when there is nothing to go by. */
void baseline_ask(const struct baselines *b, const struct predict_question *q,
	float ret_ns[static BASELINES]);

void baseline_learn(struct baselines *b, const struct predict_question *q, double measured_ns);

void baseline_fini(struct baselines *b);

enum eval_split {
	EVAL_PREQUENTIAL,
	EVAL_KERNEL,
	EVAL_SIBLING,
	EVAL_FAMILY,
	EVAL_APPLICATION,
	EVAL_EXTRAPOLATION,
	EVAL_RANDOM,
	EVAL_SPLITS
};

const char *eval_split_word(enum eval_split split);
const char *eval_split_what(enum eval_split split);

/* One launch, as it was predicted by each and as it was. */
struct eval_point {
	float measured_ns, t50_ns, t90_ns, confidence;
	float baseline_ns[BASELINES]; /* NAN: could not tell */
	enum predict_tier tier;
	bool class_only;
	enum predict_family family;
	unsigned known_cost;
	uint32_t shapes; /* of the kernel that were known, at most SHAPES */
};

typedef ARRAY(struct eval_point) eval_points;

/* The predictor, for eval_measure(): 0 is the chain, then the baselines. */
#define EVAL_PREDICTORS (1 + BASELINES)

/* Launches that wait together, all at once, for a device that runs one after the other: shortest
 * first has the least mean time from there to the end of each.  The regret is the mean by predicted
 * times over the mean by true ones, less 1; of several such windows, the mean. Launches that fill
 * no window are left out, unless there is no other; of predicted times that are alike, the launch
 * that was there first runs first. */
#define EVAL_WINDOW 64

/* Over those points that a predictor could predict.  Shares are from 0 to 1. */
struct eval_cell {
	size_t n;
	double median, p90; /* of |predicted / measured - 1| */
	double log_median;  /* of |ln(predicted / measured)| */
	double weighted;    /* sum of |predicted - measured| over the sum of measured */
	double tau;         /* Kendall's, of the order */
	double regret;      /* of shortest-first by these times: see EVAL_WINDOW */
	bool has_t90;       /* the chain only: */
	double coverage;    /* share of measured <= t90 */
	double pinball;     /* mean loss of t90 as a 0.9 quantile, over the mean of measured */
};

/* The points of one tier (PREDICT_TIERS: of all), of times in [from, below), and of which at least
 * as much was known; of one family, or of all but one. */
struct eval_filter {
	enum predict_tier tier;
	float from_ns, below_ns;
	unsigned known_cost;
	enum predict_family family; /* FAMILY_UNKNOWN: all */
	bool but_family;
	uint32_t shapes; /* at least so many of the kernel's were known */
};

void eval_measure(const eval_points *points, struct eval_filter filter, int predictor,
	struct eval_cell *ret_cell);

/* model may be NULL in the prequential split.  -ENODATA when the split leaves nothing to learn or
 * to ask, with the reason; -EIO. */
int eval_run(enum eval_split split, const struct predict_device *d,
	const struct predict_sample *samples, size_t n, const struct predict_model *model,
	struct fit_progress *progress, eval_points *ret_points, struct error *err);
