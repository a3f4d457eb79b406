/* Kernels that move memory: copies, elementwise chains, transposes, gathers and scatters. */
#include "zoo.h"

enum { LARGEST = 3000000000L }; /* floats of a buffer: 12 GB */

/* ---- copy ---- */

extern "C" __global__ void copy_f32(const float *in, float *out, long n)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[i];
}

extern "C" __global__ void copy_f32x4(const float4 *in, float4 *out, long n4)
{
	for (long i = zoo_thread(); i < n4; i += zoo_threads())
		out[i] = in[i];
}

extern "C" __global__ void copy_strided(const float *in, float *out, long n, long stride)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[i * stride];
}

static void draw_vector(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST);
	s->threads = draw_threads(r);
}

static void draw_quads(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST / 4);
	s->threads = draw_warps(r);
}

static void draw_strided(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 1, 64);
	s->s[0] = draw_size(r, 1000, LARGEST / s->s[1]);
	s->threads = draw_threads(r);
}

static void one_each(struct plan *p, const struct shape *s, double flops, double bytes)
{
	p->flops = flops * (double)s->s[0];
	p->bytes = bytes * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
}

static void plan_copy(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_copy4(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 32);
	p->grid = dim3(stride_blocks(s->s[0], s->threads));
	p->need[X] = p->need[Z] = 16 * s->s[0];
}

static void plan_strided(const struct shape *s, struct plan *p)
{
	const long sector = at_most(s->s[1], 8); /* memory is read by sectors of 32 bytes */
	one_each(p, s, 0, 4 + 4 * (double)sector);
	p->need[X] = 4 * ((s->s[0] - 1) * s->s[1] + 1);
	p->need[Z] = 4 * s->s[0];
}

static void launch_copy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(copy_f32, p, m->x, z_f32(m), s->s[0]);
}

static void launch_copy4(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(copy_f32x4, p, (const float4 *)m->x, (float4 *)m->z, s->s[0]);
}

static void launch_strided(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(copy_strided, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_copy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < p->need[Z] / 4; i++)
		z_f32(m)[i] = m->x[i];
}

static void oracle_strided(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[i] = m->x[i * s->s[1]];
}

static const struct kernel copies[] = {
	{ "copy", "copy_f32", "n", 3000, 0, FLOATS, 0, draw_vector, plan_copy, launch_copy,
		oracle_copy },
	{ "copy", "copy_f32x4", "n4", 3800, 0, FLOATS, 0, draw_quads, plan_copy4, launch_copy4,
		oracle_copy },
	{ "copy", "copy_strided", "n,stride", 3000, 0, FLOATS, 0, draw_strided, plan_strided,
		launch_strided, oracle_strided },
};
FAMILY(copy, copies);

/* ---- elementwise ---- */

extern "C" __global__ void axpy(float a, const float *x, const float *y, float *out, long n)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = a * x[i] + y[i];
}

/* `steps` dependent multiply-adds an element: from memory-bound to compute-bound. */
extern "C" __global__ void chain_fma(const float *x, float *out, long n, int steps)
{
	const long i = zoo_thread();
	if (i >= n)
		return;
	float v = x[i];
	for (int k = 0; k < steps; k++)
		v = v * 0.999f + 0.001f;
	out[i] = v;
}

extern "C" __global__ void chain_exp(const float *x, float *out, long n, int steps)
{
	const long i = zoo_thread();
	if (i >= n)
		return;
	float v = x[i];
	for (int k = 0; k < steps; k++)
		v = __expf(-v);
	out[i] = v;
}

extern "C" __global__ void gelu_f32(const float *x, float *out, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads()) {
		const float v = x[i];
		out[i] = 0.5f * v * (1.0f + tanhf(0.7978846f * (v + 0.044715f * v * v * v)));
	}
}

extern "C" __global__ void add_f16(const __half *x, __half *out, long n)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = __hadd(x[i], x[n + i]);
}

/* out[row][column] = x[row][column] + bias[column], at least zero. */
extern "C" __global__ void bias_relu(
	const float *x, const float *bias, float *out, long rows, long columns)
{
	const long i = zoo_thread();
	if (i < rows * columns)
		out[i] = fmaxf(x[i] + bias[i % columns], 0.0f);
}

static void draw_chain(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST);
	s->s[1] = draw_size(r, 1, 4096);
	s->threads = draw_threads(r);
}

static void draw_half(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 29);
	s->threads = draw_threads(r);
}

static void draw_bias(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 8, 65536);
	s->s[0] = draw_size(r, 16, at_most(1L << 24, LARGEST / s->s[1]));
	s->threads = draw_threads(r);
}

static void plan_axpy(const struct shape *s, struct plan *p)
{
	one_each(p, s, 2, 12);
	p->need[X] = p->need[Y] = p->need[Z] = 4 * s->s[0];
}

static void draw_axpy(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->threads = draw_threads(r);
}

