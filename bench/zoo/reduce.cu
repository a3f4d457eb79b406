/* Kernels whose threads share results: reductions, scans, histograms and atomics, softmax and layer
 * norm. */
#include "zoo.h"

enum { LARGEST = 3000000000L };

/* ---- reduce ---- */

/* One sum a block of `per_block` consecutive elements. */
extern "C" __global__ void reduce_blocks(const float *in, float *sums, long n, long per_block)
{
	__shared__ float shared[32];
	const long first = blockIdx.x * per_block;
	const long end = first + per_block < n ? first + per_block : n;
	float v = 0;
	for (long i = first + threadIdx.x; i < end; i += blockDim.x)
		v += in[i];
	v = block_sum(v, shared);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = v;
}

/* One block a row. */
extern "C" __global__ void reduce_rows(const float *in, float *sums, long rows, long columns)
{
	__shared__ float shared[32];
	const float *row = in + blockIdx.x * columns;
	float v = 0;
	for (long c = threadIdx.x; c < columns; c += blockDim.x)
		v += row[c];
	v = block_sum(v, shared);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = v;
}

/* One thread a column: coalesced, and few threads where columns are few. */
extern "C" __global__ void reduce_columns(const float *in, float *sums, long rows, long columns)
{
	const long c = zoo_thread();
	if (c >= columns)
		return;
	float v = 0;
	for (long r = 0; r < rows; r++)
		v += in[r * columns + c];
	sums[c] = v;
}

static void draw_blocks(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST);
	s->s[1] = draw_size(r, 256, 1L << 20);
	s->threads = draw_warps(r);
}

static void draw_rows(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 16, 1L << 20);
	s->s[0] = draw_size(r, 8, at_most(1L << 22, LARGEST / s->s[1]));
	s->threads = draw_warps(r);
}

static void draw_columns(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 256, 1L << 22);
	s->s[0] = draw_size(r, 8, at_most(1L << 14, LARGEST / s->s[1]));
	s->threads = draw_warps(r);
}

static void plan_blocks(const struct shape *s, struct plan *p)
{
	const long blocks = up(s->s[0], s->s[1]);
	p->flops = (double)s->s[0];
	p->bytes = 4.0 * (double)(s->s[0] + blocks);
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)blocks);
	p->need[X] = 4 * s->s[0];
	p->need[Z] = 4 * blocks;
}

static void plan_rows(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->flops = (double)n;
	p->bytes = 4.0 * (double)(n + s->s[0]);
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)s->s[0]);
	p->need[X] = 4 * n;
	p->need[Z] = 4 * s->s[0];
}

static void plan_columns(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->flops = (double)n;
	p->bytes = 4.0 * (double)(n + s->s[1]);
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[1], s->threads));
	p->need[X] = 4 * n;
	p->need[Z] = 4 * s->s[1];
}

static void launch_blocks(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(reduce_blocks, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void launch_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(reduce_rows, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void launch_columns(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(reduce_columns, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_blocks(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long b = 0; b * s->s[1] < s->s[0]; b++) {
		double sum = 0;
		for (long i = b * s->s[1]; i < at_most(s->s[0], (b + 1) * s->s[1]); i++)
			sum += m->x[i];
		z_f32(m)[b] = (float)sum;
	}
}

static void oracle_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long r = 0; r < s->s[0]; r++) {
		double sum = 0;
		for (long c = 0; c < s->s[1]; c++)
			sum += m->x[r * s->s[1] + c];
		z_f32(m)[r] = (float)sum;
	}
}

static void oracle_columns(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long c = 0; c < s->s[1]; c++) {
		double sum = 0;
		for (long r = 0; r < s->s[0]; r++)
			sum += m->x[r * s->s[1] + c];
		z_f32(m)[c] = (float)sum;
	}
}

static const struct kernel reductions[] = {
	{ "reduce", "reduce_blocks", "n,per_block", 2500, 0, FLOATS, 1e-3, draw_blocks, plan_blocks,
		launch_blocks, oracle_blocks },
	{ "reduce", "reduce_rows", "rows,columns", 2500, 0, FLOATS, 1e-3, draw_rows, plan_rows,
		launch_rows, oracle_rows },
	{ "reduce", "reduce_columns", "rows,columns", 1000, 0, FLOATS, 1e-3, draw_columns,
		plan_columns, launch_columns, oracle_columns },
};
FAMILY(reduce, reductions);

/* ---- scan ---- */

/* Inclusive sums within blocks, one element a thread. */
extern "C" __global__ void scan_blocks(const uint32_t *in, uint32_t *out, long n)
{
	__shared__ uint32_t totals[32];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const long i = zoo_thread();
	uint32_t v = i < n ? in[i] : 0;
	for (int by = 1; by < 32; by *= 2) {
		const uint32_t left = __shfl_up_sync(0xffffffffu, v, by);
		if (lane >= by)
			v += left;
	}
	if (lane == 31)
		totals[warp] = v;
	__syncthreads();
	uint32_t before = 0;
	for (int w = 0; w < warp && w < warps; w++)
		before += totals[w];
	if (i < n)
		out[i] = v + before;
}

/* The other pass of a scan: adds a block's offset to `per_block` elements. */
extern "C" __global__ void scan_add(
	const uint32_t *offsets, const uint32_t *in, uint32_t *out, long n, long per_block)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[i] + offsets[i / per_block];
}

