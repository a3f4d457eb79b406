/* A recording that is running, found by a process that writes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the file begins as a trace does. */
bool running_is_trace(const char *path);

/* The trace that a process has mapped; 0, or an exit code after complaining. */
int running_trace_of(const char *pid, char *ret_path, size_t size);
