/* The third predictor: what siblings predict of a kernel that did not run yet. */
#pragma once

#include "predict/predictor.h"

/* log2(time / bound) by the siblings alone, and how like the nearest of their shapes is (0 to 1);
 * false when they say nothing. */
bool sibling_ratio(const struct predict *p, const struct predict_question *q, float *ret_ratio,
	float *ret_nearest);
