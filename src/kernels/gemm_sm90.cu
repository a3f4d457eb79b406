/* Products of BF16, FP16, TF32, INT8 and FP8 on Hopper's tensor cores, with what follows a product in a model.
 *
 * A warp loads tiles of A and B into a ring of STAGES by the copy engine, and warpgroups multiply them: three for tiles of
 * 192 rows, and otherwise two.  SHARED_TILE: each warpgroup has its share of a tile's rows.  PING_PONG: each has a tile of
 * its own, and one's epilogue runs under the other's products.  Blocks of a cluster of CLM x CLN share the loads: those of
 * a column the rows of B, those of a row the rows of A.  Blocks stay, and take tile after tile.
 *
 * Operands of 8 bits are scaled, and have results of another type.  BATCHED: the copy engine sees each matrix as one of
 * three dimensions, of which the second counts the products.
 *
 * Operands are 128 bytes of K by rows under the copy engine's swizzle.  TA and TB: the operand has K as rows.  Results
 * go out through BUFFERS slices of 64 rows by 64 columns, or by 32 of FP32.  Elements outside of a
 * matrix are read as 0 and not written. */
#pragma once

#include "element.cuh"
#include "gemm.cuh"
#ifdef __CUDACC_RTC__
#include "sm90.cuh"
#endif

enum schedule { SHARED_TILE, PING_PONG };

template <typename T> __device__ __forceinline__ void unpack(u32 word, float &low, float &high)
{
	T e[2];
	memcpy(e, &word, sizeof word);
	low = T::get(e[0]);
	high = T::get(e[1]);
}

static __device__ __forceinline__ float silu(float x)
{
	const float half = 0.5f * x;
	return half + half * fast_tanh(half);
}

