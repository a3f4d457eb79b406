/*
 * The view (watch.h) as metrics in Prometheus' text format 0.0.4: names begin with weir_, units are
 * base units, shares are from 0 to 1.  A program is known by process, program and GPU; of more than
 * PROMETHEUS_PROGRAMS the rest is left out, and weir_programs_left_out says how many.  So a scrape
 * is bounded, whatever runs.
 */
#ifndef WEIR_MONITOR_PROMETHEUS_H
#define WEIR_MONITOR_PROMETHEUS_H

#include <stdio.h>

#include "monitor/watch.h"

#define PROMETHEUS_PROGRAMS 256u
#define PROMETHEUS_REGRESSIONS                                                                     \
	32u /* the slowest; how many there are is weir_regressions_firing                          \
	     */

/* Errors show in ferror() of the stream. */
void prometheus_put(FILE *out, const struct watch *w, const char *version);

#endif
