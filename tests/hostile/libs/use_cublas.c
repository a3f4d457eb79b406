/* A library linked to one copy of libcublas.so: the loader binds its calls.  Built once for each
 * copy. */
#include <stddef.h>

int cublasCreate_v2(void **ret_handle);
int cublasGemmEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *a, int type_a, int lda, const void *b, int type_b, int ldb, const void *beta,
	void *c, int type_c, int ldc, int compute, int algo);

int use_create(void **ret_handle)
{
	return cublasCreate_v2(ret_handle);
}

int use_product(void *handle, int m, int n, int k)
{
	return cublasGemmEx(handle, 1, 0, m, n, k, (void *)0x11, (void *)0x22, 2, m, (void *)0x33,
		14, k, (void *)0x44, (void *)0x55, 0, m, 68, -1);
}
