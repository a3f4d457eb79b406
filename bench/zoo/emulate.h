/* CUDA's language on the host, as far as the zoo uses it: for checking the kernels without a GPU.
 *
 * A block's threads are coroutines of one host thread; they change places only at barriers and
 * shuffles.  In between they run forwards, backwards or shuffled, warp by warp or all together
 * (emulate_order): a missing barrier then gives another answer in one of the three.  Blocks run one
 * after the other, those of a cluster together, so atomics are plain.  A barrier that some threads
 * of the block have left the kernel without reaching is an error. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>

struct dim3 {
	unsigned x, y, z;
	dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
	{
	}
};

struct float4 {
	float x, y, z, w;
};

typedef _Float16 __half;

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __align__(n) __attribute__((aligned(n)))

extern dim3 threadIdx, blockIdx, blockDim, gridDim;
extern int emulate_order; /* 0 forwards, 1 backwards, 2 and up: shuffled */

/* `cluster`: that many adjacent blocks run together.  Before each such group emulate_begin() is
 * called. */
extern std::function<void()> emulate_begin;
void emulate(dim3 grid, dim3 block, const std::function<void()> &kernel, unsigned cluster = 1);
void __syncthreads(void);
void __syncwarp(void);

/* Waits until the condition holds, which other threads or emulate_later() make true.  It is also
 * asked while another thread is the current one, and must not use threadIdx. */
void emulate_wait(const std::function<bool()> &condition);
/* Something happened that a waiting thread may look for. */
void emulate_notify(void);
/* Does it at some time: soon or when nobody can go on, and before or after others. */
void emulate_later(const std::function<void()> &work);
unsigned emulate_random(unsigned below);

/* Shared memory of the thread's block: the same for all its threads that name the same tag. */
void *emulate_shared(const void *tag, size_t bytes);
/* The same place in the shared memory of another block of the cluster. */
void *emulate_remote(const void *at, unsigned rank);
unsigned cluster_rank(void);
void cluster_arrive(void);
void cluster_wait(void);

/* On the GPU: __shared__ type name[count]. */
#define BLOCK_SHARED(type, name, count)                                                            \
	static char name##_tag;                                                                    \
	type *const name = (type *)emulate_shared(&name##_tag, sizeof *name * (count))

/* Gives `v` to the warp and returns the slot of lane `from`, or this lane's own when it has none.
 */
uint64_t emulate_exchange(uint64_t v, int from);

template <typename T> T emulate_shuffle(T v, int from)
{
	uint64_t word = 0;
	memcpy(&word, &v, sizeof v);
	word = emulate_exchange(word, from);
	memcpy(&v, &word, sizeof v);
	return v;
}

static inline int emulate_lane(void)
{
	return (int)(threadIdx.x + threadIdx.y * blockDim.x) % 32;
}

template <typename T> T __shfl_xor_sync(unsigned, T v, int mask)
{
	return emulate_shuffle(v, emulate_lane() ^ mask);
}

template <typename T> T __shfl_up_sync(unsigned, T v, int by)
{
	return emulate_shuffle(v, emulate_lane() - by);
}

template <typename T> T __shfl_sync(unsigned, T v, int lane)
{
	return emulate_shuffle(v, lane);
}

template <typename T> T atomicAdd(T *p, T v)
{
	const T old = *p;
	*p = old + v;
	return old;
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
	return (unsigned)((uint64_t)a * b >> 32);
}

static inline float __half2float(__half h)
{
	return (float)h;
}

static inline __half __float2half(float f)
{
	return (__half)f;
}

static inline __half __hadd(__half a, __half b)
{
	return (__half)(a + b);
}

static inline __half __hmul(__half a, __half b)
{
	return (__half)(a * b);
}

static inline float rsqrtf(float v)
{
	return 1.0f / sqrtf(v);
}

#define __expf expf

/* Warp matrix multiply: every lane keeps the whole fragment, and all compute the same. */
namespace nvcuda
{
namespace wmma
{
struct matrix_a {
};
struct matrix_b {
};
struct accumulator {
};
struct row_major {
};
enum layout_t { mem_row_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
	T v[256];
};

template <typename F> void fill_fragment(F &f, float v)
{
	for (auto &e : f.v)
		e = v;
}

template <typename F, typename T> void load_matrix_sync(F &f, const T *p, unsigned pitch)
{
	for (int i = 0; i < 256; i++)
		f.v[i] = p[i / 16 * pitch + i % 16];
}

template <typename D, typename A, typename B>
void mma_sync(D &d, const A &a, const B &b, const D &c)
{
	for (int i = 0; i < 256; i++) {
		float sum = c.v[i];
		for (int k = 0; k < 16; k++)
			sum += (float)a.v[i / 16 * 16 + k] * (float)b.v[k * 16 + i % 16];
		d.v[i] = sum;
	}
}

template <typename F, typename T> void store_matrix_sync(T *p, const F &f, unsigned pitch, layout_t)
{
	for (int i = 0; i < 256; i++)
		p[i / 16 * pitch + i % 16] = f.v[i];
}
} // namespace wmma
} // namespace nvcuda
