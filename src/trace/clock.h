/*
 * Converts ticks of a trace's clock to nanoseconds by a line through the earliest and latest clock
 * pair. Pure. Pairs come in any order after the header's start, and pairs of other time namespaces
 * are left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

struct clock_fit {
	struct clock_pair first;
	struct clock_pair last;
	struct clock_pair origin; /* the header's start */
	double slope;             /* nanoseconds a tick */
	bool known;               /* false: slope is an assumption, 1 */
	bool any;
};

void clock_fit_add(struct clock_fit *fit, const struct clock_pair *pair);

/* After the last pair. */
void clock_fit_finish(
	struct clock_fit *fit, enum trace_clock clock, const struct clock_pair *origin);

/* CLOCK_MONOTONIC at `ticks`, 0 at least. */
uint64_t clock_fit_ns(const struct clock_fit *fit, uint64_t ticks);

/* How far the line passes from a pair; 0 for a pair that is not there. */
uint64_t clock_fit_error_ns(const struct clock_fit *fit, const struct clock_pair *pair);

/* The length of a duration. */
uint64_t clock_fit_span_ns(const struct clock_fit *fit, uint64_t ticks);
