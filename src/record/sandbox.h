/*
 * Programs that shut themselves in: with a filter of system calls (seccomp) that may end them for a
 * call which they do not expect of themselves, or without the right to read the time-stamp counter.
 *
 * A filter that was there when the program began let it load its libraries and is no concern.  One
 * that it installs later was made for what it does itself: from then on the hook does without.
 */
#ifndef WEIR_RECORD_SANDBOX_H
#define WEIR_RECORD_SANDBOX_H

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

#endif
