/* Passes of sorts, and products with a sparse matrix. */
#include "zoo.h"

/* One compare-and-exchange step of a bitonic sort of n keys, a power of two, in place. */
extern "C" __global__ void bitonic_step(uint32_t *keys, long n, long j, long k)
{
	const long i = zoo_thread(), other = i ^ j;
	if (i >= n || other <= i)
		return;
	const uint32_t a = keys[i], b = keys[other];
	if ((a > b) == ((i & k) == 0)) {
		keys[i] = b;
		keys[other] = a;
	}
}

/* Sorts each run of N keys in shared memory; T threads a block. */
template <int N, int T>
static __device__ __forceinline__ void bitonic_runs(const uint32_t *in, uint32_t *out)
{
	__shared__ uint32_t keys[N];
	const long first = (long)blockIdx.x * N;
	for (int i = threadIdx.x; i < N; i += T)
		keys[i] = in[first + i];
	for (int k = 2; k <= N; k *= 2)
		for (int j = k / 2; j; j /= 2) {
			__syncthreads();
			for (int t = threadIdx.x; t < N / 2; t += T) {
				const int i = 2 * t - (t & (j - 1)); /* the t-th whose bit j is 0 */
				const uint32_t a = keys[i], b = keys[i + j];
				if ((a > b) == ((i & k) == 0)) {
					keys[i] = b;
					keys[i + j] = a;
				}
			}
		}
	__syncthreads();
	for (int i = threadIdx.x; i < N; i += T)
		out[first + i] = keys[i];
}

/* How often each digit of BITS is in a block's `per_block` keys. */
template <int BITS>
static __device__ __forceinline__ void count_digits(
	uint32_t *bins, const uint32_t *keys, long n, int shift, int per_block)
{
	constexpr int DIGITS = 1 << BITS;
	for (int b = threadIdx.x; b < DIGITS; b += blockDim.x)
		bins[b] = 0;
	__syncthreads();
	const long first = (long)blockIdx.x * per_block;
	for (long i = first + threadIdx.x; i < first + per_block && i < n; i += blockDim.x)
		atomicAdd(&bins[keys[i] >> shift & (DIGITS - 1)], 1u);
	__syncthreads();
}

/* First half of a radix pass: what each block counts. */
template <int BITS>
static __device__ __forceinline__ void radix_counts(
	const uint32_t *keys, uint32_t *counts, long n, int shift, int per_block)
{
	__shared__ uint32_t bins[1 << BITS];
	count_digits<BITS>(bins, keys, n, shift, per_block);
	for (int b = threadIdx.x; b < 1 << BITS; b += blockDim.x)
		counts[(long)b * gridDim.x + blockIdx.x] = bins[b];
}

/* Second half, for random keys: a region of `region` keys for each digit.  A block takes room for
 * each digit by one atomic on the cursors, which stand before the regions (256 of them, used or
 * not), and then stores its keys there; a region that is full begins anew. */
template <int BITS>
static __device__ __forceinline__ void radix_spreads(
	const uint32_t *keys, uint32_t *out, long n, int shift, int per_block, unsigned region)
{
	__shared__ uint32_t bins[1 << BITS];
	count_digits<BITS>(bins, keys, n, shift, per_block);
	for (int b = threadIdx.x; b < 1 << BITS; b += blockDim.x)
		bins[b] = atomicAdd(&out[b], bins[b]);
	__syncthreads();
	const long first = (long)blockIdx.x * per_block;
	for (long i = first + threadIdx.x; i < first + per_block && i < n; i += blockDim.x) {
		const uint32_t key = keys[i], digit = key >> shift & ((1 << BITS) - 1);
		const uint32_t at = atomicAdd(&bins[digit], 1u) % region;
		out[256 + (long)digit * region + at] = key;
	}
}

/* The names without a number are those of 1024 keys and 8 bits. */
#define RUNS(ROW)                                                                                  \
	ROW(bitonic_shared, 1024, 512, 500)                                                        \
	ROW(bitonic_shared_256x128, 256, 128, 700)                                                 \
	ROW(bitonic_shared_512x256, 512, 256, 600)                                                 \
	ROW(bitonic_shared_1024x256, 1024, 256, 500)                                               \
	ROW(bitonic_shared_2048x512, 2048, 512, 450)                                               \
	ROW(bitonic_shared_2048x1024, 2048, 1024, 450)
#define COUNTS(ROW)                                                                                \
	ROW(radix_count, 8, 1500)                                                                  \
	ROW(radix_count_4, 4, 1000)                                                                \
	ROW(radix_count_5, 5, 1200)                                                                \
	ROW(radix_count_6, 6, 1400)                                                                \
	ROW(radix_count_7, 7, 1500)
