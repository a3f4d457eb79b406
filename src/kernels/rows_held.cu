/* Softmax, log-softmax, layer norm and RMS norm where a row fits into registers: each element is read once and
 * written once, 16 bytes at a time.
 *
 * TPR threads hold a row, those of CL blocks of a cluster together, and each thread holds V vectors of R rows.  A warp
 * reduces its part of the row, and then all threads add up the warps' parts in the same order: one barrier a row, and
 * the same input gives the same bits.
 *
 * Columns are adjacent, the width is a multiple of a vector, and rows begin at multiples of 16 bytes: the host makes
 * sure of that, and takes rows.cu for all else.  Results may replace inputs as in rows.cu. */
#pragma once

#include "element.cuh"
#include "rows.cuh"

enum { SOFTMAX, LOG_SOFTMAX, LAYER_NORM, RMS_NORM };
enum { RESIDUAL = 1, SUM = 2, WEIGHT = 4, BIAS = 8 }; /* that a norm has: bits of HAS */

struct vector {
	unsigned word[4];
};

#ifdef __CUDACC_RTC__
#include "sm90.cuh" /* of which only a cluster takes anything */

#define BLOCK_SHARED(type, name, count) __shared__ type name[count]

static __device__ vector load(const void *at)
{
	vector v;
	asm volatile("ld.global.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
		     : "l"(at)
		     : "memory");
	return v;
}

/* Loads what every row needs: it stays in the cache. */
static __device__ vector load_shared(const void *at)
{
	vector v;
	asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
		     : "l"(at));
	return v;
}

/* From shared memory. */
static __device__ vector load_piece(u32 at)
{
	vector v;
	asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
		     : "r"(at)
		     : "memory");
	return v;
}

static __device__ void store_piece(u32 at, const vector &v)
{
	asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]),
		"r"(v.word[3])
		: "memory");
}

static __device__ void store(void *at, const vector &v)
{
	asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.word[0]), "r"(v.word[1]),
		"r"(v.word[2]), "r"(v.word[3])
		: "memory");
}

