/* Kernels that move memory: copies, elementwise chains, transposes, gathers and scatters. */
#include "zoo.h"

enum { LARGEST = 3000000000L }; /* floats of a buffer: 12 GB */

static __host__ __device__ inline float widened(__half v)
{
	return __half2float(v);
}

static __host__ __device__ inline float widened(float v)
{
	return v;
}

static __host__ __device__ inline double widened(double v)
{
	return v;
}

template <typename T, typename R> static __host__ __device__ inline T narrowed(R v)
{
	if constexpr (sizeof(T) == 2)
		return __float2half((float)v);
	else
		return (T)v;
}

/* One vector a thread; OP is applied `steps` times to each element. */
template <typename OP, typename T, int V>
static __device__ __forceinline__ void map_vector(const T *x, const T *y, T *out, long n, int steps)
{
	const long i = zoo_thread();
	if (i >= n)
		return;
	const vec<T, V> a = ((const vec<T, V> *)x)[i], b = ((const vec<T, V> *)y)[i];
	decltype(widened(T())) v[V];
	vec<T, V> to;
#pragma unroll
	for (int e = 0; e < V; e++)
		v[e] = widened(a.v[e]);
	for (int k = 0; k < steps; k++)
#pragma unroll
		for (int e = 0; e < V; e++)
			v[e] = OP::of(v[e], widened(b.v[e]));
#pragma unroll
	for (int e = 0; e < V; e++)
		to.v[e] = narrowed<T>(v[e]);
	((vec<T, V> *)out)[i] = to;
}

/* At most what the smaller of the buffers holds. */
template <typename T, int V> static void draw_map(struct rng *r, struct shape *s)
{
	const long most = sizeof(T) == 2 ? 1L << 31 : 4 * LARGEST;
	s->s[0] = draw_size(r, 1000, most / (long)(V * sizeof(T)));
	s->threads = draw_warps(r);
}

template <typename T, int V> static void draw_map_chain(struct rng *r, struct shape *s)
{
	draw_map<T, V>(r, s);
	s->s[1] = draw_size(r, 1, 4096);
}

template <typename OP, typename T, int V>
static void plan_map(const struct shape *s, struct plan *p)
{
	const long n = V * s->s[0], bytes = n * (long)sizeof(T);
	p->flops = OP::FLOPS * (double)n * (OP::CHAIN ? (double)s->s[1] : 1);
	p->bytes = (1.0 + OP::INPUTS) * (double)bytes;
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
	p->need[sizeof(T) == 2 ? H : X] = sizeof(T) == 2 ? OP::INPUTS * bytes : bytes;
	p->need[Y] = sizeof(T) > 2 && OP::INPUTS == 2 ? bytes : 0;
	p->need[Z] = bytes;
}

template <auto KERNEL, typename OP, typename T, int V>
static void launch_map(const struct plan *p, const struct shape *s, const struct arena *m)
{
	if constexpr (OP::INPUTS == 2)
		call<KERNEL, 1>(p, s, x_of<T>(m), y_of<T>(m, V * s->s[0]), (T *)m->z);
	else
		call_xz<KERNEL, OP::CHAIN ? 2 : 1, T>(p, s, m);
}

template <typename OP, typename T, int V>
static void oracle_map(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const long n = V * s->s[0];
	const T *y = OP::INPUTS == 2 ? y_of<T>(m, n) : x_of<T>(m);
	for (long i = 0; i < n; i++) {
		double v = widened(x_of<T>(m)[i]);
		for (long k = OP::CHAIN ? s->s[1] : 1; k; k--)
			v = OP::of(v, (double)widened(y[i]));
		((T *)m->z)[i] = narrowed<T>(v);
	}
}

template <typename T>
constexpr enum answer ANSWER = sizeof(T) == 2   ? HALVES
			       : sizeof(T) == 4 ? FLOATS
						: DOUBLES;

#define UNARY(name, op, type, v, gbs, gflops)                                                      \
	extern "C" __global__ void name(const type *x, type *out, long n)                          \
	{                                                                                          \
		map_vector<op, type, v>(x, x, out, n, 1);                                          \
	}
#define BINARY(name, op, type, v, gbs, gflops)                                                     \
	extern "C" __global__ void name(const type *x, const type *y, type *out, long n)           \
	{                                                                                          \
		map_vector<op, type, v>(x, y, out, n, 1);                                          \
	}
#define CHAIN(name, op, type, v, gbs, gflops)                                                      \
	extern "C" __global__ void name(const type *x, type *out, long n, int steps)               \
	{                                                                                          \
		map_vector<op, type, v>(x, x, out, n, steps);                                      \
	}
#define MAP_ROW(name, op, type, v, gbs, gflops)                                                    \
	{ op::FAMILY, #name, op::CHAIN ? "vectors,steps" : "vectors", gbs, gflops, ANSWER<type>,   \
		sizeof(type) == 2 ? 1e-3 : 1e-4,                                                   \
		op::CHAIN ? draw_map_chain<type, v> : draw_map<type, v>, plan_map<op, type, v>,    \
		launch_map<name, op, type, v>, oracle_map<op, type, v> },

