/* Kernels whose threads share results: reductions, scans, histograms and atomics, softmax and layer
 * norm. */
#include "zoo.h"

enum { LARGEST = 3000000000L };

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

/* One sum of T x ITEMS elements, by T threads. */
template <int T, int ITEMS>
static __device__ __forceinline__ void reduce_chunk(const float *in, float *sums, long n)
{
	__shared__ float shared[32];
	const long first = (long)blockIdx.x * T * ITEMS + threadIdx.x;
	float v = 0;
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		v += first + k * T < n ? in[first + k * T] : 0;
	v = block_sum(v, shared);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = v;
}

/* One block of T threads a row of vectors. */
template <int T, int V>
static __device__ __forceinline__ void reduce_vectors(
	const float *in, float *sums, long rows, long columns)
{
	__shared__ float shared[32];
	const vec<float, V> *row = (const vec<float, V> *)in + blockIdx.x * columns;
	float v = 0;
	for (long c = threadIdx.x; c < columns; c += T) {
		const vec<float, V> a = row[c];
#pragma unroll
		for (int e = 0; e < V; e++)
			v += a.v[e];
	}
	v = block_sum(v, shared);
	if (threadIdx.x == 0)
		sums[blockIdx.x] = v;
}

/* LANES neighbours of a warp a row. */
template <int LANES>
static __device__ __forceinline__ void reduce_by_lanes(
	const float *in, float *sums, long rows, long columns)
{
	const long row = zoo_thread() / LANES;
	const int lane = threadIdx.x % LANES;
	float v = 0;
	if (row < rows)
		for (long c = lane; c < columns; c += LANES)
			v += in[row * columns + c];
	v = lanes_sum<LANES>(v);
	if (row < rows && lane == 0)
		sums[row] = v;
}

/* 32 columns by a block of 32 x DEEP. */
template <int DEEP>
static __device__ __forceinline__ void reduce_deep(
	const float *in, float *sums, long rows, long columns)
{
	__shared__ float part[DEEP][32];
	const int x = threadIdx.x, y = threadIdx.y;
	const long c = (long)blockIdx.x * 32 + x;
	float v = 0;
	if (c < columns)
		for (long r = y; r < rows; r += DEEP)
			v += in[r * columns + c];
	part[y][x] = v;
	__syncthreads();
	if (y || c >= columns)
		return;
	for (int k = 1; k < DEEP; k++)
		v += part[k][x];
	sums[c] = v;
}

#define CHUNKS(ROW)                                                                                \
	ROW(reduce_blocks_128x4, 128, 4, 2200)                                                     \
	ROW(reduce_blocks_128x16, 128, 16, 2800)                                                   \
	ROW(reduce_blocks_256x4, 256, 4, 2400)                                                     \
	ROW(reduce_blocks_256x8, 256, 8, 2800)                                                     \
	ROW(reduce_blocks_256x16, 256, 16, 3000)                                                   \
	ROW(reduce_blocks_512x8, 512, 8, 2800)                                                     \
	ROW(reduce_blocks_1024x4, 1024, 4, 2500)
#define VECTOR_ROWS(ROW)                                                                           \
	ROW(reduce_rows_128x1, 128, 1, 2500)                                                       \
	ROW(reduce_rows_128x4, 128, 4, 3000)                                                       \
	ROW(reduce_rows_256x1, 256, 1, 2500)                                                       \
	ROW(reduce_rows_256x2, 256, 2, 2800)                                                       \
	ROW(reduce_rows_256x4, 256, 4, 3000)                                                       \
	ROW(reduce_rows_512x4, 512, 4, 3000)
#define LANE_ROWS(ROW)                                                                             \
	ROW(reduce_lanes_4, 4, 1200)                                                               \
	ROW(reduce_lanes_8, 8, 1800)                                                               \
	ROW(reduce_lanes_16, 16, 2200)                                                             \
	ROW(reduce_lanes_32, 32, 2500)
#define DEEP_COLUMNS(ROW)                                                                          \
	ROW(reduce_columns_4, 4, 1500)                                                             \
	ROW(reduce_columns_8, 8, 1800)                                                             \
	ROW(reduce_columns_16, 16, 2000)                                                           \
	ROW(reduce_columns_32, 32, 2000)

