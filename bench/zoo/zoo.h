/* The kernel zoo: what a family of kernels tells the driver (zoo.cu).
 *
 * A kernel here is a C function whose scalar arguments carry its sizes, one launch a call, so that
 * a recorded launch says what it worked on.  Its row in a family's table says how to draw a shape
 * by chance, what that shape costs (FLOPs and bytes, counted, not measured) and takes of each
 * buffer, how to launch it, and what the right answer is, computed slowly.
 *
 * The same sources compile with nvcc for the GPU and, without CUDA, with a C++ compiler against
 * emulate.h, where every kernel is run thread by thread and compared with its oracle. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define LAUNCH(kernel, p, ...) kernel<<<(p)->grid, (p)->block, 0, zoo_stream>>>(__VA_ARGS__)
extern cudaStream_t zoo_stream;
#else
#include "emulate.h"
#define LAUNCH(kernel, p, ...) emulate((p)->grid, (p)->block, [&] { kernel(__VA_ARGS__); })
#endif

/* The buffers every kernel works on.  X, Y and H are random numbers and only read, I random
 * 32-bit words, R begins[] of the rows of a sparse matrix; Z is written. */
enum buffer { X, Y, H, I, R, Z, BUFFERS };

struct arena {
	float *x;          /* in (-1, 1) */
	float *y;          /* in (-1, 1) */
	__half *h;         /* in (-1, 1) */
	const uint32_t *i; /* any */
	const uint32_t *r; /* rising, from 0 */
	void *z;
};

static inline float *z_f32(const struct arena *m)
{
	return (float *)m->z;
}

static inline uint32_t *z_u32(const struct arena *m)
{
	return (uint32_t *)m->z;
}

/* V elements that a thread moves at once. */
template <typename T, int V> struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) vec {
	T v[V];
};

/* Two floats of X or Y are a double in (-2, 2), mostly a small one. */
template <typename T> static inline const T *x_of(const struct arena *m)
{
	return (const T *)m->x;
}

template <> inline const __half *x_of<__half>(const struct arena *m)
{
	return m->h;
}

/* The second operand, behind the first's n elements where both are halves. */
template <typename T> static inline const T *y_of(const struct arena *m, long n)
{
	return sizeof(T) == 2 ? (const T *)m->h + n : (const T *)m->y;
}

/* Chance with a seed of its own, the same on every machine (SplitMix64). */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t v = r->state += 0x9e3779b97f4a7c15u;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

/* From 0 to n - 1. */
static inline long rng_below(struct rng *r, long n)
{
	return (long)(rng_next(r) % (uint64_t)n);
}

double rng_unit(struct rng *r); /* [0, 1) */

/* Log-uniform in [low, high]; half of the answers are then made round, as sizes in programs are. */
long draw_size(struct rng *r, long low, long high);

/* Threads of a block: mostly a power of two; sometimes another multiple of 32. */
int draw_warps(struct rng *r);

/* As draw_warps(); sometimes not even a multiple of 32. */
int draw_threads(struct rng *r);

enum { SIZES = 6 };

/* The sparse matrix: how many entries stand before `row`; rows have from 0 to 127, by chance. */
enum { ROWS = 1 << 23 };
long sparse_begin(long row);

struct shape {
	long s[SIZES]; /* the kernel's scalar arguments, in their order */
	int threads;   /* of a block, where the kernel leaves that open */
};

struct plan {
	double flops;       /* multiply-add counts 2; exp, sqrt and division 1; comparisons 0 */
	double bytes;       /* each element that must be read or written, once */
	long need[BUFFERS]; /* bytes */
	dim3 grid, block;
};

/* How Z is compared with the oracle's; CURSORS: only its first 256 words. */
enum answer { FLOATS, HALVES, DOUBLES, WORDS, CURSORS };

struct kernel {
	const char *family, *name;
	const char *sizes; /* names of s[], separated by commas */
	/* The rates that it probably reaches, for choosing shapes that take from 2 us to 10 ms. */
	double gbs, gflops;
	enum answer answer;
	double tolerance; /* relative to the oracle's, and absolute */
	void (*draw)(struct rng *, struct shape *);
	void (*plan)(const struct shape *, struct plan *);
	void (*launch)(const struct plan *, const struct shape *, const struct arena *);
	/* Does the same to the host's arena. */
	void (*oracle)(const struct plan *, const struct shape *, const struct arena *);
};

struct family {
	const char *name;
	const struct kernel *kernels;
	int n;
};

extern const struct family copy_family, elementwise_family, transpose_family, gather_family,
	reduce_family, scan_family, histogram_family, softmax_family, layernorm_family, gemm_family,
	stencil_family, convolution_family, sort_family, sparse_family;

extern const struct family *const families[]; /* ends with NULL */

/* The bytes of each buffer that the machine may hold: larger shapes are not drawn. */
extern const long buffer_limit[BUFFERS];