struct same {
	static constexpr const char *FAMILY = "copy";
	static constexpr int INPUTS = 1, FLOPS = 0, CHAIN = 0;
	template <typename R> static __host__ __device__ R of(R a, R b)
	{
		return a;
	}
};

#define COPIES_OF_TYPE(ROW)                                                                        \
	ROW(copy_f16, same, __half, 1, 2000, 0)                                                    \
	ROW(copy_f64, same, double, 1, 3600, 0)

/* Grid-stride over vectors. */
template <typename T, int V>
static __device__ __forceinline__ void copy_vectors(const T *in, T *out, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads())
		((vec<T, V> *)out)[i] = ((const vec<T, V> *)in)[i];
}

#define COPIES_OF_VECTORS(ROW)                                                                     \
	ROW(copy_f32x2, float, 2, 3500)                                                            \
	ROW(copy_f32x8, float, 8, 3800)                                                            \
	ROW(copy_f16x2, __half, 2, 2800)                                                           \
	ROW(copy_f16x4, __half, 4, 3500)                                                           \
	ROW(copy_f16x8, __half, 8, 3800)                                                           \
	ROW(copy_f64x2, double, 2, 3800)

#define COPY_VECTORS(name, type, v, gbs)                                                           \
	extern "C" __global__ void name(const type *in, type *out, long n)                         \
	{                                                                                          \
		copy_vectors<type, v>(in, out, n);                                                 \
	}
#define COPY_VECTORS_ROW(name, type, v, gbs)                                                       \
	{ "copy", #name, "vectors", gbs, 0, ANSWER<type>, 0, draw_map<type, v>,                    \
		plan_copy_vectors<type, v>, launch_map<name, same, type, v>,                       \
		oracle_map<same, type, v> },

/* ITEMS vectors of V floats a thread, the block's in one piece; all loads before all stores. */
template <int V, int ITEMS>
static __device__ __forceinline__ void copy_unrolled(const float *in, float *out, long n)
{
	const long first = (long)blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
	vec<float, V> v[ITEMS];
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (first + k * (int)blockDim.x < n)
			v[k] = ((const vec<float, V> *)in)[first + k * (int)blockDim.x];
#pragma unroll
	for (int k = 0; k < ITEMS; k++)
		if (first + k * (int)blockDim.x < n)
			((vec<float, V> *)out)[first + k * (int)blockDim.x] = v[k];
}

#define COPIES_UNROLLED(ROW)                                                                       \
	ROW(copy_unroll_1x2, 1, 2, 3300)                                                           \
	ROW(copy_unroll_1x4, 1, 4, 3500)                                                           \
	ROW(copy_unroll_1x8, 1, 8, 3500)                                                           \
	ROW(copy_unroll_2x2, 2, 2, 3600)                                                           \
	ROW(copy_unroll_2x4, 2, 4, 3700)                                                           \
	ROW(copy_unroll_4x2, 4, 2, 3800)                                                           \
	ROW(copy_unroll_4x4, 4, 4, 3800)

#define COPY_UNROLLED(name, v, items, gbs)                                                         \
	extern "C" __global__ void name(const float *in, float *out, long n)                       \
	{                                                                                          \
		copy_unrolled<v, items>(in, out, n);                                               \
	}
#define COPY_UNROLLED_ROW(name, v, items, gbs)                                                     \
	{ "copy", #name, "vectors", gbs, 0, FLOATS, 0, draw_map<float, v>,                         \
		plan_copy_unrolled<v, items>, call_xz<name, 1>, oracle_map<same, float, v> },

COPIES_OF_TYPE(UNARY)
COPIES_OF_VECTORS(COPY_VECTORS)
COPIES_UNROLLED(COPY_UNROLLED)

extern "C" __global__ void copy_f32(const float *in, float *out, long n)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[i];
}

extern "C" __global__ void copy_f32x4(const float4 *in, float4 *out, long n4)
{
	for (long i = zoo_thread(); i < n4; i += zoo_threads())
		out[i] = in[i];
}

extern "C" __global__ void copy_strided(const float *in, float *out, long n, long stride)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[i * stride];
}

static void draw_vector(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST);
	s->threads = draw_threads(r);
}

static void draw_quads(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST / 4);
	s->threads = draw_warps(r);
}

static void draw_strided(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 1, 64);
	s->s[0] = draw_size(r, 1000, LARGEST / s->s[1]);
	s->threads = draw_threads(r);
}

static void one_each(struct plan *p, const struct shape *s, double flops, double bytes)
{
	p->flops = flops * (double)s->s[0];
	p->bytes = bytes * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(s->s[0], s->threads));
}

static void plan_copy(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_copy4(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 32);
	p->grid = dim3(stride_blocks(s->s[0], s->threads));
	p->need[X] = p->need[Z] = 16 * s->s[0];
}

template <typename T, int V> static void plan_copy_vectors(const struct shape *s, struct plan *p)
{
	plan_map<same, T, V>(s, p);
	p->grid = dim3(stride_blocks(s->s[0], s->threads));
}

template <int V, int ITEMS> static void plan_copy_unrolled(const struct shape *s, struct plan *p)
{
	plan_map<same, float, V>(s, p);
	p->grid = dim3((unsigned)up(s->s[0], s->threads * ITEMS));
}

