/*
 * Which clock a trace has, and readings of it beside the system's.  Any thread may call these; none
 * makes a system call, but clock_best(), which reads what the kernel trusts.
 */
#pragma once

#include "event/format.h"

/* The best that this machine has. */
enum trace_clock clock_best(void);

/* Reads the trace's clock, CLOCK_MONOTONIC and CLOCK_REALTIME as close together as it can. */
struct clock_pair clock_pair_now(enum trace_clock clock);
