/*
 * The FLOPs and bytes of samples, if the operators around their calls show them. Internal to
 * samples.c.
 */
#ifndef WEIR_MODEL_SAMPLES_COST_H
#define WEIR_MODEL_SAMPLES_COST_H

#include "model/samples.h"

/* Samples stay where they are.  0 or -errno; damaged chunks are passed over. */
int samples_cost(const struct trace *t, const struct meta *m, struct launch_samples *all);

#endif
