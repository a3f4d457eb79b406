/*
 * A libcublas.so that computes nothing: it says what it was given, and whether the handle is one of
 * its own, which a second copy's is not.  Built twice, as copies of different versions.
 *
 * mock_inside is called inside every product: that is where a test does its mischief.  A product
 * of m = 1000 passes itself on to cuBLASLt, as the real library does.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define CALL(name, ...)                                                                            \
	int name(__VA_ARGS__);                                                                     \
	__attribute__((visibility("default"))) int name(__VA_ARGS__)

__attribute__((visibility("default"))) void (*mock_inside)(void);
__attribute__((visibility("default"))) int mock_quiet;

enum { NOT_INITIALIZED = 1, INVALID_VALUE = 7, NESTED = 1000 };

static int copy = VERSION;

int cublasLtMatmul(void *light, void *desc, const void *alpha, const void *a, void *layout_a,
	const void *b, void *layout_b, const void *beta, const void *c, void *layout_c, void *d,
	void *layout_d, const void *algo, void *room, size_t bytes, void *stream);

/* The operands are pointers that nobody follows: their values are told. */
static int product(const char *name, const void *handle, int64_t m, int64_t n, int64_t k,
	const int64_t *rest, int count)
{
	const int before = errno;

	if (!mock_quiet) {
		printf("%d %s: %lld %lld %lld", VERSION, name, (long long)m, (long long)n,
			(long long)k);
		for (int i = 0; i < count; i++)
			printf(" %lld", (long long)rest[i]);
		printf(", errno %d\n", before);
	}
	if (mock_inside)
		mock_inside();
	errno = 40 + VERSION;
	if (handle != &copy)
		return NOT_INITIALIZED;
	if (m == NESTED)
		return cublasLtMatmul((void *)handle, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			NULL, NULL, NULL, NULL, NULL, NULL, 16, NULL);
	return m < 0 || n < 0 || k < 0 ? INVALID_VALUE : 0;
}

#define REST(...)  (const int64_t[]){ __VA_ARGS__ }, sizeof((int64_t[]){ __VA_ARGS__ }) / 8
#define P(pointer) (int64_t)(intptr_t)(pointer)

CALL(cublasCreate_v2, void **ret_handle)
{
	*ret_handle = &copy;
	return 0;
}

CALL(cublasSgemm_v2, void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
	const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc)
{
	return product("Sgemm", handle, m, n, k,
		REST(ta, tb, P(alpha), P(a), lda, P(b), ldb, P(beta), P(c), ldc));
}

CALL(cublasSgemm_v2_64, void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k,
	const float *alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
	const float *beta, float *c, int64_t ldc)
{
	return product("Sgemm_64", handle, m, n, k,
		REST(ta, tb, P(alpha), P(a), lda, P(b), ldb, P(beta), P(c), ldc));
}

CALL(cublasGemmEx, void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *a, int type_a, int lda, const void *b, int type_b, int ldb, const void *beta,
	void *c, int type_c, int ldc, int compute, int algo)
{
	return product("GemmEx", handle, m, n, k,
		REST(ta, tb, P(alpha), P(a), type_a, lda, P(b), type_b, ldb, P(beta), P(c), type_c,
			ldc, compute, algo));
}

CALL(cublasGemmStridedBatchedEx, void *handle, int ta, int tb, int m, int n, int k,
	const void *alpha, const void *a, int type_a, int lda, long long stride_a, const void *b,
	int type_b, int ldb, long long stride_b, const void *beta, void *c, int type_c, int ldc,
	long long stride_c, int batch, int compute, int algo)
{
	return product("GemmStridedBatchedEx", handle, m, n, k,
		REST(ta, tb, P(alpha), P(a), type_a, lda, stride_a, P(b), type_b, ldb, stride_b,
			P(beta), P(c), type_c, ldc, stride_c, batch, compute, algo));
}

CALL(cublasStrsm_v2, void *handle, int side, int uplo, int trans, int diag, int m, int n,
	const float *alpha, const float *a, int lda, float *b, int ldb)
{
	return product("Strsm", handle, m, n, 0,
		REST(side, uplo, trans, diag, P(alpha), P(a), lda, P(b), ldb));
}
