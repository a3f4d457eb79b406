/*
 * A raw trace that only the command itself reads, and that is gone afterwards: for `weir
 * trace` and `weir stat`.
 */
#ifndef WEIR_CMD_SCRATCH_H
#define WEIR_CMD_SCRATCH_H

#include <limits.h>

#include "launch.h"

struct scratch {
	char directory[64];
	char path[PATH_MAX];
};

/* Makes one for the program of l, in memory where that can be.  0, or an exit code after
 * complaining. */
int scratch_make(struct scratch *s, struct launch *l, uint32_t control);
void scratch_remove(const struct scratch *s);

#endif
