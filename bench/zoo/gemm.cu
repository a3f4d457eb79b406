/* Matrix products C[m][n] = A[m][k] B[k][n], from a naive one to tensor cores, and matrix times
 * vector.  Sizes need not divide by the tiles. */
#include "zoo.h"

#ifdef __CUDACC__
#include <mma.h>
#endif

using namespace nvcuda;

/* One output a thread, from memory; the block may have any sides. */
static __device__ __forceinline__ void naive(
	const float *a, const float *b, float *c, int m, int n, int k)
{
	const int column = (int)zoo_thread(), row = blockIdx.y * blockDim.y + threadIdx.y;
	if (row >= m || column >= n)
		return;
	float sum = 0;
	for (int i = 0; i < k; i++)
		sum += a[(long)row * k + i] * b[(long)i * n + column];
	c[(long)row * n + column] = sum;
}

extern "C" __global__ void gemm_naive(const float *a, const float *b, float *c, int m, int n, int k)
{
	naive(a, b, c, m, n, k);
}

/* One output a thread, tiles of T x T in shared memory. */
template <int T>
static __device__ __forceinline__ void shared_tile(
	const float *a, const float *b, float *c, int m, int n, int k)
{
	__shared__ float left[T][T], right[T][T];
	const int x = threadIdx.x, y = threadIdx.y;
	const int column = blockIdx.x * T + x, row = blockIdx.y * T + y;
	float sum = 0;
	for (int k0 = 0; k0 < k; k0 += T) {
		left[y][x] = row < m && k0 + x < k ? a[(long)row * k + k0 + x] : 0;
		right[y][x] = k0 + y < k && column < n ? b[(long)(k0 + y) * n + column] : 0;
		__syncthreads();
#pragma unroll
		for (int i = 0; i < T; i++)
			sum += left[y][i] * right[i][x];
		__syncthreads();
	}
	if (row < m && column < n)
		c[(long)row * n + column] = sum;
}