static void plan_fma(const struct shape *s, struct plan *p)
{
	one_each(p, s, 2 * (double)s->s[1], 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_exp(const struct shape *s, struct plan *p)
{
	one_each(p, s, (double)s->s[1], 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_gelu(const struct shape *s, struct plan *p)
{
	one_each(p, s, 9, 8);
	p->grid = dim3(stride_blocks(s->s[0], s->threads));
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_half(const struct shape *s, struct plan *p)
{
	one_each(p, s, 1, 6);
	p->need[H] = 4 * s->s[0];
	p->need[Z] = 2 * s->s[0];
}

static void plan_bias(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->flops = (double)n;
	p->bytes = 8.0 * (double)n + 4.0 * (double)s->s[1];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(n, s->threads));
	p->need[X] = p->need[Z] = 4 * n;
	p->need[Y] = 4 * s->s[1];
}

static void launch_axpy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(axpy, p, 1.5f, m->x, m->y, z_f32(m), s->s[0]);
}

static void launch_fma(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(chain_fma, p, m->x, z_f32(m), s->s[0], (int)s->s[1]);
}

static void launch_exp(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(chain_exp, p, m->x, z_f32(m), s->s[0], (int)s->s[1]);
}

static void launch_gelu(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gelu_f32, p, m->x, z_f32(m), s->s[0]);
}

static void launch_half(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(add_f16, p, m->h, (__half *)m->z, s->s[0]);
}

static void launch_bias(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(bias_relu, p, m->x, m->y, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_axpy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[i] = 1.5f * m->x[i] + m->y[i];
}

static void oracle_fma(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		double v = m->x[i];
		for (long k = 0; k < s->s[1]; k++)
			v = v * 0.999f + 0.001f;
		z_f32(m)[i] = (float)v;
	}
}

static void oracle_exp(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		double v = m->x[i];
		for (long k = 0; k < s->s[1]; k++)
			v = exp(-v);
		z_f32(m)[i] = (float)v;
	}
}

static void oracle_gelu(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		const double v = m->x[i];
		z_f32(m)[i] = (float)(0.5 * v * (1 + tanh(0.7978846 * (v + 0.044715 * v * v * v))));
	}
}

static void oracle_half(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		((__half *)m->z)[i] =
			__float2half(__half2float(m->h[i]) + __half2float(m->h[s->s[0] + i]));
}

static void oracle_bias(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++)
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[row * s->s[1] + c] =
				fmaxf(m->x[row * s->s[1] + c] + m->y[c], 0.0f);
}

static const struct kernel elementwise[] = {
	{ "elementwise", "axpy", "n", 3500, 0, FLOATS, 1e-6, draw_axpy, plan_axpy, launch_axpy,
		oracle_axpy },
	{ "elementwise", "chain_fma", "n,steps", 3000, 30000, FLOATS, 1e-4, draw_chain, plan_fma,
		launch_fma, oracle_fma },
	{ "elementwise", "chain_exp", "n,steps", 3000, 3000, FLOATS, 1e-4, draw_chain, plan_exp,
		launch_exp, oracle_exp },
	{ "elementwise", "gelu_f32", "n", 3000, 0, FLOATS, 1e-5, draw_vector, plan_gelu,
		launch_gelu, oracle_gelu },
	{ "elementwise", "add_f16", "n", 2500, 0, HALVES, 1e-3, draw_half, plan_half, launch_half,
		oracle_half },
	{ "elementwise", "bias_relu", "rows,columns", 2500, 0, FLOATS, 1e-6, draw_bias, plan_bias,
		launch_bias, oracle_bias },
};
FAMILY(elementwise, elementwise);

/* ---- transpose ---- */

extern "C" __global__ void transpose_naive(const float *in, float *out, long rows, long columns)
{
	const long c = (long)blockIdx.x * 32 + threadIdx.x;
	const long first = (long)blockIdx.y * 32;
	for (long r = first + threadIdx.y; r < first + 32; r += blockDim.y)
		if (r < rows && c < columns)
			out[c * rows + r] = in[r * columns + c];
}

extern "C" __global__ void transpose_tiled(const float *in, float *out, long rows, long columns)
{
	__shared__ float tile[32][33]; /* 33: a column is in 32 banks */
	const long c0 = (long)blockIdx.x * 32, r0 = (long)blockIdx.y * 32;
	for (long y = threadIdx.y; y < 32; y += blockDim.y)
		if (r0 + y < rows && c0 + threadIdx.x < columns)
			tile[y][threadIdx.x] = in[(r0 + y) * columns + c0 + threadIdx.x];
	__syncthreads();
	for (long y = threadIdx.y; y < 32; y += blockDim.y)
		if (c0 + y < columns && r0 + threadIdx.x < rows)
			out[(c0 + y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][y];
}

static void draw_matrix(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 32, 2000000);
	s->s[1] = draw_size(r, 32, at_most(100000, LARGEST / s->s[0]));
	s->threads = 32 * (4 << rng_below(r, 3));
}

