/* Convolutions of BF16, FP16 or INT8 on Hopper's tensor cores: the product of gemm_sm90.cu, whose rows of A are pixels that the
 * copy engine gathers.  A block of K is 64 channels of one tap, or 128 of INT8.  If there are fewer channels, the
 * rest is read as 0. */
#pragma once

#include "conv.cuh"
#include "gemm_sm90.cu"

/* TB: B has the columns of D as rows of adjacent elements.  HOLD: the filters are those of one tile and of so many blocks of
 * K, and stay in shared memory. */
template <typename T, typename MMA, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE, int TB, int EPILOGUE, typename O = T,
	int ROW = 128, int HOLD = 0>
struct conv : gemm<T, MMA, BM, BN, STAGES, BUFFERS, 1, 1, SCHEDULE, 0, TB, EPILOGUE, O, false, ROW, HOLD> {
	typedef gemm<T, MMA, BM, BN, STAGES, BUFFERS, 1, 1, SCHEDULE, 0, TB, EPILOGUE, O, false, ROW, HOLD> product;
	typedef typename product::Z Z;

	const conv_tiled_args &g;

	__device__ __forceinline__ conv(const conv_tiled_args &args, u32 shared) : product(args.product, shared), g(args)
	{
	}

	__device__ __forceinline__ void load_filters(u32 to, int channel, int tap, int first, u32 barrier)
	{
		constexpr int LOADS = TB ? BN / 64 : 1;
#pragma unroll
		for (int i = 0; i < LOADS; i++) {
			const int x = TB ? first + i * 64 : channel, y = TB ? channel : first;
			tma_load_tap(to + i * 8192, g.product.b, x, tap, y, barrier);
		}
	}

	/* All of them. */
	__device__ __forceinline__ void hold_filters(void)
	{
		u32 to = this->held;
		mbarrier_expect(this->kept, Z::HELD);
		for (int tap = 0; tap < g.y.taps * g.x.taps; tap++)
			for (int k = 0; k < g.channels; k += Z::BK, to += Z::B_BYTES)
				load_filters(to, k, g.first_tap + tap * g.tap_step, 0, this->kept);
	}

	__device__ __forceinline__ void load(void)
	{
		ring at = {0, 0};
		if (HOLD)
			hold_filters();
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
						if (!HOLD)
							load_filters(a + Z::A_BYTES, k, tap, c.n, barrier);
						at.template next<STAGES>();
					}
		}
	}

	__device__ __forceinline__ void run(void)
	{
		this->run_as(*this);
	}
};

struct __align__(8) float_pair {
	float v[2];
};

/* A pixel of D, by its number in all images.  Divisions would hold up the only thread that loads. */
struct position {
	int x, y, image;
	__device__ __forceinline__ position(int pixel, const conv_tiled_args &g)
	{
		const int line = pixel / g.x.d;
		x = pixel - line * g.x.d;
		image = line / g.y.d;
		y = line - image * g.y.d;
	}
	__device__ __forceinline__ void move(const position &by, const conv_tiled_args &g)
	{
		x += by.x;
		y += by.y;
		image += by.image;
		if (x >= g.x.d) {
			x -= g.x.d;
			y++;
		}
		if (y >= g.y.d) {
			y -= g.y.d;
			image++;
		}
	}
};

/* The gradient of filters.  A is the gradient of the output and B the input, both with pixels as K.  Rows of D are
 * filters, and columns 64 channels of one tap and then of the next.  `parts` blocks share the pixels of a tile. */
template <typename T, typename MMA, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE>
struct conv_gradient : gemm<T, MMA, BM, BN, STAGES, BUFFERS, 1, 1, SCHEDULE, 1, 1, GEMM_NONE> {
	typedef gemm<T, MMA, BM, BN, STAGES, BUFFERS, 1, 1, SCHEDULE, 1, 1, GEMM_NONE> product;
	typedef typename product::Z Z;

	static constexpr int CHUNKS = BN / 64;
	const conv_tiled_args &g;
	int chunks, taps; /* of 64 channels of a tap */
	int part;         /* of the tile of which corner() was asked last */

	__device__ __forceinline__ conv_gradient(const conv_tiled_args &args, u32 shared)
		: product(args.product, shared), g(args), part(0)
	{
		chunks = (g.channels + 63) / 64;
		taps = g.y.taps * g.x.taps;
		this->tiles *= g.parts;
	}

	__device__ __forceinline__ tile corner(int t)
	{
		const int each = this->cm * this->cn;
		part = t / each;
		return product::corner(t - part * each);
	}

	__device__ __forceinline__ void load(void)
	{
		ring at = {0, 0};
		const position step(Z::BK, g);
		for (int t = this->first; t < this->tiles; t += this->step) {
			const tile c = corner(t);
			position next(part * g.product.k, g);
			int channel[CHUNKS], right[CHUNKS], down[CHUNKS];
#pragma unroll
			for (int i = 0; i < CHUNKS; i++) {
				const int tap = (c.n / 64 + i) / chunks, r = tap / g.x.taps;
				/* Behind the last tap all is 0, as behind the last channel. */
				channel[i] = (tap < taps ? c.n / 64 + i - tap * chunks : chunks) * 64;
				right[i] = tap < taps ? (tap - r * g.x.taps) * g.x.step : 0;
				down[i] = tap < taps ? r * g.y.step : 0;
			}
			for (int kb = 0; kb < this->blocks_k; kb++) {
				const int pixel = part * g.product.k + kb * Z::BK, image = next.image;
				const int x = next.x * g.x.times + g.x.first, y = next.y * g.y.times + g.y.first;
				next.move(step, g);
				mbarrier_wait(this->empty + 8 * at.stage, at.phase ^ 1);
				const u32 barrier = this->full + 8 * at.stage, a = this->base + at.stage * Z::STAGE;
				mbarrier_expect(barrier, Z::STAGE);
				load_operand<BM, 1, 1>(a, g.product.a, pixel, c.m, barrier, 0);
#pragma unroll
				for (int i = 0; i < CHUNKS; i++)
					tma_load_pixels(a + Z::A_BYTES + i * 8192, g.product.b, channel[i], x, y, image,
						right[i], down[i], barrier);
				at.template next<STAGES>();
			}
		}
	}

	template <typename SELF>
	__device__ __forceinline__ void put(SELF &, const float (&sum)[Z::STRIPS][BN / 2], int, tile c, u32 &, u32 &)
	{
		const int row = c.m + this->thread / 32 * 16 + this->thread % 32 / 4;
#pragma unroll
		for (int s = 0; s < CHUNKS; s++) {
			const int tap = (c.n / 64 + s) / chunks;
			const int channel = (c.n / 64 + s - tap * chunks) * 64 + this->thread % 4 * 2;
#pragma unroll
			for (int i = 0; i < 2 * Z::STRIPS; i++) {
				const int filter = row + i / 2 * 64 + i % 2 * 8;
				float *const to = g.sums + (((long long)part * g.product.m + filter) * taps + tap) * g.channels;
#pragma unroll
				for (int j = 0; j < 8; j++) {
					const float *const from = sum[i / 2] + (s * 8 + j) * 4 + i % 2 * 2;
					if (filter < g.product.m && tap < taps && channel + j * 8 < g.channels)
						*(float_pair *)(to + channel + j * 8) = {{from[0], from[1]}};
				}
			}
		}
	}

	__device__ __forceinline__ void run(void)
	{
		this->run_as(*this);
	}
};
