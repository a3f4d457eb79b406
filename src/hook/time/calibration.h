/*
 * Under --gpu=predict, CUPTI times the same launches as events in a few windows. The difference
 * shows the time that events add to the work.
 *
 * A window lasts for some hundred timed launches or a second. One opens at the beginning and a few
 * later, ever farther apart. Each is a range "calibration" in the trace. Between windows CUPTI
 * records nothing and is ended once a launch finds its stream idle. There are no locks and no
 * memory. Whichever thread reaches the end of a window closes it.
 */
#pragma once

#include <stdbool.h>

/* Once CUPTI has started. */
void calibration_start(void);

/* A launch into this stream is about to be timed. */
void calibration_timed(void *stream, bool per_thread);

/* Then every launch is. */
bool calibration_is_open(void);

void calibration_forget(void); /* after a fork */
