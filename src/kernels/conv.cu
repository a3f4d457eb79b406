/* Convolutions of any shape, stride, dilation, group and alignment on any GPU: the plain forms.  Sums are FP32, in the
 * order of taps and channels, and for the gradient of filters in the order of pixels.  T is the type of the operands, O that
 * of the result. */
#pragma once

#include "conv.cuh"
#include "gemm.cu"

/* A pixel of D: where its image begins in A, in pixels, and its place. */
struct conv_pixel {
	long long image;
	int y, x;
};

static __device__ conv_pixel pixel_at(const conv_args &g, long long row)
{
	const unsigned line = (unsigned)row / (unsigned)g.x.d, image = line / (unsigned)g.y.d;
	return {(long long)image * g.y.a * g.x.a, (int)(line - image * g.y.d), (int)((unsigned)row - line * g.x.d)};
}

/* -1: none. */
static __device__ int source_of(const conv_axis &s, int at, int tap)
{
	const int there = at * s.times + s.first + tap * s.step;
	const int pixel = s.over == 1 ? there : there / s.over;
	return there >= 0 && pixel < s.a && pixel * s.over == there ? pixel : -1;
}

/* The pixel of A that a tap of a pixel of D reads, or -1. */
static __device__ long long source_of(const conv_args &g, const conv_pixel &p, int tap)
{
	const int line = tap / g.x.taps;
	const int y = source_of(g.y, p.y, line), x = source_of(g.x, p.x, tap - line * g.x.taps);
	return y < 0 || x < 0 ? -1 : p.image + (long long)y * g.x.a + x;
}

/* The place to which plain_put() writes the columns of a group. */
template <typename T, typename O> __device__ gemm_args result_of(const conv_args &g, int group, int columns)
{
	const long long first = (long long)group * g.columns, pitch = (long long)g.groups * g.columns;
	gemm_args r = {};
	r.m = g.rows;
	r.n = columns;
	if (sizeof(T) == 1) {
		r.bias = (const float *)g.bias + first;
		r.b_scale = g.b_scale + first;
	} else {
		r.bias = (const T *)g.bias + first;
		r.residual = (const T *)g.residual + first;
	}
	r.d = (O *)g.d + first;
	r.d_row = r.residual_row = pitch;
	r.epilogue = g.epilogue;
	return r;
}

/* A block of 256 threads takes 64 pixels x 64 columns of a group, and each thread 4 x 4 of that. */
template <typename T, typename O = T> __device__ void conv_plain(const conv_args &g)
{
	typedef typename sum_of<T>::type S;
	BLOCK_SHARED_ARRAY(S, a);
	BLOCK_SHARED_ARRAY(S, b);
	const int t = (int)threadIdx.x, row = t / 16 * 4, column = t % 16 * 4;
	const int all = g.y.taps * g.x.taps * g.channels, pitch = g.groups * g.channels;
	const long long across = (g.columns + PLAIN_TILE - 1) / PLAIN_TILE, down = (g.rows + PLAIN_TILE - 1) / PLAIN_TILE;
	for (long long tile = blockIdx.x; tile < across * down * g.groups; tile += gridDim.x) {
		const int group = (int)(tile / (across * down));
		const long long m0 = tile / across % down * PLAIN_TILE;
		const int n0 = (int)(tile % across) * PLAIN_TILE;
		const T *const from = (const T *)g.a + group * g.channels, *const filters = (const T *)g.b + group * g.b_group;
		const gemm_args to = result_of<T, O>(g, group, g.columns);
		conv_pixel pixel[4]; /* those whose channels this thread reads */
		for (int i = 0; i < 4; i++)
			pixel[i] = pixel_at(g, m0 + t / PLAIN_K + i * PLAIN_K);
		S sum[4][4] = {};
		for (int k0 = 0; k0 < all; k0 += PLAIN_K) {
			const int k = k0 + t % PLAIN_K, tap = k / g.channels;
			for (int i = 0; i < 4; i++) {
				const int r = t / PLAIN_K + i * PLAIN_K;
				const long long at = k < all && m0 + r < g.rows ? source_of(g, pixel[i], tap) : -1;
				a[t % PLAIN_K][r] = at < 0 ? 0 : T::get(from[at * pitch + k - tap * g.channels]);
			}
			/* Neighbours in a warp read what is adjacent in memory. */
			for (int i = t; i < PLAIN_TILE * PLAIN_K; i += 256) {
				const int kb = g.b_channel == 1 ? i % PLAIN_K : i / PLAIN_TILE;
				const int rb = g.b_channel == 1 ? i / PLAIN_K : i % PLAIN_TILE;
				const int of = (k0 + kb) / g.channels, channel = k0 + kb - of * g.channels;
				b[kb][rb] = k0 + kb < all && n0 + rb < g.columns
						    ? T::get(filters[(n0 + rb) * g.b_column + of * g.b_tap +
								     channel * g.b_channel])
						    : 0;
			}
			__syncthreads();
			for (int l = 0; l < PLAIN_K; l++)
				for (int i = 0; i < 4; i++)
					for (int j = 0; j < 4; j++)
						sum[i][j] += a[l][row + i] * b[l][column + j];
			__syncthreads();
		}
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++)
				plain_put<T, O>(to, 0, m0 + row + i, n0 + column + j, (float)sum[i][j]);
	}
}

/* A thread takes an element of D, and its neighbours the next columns: for groups of few columns, as those of depthwise
 * convolutions. */