#define CHUNK(name, t, items, gbs)                                                                 \
	extern "C" __global__ void __launch_bounds__(t) name(const float *in, float *sums, long n) \
	{                                                                                          \
		reduce_chunk<t, items>(in, sums, n);                                               \
	}
#define CHUNK_ROW(name, t, items, gbs)                                                             \
	{ "reduce", #name, "n", gbs, 0, FLOATS, 1e-3, draw_blocks, plan_chunk<t, (t) * (items)>,   \
		call_xz<name, 1>, oracle_chunk<(t) * (items)> },
/* A kernel of rows and columns, of a template with these arguments. */
#define ROWS_KERNEL(name, how, ...)                                                                \
	extern "C" __global__ void name(const float *in, float *out, long rows, long columns)      \
	{                                                                                          \
		how<__VA_ARGS__>(in, out, rows, columns);                                          \
	}
#define VECTOR_ROWS_KERNEL(name, t, v, gbs) ROWS_KERNEL(name, reduce_vectors, t, v)
#define VECTOR_ROWS_ROW(name, t, v, gbs)                                                           \
	{ "reduce", #name, "rows,vectors", gbs, 0, FLOATS, 1e-3, draw_vector_rows<v>,              \
		plan_vector_rows<t, v>, call_xz<name, 2>, oracle_vector_rows<v> },
#define LANE_ROWS_KERNEL(name, lanes, gbs) ROWS_KERNEL(name, reduce_by_lanes, lanes)
#define LANE_ROWS_ROW(name, lanes, gbs)                                                            \
	{ "reduce", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_short_rows,                  \
		by_lanes<plan_rows, lanes>, call_xz<name, 2>, oracle_rows },
#define DEEP_KERNEL(name, deep, gbs) ROWS_KERNEL(name, reduce_deep, deep)
#define DEEP_ROW(name, deep, gbs)                                                                  \
	{ "reduce", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_columns, plan_deep<deep>,    \
		call_xz<name, 2>, oracle_columns },

CHUNKS(CHUNK)
VECTOR_ROWS(VECTOR_ROWS_KERNEL)
LANE_ROWS(LANE_ROWS_KERNEL)
DEEP_COLUMNS(DEEP_KERNEL)

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

/* The same plan with blocks of T threads. */
template <auto PLAN, int T> static void by_threads(const struct shape *s, struct plan *p)
{
	PLAN(s, p);
	p->block = dim3(T);
}

/* The same with LANES threads a row. */
template <auto PLAN, int LANES> static void by_lanes(const struct shape *s, struct plan *p)
{
	PLAN(s, p);
	p->grid = dim3((unsigned)up(s->s[0] * LANES, s->threads));
}

template <int T, int PER> static void plan_chunk(const struct shape *s, struct plan *p)
{
	const struct shape blocks = { { s->s[0], PER }, T };
	plan_blocks(&blocks, p);
}

template <int V> static void draw_vector_rows(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 16, (1L << 20) / V);
	s->s[0] = draw_size(r, 8, at_most(1L << 22, LARGEST / V / s->s[1]));
}

static void draw_short_rows(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 8, 4096);
	s->s[0] = draw_size(r, 64, at_most(1L << 24, LARGEST / s->s[1]));
	s->threads = draw_warps(r);
}

template <int T, int V> static void plan_vector_rows(const struct shape *s, struct plan *p)
{
	const struct shape floats = { { s->s[0], s->s[1] * V }, T };
	plan_rows(&floats, p);
}

template <int DEEP> static void plan_deep(const struct shape *s, struct plan *p)
{
	plan_columns(s, p);
	p->block = dim3(32, DEEP);
	p->grid = dim3((unsigned)up(s->s[1], 32));
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

template <int PER>
static void oracle_chunk(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const struct shape blocks = { { s->s[0], PER } };
	oracle_blocks(p, &blocks, m);
}

template <int V>
static void oracle_vector_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const struct shape floats = { { s->s[0], s->s[1] * V } };
	oracle_rows(p, &floats, m);
}