/* TM x TN outputs a thread in registers, tiles of BM x BK and BK x BN in shared memory. */
template <int BM, int BN, int BK, int TM, int TN>
static __device__ __forceinline__ void register_tile(
	const float *a, const float *b, float *c, int m, int n, int k)
{
	constexpr int THREADS = BM / TM * (BN / TN);
	__shared__ float left[BK][BM + 4], right[BK][BN];
	const int t = threadIdx.x;
	const int tx = t % (BN / TN), ty = t / (BN / TN);
	const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
	float sum[TM][TN] = {};
	for (int k0 = 0; k0 < k; k0 += BK) {
#pragma unroll
		for (int i = t; i < BM * BK; i += THREADS) {
			const int r = i / BK, q = i % BK;
			left[q][r] =
				row0 + r < m && k0 + q < k ? a[(long)(row0 + r) * k + k0 + q] : 0;
		}
#pragma unroll
		for (int i = t; i < BK * BN; i += THREADS) {
			const int q = i / BN, r = i % BN;
			right[q][r] = k0 + q < k && column0 + r < n
					      ? b[(long)(k0 + q) * n + column0 + r]
					      : 0;
		}
		__syncthreads();
#pragma unroll
		for (int q = 0; q < BK; q++) {
			float l[TM], r[TN];
#pragma unroll
			for (int i = 0; i < TM; i++)
				l[i] = left[q][ty * TM + i];
#pragma unroll
			for (int j = 0; j < TN; j++)
				r[j] = right[q][j * (BN / TN) + tx];
#pragma unroll
			for (int i = 0; i < TM; i++)
#pragma unroll
				for (int j = 0; j < TN; j++)
					sum[i][j] += l[i] * r[j];
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < TM; i++)
#pragma unroll
		for (int j = 0; j < TN; j++) {
			const int row = row0 + ty * TM + i;
			const int column = column0 + j * (BN / TN) + tx;
			if (row < m && column < n)
				c[(long)row * n + column] = sum[i][j];
		}
}

/* Half precision on the tensor cores through wmma; 32-bit sums.  Each warp computes WM x WN tiles
 * of 16 x 16; WARPS_M x WARPS_N warps a block.  m, n and k are multiples of 16. */
template <int WARPS_M, int WARPS_N, int WM, int WN>
static __device__ __forceinline__ void tensor_tile(
	const __half *a, const __half *b, float *c, int m, int n, int k)
{
	constexpr int BM = WARPS_M * WM * 16, BN = WARPS_N * WN * 16, BK = 32;
	constexpr int THREADS = WARPS_M * WARPS_N * 32;
	__shared__ __align__(32) __half left[BM][BK + 8];
	__shared__ __align__(32) __half right[BK][BN + 8];
	const int t = threadIdx.x, warp = t / 32;
	const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
	const int wr = warp / WARPS_N * WM * 16, wc = warp % WARPS_N * WN * 16;
	wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[WM][WN];
#pragma unroll
	for (int i = 0; i < WM; i++)
#pragma unroll
		for (int j = 0; j < WN; j++)
			wmma::fill_fragment(sum[i][j], 0.0f);
	const __half zero = __float2half(0.0f);
	for (int k0 = 0; k0 < k; k0 += BK) {
#pragma unroll 4
		for (int i = t; i < BM * BK; i += THREADS) {
			const int r = i / BK, q = i % BK;
			left[r][q] = row0 + r < m && k0 + q < k ? a[(long)(row0 + r) * k + k0 + q]
								: zero;
		}
#pragma unroll 4
		for (int i = t; i < BK * BN; i += THREADS) {
			const int q = i / BN, r = i % BN;
			right[q][r] = k0 + q < k && column0 + r < n
					      ? b[(long)(k0 + q) * n + column0 + r]
					      : zero;
		}
		__syncthreads();
#pragma unroll
		for (int q = 0; q < BK; q += 16) {
			wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> l[WM];
			wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> r[WN];
#pragma unroll
			for (int i = 0; i < WM; i++)
				wmma::load_matrix_sync(l[i], &left[wr + i * 16][q], BK + 8);
#pragma unroll
			for (int j = 0; j < WN; j++)
				wmma::load_matrix_sync(r[j], &right[q][wc + j * 16], BN + 8);
#pragma unroll
			for (int i = 0; i < WM; i++)
#pragma unroll
				for (int j = 0; j < WN; j++)
					wmma::mma_sync(sum[i][j], l[i], r[j], sum[i][j]);
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < WM; i++)
#pragma unroll
		for (int j = 0; j < WN; j++) {
			const int row = row0 + wr + i * 16, column = column0 + wc + j * 16;
			if (row < m && column < n) /* a multiple of 16: whole tiles */
				wmma::store_matrix_sync(c + (long)row * n + column, sum[i][j],
					(unsigned)n, wmma::mem_row_major);
		}
}

/* One warp a row. */
extern "C" __global__ void gemv_warp(
	const float *a, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread() / 32;
	const int lane = threadIdx.x % 32;
	if (row >= rows)
		return;
	float sum = 0;
	for (int c = lane; c < columns; c += 32)
		sum += a[row * columns + c] * x[c];
	sum = warp_sum(sum);
	if (lane == 0)
		out[row] = sum;
}

/* LANES neighbours of a warp a row. */
template <int LANES>
static __device__ __forceinline__ void gemv_by_lanes(
	const float *a, const float *x, float *out, int rows, int columns)
{
	const long row = zoo_thread() / LANES;
	const int lane = threadIdx.x % LANES;
	float sum = 0;
	if (row < rows)
		for (int c = lane; c < columns; c += LANES)
			sum += a[row * columns + c] * x[c];
	sum = lanes_sum<LANES>(sum);
	if (row < rows && lane == 0)
		out[row] = sum;
}

/* A block of THREADS a row. */
template <int THREADS>
static __device__ __forceinline__ void gemv_by_block(
	const float *a, const float *x, float *out, int rows, int columns)
{
	__shared__ float shared[32];
	const long row = blockIdx.x;
	float sum = 0;
	for (int c = threadIdx.x; c < columns; c += THREADS)
		sum += a[row * columns + c] * x[c];
	sum = block_sum(sum, shared);
	if (threadIdx.x == 0)
		out[row] = sum;
}

static void draw_gemm(struct rng *r, struct shape *s)
{
	for (int i = 0; i < 3; i++)
		s->s[i] = draw_size(r, 16, 16384);
}

static void draw_tensor(struct rng *r, struct shape *s)
{
	for (int i = 0; i < 3; i++)
		s->s[i] = 16 * up(draw_size(r, 16, 16384), 16);
}

static void draw_gemv(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 16, 1L << 20);
	s->s[1] = draw_size(r, 32, at_most(1L << 17, 3000000000L / s->s[0]));
	s->threads = draw_warps(r);
}

/* Bytes with elements of `in` bytes; tiles of bm x bn outputs by a block of x x y threads. */
static void plan_product(const struct shape *s, struct plan *p, int in, int bm, int bn, dim3 block)
{
	const long m = s->s[0], n = s->s[1], k = s->s[2];
	p->flops = 2.0 * (double)m * (double)n * (double)k;
	p->bytes = (double)in * (double)(m * k + k * n) + 4.0 * (double)m * (double)n;
	p->block = block;
	p->grid = dim3((unsigned)up(n, bn), (unsigned)up(m, bm));
	p->need[in == 2 ? H : X] = in * m * k;
	p->need[in == 2 ? H : Y] = in * (in == 2 ? m * k + k * n : k * n);
	p->need[Z] = 4 * m * n;
}

static void plan_gemv(const struct shape *s, struct plan *p)
{
	const double n = (double)s->s[0] * (double)s->s[1];
	p->flops = 2 * n;
	p->bytes = 4 * (n + (double)(s->s[0] + s->s[1]));
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads / 32));
	p->need[X] = 4 * s->s[0] * s->s[1];
	p->need[Y] = 4 * s->s[1];
	p->need[Z] = 4 * s->s[0];
}

