/* Kernels on grids of points: stencils in two and three dimensions, and convolutions. */
#include "zoo.h"

enum { LARGEST = 3000000000L };

/* Points are the mean of themselves and the next RADIUS in four directions; a border of that width
 * is copied. */
template <int RADIUS>
static __device__ __forceinline__ void star2d(const float *in, float *out, int width, int height)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x >= width || y >= height)
		return;
	const long i = (long)y * width + x;
	float sum = in[i];
	if (x >= RADIUS && y >= RADIUS && x < width - RADIUS && y < height - RADIUS) {
#pragma unroll
		for (int k = 1; k <= RADIUS; k++)
			sum += in[i - k] + in[i + k] + in[i - k * width] + in[i + k * width];
		sum *= 1.0f / (4 * RADIUS + 1);
	}
	out[i] = sum;
}

/* The mean of a square of 2 radius + 1 points a side, zeros outside; the tile and its rim in shared
 * memory.  The block is 32 x 8, the radius at most 4. */
extern "C" __global__ void stencil2d_box(
	const float *in, float *out, int width, int height, int radius)
{
	__shared__ float tile[8 + 8][32 + 8];
	const int x0 = blockIdx.x * 32 - radius, y0 = blockIdx.y * 8 - radius;
	for (int y = threadIdx.y; y < 8 + 2 * radius; y += 8)
		for (int x = threadIdx.x; x < 32 + 2 * radius; x += 32) {
			const int gx = x0 + x, gy = y0 + y;
			const bool inside = gx >= 0 && gy >= 0 && gx < width && gy < height;
			tile[y][x] = inside ? in[(long)gy * width + gx] : 0;
		}
	__syncthreads();
	const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
	if (x >= width || y >= height)
		return;
	float sum = 0;
	for (int dy = 0; dy <= 2 * radius; dy++)
		for (int dx = 0; dx <= 2 * radius; dx++)
			sum += tile[threadIdx.y + dy][threadIdx.x + dx];
	out[(long)y * width + x] = sum / (float)((2 * radius + 1) * (2 * radius + 1));
}

/* As star2d, where the point itself counts 0.4 and all others together 0.6. */
template <int RADIUS>
static __device__ __forceinline__ void star3d(const float *in, float *out, int nx, int ny, int nz)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;
	const int z = blockIdx.z * blockDim.z + threadIdx.z;
	if (x >= nx || y >= ny || z >= nz)
		return;
	const long plane = (long)nx * ny, i = z * plane + (long)y * nx + x;
	if (x < RADIUS || y < RADIUS || z < RADIUS || x >= nx - RADIUS || y >= ny - RADIUS ||
		z >= nz - RADIUS) {
		out[i] = in[i];
		return;
	}
	float sum = 0;
#pragma unroll
	for (int k = 1; k <= RADIUS; k++)
		sum += in[i - k] + in[i + k] + in[i - k * nx] + in[i + k * nx] + in[i - k * plane] +
		       in[i + k * plane];
	out[i] = 0.4f * in[i] + 0.6f / (6 * RADIUS) * sum;
}

/* As stencil3d_star_7, each thread going through all planes of its column. */
extern "C" __global__ void stencil3d_sweep(const float *in, float *out, int nx, int ny, int nz)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x >= nx || y >= ny)
		return;
	const long plane = (long)nx * ny, i0 = (long)y * nx + x;
	const bool border = !x || !y || x == nx - 1 || y == ny - 1;
	float below = 0, here = in[i0];
	for (int z = 0; z < nz; z++) {
		const long i = i0 + z * plane;
		const float above = z + 1 < nz ? in[i + plane] : 0;
		out[i] = border || !z || z == nz - 1
				 ? here
				 : 0.4f * here + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] +
								in[i + nx] + below + above);
		below = here;
		here = above;
	}
}

