/*
 * WEIR=trace:FILE: each call becomes a line at the end of FILE, as it returns.  The file is
 * opened for each line, so that the program may close what it likes.
 */
#ifndef WEIR_HOOK_TRACE_TEXT_H
#define WEIR_HOOK_TRACE_TEXT_H

#include <stdbool.h>

/* Makes the file, mode 0600, when it is not there.  False: it can't be written. */
bool text_start(const char *path);

#endif