static void draw_scan(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->threads = draw_warps(r);
}

static void draw_add(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->s[1] = 1L << (5 + rng_below(r, 10));
	s->threads = draw_warps(r);
}

static void plan_scan(const struct shape *s, struct plan *p)
{
	p->flops = (double)s->s[0];
	p->bytes = 8.0 * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[I] = p->need[Z] = 4 * s->s[0];
}

static void plan_add(const struct shape *s, struct plan *p)
{
	plan_scan(s, p);
	p->bytes += 4.0 * (double)up(s->s[0], s->s[1]);
	p->need[Y] = 4 * up(s->s[0], s->s[1]);
}

static void launch_scan(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(scan_blocks, p, m->i, z_u32(m), s->s[0]);
}

static void launch_add(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(scan_add, p, (const uint32_t *)m->y, m->i, z_u32(m), s->s[0], s->s[1]);
}

static void oracle_scan(const struct plan *p, const struct shape *s, const struct arena *m)
{
	uint32_t sum = 0;
	for (long i = 0; i < s->s[0]; i++) {
		sum = m->i[i] + (i % s->threads ? sum : 0);
		z_u32(m)[i] = sum;
	}
}

static void oracle_add(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[i] = m->i[i] + ((const uint32_t *)m->y)[i / s->s[1]];
}

static const struct kernel scans[] = {
	{ "scan", "scan_blocks", "n", 2000, 0, WORDS, 0, draw_scan, plan_scan, launch_scan,
		oracle_scan },
	{ "scan", "scan_add", "n,per_block", 2000, 0, WORDS, 0, draw_add, plan_add, launch_add,
		oracle_add },
};
FAMILY(scan, scans);

/* ---- histogram and atomics ---- */

/* Every element is one atomic in device memory; few bins are contended. */
extern "C" __global__ void histogram_global(const uint32_t *in, uint32_t *bins, long n, int shift)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		atomicAdd(&bins[in[i] >> shift], 1u);
}

/* A table of 256 bins in each block's shared memory, added up at the end. */
extern "C" __global__ void histogram_shared(const uint32_t *in, uint32_t *bins, long n)
{
	__shared__ uint32_t mine[256];
	for (int b = threadIdx.x; b < 256; b += blockDim.x)
		mine[b] = 0;
	__syncthreads();
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		atomicAdd(&mine[in[i] >> 24], 1u);
	__syncthreads();
	for (int b = threadIdx.x; b < 256; b += blockDim.x)
		atomicAdd(&bins[b], mine[b]);
}

/* All threads add to one word in `places`: 1 is the worst contention, many is none. */
extern "C" __global__ void atomic_places(uint32_t *to, long n, long places)
{
	const long i = zoo_thread();
	if (i < n)
		atomicAdd(&to[i % places], 1u);
}

/* The last step of many reductions: one atomic a block. */
extern "C" __global__ void reduce_atomic(const float *in, float *sum, long n)
{
	__shared__ float shared[32];
	float v = 0;
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		v += in[i];
	v = block_sum(v, shared);
	if (threadIdx.x == 0)
		atomicAdd(sum, v);
}

static void draw_global(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->s[1] = 12 + rng_below(r, 20); /* from 2^20 bins down to two */
	s->threads = draw_warps(r);
}

static void draw_places(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 28);
	s->s[1] = draw_size(r, 1, 1L << 24);
	s->threads = draw_warps(r);
}

static void draw_long(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST);
	s->threads = draw_warps(r);
}

