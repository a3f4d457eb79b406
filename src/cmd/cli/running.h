/* A recording that is running, found by a process that writes it. */
#pragma once

#include <stddef.h>

/* The trace that a process has mapped; 0, or an exit code after complaining. */
int running_trace_of(const char *pid, char *ret_path, size_t size);
