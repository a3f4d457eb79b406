/*
 * Writes the view (watch.h) as metrics in Prometheus' text format 0.0.4. Names begin with weir_,
 * units are base units, and shares are from 0 to 1. A scrape has at most PROMETHEUS_PROGRAMS
 * programs, and weir_programs_left_out counts the rest.
 */
#pragma once

#include <stdio.h>

#include "monitor/watch.h"

#define PROMETHEUS_PROGRAMS 256u
#define PROMETHEUS_REGRESSIONS                                                                     \
	32u /* the slowest; how many there are is weir_regressions_firing                          \
	     */

/* Errors show in ferror() of the stream. */
void prometheus_put(FILE *out, const struct watch *w, const char *version);
