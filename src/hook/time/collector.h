/*
 * A collector dates GPU activities, from CUPTI's records of all or from events around some
 * launches. It tells its listeners of each completed activity.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

/* After cuInit(), once a process; functions that are NULL have nothing to do. */
struct collector {
	const char *name;
	const char *(*start)(uint32_t rate);    /* one launch in so many; NULL, or why it can't */
	void (*collect)(void);                  /* what is through: a context may be about to end */
	void (*context_gone)(uint64_t context); /* what was begun there goes with it */
	void (*device_gone)(int device);
};
extern const struct collector cupti_collector, event_collector;

/*
 * Told of each activity, in no order, with its name as the collector has it; NULL at the end of
 * what came at once, when the answer is whether something in it was new: the next is then to come
 * soon.  One thread at a time; allocates nothing, locks nothing.
 */
typedef bool completion_fn(const struct gpu_activity *w, const char *name);

/* Before the collector starts.  False: there are too many. */
bool completions_listen(completion_fn *f);

bool completions_are_wanted(void);

/* By the collector. */
bool completions_publish(const struct gpu_activity *w, const char *name);

/* Nobody is told any more. */
void completions_stop(void);

/* When device times begin and what collects them: device_times.c. */
/* Before a call that may end a context: what has completed is collected. */
void device_times_collect(void);

/* Completed work is in the trace afterwards, also work that CUPTI would hand out later by itself.
 */
void device_times_hand_out(void);
