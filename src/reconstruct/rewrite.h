/* A recording of `weir record --gpu=predict` gets its timeline: for the command, when it ends. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct rewritten {
	uint64_t measured, like, guessed; /* see struct reconstruction */
	uint64_t activities;              /* 0: nothing was measured, and the file is as it was */
	uint64_t uncertainty_ns;          /* median of them */
};

/* Reads the trace, reconstructs its GPU activities and writes it anew, packed.  0 or -errno; then
 * the file is as it was. */
int reconstruct_file(const char *path, struct rewritten *ret_r, struct error *err);
