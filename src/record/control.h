/*
 * Switches what a running recording keeps, through one word of the header that its processes have
 * mapped. `weir ctl` and `weir record` do so from another process, and libweirapi from the recorded
 * one. A recording with FEATURE_ENDS also ends itself here.
 */
#pragma once

#include "event/format.h"

enum control_result {
	CONTROL_DONE,
	CONTROL_NO_ROOM,  /* the recording has ended for want of room, or its file was cut off */
	CONTROL_FINISHED, /* its processes have ended */
	CONTROL_STOPPED,  /* it was stopped before */
	CONTROL_UNKNOWN,  /* nothing that a recording can be switched to */
};

/* what: on, args, no-args, the name of a level (event/level.h), or stop, which ends the recording.
 */
/* Whether nothing is recorded with that control word; its other bits say how. */
static inline bool control_is_off(uint32_t control)
{
	return !(control & ~CONTROL_MORE);
}

/* A recording with FEATURE_ENDS ends so far below its limit: what threads have taken is filled. */
#define CONTROL_AHEAD (2u << 20)

/* For good: no call is recorded and no chunk begun any more, while the program goes on.  Any thread
 * of any process may call it; the first reason stays. */
void control_stop(struct trace_header *h, enum trace_stop why);

enum control_result control_switch(struct trace_header *h, const char *what);
