/*
 * The time, in nanoseconds, that events measure besides the work.
 *
 * It is learnt from launches that were timed both ways, apart for busy and idle streams. It depends
 * on how a launch is made, so each kernel has its own. A kernel never timed both ways has the usual
 * value.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

struct excess_value {
	uint32_t who; /* number of a kernel, and whether the stream was idle */
	int64_t ns;
};

struct excess {
	struct map kernels;
	ARRAY(struct excess_value) values;
	ARRAY(int64_t) of_kernel; /* by who; EXCESS_NONE: too few */
	int64_t usual[2];         /* busy, idle */
};

void excess_note(struct excess *x, struct map_key kernel, bool idle, int64_t ns);
void excess_settle(struct excess *x);
int64_t excess_of(const struct excess *x, struct map_key kernel, bool idle);
void excess_fini(struct excess *x);
