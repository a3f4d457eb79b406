/*
 * Leaves out GPU activities that do not belong to a recording, such as those that CUPTI reports
 * although recording was off. trace_load() then skips them. cmd/cli/part_options.c finds them by
 * joining activities to calls.
 */
#pragma once

#include "trace/trace.h"

/* One more activity with that number; before anything is loaded by several threads, and to be
 * followed by activity_filter_finish(). */
void activity_filter_add(struct trace *t, uint32_t process, uint64_t correlation);
void activity_filter_finish(struct trace *t);

/* Internal to src/trace: takes them out of what was loaded. */
void activity_filter_apply(const struct trace *t, struct chunk_buf *buf);
