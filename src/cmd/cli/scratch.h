/*
 * A file that only the command itself and its program read, and that is gone afterwards: the raw
 * trace of `weir trace` and `weir stat`, tables that `weir record` makes of a trace.
 *
 * It lies in a directory of its own, weir-scratch-XXXXXX, which its command holds a lock on.  What
 * a command has left that was killed is removed by the next one of the same user.
 */
#ifndef WEIR_CMD_CLI_SCRATCH_H
#define WEIR_CMD_CLI_SCRATCH_H

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

#endif