/* As stencil2d_box, with the radius known and a block of W x H. */
template <int RADIUS, int W, int H>
static __device__ __forceinline__ void box2d(const float *in, float *out, int width, int height)
{
	__shared__ float tile[H + 2 * RADIUS][W + 2 * RADIUS];
	const int x0 = blockIdx.x * W, y0 = blockIdx.y * H;
	for (int y = threadIdx.y; y < H + 2 * RADIUS; y += H)
		for (int x = threadIdx.x; x < W + 2 * RADIUS; x += W) {
			const int gx = x0 + x - RADIUS, gy = y0 + y - RADIUS;
			const bool inside = gx >= 0 && gy >= 0 && gx < width && gy < height;
			tile[y][x] = inside ? in[(long)gy * width + gx] : 0;
		}
	__syncthreads();
	const int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
	if (x >= width || y >= height)
		return;
	float sum = 0;
#pragma unroll
	for (int dy = 0; dy <= 2 * RADIUS; dy++)
#pragma unroll
		for (int dx = 0; dx <= 2 * RADIUS; dx++)
			sum += tile[threadIdx.y + dy][threadIdx.x + dx];
	out[(long)y * width + x] = sum / (float)((2 * RADIUS + 1) * (2 * RADIUS + 1));
}

#define STARS_2D(ROW)                                                                              \
	ROW(stencil2d_5, 1, 2000)                                                                  \
	ROW(stencil2d_9, 2, 2000)                                                                  \
	ROW(stencil2d_13, 3, 1800)                                                                 \
	ROW(stencil2d_17, 4, 1800)
#define BOXES(ROW)                                                                                 \
	ROW(stencil2d_box_r1_32x8, 1, 32, 8, 2000, 6000)                                           \
	ROW(stencil2d_box_r1_32x16, 1, 32, 16, 2000, 6000)                                         \
	ROW(stencil2d_box_r1_16x16, 1, 16, 16, 1800, 6000)                                         \
	ROW(stencil2d_box_r2_32x8, 2, 32, 8, 2000, 7000)                                           \
	ROW(stencil2d_box_r2_64x4, 2, 64, 4, 2000, 7000)                                           \
	ROW(stencil2d_box_r3_32x8, 3, 32, 8, 2000, 8000)                                           \
	ROW(stencil2d_box_r4_32x16, 4, 32, 16, 2000, 8000)
#define STARS_3D(ROW)                                                                              \
	ROW(stencil3d_star_7, 1, 1800)                                                             \
	ROW(stencil3d_star_13, 2, 1500)                                                            \
	ROW(stencil3d_star_19, 3, 1300)                                                            \
	ROW(stencil3d_star_25, 4, 1200)
/* Stencils of radius 1, by block. */
#define BLOCKS_3D(ROW)                                                                             \
	ROW(stencil3d_block_8x8x8, 8, 8, 8, 1200)                                                  \
	ROW(stencil3d_block_16x4x4, 16, 4, 4, 1500)                                                \
	ROW(stencil3d_block_32x2x4, 32, 2, 4, 1800)                                                \
	ROW(stencil3d_block_32x4x2, 32, 4, 2, 1800)                                                \
	ROW(stencil3d_block_64x2x2, 64, 2, 2, 1800)

#define STAR_2D(name, radius, gbs)                                                                 \
	extern "C" __global__ void name(const float *in, float *out, int width, int height)        \
	{                                                                                          \
		star2d<radius>(in, out, width, height);                                            \
	}
#define STAR_2D_ROW(name, radius, gbs)                                                             \
	{ "stencil", #name, "width,height", gbs, 0, FLOATS, 1e-5, draw_plane, plan_star2d<radius>, \
		call_xz<name, 2>, oracle_star2d<radius> },
#define BOX(name, radius, w, h, gbs, gflops)                                                       \
	extern "C" __global__ void __launch_bounds__((w) * (h))                                    \
		name(const float *in, float *out, int width, int height)                           \
	{                                                                                          \
		box2d<radius, w, h>(in, out, width, height);                                       \
	}