template <typename T, typename O = T> __device__ void conv_direct(const conv_args &g)
{
	const int columns = g.groups * g.columns, pitch = g.groups * g.channels;
	const gemm_args to = result_of<T, O>(g, 0, columns);
	for (long long e = blockIdx.x * 256ll + threadIdx.x; e < g.rows * columns; e += gridDim.x * 256ll) {
		const long long row = e / columns;
		const int column = (int)(e - row * columns), group = column / g.columns;
		const conv_pixel pixel = pixel_at(g, row);
		const T *const from = (const T *)g.a + group * g.channels;
		const T *const filter = (const T *)g.b + group * g.b_group + (column - group * g.columns) * g.b_column;
		typename sum_of<T>::type sum = 0;
		for (int tap = 0; tap < g.y.taps * g.x.taps; tap++) {
			const long long at = source_of(g, pixel, tap);
			for (int c = 0; at >= 0 && c < g.channels; c++)
				sum += T::get(from[at * pitch + c]) * T::get(filter[tap * g.b_tap + c * g.b_channel]);
		}
		plain_put<T, O>(to, 0, row, column, (float)sum);
	}
}

/* The gradient of the filters: D[column, tap, channel] = sum over pixels of B[pixel, column] * A[pixel that the tap
 * reads, channel], where A is the input and B the gradient of the output.  Tiles are as in conv_plain(). */
template <typename T> __device__ void conv_filters(const conv_args &g)
{
	BLOCK_SHARED_ARRAY(float, a);
	BLOCK_SHARED_ARRAY(float, b);
	const int t = (int)threadIdx.x, row = t / 16 * 4, column = t % 16 * 4;
	const int all = g.y.taps * g.x.taps * g.channels;
	const long long across = (all + PLAIN_TILE - 1) / PLAIN_TILE, down = (g.columns + PLAIN_TILE - 1) / PLAIN_TILE;
	for (long long tile = blockIdx.x; tile < across * down * g.groups; tile += gridDim.x) {
		const int group = (int)(tile / (across * down));
		const int m0 = (int)(tile / across % down) * PLAIN_TILE, n0 = (int)(tile % across) * PLAIN_TILE;
		const int r = t % PLAIN_TILE, tap = (n0 + r) / g.channels, channel = n0 + r - tap * g.channels;
		const T *const from = (const T *)g.a + group * g.channels + channel;
		const T *const gradient = (const T *)g.b + group * g.columns + m0 + r;
		float sum[4][4] = {};
		for (long long p0 = 0; p0 < g.rows; p0 += PLAIN_K) {
			for (int i = t / PLAIN_TILE; i < PLAIN_K; i += 256 / PLAIN_TILE) {
				const bool inside = p0 + i < g.rows;
				const long long at = inside && n0 + r < all ? source_of(g, pixel_at(g, p0 + i), tap) : -1;
				a[i][r] = at < 0 ? 0 : T::get(from[at * g.groups * g.channels]);
				b[i][r] = inside && m0 + r < g.columns ? T::get(gradient[(p0 + i) * g.groups * g.columns]) : 0;
			}
			__syncthreads();
			for (int l = 0; l < PLAIN_K; l++)
				for (int i = 0; i < 4; i++)
					for (int j = 0; j < 4; j++)
						sum[i][j] += b[l][row + i] * a[l][column + j];
			__syncthreads();
		}
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++)
				if (m0 + row + i < g.columns && n0 + column + j < all)
					((T *)g.d)[(long long)(group * g.columns + m0 + row + i) * all + n0 + column + j] =
						T::make(sum[i][j]);
	}
}

/* Elements are of 16 bits. */
struct __align__(16) packed_pixel {
	unsigned short channel[8];
};

static __device__ void conv_pack(const conv_pack_args &g)
{
	for (long long i = blockIdx.x * 256ll + threadIdx.x; i < g.pixels + g.rows * 8; i += gridDim.x * 256ll) {
		const bool image = i < g.pixels;
		const unsigned line = (unsigned)i / (unsigned)g.wide, n = line / (unsigned)g.high;
		const int y = (int)(line - n * g.high) - g.pad_h, x = (int)((unsigned)i - line * g.wide) - g.pad_w;
		const long long row = (i - g.pixels) / 8, tap = (i - g.pixels) % 8;
		const bool inside = image ? y >= 0 && y < g.h && x >= 0 && x < g.w : tap < g.taps;
		const unsigned short *const from = image ? (const unsigned short *)g.a + (((long long)n * g.h + y) * g.w + x) * g.c
							 : (const unsigned short *)g.b + (row * g.taps + tap) * g.c;
		packed_pixel p;
#pragma unroll
		for (int c = 0; c < 8; c++)
			p.channel[c] = inside && c < g.c ? from[c] : 0;
		if (image)
			((packed_pixel *)g.images)[i] = p;
		else
			((packed_pixel *)g.filters)[i - g.pixels] = p;
	}
}

struct __align__(16) four_sums {
	float v[4];
};

template <typename T> struct __align__(4 * sizeof(T)) four_results {
	T v[4];
};

/* Adds the sums of the parts of a gradient of filters, in their order.  Elements are a multiple of four. */
template <typename T> __device__ void conv_sum(const conv_sum_args &g)
{
	for (long long e = 4 * (blockIdx.x * 256ll + threadIdx.x); e < g.elements; e += gridDim.x * 1024ll) {
		four_sums sum = {{0, 0, 0, 0}};
#pragma unroll 4
		for (int i = 0; i < g.parts; i++) {
			const four_sums more = *(const four_sums *)(g.sums + i * g.elements + e);
			for (int k = 0; k < 4; k++)
				sum.v[k] += more.v[k];
		}
		four_results<T> to;
		for (int k = 0; k < 4; k++)
			to.v[k] = T::make(sum.v[k]);
		*(four_results<T> *)((T *)g.d + e) = to;
	}
}
