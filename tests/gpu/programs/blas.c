/*
 * Products of known sizes through cuBLAS and cuBLASLt: blas [COUNT], each made COUNT times; and
 * blas calls ROUNDS, which prints what calls cost that launch nothing, in nanoseconds each:
 *
 *	empty   cublasGemmEx of m = 0, which returns at once
 *	lt      cublasLtMatmul without an algorithm or a handle, which is refused at once
 */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void need(int code, const char *what)
{
	if (!code)
		return;
	fprintf(stderr, "%s: %d\n", what, code);
	exit(3);
}

static void *room(size_t bytes)
{
	void *address = NULL;
	need(cudaMalloc(&address, bytes), "cudaMalloc");
	need(cudaMemset(address, 0, bytes), "cudaMemset");
	return address;
}

#define LARGEST ((size_t)4096 * 4096 * 4)

static cublasHandle_t handle;
static void *a, *b, *c;
static const float one = 1, zero = 0;

static void half(int m, int n, int k)
{
	need(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &one, a, CUDA_R_16F, m, b,
		     CUDA_R_16F, n, &zero, c, CUDA_R_16F, m, CUBLAS_COMPUTE_32F,
		     CUBLAS_GEMM_DEFAULT),
		"cublasGemmEx");
}

static void single(int m, int n, int k)
{
	need(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a, m, b, k, &zero, c, m),
		"cublasSgemm");
}

static void strided(int m, int n, int k, int batch)
{
	need(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a,
		     CUDA_R_16BF, m, (long long)m * k, b, CUDA_R_16BF, k, (long long)k * n, &zero,
		     c, CUDA_R_16BF, m, (long long)m * n, batch, CUBLAS_COMPUTE_32F,
		     CUBLAS_GEMM_DEFAULT),
		"cublasGemmStridedBatchedEx");
}

struct matmul {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
};

/* A is transposed, and the result gets what `c` holds as its bias. */
static struct matmul matmul_of(int m, int n, int k)
{
	struct matmul t;
	const cublasOperation_t transposed = CUBLAS_OP_T;
	const cublasLtEpilogue_t bias = CUBLASLT_EPILOGUE_BIAS;
	need(cublasLtMatmulDescCreate(&t.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "desc");
	need(cublasLtMatmulDescSetAttribute(
		     t.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
		"transa");
	need(cublasLtMatmulDescSetAttribute(
		     t.desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias),
		"epilogue");
	need(cublasLtMatmulDescSetAttribute(
		     t.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &c, sizeof c),
		"bias");
	need(cublasLtMatrixLayoutCreate(&t.a, CUDA_R_16F, (uint64_t)k, (uint64_t)m, k), "a");
	need(cublasLtMatrixLayoutCreate(&t.b, CUDA_R_16F, (uint64_t)k, (uint64_t)n, k), "b");
	need(cublasLtMatrixLayoutCreate(&t.d, CUDA_R_16F, (uint64_t)m, (uint64_t)n, m), "d");
	return t;
}

static int matmul(const struct matmul *t, cublasLtHandle_t light)
{
	return cublasLtMatmul(light, t->desc, &one, a, t->a, b, t->b, &zero, c, t->d, c, t->d, NULL,
		NULL, 0, NULL);
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *x, const void *y)
{
	const double d = *(const double *)x - *(const double *)y;
	return (d > 0) - (d < 0);
}

#define EACH 2000

static double median(int rounds, const struct matmul *t)
{
	double *ns = calloc((size_t)rounds, sizeof *ns);
	for (int r = 0; r < rounds; r++) {
		const double begun = now_ns();
		for (int i = 0; i < EACH; i++) {
			if (t)
				matmul(t, NULL);
			else
				half(0, 16, 16);
		}
		ns[r] = (now_ns() - begun) / EACH;
	}
	qsort(ns, (size_t)rounds, sizeof *ns, ascending);
	const double middle = ns[rounds / 2];
	free(ns);
	return middle;
}

static void products(int count)
{
	const struct matmul t = matmul_of(1024, 512, 2048);
	for (int i = 0; i < count; i++) {
		half(4096, 2048, 1024);
		single(512, 256, 128);
		strided(256, 128, 64, 8);
		need(matmul(&t, (cublasLtHandle_t)handle), "cublasLtMatmul");
	}
	need(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

int main(int argc, char **argv)
{
	const int calls = argc > 2 && !strcmp(argv[1], "calls");
	const int count = argc > 1 ? atoi(argv[argc - 1]) : 10;
	need(cublasCreate(&handle), "cublasCreate");
	a = room(LARGEST);
	b = room(LARGEST);
	c = room(LARGEST);
	if (!calls) {
		products(count);
		return 0;
	}
	const struct matmul t = matmul_of(16, 16, 16);
	printf("empty %.1f\nlt %.1f\n", median(count, NULL), median(count, &t));
	return 0;
}
