/* Calls by who made them: rows of report.callers, from the stacks that were recorded. */
#pragma once

#include "model/report.h"

/* Loads the trace's stacks into r->stacks, and counts them.  0 or -errno. */
int callers_fill(struct report *r);
void callers_fini(struct report *r);
