/*
 * CUDA arrays: pitched device memory with a format.  Texture fetches do not exist here, so
 * the layout is plain rows and slices.
 */
#pragma once

#include "driver/sim.h"

struct array {
	struct obj obj;
	struct range *range;
	size_t row_bytes, pitch;     /* of a row: what it holds, and how far it is to the next */
	size_t width, height, depth; /* elements, rows and slices, at least 1 row and slice */
	size_t asked_height, asked_depth;
	int format;
	unsigned channels, flags;
};

void arrays_free(struct context *ctx);
