/*
 * Reads a part of a recording as if it were all.
 *
 * After trace_cut() chooses parts of the time, trace_load() gives only their content, without the
 * time between them. Every reader then sees a shorter recording, whose header begins with the first
 * part and ends with the last. Calls, ranges and GPU activities belong to the part in which they
 * begin, and ranges around a part are cut to it. If launches are given (struct trace_cut), a
 * launch's activities belong to its part and lengthen it. Names always stay.
 *
 * A recording that already has parts (FEATURE_CAPTURE) is also reduced to them by trace_cut(). Its
 * activities belong to the part that launched them and lengthen it.
 */
#pragma once

#include "trace/trace.h"

struct trace_cut {
	uint64_t after_ns, before_ns; /* since the recording began; before_ns 0: until its end */
	const char *range;            /* while a range of that name is open; NULL: not so */
	/* With a range or steps: by process and correlation.  Then the activities are those that
	 * calls in the part launched, whenever they run; others belong where they begin. */
	const struct launch_time *launched;
	size_t launched_count;
	bool steps; /* those with these numbers (steps.h) … */
	uint32_t first_step, last_step;
	bool steady; /* … or without the steps at the begin that differ */
};

/* Before anything is loaded by more than one thread.  0 or -errno, then with a sentence: -ENODATA
 * where nothing is there of what is asked for. */
int trace_cut(struct trace *t, const struct trace_cut *cut, struct error *err);

/* Ticks as trace_load() gives them, of ticks as they were recorded. */
uint64_t part_ticks(const struct trace *t, uint64_t ticks);

/* Whether an activity, as it was recorded, is in what trace_load() gives. */
bool part_has(const struct trace *t, uint32_t process, const struct gpu_activity *w);

/* Internal to src/trace: the call that asked for an activity; NULL: it is not told. */
const struct launch_time *part_launch(
	const struct trace *t, uint32_t process, uint64_t correlation);

/* Internal to src/trace: of what was loaded, what is in a part, in the time of the parts. */
void part_apply(const struct trace *t, struct chunk_buf *buf);