/* Only the cursors have one right answer. */
#define SPREADS(ROW)                                                                               \
	ROW(radix_spread, 8, 600)                                                                  \
	ROW(radix_spread_4, 4, 500)                                                                \
	ROW(radix_spread_5, 5, 600)                                                                \
	ROW(radix_spread_6, 6, 600)                                                                \
	ROW(radix_spread_7, 7, 600)

#define RUN(name, n, t, gbs)                                                                       \
	extern "C" __global__ void __launch_bounds__(t) name(const uint32_t *in, uint32_t *out)    \
	{                                                                                          \
		bitonic_runs<n, t>(in, out);                                                       \
	}
#define RUN_ROW(name, n, t, gbs)                                                                   \
	{ "sort", #name, "runs", gbs, 0, WORDS, 0, draw_runs, plan_runs<n, t>, launch_runs<name>,  \
		oracle_runs<n> },
#define COUNT(name, bits, gbs)                                                                     \
	extern "C" __global__ void name(                                                           \
		const uint32_t *keys, uint32_t *counts, long n, int shift, int per_block)          \
	{                                                                                          \
		radix_counts<bits>(keys, counts, n, shift, per_block);                             \
	}
#define COUNT_ROW(name, bits, gbs)                                                                 \
	{ "sort", #name, "n,shift,per_block", gbs, 0, WORDS, 0, draw_radix<bits>,                  \
		plan_count<bits>, call_iz<name, 3>, oracle_count<bits> },
#define SPREAD(name, bits, gbs)                                                                    \
	extern "C" __global__ void name(const uint32_t *keys, uint32_t *out, long n, int shift,    \
		int per_block, unsigned region)                                                    \
	{                                                                                          \
		radix_spreads<bits>(keys, out, n, shift, per_block, region);                       \
	}
#define SPREAD_ROW(name, bits, gbs)                                                                \
	{ "sort", #name, "n,shift,per_block,region", gbs, 0, CURSORS, 0, draw_radix<bits>,         \
		plan_spread<bits>, call_iz<name, 4>, oracle_spread<bits> },

RUNS(RUN)
COUNTS(COUNT)
SPREADS(SPREAD)

static void draw_step(struct rng *r, struct shape *s)
{
	const long log = 10 + rng_below(r, 21), k = 1 + rng_below(r, log);
	s->s[0] = 1L << log;
	s->s[2] = 1L << k;
	s->s[1] = 1L << rng_below(r, k);
	s->threads = draw_warps(r);
}

static void draw_runs(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1, 1L << 20);
}

template <int BITS> static void draw_radix(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->s[1] = BITS * rng_below(r, 32 / BITS);
	s->s[2] = 1024 << rng_below(r, 5);
	s->s[3] = up(s->s[0], 1 << BITS) + 1024;
	s->threads = draw_warps(r);
}

static void plan_step(const struct shape *s, struct plan *p)
{
	p->bytes = 8.0 * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[Z] = 4 * s->s[0];
}

template <int N, int T> static void plan_runs(const struct shape *s, struct plan *p)
{
	p->bytes = 8.0 * N * (double)s->s[0];
	p->block = dim3(T);
	p->grid = dim3((unsigned)s->s[0]);
	p->need[I] = p->need[Z] = 4 * N * s->s[0];
}

template <int BITS> static void plan_count(const struct shape *s, struct plan *p)
{
	const long blocks = up(s->s[0], s->s[2]);
	p->bytes = 4.0 * (double)(s->s[0] + (1 << BITS) * blocks);
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)blocks);
	p->need[I] = 4 * s->s[0];
	p->need[Z] = (4 << BITS) * blocks;
}

template <int BITS> static void plan_spread(const struct shape *s, struct plan *p)
{
	plan_count<BITS>(s, p);
	p->bytes = 12.0 * (double)s->s[0]; /* the keys are read twice */
	p->need[Z] = 4 * (256 + (s->s[3] << BITS));
}

static void launch_step(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(bitonic_step, p, z_u32(m), s->s[0], s->s[1], s->s[2]);
}

template <auto KERNEL>
static void launch_runs(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(KERNEL, p, m->i, z_u32(m));
}

static void oracle_step(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		const long other = i ^ s->s[1];
		uint32_t *a = z_u32(m) + i, *b = z_u32(m) + other;
		const bool rising = (i & s->s[2]) == 0;
		if (other > i && (rising ? *a > *b : *a <= *b)) {
			const uint32_t kept = *a;
			*a = *b;
			*b = kept;
		}
	}
}

template <int N>
static void oracle_runs(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long run = 0; run < s->s[0]; run++) {
		uint32_t *out = z_u32(m) + run * N;
		for (int i = 0; i < N; i++) { /* insertion */
			const uint32_t key = m->i[run * N + i];
			int at = i;
			for (; at && out[at - 1] > key; at--)
				out[at] = out[at - 1];
			out[at] = key;
		}
	}
}

