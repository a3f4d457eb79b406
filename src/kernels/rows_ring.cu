/* Softmax, log-softmax, layer norm and RMS norm of wide rows on Hopper: each element is read once and written once.
 *
 * A block of rows_held.cu that needs a whole SM reads nothing while it reduces and writes.  Here blocks stay for row after
 * row.  Each warp has its part of every row, up to V vectors a lane, and a ring of DEPTH slabs that the copy engine fills.
 * A warp waits for nobody to load and refill its slabs, so that the next rows come while this one is reduced.  The warps'
 * parts differ by one piece of 32 vectors at most: only the last vector of a lane may be missing.
 *
 * Softmax writes its results into the slab, and the copy engine stores that.  A norm's slab is free as soon as it is in
 * registers, and the lanes store: on an H200 each was faster that way.  So do those of the only slab.
 *
 * The CL blocks of a cluster share a row.  They send each other what they know of their part, and a barrier in shared
 * memory counts the bytes.  There are two places for it: a block may be a row ahead of another one, but no more, since
 * it waits for that one's part.  With KEEPS a warp's part of weights and biases stays in shared memory.  Rows are those of
 * rows_held.cu, and the same input gives the same bits. */
#pragma once

#include "rows_held.cu"

template <typename T, int OP, int HAS, int V, int THREADS, int DEPTH, int CL, bool KEEPS> struct rows_ring {
	typedef held<T> H;
	static constexpr int E = H::EACH, STEP = 32 * E, WARPS = THREADS / 32;
	static constexpr int INPUTS = HAS & RESIDUAL ? 2 : 1, SLAB = V * 512, STAGE = INPUTS * SLAB;
	static constexpr int KINDS = KEEPS ? (HAS & WEIGHT) / WEIGHT + (HAS & BIAS) / BIAS : 0;
	static constexpr int OF_WARP = DEPTH * STAGE + KINDS * SLAB;
	static constexpr int BYTES = WARPS * OF_WARP + 8 * (WARPS * DEPTH + 2);
	static constexpr bool BULK = OP <= LOG_SOFTMAX && DEPTH > 1;
	static_assert(BYTES + 1024 <= 232448 && DEPTH > 0 && DEPTH <= 32, "shared memory of a block");

	const rows_args &a;
	u32 base, kept, full, joined;
	int rank, thread, warp, lane, vectors; /* of this warp's part of a row */
	long long begin, step;		       /* its first column; rows between two of this block's */
	float of_block;			       /* elements */
	bool has_last;
	u32 turn; /* how many rows are joined */

	__device__ __forceinline__ rows_ring(const rows_args &args, u32 shared) : a(args), turn(0)
	{
		const int all = (int)(a.width / E), pieces = (all + 31) / 32;
		rank = CL > 1 ? (int)cluster_rank() : 0;
		thread = (int)threadIdx.x;
		warp = thread / 32;
		lane = thread % 32;
		base = shared + warp * OF_WARP;
		kept = base + DEPTH * STAGE;
		joined = shared + WARPS * OF_WARP;
		full = joined + 16 + warp * DEPTH * 8;
		const int first = first_of(all, pieces, rank * WARPS + warp);
		vectors = first_of(all, pieces, rank * WARPS + warp + 1) - first;
		begin = (long long)first * E;
		of_block = (float)((first_of(all, pieces, (rank + 1) * WARPS) - first_of(all, pieces, rank * WARPS)) * E);
		has_last = (V - 1) * 32 + lane < vectors;
		step = gridDim.x / CL;
	}

	/* The first vector of a warp of the cluster. */
	static __device__ __forceinline__ int first_of(int all, int pieces, int number)
	{
		const int at = (int)((long long)pieces * number / (WARPS * CL)) * 32;
		return at < all ? at : all;
	}

	__device__ __forceinline__ bool has(int i)
	{
		return i < V - 1 || has_last;
	}

	__device__ __forceinline__ void start(void)
	{
		if (lane < DEPTH)
			mbarrier_init(full + 8 * lane, 1);
		if (CL > 1 && thread < 2)
			mbarrier_init(joined + 8 * thread, 1);
		mbarrier_fence();
		if (CL > 1) {
			cluster_arrive();
			cluster_wait();
		} else {
			__syncwarp();
		}
	}

	/* The part of `row`, and `more` bytes that come to the same barrier. */
	__device__ __forceinline__ void fill(u32 slot, long long row, u32 more)
	{
		const u32 bytes = (u32)vectors * 16, to = base + slot * STAGE, barrier = full + 8 * slot;
		if (row >= a.rows)
			return;
		mbarrier_expect(barrier, INPUTS * bytes + more);
		bulk_load(to, (const T *)a.x.at + row * a.x.row + begin, bytes, barrier);
		if constexpr (INPUTS > 1)
			bulk_load(to + SLAB, (const T *)a.residual.at + row * a.residual.row + begin, bytes, barrier);
	}

	/* The first rows, and with the first one what all rows need: the bias stands behind the weights. */
	__device__ __forceinline__ void fill_all(long long row)
	{
		const u32 bytes = (u32)vectors * 16;
		fill(0, row, KINDS * bytes);
		if (KINDS > 0 && HAS & WEIGHT)
			bulk_load(kept, (const T *)a.weight + begin, bytes, full);
		if (KINDS > 0 && HAS & BIAS)
			bulk_load(kept + (KINDS > 1 ? SLAB : 0), (const T *)a.bias + begin, bytes, full);
		for (int i = 1; i < DEPTH; i++)
			fill(i, row + i * step, 0);
	}

	__device__ __forceinline__ vector fetch(bool bias, int i)
	{
		if (KINDS == 0)
			return load_shared((const T *)(bias ? a.bias : a.weight) + begin + i * STEP + lane * E);
		return load_piece(kept + (bias && KINDS > 1 ? SLAB : 0) + i * 512 + lane * 16);
	}

	/* This warp's part becomes the block's, and that the cluster's. */
	__device__ __forceinline__ part join_all(part p)
	{
		BLOCK_SHARED(part, of_warps, 2 * WARPS);
		BLOCK_SHARED(part, of_blocks, 2 * CL);
		const u32 place = turn & 1, parity = turn >> 1 & 1;
		turn++;
		if (lane == 0)
			of_warps[place * WARPS + warp] = p;
		__syncthreads();
		p = join<OP, WARPS>(of_warps + place * WARPS, of_block);
		if constexpr (CL > 1) {
			const u32 barrier = joined + 8 * place;
			if (thread == 0)
				mbarrier_expect(barrier, CL * sizeof(part));
			if (thread < CL) {
				part *mine = of_blocks + place * CL + rank;
				cluster_send(&mine->at, thread, p.at, barrier);
				cluster_send(&mine->sum, thread, p.sum, barrier);
				cluster_send(&mine->count, thread, p.count, barrier);
			}
			mbarrier_wait_cluster(barrier, parity);
			p = join<OP, CL>(of_blocks + place * CL, (float)a.width);
		}
		return p;
	}

	/* A row from its slab into registers.  Returns the largest element of softmax. */
	__device__ __forceinline__ float take(u32 at, long long row, float (&v)[V * E])
	{
		const unsigned nothing = OP >= LAYER_NORM ? 0 : T::LEAST;
		vector raw[V];
#pragma unroll
		for (int i = 0; i < V; i++) {
			float *e = v + i * E;
			raw[i] = {{nothing, nothing, nothing, nothing}};
			if (has(i))
				raw[i] = load_piece(at + i * 512);
			H::get(raw[i], e);
			if constexpr (INPUTS > 1) {
				float other[E];
				vector more = {{0, 0, 0, 0}};
				if (has(i))
					more = load_piece(at + SLAB + i * 512);
				H::get(more, other);
#pragma unroll
				for (int k = 0; k < E; k++)
					e[k] = T::get(T::make(e[k] + other[k]));
				if (HAS & SUM && has(i))
					store((T *)a.sum.at + row * a.sum.row + begin + i * STEP + lane * E, H::make(e));
			}
		}
		return OP <= LOG_SOFTMAX ? H::most(raw) : 0;
	}

	__device__ __forceinline__ void run(void)
	{
		const long long from = blockIdx.x / CL;
		u32 slot = 0, phase = 0;
		start();
		if (lane == 0 && from < a.rows)
			fill_all(from);
		for (long long row = from; row < a.rows; row += step) {
			const u32 slab = base + slot * STAGE, at = slab + lane * 16, before = (slot + DEPTH - 1) % DEPTH;
			T *const y = (T *)a.y.at + row * a.y.row + begin;
			float v[V * E];
			mbarrier_wait(full + 8 * slot, phase);
			const float most = take(at, row, v);
			if (!BULK) {
				__syncwarp();
				if (lane == 0)
					fill(slot, row + DEPTH * step, 0);
			}
			if (++slot == DEPTH) {
				slot = 0;
				phase ^= 1;
			}
			finish_row<T, OP, HAS, V, 32, V < 2 ? V : 2>(
				a, v, most, (float)(vectors * E), [=](int i) { return has(i); },
				[&](part p) {
					if (BULK && lane == 0 && row > from) { /* the row before has left its slab */
						tma_wait_read<0>();
						fill(before, row + (DEPTH - 1) * step, 0);
					}
					return join_all(p);
				},
				[=](bool bias, int i) { return fetch(bias, i); },
				[=](int i, const vector &w) {
					if (BULK)
						store_piece(at + i * 512, w);
					else
						store(y + i * STEP + lane * E, w);
				});
			if (BULK) {
				fence_async();
				__syncwarp();
				if (lane == 0)
					bulk_store(y, slab, (u32)vectors * 16);
			}
		}
		if (BULK && lane == 0)
			tma_wait();
	}
};