/* LANES threads a row, by blocks of any size, or of THREADS. */
template <int LANES, int THREADS> static void plan_gemv_rows(const struct shape *s, struct plan *p)
{
	plan_gemv(s, p);
	p->block = dim3((unsigned)(THREADS ? THREADS : s->threads));
	p->grid = dim3((unsigned)up(s->s[0] * LANES, p->block.x));
}

static void launch_gemv(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gemv_warp, p, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1]);
}

static void oracle_gemm(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++)
		for (long c = 0; c < s->s[1]; c++) {
			double sum = 0;
			for (long i = 0; i < s->s[2]; i++)
				sum += (double)m->x[row * s->s[2] + i] * m->y[i * s->s[1] + c];
			z_f32(m)[row * s->s[1] + c] = (float)sum;
		}
}

static void oracle_tensor(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const __half *b = m->h + s->s[0] * s->s[2];
	for (long row = 0; row < s->s[0]; row++)
		for (long c = 0; c < s->s[1]; c++) {
			double sum = 0;
			for (long i = 0; i < s->s[2]; i++)
				sum += (double)__half2float(m->h[row * s->s[2] + i]) *
				       (double)__half2float(b[i * s->s[1] + c]);
			z_f32(m)[row * s->s[1] + c] = (float)sum;
		}
}

static void oracle_gemv(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++) {
		double sum = 0;
		for (long c = 0; c < s->s[1]; c++)
			sum += (double)m->x[row * s->s[1] + c] * m->y[c];
		z_f32(m)[row] = (float)sum;
	}
}

/* The kernel NAME, its plan and its launch. */
#define SINGLE_LAUNCH(name, bm, bn, threads)                                                       \
	static void plan_##name(const struct shape *s, struct plan *p)                             \
	{                                                                                          \
		plan_product(s, p, 4, bm, bn, threads);                                            \
	}                                                                                          \
	static void launch_##name(                                                                 \
		const struct plan *p, const struct shape *s, const struct arena *m)                \
	{                                                                                          \
		LAUNCH(name, p, m->x, m->y, z_f32(m), (int)s->s[0], (int)s->s[1], (int)s->s[2]);   \
	}

#define NAIVE(name, x, y)                                                                          \
	extern "C" __global__ void __launch_bounds__((x) * (y))                                    \
		name(const float *a, const float *b, float *c, int m, int n, int k)                \
	{                                                                                          \
		naive(a, b, c, m, n, k);                                                           \
	}                                                                                          \
	SINGLE_LAUNCH(name, y, x, dim3(x, y))

#define SHARED(name, t)                                                                            \
	extern "C" __global__ void __launch_bounds__((t) * (t))                                    \
		name(const float *a, const float *b, float *c, int m, int n, int k)                \
	{                                                                                          \
		shared_tile<t>(a, b, c, m, n, k);                                                  \
	}                                                                                          \
	SINGLE_LAUNCH(name, t, t, dim3(t, t))

