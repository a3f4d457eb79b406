/*
 * Streams that are capturing: what is launched there goes into a graph instead.  While there is one
 * in the process, launches ask the driver whether theirs is.
 */
#pragma once

#include <stdbool.h>

/* per_thread: stream 0 is the calling thread's own. */
bool stream_is_capturing(void *stream, int per_thread);