static __device__ float power_of_2(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* Rounded by itself, also where it is added to something. */
static __device__ float product(float a, float b)
{
	return __fmul_rn(a, b);
}

#endif

/* The facts of a part of a row: for softmax the maximum and the sum of exp(x - maximum), for layer
 * norm the mean and the sum of squared differences from it, for RMS norm nothing and the sum of
 * squares. */
struct part {
	float at, sum, count; /* of elements, for layer norm */
};

static constexpr float LEAST = -3.402823466e38f; /* -FLT_MAX */

/* exp(x - most) is the power of 2 of x * f - most * f for this f.  It is smaller where most * log2(e) would be no FP32:
 * numbers of that size that differ at all are still far apart. */
static __device__ float factor(float most)
{
	return fabsf(most) > 2e38f ? 0x1p-64f : 1.4426950408889634f;
}

/* What a sum of powers becomes by another maximum. */
static __device__ float raised(float from, float most)
{
	return power_of_2(product(from, factor(most)) - product(most, factor(most)));
}

/* Over neighbouring lanes; all get the same bits. */
template <int LANES> __device__ float sum_across(float v)
{
	for (int distance = LANES / 2; distance > 0; distance /= 2)
		v += __shfl_xor_sync(~0u, v, distance);
	return v;
}

template <int LANES> __device__ float most_across(float v)
{
	for (int distance = LANES / 2; distance > 0; distance /= 2)
		v = fmaxf(v, __shfl_xor_sync(~0u, v, distance));
	return v;
}

/* N parts of a row as one, which has `count` elements.  Each lane takes one of them. */
template <int OP, int MANY> __device__ part join(const part *p, float count)
{
	constexpr int N = MANY > 4 ? (MANY > 8 ? 16 : 8) : MANY > 2 ? 4 : MANY;
	static_assert(MANY <= 16, "parts of a row");
	const int at = (int)threadIdx.x % N;
	part own = {OP <= LOG_SOFTMAX ? LEAST : 0, 0, 0}, all = {0, 0, count};
	if (N == MANY || at < MANY)
		own = p[at];
	if (OP <= LOG_SOFTMAX)
		all.at = most_across<N>(own.at);
	else if (OP == LAYER_NORM)
		all.at = sum_across<N>(own.at * own.count) / fmaxf(count, 1);
	const float apart = own.at - all.at;
	all.sum = sum_across<N>(OP <= LOG_SOFTMAX ? own.sum * raised(own.at, all.at)
				: OP == LAYER_NORM ? own.sum + apart * apart * own.count
						   : own.sum);
	return all;
}

/* Joins the warps of a row, then the blocks of a cluster.  In this block the row has `here` elements, and `width` in all. */
template <int OP, int TPR, int BLOCK, int CL> __device__ part join_row(part p, float here, float width)
{
	if (TPR <= 32 && CL == 1)
		return p;
	constexpr int WARPS = TPR > 32 ? TPR / 32 : 1;
	BLOCK_SHARED(part, of_warp, BLOCK / 32);
	BLOCK_SHARED(part, of_block, CL);
	if (threadIdx.x % 32 == 0)
		of_warp[threadIdx.x / 32] = p;
	__syncthreads();
	p = join<OP, WARPS>(of_warp + (int)threadIdx.x / TPR * WARPS, here);
	if constexpr (CL > 1) {
		cluster_wait(); /* the other blocks have begun, so that their shared memory is there */
		if (threadIdx.x < CL) {
			part *mine = of_block + cluster_rank();
			cluster_store(&mine->at, threadIdx.x, p.at);
			cluster_store(&mine->sum, threadIdx.x, p.sum);
			cluster_store(&mine->count, threadIdx.x, p.count);
		}
		cluster_arrive();
		cluster_wait();
		p = join<OP, CL>(of_block, width);
	}
	return p;
}

template <typename T> struct held {
	static constexpr int EACH = 16 / (int)sizeof(T); /* elements of a vector */
	static __device__ void get(const vector &v, float *to)
	{
		T e[EACH];
		memcpy(e, &v, sizeof v);
		for (int i = 0; i < EACH; i++)
			to[i] = T::get(e[i]);
	}
	template <int V> static __device__ float most(const vector (&v)[V])
	{
		vector all = v[0];
		for (int i = 1; i < V; i++)
			for (int k = 0; k < 4; k++)
				all.word[k] = T::larger(all.word[k], v[i].word[k]);
		return T::largest(T::larger(T::larger(all.word[0], all.word[1]), T::larger(all.word[2], all.word[3])));
	}
	static __device__ vector make(const float *from)
	{
		vector v;
		for (int i = 0; i < 4; i++)
			v.word[i] = T::word(from + i * EACH / 4);
		return v;
	}
};

/* Reduces a row of which this thread has the vectors i where HAS_IT(i), as FP32, and writes its result by PUT(i, vector).
 * `most` is the largest of its elements of softmax, and `count` how many the LANES have.  JOIN makes their part that of the
 * row.  Weights and biases come AHEAD vectors at a time by FETCH(bias, i).  Sums are four, so that none waits for another. */
template <typename T, int OP, int HAS, int V, int LANES, int AHEAD, typename HAS_IT, typename JOIN, typename FETCH, typename PUT>
__device__ __forceinline__ void finish_row(const rows_args &a, float (&v)[V * held<T>::EACH], float most, float count,
	HAS_IT has_it, JOIN join, FETCH fetch, PUT put)
{
	typedef held<T> H;
	constexpr int E = H::EACH;
	part p = {0, 0, count};
	float sum[4] = {0, 0, 0, 0};
	if (OP <= LOG_SOFTMAX)
		p.at = fmaxf(LEAST, most_across<LANES>(most));
	if (OP == LAYER_NORM) {
#pragma unroll
		for (int i = 0; i < V * E; i++)
			sum[i % 4] += v[i];
		p.at = sum_across<LANES>((sum[0] + sum[1]) + (sum[2] + sum[3])) / fmaxf(count, 1);
		sum[0] = sum[1] = sum[2] = sum[3] = 0;
	}
	const float f = factor(p.at), far = product(p.at, f);
#pragma unroll
	for (int i = 0; i < V; i++) {
		if (OP == LAYER_NORM && !has_it(i))
			break; /* all others add nothing there */
#pragma unroll
		for (int k = i * E; k < (i + 1) * E; k++) {
			const float apart = v[k] - p.at, e = OP <= LOG_SOFTMAX ? power_of_2(fmaf(v[k], f, -far)) : 0;
			if (OP == SOFTMAX)
				v[k] = e;
			sum[k % 4] += OP <= LOG_SOFTMAX ? e : apart * apart;
		}
	}
	p.sum = sum_across<LANES>((sum[0] + sum[1]) + (sum[2] + sum[3]));
	const float own = p.at;
	p = join(p);

	const float scale = OP == SOFTMAX ? raised(own, p.at) / p.sum
			  : OP == LOG_SOFTMAX ? 1 : 1 / sqrtf(p.sum / (float)a.width + a.epsilon);
	const float shift = OP == LOG_SOFTMAX || OP == LAYER_NORM ? p.at : 0;
	float less = 0;
	if (OP == LOG_SOFTMAX) /* the sum is that of powers whose exponents lack what most * f was rounded by */
		less = logf(p.sum) - fmaf(p.at, factor(p.at), -product(p.at, factor(p.at))) * .6931471805599453f;
#pragma unroll
	for (int from = 0; from < V; from += AHEAD) {
		vector weight[HAS & WEIGHT ? AHEAD : 1], bias[HAS & BIAS ? AHEAD : 1];
#pragma unroll
		for (int i = from; i < from + AHEAD && i < V; i++)
			if (HAS & WEIGHT && has_it(i))
				weight[i - from] = fetch(false, i);
#pragma unroll
		for (int i = from; i < from + AHEAD && i < V; i++)
			if (HAS & BIAS && has_it(i))
				bias[i - from] = fetch(true, i);
#pragma unroll
		for (int i = from; i < from + AHEAD && i < V; i++) {
			float *e = v + i * E;
#pragma unroll
			for (int k = 0; k < E; k++)
				e[k] = (e[k] - shift) * scale - less;
			float w[E];
			if constexpr ((HAS & WEIGHT) != 0) {
				H::get(weight[i - from], w);
#pragma unroll
				for (int k = 0; k < E; k++)
					e[k] *= w[k];
			}
			if constexpr ((HAS & BIAS) != 0) {
				H::get(bias[i - from], w);
#pragma unroll
				for (int k = 0; k < E; k++)
					e[k] += w[k];
			}
			if (has_it(i))
				put(i, H::make(e));
		}
	}
}

template <typename T, int OP, int HAS, int V, int TPR, int R, int BLOCK, int CL> __device__ void rows_held(const rows_args &a)
{
	typedef held<T> H;
	constexpr int E = H::EACH, LANES = TPR < 32 ? TPR : 32;
	constexpr bool NORM = OP >= LAYER_NORM;
	static_assert(R == 1 || (TPR <= 32 && CL == 1), "the warps of a row meet once");
	static_assert(CL == 1 || TPR == BLOCK, "a block of a cluster has one row");
	if constexpr (CL > 1)
		cluster_arrive();
	const int lane = (int)threadIdx.x % TPR, block = (int)blockIdx.x % CL;
	const long long group = (long long)(blockIdx.x / CL) * (BLOCK / TPR) + threadIdx.x / TPR;
	const long long first = ((long long)block * V * TPR + lane) * E; /* this thread's columns are TPR * E apart */
	constexpr int STEP = TPR * E;

	/* All loads are on their way before the first is looked at. */
	vector raw[R][V], more[HAS & RESIDUAL ? R : 1][HAS & RESIDUAL ? V : 1];
#pragma unroll
	for (int r = 0; r < R; r++)
#pragma unroll
		for (int i = 0; i < V; i++) {
			const long long row = group * R + r, column = first + i * STEP;
			const unsigned nothing = NORM ? 0 : T::LEAST;
			raw[r][i] = {{nothing, nothing, nothing, nothing}};
			if (row < a.rows && column < a.width)
				raw[r][i] = load((const T *)a.x.at + row * a.x.row + column);
		}
	if constexpr ((HAS & RESIDUAL) != 0)
#pragma unroll
		for (int r = 0; r < R; r++)
#pragma unroll
			for (int i = 0; i < V; i++) {
				const long long row = group * R + r, column = first + i * STEP;
				more[r][i] = {{0, 0, 0, 0}};
				if (row < a.rows && column < a.width)
					more[r][i] = load((const T *)a.residual.at + row * a.residual.row + column);
			}
	float v[R][V * E];
#pragma unroll
	for (int r = 0; r < R; r++)
#pragma unroll
		for (int i = 0; i < V; i++) {
			float *e = v[r] + i * E;
			H::get(raw[r][i], e);
			if constexpr ((HAS & RESIDUAL) != 0) {
				const long long row = group * R + r, column = first + i * STEP;
				float other[E];
				H::get(more[r][i], other);
#pragma unroll
				for (int k = 0; k < E; k++)
					e[k] = T::get(T::make(e[k] + other[k]));
				if (HAS & SUM && row < a.rows && column < a.width)
					store((T *)a.sum.at + row * a.sum.row + column, H::make(e));
			}
		}

	const long long left = a.width - (long long)block * V * STEP; /* for this block */
	const float here = (float)(left < V * STEP ? (left > 0 ? left : 0) : V * STEP);
	int own = 0; /* elements of this thread, which precede those beyond the end */
	if (OP == LAYER_NORM)
#pragma unroll
		for (int i = 0; i < V; i++)
			own += first + i * STEP < a.width ? E : 0;
	const float count = OP == LAYER_NORM ? sum_across<LANES>((float)own) : 0;
#pragma unroll
	for (int r = 0; r < R; r++) {
		const long long row = group * R + r;
		finish_row<T, OP, HAS, V, LANES, (V * E > 32 ? 2 : V)>(
			a, v[r], NORM ? 0 : H::most(raw[r]), count, [=](int i) { return first + i * STEP < a.width; },
			[=](part p) { return join_row<OP, TPR, BLOCK, CL>(p, here, (float)a.width); },
			[&](bool bias, int i) { return load_shared((const T *)(bias ? a.bias : a.weight) + first + i * STEP); },
			[=](int i, const vector &w) {
				if (row < a.rows)
					store((T *)a.y.at + row * a.y.row + first + i * STEP, w);
			});
	}
}
