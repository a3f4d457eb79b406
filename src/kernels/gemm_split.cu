/* Copies an operand of FP32 so that the tensor cores of Hopper can read it: rows whose K is adjacent.
 *
 * With `low` it becomes two parts that TF32 holds whole: the nearest number, and the nearest to what is left.  Three products
 * of such parts leave an error of about 2^-21 of each factor, where TF32 alone leaves 2^-11. */
#pragma once

#include "gemm.cu"

/* A number that is not finite stays what it is, and no other becomes infinite. */
static __device__ float nearest_tf32(float v)
{
	unsigned word;
	memcpy(&word, &v, sizeof word);
	if (v != v)
		return v;
	if ((word & 0x7fffffff) < 0x7f7ff000)
		word += 0xfff + (word >> 13 & 1);
	word &= 0xffffe000;
	memcpy(&v, &word, sizeof v);
	return v;
}

static __device__ void gemm_split(const split_args &g)
{
	BLOCK_SHARED_ARRAY(float, part);
	const int t = (int)threadIdx.x;
	const long long down = (g.rows + PLAIN_TILE - 1) / PLAIN_TILE, across = (g.k + PLAIN_K - 1) / PLAIN_K;
	for (long long tile = blockIdx.x; tile < across * down * g.batch; tile += gridDim.x) {
		const long long batch = tile / (across * down), r0 = tile / across % down * PLAIN_TILE, k0 = tile % across * PLAIN_K;
		const f32 *const from = (const f32 *)g.from + batch * g.apart;
		for (int i = t; i < PLAIN_TILE * PLAIN_K; i += 256) {
			const int k = g.step_k == 1 ? i % PLAIN_K : i / PLAIN_TILE, r = g.step_k == 1 ? i / PLAIN_K : i % PLAIN_TILE;
			part[k][r] = plain_get<f32>(from, r0 + r, k0 + k, g.rows, g.k, g.step_row, g.step_k);
		}
		__syncthreads();
		for (int i = t; i < PLAIN_TILE * PLAIN_K; i += 256) {
			const int k = i % PLAIN_K, r = i / PLAIN_K;
			const float v = part[k][r], high = g.low ? nearest_tf32(v) : v;
			const long long to = (batch * g.rows + r0 + r) * g.pitch + k0 + k;
			if (r0 + r >= g.rows || k0 + k >= g.k)
				continue;
			g.high[to] = high;
			if (g.low)
				g.low[to] = v - v == 0 ? nearest_tf32(v - high) : 0;
		}
		__syncthreads();
	}
}