static void plan_strided(const struct shape *s, struct plan *p)
{
	const long sector = at_most(s->s[1], 8); /* memory is read by sectors of 32 bytes */
	one_each(p, s, 0, 4 + 4 * (double)sector);
	p->need[X] = 4 * ((s->s[0] - 1) * s->s[1] + 1);
	p->need[Z] = 4 * s->s[0];
}

static void launch_copy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(copy_f32, p, m->x, z_f32(m), s->s[0]);
}

static void launch_copy4(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(copy_f32x4, p, (const float4 *)m->x, (float4 *)m->z, s->s[0]);
}

static void launch_strided(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(copy_strided, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_copy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < p->need[Z] / 4; i++)
		z_f32(m)[i] = m->x[i];
}

static void oracle_strided(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[i] = m->x[i * s->s[1]];
}

static const struct kernel copies[] = {
	{ "copy", "copy_f32", "n", 3000, 0, FLOATS, 0, draw_vector, plan_copy, launch_copy,
		oracle_copy },
	{ "copy", "copy_f32x4", "n4", 3800, 0, FLOATS, 0, draw_quads, plan_copy4, launch_copy4,
		oracle_copy },
	{ "copy", "copy_strided", "n,stride", 3000, 0, FLOATS, 0, draw_strided, plan_strided,
		launch_strided, oracle_strided },
	COPIES_OF_TYPE(MAP_ROW)
	COPIES_OF_VECTORS(COPY_VECTORS_ROW)
	COPIES_UNROLLED(COPY_UNROLLED_ROW)
};
FAMILY(copy, copies);

extern "C" __global__ void axpy(float a, const float *x, const float *y, float *out, long n)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = a * x[i] + y[i];
}

/* `steps` dependent multiply-adds an element: from memory-bound to compute-bound. */
extern "C" __global__ void chain_fma(const float *x, float *out, long n, int steps)
{
	const long i = zoo_thread();
	if (i >= n)
		return;
	float v = x[i];
	for (int k = 0; k < steps; k++)
		v = v * 0.999f + 0.001f;
	out[i] = v;
}

extern "C" __global__ void chain_exp(const float *x, float *out, long n, int steps)
{
	const long i = zoo_thread();
	if (i >= n)
		return;
	float v = x[i];
	for (int k = 0; k < steps; k++)
		v = __expf(-v);
	out[i] = v;
}

extern "C" __global__ void gelu_f32(const float *x, float *out, long n)
{
	for (long i = zoo_thread(); i < n; i += zoo_threads()) {
		const float v = x[i];
		out[i] = 0.5f * v * (1.0f + tanhf(0.7978846f * (v + 0.044715f * v * v * v)));
	}
}

extern "C" __global__ void add_f16(const __half *x, __half *out, long n)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = __hadd(x[i], x[n + i]);
}

/* out[row][column] = x[row][column] + bias[column], at least zero. */
extern "C" __global__ void bias_relu(
	const float *x, const float *bias, float *out, long rows, long columns)
{
	const long i = zoo_thread();
	if (i < rows * columns)
		out[i] = fmaxf(x[i] + bias[i % columns], 0.0f);
}

static __device__ inline float fast_exp(float v)
{
	return __expf(v);
}

static __host__ __device__ inline double fast_exp(double v)
{
	return exp(v);
}

/* The operation on an element, and its counts; `b` is of the second input, if there is one. */
struct elementwise_op {
	static constexpr const char *FAMILY = "elementwise";
	static constexpr int INPUTS = 1, CHAIN = 0;
};

struct axpy_op : elementwise_op {
	static constexpr int INPUTS = 2, FLOPS = 2;
	template <typename R> static __host__ __device__ R of(R a, R b)
	{
		return (R)1.5 * a + b;
	}
};

struct add_op : elementwise_op {
	static constexpr int INPUTS = 2, FLOPS = 1;
	template <typename R> static __host__ __device__ R of(R a, R b)
	{
		return a + b;
	}
};

struct gelu_op : elementwise_op {
	static constexpr int FLOPS = 9;
	template <typename R> static __host__ __device__ R of(R a, R b)
	{
		return (R)0.5 * a * ((R)1 + tanh((R)0.7978846 * (a + (R)0.044715 * a * a * a)));
	}
};

struct fma_op : elementwise_op {
	static constexpr int FLOPS = 2, CHAIN = 1;
	template <typename R> static __host__ __device__ R of(R a, R b)
	{
		return a * (R)0.999f + (R)0.001f;
	}
};

struct exp_op : elementwise_op {
	static constexpr int FLOPS = 1, CHAIN = 1;
	template <typename R> static __host__ __device__ R of(R a, R b)
	{
		return fast_exp(-a);
	}
};

#define UNARIES(ROW)                                                                               \
	ROW(gelu_f16, gelu_op, __half, 1, 1800, 0)                                                 \
	ROW(gelu_f64, gelu_op, double, 1, 2500, 2000)                                              \
	ROW(gelu_f32x2, gelu_op, float, 2, 3300, 0)                                                \
	ROW(gelu_f32x4, gelu_op, float, 4, 3500, 0)                                                \
	ROW(gelu_f16x2, gelu_op, __half, 2, 2500, 0)                                               \
	ROW(gelu_f16x8, gelu_op, __half, 8, 3000, 0)

