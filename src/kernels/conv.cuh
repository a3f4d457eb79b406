/* The arguments of a kernel of convolutions.  The host fills it and passes it by value.
 *
 * A convolution of NHWC is a product: D[pixel, column] = epilogue(sum over taps and channels of
 * A[pixel that the tap reads, channel] * B[column, tap, channel]).  Forward, A is the input and B the filters.  For the
 * gradient of the input, A is the gradient of the output, and the taps of the filters come in reverse order. */
#pragma once

#include "gemm.cuh"

/* One dimension of the image.  With tap t, pixel x of D reads pixel (x * times + first + t * step) / over of A.  It reads
 * 0 where that is outside of A or no whole number. */
struct conv_axis {
	int times, first, step, over;
	int taps, d, a; /* of the filter; pixels of D and of A */
};

struct conv_args {
	long long rows;                 /* pixels of D in all images */
	int columns, channels, groups; /* columns and channels of a group */
	struct conv_axis y, x;
	long long b_column, b_tap, b_channel, b_group; /* elements from one to the next */
	const void *a, *b, *bias, *residual;           /* b: where tap 0 is */
	void *d;
	int epilogue;
	const float *b_scale; /* of each column, for INT8, whose bias is FP32 */
};

struct conv_tiled_args {
	struct tiled_args product; /* its k is 64 for each tap and each 64 channels, or a part of them */
	struct conv_axis y, x;
	int channels;
	int first_tap, tap_step; /* of B */
	/* For the gradient of filters: the pixels are in so many parts, of k each, whose sums stand one behind the other. */
	int parts;
	float *sums;
};

/* Packs what has fewer than 8 channels for the copy engine.  Pixels get 8 channels, and images a frame of 0.  A row of a
 * filter gets 8 pixels, so that it is 64 adjacent elements, as 8 pixels of an image are. */
struct conv_pack_args {
	const void *a, *b;
	void *images, *filters;
	int c, h, w, pad_h, pad_w; /* of A */
	int high, wide;	           /* pixels of a packed image */
	int taps;	           /* of a filter's row */
	long long pixels, rows;    /* of all packed images, of all filters */
};

/* Adds up the parts. */
struct conv_sum_args {
	const float *sums;
	void *d;
	long long elements; /* of D */
	int parts;
};
