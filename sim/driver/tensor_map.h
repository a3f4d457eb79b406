/*
 * The simulated driver's words in the 128 bytes of a CUtensorMap, so that a test can see what a
 * program has described.  The real driver's content is its own.
 */
#pragma once

#include <stdint.h>

struct sim_tensor_map {
	uint64_t at;
	uint64_t size[5], pitch[4]; /* elements, bytes */
	uint16_t box[5], step[5];
	uint8_t rank, type, interleave, swizzle, promotion, fill;
	/* For im2col, whose box is channels and pixels: the corners, without the channels. */
	int16_t first[3], last[3];
};
