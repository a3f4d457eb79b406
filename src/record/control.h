/*
 * Switching what a running recording keeps, by one word of the header that its processes have
 * mapped: for `weir ctl`, from another process, and for libweirapi, from the recorded one.
 */
#ifndef WEIR_RECORD_CONTROL_H
#define WEIR_RECORD_CONTROL_H

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
enum control_result control_switch(struct trace_header *h, const char *what);

#endif