#define REGISTERS(name, bm, bn, bk, tm, tn)                                                        \
	extern "C" __global__ void __launch_bounds__((bm) / (tm) * ((bn) / (tn)))                  \
		name(const float *a, const float *b, float *c, int m, int n, int k)                \
	{                                                                                          \
		register_tile<bm, bn, bk, tm, tn>(a, b, c, m, n, k);                               \
	}                                                                                          \
	SINGLE_LAUNCH(name, bm, bn, dim3((bm) / (tm) * ((bn) / (tn))))

#define TENSOR(name, warps_m, warps_n, wm, wn)                                                     \
	extern "C" __global__ void __launch_bounds__((warps_m) * (warps_n)*32)                     \
		name(const __half *a, const __half *b, float *c, int m, int n, int k)              \
	{                                                                                          \
		tensor_tile<warps_m, warps_n, wm, wn>(a, b, c, m, n, k);                           \
	}                                                                                          \
	static void plan_##name(const struct shape *s, struct plan *p)                             \
	{                                                                                          \
		plan_product(s, p, 2, (warps_m) * (wm)*16, (warps_n) * (wn)*16,                    \
			dim3((warps_m) * (warps_n)*32));                                           \
	}                                                                                          \
	static void launch_##name(                                                                 \
		const struct plan *p, const struct shape *s, const struct arena *m)                \
	{                                                                                          \
		LAUNCH(name, p, m->h, m->h + s->s[0] * s->s[2], z_f32(m), (int)s->s[0],            \
			(int)s->s[1], (int)s->s[2]);                                               \
	}

SINGLE_LAUNCH(gemm_naive, 8, 32, dim3(32, 8))
NAIVE(gemm_naive_16x16, 16, 16)
NAIVE(gemm_naive_32x4, 32, 4)
NAIVE(gemm_naive_32x32, 32, 32)
NAIVE(gemm_naive_64x2, 64, 2)
NAIVE(gemm_naive_128x1, 128, 1)
SHARED(gemm_shared_8, 8)
SHARED(gemm_shared_16, 16)
SHARED(gemm_shared_24, 24)
SHARED(gemm_shared_32, 32)
REGISTERS(gemm_tile_32x32, 32, 32, 16, 4, 4)
REGISTERS(gemm_tile_32x64, 32, 64, 16, 4, 4)
REGISTERS(gemm_tile_64x32, 64, 32, 16, 4, 4)
REGISTERS(gemm_tile_64x64, 64, 64, 16, 4, 4)
REGISTERS(gemm_tile_64x128, 64, 128, 16, 4, 8)
REGISTERS(gemm_tile_128x32, 128, 32, 16, 8, 4)
REGISTERS(gemm_tile_128x64, 128, 64, 16, 8, 4)
REGISTERS(gemm_tile_128x128, 128, 128, 8, 8, 8)
REGISTERS(gemm_tile_256x64, 256, 64, 8, 8, 8)
REGISTERS(gemm_deep_64x64x8, 64, 64, 8, 4, 4)
REGISTERS(gemm_deep_64x64x32, 64, 64, 32, 4, 4)
REGISTERS(gemm_deep_32x32x8, 32, 32, 8, 4, 4)
REGISTERS(gemm_deep_32x32x32, 32, 32, 32, 4, 4)
REGISTERS(gemm_deep_128x128x16, 128, 128, 16, 8, 8)
REGISTERS(gemm_thread_2x2, 64, 64, 16, 2, 2)
REGISTERS(gemm_thread_2x4, 64, 64, 16, 2, 4)
REGISTERS(gemm_thread_4x2, 64, 64, 16, 4, 2)
REGISTERS(gemm_thread_8x4, 64, 64, 16, 8, 4)
REGISTERS(gemm_thread_8x8, 64, 64, 16, 8, 8)
TENSOR(gemm_wmma_32x32, 2, 2, 1, 1)
TENSOR(gemm_wmma_32x64, 2, 2, 1, 2)
TENSOR(gemm_wmma_64x32, 2, 2, 2, 1)
TENSOR(gemm_wmma_64x64, 2, 2, 2, 2)
TENSOR(gemm_wmma_64x128, 2, 4, 2, 2)
TENSOR(gemm_wmma_128x64, 4, 2, 2, 2)
TENSOR(gemm_wmma_128x128, 4, 2, 2, 4)
TENSOR(gemm_wmma_256x64, 4, 2, 4, 2)

