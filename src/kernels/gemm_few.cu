/* Products whose A has few rows, as those of a model that decodes: B, the weights, is read once, and that takes the time.
 *
 * A tile is ROWS rows of B and all rows of A, of which there are no more than BN.  It is computed as D's transpose, so
 * that the tensor cores' 64 rows are those of B.  PARTS blocks of a cluster share K.  They leave their sums in shared
 * memory, and each adds up some of all blocks' sums, in the order of the blocks.  If a block has all of K, tiles begin
 * TURN blocks of K apart, so that not all read the same lines of A at a time.  That made them 1 to 7 % faster on an H200,
 * but parts of K up to 14 % slower, and so it did the smallest tiles of 128 rows.
 *
 * A warp loads by the copy engine into a ring of STAGES, and WARPGROUPS multiply.  The launch may begin before the
 * one before it has ended.  AHEAD: it loads weights until then, which nobody may be writing.
 *
 * Operands have K as columns.  Rows of D, and of the residual, begin at multiples of 16 bytes, and so does the bias. */
#pragma once

#include "gemm_sm90.cu"

template <int WARPGROUPS, int BN, int STAGES, int PARTS> struct few_shape {
	static constexpr int ROWS = 64 * WARPGROUPS, MULTIPLIERS = 128 * WARPGROUPS;
	static constexpr int B_BYTES = ROWS * 128, STAGE = B_BYTES + BN * 128;
	static constexpr int PITCH = ROWS + 4; /* floats of a row of sums: no two lanes write to one bank */
	static constexpr int BYTES = STAGES * STAGE + 16 * STAGES;
	static_assert(BN % 8 == 0 && PARTS <= 8, "whole atoms, and a cluster that every GPU has");
	static_assert(BN * PITCH * 4 <= STAGES * STAGE && BYTES <= 232448, "the sums stand where the stages were");
};

struct __align__(16) eight_halves {
	u32 word[4];
};

struct __align__(8) four_halves {
	u32 word[2];
};

template <typename T, typename MMA, int WARPGROUPS, int BN, int STAGES, int PARTS, int EPILOGUE, bool AHEAD>
struct few {
	typedef few_shape<WARPGROUPS, BN, STAGES, PARTS> Z;
	static constexpr int BK = 128 / (int)sizeof(T), TURN = PARTS == 1 && WARPGROUPS * 128 > BN ? 16 : 0;

	const few_args &p;
	u32 base, full, empty;
	int warp, lane, part; /* part: this block of the cluster */
	int first, from, to, begin; /* rows of B from here on, and blocks of K, of which `begin` comes first */

	__device__ __forceinline__ few(const few_args &args, u32 shared) : p(args), base(shared)
	{
		full = base + STAGES * Z::STAGE;
		empty = full + 8 * STAGES;
		warp = (int)threadIdx.x / 32;
		lane = (int)threadIdx.x % 32;
		part = PARTS > 1 ? (int)cluster_rank() : 0;
		first = (int)blockIdx.x / PARTS * Z::ROWS;
		const int all = tile_count(p.k, BK);
		from = (int)((long long)all * part / PARTS);
		to = (int)((long long)all * (part + 1) / PARTS);
		begin = to > from ? from + (int)blockIdx.x / PARTS * TURN % (to - from) : from;
	}

	__device__ __forceinline__ void start(void)
	{
		if (threadIdx.x == 0) {
			for (int i = 0; i < STAGES; i++) {
				mbarrier_init(full + 8 * i, 1);
				mbarrier_init(empty + 8 * i, WARPGROUPS);
			}
			mbarrier_fence();
			tma_prefetch(p.a);
			tma_prefetch(p.b);
		}
		launch_next();
		if (!AHEAD)
			launch_wait();
		together<PARTS>();
	}

	__device__ __forceinline__ void load_weights(u32 stage, int kb)
	{
		mbarrier_expect(full + 8 * stage, Z::STAGE);
		tma_load_once(base + stage * Z::STAGE, p.b, kb * BK, first, full + 8 * stage);
	}

	__device__ __forceinline__ void load_rows(u32 stage, int kb)
	{
		tma_load(base + stage * Z::STAGE + Z::B_BYTES, p.a, kb * BK, 0, full + 8 * stage);
	}

	/* The i-th block of K. */
	__device__ __forceinline__ int at_turn(int i)
	{
		return begin + i < to ? begin + i : begin + i - (to - from);
	}

	__device__ __forceinline__ void load(void)
	{
		const int ahead = to - from < STAGES ? to - from : STAGES;
		for (int i = 0; i < ahead; i++)
			load_weights(i, at_turn(i));
		if (AHEAD)
			launch_wait();
		for (int i = 0; i < ahead; i++)
			load_rows(i, at_turn(i));
		ring at = {0, 0};
		for (int i = ahead; i < to - from; i++) {
			mbarrier_wait(empty + 8 * at.stage, at.phase);
			load_weights(at.stage, at_turn(i));
			load_rows(at.stage, at_turn(i));
			at.next<STAGES>();
		}
	}

