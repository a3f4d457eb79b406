/* Products of any shape, pitch and alignment on any GPU: the plain form.
 *
 * A block of 256 threads takes 64 x 64 of D, and each thread 4 x 4 of that.  Sums are FP32, in the order of k. */
#pragma once

#include "element.cuh"
#include "gemm.cuh"

enum { PLAIN_TILE = 64, PLAIN_K = 16 };

#ifdef __CUDACC_RTC__
#define BLOCK_SHARED_ARRAY(type, name) __shared__ type name[PLAIN_K][PLAIN_TILE + 1]
#else
#define BLOCK_SHARED_ARRAY(type, name)                                                                                 \
	BLOCK_SHARED(type, name##_flat, PLAIN_K *(PLAIN_TILE + 1));                                                    \
	type(*const name)[PLAIN_TILE + 1] = (type(*)[PLAIN_TILE + 1]) name##_flat
#endif

static __device__ float plain_silu(float x)
{
	return x / (1 + expf(-x));
}

static __device__ float plain_activate(int epilogue, float x)
{
	if (epilogue == GEMM_BIAS_RELU)
		return fmaxf(x, 0);
	if (epilogue == GEMM_BIAS_GELU)
		return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
	return epilogue == GEMM_BIAS_SILU ? plain_silu(x) : x;
}

/* T: of the operands, O: of the result. */
template <typename T, typename O = T>
__device__ __noinline__ void plain_put(const gemm_args &a, long long batch, long long m, long long n, float v)
{
	constexpr bool SCALED = sizeof(T) == 1;
	const int epilogue = a.epilogue;
	if (m >= a.m || n >= a.n)
		return;
	if (SCALED)
		v = v * (a.a_scale ? a.a_scale[m] : 1) * a.b_scale[n];
	if (epilogue >= GEMM_BIAS && epilogue <= GEMM_BIAS_SILU)
		v = plain_activate(epilogue, v + (SCALED ? ((const float *)a.bias)[n] : T::get(((const T *)a.bias)[n])));
	if (epilogue == GEMM_RESIDUAL)
		v += T::get(((const T *)a.residual)[batch * a.residual_batch + m * a.residual_row + n]);
	((O *)a.d)[batch * a.d_batch + m * a.d_row + n] = O::make(v);
}

/* Element (row, k) of an operand, 0 outside. */
template <typename T>
__device__ typename sum_of<T>::type plain_get(const void *of, long long row, long long k, long long rows, long long most_k, long long row_step,
	long long k_step)
{
	return row < rows && k < most_k ? T::get(((const T *)of)[row * row_step + k * k_step]) : 0;
}

template <typename T, typename O = T> __device__ void gemm_plain(const gemm_args &g)
{
	typedef typename sum_of<T>::type S;
	BLOCK_SHARED_ARRAY(S, a);
	BLOCK_SHARED_ARRAY(S, b);
	const int t = (int)threadIdx.x, row = t / 16 * 4, column = t % 16 * 4;
	const long long across = (g.n + PLAIN_TILE - 1) / PLAIN_TILE, down = (g.m + PLAIN_TILE - 1) / PLAIN_TILE;
	for (long long tile = blockIdx.x; tile < across * down * g.batch; tile += gridDim.x) {
		const long long batch = tile / (across * down), m0 = tile / across % down * PLAIN_TILE;
		const long long n0 = tile % across * PLAIN_TILE;
		const T *const a_at = (const T *)g.a + batch * g.a_batch, *const b_at = (const T *)g.b + batch * g.b_batch;
		S sum[4][4] = {};
		for (long long k0 = 0; k0 < g.k; k0 += PLAIN_K) {
			/* Neighbours in a warp read what is adjacent in memory. */
			for (int i = t; i < PLAIN_TILE * PLAIN_K; i += 256) {
				const int ka = g.a_k == 1 ? i % PLAIN_K : i / PLAIN_TILE;
				const int ra = g.a_k == 1 ? i / PLAIN_K : i % PLAIN_TILE;
				const int kb = g.b_k == 1 ? i % PLAIN_K : i / PLAIN_TILE;
				const int rb = g.b_k == 1 ? i / PLAIN_K : i % PLAIN_TILE;
				a[ka][ra] = plain_get<T>(a_at, m0 + ra, k0 + ka, g.m, g.k, g.a_row, g.a_k);
				b[kb][rb] = plain_get<T>(b_at, n0 + rb, k0 + kb, g.n, g.k, g.b_row, g.b_k);
			}
			__syncthreads();
			for (int k = 0; k < PLAIN_K; k++)
				for (int i = 0; i < 4; i++)
					for (int j = 0; j < 4; j++)
						sum[i][j] += a[k][row + i] * b[k][column + j];
			__syncthreads();
		}
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++)
				if (g.epilogue != GEMM_SWIGLU)
					plain_put<T, O>(g, batch, m0 + row + i, n0 + column + j, (float)sum[i][j]);
				else if (j % 2 == 0 && m0 + row + i < g.m && n0 + column + j + 1 < g.n)
					((O *)g.d)[batch * g.d_batch + (m0 + row + i) * g.d_row + (n0 + column + j) / 2] =
						O::make(plain_silu((float)sum[i][j]) * (float)sum[i][j + 1]);
	}
}
