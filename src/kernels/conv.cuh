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
	int first_tap, row_step, tap_step; /* of B: from a row of taps to the next, and within it */
	/* For the gradient of filters: the pixels are in so many parts, of k each, whose sums stand one behind the other. */
	int parts;
	float *sums;
};

enum { CONV_PHASES = 4 };

/* The gradient of the input at a stride above 1 is as many convolutions as `over` has pixels.  Each is of the pixels of D that
 * are so far apart, which all read the same taps, and its times and over are 1. */
struct conv_phase {
	struct tensor_map a, d, residual;
	struct conv_axis y, x;
	int top, left; /* its first pixel of D */
	int first_tap;
	int channel; /* the first one.  A phase without a tap begins behind the last, and so multiplies one block of 0 */
	int blocks;  /* of K */
	int tiles;   /* along its pixels */
};

struct conv_phased_args {
	struct conv_tiled_args conv;
	int phases;
	struct conv_phase phase[CONV_PHASES];
};

#ifndef __CUDACC_RTC__
/* How many taps are from one that a pixel reads to the next. */
static inline int conv_tap_step(const struct conv_axis *a)
{
	int step = 1;
	while (step * a->step % a->over)
		step++;
	return step;
}

/* The phase of an axis that begins at pixel `first` of D.  Also its first tap. */
static inline struct conv_axis conv_phase_axis(const struct conv_axis *a, int first, int *ret_tap)
{
	const int each = conv_tap_step(a);
	int tap = 0;
	while (tap < each && (first + a->first + tap * a->step) % a->over)
		tap++;
	struct conv_axis p = *a;
	p.over = 1;
	p.d = (a->d - first + a->over - 1) / a->over;
	p.first = (first + a->first + tap * a->step) / a->over;
	p.step = each * a->step / a->over;
	p.taps = tap < each && tap < a->taps ? (a->taps - tap + each - 1) / each : 0;
	*ret_tap = tap;
	return p;
}

/* Phases without their maps, those of most taps first, and the steps of taps.  0: they are too many. */
static inline int conv_phases(struct conv_tiled_args *c, struct conv_phase *ret)
{
	const int blocks = (c->channels + 63) / 64;
	int n = 0;
	if (c->y.over > CONV_PHASES || c->x.over > CONV_PHASES || c->y.over * c->x.over > CONV_PHASES)
		return 0;
	for (int top = 0; top < c->y.over && top < c->y.d; top++)
		for (int left = 0; left < c->x.over && left < c->x.d; left++) {
			struct conv_phase p = {};
			int row, column, at = n++;
			p.top = top;
			p.left = left;
			p.y = conv_phase_axis(&c->y, top, &row);
			p.x = conv_phase_axis(&c->x, left, &column);
			p.blocks = p.y.taps * p.x.taps * blocks;
			p.first_tap = c->first_tap + row * c->row_step + column * c->tap_step;
			if (!p.blocks) {
				p.y.taps = p.x.taps = p.blocks = 1;
				p.channel = blocks * 64;
			}
			for (; at > 0 && ret[at - 1].blocks < p.blocks; at--)
				ret[at] = ret[at - 1];
			ret[at] = p;
		}
	c->row_step *= conv_tap_step(&c->y);
	c->tap_step *= conv_tap_step(&c->x);
	return n;
}

/* Sets how many tiles of bm pixels each phase has.  All of them. */
static inline int conv_phase_tiles(struct conv_phase *phases, int n, int images, int bm)
{
	int all = 0;
	for (int i = 0; i < n; i++) {
		phases[i].tiles = tile_count(images * phases[i].y.d * phases[i].x.d, bm);
		all += phases[i].tiles;
	}
	return all;
}
#endif

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
