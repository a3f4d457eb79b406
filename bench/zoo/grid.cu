/* Kernels on grids of points: stencils in two and three dimensions, and convolutions. */
#include "zoo.h"

enum { LARGEST = 3000000000L };

/* ---- stencils ---- */

/* Inner points are the mean of themselves and four neighbours; the border is copied. */
extern "C" __global__ void stencil2d_5(const float *in, float *out, int width, int height)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x >= width || y >= height)
		return;
	const long i = (long)y * width + x;
	if (x == 0 || y == 0 || x == width - 1 || y == height - 1)
		out[i] = in[i];
	else
		out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
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

extern "C" __global__ void stencil3d_7(const float *in, float *out, int nx, int ny, int nz)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;
	const int z = blockIdx.z;
	if (x >= nx || y >= ny || z >= nz)
		return;
	const long plane = (long)nx * ny, i = z * plane + (long)y * nx + x;
	if (!x || !y || !z || x == nx - 1 || y == ny - 1 || z == nz - 1)
		out[i] = in[i];
	else
		out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] +
						       in[i - plane] + in[i + plane]);
}

/* The same, each thread going through all planes of its column. */
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

static void plan_2d5(const struct shape *s, struct plan *p)
{
	plan_grid(s, p, s->s[0] * s->s[1], 5);
}

static void plan_box(const struct shape *s, struct plan *p)
{
	const double side = 2 * (double)s->s[2] + 1;
	plan_grid(s, p, s->s[0] * s->s[1], side * side + 1);
}

static void plan_3d7(const struct shape *s, struct plan *p)
{
	plan_grid(s, p, s->s[0] * s->s[1] * s->s[2], 8);
	p->grid.z = (unsigned)s->s[2];
}

static void plan_sweep(const struct shape *s, struct plan *p)
{
	plan_grid(s, p, s->s[0] * s->s[1] * s->s[2], 8);
}

static void launch_2d5(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(stencil2d_5, p, m->x, z_f32(m), (int)s->s[0], (int)s->s[1]);
}

static void launch_box(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(stencil2d_box, p, m->x, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

static void launch_3d7(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(stencil3d_7, p, m->x, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

static void launch_sweep(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(stencil3d_sweep, p, m->x, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

static void oracle_2d5(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long w = s->s[0], h = s->s[1];
	for (long y = 0; y < h; y++)
		for (long x = 0; x < w; x++) {
			const float *at = m->x + y * w + x;
			const bool border = !x || !y || x == w - 1 || y == h - 1;
			z_f32(m)[y * w + x] =
				border ? *at : 0.2f * (*at + at[-1] + at[1] + at[-w] + at[w]);
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

static void oracle_3d7(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long nx = s->s[0], ny = s->s[1], nz = s->s[2], plane = nx * ny;
	for (long i = 0; i < plane * nz; i++) {
		const long x = i % nx, y = i / nx % ny, z = i / plane;
		const float *at = m->x + i;
		const bool border = !x || !y || !z || x == nx - 1 || y == ny - 1 || z == nz - 1;
		z_f32(m)[i] = border ? *at
				     : 0.4f * *at + 0.1f * (at[-1] + at[1] + at[-nx] + at[nx] +
								   at[-plane] + at[plane]);
	}
}

static const struct kernel stencils[] = {
	{ "stencil", "stencil2d_5", "width,height", 2000, 0, FLOATS, 1e-5, draw_plane, plan_2d5,
		launch_2d5, oracle_2d5 },
	{ "stencil", "stencil2d_box", "width,height,radius", 2000, 6000, FLOATS, 1e-4, draw_box,
		plan_box, launch_box, oracle_box },
	{ "stencil", "stencil3d_7", "nx,ny,nz", 1800, 0, FLOATS, 1e-5, draw_space, plan_3d7,
		launch_3d7, oracle_3d7 },
	{ "stencil", "stencil3d_sweep", "nx,ny,nz", 1500, 0, FLOATS, 1e-5, draw_space, plan_sweep,
		launch_sweep, oracle_3d7 },
};
FAMILY(stencil, stencils);

/* ---- convolutions ---- */

/* images[n][in][side][side] * weights[out][in][r][r], stride one, zeros outside; r is odd.  One
 * output a thread. */
extern "C" __global__ void conv2d_direct(const float *images, const float *weights, float *out,
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

/* Each channel with a filter of its own. */
extern "C" __global__ void conv2d_depthwise(
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
};
FAMILY(convolution, convolutions);