static void plan_transpose(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->bytes = 8.0 * (double)n;
	p->block = dim3(32, (unsigned)s->threads / 32);
	p->grid = dim3((unsigned)up(s->s[1], 32), (unsigned)up(s->s[0], 32));
	p->need[X] = p->need[Z] = 4 * n;
}

static void launch_naive(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(transpose_naive, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void launch_tiled(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(transpose_tiled, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_transpose(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long r = 0; r < s->s[0]; r++)
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[c * s->s[0] + r] = m->x[r * s->s[1] + c];
}

static const struct kernel transposes[] = {
	{ "transpose", "transpose_naive", "rows,columns", 800, 0, FLOATS, 0, draw_matrix,
		plan_transpose, launch_naive, oracle_transpose },
	{ "transpose", "transpose_tiled", "rows,columns", 2500, 0, FLOATS, 0, draw_matrix,
		plan_transpose, launch_tiled, oracle_transpose },
};
FAMILY(transpose, transposes);

/* ---- gather and scatter ---- */

/* An index below m from a random word, without a division. */
static __device__ inline long below(uint32_t word, long m)
{
	return (long)__umulhi(word, (unsigned)m);
}

static long below_host(uint32_t word, long m)
{
	return (long)((uint64_t)word * (uint64_t)m >> 32);
}

extern "C" __global__ void gather_random(
	const float *in, const uint32_t *index, float *out, long n, long m)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[below(index[i], m)];
}

/* Whole rows by number, as an embedding does; one block a row. */
extern "C" __global__ void gather_rows(
	const float *table, const uint32_t *index, float *out, long rows, long width, long m)
{
	const long row = blockIdx.x;
	const float *from = table + below(index[row], m) * width;
	for (long c = threadIdx.x; c < width; c += blockDim.x)
		out[row * width + c] = from[c];
}

/* Each element goes to a place of its own: i times an odd number, within a power of two. */
extern "C" __global__ void scatter_spread(const float *in, float *out, long n_pow2, long odd)
{
	const long i = zoo_thread();
	if (i < n_pow2)
		out[(i * odd) & (n_pow2 - 1)] = in[i];
}

static void draw_gather(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->s[1] = draw_size(r, 256, LARGEST);
	s->threads = draw_threads(r);
}

static void draw_rows(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 16, 16384);
	s->s[0] = draw_size(r, 16, at_most(10000000, LARGEST / s->s[1]));
	s->s[2] = draw_size(r, 64, at_most(10000000, LARGEST / s->s[1]));
	s->threads = draw_warps(r);
}

static void draw_scatter(struct rng *r, struct shape *s)
{
	s->s[0] = 1L << (10 + rng_below(r, 22));
	s->s[1] = rng_below(r, 4) ? 2 * rng_below(r, 1L << 20) + 1 : 1 + 2 * rng_below(r, 16);
	s->threads = draw_threads(r);
}

static void plan_gather(const struct shape *s, struct plan *p)
{
	/* A table beyond the caches is read by sectors of 32 bytes. */
	one_each(p, s, 0, s->s[1] > (1L << 23) ? 40 : 12);
	p->need[X] = 4 * s->s[1];
	p->need[I] = p->need[Z] = 4 * s->s[0];
}

static void plan_rows(const struct shape *s, struct plan *p)
{
	const double n = (double)s->s[0] * (double)s->s[1];
	p->bytes = 8 * n + 4 * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)s->s[0]);
	p->need[X] = 4 * s->s[1] * s->s[2];
	p->need[I] = 4 * s->s[0];
	p->need[Z] = 4 * s->s[0] * s->s[1];
}

static void plan_scatter(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void launch_gather(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gather_random, p, m->x, m->i, z_f32(m), s->s[0], s->s[1]);
}

static void launch_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gather_rows, p, m->x, m->i, z_f32(m), s->s[0], s->s[1], s->s[2]);
}

static void launch_scatter(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(scatter_spread, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_gather(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[i] = m->x[below_host(m->i[i], s->s[1])];
}

static void oracle_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++)
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[row * s->s[1] + c] =
				m->x[below_host(m->i[row], s->s[2]) * s->s[1] + c];
}

static void oracle_scatter(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[(long)((uint64_t)i * (uint64_t)s->s[1] % (uint64_t)s->s[0])] = m->x[i];
}

static const struct kernel gathers[] = {
	{ "gather", "gather_random", "n,table", 1500, 0, FLOATS, 0, draw_gather, plan_gather,
		launch_gather, oracle_gather },
	{ "gather", "gather_rows", "rows,width,table_rows", 2500, 0, FLOATS, 0, draw_rows,
		plan_rows, launch_rows, oracle_rows },
	{ "gather", "scatter_spread", "n_pow2,odd", 400, 0, FLOATS, 0, draw_scatter, plan_scatter,
		launch_scatter, oracle_scatter },
};
FAMILY(gather, gathers);
