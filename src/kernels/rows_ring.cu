/* Softmax, log-softmax, layer norm and RMS norm of wide rows on Hopper: each element is read once and written once.
 *
 * A block of rows_held.cu that needs a whole SM reads nothing while it reduces and writes.  Here blocks stay for row after
 * row, and the copy engine fills a ring of STAGES pieces, so that the next rows come while this one is reduced.  Each of
 * THREADS threads takes a vector of each piece, and holds its V vectors of the row in registers.  At the barrier at which
 * the warps' parts meet, the row's pieces have been read, and the warps have them filled again.
 *
 * The CL blocks of a cluster share a row.  They send each other what they know of their part, and a barrier in shared
 * memory counts the bytes.  There are two places for it: a block may be a row ahead of another one, but no more, since
 * it waits for that one's part.  With KEEPS the block's part of weights and biases stays in shared memory.  Rows are those of rows_held.cu, and the same input gives the same bits. */
#pragma once

#include "rows_held.cu"

template <typename T, int OP, int HAS, int V, int THREADS, int STAGES, int CL, bool KEEPS> struct rows_ring {
	typedef held<T> H;
	static constexpr int E = H::EACH, STEP = THREADS * E, WARPS = THREADS / 32;
	static constexpr int PIECE = THREADS * 16, INPUTS = HAS & RESIDUAL ? 2 : 1, STAGE = INPUTS * PIECE;
	static constexpr int KINDS = KEEPS ? (HAS & WEIGHT) / WEIGHT + (HAS & BIAS) / BIAS : 0;
	static constexpr int KEPT = V * PIECE, BIASES = KINDS > 1 ? KEPT : 0;
	static constexpr int BYTES = STAGES * STAGE + KINDS * KEPT + 8 * (STAGES + 3);
	static_assert(BYTES + 1024 <= 232448, "shared memory of a block");
	static_assert(V <= STAGES, "room for all pieces of a row");

	const rows_args &a;
	u32 base, kept, full, joined, keeps;
	int rank, thread, warp, vectors, pieces; /* of this block's part of a row */
	long long begin, step;			 /* its first column; rows between two of this block's */
	u32 turn;				 /* how many rows are joined */

	__device__ __forceinline__ rows_ring(const rows_args &args, u32 shared) : a(args), base(shared), turn(0)
	{
		const long long all = a.width / E;
		kept = base + STAGES * STAGE;
		full = kept + KINDS * KEPT;
		joined = full + 8 * STAGES;
		keeps = joined + 16;
		rank = CL > 1 ? (int)cluster_rank() : 0;
		thread = (int)threadIdx.x;
		warp = thread / 32;
		begin = all * rank / CL * E;
		vectors = (int)(all * (rank + 1) / CL - all * rank / CL);
		pieces = (vectors + THREADS - 1) / THREADS;
		step = gridDim.x / CL;
	}

	__device__ __forceinline__ void start(void)
	{
		if (thread == 0) {
			for (int i = 0; i < STAGES + 3; i++)
				mbarrier_init(full + 8 * i, 1);
			mbarrier_fence();
		}
		if (CL > 1) {
			cluster_arrive();
			cluster_wait();
		} else {
			__syncthreads();
		}
	}

	/* Loads what all rows need: the bias stands behind the weights. */
	__device__ __forceinline__ void keep(void)
	{
		const u32 bytes = (u32)vectors * 16;
		if (KINDS == 0 || thread != 0 || !vectors)
			return;
		mbarrier_expect(keeps, KINDS * bytes);
		if (HAS & WEIGHT)
			bulk_load(kept, (const T *)a.weight + begin, bytes, keeps);
		if (HAS & BIAS)
			bulk_load(kept + BIASES, (const T *)a.bias + begin, bytes, keeps);
	}

	__device__ __forceinline__ vector fetch(bool bias, int i)
	{
		if (KINDS == 0)
			return load_shared((const T *)(bias ? a.bias : a.weight) + begin + thread * E + i * STEP);
		return load_piece(kept + (bias ? BIASES : 0) + i * PIECE + thread * 16);
	}

	/* The piece that comes `ahead` pieces after the first one of `row`, if there is one. */
	__device__ __forceinline__ void fill(u32 stage, long long row, int ahead)
	{
		const int i = ahead % pieces;
		row += ahead / pieces * step;
		if (row >= a.rows)
			return;
		const u32 left = (u32)(vectors - i * THREADS) * 16, bytes = left < PIECE ? left : PIECE;
		const u32 to = base + stage * STAGE, barrier = full + 8 * stage;
		const long long column = begin + (long long)i * STEP;
		mbarrier_expect(barrier, INPUTS * bytes);
		bulk_load(to, (const T *)a.x.at + row * a.x.row + column, bytes, barrier);
		if constexpr (INPUTS > 1)
			bulk_load(to + PIECE, (const T *)a.residual.at + row * a.residual.row + column, bytes, barrier);
	}

	/* This warp's part becomes the block's, and that the cluster's.  `row` is in the stages from `stage` on. */
	__device__ __forceinline__ part join_all(part p, long long row, u32 stage)
	{
		BLOCK_SHARED(part, of_warp, 2 * WARPS);
		BLOCK_SHARED(part, of_block, 2 * CL);
		const u32 place = turn & 1, parity = turn >> 1 & 1;
		turn++;
		if (thread % 32 == 0)
			of_warp[place * WARPS + warp] = p;
		__syncthreads();
		for (int i = warp; i < pieces && thread % 32 == 0; i += WARPS)
			fill((stage + i) % STAGES, row, STAGES + i);
		p = join<OP, WARPS>(of_warp + place * WARPS, (float)(vectors * E));
		if constexpr (CL > 1) {
			const u32 barrier = joined + 8 * place;
			if (thread == 0)
				mbarrier_expect(barrier, CL * sizeof(part));
			if (thread < CL) {
				part *mine = of_block + place * CL + rank;
				cluster_send(&mine->at, thread, p.at, barrier);
				cluster_send(&mine->sum, thread, p.sum, barrier);
				cluster_send(&mine->count, thread, p.count, barrier);
			}
			mbarrier_wait_cluster(barrier, parity);
			p = join<OP, CL>(of_block + place * CL, (float)a.width);
		}
		return p;
	}

	__device__ __forceinline__ void run(void)
	{
		const long long first = begin + thread * E, end = begin + (long long)vectors * E;
		u32 stage = 0, phase = 0; /* of the next piece */
		start();
		if (thread % 32 == 0)
			for (int i = warp; i < STAGES && pieces; i += WARPS)
				fill(i, blockIdx.x / CL, i);
		keep();
		for (long long row = blockIdx.x / CL; row < a.rows; row += step) {
			const u32 row_stage = stage;
			float v[V * E];
#pragma unroll
			for (int i = 0; i < V; i++) {
				const unsigned nothing = OP >= LAYER_NORM ? 0 : T::LEAST;
				const bool has = i * THREADS + thread < vectors;
				float *e = v + i * E;
				vector raw = {{nothing, nothing, nothing, nothing}}, more = {{0, 0, 0, 0}};
				if (i < pieces) {
					const u32 at = base + stage * STAGE + thread * 16;
					mbarrier_wait(full + 8 * stage, phase);
					if (has) {
						raw = load_piece(at);
						if constexpr (INPUTS > 1)
							more = load_piece(at + PIECE);
					}
					if (++stage == STAGES) {
						stage = 0;
						phase ^= 1;
					}
				}
				H::get(raw, e);
				if constexpr (INPUTS > 1) {
					float other[E];
					H::get(more, other);
#pragma unroll
					for (int k = 0; k < E; k++)
						e[k] = T::get(T::make(e[k] + other[k]));
					if (HAS & SUM && has)
						store((T *)a.sum.at + row * a.sum.row + first + i * STEP, H::make(e));
				}
			}
			if (KINDS > 0 && pieces > 0)
				mbarrier_wait(keeps, 0);
			finish_row<T, OP, HAS, V, STEP, 32, V < 2 ? V : 2>(
				a, row, first, end, v, [=](part p) { return join_all(p, row, row_stage); },
				[=](bool bias, int i) { return fetch(bias, i); });
		}
	}
};