template <int EPILOGUE> __device__ __forceinline__ float activate(float x)
{
	if (EPILOGUE == GEMM_BIAS_RELU)
		return fmaxf(x, 0);
	if (EPILOGUE == GEMM_BIAS_GELU)
		return 0.5f * x * (1 + fast_tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
	return EPILOGUE == GEMM_BIAS_SILU ? silu(x) : x;
}

/* A place of 128-byte rows under the swizzle of 128 bytes, whose atoms are 8 rows.  K as columns: 8 rows are 1024 bytes
 * apart.  K as rows: 64 elements along M or N stand in a row, the next 64 `apart` bytes on. */
static __device__ __forceinline__ u64 descriptor(u32 at, u32 apart)
{
	return (u64)((at & 0x3ffff) >> 4) | (u64)(apart >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

/* The same of 64-byte rows under the swizzle of 64 bytes. */
static __device__ __forceinline__ u64 narrow_descriptor(u32 at)
{
	return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(512 >> 4) << 32 | 2ull << 62;
}

/* D_BYTES: of an element of D.  ROW: bytes of K of a stage, 128 or 64.  HOLD: the blocks of K of B, if B stays. */
template <int BM, int BN, int STAGES, int BUFFERS, int CLM, int CLN, int SCHEDULE, int TA, int TB, int EPILOGUE, int D_BYTES = 2,
	int ROW = 128, int HOLD = 0>
struct shape {
	static constexpr int WARPGROUPS = SCHEDULE == SHARED_TILE && BM == 192 ? 3 : 2, CLUSTER = CLM * CLN;
	static constexpr int A_BYTES = BM * ROW, B_BYTES = BN * ROW, STAGE = A_BYTES + (HOLD ? 0 : B_BYTES), SLICE = 8192;
	static constexpr int HELD = HOLD * B_BYTES;
	static constexpr int STRIPS = SCHEDULE == PING_PONG ? BM / 64 : BM / 64 / WARPGROUPS; /* of 64 rows, of a warpgroup */
	static constexpr int COLUMNS = EPILOGUE == GEMM_SWIGLU ? BN / 2 : BN;     /* of D */
	static constexpr int WIDTH = D_BYTES == 4 ? 32 : 64;                      /* of a slice */
	static constexpr int FULL = COLUMNS / WIDTH, TAIL = COLUMNS % WIDTH, SLICES = FULL + (TAIL > 0);
	static constexpr int BARRIERS = 2 * STAGES + WARPGROUPS * BUFFERS + (HOLD > 0);
	static constexpr int BYTES = STAGES * STAGE + HELD + WARPGROUPS * BUFFERS * SLICE + 8 * BARRIERS;
	static_assert(STRIPS > 0 && BM % 64 == 0 && BN % 8 == 0 && TAIL % 16 == 0, "a tile of whole fragments");
	static_assert((!TA || BM / CLN % 64 == 0) && (!TB || (BN % 64 == 0 && BN / CLM % 64 == 0)), "whole atoms of 64");
	static_assert(BM % (8 * CLN) == 0 && BN % (8 * CLM) == 0, "each block loads whole atoms");
	static_assert(BYTES <= 232448, "shared memory of a block");
};

/* All threads of the cluster. */
template <int CLUSTER> __device__ __forceinline__ void together(void)
{
	if (CLUSTER > 1) {
		cluster_arrive();
		cluster_wait();
	} else {
		__syncthreads();
	}
}

struct ring {
	u32 stage, phase;
	template <int STAGES> __device__ __forceinline__ void next(void)
	{
		if (++stage == STAGES) {
			stage = 0;
			phase ^= 1;
		}
	}
	/* As often. */
	template <int STAGES> __device__ __forceinline__ void skip(u32 times)
	{
		const u32 to = stage + times;
		phase ^= to / STAGES & 1;
		stage = to % STAGES;
	}
};

/* One operand's tile of a stage: the part of it that this block loads, to the blocks that need it.  `rows` of it begin
 * at row `first` of the matrix, which is the one of that number in a batch. */
template <int ROWS, int TRANSPOSED, int SHARE, bool BATCHED = false>
__device__ __forceinline__ void load_operand(
	u32 to, const tensor_map &map, int k, int first, u32 barrier, unsigned mask, int number = 0)
{
	constexpr int LOADS = TRANSPOSED ? ROWS / 64 : 1;
#pragma unroll
	for (int c = 0; c < LOADS; c++) {
		const int x = TRANSPOSED ? first + c * 64 : k, y = TRANSPOSED ? k : first;
		if constexpr (SHARE > 1 && BATCHED)
			tma_load_tap_all(to + c * 8192, map, x, number, y, barrier, mask);
		else if constexpr (BATCHED)
			tma_load_tap(to + c * 8192, map, x, number, y, barrier);
		else if constexpr (SHARE > 1)
			tma_load_all(to + c * 8192, map, x, y, barrier, mask);
		else
			tma_load(to + c * 8192, map, x, y, barrier);
	}
}

/* How many products of K each is. */
template <typename T> struct parts_of {
	static constexpr int N = 1;
};

template <> struct parts_of<tf32x3> {
	static constexpr int N = 3;
};

/* MMA::multiply(sum, a, b, keep) is sum = a * b + (keep ? sum : 0) of 64 x BN by descriptors, as wgmma does it.  T is the
 * type of the operands, O that of the result. */
template <typename T, typename MMA, int BM, int BN, int STAGES, int BUFFERS, int CLM, int CLN, int SCHEDULE, int TA, int TB,
	int EPILOGUE, typename O = T, bool BATCHED = false, int ROW = 128, int HOLD = 0>
struct gemm {
	struct Z : shape<BM, BN, STAGES, BUFFERS, CLM, CLN, SCHEDULE, TA, TB, EPILOGUE, (int)sizeof(O), ROW, HOLD> {
		static constexpr int BK = ROW / (int)sizeof(T);
	};
	typedef typename sum_of<T>::type S;
	static constexpr bool SCALED = sizeof(T) == 1;
	static constexpr int PARTS = parts_of<T>::N;
	static_assert(sizeof(T) == 2 || (!TA && !TB), "operands of 8 and of 32 bits have K as columns");
	static_assert(!SCALED || EPILOGUE <= GEMM_BIAS_SILU, "scales are in no other epilogue");

	const tiled_args &p;
	u32 base, held, slices, full, empty, residual, kept;
	int warpgroup, thread, rank, sub_m, sub_n; /* thread of the warpgroup; place in the cluster */
	int blocks_k, cm, cn, tiles, step, first;
	int number; /* in the batch, of the tile of which corner() was asked last */

	__device__ __forceinline__ gemm(const tiled_args &args, u32 shared) : p(args), base(shared)
	{
		held = base + STAGES * Z::STAGE;
		slices = held + Z::HELD;
		full = slices + Z::WARPGROUPS * BUFFERS * Z::SLICE;
		empty = full + 8 * STAGES;
		residual = empty + 8 * STAGES;
		kept = residual + 8 * Z::WARPGROUPS * BUFFERS;
		warpgroup = (int)threadIdx.x / 128;
		thread = (int)threadIdx.x % 128;
		rank = Z::CLUSTER > 1 ? (int)cluster_rank() : 0;
		sub_m = rank % CLM;
		sub_n = rank / CLM;
		blocks_k = PARTS * ((p.k + Z::BK - 1) / Z::BK);
		cm = tile_count(p.m, BM * CLM);
		cn = tile_count(p.n, BN * CLN);
		tiles = cm * cn * (BATCHED ? p.batch : 1);
		number = 0;
		step = (int)gridDim.x / Z::CLUSTER;
		first = (int)blockIdx.x / Z::CLUSTER;
	}

	/* The launch may begin before the one before it has ended, and touches no memory until then. */
	__device__ __forceinline__ void start(void)
	{
		launch_next();
		if (threadIdx.x == 0) {
			for (int i = 0; i < STAGES; i++) {
				mbarrier_init(full + 8 * i, 1);
				mbarrier_init(empty + 8 * i,
					(SCHEDULE == PING_PONG ? 1 : Z::WARPGROUPS) * (CLM + CLN - 1));
			}
			for (int i = 0; i < Z::WARPGROUPS * BUFFERS; i++)
				mbarrier_init(residual + 8 * i, 1);
			if (HOLD)
				mbarrier_init(kept, 1);
			mbarrier_fence();
			tma_prefetch(p.a);
			tma_prefetch(p.b);
			tma_prefetch(p.d);
		}
		launch_wait();
		together<Z::CLUSTER>();
	}

	/* The first row of A and of B of a tile. */
	__device__ __forceinline__ tile corner(int t)
	{
		if (BATCHED) {
			number = t / (cm * cn);
			t -= number * (cm * cn);
		}
		return tile_corner(tile_at(t, cm, cn, p.group), CLM, CLN, sub_m, sub_n, BM, BN);
	}

	__device__ __forceinline__ void load(void)
	{
		constexpr int A_ROWS = BM / CLN, B_ROWS = BN / CLM; /* that this block loads for its neighbours too */
		unsigned a_mask = 0;
		for (int i = 0; i < CLN; i++)
			a_mask |= 1u << (i * CLM + sub_m);
		const unsigned b_mask = ((1u << CLM) - 1) << (sub_n * CLM);
		ring at = {0, 0};
		for (int t = first; t < tiles; t += step) {
			const tile c = corner(t);
			for (int kb = 0; kb < blocks_k; kb++) {
				/* What is small is added up first. */
				const int each = blocks_k / PARTS, pass = PARTS > 1 ? kb / each : 2;
				const int k = (PARTS > 1 ? kb - pass * each : kb) * Z::BK;
				const tensor_map &of_a = pass == 0 ? p.a_low : p.a, &of_b = pass == 1 ? p.b_low : p.b;
				mbarrier_wait(empty + 8 * at.stage, at.phase ^ 1);
				const u32 barrier = full + 8 * at.stage, a = base + at.stage * Z::STAGE;
				mbarrier_expect(barrier, Z::STAGE);
				load_operand<A_ROWS, TA, CLN, BATCHED>(a + sub_n * A_ROWS * 128, of_a, k,
					c.m + sub_n * A_ROWS, barrier, a_mask, BATCHED ? number * p.a_step : 0);
				load_operand<B_ROWS, TB, CLM, BATCHED>(a + Z::A_BYTES + sub_m * B_ROWS * 128, of_b, k,
					c.n + sub_m * B_ROWS, barrier, b_mask, BATCHED ? number * p.b_step : 0);
				at.next<STAGES>();
			}
		}
	}

	/* Tells every block that writes into this one's stage that it is free: one thread each. */
	__device__ __forceinline__ void release(u32 stage)
	{
		if (thread < CLM)
			mbarrier_arrive(empty + 8 * stage, sub_n * CLM + thread);
		else if (thread < CLM + CLN && thread - CLM != sub_n)
			mbarrier_arrive(empty + 8 * stage, (thread - CLM) * CLM + sub_m);
	}

	/* The warpgroup's part of a tile.  The products of a stage run while those of the next are begun. */
	__device__ __forceinline__ void multiply(S (&sum)[Z::STRIPS][BN / 2], ring &at, int w, int blocks)
	{
		u32 before = 0;
		if (HOLD)
			mbarrier_wait(kept, 0);
		for (int kb = 0; kb < blocks; kb++) {
			mbarrier_wait(full + 8 * at.stage, at.phase);
			const u32 stage = base + at.stage * Z::STAGE;
			const u32 a = stage + (SCHEDULE == PING_PONG ? 0 : w * Z::STRIPS * 64 * ROW);
			const u32 b = HOLD ? held + kb * Z::B_BYTES : stage + Z::A_BYTES;
			const u64 da = ROW == 64 ? narrow_descriptor(a) : descriptor(a, TA ? 8192 : 16);
			const u64 db = ROW == 64 ? narrow_descriptor(b) : descriptor(b, TB ? 8192 : 16);
			wgmma_fence();
#pragma unroll
			for (int kk = 0; kk < ROW / 32; kk++)
#pragma unroll
				for (int i = 0; i < Z::STRIPS; i++)
					MMA::multiply(sum[i], da + i * 4 * ROW + kk * (TA ? 128 : 2), db + kk * (TB ? 128 : 2),
						(kb | kk) != 0);
			wgmma_commit();
			if (kb > 0) {
				wgmma_wait<1>();
				release(before);
			}
			before = at.stage;
			at.next<STAGES>();
		}
		if (SCHEDULE == PING_PONG)
			named_arrive(4 - w, 256);
		wgmma_wait<0>();
		release(before);
	}

	/* Blocks of K of a tile. */
	__device__ __forceinline__ int blocks(int)
	{
		return blocks_k;
	}

	/* 64 rows of a slice, from shared memory to D. */
	__device__ __forceinline__ void store(u32 from, bool tail, int column, int row)
	{
		const tensor_map &map = tail ? p.d_tail : p.d;
		if constexpr (BATCHED)
			tma_store_tap(from, map, column, number, row);
		else
			tma_store(from, map, column, row);
	}

	/* The same of the residual to shared memory. */
	__device__ __forceinline__ void load_residual(u32 to, bool tail, int column, int row, u32 barrier)
	{
		const tensor_map &map = tail ? p.residual_tail : p.residual;
		if constexpr (BATCHED)
			tma_load_tap(to, map, column, number * p.residual_step, row, barrier);
		else
			tma_load(to, map, column, row, barrier);
	}

	/* A slice of the residual comes to where the slice of the result will stand, and each is added in place. */
	template <typename SELF> __device__ __forceinline__ void fetch(SELF &self, int w, int q, int row, int column)
	{
		const int s = q % Z::SLICES, buffer = w * BUFFERS + q % BUFFERS;
		const bool tail = s == Z::FULL;
		mbarrier_expect(residual + 8 * buffer, tail ? 64 * Z::TAIL * (int)sizeof(O) : Z::SLICE);
		self.load_residual(slices + buffer * Z::SLICE, tail, column + s * Z::WIDTH, row + q / Z::SLICES * 64, residual + 8 * buffer);
	}

	/* Two neighbours of a vector of N. */
	__device__ __forceinline__ void get_columns(const float *from, int column, float *to)
	{
		to[0] = column < p.n ? from[column] : 0;
		to[1] = column + 1 < p.n ? from[column + 1] : 0;
	}

	/* The scales of this thread's columns of a slice. */
	struct factors {
		float of[SCALED ? Z::WIDTH / 8 : 1][2];
	};

	__device__ __forceinline__ void get_factors(int column, int width, factors &to)
	{
		if constexpr (SCALED)
#pragma unroll
			for (int j = 0; j < Z::WIDTH / 8; j++)
				if (j < width / 8)
					get_columns(p.b_scale, column + j * 8 + thread % 4 * 2, to.of[j]);
	}

	/* 8 columns of two rows: this thread's part of a fragment.  `scale` is that of the rows, `factor` that of the columns,
	 * `old` the residual. */
	__device__ __forceinline__ void finish(
		const S *f, int column, const float *scale, const float *factor, const float *old, float *v)
	{
		for (int i = 0; i < 4; i++)
			v[i] = (float)f[i];
		if constexpr (SCALED) {
			for (int i = 0; i < 4; i++)
				v[i] = v[i] * scale[i / 2] * factor[i % 2];
		}
		if (EPILOGUE >= GEMM_BIAS && EPILOGUE <= GEMM_BIAS_SILU) {
			float b[2] = {0, 0};
			if constexpr (sizeof(T) != 2)
				get_columns((const float *)p.bias, column, b);
			else if (column < p.n)
				unpack<T>(*(const u32 *)((const T *)p.bias + column), b[0], b[1]);
			for (int i = 0; i < 4; i++)
				v[i] = activate<EPILOGUE>(v[i] + b[i % 2]);
		}
		if (EPILOGUE == GEMM_RESIDUAL)
			for (int i = 0; i < 4; i++)
				v[i] += old[i];
	}

	/* The same as two words, of which `old` has the residual. */
	__device__ __forceinline__ void finish_words(
		const S *f, int column, const float *scale, const float *factor, const u32 *old, u32 *to)
	{
		float v[4], r[4];
		if (EPILOGUE == GEMM_RESIDUAL)
			for (int i = 0; i < 2; i++)
				unpack<T>(old[i], r[2 * i], r[2 * i + 1]);
		finish(f, column, scale, factor, r, v);
		to[0] = O::word(v);
		to[1] = O::word(v + 2);
	}

	/* For a row of SwiGLU: 16 columns of the product, two fragments of 8, become 8.  Lane q of
	 * four has columns q and 4 + q, and must have 2q and 2q + 1. */
	__device__ __forceinline__ u32 finish_pairs(const float *f)
	{
		const float own[2] = {silu(f[0]) * f[1], silu(f[4]) * f[5]};
		const int lane = thread % 32, q = lane % 4;
		const u32 word = T::word(own);
		const int from = lane - q + 2 * q % 4;
		const u32 even = __shfl_sync(~0u, word, from), odd = __shfl_sync(~0u, word, from + 1);
		return q < 2 ? (even & 0xffff) | odd << 16 : even >> 16 | (odd & 0xffff0000);
	}

	/* 64 rows of a slice's columns, from registers to shared memory.  Full slices have rows of 128 bytes under the
	 * swizzle, the tail has shorter ones without. */
	__device__ __forceinline__ void put_slice(
		const S (&sum)[BN / 2], int s, int column, const float *scale, const factors &factor, u32 to)
	{
		const bool tail = s == Z::FULL;
		const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
#pragma unroll
		for (int j = 0; j < (tail ? Z::TAIL : 64) / 8; j += 2) {
			const int chunk = j + lane / 16;
			const u32 at = to + (tail ? row * (Z::TAIL * 2) + chunk * 16 : row * 128 + ((chunk ^ (row & 7)) << 4));
			u32 v[4], old[4] = {0, 0, 0, 0};
			if (EPILOGUE == GEMM_RESIDUAL)
				ldmatrix(at, old);
#pragma unroll
			for (int h = 0; h < 2; h++)
				if constexpr (EPILOGUE == GEMM_SWIGLU) {
					const float *f = sum + (s * 16 + (j + h) * 2) * 4;
					v[2 * h] = finish_pairs(f);
					v[2 * h + 1] = finish_pairs(f + 2);
				} else {
					finish_words(sum + (s * 8 + j + h) * 4, column + s * 64 + (j + h) * 8 + lane % 4 * 2,
						scale, factor.of[SCALED ? j + h : 0], old + 2 * h, v + 2 * h);
				}
			stmatrix(at, v);
		}
	}

	/* The same for a result of bytes, whose full slices have rows of 64 bytes under a swizzle of 64. */
	__device__ __forceinline__ void put_bytes(
		const S (&sum)[BN / 2], int s, int column, const float *scale, const factors &factor, u32 to)
	{
		const int width = s == Z::FULL ? Z::TAIL : 64, lane = thread % 32, row = thread / 32 * 16 + lane / 4;
		const int turn = s == Z::FULL ? 0 : (row / 2 & 3) << 4; /* of row + 8 too */
#pragma unroll
		for (int j = 0; j < width / 8; j++) {
			const int in = j * 8 + lane % 4 * 2;
			float v[4];
			finish(sum + (s * 8 + j) * 4, column + s * 64 + in, scale, factor.of[j], nullptr, v);
			store_pair(to + row * width + (in ^ turn), O::pair(v));
			store_pair(to + (row + 8) * width + (in ^ turn), O::pair(v + 2));
		}
	}

	/* The same for a result of FP32, in slices as those of put_slice() but with 32 columns. */
	__device__ __forceinline__ void put_floats(const S (&sum)[BN / 2], int s, int column, const float *scale, u32 to)
	{
		const bool tail = s == Z::FULL;
		const int lane = thread % 32, row = thread / 32 * 16 + lane / 4;
		const int pitch = tail ? Z::TAIL * 4 : 128, turn = tail ? 0 : (row & 7) << 4;
#pragma unroll
		for (int j = 0; j < (tail ? Z::TAIL : 32) / 8; j++)
			if constexpr (EPILOGUE == GEMM_SWIGLU) {
				const float *f = sum + (s * 8 + j * 2) * 4;
#pragma unroll
				for (int i = 0; i < 4; i++) { /* columns q and 4 + q of two rows */
					const u32 in = (u32)(j * 32 + i % 2 * 16 + lane % 4 * 4) ^ turn;
					const float *pair = f + i % 2 * 4 + i / 2 * 2;
					store_float(to + (row + i / 2 * 8) * pitch + in, silu(pair[0]) * pair[1]);
				}
			} else {
				const u32 at = to + row * pitch + ((u32)(j * 32 + lane % 4 * 8) ^ turn);
				float v[4], old[4];
				if (EPILOGUE == GEMM_RESIDUAL) {
					load_floats(at, old);
					load_floats(at + 8 * pitch, old + 2);
				}
				finish(sum + (s * 4 + j) * 4, column + s * 32 + j * 8 + lane % 4 * 2, scale, nullptr, old, v);
				store_floats(at, v);
				store_floats(at + 8 * pitch, v + 2);
			}
	}

	/* The scales of this thread's two rows of 64. */
	__device__ __forceinline__ void get_scales(int m, float *to)
	{
		const int row = m + thread / 32 * 16 + thread % 32 / 4;
		for (int i = 0; i < 2; i++)
			to[i] = !p.a_scale ? 1 : row + i * 8 < p.m ? p.a_scale[row + i * 8] : 0;
	}

	/* `used`: slices that this warpgroup has written so far; `arrived`: a bit of parity for each buffer. */
	template <typename SELF>
	__device__ __forceinline__ void put(SELF &self, const S (&sum)[Z::STRIPS][BN / 2], int w, tile c, u32 &used, u32 &arrived)
	{
		constexpr int ALL = Z::STRIPS * Z::SLICES;
		const int column = EPILOGUE == GEMM_SWIGLU ? c.n / 2 : c.n;
#pragma unroll
		for (int i = 0; i < Z::STRIPS; i++) {
			float scale[2] = {1, 1};
			if constexpr (SCALED)
				get_scales(c.m + i * 64, scale);
#pragma unroll
			for (int s = 0; s < Z::SLICES; s++) {
				const int q = i * Z::SLICES + s;
				const int b = (EPILOGUE == GEMM_RESIDUAL ? q : (int)used) % BUFFERS;
				const u32 to = slices + (w * BUFFERS + b) * Z::SLICE;
				used++;
				factors factor = {}; /* loaded before anybody waits */
				get_factors(c.n + s * Z::WIDTH, s == Z::FULL ? Z::TAIL : Z::WIDTH, factor);
				if (EPILOGUE == GEMM_RESIDUAL) {
					mbarrier_wait(residual + 8 * (w * BUFFERS + b), arrived >> b & 1);
					arrived ^= 1u << b;
				} else {
					if (thread == 0)
						tma_wait_read<BUFFERS - 1>();
					named_sync(1 + w, 128);
				}
				if constexpr (sizeof(O) == 1)
					put_bytes(sum[i], s, c.n, scale, factor, to);
				else if constexpr (sizeof(O) == 4)
					put_floats(sum[i], s, c.n, scale, to);
				else
					put_slice(sum[i], s, c.n, scale, factor, to);
				fence_async();
				named_sync(1 + w, 128);
				if (thread != 0)
					continue;
				self.store(to, s == Z::FULL, column + s * Z::WIDTH, c.m + i * 64);
				if (EPILOGUE == GEMM_RESIDUAL && q + BUFFERS < ALL) {
					tma_wait_read<0>();
					fetch(self, w, q + BUFFERS, c.m, c.n);
				}
			}
		}
	}

	/* The parity of a barrier tells only one phase from the next.  So each warpgroup of a ping-pong waits for its stages
	 * only once the other has seen all of its own: barriers 3 and 4 are whose turn it is. */
	template <typename SELF> __device__ __forceinline__ void compute(SELF &self, int w)
	{
		constexpr bool OWN = SCHEDULE == PING_PONG;
		S sum[Z::STRIPS][BN / 2];
		u32 used = 0, arrived = 0;
		ring at = {0, 0};
		if (OWN && w == 1) {
			named_arrive(3, 256);
			at.skip<STAGES>((u32)self.blocks(first));
		}
		for (int t = first + (OWN ? w * step : 0); t < tiles; t += OWN ? 2 * step : step) {
			tile c = self.corner(t);
			if (!OWN)
				c.m += w * Z::STRIPS * 64;
			if (EPILOGUE == GEMM_RESIDUAL && thread == 0) {
				tma_wait_read<0>();
#pragma unroll
				for (int q = 0; q < BUFFERS && q < Z::STRIPS * Z::SLICES; q++)
					fetch(self, w, q, c.m, c.n);
			}
			if (OWN)
				named_sync(3 + w, 256);
			multiply(sum, at, w, self.blocks(t));
			if (OWN)
				at.skip<STAGES>((u32)self.blocks(t + step)); /* the other's tile */
			self.put(self, sum, w, c, used, arrived);
		}
		if (thread == 0)
			tma_wait();
	}

	__device__ __forceinline__ void run(void)
	{
		run_as(*this);
	}

	/* A struct that is built on this has a load() of its own, and may have another corner(), blocks(), store(),
	 * load_residual() and put(). */
	template <typename SELF> __device__ __forceinline__ void run_as(SELF &self)
	{
		start();
		if (warpgroup == 0) {
			registers_less<Z::WARPGROUPS == 3 ? 32 : 40>();
			if (threadIdx.x < 32 && elect_one())
				self.load();
		} else {
			registers_more<Z::WARPGROUPS == 3 ? 160 : 232>();
			compute(self, warpgroup - 1);
		}
		if (Z::CLUSTER > 1) /* no block leaves while a neighbour may still write or arrive there */
			together<Z::CLUSTER>();
	}
};
