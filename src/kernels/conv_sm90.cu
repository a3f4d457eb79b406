/* Convolutions of BF16, FP16 or INT8 on Hopper's tensor cores: the product of gemm_sm90.cu, whose rows of A are pixels that the
 * copy engine gathers.  A block of K is 64 channels of one tap, or 128 of INT8.  If there are fewer channels, the
 * rest is read as 0. */
#pragma once

#include "conv.cuh"
#include "gemm_sm90.cu"

/* A pixel of D, by its number in all images.  Divisions would hold up the only thread that loads. */
struct position {
	int x, y, image;
	__device__ __forceinline__ position(int pixel, const conv_axis &of_x, const conv_axis &of_y)
	{
		const int line = pixel / of_x.d;
		x = pixel - line * of_x.d;
		image = line / of_y.d;
		y = line - image * of_y.d;
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

	/* From `channel` on of each tap. */
	__device__ __forceinline__ void load_tile(const tensor_map &pixels, const conv_axis &y, const conv_axis &x, int first_tap,
		int channel, const tile &c, ring &at)
	{
		const position from(c.m, x, y);
		const int across = from.x * x.times + x.first, down = from.y * y.times + y.first;
		for (int r = 0; r < y.taps; r++)
			for (int s = 0; s < x.taps; s++) {
				const int tap = first_tap + r * g.row_step + s * g.tap_step;
				int k = channel;
				do {
					mbarrier_wait(this->empty + 8 * at.stage, at.phase ^ 1);
					const u32 barrier = this->full + 8 * at.stage, a = this->base + at.stage * Z::STAGE;
					mbarrier_expect(barrier, Z::STAGE);
					tma_load_pixels(a, pixels, k, across, down, from.image, s * x.step, r * y.step, barrier);
					if (!HOLD)
						load_filters(a + Z::A_BYTES, k, tap, c.n, barrier);
					at.template next<STAGES>();
				} while ((k += Z::BK) < g.channels);
			}
	}

	__device__ __forceinline__ void load(void)
	{
		ring at = {0, 0};
		if (HOLD)
			hold_filters();
		for (int t = this->first; t < this->tiles; t += this->step)
			load_tile(g.product.a, g.y, g.x, g.first_tap, 0, this->corner(t), at);
	}

	__device__ __forceinline__ void run(void)
	{
		this->run_as(*this);
	}
};

/* The gradient of the input at a stride above 1.  Phases come one behind the other, those of most taps first, so that the last
 * tiles are short ones.  If all are as long, the phases of a tile come beside each other, as their pixels do in memory. */
template <typename T, typename MMA, int BM, int BN, int STAGES, int BUFFERS, int SCHEDULE, int EPILOGUE>
struct conv_phased : conv<T, MMA, BM, BN, STAGES, BUFFERS, SCHEDULE, 1, EPILOGUE> {
	typedef conv<T, MMA, BM, BN, STAGES, BUFFERS, SCHEDULE, 1, EPILOGUE> one;

	const conv_phased_args &all;
	bool beside;
	int phase; /* of the tile of which corner() was asked last */

	__device__ __forceinline__ conv_phased(const conv_phased_args &args, u32 shared) : one(args.conv, shared), all(args), phase(0)
	{
		const conv_phase &first = all.phase[0], &last = all.phase[all.phases - 1];
		beside = first.blocks == last.blocks && first.tiles == last.tiles;
		this->tiles = 0;
		for (int i = 0; i < all.phases; i++)
			this->tiles += all.phase[i].tiles * this->cn;
	}

	/* The phase of a tile, which then is the tile's number in it. */
	__device__ __forceinline__ int find(int &t)
	{
		const int number = t;
		int i = 0;
		if (beside) {
			t /= all.phases;
			return number - t * all.phases;
		}
		for (; t >= all.phase[i].tiles * this->cn; i++)
			t -= all.phase[i].tiles * this->cn;
		return i;
	}

	__device__ __forceinline__ tile corner(int t)
	{
		phase = find(t);
		this->cm = all.phase[phase].tiles;
		return one::corner(t);
	}

	/* Also of tiles that are not there. */
	__device__ __forceinline__ int blocks(int t)
	{
		return t < this->tiles ? all.phase[find(t)].blocks : 0;
	}

	__device__ __forceinline__ void store(u32 from, bool, int column, int row)
	{
		const conv_phase &f = all.phase[phase];
		const position to(row, f.x, f.y);
		tma_store_pixels(from, f.d, column, to.x, to.y, to.image);
	}

	__device__ __forceinline__ void load_residual(u32 to, bool, int column, int row, u32 barrier)
	{
		const conv_phase &f = all.phase[phase];
		const position from(row, f.x, f.y);
		tma_load_pixels(to, f.residual, column, from.x, from.y, from.image, 0, 0, barrier);
	}

	__device__ __forceinline__ void load(void)
	{
		ring at = {0, 0};
		for (int t = this->first; t < this->tiles; t += this->step) {
			const tile c = corner(t);
			const conv_phase &f = all.phase[phase];
			this->load_tile(f.a, f.y, f.x, f.first_tap, f.channel, c, at);
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
		const position step(Z::BK, g.x, g.y);
		for (int t = this->first; t < this->tiles; t += this->step) {
			const tile c = corner(t);
			position next(part * g.product.k, g.x, g.y);
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
