/*
 * Finds GPU activities that were launched while recording was switched off.
 *
 * CUPTI continues then, because no code of Weir runs at the switch. An activity belongs to that
 * time if no recorded call launched it and recording was off between its neighbours. Its neighbours
 * are the calls that got the correlation numbers before and after its own.
 */
#pragma once

#include "trace/trace.h"

/* Takes them out of t, before trace_cut() and before anything is loaded by several threads.  Costs
 * nothing where recording was on all the time.  0 or -errno, then with a sentence. */
int off_activities_leave_out(struct trace *t, struct error *err);