template <int BITS>
static void oracle_count(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long blocks = p->grid.x;
	for (long i = 0; i < blocks << BITS; i++)
		z_u32(m)[i] = 0;
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[(m->i[i] >> s->s[1] & ((1 << BITS) - 1)) * blocks + i / s->s[2]]++;
}

/* Blocks take their room in any order: what is the same in all of them is how far the cursors come.
 */
template <int BITS>
static void oracle_spread(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_u32(m)[m->i[i] >> s->s[1] & ((1 << BITS) - 1)]++;
}

static const struct kernel sorts[] = {
	{ "sort", "bitonic_step", "n_pow2,j,k", 1500, 0, WORDS, 0, draw_step, plan_step,
		launch_step, oracle_step },
	RUNS(RUN_ROW)
	COUNTS(COUNT_ROW)
	SPREADS(SPREAD_ROW)
};
FAMILY(sort, sorts);

/* Row r has the entries begin[r] .. begin[r + 1]; column numbers are random words. */
extern "C" __global__ void spmv_scalar(const uint32_t *begin, const uint32_t *index,
	const float *values, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread();
	if (row >= rows)
		return;
	float sum = 0;
	for (long e = begin[row]; e < begin[row + 1]; e++)
		sum += values[e] * x[__umulhi(index[e], (unsigned)columns)];
	out[row] = sum;
}

/* One warp a row. */
extern "C" __global__ void spmv_vector(const uint32_t *begin, const uint32_t *index,
	const float *values, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread() / 32;
	const int lane = threadIdx.x % 32;
	if (row >= rows)
		return;
	float sum = 0;
	for (long e = (long)begin[row] + lane; e < begin[row + 1]; e += 32)
		sum += values[e] * x[__umulhi(index[e], (unsigned)columns)];
	sum = warp_sum(sum);
	if (lane == 0)
		out[row] = sum;
}

/* LANES neighbours of a warp a row. */
template <int LANES>
static __device__ __forceinline__ void spmv_by_lanes(const uint32_t *begin, const uint32_t *index,
	const float *values, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread() / LANES;
	const int lane = threadIdx.x % LANES;
	float sum = 0;
	if (row < rows)
		for (long e = (long)begin[row] + lane; e < begin[row + 1]; e += LANES)
			sum += values[e] * x[__umulhi(index[e], (unsigned)columns)];
	sum = lanes_sum<LANES>(sum);
	if (row < rows && lane == 0)
		out[row] = sum;
}

/* As spmv_ell, with WIDTH entries. */
template <int WIDTH>
static __device__ __forceinline__ void spmv_of_width(const uint32_t *index, const float *values,
	const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread();
	if (row >= rows)
		return;
	float sum = 0;
#pragma unroll
	for (int e = 0; e < WIDTH; e++) {
		const long at = (long)e * rows + row;
		sum += values[at] * x[__umulhi(index[at], (unsigned)columns)];
	}
	out[row] = sum;
}

#define SPARSE_LANES(ROW)                                                                          \
	ROW(spmv_lanes_2, 2, 500)                                                                  \
	ROW(spmv_lanes_4, 4, 700)                                                                  \
	ROW(spmv_lanes_8, 8, 900)                                                                  \
	ROW(spmv_lanes_16, 16, 1000)                                                               \
	ROW(spmv_lanes_32, 32, 1000)
#define ELLS(ROW)                                                                                  \
	ROW(spmv_ell_4, 4, 1000)                                                                   \
	ROW(spmv_ell_8, 8, 1000)                                                                   \
	ROW(spmv_ell_16, 16, 1000)                                                                 \
	ROW(spmv_ell_32, 32, 1000)                                                                 \
	ROW(spmv_ell_64, 64, 1000)

#define SPARSE_LANE(name, lanes, gbs)                                                              \
	extern "C" __global__ void name(const uint32_t *begin, const uint32_t *index,              \
		const float *values, const float *x, float *out, int rows, int columns)            \
	{                                                                                          \
		spmv_by_lanes<lanes>(begin, index, values, x, out, rows, columns);                 \
	}
#define SPARSE_LANE_ROW(name, lanes, gbs)                                                          \
	{ "sparse", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_sparse,                      \
		plan_sparse_lanes<lanes>, launch_csr<name>, oracle_csr },
#define ELL(name, width, gbs)                                                                      \
	extern "C" __global__ void name(const uint32_t *index, const float *values,                \
		const float *x, float *out, int rows, int columns)                                 \
	{                                                                                          \
		spmv_of_width<width>(index, values, x, out, rows, columns);                        \
	}