#define BOX_ROW(name, radius, w, h, gbs, gflops)                                                   \
	{ "stencil", #name, "width,height", gbs, gflops, FLOATS, 1e-4, draw_plane,                 \
		plan_box_of<radius, w, h>, call_xz<name, 2>, oracle_box_of<radius> },
#define STAR_3D(name, radius, gbs)                                                                 \
	extern "C" __global__ void name(const float *in, float *out, int nx, int ny, int nz)       \
	{                                                                                          \
		star3d<radius>(in, out, nx, ny, nz);                                               \
	}
#define STAR_3D_ROW(name, radius, gbs)                                                             \
	{ "stencil", #name, "nx,ny,nz", gbs, 0, FLOATS, 1e-5, draw_space, plan_star3d<radius>,     \
		call_xz<name, 3>, oracle_star3d<radius> },
#define BLOCK_3D(name, bx, by, bz, gbs)                                                            \
	extern "C" __global__ void __launch_bounds__((bx) * (by) * (bz))                           \
		name(const float *in, float *out, int nx, int ny, int nz)                          \
	{                                                                                          \
		star3d<1>(in, out, nx, ny, nz);                                                    \
	}
#define BLOCK_3D_ROW(name, bx, by, bz, gbs)                                                        \
	{ "stencil", #name, "nx,ny,nz", gbs, 0, FLOATS, 1e-5, draw_space,                          \
		plan_block3d<bx, by, bz>, call_xz<name, 3>, oracle_star3d<1> },

STARS_2D(STAR_2D)
BOXES(BOX)
STARS_3D(STAR_3D)
BLOCKS_3D(BLOCK_3D)

static void draw_plane(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 16, 60000);
	s->s[1] = draw_size(r, 16, at_most(60000, LARGEST / s->s[0]));
	s->s[2] = 1 + rng_below(r, 4);
	s->threads = 32 * (1 << rng_below(r, 6));
}

static void draw_box(struct rng *r, struct shape *s)
{
	draw_plane(r, s);
	s->threads = 256;
}

static void draw_space(struct rng *r, struct shape *s)
{
	for (int i = 0; i < 3; i++)
		s->s[i] = draw_size(r, 8, 1400);
	s->threads = 32 * (1 << rng_below(r, 5));
}

static void plan_grid(const struct shape *s, struct plan *p, long points, double flops)
{
	p->flops = flops * (double)points;
	p->bytes = 8.0 * (double)points;
	p->block = dim3(32, (unsigned)s->threads / 32);
	p->grid = dim3((unsigned)up(s->s[0], 32), (unsigned)up(s->s[1], s->threads / 32));
	p->need[X] = p->need[Z] = 4 * points;
}

template <int RADIUS> static void plan_star2d(const struct shape *s, struct plan *p)
{
	plan_grid(s, p, s->s[0] * s->s[1], 4 * RADIUS + 1);
}

static void plan_box(const struct shape *s, struct plan *p)
{
	const double side = 2 * (double)s->s[2] + 1;
	plan_grid(s, p, s->s[0] * s->s[1], side * side + 1);
}

template <int RADIUS, int W, int H> static void plan_box_of(const struct shape *s, struct plan *p)
{
	const struct shape box = { { s->s[0], s->s[1], RADIUS }, W * H };
	plan_box(&box, p);
	p->block = dim3(W, H);
	p->grid = dim3((unsigned)up(s->s[0], W), (unsigned)up(s->s[1], H));
}

template <int RADIUS> static void plan_star3d(const struct shape *s, struct plan *p)
{
	plan_grid(s, p, s->s[0] * s->s[1] * s->s[2], 6 * RADIUS + 2);
	p->grid.z = (unsigned)s->s[2];
}

template <int BX, int BY, int BZ> static void plan_block3d(const struct shape *s, struct plan *p)
{
	const struct shape threads = { { s->s[0], s->s[1], s->s[2] }, BX * BY * BZ };
	plan_star3d<1>(&threads, p);
	p->block = dim3(BX, BY, BZ);
	p->grid = dim3(
		(unsigned)up(s->s[0], BX), (unsigned)up(s->s[1], BY), (unsigned)up(s->s[2], BZ));
}