#define GEMVS(ROW)                                                                                 \
	ROW(gemv_lanes_4, by_lanes, 4, 0, 800)                                                     \
	ROW(gemv_lanes_8, by_lanes, 8, 0, 1500)                                                    \
	ROW(gemv_lanes_16, by_lanes, 16, 0, 2000)                                                  \
	ROW(gemv_lanes_32, by_lanes, 32, 0, 2500)                                                  \
	ROW(gemv_block_64, by_block, 64, 64, 2500)                                                 \
	ROW(gemv_block_128, by_block, 128, 128, 2500)                                              \
	ROW(gemv_block_256, by_block, 256, 256, 2500)                                              \
	ROW(gemv_block_512, by_block, 512, 512, 2500)

#define GEMV(name, how, lanes, threads, gbs)                                                       \
	extern "C" __global__ void __launch_bounds__((threads) ? (threads) : 1024)                 \
		name(const float *a, const float *x, float *out, int rows, int columns)            \
	{                                                                                          \
		gemv_##how<lanes>(a, x, out, rows, columns);                                       \
	}
#define GEMV_ROW(name, how, lanes, threads, gbs)                                                   \
	{ "gemm", #name, "rows,columns", gbs, 0, FLOATS, 1e-3, draw_gemv,                          \
		plan_gemv_rows<lanes, threads>, call_xyz<name, 2>, oracle_gemv },

GEMVS(GEMV)

#define PRODUCT(name, gflops)                                                                      \
	{                                                                                          \
		"gemm", #name, "m,n,k", 2000, gflops, FLOATS, 1e-3, draw_gemm, plan_##name,        \
			launch_##name, oracle_gemm                                                 \
	}
#define TENSOR_PRODUCT(name, gflops)                                                               \
	{                                                                                          \
		"gemm", #name, "m,n,k", 2000, gflops, FLOATS, 1e-3, draw_tensor, plan_##name,      \
			launch_##name, oracle_tensor                                               \
	}

static const struct kernel products[] = {
	PRODUCT(gemm_naive, 3000),
	PRODUCT(gemm_naive_16x16, 2500),
	PRODUCT(gemm_naive_32x4, 3000),
	PRODUCT(gemm_naive_32x32, 3000),
	PRODUCT(gemm_naive_64x2, 2800),
	PRODUCT(gemm_naive_128x1, 2500),
	PRODUCT(gemm_shared_8, 1800),
	PRODUCT(gemm_shared_16, 4500),
	PRODUCT(gemm_shared_24, 5000),
	PRODUCT(gemm_shared_32, 6000),
	PRODUCT(gemm_tile_32x32, 9000),
	PRODUCT(gemm_tile_32x64, 12000),
	PRODUCT(gemm_tile_64x32, 12000),
	PRODUCT(gemm_tile_64x64, 18000),
	PRODUCT(gemm_tile_64x128, 20000),
	PRODUCT(gemm_tile_128x32, 16000),
	PRODUCT(gemm_tile_128x64, 20000),
	PRODUCT(gemm_tile_128x128, 20000),
	PRODUCT(gemm_tile_256x64, 20000),
	PRODUCT(gemm_deep_64x64x8, 16000),
	PRODUCT(gemm_deep_64x64x32, 18000),
	PRODUCT(gemm_deep_32x32x8, 8000),
	PRODUCT(gemm_deep_32x32x32, 9000),
	PRODUCT(gemm_deep_128x128x16, 20000),
	PRODUCT(gemm_thread_2x2, 9000),
	PRODUCT(gemm_thread_2x4, 13000),
	PRODUCT(gemm_thread_4x2, 13000),
	PRODUCT(gemm_thread_8x4, 18000),
	PRODUCT(gemm_thread_8x8, 16000),
	TENSOR_PRODUCT(gemm_wmma_32x32, 20000),
	TENSOR_PRODUCT(gemm_wmma_32x64, 30000),
	TENSOR_PRODUCT(gemm_wmma_64x32, 30000),
	TENSOR_PRODUCT(gemm_wmma_64x64, 50000),
	TENSOR_PRODUCT(gemm_wmma_64x128, 70000),
	TENSOR_PRODUCT(gemm_wmma_128x64, 70000),
	TENSOR_PRODUCT(gemm_wmma_128x128, 90000),
	TENSOR_PRODUCT(gemm_wmma_256x64, 80000),
	{ "gemm", "gemv_warp", "rows,columns", 2500, 0, FLOATS, 1e-3, draw_gemv, plan_gemv,
		launch_gemv, oracle_gemv },
	GEMVS(GEMV_ROW)
};
FAMILY(gemm, products);
