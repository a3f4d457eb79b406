/*
 * Compares the times predicted at launches with those on the devices, by predictor and by kernel.
 * Internal to src/model.
 */
#pragma once

#include "model/report.h"

struct prediction_row {
	const char *name; /* of a tier, or a kernel, demangled */
	uint64_t count;   /* launches that were predicted and ran; rows have at least one */
	double error;     /* median |predicted / measured - 1| */
	double error90;   /* its 90th percentile */
	double covered;   /* share that took no longer than the predicted t90 */
	uint64_t measured_ns, predicted_ns; /* medians */
};

struct prediction_rows {
	ARRAY(struct prediction_row) rows;
};

struct prediction {
	uint64_t launches;              /* that got an answer */
	uint64_t measured;              /* of them: those whose time on a device is known */
	uint64_t contended;             /* of measured */
	uint64_t unpredicted;           /* launches that got no answer */
	struct prediction_row all;      /* without a name; valid with measured */
	struct prediction_rows tiers;   /* best first */
	struct prediction_rows kernels; /* most time first */
	struct prediction_row graphs;   /* whole launches of them; a count of 0: none */
	void *memory;                   /* of the names */
};

/* r->prediction, when r->predicted launches say so.  0 or -errno. */
int prediction_fill(struct report *r);
void prediction_free(struct prediction *p);
