/*
 * The FLOPs and bytes of samples, if the operators around their calls show them. Internal to
 * samples.c.
 */
#pragma once

#include "model/samples.h"

/* Samples stay where they are.  0 or -errno; damaged chunks are passed over. */
int samples_cost(const struct trace *t, const struct meta *m, struct launch_samples *all);
