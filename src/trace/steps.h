/*
 * Steps of a recording: what a process launches until a call waits for it, counted from 1; of the
 * process that launches most.  An iteration of a loop that synchronises once is one.
 */
#ifndef WEIR_TRACE_STEPS_H
#define WEIR_TRACE_STEPS_H

#include "trace/trace.h"

struct steps {
	ARRAY(uint64_t) end; /* ticks, ascending: when each had been waited for */
};

/* 0 or -errno of the machine. */
int steps_load(const struct trace *t, struct steps *ret_steps);
void steps_fini(struct steps *s);

/*
 * How many at the begin are warm-up, by their lengths: as many as have to be left out for the mean
 * of the rest to be known best (MSER: White, Simulation 69(6), 1997), half of them at most.
 */
size_t steps_warm_up(const uint64_t *length, size_t count);

#endif
