/*
 * Notices a filter of system calls (seccomp) that may end the program for an unexpected call, or a
 * ban on reading the time-stamp counter.
 *
 * A filter from before the program's start allowed it to load libraries and is no concern. A filter
 * installed later fits only the program's own calls, so from then on the hook makes no system
 * calls.
 */
#pragma once

#include <stdbool.h>

#include "event/format.h"

/*
 * Whether a filter has come since the first time that any thread of this process, or of those
 * that it was forked from, asked.  One system call, and none once it has come.  The trace whose
 * header is given, which may be NULL, says so then.
 */
bool sandbox_is_closed(struct trace_header *h);

/* Whether reading the time-stamp counter is SIGSEGV in this thread. */
bool sandbox_hides_clock(void);
