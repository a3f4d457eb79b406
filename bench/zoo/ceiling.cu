/* The best that this GPU reaches, measured: the ceilings of a roofline.  Prints one JSON object; a
 * figure that could not be had is absent, and standard error says why.
 *
 *	ceiling [SECONDS]	time for each figure, 0.3 when absent
 *
 * Each figure is the fastest of many runs of one kernel, by events around it: long products are soon
 * slowed down by the power that they draw, and a program's are often short.  Data are random: a
 * tensor core that multiplies zeros runs faster than any program does. */
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>

#include <functional>

static double seconds = 0.3;
static bool first = true;

static void must(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "ceiling: %s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

/* The fastest run of `work`, in seconds; negative after an error. */
static double best_s(const std::function<bool()> &work)
{
	cudaEvent_t begin, end;
	float best = 0, total = 0;
	must(cudaEventCreate(&begin), "an event");
	must(cudaEventCreate(&end), "an event");
	for (int i = 0; i < 3 || (total < seconds * 1e3 && i < 1000); i++) {
		float t = 0;
		cudaEventRecord(begin);
		if (!work())
			return -1;
		cudaEventRecord(end);
		must(cudaEventSynchronize(end), "a measured kernel");
		cudaEventElapsedTime(&t, begin, end);
		if (i == 0) /* it loads code and raises clocks */
			continue;
		best = i == 1 || t < best ? t : best;
		total += t;
	}
	cudaEventDestroy(begin);
	cudaEventDestroy(end);
	return best * 1e-3;
}

static void put(const char *name, double amount, double time)
{
	if (time <= 0)
		return;
	printf("%s\n  \"%s\": %.1f", first ? "" : ",", name, amount / time * 1e-9);
	fflush(stdout);
	first = false;
}

static __device__ unsigned hash(size_t i)
{
	size_t v = (i + 1) * 0x9e3779b97f4a7c15u;
	v = (v ^ v >> 31) * 0xbf58476d1ce4e5b9u;
	return (unsigned)(v >> 32);
}

static __device__ size_t thread(void)
{
	return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void fill_words(unsigned *to, size_t n)
{
	for (size_t i = thread(); i < n; i += (size_t)gridDim.x * blockDim.x)
		to[i] = hash(i);
}

static __device__ unsigned folded(uint4 v)
{
	return v.x ^ v.y ^ v.z ^ v.w;
}

/* Four loads are on their way at once; the sum is stored if it is a number that it hardly ever is.
 */
__global__ void read_words(const uint4 *in, unsigned *out, size_t n)
{
	unsigned sum = 0;
	const size_t step = (size_t)gridDim.x * blockDim.x;
	size_t i = thread();
	for (; i + 3 * step < n; i += 4 * step)
		sum ^= folded(in[i]) ^ folded(in[i + step]) ^ folded(in[i + 2 * step]) ^
		       folded(in[i + 3 * step]);
	for (; i < n; i += step)
		sum ^= folded(in[i]);
	if (sum == 0x12345678)
		*out = sum;
}

__global__ void write_words(uint4 *out, size_t n, unsigned v)
{
	for (size_t i = thread(); i < n; i += (size_t)gridDim.x * blockDim.x)
		out[i] = make_uint4(v, v + 1, v + 2, (unsigned)i);
}

__global__ void copy_words(const uint4 *in, uint4 *out, size_t n)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;
	size_t i = thread();
	for (; i + 3 * step < n; i += 4 * step) {
		const uint4 a = in[i], b = in[i + step], c = in[i + 2 * step], d = in[i + 3 * step];
		out[i] = a;
		out[i + step] = b;
		out[i + 2 * step] = c;
		out[i + 3 * step] = d;
	}
	for (; i < n; i += step)
		out[i] = in[i];
}

/* Goes over n words, a power of two, many times, past L1; a block begins elsewhere each time. */
__global__ void read_l2(const uint4 *in, unsigned *out, unsigned n, int passes)
{
	unsigned sum = 0;
	const unsigned threads = gridDim.x * blockDim.x;
	const unsigned me = (unsigned)thread();
	for (int p = 0; p < passes; p++) {
		const unsigned shift = (unsigned)p * 1237 * blockDim.x;
#pragma unroll 8
		for (unsigned i = 0; i < n / threads; i++)
			sum ^= folded(__ldcg(&in[(me + shift + i * threads) & (n - 1)]));
	}
	if (sum == 0x12345678)
		*out = sum;
}

static void memory(int sms)
{
	const size_t bytes = 4ul << 30;
	uint4 *a, *b;
	must(cudaMalloc(&a, bytes), "4 GiB");
	must(cudaMalloc(&b, bytes), "4 GiB");
	fill_words<<<sms * 8, 256>>>((unsigned *)a, bytes / 4);
	const size_t n = bytes / 16;
	const int blocks = sms * 8;
	put("dram_read_gbs", (double)bytes, best_s([&] {
		read_words<<<blocks, 256>>>(a, (unsigned *)b, n);
		return cudaGetLastError() == cudaSuccess;
	}));
	put("dram_write_gbs", (double)bytes, best_s([&] {
		write_words<<<blocks, 256>>>(b, n, 7);
		return cudaGetLastError() == cudaSuccess;
	}));
	put("dram_copy_gbs", 2.0 * (double)bytes, best_s([&] {
		copy_words<<<blocks, 256>>>(a, b, n);
		return cudaGetLastError() == cudaSuccess;
	}));
	put("memcpy_gbs", 2.0 * (double)bytes, best_s([&] {
		return cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess;
	}));
	for (int mib = 8; mib <= 32; mib *= 2) {
		const unsigned words = (unsigned)mib << 16; /* of 16 bytes */
		const int passes = 32768 / mib;             /* 32 GiB in all */
		char name[32];
		snprintf(name, sizeof(name), "l2_read_%d_mib_gbs", mib);
		put(name, (double)words * 16 * passes, best_s([&] {
			read_l2<<<512, 512>>>(a, (unsigned *)b, words, passes);
			return cudaGetLastError() == cudaSuccess;
		}));
	}
	cudaFree(a);
	cudaFree(b);
}

enum { CHAINS = 8, STEPS = 8192 };

template <typename T> __global__ void __launch_bounds__(256) multiply_add(T *out, T a, T b)
{
	T v[CHAINS];
#pragma unroll
	for (int c = 0; c < CHAINS; c++)
		v[c] = (T)(float)(threadIdx.x + c);
	for (int s = 0; s < STEPS; s++)
#pragma unroll
		for (int c = 0; c < CHAINS; c++)
			v[c] = v[c] * a + b;
	T sum = v[0];
#pragma unroll
	for (int c = 1; c < CHAINS; c++)
		sum = sum + v[c];
	out[thread()] = sum;
}

__global__ void __launch_bounds__(256) multiply_add_half2(__half2 *out, __half2 a, __half2 b)
{
	__half2 v[CHAINS];
#pragma unroll
	for (int c = 0; c < CHAINS; c++)
		v[c] = __float2half2_rn((float)(threadIdx.x + c) * 0.001f);
	for (int s = 0; s < STEPS; s++)
#pragma unroll
		for (int c = 0; c < CHAINS; c++)
			v[c] = __hfma2(v[c], a, b);
	__half2 sum = v[0];
#pragma unroll
	for (int c = 1; c < CHAINS; c++)
		sum = __hadd2(sum, v[c]);
	out[thread()] = sum;
}

__global__ void __launch_bounds__(256) exponentials(float *out)
{
	float v[CHAINS];
#pragma unroll
	for (int c = 0; c < CHAINS; c++)
		v[c] = (float)(threadIdx.x + c) * 0.001f;
	for (int s = 0; s < STEPS / 8; s++)
#pragma unroll
		for (int c = 0; c < CHAINS; c++)
			asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(v[c]));
	float sum = v[0];
#pragma unroll
	for (int c = 1; c < CHAINS; c++)
		sum += v[c];
	out[thread()] = sum;
}

