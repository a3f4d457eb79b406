/* Softmax, log-softmax, layer norm and RMS norm: the plain form, right for every width, stride and alignment.
 *
 * A block takes a row at a time.  Each thread reads the columns t, t + 256, ... of the row again in every pass and
 * writes only those, after its last read of them, so results may replace inputs.  Sums are FP32, and their order
 * depends on nothing but the width: the same input gives the same bits.
 *
 * The host adds the entry: an extern "C" kernel of one type and one operation.  NVRTC compiles it with the headers of
 * this folder alone, and a test compiles it as C++ with the emulator's header before it. */
#pragma once

#include "element.cuh"
#include "rows.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

template <typename T> __device__ T *element(const rows_tensor &t, long long row, long long column)
{
	return (T *)t.at + row * t.row + column * t.column;
}

template <typename T> __device__ float read(const rows_tensor &t, long long row, long long column)
{
	return T::get(*element<T>(t, row, column));
}

struct add {
	static __device__ float of(float a, float b)
	{
		return a + b;
	}
};

struct larger {
	static __device__ float of(float a, float b)
	{
		return fmaxf(a, b);
	}
};

/* All threads get the same bits.  The first barrier keeps a slow warp's reads of the last result from this one's
 * writes. */
template <typename Op> __device__ float block_reduce(float v)
{
	__shared__ float of_warp[WARPS];
	for (int distance = 16; distance > 0; distance /= 2)
		v = Op::of(v, __shfl_xor_sync(~0u, v, distance));
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		of_warp[threadIdx.x / 32] = v;
	__syncthreads();
	v = of_warp[0];
	for (int i = 1; i < WARPS; i++)
		v = Op::of(v, of_warp[i]);
	return v;
}

/* A row of nothing but -infinity, or with a NaN or +infinity, has NaN, as in PyTorch. */
template <typename T, bool LOG> __device__ void softmax(const rows_args &a)
{
	for (long long row = blockIdx.x; row < a.rows; row += gridDim.x) {
		float most = -3.402823466e38f; /* FLT_MAX: NVRTC has no header for it */
		for (long long i = threadIdx.x; i < a.width; i += THREADS)
			most = fmaxf(most, read<T>(a.x, row, i));
		most = block_reduce<larger>(most);

		float sum = 0;
		for (long long i = threadIdx.x; i < a.width; i += THREADS)
			sum += expf(read<T>(a.x, row, i) - most);
		sum = block_reduce<add>(sum);

		const float log_sum = logf(sum);
		for (long long i = threadIdx.x; i < a.width; i += THREADS) {
			const float v = read<T>(a.x, row, i) - most;
			*element<T>(a.y, row, i) = T::make(LOG ? v - log_sum : expf(v) / sum);
		}
	}
}

/* x, or x + residual as the type holds it, so that a stored sum and the norm agree. */
template <typename T>
__device__ float norm_input(const rows_tensor &x, const rows_tensor &residual, bool adds, long long row, long long column)
{
	const float v = read<T>(x, row, column);
	return adds ? T::get(T::make(v + read<T>(residual, row, column))) : v;
}

/* CENTRED is layer norm: its variance is of the differences from the mean, in a pass of its own, because a sum of
 * squares loses all digits where the mean is large. */
template <typename T, bool CENTRED> __device__ void norm(const rows_args &a)
{
	/* The later passes read the stored sum, where there is one: it may have replaced an input. */
	const rows_tensor &in = a.sum.at ? a.sum : a.x;
	const bool adds = a.residual.at, adds_again = adds && !a.sum.at;
	for (long long row = blockIdx.x; row < a.rows; row += gridDim.x) {
		float mean = 0;
		for (long long i = threadIdx.x; i < a.width; i += THREADS) {
			const float v = norm_input<T>(a.x, a.residual, adds, row, i);
			if (a.sum.at)
				*element<T>(a.sum, row, i) = T::make(v);
			mean += v;
		}
		mean = CENTRED ? block_reduce<add>(mean) / (float)a.width : 0;

		float squares = 0;
		for (long long i = threadIdx.x; i < a.width; i += THREADS) {
			const float v = norm_input<T>(in, a.residual, adds_again, row, i) - mean;
			squares += v * v;
		}
		squares = block_reduce<add>(squares);

		const float scale = 1 / sqrtf(squares / (float)a.width + a.epsilon);
		for (long long i = threadIdx.x; i < a.width; i += THREADS) {
			const float weight = a.weight ? T::get(((const T *)a.weight)[i]) : 1;
			const float bias = a.bias ? T::get(((const T *)a.bias)[i]) : 0;
			const float v = (norm_input<T>(in, a.residual, adds_again, row, i) - mean) * scale;
			*element<T>(a.y, row, i) = T::make(v * weight + bias);
		}
	}
}