#define BINARIES(ROW)                                                                              \
	ROW(axpy_f32x2, axpy_op, float, 2, 3600, 0)                                                \
	ROW(axpy_f32x4, axpy_op, float, 4, 3800, 0)                                                \
	ROW(axpy_f16x2, axpy_op, __half, 2, 3000, 0)                                               \
	ROW(axpy_f16x8, axpy_op, __half, 8, 3800, 0)                                               \
	ROW(axpy_f64x2, axpy_op, double, 2, 3800, 0)                                               \
	ROW(add_f32, add_op, float, 1, 3500, 0)                                                    \
	ROW(add_f64, add_op, double, 1, 3700, 0)                                                   \
	ROW(add_f32x2, add_op, float, 2, 3600, 0)                                                  \
	ROW(add_f32x4, add_op, float, 4, 3800, 0)                                                  \
	ROW(add_f16x2, add_op, __half, 2, 3000, 0)                                                 \
	ROW(add_f16x4, add_op, __half, 4, 3600, 0)                                                 \
	ROW(add_f16x8, add_op, __half, 8, 3800, 0)                                                 \
	ROW(add_f64x2, add_op, double, 2, 3800, 0)

#define CHAINS(ROW)                                                                                \
	ROW(chain_fma_f32x1, fma_op, float, 1, 3000, 30000)                                        \
	ROW(chain_fma_f32x2, fma_op, float, 2, 3300, 40000)                                        \
	ROW(chain_fma_f32x4, fma_op, float, 4, 3500, 50000)                                        \
	ROW(chain_fma_f64x1, fma_op, double, 1, 3300, 20000)                                       \
	ROW(chain_fma_f64x2, fma_op, double, 2, 3500, 25000)                                       \
	ROW(chain_exp_f32x1, exp_op, float, 1, 3000, 3000)                                         \
	ROW(chain_exp_f32x2, exp_op, float, 2, 3300, 3500)                                         \
	ROW(chain_exp_f32x4, exp_op, float, 4, 3500, 3500)                                         \
	ROW(chain_exp_f64x1, exp_op, double, 1, 3300, 1000)                                        \
	ROW(chain_exp_f64x2, exp_op, double, 2, 3500, 1000)

/* As bias_relu, of vectors. */
template <int V>
static __device__ __forceinline__ void bias_vectors(
	const float *x, const float *bias, float *out, long rows, long columns)
{
	const long i = zoo_thread();
	if (i >= rows * columns)
		return;
	vec<float, V> v = ((const vec<float, V> *)x)[i];
	const vec<float, V> by = ((const vec<float, V> *)bias)[i % columns];
#pragma unroll
	for (int e = 0; e < V; e++)
		v.v[e] = fmaxf(v.v[e] + by.v[e], 0.0f);
	((vec<float, V> *)out)[i] = v;
}

#define BIASES(ROW)                                                                                \
	ROW(bias_relu_x2, 2, 3000)                                                                 \
	ROW(bias_relu_x4, 4, 3300)                                                                 \
	ROW(bias_relu_x8, 8, 3300)

#define BIAS(name, v, gbs)                                                                         \
	extern "C" __global__ void name(                                                           \
		const float *x, const float *bias, float *out, long rows, long columns)            \
	{                                                                                          \
		bias_vectors<v>(x, bias, out, rows, columns);                                      \
	}
#define BIAS_ROW(name, v, gbs)                                                                     \
	{ "elementwise", #name, "rows,vectors", gbs, 0, FLOATS, 1e-6, draw_bias,                   \
		plan_bias_vectors<v>, call_xyz<name, 2>, oracle_bias_vectors<v> },

UNARIES(UNARY)
BINARIES(BINARY)
CHAINS(CHAIN)
BIASES(BIAS)

static void draw_chain(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, LARGEST);
	s->s[1] = draw_size(r, 1, 4096);
	s->threads = draw_threads(r);
}

static void draw_half(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 29);
	s->threads = draw_threads(r);
}

static void draw_bias(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 8, 65536);
	s->s[0] = draw_size(r, 16, at_most(1L << 24, LARGEST / s->s[1]));
	s->threads = draw_threads(r);
}

static void plan_axpy(const struct shape *s, struct plan *p)
{
	one_each(p, s, 2, 12);
	p->need[X] = p->need[Y] = p->need[Z] = 4 * s->s[0];
}

static void draw_axpy(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->threads = draw_threads(r);
}