/* Microseconds that a launch takes, as far as one can say beforehand. */
double plan_us(const struct kernel *k, const struct plan *p);

/* A shape whose launch takes about `us`, drawn by chance; the nearest of many when none does. */
void choose_shape(const struct kernel *k, struct rng *r, double us, struct shape *ret_shape,
	struct plan *ret_plan);

/* One launch of a list that is run in the order of the list. */
struct item {
	const struct kernel *kernel;
	struct shape shape;
	struct plan plan;
	int key; /* number of the shape, within its kernel */
	int repeat;
};

struct list {
	struct item *items;
	long n;
};

/* `shapes` shapes of each kernel of a family, 3 to 5 times each, shuffled.  Times are spread evenly
 * over the logarithm of [low_us, high_us]. */
struct list list_family(
	const struct family *f, uint64_t seed, int shapes, double low_us, double high_us);

/* Runs every kernel on small shapes and compares it with its oracle.  The number of kernels that
 * are wrong. */
int check_all(const char *only, uint64_t seed, int shapes);

struct options {
	const char *part, *family, *app, *csv;
	double seconds;
	int shapes;
	uint64_t seed;
};

/* Launches the parts on the GPU (run.cu).  0, or 1 after a message. */
int run_zoo(const struct options *o);
int run_repeat(const struct options *o);
int run_contend(const struct options *o);

/* Siblings: kernels of one template, whose names differ in numbers only.  A family's lists name
 * each once with its parameters, from which come the kernel and its row in the table.  Pointers and
 * then the first N sizes are its arguments. */
template <auto KERNEL, int N, typename... P>
static void call(const struct plan *p, const struct shape *s, P... pointers)
{
	static_assert(N >= 1 && N <= 5);
	const long *a = s->s;
	if constexpr (N == 1)
		LAUNCH(KERNEL, p, pointers..., a[0]);
	else if constexpr (N == 2)
		LAUNCH(KERNEL, p, pointers..., a[0], a[1]);
	else if constexpr (N == 3)
		LAUNCH(KERNEL, p, pointers..., a[0], a[1], a[2]);
	else if constexpr (N == 4)
		LAUNCH(KERNEL, p, pointers..., a[0], a[1], a[2], a[3]);
	else
		LAUNCH(KERNEL, p, pointers..., a[0], a[1], a[2], a[3], a[4]);
}

/* From X to Z. */
template <auto KERNEL, int N, typename T = float>
static void call_xz(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, N>(p, s, x_of<T>(m), (T *)m->z);
}

/* From X and Y to Z. */
template <auto KERNEL, int N>
static void call_xyz(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, N>(p, s, m->x, m->y, z_f32(m));
}

/* From I to Z. */
template <auto KERNEL, int N>
static void call_iz(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, N>(p, s, m->i, z_u32(m));
}

#define FAMILY(id, table)                                                                          \
	const struct family id##_family = { #id, table, sizeof table / sizeof *table }

static inline long up(long n, long by)
{
	return (n + by - 1) / by;
}

static inline long at_most(long n, long most)
{
	return n < most ? n : most;
}

/* Blocks of a grid-stride kernel: as many as there is work for, at most eight an SM of 132. */
static inline unsigned stride_blocks(long items, int threads)
{
	const long blocks = up(items, threads);
	return (unsigned)(blocks < 132 * 8 ? blocks : 132 * 8);
}

/* The global index of a thread in a grid of one dimension. */
static __device__ inline long zoo_thread(void)
{
	return (long)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline long zoo_threads(void)
{
	return (long)gridDim.x * blockDim.x;
}

/* Over LANES neighbours of a whole warp; each gets the result. */
template <int LANES> static __device__ inline float lanes_sum(float v)
{
	for (int lane = LANES / 2; lane; lane >>= 1)
		v += __shfl_xor_sync(0xffffffffu, v, lane);
	return v;
}

template <int LANES> static __device__ inline float lanes_max(float v)
{
	for (int lane = LANES / 2; lane; lane >>= 1)
		v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
	return v;
}

static __device__ inline float warp_sum(float v)
{
	return lanes_sum<32>(v);
}

static __device__ inline float warp_max(float v)
{
	return lanes_max<32>(v);
}

/* Over a block of whole warps; `shared` has 32 floats and may be used again at once. */
static __device__ inline float block_sum(float v, float *shared)
{
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	v = warp_sum(v);
	__syncthreads();
	if (lane == 0)
		shared[warp] = v;
	__syncthreads();
	return warp_sum(lane < warps ? shared[lane] : 0.0f);
}

static __device__ inline float block_max(float v, float *shared)
{
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	v = warp_max(v);
	__syncthreads();
	if (lane == 0)
		shared[warp] = v;
	__syncthreads();
	return warp_max(lane < warps ? shared[lane] : -INFINITY);
}
