/*
 * Plain ways to tell a kernel's time, for comparison: what is shipped must be better than these.
 * They know what the predictors know, launch by launch.  One thread.
 */
#pragma once

#include "base/array.h"
#include "base/map.h"
#include "predict/predictor.h"

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
