/*
 * A temporary file that only the command and its program read: the raw trace of `weir trace` and
 * `weir stat`, or tables of `weir record`.
 *
 * It lies in a directory of its own, weir-scratch-XXXXXX, on which its command holds a lock. The
 * next command of the same user removes the remains of a killed one.
 */
#pragma once

#include <limits.h>

#include "cmd/cli/child.h"

struct scratch {
	char directory[PATH_MAX]; /* "": none */
	char path[PATH_MAX + 16]; /* of the file, which the caller makes */
	int lock;
};

/* Makes the directory in the first of these places where that can be: 0 or -errno. */
int scratch_begin(struct scratch *s, const char *const *places, int count, const char *name);
void scratch_remove(struct scratch *s);

/* Makes a trace for the program of l, in memory where that can be.  0, or an exit code after
 * complaining. */
int scratch_make(struct scratch *s, struct child *l, uint32_t control);