static const struct kernel reductions[] = {
	{ "reduce", "reduce_blocks", "n,per_block", 2500, 0, FLOATS, 1e-3, draw_blocks, plan_blocks,
		launch_blocks, oracle_blocks },
	{ "reduce", "reduce_rows", "rows,columns", 2500, 0, FLOATS, 1e-3, draw_rows, plan_rows,
		launch_rows, oracle_rows },
	{ "reduce", "reduce_columns", "rows,columns", 1000, 0, FLOATS, 1e-3, draw_columns,
		plan_columns, launch_columns, oracle_columns },
	CHUNKS(CHUNK_ROW)
	VECTOR_ROWS(VECTOR_ROWS_ROW)
	LANE_ROWS(LANE_ROWS_ROW)
	DEEP_COLUMNS(DEEP_ROW)
};
FAMILY(reduce, reductions);

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

/* T threads of a block, ITEMS consecutive elements each. */
template <int T, int ITEMS>
static __device__ __forceinline__ void scan_items(const uint32_t *in, uint32_t *out, long n)
{
	__shared__ uint32_t totals[T / 32];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const long first = zoo_thread() * ITEMS;
	uint32_t v[ITEMS], sum = 0;
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		v[k] = sum += first + k < n ? in[first + k] : 0;
	const uint32_t mine = sum;
	for (int by = 1; by < 32; by *= 2) {
		const uint32_t left = __shfl_up_sync(0xffffffffu, sum, by);
		if (lane >= by)
			sum += left;
	}
	if (lane == 31)
		totals[warp] = sum;
	__syncthreads();
	uint32_t before = sum - mine;
	for (int w = 0; w < warp; w++)
		before += totals[w];
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (first + k < n)
			out[first + k] = v[k] + before;
}

/* As scan_add, ITEMS elements a thread. */
template <int ITEMS>
static __device__ __forceinline__ void add_items(
	const uint32_t *offsets, const uint32_t *in, uint32_t *out, long n, long per_block)
{
	const long first = (long)blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
#pragma unroll
	for (int k = 0; k < ITEMS; k++) {
		const long i = first + k * (int)blockDim.x;
		if (i < n)
			out[i] = in[i] + offsets[i / per_block];
	}
}

#define SCANS(ROW)                                                                                 \
	ROW(scan_blocks_128x1, 128, 1, 2000)                                                       \
	ROW(scan_blocks_128x4, 128, 4, 2300)                                                       \
	ROW(scan_blocks_256x1, 256, 1, 2000)                                                       \
	ROW(scan_blocks_256x4, 256, 4, 2300)                                                       \
	ROW(scan_blocks_256x8, 256, 8, 1800)                                                       \
	ROW(scan_blocks_512x4, 512, 4, 2300)                                                       \
	ROW(scan_blocks_1024x2, 1024, 2, 2000)
#define SCAN_ADDS(ROW)                                                                             \
	ROW(scan_add_1, 1, 2000)                                                                   \
	ROW(scan_add_2, 2, 2200)                                                                   \
	ROW(scan_add_4, 4, 2400)                                                                   \
	ROW(scan_add_8, 8, 2400)

#define SCAN(name, t, items, gbs)                                                                  \
	extern "C" __global__ void __launch_bounds__(t)                                            \
		name(const uint32_t *in, uint32_t *out, long n)                                    \
	{                                                                                          \
		scan_items<t, items>(in, out, n);                                                  \
	}
#define SCAN_ROW(name, t, items, gbs)                                                              \
	{ "scan", #name, "n", gbs, 0, WORDS, 0, draw_scan, plan_scan_items<t, items>,              \
		call_iz<name, 1>, oracle_scan_items<(t) * (items)> },
#define SCAN_ADD(name, items, gbs)                                                                 \
	extern "C" __global__ void name(const uint32_t *offsets, const uint32_t *in,               \
		uint32_t *out, long n, long per_block)                                             \
	{                                                                                          \
		add_items<items>(offsets, in, out, n, per_block);                                  \
	}
