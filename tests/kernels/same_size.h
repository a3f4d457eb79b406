/* The convolution that the tests of choices take. */
#ifndef WEIR_SAME_SIZE_H
#define WEIR_SAME_SIZE_H

#include "weir/kernels.h"

/* Filters of 3 x 3 over square images of BF16, which leave their size as it is. */
static inline struct weir_conv same_size(
	uint32_t pass, int64_t images, int64_t side, int64_t channels)
{
	return (struct weir_conv){ .size = sizeof(struct weir_conv),
		.type = WEIR_BF16,
		.pass = pass,
		.n = images,
		.h = side,
		.w = side,
		.c = channels,
		.k = channels,
		.r = 3,
		.s = 3,
		.stride_h = 1,
		.stride_w = 1,
		.pad_h = 1,
		.pad_w = 1,
		.dilation_h = 1,
		.dilation_w = 1,
		.groups = 1 };
}

#endif
