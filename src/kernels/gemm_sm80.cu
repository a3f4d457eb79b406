/* Products on the tensor cores of capability 8.0 and later by mma.sync, which each warp does alone.
 *
 * A block of 8 warps has 128 x 128 of D, and each warp 64 x 32 of that.  cp.async fills a ring of STAGES with 128 bytes of K
 * of each row, whose pieces of 16 bytes are XORed with the row, so that ldmatrix meets no bank twice.  .  Elements outside of a matrix are read as 0 and not written.
 *
 * Rows of A and B begin at multiples of 16 bytes and have K as columns.  D may lie anywhere. */
#pragma once

#include "gemm.cu"
#ifdef __CUDACC_RTC__
#include "sm90.cuh"
#endif

enum { MMA_TILE = 128, MMA_OPERAND = MMA_TILE * 128, MMA_STAGE = 2 * MMA_OPERAND, MMA_THREADS = 256, MMA_GROUP = 8 };

/* MMA::multiply(sum, a, b) adds the product of 16 x 8 over 32 bytes of K, as mma.sync does it.  T is the type of the
 * operands in memory, O that of the result. */
template <typename T, typename MMA, int STAGES, typename O = T> struct gemm_mma {
	typedef typename sum_of<T>::type S;
	static constexpr int BK = 128 / (int)sizeof(T), PIECE = 16 / (int)sizeof(T);

	const gemm_args &g;
	const u32 base;
	const int thread, lane, warp_m, warp_n; /* of the warp: its first row and column */

	__device__ __forceinline__ gemm_mma(const gemm_args &args, u32 shared)
		: g(args), base(shared), thread((int)threadIdx.x), lane(thread % 32), warp_m(thread / 128 * 64),
		  warp_n(thread / 32 % 4 * 32)
	{
	}

	static __device__ __forceinline__ u32 place(int row, int piece)
	{
		return (u32)(row * 128 + ((piece ^ (row & 7)) << 4));
	}

	/* A stage's part of one operand, from its row `first` on. */
	__device__ __forceinline__ void load(u32 to, const void *from, long long row_step, long long first, long long rows, long long k0)
	{
#pragma unroll
		for (int i = 0; i < MMA_TILE * 8 / MMA_THREADS; i++) {
			const int row = thread / 8 + i * (MMA_THREADS / 8), piece = thread % 8;
			const long long k = k0 + piece * PIECE, left = first + row < rows ? g.k - k : 0;
			const int bytes = left >= PIECE ? 16 : left > 0 ? (int)left * (int)sizeof(T) : 0;
			const T *const at = (const T *)from + (bytes ? (first + row) * row_step + k : 0);
			cp_async(to + place(row, piece), at, bytes);
		}
	}

	__device__ __forceinline__ void multiply(S (&sum)[4][4][4], u32 stage)
	{
#pragma unroll
		for (int kk = 0; kk < 4; kk++) {
			u32 a[4][4], b[2][4];
#pragma unroll
			for (int i = 0; i < 4; i++)
				ldmatrix(stage + place(warp_m + i * 16 + lane % 16, kk * 2 + lane / 16), a[i]);
#pragma unroll
			for (int j = 0; j < 2; j++)
				ldmatrix(stage + MMA_OPERAND +
						 place(warp_n + j * 16 + lane / 16 * 8 + lane % 8, kk * 2 + lane / 8 % 2),
					b[j]);
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					MMA::multiply(sum[i][j], a[i], b[j / 2] + j % 2 * 2);
		}
	}

	/* Two neighbours of a row: gate and up, if those are asked for. */
	__device__ __forceinline__ void put(long long batch, long long m, long long n, S first, S second)
	{
		if (g.epilogue == GEMM_SWIGLU) {
			if (m < g.m && n + 1 < g.n)
				((O *)g.d)[batch * g.d_batch + m * g.d_row + n / 2] =
					O::make(plain_silu((float)first) * (float)second);
		} else {
			plain_put<T, O>(g, batch, m, n, (float)first);
			plain_put<T, O>(g, batch, m, n + 1, (float)second);
		}
	}

	__device__ __forceinline__ void tile_of(long long batch, long long m0, long long n0)
	{
		const T *const a = (const T *)g.a + batch * g.a_batch, *const b = (const T *)g.b + batch * g.b_batch;
		const int blocks = (int)((g.k + BK - 1) / BK);
		S sum[4][4][4] = {};
		for (int kb = 0; kb < blocks + STAGES - 1; kb++) {
			/* The stage that is filled next is the one that all warps have done with. */
			if (kb >= STAGES - 1) {
				cp_wait<STAGES - 2>();
				__syncthreads();
			}
			if (kb < blocks) {
				const u32 to = base + kb % STAGES * MMA_STAGE;
				load(to, a, g.a_row, m0, g.m, (long long)kb * BK);
				load(to + MMA_OPERAND, b, g.b_row, n0, g.n, (long long)kb * BK);
			}
			cp_commit();
			if (kb >= STAGES - 1)
				multiply(sum, base + (kb - STAGES + 1) % STAGES * MMA_STAGE);
		}
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int j = 0; j < 4; j++)
#pragma unroll
				for (int h = 0; h < 2; h++)
					put(batch, m0 + warp_m + i * 16 + lane / 4 + h * 8, n0 + warp_n + j * 8 + lane % 4 * 2,
						sum[i][j][2 * h], sum[i][j][2 * h + 1]);
		__syncthreads();
	}

	__device__ __forceinline__ void run(void)
	{
		const int cm = (int)((g.m + MMA_TILE - 1) / MMA_TILE), cn = (int)((g.n + MMA_TILE - 1) / MMA_TILE);
		for (long long t = blockIdx.x; t < (long long)cm * cn * g.batch; t += gridDim.x) {
			const tile at = tile_at((int)(t % ((long long)cm * cn)), cm, cn, MMA_GROUP);
			tile_of(t / ((long long)cm * cn), (long long)at.m * MMA_TILE, (long long)at.n * MMA_TILE);
		}
	}
};