#define SCAN_ADD_ROW(name, items, gbs)                                                             \
	{ "scan", #name, "n,per_block", gbs, 0, WORDS, 0, draw_add, plan_add_items<items>,         \
		call_add<name>, oracle_add },

SCANS(SCAN)
SCAN_ADDS(SCAN_ADD)

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

template <int T, int ITEMS> static void plan_scan_items(const struct shape *s, struct plan *p)
{
	plan_scan(s, p);
	p->block = dim3(T);
	p->grid = dim3((unsigned)up(s->s[0], T * ITEMS));
}

template <int ITEMS> static void plan_add_items(const struct shape *s, struct plan *p)
{
	plan_add(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads * ITEMS));
}

template <auto KERNEL>
static void call_add(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, 2>(p, s, (const uint32_t *)m->y, m->i, z_u32(m));
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

template <int PER>
static void oracle_scan_items(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const struct shape blocks = { { s->s[0] }, PER };
	oracle_scan(p, &blocks, m);
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
	SCANS(SCAN_ROW)
	SCAN_ADDS(SCAN_ADD_ROW)
};
FAMILY(scan, scans);

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
static __device__ __forceinline__ void add_to_one(const float *in, float *sum, long n)
{
	__shared__ float shared[32];
	float v = 0;
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		v += in[i];
	v = block_sum(v, shared);
	if (threadIdx.x == 0)
		atomicAdd(sum, v);
}

extern "C" __global__ void reduce_atomic(const float *in, float *sum, long n)
{
	add_to_one(in, sum, n);
}

/* 2^LOG bins, T threads a block. */
template <int LOG, int T>
static __device__ __forceinline__ void histogram_bins(const uint32_t *in, uint32_t *bins, long n)
{
	constexpr int BINS = 1 << LOG;
	__shared__ uint32_t mine[BINS];
	for (int b = threadIdx.x; b < BINS; b += T)
		mine[b] = 0;
	__syncthreads();
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		atomicAdd(&mine[in[i] >> (32 - LOG)], 1u);
	__syncthreads();
	for (int b = threadIdx.x; b < BINS; b += T)
		atomicAdd(&bins[b], mine[b]);
}

template <int LOG>
static __device__ __forceinline__ void histogram_direct(const uint32_t *in, uint32_t *bins, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		atomicAdd(&bins[in[i] >> (32 - LOG)], 1u);
}

#define HISTOGRAMS(ROW)                                                                            \
	ROW(histogram_shared_64x256, bins, plan_bins_of, 1000, 6, 256)                             \
	ROW(histogram_shared_256x128, bins, plan_bins_of, 1500, 8, 128)                            \
	ROW(histogram_shared_256x256, bins, plan_bins_of, 1500, 8, 256)                            \
	ROW(histogram_shared_256x512, bins, plan_bins_of, 1500, 8, 512)                            \
	ROW(histogram_shared_1024x256, bins, plan_bins_of, 1500, 10, 256)                          \
	ROW(histogram_shared_1024x512, bins, plan_bins_of, 1500, 10, 512)                          \
	ROW(histogram_shared_4096x512, bins, plan_bins_of, 1500, 12, 512)                          \
	ROW(histogram_global_64, direct, plan_bins, 200, 6)                                        \
	ROW(histogram_global_256, direct, plan_bins, 250, 8)                                       \
	ROW(histogram_global_1024, direct, plan_bins, 300, 10)                                     \
	ROW(histogram_global_16384, direct, plan_bins, 300, 14)                                    \
	ROW(histogram_global_262144, direct, plan_bins, 300, 18)
#define ATOMICS(ROW)                                                                               \
	ROW(reduce_atomic_128, 128, 2800)                                                          \
	ROW(reduce_atomic_256, 256, 3000)                                                          \
	ROW(reduce_atomic_512, 512, 3000)                                                          \
	ROW(reduce_atomic_1024, 1024, 3000)

#define HISTOGRAM(name, how, plan, gbs, ...)                                                       \
	extern "C" __global__ void name(const uint32_t *in, uint32_t *bins, long n)                \
	{                                                                                          \
		histogram_##how<__VA_ARGS__>(in, bins, n);                                         \
	}
#define HISTOGRAM_ROW(name, how, plan, gbs, ...)                                                   \
	{ "histogram", #name, "n", gbs, 0, WORDS, 0, draw_scan, plan<__VA_ARGS__>,                 \
		call_iz<name, 1>, oracle_bins },
#define ATOMIC(name, t, gbs)                                                                       \
	extern "C" __global__ void __launch_bounds__(t) name(const float *in, float *sum, long n)  \
	{                                                                                          \
		add_to_one(in, sum, n);                                                            \
	}
#define ATOMIC_ROW(name, t, gbs)                                                                   \
	{ "histogram", #name, "n", gbs, 0, FLOATS, 1e-3, draw_long, plan_atomic_of<t>,             \
		call_xz<name, 1>, oracle_atomic },

HISTOGRAMS(HISTOGRAM)
ATOMICS(ATOMIC)

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

template <int LOG> static void plan_bins(const struct shape *s, struct plan *p)
{
	const struct shape shifted = { { s->s[0], 32 - LOG }, s->threads };
	plan_global(&shifted, p);
}

template <int LOG, int T> static void plan_bins_of(const struct shape *s, struct plan *p)
{
	const struct shape threads = { { s->s[0] }, T };
	plan_bins<LOG>(&threads, p);
}

template <int T> static void plan_atomic_of(const struct shape *s, struct plan *p)
{
	const struct shape threads = { { s->s[0] }, T };
	plan_atomic(&threads, p);
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

static void oracle_bins(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[(uint64_t)m->i[i] * (uint64_t)(p->need[Z] / 4) >> 32]++;
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
	HISTOGRAMS(HISTOGRAM_ROW)
	ATOMICS(ATOMIC_ROW)
};
FAMILY(histogram, histograms);

static __device__ __forceinline__ void softmax_of_block(
	const float *in, float *out, long rows, long columns)
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

extern "C" __global__ void softmax_block(const float *in, float *out, long rows, long columns)
{
	softmax_of_block(in, out, rows, columns);
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

/* LANES neighbours of a warp a row; those beyond the last row take part in shuffles. */
template <int LANES>
static __device__ __forceinline__ void softmax_by_lanes(
	const float *in, float *out, long rows, long columns)
{
	const long row = zoo_thread() / LANES;
	const int lane = threadIdx.x % LANES;
	const long end = row < rows ? columns : 0;
	const float *from = in + row * columns;
	float most = -INFINITY, sum = 0;
	for (long c = lane; c < end; c += LANES)
		most = fmaxf(most, from[c]);
	most = lanes_max<LANES>(most);
	for (long c = lane; c < end; c += LANES)
		sum += __expf(from[c] - most);
	sum = lanes_sum<LANES>(sum);
	for (long c = lane; c < end; c += LANES)
		out[row * columns + c] = __expf(from[c] - most) / sum;
}

/* A row of at most T x ITEMS in the registers of a block: read once. */
template <int T, int ITEMS>
static __device__ __forceinline__ void softmax_kept(
	const float *in, float *out, long rows, long columns)
{
	__shared__ float shared[32];
	const long row = blockIdx.x * columns;
	float v[ITEMS], most = -INFINITY, sum = 0;
#pragma unroll
	for (int k = 0; k < ITEMS; k++) {
		const int c = k * T + threadIdx.x;
		v[k] = c < columns ? in[row + c] : -INFINITY;
		most = fmaxf(most, v[k]);
	}
	most = block_max(most, shared);
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		sum += v[k] = __expf(v[k] - most);
	sum = block_sum(sum, shared);
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (k * T + (int)threadIdx.x < columns)
			out[row + k * T + threadIdx.x] = v[k] / sum;
}

#define SOFTMAX_BLOCKS(ROW)                                                                        \
	ROW(softmax_block_64, 64, 1500)                                                            \
	ROW(softmax_block_128, 128, 1800)                                                          \
	ROW(softmax_block_256, 256, 1800)                                                          \
	ROW(softmax_block_512, 512, 1800)                                                          \
	ROW(softmax_block_1024, 1024, 1800)
#define SOFTMAX_LANES(ROW)                                                                         \
	ROW(softmax_lanes_4, 4, 800)                                                               \
	ROW(softmax_lanes_8, 8, 1200)                                                              \
	ROW(softmax_lanes_16, 16, 1500)                                                            \
	ROW(softmax_lanes_32, 32, 1800)
#define SOFTMAX_KEPT(ROW)                                                                          \
	ROW(softmax_kept_64x4, 64, 4, 1800)                                                        \
	ROW(softmax_kept_128x4, 128, 4, 2000)                                                      \
	ROW(softmax_kept_128x8, 128, 8, 2200)                                                      \
	ROW(softmax_kept_256x4, 256, 4, 2200)                                                      \
	ROW(softmax_kept_256x8, 256, 8, 2200)                                                      \
	ROW(softmax_kept_512x4, 512, 4, 2200)

#define SOFTMAX_BLOCK(name, t, gbs)                                                                \
	extern "C" __global__ void __launch_bounds__(t)                                            \
		name(const float *in, float *out, long rows, long columns)                         \
	{                                                                                          \
		softmax_of_block(in, out, rows, columns);                                          \
	}
#define SOFTMAX_BLOCK_ROW(name, t, gbs)                                                            \
	{ "softmax", #name, "rows,columns", gbs, 0, FLOATS, 1e-4, draw_rows,                       \
		by_threads<plan_softmax, t>, call_xz<name, 2>, oracle_softmax },
#define SOFTMAX_LANES_KERNEL(name, lanes, gbs) ROWS_KERNEL(name, softmax_by_lanes, lanes)
#define SOFTMAX_LANES_ROW(name, lanes, gbs)                                                        \
	{ "softmax", #name, "rows,columns", gbs, 0, FLOATS, 1e-4, draw_short_rows,                 \
		by_lanes<plan_softmax, lanes>, call_xz<name, 2>, oracle_softmax },
#define SOFTMAX_KEPT_KERNEL(name, t, items, gbs) ROWS_KERNEL(name, softmax_kept, t, items)
#define SOFTMAX_KEPT_ROW(name, t, items, gbs)                                                      \
	{ "softmax", #name, "rows,columns", gbs, 0, FLOATS, 1e-4, draw_kept<(t) * (items)>,        \
		by_threads<plan_softmax, t>, call_xz<name, 2>, oracle_softmax },

SOFTMAX_BLOCKS(SOFTMAX_BLOCK)
SOFTMAX_LANES(SOFTMAX_LANES_KERNEL)
SOFTMAX_KEPT(SOFTMAX_KEPT_KERNEL)

/* Rows that fit into the registers of a block, with more than a quarter of them in use. */
template <int MOST> static void draw_kept(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, MOST / 4, MOST);
	s->s[0] = draw_size(r, 8, at_most(1L << 24, LARGEST / s->s[1]));
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
	SOFTMAX_BLOCKS(SOFTMAX_BLOCK_ROW)
	SOFTMAX_LANES(SOFTMAX_LANES_ROW)
	SOFTMAX_KEPT(SOFTMAX_KEPT_ROW)
};
FAMILY(softmax, softmaxes);

static __device__ __forceinline__ void norm_of_block(
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

extern "C" __global__ void layernorm_block(
	const float *in, const float *scale, float *out, long rows, long columns, float epsilon)
{
	norm_of_block(in, scale, out, rows, columns, epsilon);
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

template <int LANES>
static __device__ __forceinline__ void rmsnorm_by_lanes(
	const float *in, const float *scale, float *out, long rows, long columns, float epsilon)
{
	const long row = zoo_thread() / LANES;
	const int lane = threadIdx.x % LANES;
	const long end = row < rows ? columns : 0;
	const float *from = in + row * columns;
	float square = 0;
	for (long c = lane; c < end; c += LANES)
		square += from[c] * from[c];
	const float by = rsqrtf(lanes_sum<LANES>(square) / (float)columns + epsilon);
	for (long c = lane; c < end; c += LANES)
		out[row * columns + c] = from[c] * by * scale[c];
}

/* A row of at most T x ITEMS in the registers of a block. */
template <int T, int ITEMS>
static __device__ __forceinline__ void norm_kept(
	const float *in, const float *scale, float *out, long rows, long columns, float epsilon)
{
	__shared__ float shared[32];
	const long row = blockIdx.x * columns;
	float v[ITEMS], sum = 0, square = 0;
#pragma unroll
	for (int k = 0; k < ITEMS; k++) {
		const int c = k * T + threadIdx.x;
		v[k] = c < columns ? in[row + c] : 0;
		sum += v[k];
		square += v[k] * v[k];
	}
	const float mean = block_sum(sum, shared) / (float)columns;
	const float var = block_sum(square, shared) / (float)columns - mean * mean;
	const float by = rsqrtf(var + epsilon);
#pragma unroll
	for (int k = 0; k < ITEMS; k++) {
		const int c = k * T + threadIdx.x;
		if (c < columns)
			out[row + c] = (v[k] - mean) * by * scale[c];
	}
}

#define NORM_BLOCKS(ROW)                                                                           \
	ROW(layernorm_block_64, 64, 1500)                                                          \
	ROW(layernorm_block_128, 128, 1800)                                                        \
	ROW(layernorm_block_256, 256, 1800)                                                        \
	ROW(layernorm_block_512, 512, 1800)                                                        \
	ROW(layernorm_block_1024, 1024, 1800)
#define NORM_LANES(ROW)                                                                            \
	ROW(rmsnorm_lanes_4, 4, 1000)                                                              \
	ROW(rmsnorm_lanes_8, 8, 1500)                                                              \
	ROW(rmsnorm_lanes_16, 16, 1800)                                                            \
	ROW(rmsnorm_lanes_32, 32, 2000)
#define NORM_KEPT(ROW)                                                                             \
	ROW(layernorm_kept_64x4, 64, 4, 1800)                                                      \
	ROW(layernorm_kept_128x4, 128, 4, 2000)                                                    \
	ROW(layernorm_kept_128x8, 128, 8, 2200)                                                    \
	ROW(layernorm_kept_256x4, 256, 4, 2200)                                                    \
	ROW(layernorm_kept_256x8, 256, 8, 2200)                                                    \
	ROW(layernorm_kept_512x4, 512, 4, 2200)

#define NORM(name, body)                                                                           \
	extern "C" __global__ void name(const float *in, const float *scale, float *out,           \
		long rows, long columns, float epsilon)                                            \
	{                                                                                          \
		body(in, scale, out, rows, columns, epsilon);                                      \
	}
#define NORM_BLOCK(name, t, gbs) NORM(name, norm_of_block)
#define NORM_BLOCK_ROW(name, t, gbs)                                                               \
	{ "layernorm", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_rows,                     \
		by_threads<plan_norm, t>, call_norm<name>, oracle_norm },
#define NORM_LANES_KERNEL(name, lanes, gbs) NORM(name, rmsnorm_by_lanes<lanes>)
#define NORM_LANES_ROW(name, lanes, gbs)                                                           \
	{ "layernorm", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_short_rows,               \
		by_lanes<plan_norm_warp, lanes>, call_norm<name>, oracle_rmsnorm },
#define NORM_KEPT_KERNEL(name, t, items, gbs) NORM(name, (norm_kept<t, items>))
#define NORM_KEPT_ROW(name, t, items, gbs)                                                         \
	{ "layernorm", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_kept<(t) * (items)>,      \
		by_threads<plan_norm, t>, call_norm<name>, oracle_norm },

NORM_BLOCKS(NORM_BLOCK)
NORM_LANES(NORM_LANES_KERNEL)
NORM_KEPT(NORM_KEPT_KERNEL)

template <auto KERNEL>
static void call_norm(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(KERNEL, p, m->x, m->y, z_f32(m), s->s[0], s->s[1], 1e-3f);
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
	NORM_BLOCKS(NORM_BLOCK_ROW)
	NORM_LANES(NORM_LANES_ROW)
	NORM_KEPT(NORM_KEPT_ROW)
};
FAMILY(layernorm, layernorms);