static void plan_sweep(const struct shape *s, struct plan *p)
{
	plan_grid(s, p, s->s[0] * s->s[1] * s->s[2], 8);
}

static void launch_box(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(stencil2d_box, p, m->x, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

static void launch_sweep(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(stencil3d_sweep, p, m->x, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

template <int RADIUS>
static void oracle_star2d(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long w = s->s[0], h = s->s[1], r = RADIUS;
	for (long y = 0; y < h; y++)
		for (long x = 0; x < w; x++) {
			const float *at = m->x + y * w + x;
			double sum = *at;
			for (long k = 1; k <= r && x >= r && y >= r && x < w - r && y < h - r; k++)
				sum += (double)at[-k] + at[k] + at[-k * w] + at[k * w];
			const bool border = x < r || y < r || x >= w - r || y >= h - r;
			z_f32(m)[y * w + x] = (float)(border ? sum : sum / (4 * r + 1));
		}
}

static void oracle_box(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long w = s->s[0], h = s->s[1], r = s->s[2];
	for (long y = 0; y < h; y++)
		for (long x = 0; x < w; x++) {
			double sum = 0;
			for (long v = y - r; v <= y + r; v++)
				for (long u = x - r; u <= x + r; u++)
					if (u >= 0 && v >= 0 && u < w && v < h)
						sum += m->x[v * w + u];
			z_f32(m)[y * w + x] = (float)(sum / (double)((2 * r + 1) * (2 * r + 1)));
		}
}

template <int RADIUS>
static void oracle_box_of(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const struct shape box = { { s->s[0], s->s[1], RADIUS } };
	oracle_box(p, &box, m);
}

static bool inner(long i, long n, long radius)
{
	return i >= radius && i < n - radius;
}

template <int RADIUS>
static void oracle_star3d(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long nx = s->s[0], ny = s->s[1], nz = s->s[2], plane = nx * ny;
	for (long i = 0; i < plane * nz; i++) {
		const float *at = m->x + i;
		double sum = 0;
		z_f32(m)[i] = *at;
		if (!inner(i % nx, nx, RADIUS) || !inner(i / nx % ny, ny, RADIUS) ||
			!inner(i / plane, nz, RADIUS))
			continue;
		for (long k = 1; k <= RADIUS; k++)
			sum += (double)at[-k] + at[k] + at[-k * nx] + at[k * nx] + at[-k * plane] +
			       at[k * plane];
		z_f32(m)[i] = (float)(0.4 * *at + 0.6 / (6 * RADIUS) * sum);
	}
}

static const struct kernel stencils[] = {
	{ "stencil", "stencil2d_box", "width,height,radius", 2000, 6000, FLOATS, 1e-4, draw_box,
		plan_box, launch_box, oracle_box },
	{ "stencil", "stencil3d_sweep", "nx,ny,nz", 1500, 0, FLOATS, 1e-5, draw_space, plan_sweep,
		launch_sweep, oracle_star3d<1> },
	STARS_2D(STAR_2D_ROW)
	BOXES(BOX_ROW)
	STARS_3D(STAR_3D_ROW)
	BLOCKS_3D(BLOCK_3D_ROW)
};
FAMILY(stencil, stencils);

/* images[n][in][side][side] * weights[out][in][r][r], stride one, zeros outside; r is odd.  One
 * output a thread. */
static __device__ __forceinline__ void direct(const float *images, const float *weights, float *out,
	int n, int in, int outs, int side, int r)
{
	const long i = zoo_thread();
	const long per_image = (long)outs * side * side;
	if (i >= n * per_image)
		return;
	const int x = (int)(i % side), y = (int)(i / side % side);
	const int o = (int)(i / ((long)side * side) % outs);
	const float *image = images + i / per_image * in * side * side;
	const float *w = weights + (long)o * in * r * r;
	float sum = 0;
	for (int c = 0; c < in; c++)
		for (int v = 0; v < r; v++) {
			const int yy = y + v - r / 2;
			if (yy < 0 || yy >= side)
				continue;
			for (int u = 0; u < r; u++) {
				const int xx = x + u - r / 2;
				if (xx >= 0 && xx < side)
					sum += image[((long)c * side + yy) * side + xx] *
					       w[((long)c * r + v) * r + u];
			}
		}
	out[i] = sum;
}

extern "C" __global__ void conv2d_direct(const float *images, const float *weights, float *out,
	int n, int in, int outs, int side, int r)
{
	direct(images, weights, out, n, in, outs, side, r);
}

/* Each channel with a filter of its own. */
static __device__ __forceinline__ void depthwise(
	const float *images, const float *weights, float *out, int n, int channels, int side, int r)
{
	const long i = zoo_thread();
	const long plane = (long)side * side;
	if (i >= n * channels * plane)
		return;
	const int x = (int)(i % side), y = (int)(i / side % side);
	const float *from = images + i / plane * plane;
	const float *w = weights + i / plane % channels * r * r;
	float sum = 0;
	for (int v = 0; v < r; v++)
		for (int u = 0; u < r; u++) {
			const int yy = y + v - r / 2, xx = x + u - r / 2;
			if (yy >= 0 && yy < side && xx >= 0 && xx < side)
				sum += from[(long)yy * side + xx] * w[v * r + u];
		}
	out[i] = sum;
}

extern "C" __global__ void conv2d_depthwise(
	const float *images, const float *weights, float *out, int n, int channels, int side, int r)
{
	depthwise(images, weights, out, n, channels, side, r);
}

/* A filter of `taps` over a signal; the weights in shared memory, at most 1024 of them. */
extern "C" __global__ void conv1d(
	const float *in, const float *weights, float *out, long n, int taps)
{
	__shared__ float w[1024];
	for (int i = threadIdx.x; i < taps; i += blockDim.x)
		w[i] = weights[i];
	__syncthreads();
	const long i = zoo_thread();
	if (i >= n)
		return;
	float sum = 0;
	for (int k = 0; k < taps; k++)
		sum += in[i + k] * w[k];
	out[i] = sum;
}

/* ITEMS outputs a thread; the weights in registers. */
template <int TAPS, int ITEMS>
static __device__ __forceinline__ void signal(
	const float *in, const float *weights, float *out, long n)
{
	const long first = zoo_thread() * ITEMS;
	float w[TAPS], sum[ITEMS] = {};
#pragma unroll
	for (int k = 0; k < TAPS; k++)
		w[k] = weights[k];
#pragma unroll
	for (int i = 0; i < ITEMS + TAPS - 1; i++) {
		const float v = first + i < n + TAPS - 1 ? in[first + i] : 0;
#pragma unroll
		for (int j = 0; j < ITEMS; j++)
			if (i - j >= 0 && i - j < TAPS)
				sum[j] += v * w[i - j];
	}
#pragma unroll
	for (int j = 0; j < ITEMS; j++)
		if (first + j < n)
			out[first + j] = sum[j];
}

/* Filters of a side that is known. */
#define DIRECTS(ROW)                                                                               \
	ROW(conv2d_direct_1, 1, 3000)                                                              \
	ROW(conv2d_direct_3, 3, 4000)                                                              \
	ROW(conv2d_direct_5, 5, 4500)                                                              \
	ROW(conv2d_direct_7, 7, 5000)
#define DEPTHWISES(ROW)                                                                            \
	ROW(conv2d_depthwise_3, 3, 3000)                                                           \
	ROW(conv2d_depthwise_5, 5, 4000)                                                           \
	ROW(conv2d_depthwise_7, 7, 4000)                                                           \
	ROW(conv2d_depthwise_9, 9, 4000)
#define SIGNALS(ROW)                                                                               \
	ROW(conv1d_taps_5x1, 5, 1, 2500)                                                           \
	ROW(conv1d_taps_5x4, 5, 4, 2500)                                                           \
	ROW(conv1d_taps_9x1, 9, 1, 2500)                                                           \
	ROW(conv1d_taps_9x4, 9, 4, 2500)                                                           \
	ROW(conv1d_taps_17x1, 17, 1, 2000)                                                         \
	ROW(conv1d_taps_17x4, 17, 4, 2200)

#define DIRECT(name, r, gflops)                                                                    \
	extern "C" __global__ void name(const float *images, const float *weights, float *out,     \
		int n, int in, int outs, int side)                                                 \
	{                                                                                          \
		direct(images, weights, out, n, in, outs, side, r);                                \
	}
#define DIRECT_ROW(name, r, gflops)                                                                \
	{ "convolution", #name, "images,channels,outputs,side", 1500, gflops, FLOATS, 1e-3,        \
		draw_conv, with_side<plan_conv, 4, r>, call_xyz<name, 4>,                          \
		with_side<oracle_conv, 4, r> },
#define DEPTHWISE(name, r, gflops)                                                                 \
	extern "C" __global__ void name(const float *images, const float *weights, float *out,     \
		int n, int channels, int side)                                                     \
	{                                                                                          \
		depthwise(images, weights, out, n, channels, side, r);                             \
	}
#define DEPTHWISE_ROW(name, r, gflops)                                                             \
	{ "convolution", #name, "images,channels,side", 1500, gflops, FLOATS, 1e-3,                \
		draw_depthwise, with_side<plan_depthwise, 3, r>, call_xyz<name, 3>,                \
		with_side<oracle_depthwise, 3, r> },
#define SIGNAL(name, taps, items, gbs)                                                             \
	extern "C" __global__ void name(const float *in, const float *weights, float *out, long n) \
	{                                                                                          \
		signal<taps, items>(in, weights, out, n);                                          \
	}
#define SIGNAL_ROW(name, taps, items, gbs)                                                         \
	{ "convolution", #name, "n", gbs, 0, FLOATS, 1e-3, draw_signal, plan_taps<taps, items>,    \
		call_xyz<name, 1>, with_side<oracle_signal, 1, taps> },

DIRECTS(DIRECT)
DEPTHWISES(DEPTHWISE)
SIGNALS(SIGNAL)

static void draw_conv(struct rng *r, struct shape *s)
{
	static const long sides[] = { 7, 14, 28, 32, 56, 64, 112, 224 };
	s->s[0] = draw_size(r, 1, 128);
	s->s[1] = draw_size(r, 3, 512);
	s->s[2] = draw_size(r, 8, 512);
	s->s[3] = sides[rng_below(r, 8)];
	s->s[4] = 1 + 2 * rng_below(r, 4);
	s->threads = draw_warps(r);
}

static void draw_depthwise(struct rng *r, struct shape *s)
{
	draw_conv(r, s);
	s->s[1] = draw_size(r, 3, 1024);
	s->s[2] = s->s[3];
	s->s[3] = s->s[4];
	s->s[4] = 0;
}

static void draw_signal(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST - 1024);
	s->s[1] = draw_size(r, 1, 1024);
	s->threads = draw_warps(r);
}

static void plan_points(const struct shape *s, struct plan *p, long in, long out, long weights)
{
	p->bytes = 4.0 * (double)(in + out + weights);
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(out, s->threads));
	p->need[X] = 4 * in;
	p->need[Y] = 4 * weights;
	p->need[Z] = 4 * out;
}

static void plan_conv(const struct shape *s, struct plan *p)
{
	const long plane = s->s[3] * s->s[3], filter = s->s[4] * s->s[4];
	plan_points(s, p, s->s[0] * s->s[1] * plane, s->s[0] * s->s[2] * plane,
		s->s[1] * s->s[2] * filter);
	p->flops = 2.0 * (double)(s->s[0] * s->s[2] * plane) * (double)(s->s[1] * filter);
}

static void plan_depthwise(const struct shape *s, struct plan *p)
{
	const long points = s->s[0] * s->s[1] * s->s[2] * s->s[2], filter = s->s[3] * s->s[3];
	plan_points(s, p, points, points, s->s[1] * filter);
	p->flops = 2.0 * (double)points * (double)filter;
}

static void plan_signal(const struct shape *s, struct plan *p)
{
	plan_points(s, p, s->s[0] + s->s[1] - 1, s->s[0], s->s[1]);
	p->flops = 2.0 * (double)s->s[0] * (double)s->s[1];
}

/* A plan or an oracle whose size number AT is always VALUE. */
template <auto PLAN, int AT, int VALUE> static void with_side(const struct shape *s, struct plan *p)
{
	struct shape known = *s;
	known.s[AT] = VALUE;
	PLAN(&known, p);
}

template <auto ORACLE, int AT, int VALUE>
static void with_side(const struct plan *p, const struct shape *s, const struct arena *m)
{
	struct shape known = *s;
	known.s[AT] = VALUE;
	ORACLE(p, &known, m);
}

template <int TAPS, int ITEMS> static void plan_taps(const struct shape *s, struct plan *p)
{
	with_side<plan_signal, 1, TAPS>(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads * ITEMS));
}

static void launch_conv(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(conv2d_direct, p, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2],
		(int)s->s[3], (int)s->s[4]);
}