static void plan_fma(const struct shape *s, struct plan *p)
{
	one_each(p, s, 2 * (double)s->s[1], 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_exp(const struct shape *s, struct plan *p)
{
	one_each(p, s, (double)s->s[1], 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_gelu(const struct shape *s, struct plan *p)
{
	one_each(p, s, 9, 8);
	p->grid = dim3(stride_blocks(s->s[0], s->threads));
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

static void plan_half(const struct shape *s, struct plan *p)
{
	one_each(p, s, 1, 6);
	p->need[H] = 4 * s->s[0];
	p->need[Z] = 2 * s->s[0];
}

static void plan_bias(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->flops = (double)n;
	p->bytes = 8.0 * (double)n + 4.0 * (double)s->s[1];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)up(n, s->threads));
	p->need[X] = p->need[Z] = 4 * n;
	p->need[Y] = 4 * s->s[1];
}

template <int V> static void plan_bias_vectors(const struct shape *s, struct plan *p)
{
	const struct shape scalars = { { s->s[0], s->s[1] * V }, s->threads };
	plan_bias(&scalars, p);
	p->grid = dim3((unsigned)up(s->s[0] * s->s[1], s->threads));
}

static void launch_axpy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(axpy, p, 1.5f, m->x, m->y, z_f32(m), s->s[0]);
}

static void launch_fma(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(chain_fma, p, m->x, z_f32(m), s->s[0], (int)s->s[1]);
}

static void launch_exp(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(chain_exp, p, m->x, z_f32(m), s->s[0], (int)s->s[1]);
}

static void launch_gelu(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gelu_f32, p, m->x, z_f32(m), s->s[0]);
}

static void launch_half(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(add_f16, p, m->h, (__half *)m->z, s->s[0]);
}

static void launch_bias(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(bias_relu, p, m->x, m->y, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_axpy(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[i] = 1.5f * m->x[i] + m->y[i];
}

static void oracle_fma(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		double v = m->x[i];
		for (long k = 0; k < s->s[1]; k++)
			v = v * 0.999f + 0.001f;
		z_f32(m)[i] = (float)v;
	}
}

static void oracle_exp(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		double v = m->x[i];
		for (long k = 0; k < s->s[1]; k++)
			v = exp(-v);
		z_f32(m)[i] = (float)v;
	}
}

static void oracle_gelu(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++) {
		const double v = m->x[i];
		z_f32(m)[i] = (float)(0.5 * v * (1 + tanh(0.7978846 * (v + 0.044715 * v * v * v))));
	}
}

static void oracle_half(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		((__half *)m->z)[i] =
			__float2half(__half2float(m->h[i]) + __half2float(m->h[s->s[0] + i]));
}

static void oracle_bias(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++)
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[row * s->s[1] + c] =
				fmaxf(m->x[row * s->s[1] + c] + m->y[c], 0.0f);
}

template <int V>
static void oracle_bias_vectors(const struct plan *p, const struct shape *s, const struct arena *m)
{
	const struct shape scalars = { { s->s[0], s->s[1] * V } };
	oracle_bias(p, &scalars, m);
}

static const struct kernel elementwise[] = {
	{ "elementwise", "axpy", "n", 3500, 0, FLOATS, 1e-6, draw_axpy, plan_axpy, launch_axpy,
		oracle_axpy },
	{ "elementwise", "chain_fma", "n,steps", 3000, 30000, FLOATS, 1e-4, draw_chain, plan_fma,
		launch_fma, oracle_fma },
	{ "elementwise", "chain_exp", "n,steps", 3000, 3000, FLOATS, 1e-4, draw_chain, plan_exp,
		launch_exp, oracle_exp },
	{ "elementwise", "gelu_f32", "n", 3000, 0, FLOATS, 1e-5, draw_vector, plan_gelu,
		launch_gelu, oracle_gelu },
	{ "elementwise", "add_f16", "n", 2500, 0, HALVES, 1e-3, draw_half, plan_half, launch_half,
		oracle_half },
	{ "elementwise", "bias_relu", "rows,columns", 2500, 0, FLOATS, 1e-6, draw_bias, plan_bias,
		launch_bias, oracle_bias },
	UNARIES(MAP_ROW)
	BINARIES(MAP_ROW)
	CHAINS(MAP_ROW)
	BIASES(BIAS_ROW)
};
FAMILY(elementwise, elementwise);

extern "C" __global__ void transpose_naive(const float *in, float *out, long rows, long columns)
{
	const long c = (long)blockIdx.x * 32 + threadIdx.x;
	const long first = (long)blockIdx.y * 32;
	for (long r = first + threadIdx.y; r < first + 32; r += blockDim.y)
		if (r < rows && c < columns)
			out[c * rows + r] = in[r * columns + c];
}

extern "C" __global__ void transpose_tiled(const float *in, float *out, long rows, long columns)
{
	__shared__ float tile[32][33]; /* 33: a column is in 32 banks */
	const long c0 = (long)blockIdx.x * 32, r0 = (long)blockIdx.y * 32;
	for (long y = threadIdx.y; y < 32; y += blockDim.y)
		if (r0 + y < rows && c0 + threadIdx.x < columns)
			tile[y][threadIdx.x] = in[(r0 + y) * columns + c0 + threadIdx.x];
	__syncthreads();
	for (long y = threadIdx.y; y < 32; y += blockDim.y)
		if (c0 + y < columns && r0 + threadIdx.x < rows)
			out[(c0 + y) * rows + r0 + threadIdx.x] = tile[threadIdx.x][y];
}

