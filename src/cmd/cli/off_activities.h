/*
 * GPU activities of the time in which recording was switched off.
 *
 * CUPTI goes on then, since no code of Weir runs when somebody switches.  An activity is of that
 * time when no recorded call launched it, and recording was off at a moment between the calls that
 * got the numbers before and after its own.  So one that waited is found by when it was launched.
 */
#ifndef WEIR_CMD_CLI_OFF_ACTIVITIES_H
#define WEIR_CMD_CLI_OFF_ACTIVITIES_H

#include "trace/trace.h"

/* Takes them out of t, before trace_cut() and before anything is loaded by several threads.  Costs
 * nothing where recording was on all the time.  0 or -errno, then with a sentence. */
int off_activities_leave_out(struct trace *t, struct error *err);

#endif
