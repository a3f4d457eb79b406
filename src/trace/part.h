/*
 * A part of a recording, read as if it were all.
 *
 * trace_cut() chooses parts of the time, and from then on trace_load() gives what is in them alone,
 * with the time between them taken out: everything that reads a trace sees a shorter recording,
 * whose header begins with the first part and ends with the last.  Calls, ranges and GPU activities
 * that begin in a part are in it, and ranges around a whole part are cut to it; where launches are
 * told (struct trace_cut), the activities of those in a part, which it is made long enough for.
 * Names stay, whenever they came.
 *
 * A recording that has parts already (FEATURE_CAPTURE) is made to be those by trace_cut() as well:
 * GPU activities there belong to the part in which they were launched, and make it as long as they
 * last.
 */
#ifndef WEIR_TRACE_PART_H
#define WEIR_TRACE_PART_H

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

#endif