/* Tiles of T x T by blocks of T x R threads. */
template <int T>
static __device__ __forceinline__ void transpose_direct(
	const float *in, float *out, long rows, long columns)
{
	const long c = (long)blockIdx.x * T + threadIdx.x;
	const long first = (long)blockIdx.y * T;
	for (long r = first + threadIdx.y; r < first + T; r += blockDim.y)
		if (r < rows && c < columns)
			out[c * rows + r] = in[r * columns + c];
}

template <int T>
static __device__ __forceinline__ void transpose_shared(
	const float *in, float *out, long rows, long columns)
{
	__shared__ float tile[T][T + 1];
	const int x = threadIdx.x;
	const long c0 = (long)blockIdx.x * T, r0 = (long)blockIdx.y * T;
	for (int y = threadIdx.y; y < T; y += blockDim.y)
		if (r0 + y < rows && c0 + x < columns)
			tile[y][x] = in[(r0 + y) * columns + c0 + x];
	__syncthreads();
	for (int y = threadIdx.y; y < T; y += blockDim.y)
		if (c0 + y < columns && r0 + x < rows)
			out[(c0 + y) * rows + r0 + x] = tile[x][y];
}

#define TRANSPOSES(ROW)                                                                            \
	ROW(transpose_naive_8x8, direct, 8, 8, 700)                                                \
	ROW(transpose_naive_16x8, direct, 16, 8, 800)                                              \
	ROW(transpose_naive_16x16, direct, 16, 16, 800)                                            \
	ROW(transpose_naive_32x4, direct, 32, 4, 800)                                              \
	ROW(transpose_naive_32x16, direct, 32, 16, 800)                                            \
	ROW(transpose_tile_8x8, shared, 8, 8, 1500)                                                \
	ROW(transpose_tile_16x4, shared, 16, 4, 2000)                                              \
	ROW(transpose_tile_16x16, shared, 16, 16, 2000)                                            \
	ROW(transpose_tile_32x4, shared, 32, 4, 2500)                                              \
	ROW(transpose_tile_32x8, shared, 32, 8, 2500)                                              \
	ROW(transpose_tile_32x16, shared, 32, 16, 2500)                                            \
	ROW(transpose_tile_64x4, shared, 64, 4, 2500)                                              \
	ROW(transpose_tile_64x8, shared, 64, 8, 2500)                                              \
	ROW(transpose_tile_64x16, shared, 64, 16, 2500)

#define TRANSPOSE(name, how, t, r, gbs)                                                            \
	extern "C" __global__ void __launch_bounds__((t) * (r))                                    \
		name(const float *in, float *out, long rows, long columns)                         \
	{                                                                                          \
		transpose_##how<t>(in, out, rows, columns);                                        \
	}
#define TRANSPOSE_ROW(name, how, t, r, gbs)                                                        \
	{ "transpose", #name, "rows,columns", gbs, 0, FLOATS, 0, draw_tiles<t>, plan_tiles<t, r>,  \
		call_xz<name, 2>, oracle_transpose },

TRANSPOSES(TRANSPOSE)

static void draw_matrix(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 32, 2000000);
	s->s[1] = draw_size(r, 32, at_most(100000, LARGEST / s->s[0]));
	s->threads = 32 * (4 << rng_below(r, 3));
}

static void plan_transpose(const struct shape *s, struct plan *p)
{
	const long n = s->s[0] * s->s[1];
	p->bytes = 8.0 * (double)n;
	p->block = dim3(32, (unsigned)s->threads / 32);
	p->grid = dim3((unsigned)up(s->s[1], 32), (unsigned)up(s->s[0], 32));
	p->need[X] = p->need[Z] = 4 * n;
}

/* A grid has at most 65535 tiles in y. */
template <int T> static void draw_tiles(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 32, 65535L * T);
	s->s[1] = draw_size(r, 32, at_most(100000, LARGEST / s->s[0]));
}

template <int T, int R> static void plan_tiles(const struct shape *s, struct plan *p)
{
	p->bytes = 8.0 * (double)s->s[0] * (double)s->s[1];
	p->block = dim3(T, R);
	p->grid = dim3((unsigned)up(s->s[1], T), (unsigned)up(s->s[0], T));
	p->need[X] = p->need[Z] = 4 * s->s[0] * s->s[1];
}