	__device__ __forceinline__ void release(u32 stage)
	{
		if (threadIdx.x % 128 == 0)
			mbarrier_arrive(empty + 8 * stage, part);
	}

	__device__ __forceinline__ void multiply(float (&sum)[BN / 2])
	{
		ring at = {0, 0};
		u32 before = 0;
		for (int kb = from; kb < to; kb++) {
			mbarrier_wait(full + 8 * at.stage, at.phase);
			const u32 b = base + at.stage * Z::STAGE;
			const u64 db = descriptor(b + warp / 4 * 8192, 16), da = descriptor(b + Z::B_BYTES, 16);
			wgmma_fence();
#pragma unroll
			for (int kk = 0; kk < 4; kk++)
				MMA::multiply(sum, db + kk * 2, da + kk * 2, kb > from || kk > 0);
			wgmma_commit();
			if (kb > from) {
				wgmma_wait<1>();
				release(before);
			}
			before = at.stage;
			at.next<STAGES>();
		}
		wgmma_wait<0>();
	}

	/* Where the sum of a row of A and a row of the tile stands. */
	__device__ __forceinline__ u32 place(int m, int n)
	{
		return base + (u32)(m * Z::PITCH + n) * 4;
	}

	__device__ __forceinline__ void leave(const float (&sum)[BN / 2])
	{
		named_sync(1, Z::MULTIPLIERS); /* all products have read their stages */
#pragma unroll
		for (int i = 0; i < BN / 2; i++)
			store_float(place(i / 4 * 8 + lane % 4 * 2 + i % 2, warp * 16 + lane / 4 + i % 4 / 2 * 8), sum[i]);
	}

	/* The sums of eight rows of B, of all parts. */
	__device__ __forceinline__ void add_parts(int m, int n, float (&v)[8])
	{
#pragma unroll
		for (int i = 0; i < PARTS; i++) {
			float of_part[8];
			load_four_of(place(m, n), i, of_part);
			load_four_of(place(m, n + 4), i, of_part + 4);
#pragma unroll
			for (int j = 0; j < 8; j++)
				v[j] = i ? v[j] + of_part[j] : of_part[j];
		}
	}

	__device__ __forceinline__ void load_four_of(u32 at, unsigned rank, float *to)
	{
		if constexpr (PARTS > 1)
			cluster_load(at, rank, to);
		else
			load_four(at, to);
	}

	__device__ __forceinline__ void get_eight(const void *of, long long at, float (&to)[8])
	{
		const eight_halves e = *(const eight_halves *)((const T *)of + at);
#pragma unroll
		for (int i = 0; i < 4; i++)
			unpack<T>(e.word[i], to[2 * i], to[2 * i + 1]);
	}

	/* Eight columns of a row of D, or of SwiGLU the four that they give. */
	__device__ __forceinline__ void put(int m, int n, float (&v)[8])
	{
		float other[8];
		T *const row = (T *)p.d + m * p.d_row;
		if constexpr (EPILOGUE == GEMM_SWIGLU) {
#pragma unroll
			for (int i = 0; i < 4; i++)
				other[i] = silu(v[2 * i]) * v[2 * i + 1];
			*(four_halves *)(row + n / 2) = {{T::word(other), T::word(other + 2)}};
		} else {
			put_eight(m, n, row, v, other);
		}
	}

	__device__ __forceinline__ void put_eight(int m, int n, T *row, float (&v)[8], float (&other)[8])
	{
		if constexpr (EPILOGUE >= GEMM_BIAS && EPILOGUE <= GEMM_BIAS_SILU) {
			get_eight(p.bias, n, other);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] = activate<EPILOGUE>(v[i] + other[i]);
		}
		if constexpr (EPILOGUE == GEMM_RESIDUAL) {
			get_eight(p.residual, m * p.residual_row + n, other);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] += other[i];
		}
		eight_halves e;
#pragma unroll
		for (int i = 0; i < 4; i++)
			e.word[i] = T::word(v + 2 * i);
		*(eight_halves *)(row + n) = e;
	}

	/* Blocks take eights of columns in turn. */
	__device__ __forceinline__ void finish(void)
	{
		constexpr int EIGHTS = Z::ROWS / 8;
		for (int i = (int)threadIdx.x + part * Z::MULTIPLIERS; i < p.m * EIGHTS; i += PARTS * Z::MULTIPLIERS) {
			const int m = i / EIGHTS, n = i % EIGHTS * 8;
			float v[8];
			if (first + n >= p.n)
				continue;
			add_parts(m, n, v);
			put(m, first + n, v);
		}
	}

	__device__ __forceinline__ void run(void)
	{
		start();
		if (warp == 4 * WARPGROUPS) {
			if (elect_one())
				load();
			__syncwarp();
		} else {
			float sum[BN / 2];
			multiply(sum);
			if (AHEAD)
				launch_wait(); /* D may be what the launch before reads */
			leave(sum);
		}
		together<PARTS>();
		if (warp < 4 * WARPGROUPS)
			finish();
		if (PARTS > 1)
			together<PARTS>(); /* nobody leaves while a neighbour still reads here */
	}
};
