/*
 * Divides the time of a recording into equal intervals and computes the covered part of each. Times
 * are nanoseconds since the first interval began. Pure.
 */
#pragma once

#include <stdint.h>

#include "model/report.h"

#define BUSY_POINTS 120u /* twice the columns of the line that a report has of it */

/* When an interval begins, of a whole of `wall_ns`; and which one a moment is in. */
uint64_t busy_begin(uint64_t wall_ns, unsigned point);
unsigned busy_point(uint64_t wall_ns, uint64_t ns);

/* Adds what lies between two moments to the intervals. */
void busy_spread(uint64_t ns[BUSY_POINTS], uint64_t wall_ns, uint64_t from, uint64_t to);

/* How long any device was busy in each interval: without the idle gaps that the analysis found. */
void busy_fill(const struct report *r, uint64_t ns[BUSY_POINTS]);
