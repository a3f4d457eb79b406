/* A kernel's own model: fitted to the shapes of its slot, and evaluated.  See predictor_shape.c. */
#pragma once

#include <stdbool.h>

#include "predict/tables.h"

#define FIT_FEWEST 4 /* shapes that make a model */

/* Chooses and fits the slot's model anew; there are at least FIT_FEWEST shapes. */
void shape_refit(struct kernel_slot *slot);

/* Stores how far off the fit is at a shape whose time is new. */
void shape_set_residual(struct kernel_slot *slot, size_t at);

/* The time of a shape; false when none can be predicted.  No kernel is shorter than least_ns.
 * `slot` may change meanwhile: the caller looks at its sequence afterwards. */
bool fit_predict(const struct shape_fit *fit, const struct kernel_slot *slot, uint32_t shapes,
	const struct kernel_shape *shape, float least_ns, float *ret_ns);

/* An argument as a number of things; 0 for what can hardly be one. */
float shape_scalar(uint64_t arg);
