/* The second predictor: what a kernel's other shapes say about a new one. */
#pragma once

#include "predict/predictor.h"
#include "predict/tables.h"

/* The kernel's slot for launches of which so much is known (launch_known_cost()), or NULL. */
const struct kernel_slot *shape_slot(
	const struct predict *p, const struct predict_kernel *k, unsigned known_cost);

/* "linear", "bound", "nearest", "ratio", "power"; "none" before there are enough shapes. */
const char *fit_kind_word(enum fit_kind kind);