static void launch_depthwise(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(conv2d_depthwise, p, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2],
		(int)s->s[3]);
}

static void launch_signal(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(conv1d, p, m->x, m->y, z_f32(m), s->s[0], (int)s->s[1]);
}

/* One output of a plane convolved with a filter. */
static double convolved(const float *plane, const float *w, long side, long r, long x, long y)
{
	double sum = 0;
	for (long v = 0; v < r; v++)
		for (long u = 0; u < r; u++) {
			const long yy = y + v - r / 2, xx = x + u - r / 2;
			if (yy >= 0 && yy < side && xx >= 0 && xx < side)
				sum += (double)plane[yy * side + xx] * w[v * r + u];
		}
	return sum;
}

static void oracle_conv(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long in = s->s[1], outs = s->s[2], side = s->s[3], r = s->s[4], plane = side * side;
	for (long i = 0; i < s->s[0] * outs * plane; i++) {
		const long image = i / (outs * plane), o = i / plane % outs;
		double sum = 0;
		for (long c = 0; c < in; c++)
			sum += convolved(m->x + (image * in + c) * plane,
				m->y + (o * in + c) * r * r, side, r, i % side, i / side % side);
		z_f32(m)[i] = (float)sum;
	}
}

static void oracle_depthwise(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long side = s->s[2], r = s->s[3], plane = side * side;
	for (long i = 0; i < s->s[0] * s->s[1] * plane; i++)
		z_f32(m)[i] = (float)convolved(m->x + i / plane * plane,
			m->y + i / plane % s->s[1] * r * r, side, r, i % side, i / side % side);
}

static void oracle_signal(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		double sum = 0;
		for (long k = 0; k < s->s[1]; k++)
			sum += (double)m->x[i + k] * m->y[k];
		z_f32(m)[i] = (float)sum;
	}
}

static const struct kernel convolutions[] = {
	{ "convolution", "conv2d_direct", "images,channels,outputs,side,filter", 1500, 3500, FLOATS,
		1e-3, draw_conv, plan_conv, launch_conv, oracle_conv },
	{ "convolution", "conv2d_depthwise", "images,channels,side,filter", 1500, 3000, FLOATS,
		1e-3, draw_depthwise, plan_depthwise, launch_depthwise, oracle_depthwise },
	{ "convolution", "conv1d", "n,taps", 2000, 8000, FLOATS, 1e-3, draw_signal, plan_signal,
		launch_signal, oracle_signal },
	DIRECTS(DIRECT_ROW)
	DEPTHWISES(DEPTHWISE_ROW)
	SIGNALS(SIGNAL_ROW)
};
FAMILY(convolution, convolutions);