#define ELL_ROW(name, width, gbs)                                                                  \
	{ "sparse", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_width<width>,                \
		plan_width<width>, launch_width<name>, oracle_width<width> },

SPARSE_LANES(SPARSE_LANE)
ELLS(ELL)

/* Every row has `width` entries, stored by columns of entries: coalesced. */
extern "C" __global__ void spmv_ell(const uint32_t *index, const float *values, const float *x,
	float *out, int rows, int width, int columns)
{
	const long row = zoo_thread();
	if (row >= rows)
		return;
	float sum = 0;
	for (int e = 0; e < width; e++) {
		const long at = (long)e * rows + row;
		sum += values[at] * x[__umulhi(index[at], (unsigned)columns)];
	}
	out[row] = sum;
}

static void draw_sparse(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 256, ROWS);
	s->s[1] = draw_size(r, 256, 1L << 28);
	s->threads = draw_warps(r);
}

static void draw_ell(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 1, 256);
	s->s[0] = draw_size(r, 256, at_most(1L << 24, (1L << 30) / s->s[1]));
	s->s[2] = draw_size(r, 256, 1L << 28);
	s->threads = draw_warps(r);
}

static void plan_sparse(const struct shape *s, struct plan *p, long entries, long columns)
{
	p->flops = 2.0 * (double)entries;
	p->bytes = 8.0 * (double)entries + 4.0 * (double)(s->s[0] + at_most(entries, columns));
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[X] = 4 * entries;
	p->need[I] = 4 * entries;
	p->need[Y] = 4 * columns;
	p->need[Z] = 4 * s->s[0];
}

static void plan_scalar(const struct shape *s, struct plan *p)
{
	plan_sparse(s, p, sparse_begin(s->s[0]), s->s[1]);
	p->need[R] = 4 * (s->s[0] + 1);
	p->bytes += 4.0 * (double)s->s[0];
}

static void plan_vector(const struct shape *s, struct plan *p)
{
	plan_scalar(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads / 32));
}

static void plan_ell(const struct shape *s, struct plan *p)
{
	plan_sparse(s, p, s->s[0] * s->s[1], s->s[2]);
}

template <int LANES> static void plan_sparse_lanes(const struct shape *s, struct plan *p)
{
	plan_scalar(s, p);
	p->grid = dim3((unsigned)up(s->s[0] * LANES, s->threads));
}

template <int WIDTH> static void draw_width(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 256, at_most(1L << 24, (1L << 30) / WIDTH));
	s->s[1] = draw_size(r, 256, 1L << 28);
	s->threads = draw_warps(r);
}

template <int WIDTH> static void plan_width(const struct shape *s, struct plan *p)
{
	plan_sparse(s, p, s->s[0] * WIDTH, s->s[1]);
}

template <auto KERNEL>
static void launch_csr(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, 2>(p, s, m->r, m->i, m->x, m->y, z_f32(m));
}

template <auto KERNEL>
static void launch_width(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, 2>(p, s, m->i, m->x, m->y, z_f32(m));
}

static void launch_scalar(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(spmv_scalar, p, m->r, m->i, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1]);
}

static void launch_vector(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(spmv_vector, p, m->r, m->i, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1]);
}

static void launch_ell(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(spmv_ell, p, m->i, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);
}

static double entry(const struct arena *m, long at, long columns)
{
	return (double)m->x[at] * m->y[(uint64_t)m->i[at] * (uint64_t)columns >> 32];
}

static void oracle_csr(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++) {
		double sum = 0;
		for (long e = m->r[row]; e < m->r[row + 1]; e++)
			sum += entry(m, e, s->s[1]);
		z_f32(m)[row] = (float)sum;
	}
}

static void oracle_ell(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++) {
		double sum = 0;
		for (long e = 0; e < s->s[1]; e++)
			sum += entry(m, e * s->s[0] + row, s->s[2]);
		z_f32(m)[row] = (float)sum;
	}
}

template <int WIDTH>
static void oracle_width(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const struct shape ell = { { s->s[0], WIDTH, s->s[1] } };
	oracle_ell(p, &ell, m);
}

static const struct kernel sparse[] = {
	{ "sparse", "spmv_scalar", "rows,columns", 400, 0, FLOATS, 1e-3, draw_sparse, plan_scalar,
		launch_scalar, oracle_csr },
	{ "sparse", "spmv_vector", "rows,columns", 1000, 0, FLOATS, 1e-3, draw_sparse, plan_vector,
		launch_vector, oracle_csr },
	{ "sparse", "spmv_ell", "rows,width,columns", 1000, 0, FLOATS, 1e-3, draw_ell, plan_ell,
		launch_ell, oracle_ell },
	SPARSE_LANES(SPARSE_LANE_ROW)
	ELLS(ELL_ROW)
};
FAMILY(sparse, sparse);