static void launch_naive(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(transpose_naive, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void launch_tiled(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(transpose_tiled, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_transpose(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long r = 0; r < s->s[0]; r++)
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[c * s->s[0] + r] = m->x[r * s->s[1] + c];
}

static const struct kernel transposes[] = {
	{ "transpose", "transpose_naive", "rows,columns", 800, 0, FLOATS, 0, draw_matrix,
		plan_transpose, launch_naive, oracle_transpose },
	{ "transpose", "transpose_tiled", "rows,columns", 2500, 0, FLOATS, 0, draw_matrix,
		plan_transpose, launch_tiled, oracle_transpose },
	TRANSPOSES(TRANSPOSE_ROW)
};
FAMILY(transpose, transposes);

/* An index below m from a random word, without a division. */
static __device__ inline long below(uint32_t word, long m)
{
	return (long)__umulhi(word, (unsigned)m);
}

static long below_host(uint32_t word, long m)
{
	return (long)((uint64_t)word * (uint64_t)m >> 32);
}

extern "C" __global__ void gather_random(
	const float *in, const uint32_t *index, float *out, long n, long m)
{
	const long i = zoo_thread();
	if (i < n)
		out[i] = in[below(index[i], m)];
}

/* Whole rows by number, as an embedding does; one block a row. */
extern "C" __global__ void gather_rows(
	const float *table, const uint32_t *index, float *out, long rows, long width, long m)
{
	const long row = blockIdx.x;
	const float *from = table + below(index[row], m) * width;
	for (long c = threadIdx.x; c < width; c += blockDim.x)
		out[row * width + c] = from[c];
}

/* Each element goes to a place of its own: i times an odd number, within a power of two. */
extern "C" __global__ void scatter_spread(const float *in, float *out, long n_pow2, long odd)
{
	const long i = zoo_thread();
	if (i < n_pow2)
		out[(i * odd) & (n_pow2 - 1)] = in[i];
}

/* V consecutive floats by each number. */
template <int V>
static __device__ __forceinline__ void gather_vectors(
	const float *in, const uint32_t *index, float *out, long n, long m)
{
	const long i = zoo_thread();
	if (i < n)
		((vec<float, V> *)out)[i] = ((const vec<float, V> *)in)[below(index[i], m)];
}

/* LANES threads a row. */
template <int LANES>
static __device__ __forceinline__ void gather_by_lanes(
	const float *table, const uint32_t *index, float *out, long rows, long width, long m)
{
	const long row = zoo_thread() / LANES;
	if (row >= rows)
		return;
	const float *from = table + below(index[row], m) * width;
	for (long c = threadIdx.x % LANES; c < width; c += LANES)
		out[row * width + c] = from[c];
}

template <int V>
static __device__ __forceinline__ void scatter_vectors(
	const float *in, float *out, long n_pow2, long odd)
{
	const long i = zoo_thread();
	if (i < n_pow2)
		((vec<float, V> *)out)[(i * odd) & (n_pow2 - 1)] = ((const vec<float, V> *)in)[i];
}

#define GATHERS(ROW)                                                                               \
	ROW(gather_width_1, 1, 1500)                                                               \
	ROW(gather_width_2, 2, 1800)                                                               \
	ROW(gather_width_4, 4, 2200)                                                               \
	ROW(gather_width_8, 8, 2500)
#define GATHERS_OF_ROWS(ROW)                                                                       \
	ROW(gather_lanes_4, 4, 1500)                                                               \
	ROW(gather_lanes_8, 8, 2000)                                                               \
	ROW(gather_lanes_16, 16, 2300)                                                             \
	ROW(gather_lanes_32, 32, 2500)                                                             \
	ROW(gather_lanes_64, 64, 2500)
#define SCATTERS(ROW)                                                                              \
	ROW(scatter_width_1, 1, 400)                                                               \
	ROW(scatter_width_2, 2, 800)                                                               \
	ROW(scatter_width_4, 4, 1500)                                                              \
	ROW(scatter_width_8, 8, 2500)

#define GATHER(name, v, gbs)                                                                       \
	extern "C" __global__ void name(                                                           \
		const float *in, const uint32_t *index, float *out, long n, long m)                \
	{                                                                                          \
		gather_vectors<v>(in, index, out, n, m);                                           \
	}
#define GATHER_ROW(name, v, gbs)                                                                   \
	{ "gather", #name, "n,table", gbs, 0, FLOATS, 0, draw_width<v>, plan_width<v>,             \
		call_xiz<name, 2>, oracle_width<v> },
#define GATHER_LANES(name, lanes, gbs)                                                             \
	extern "C" __global__ void name(const float *table, const uint32_t *index, float *out,     \
		long rows, long width, long m)                                                     \
	{                                                                                          \
		gather_by_lanes<lanes>(table, index, out, rows, width, m);                         \
	}
#define GATHER_LANES_ROW(name, lanes, gbs)                                                         \
	{ "gather", #name, "rows,width,table_rows", gbs, 0, FLOATS, 0, draw_lanes,                 \
		plan_lanes<lanes>, call_xiz<name, 3>, oracle_rows },
#define SCATTER(name, v, gbs)                                                                      \
	extern "C" __global__ void name(const float *in, float *out, long n_pow2, long odd)        \
	{                                                                                          \
		scatter_vectors<v>(in, out, n_pow2, odd);                                          \
	}
#define SCATTER_ROW(name, v, gbs)                                                                  \
	{ "gather", #name, "n_pow2,odd", gbs, 0, FLOATS, 0, draw_scatter, plan_scatter_width<v>,   \
		call_xz<name, 2>, oracle_scatter_width<v> },

GATHERS(GATHER)
GATHERS_OF_ROWS(GATHER_LANES)
SCATTERS(SCATTER)

/* From X and I to Z. */
template <auto KERNEL, int N>
static void call_xiz(const struct plan *p, const struct shape *s, const struct arena *m)
{
	call<KERNEL, N>(p, s, m->x, m->i, z_f32(m));
}

static void draw_gather(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, 1L << 30);
	s->s[1] = draw_size(r, 256, LARGEST);
	s->threads = draw_threads(r);
}

static void draw_rows(struct rng *r, struct shape *s)
{
	s->s[1] = draw_size(r, 16, 16384);
	s->s[0] = draw_size(r, 16, at_most(10000000, LARGEST / s->s[1]));
	s->s[2] = draw_size(r, 64, at_most(10000000, LARGEST / s->s[1]));
	s->threads = draw_warps(r);
}

static void draw_scatter(struct rng *r, struct shape *s)
{
	s->s[0] = 1L << (10 + rng_below(r, 22));
	s->s[1] = rng_below(r, 4) ? 2 * rng_below(r, 1L << 20) + 1 : 1 + 2 * rng_below(r, 16);
	s->threads = draw_threads(r);
}

static void plan_gather(const struct shape *s, struct plan *p)
{
	/* A table beyond the caches is read by sectors of 32 bytes. */
	one_each(p, s, 0, s->s[1] > (1L << 23) ? 40 : 12);
	p->need[X] = 4 * s->s[1];
	p->need[I] = p->need[Z] = 4 * s->s[0];
}

static void plan_rows(const struct shape *s, struct plan *p)
{
	const double n = (double)s->s[0] * (double)s->s[1];
	p->bytes = 8 * n + 4 * (double)s->s[0];
	p->block = dim3((unsigned)s->threads);
	p->grid = dim3((unsigned)s->s[0]);
	p->need[X] = 4 * s->s[1] * s->s[2];
	p->need[I] = 4 * s->s[0];
	p->need[Z] = 4 * s->s[0] * s->s[1];
}

static void plan_scatter(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 8);
	p->need[X] = p->need[Z] = 4 * s->s[0];
}

template <int V> static void draw_width(struct rng *r, struct shape *s)
{
	s->s[0] = draw_size(r, 1000, at_most(1L << 30, LARGEST / V));
	s->s[1] = draw_size(r, 256, LARGEST / V);
	s->threads = draw_warps(r);
}

static void draw_lanes(struct rng *r, struct shape *s)
{
	draw_rows(r, s);
	s->s[1] = draw_size(r, 4, at_most(1024, s->s[1]));
}

template <int V> static void plan_width(const struct shape *s, struct plan *p)
{
	const double sector = V * s->s[1] > (1L << 23) && V < 8 ? 32 : 4 * V;
	one_each(p, s, 0, 4 + sector + 4 * V);
	p->need[X] = 4 * V * s->s[1];
	p->need[I] = 4 * s->s[0];
	p->need[Z] = 4 * V * s->s[0];
}

template <int LANES> static void plan_lanes(const struct shape *s, struct plan *p)
{
	plan_rows(s, p);
	p->grid = dim3((unsigned)up(s->s[0] * LANES, s->threads));
}

template <int V> static void plan_scatter_width(const struct shape *s, struct plan *p)
{
	one_each(p, s, 0, 8 * V);
	p->need[X] = p->need[Z] = 4 * V * s->s[0];
}

static void launch_gather(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gather_random, p, m->x, m->i, z_f32(m), s->s[0], s->s[1]);
}