static void plan_stride(const struct shape *s, struct plan *p)
{
	p->flops = (double)s->s[0];
	p->bytes = 4.0 * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3(stride_blocks(s->s[0], s->threads));
}

static void plan_global(const struct shape *s, struct plan *p)
{
	plan_stride(s, p);
	p->need[I] = 4 * s->s[0];
	p->need[Z] = 4L << (32 - s->s[1]);
	p->bytes += (double)p->need[Z];
}

static void plan_shared(const struct shape *s, struct plan *p)
{
	plan_stride(s, p);
	p->need[I] = 4 * s->s[0];
	p->need[Z] = 4 * 256;
}

static void plan_places(const struct shape *s, struct plan *p)
{
	plan_stride(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[Z] = 4 * s->s[1];
	p->bytes = 8.0 * (double)at_most(s->s[0], s->s[1]);
}

static void plan_atomic(const struct shape *s, struct plan *p)
{
	plan_stride(s, p);
	p->need[X] = 4 * s->s[0];
	p->need[Z] = 4;
}

static void launch_global(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(histogram_global, p, m->i, z_u32(m), s->s[0], (int)s->s[1]);
}

static void launch_shared(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(histogram_shared, p, m->i, z_u32(m), s->s[0]);
}

static void launch_places(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(atomic_places, p, z_u32(m), s->s[0], s->s[1]);
}

static void launch_atomic(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(reduce_atomic, p, m->x, z_f32(m), s->s[0]);
}

static void oracle_global(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[m->i[i] >> s->s[1]]++;
}

static void oracle_shared(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[m->i[i] >> 24]++;
}

static void oracle_places(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[i % s->s[1]]++;
}

static void oracle_atomic(const struct plan *p, const struct shape *s, const struct arena *m)
{
	double sum = *z_f32(m);
	for (long i = 0; i < s->s[0]; i++)
		sum += m->x[i];
	*z_f32(m) = (float)sum;
}

static const struct kernel histograms[] = {
	{ "histogram", "histogram_global", "n,shift", 300, 0, WORDS, 0, draw_global, plan_global,
		launch_global, oracle_global },
	{ "histogram", "histogram_shared", "n", 1500, 0, WORDS, 0, draw_scan, plan_shared,
		launch_shared, oracle_shared },
	{ "histogram", "atomic_places", "n,places", 2000, 100, WORDS, 0, draw_places, plan_places,
		launch_places, oracle_places },
	{ "histogram", "reduce_atomic", "n", 3000, 0, FLOATS, 1e-3, draw_long, plan_atomic,
		launch_atomic, oracle_atomic },
};
FAMILY(histogram, histograms);

/* ---- softmax ---- */

extern "C" __global__ void softmax_block(const float *in, float *out, long rows, long columns)
{
	__shared__ float shared[32];
	const float *row = in + blockIdx.x * columns;
	float most = -INFINITY, sum = 0;
	for (long c = threadIdx.x; c < columns; c += blockDim.x)
		most = fmaxf(most, row[c]);
	most = block_max(most, shared);
	for (long c = threadIdx.x; c < columns; c += blockDim.x)
		sum += __expf(row[c] - most);
	sum = block_sum(sum, shared);
	for (long c = threadIdx.x; c < columns; c += blockDim.x)
		out[blockIdx.x * columns + c] = __expf(row[c] - most) / sum;
}

/* One warp a row. */
extern "C" __global__ void softmax_warp(const float *in, float *out, long rows, long columns)
{
	const long row = zoo_thread() / 32;
	const int lane = threadIdx.x % 32;
	if (row >= rows)
		return;
	const float *from = in + row * columns;
	float most = -INFINITY, sum = 0;
	for (long c = lane; c < columns; c += 32)
		most = fmaxf(most, from[c]);
	most = warp_max(most);
	for (long c = lane; c < columns; c += 32)
		sum += __expf(from[c] - most);
	sum = warp_sum(sum);
	for (long c = lane; c < columns; c += 32)
		out[row * columns + c] = __expf(from[c] - most) / sum;
}

static void draw_short_rows(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 8, 4096);
	s->s[0] = draw_size(r, 64, at_most(1L << 24, LARGEST / s->s[1]));
	s->threads = draw_warps(r);
}

static void plan_softmax(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->flops = 5.0 * (double)n;
	p->bytes = 8.0 * (double)n;
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)s->s[0]);
	p->need[X] = p->need[Z] = 4 * n;
}

static void plan_softmax_warp(const struct shape *s, struct plan *p)
{
	plan_softmax(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads / 32));
}

