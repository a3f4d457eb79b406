/* Computes from a launch its shape and the least time that it can take. */
#pragma once

#include "predict/predictor.h"

/* Geometry, occupancy and bound; false when the device refuses the launch. */
bool question_shape(struct predict_question *q);

/* Into the answer, for a launch that question_shape() took. */
void question_fit(const struct predict_question *q, struct predict_answer *a);

/* The launch's FLOPs and bytes where they are known and make sense; false where not. */
bool launch_bytes(const struct predict_launch *l, double *ret_bytes);
bool launch_flops(const struct predict_launch *l, double *ret_flops);

/* How much is known: 0 neither, 1 one of the two, 2 both. */
unsigned launch_known_cost(const struct predict_launch *l);