static void launch_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(gather_rows, p, m->x, m->i, z_f32(m), s->s[0], s->s[1], s->s[2]);
}

static void launch_scatter(const struct plan *p, const struct shape *s, const struct arena *m)
{
	LAUNCH(scatter_spread, p, m->x, z_f32(m), s->s[0], s->s[1]);
}

static void oracle_gather(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[i] = m->x[below_host(m->i[i], s->s[1])];
}

static void oracle_rows(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long row = 0; row < s->s[0]; row++)
		for (long c = 0; c < s->s[1]; c++)
			z_f32(m)[row * s->s[1] + c] =
				m->x[below_host(m->i[row], s->s[2]) * s->s[1] + c];
}

static void oracle_scatter(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < s->s[0]; i++)
		z_f32(m)[(long)((uint64_t)i * (uint64_t)s->s[1] % (uint64_t)s->s[0])] = m->x[i];
}

template <int V>
static void oracle_width(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < V * s->s[0]; i++)
		z_f32(m)[i] = m->x[V * below_host(m->i[i / V], s->s[1]) + i % V];
}

template <int V>
static void oracle_scatter_width(const struct plan *p, const struct shape *s, const struct arena *m)
{
	for (long i = 0; i < V * s->s[0]; i++)
		z_f32(m)[V * (i / V * s->s[1] % s->s[0]) + i % V] = m->x[i];
}

static const struct kernel gathers[] = {
	{ "gather", "gather_random", "n,table", 1500, 0, FLOATS, 0, draw_gather, plan_gather,
		launch_gather, oracle_gather },
	{ "gather", "gather_rows", "rows,width,table_rows", 2500, 0, FLOATS, 0, draw_rows,
		plan_rows, launch_rows, oracle_rows },
	{ "gather", "scatter_spread", "n_pow2,odd", 400, 0, FLOATS, 0, draw_scatter, plan_scatter,
		launch_scatter, oracle_scatter },
	GATHERS(GATHER_ROW)
	GATHERS_OF_ROWS(GATHER_LANES_ROW)
	SCATTERS(SCATTER_ROW)
};
FAMILY(gather, gathers);
