/*
 * Windows in which CUPTI times what events time as well, so that it shows what events measure
 * besides the work: under --gpu=predict.
 *
 * A window is open for some hundred timed launches, or a second of them; there is one when the
 * program begins and few later, ever farther apart.  In the trace each is a range of the
 * collector's, "calibration".  Between them CUPTI is ended, once a launch finds its stream idle:
 * until then it is there and records nothing.  No locks, no memory; which thread comes to the end
 * of a window closes it.
 */
#ifndef WEIR_HOOK_TIME_CALIBRATION_H
#define WEIR_HOOK_TIME_CALIBRATION_H

#include <stdbool.h>

/* Once CUPTI has started. */
void calibration_start(void);

/* A launch into this stream is about to be timed. */
void calibration_timed(void *stream, bool per_thread);

/* Then every launch is. */
bool calibration_is_open(void);

void calibration_forget(void); /* after a fork */

#endif