static void arithmetic(int sms)
{
	const int blocks = sms * 32;
	const double ops = 2.0 * blocks * 256.0 * CHAINS * STEPS;
	void *out;
	must(cudaMalloc(&out, (size_t)blocks * 256 * 8), "memory for results");
	put("fp32_fma_gflops", ops, best_s([&] {
		multiply_add<float><<<blocks, 256>>>((float *)out, 0.999f, 0.001f);
		return cudaGetLastError() == cudaSuccess;
	}));
	put("fp64_fma_gflops", ops, best_s([&] {
		multiply_add<double><<<blocks, 256>>>((double *)out, 0.999, 0.001);
		return cudaGetLastError() == cudaSuccess;
	}));
	put("int32_mad_gops", ops, best_s([&] {
		multiply_add<int><<<blocks, 256>>>((int *)out, 3, 1);
		return cudaGetLastError() == cudaSuccess;
	}));
	put("fp16x2_fma_gflops", 2 * ops, best_s([&] {
		multiply_add_half2<<<blocks, 256>>>(
			(__half2 *)out, __float2half2_rn(0.999f), __float2half2_rn(0.001f));
		return cudaGetLastError() == cudaSuccess;
	}));
	put("exp2_gops", ops / 16, best_s([&] {
		exponentials<<<blocks, 256>>>((float *)out);
		return cudaGetLastError() == cudaSuccess;
	}));
	cudaFree(out);
}

struct product {
	const char *name;
	cudaDataType_t in, out, scale;
	cublasComputeType_t compute;
	int in_bytes, out_bytes;
};

static const struct product products[] = {
	{ "matmul_fp64_gflops", CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 8, 8 },
	{ "matmul_fp32_gflops", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 4 },
	{ "matmul_tf32_gflops", CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4,
		4 },
	{ "matmul_fp16_gflops", CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2 },
	{ "matmul_bf16_gflops", CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2 },
	{ "matmul_fp8_gflops", CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1, 2 },
	{ "matmul_int8_gops", CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, 4 },
};

