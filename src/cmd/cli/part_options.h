/*
 * --after, --before, --range, --steps and --steady: which part of a recording a reader reads.
 */
#pragma once

#include "cmd/cli/command.h"
#include "trace/trace.h"

/* From the options to trace_cut(): 0, or an exit code after complaining.  Standard error says how
 * much of `file` was cut, but for weir report, which says it itself. */
int part_options_cut(const struct options *o, struct trace *t, const char *file);