static void launch_softmax(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(softmax_block, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void launch_softmax_warp(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(softmax_warp, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_softmax(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long r = 0; r < s->s[0]; r++) {
		const float *row = m->x + r * s->s[1];
		double sum = 0;
		for (long c = 0; c < s->s[1]; c++)
			sum += exp(row[c]);
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[r * s->s[1] + c] = (float)(exp(row[c]) / sum);
	}
}

static const struct kernel softmaxes[] = {
	{ "softmax", "softmax_block", "rows,columns", 1800, 0, FLOATS, 1e-4, draw_rows,
		plan_softmax, launch_softmax, oracle_softmax },
	{ "softmax", "softmax_warp", "rows,columns", 1800, 0, FLOATS, 1e-4, draw_short_rows,
		plan_softmax_warp, launch_softmax_warp, oracle_softmax },
};
FAMILY(softmax, softmaxes);

/* ---- layer norm ---- */

extern "C" __global__ void layernorm_block(
	const float *in, const float *scale, float *out, long rows, long columns, float epsilon)
{
	__shared__ float shared[32];
	const float *row = in + blockIdx.x * columns;
	float sum = 0, square = 0;
	for (long c = threadIdx.x; c < columns; c += blockDim.x) {
		sum += row[c];
		square += row[c] * row[c];
	}
	const float mean = block_sum(sum, shared) / (float)columns;
	const float var = block_sum(square, shared) / (float)columns - mean * mean;
	const float by = rsqrtf(var + epsilon);
	for (long c = threadIdx.x; c < columns; c += blockDim.x)
		out[blockIdx.x * columns + c] = (row[c] - mean) * by * scale[c];
}

extern "C" __global__ void rmsnorm_warp(
	const float *in, const float *scale, float *out, long rows, long columns, float epsilon)
{
	const long row = zoo_thread() / 32;
	const int lane = threadIdx.x % 32;
	if (row >= rows)
		return;
	const float *from = in + row * columns;
	float square = 0;
	for (long c = lane; c < columns; c += 32)
		square += from[c] * from[c];
	const float by = rsqrtf(warp_sum(square) / (float)columns + epsilon);
	for (long c = lane; c < columns; c += 32)
		out[row * columns + c] = from[c] * by * scale[c];
}

static void plan_norm(const struct shape *s, struct plan *p)
{
	plan_softmax(s, p);
	p->flops = 7.0 * (double)s->s[0] * (double)s->s[1];
	p->bytes += 4.0 * (double)s->s[1];
	p->need[Y] = 4 * s->s[1];
}

static void plan_norm_warp(const struct shape *s, struct plan *p)
{
	plan_norm(s, p);
	p->flops = 4.0 * (double)s->s[0] * (double)s->s[1];
	p->grid = dim3((unsigned)up(s->s[0], s->threads / 32));
}

static void launch_norm(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(layernorm_block, p, m->x, m->y, z_f32(m), s->s[0], s->s[1], 1e-3f);
}

static void launch_norm_warp(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(rmsnorm_warp, p, m->x, m->y, z_f32(m), s->s[0], s->s[1], 1e-3f);
}

static void norm_row(const float *in, const float *scale, float *out, long n, bool centred)
{
	double sum = 0, square = 0;
	for (long c = 0; c < n; c++) {
		sum += in[c];
		square += (double)in[c] * in[c];
	}
	const double mean = centred ? sum / (double)n : 0;
	const double by = 1 / sqrt(square / (double)n - mean * mean + 1e-3);
	for (long c = 0; c < n; c++)
		out[c] = (float)((in[c] - mean) * by * scale[c]);
}

static void oracle_norm(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long r = 0; r < s->s[0]; r++)
		norm_row(m->x + r * s->s[1], m->y, z_f32(m) + r * s->s[1], s->s[1], true);
}

static void oracle_rmsnorm(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long r = 0; r < s->s[0]; r++)
		norm_row(m->x + r * s->s[1], m->y, z_f32(m) + r * s->s[1], s->s[1], false);
}

static const struct kernel layernorms[] = {
	{ "layernorm", "layernorm_block", "rows,columns", 1800, 0, FLOATS, 1e-3, draw_rows,
		plan_norm, launch_norm, oracle_norm },
	{ "layernorm", "rmsnorm_warp", "rows,columns", 2000, 0, FLOATS, 1e-3, draw_short_rows,
		plan_norm_warp, launch_norm_warp, oracle_rmsnorm },
};
FAMILY(layernorm, layernorms);