/* Random numbers of a type, in (-1, 1) or near it. */
__global__ void fill_numbers(void *to, size_t n, cudaDataType_t type)
{
	for (size_t i = thread(); i < n; i += (size_t)gridDim.x * blockDim.x) {
		const unsigned h = hash(i);
		const float f = (float)(int)h * 0x1p-31f;
		if (type == CUDA_R_64F)
			((double *)to)[i] = f;
		else if (type == CUDA_R_32F)
			((float *)to)[i] = f;
		else if (type == CUDA_R_16F)
			((__half *)to)[i] = __float2half(f);
		else if (type == CUDA_R_16BF)
			((__nv_bfloat16 *)to)[i] = __float2bfloat16(f);
		else if (type == CUDA_R_8F_E4M3)
			((unsigned char *)to)[i] = h >> 8 & 0xbf; /* below 2, no NaN */
		else
			((unsigned char *)to)[i] = (unsigned char)(h >> 8);
	}
}

struct matmul {
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t best;
	void *pa, *pb, *pc, *work;
	union {
		float f;
		double d;
		int i;
	} one, zero;
};

enum { SIDE = 8192, WORK = 64 << 20 };

/* False: this library has no such product. */
static bool matmul_init(struct matmul *m, const struct product *p)
{
	const cublasOperation_t t = CUBLAS_OP_T;
	const size_t n = (size_t)SIDE * SIDE, work = WORK;
	int found = 0;
	must(cudaMalloc(&m->pa, n * p->in_bytes), "a matrix");
	must(cudaMalloc(&m->pb, n * p->in_bytes), "a matrix");
	must(cudaMalloc(&m->pc, n * p->out_bytes), "a matrix");
	must(cudaMalloc(&m->work, WORK), "work space");
	fill_numbers<<<1056, 256>>>(m->pa, n, p->in);
	fill_numbers<<<1056, 256>>>(m->pb, n, p->in);
	m->one.d = m->zero.d = 0;
	if (p->scale == CUDA_R_64F)
		m->one.d = 1;
	else if (p->scale == CUDA_R_32I)
		m->one.i = 1;
	else
		m->one.f = 1;
	return !cublasLtCreate(&m->handle) &&
	       !cublasLtMatmulDescCreate(&m->desc, p->compute, p->scale) &&
	       !cublasLtMatmulDescSetAttribute(
		       m->desc, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof(t)) &&
	       !cublasLtMatrixLayoutCreate(&m->a, p->in, SIDE, SIDE, SIDE) &&
	       !cublasLtMatrixLayoutCreate(&m->b, p->in, SIDE, SIDE, SIDE) &&
	       !cublasLtMatrixLayoutCreate(&m->c, p->out, SIDE, SIDE, SIDE) &&
	       !cublasLtMatmulPreferenceCreate(&m->preference) &&
	       !cublasLtMatmulPreferenceSetAttribute(m->preference,
		       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &work, sizeof(work)) &&
	       !cublasLtMatmulAlgoGetHeuristic(m->handle, m->desc, m->a, m->b, m->c, m->c,
		       m->preference, 1, &m->best, &found) &&
	       found;
}

static void matmul_fini(struct matmul *m)
{
	cublasLtMatmulPreferenceDestroy(m->preference);
	cublasLtMatrixLayoutDestroy(m->a);
	cublasLtMatrixLayoutDestroy(m->b);
	cublasLtMatrixLayoutDestroy(m->c);
	cublasLtMatmulDescDestroy(m->desc);
	cublasLtDestroy(m->handle);
	cudaFree(m->pa);
	cudaFree(m->pb);
	cudaFree(m->pc);
	cudaFree(m->work);
}

static void measure_product(const struct product *p)
{
	struct matmul m = {};
	if (!matmul_init(&m, p)) {
		fprintf(stderr, "ceiling: %s: cuBLASLt offers no such product\n", p->name);
		return; /* what was half made goes with the process */
	}
	put(p->name, 2.0 * SIDE * (double)SIDE * SIDE, best_s([&] {
		return cublasLtMatmul(m.handle, m.desc, &m.one, m.pa, m.a, m.pb, m.b, &m.zero, m.pc,
			       m.c, m.pc, m.c, &m.best.algo, m.work, WORK,
			       0) == CUBLAS_STATUS_SUCCESS;
	}));
	matmul_fini(&m);
}

int main(int argc, char **argv)
{
	cudaDeviceProp device;
	int driver = 0, runtime = 0;
	if (argc > 1)
		seconds = strtod(argv[1], NULL);
	must(cudaGetDeviceProperties(&device, 0), "no device");
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	printf("{\n  \"device\": \"%s\", \"sms\": %d, \"l2_bytes\": %d, \"memory_bytes\": %zu,\n"
	       "  \"driver\": %d, \"runtime\": %d",
		device.name, device.multiProcessorCount, device.l2CacheSize, device.totalGlobalMem,
		driver, runtime);
	first = false;
	memory(device.multiProcessorCount);
	arithmetic(device.multiProcessorCount);
	for (const struct product &p : products)
		measure_product(&p);
	printf("\n}\n");
	return 0;
}
