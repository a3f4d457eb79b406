/* Convolutions of BF16 or FP16 on Hopper's tensor cores: the product of gemm_sm90.cu, whose rows of A are pixels that the
 * copy engine gathers.  A block of K is 64 channels of one tap.  Of channels that are fewer the rest is read as 0. */
#pragma once

#include "conv.cuh"
#include "gemm_sm90.cu"

/* TB: B has the columns of D as rows of adjacent elements. */
template <typename T, typename MMA, int BM, int BN, int STAGES, int BUFFERS, int CLM, int SCHEDULE, int TB, int EPILOGUE>
struct conv : gemm<T, MMA, BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, TB, EPILOGUE> {
	typedef gemm<T, MMA, BM, BN, STAGES, BUFFERS, CLM, 1, SCHEDULE, 0, TB, EPILOGUE> product;
	typedef typename product::Z Z;

	const conv_tiled_args &g;

	__device__ __forceinline__ conv(const conv_tiled_args &args, u32 shared) : product(args.product, shared), g(args)
	{
	}

	/* The part of B's tile that this block loads, to all of the cluster. */
	__device__ __forceinline__ void load_filters(u32 to, int channel, int tap, int first, u32 barrier)
	{
		constexpr int ROWS = BN / CLM, LOADS = TB ? ROWS / 64 : 1;
#pragma unroll
		for (int i = 0; i < LOADS; i++) {
			const int x = TB ? first + i * 64 : channel, y = TB ? channel : first;
			if constexpr (CLM > 1)
				tma_load_tap_all(to + i * 8192, g.product.b, x, tap, y, barrier, (1u << CLM) - 1);
			else
				tma_load_tap(to + i * 8192, g.product.b, x, tap, y, barrier);
		}
	}

	__device__ __forceinline__ void load(void)
	{
		const int share = this->sub_m * (BN / CLM);
		ring at = {0, 0};
		for (int t = this->first; t < this->tiles; t += this->step) {
			const tile c = this->corner(t);
			const int line = c.m / g.x.d, image = line / g.y.d;
			const int x = (c.m - line * g.x.d) * g.x.times + g.x.first;
			const int y = (line - image * g.y.d) * g.y.times + g.y.first;
			int tap = g.first_tap;
			for (int r = 0; r < g.y.taps; r++)
				for (int s = 0; s < g.x.taps; s++, tap += g.tap_step)
					for (int k = 0; k < g.channels; k += Z::BK) {
						mbarrier_wait(this->empty + 8 * at.stage, at.phase ^ 1);
						const u32 barrier = this->full + 8 * at.stage, a = this->base + at.stage * Z::STAGE;
						mbarrier_expect(barrier, Z::STAGE);
						tma_load_pixels(a, g.product.a, k, x, y, image, s * g.x.step, r * g.y.step, barrier);
						load_filters(a + Z::A_BYTES + share * 128, k, tap, c.n + share, barrier);
						at.template next<STAGES>();
					}
		}
	}

	__device__ __forceinline__ void run(void)
	{
		this->run_with(*this);
	}
};
