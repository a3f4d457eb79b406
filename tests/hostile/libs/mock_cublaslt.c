/* A libcublasLt.so that computes nothing.  Its descriptors are what the programs here make of
 * them: struct mock_layout and struct mock_matmul. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mock_cublaslt.h"

#define CALL(name, ...)                                                                            \
	int name(__VA_ARGS__);                                                                     \
	__attribute__((visibility("default"))) int name(__VA_ARGS__)

enum { INVALID_VALUE = 7 };

static int light;

CALL(cublasLtCreate, void **ret_handle)
{
	*ret_handle = &light;
	return 0;
}

static int answer(void *to, size_t room, size_t *ret_bytes, const void *from, size_t bytes)
{
	if (room < bytes)
		return INVALID_VALUE;
	memcpy(to, from, bytes);
	*ret_bytes = bytes;
	return 0;
}

CALL(cublasLtMatrixLayoutGetAttribute, const struct mock_layout *l, int attribute, void *to,
	size_t room, size_t *ret_bytes)
{
	if (!l)
		return INVALID_VALUE;
	switch (attribute) {
	case 0:
		return answer(to, room, ret_bytes, &l->type, 4);
	case 2:
		return answer(to, room, ret_bytes, &l->rows, 8);
	case 3:
		return answer(to, room, ret_bytes, &l->cols, 8);
	case 5:
		return answer(to, room, ret_bytes, &l->batch, 4);
	default:
		return INVALID_VALUE;
	}
}

CALL(cublasLtMatmulDescGetAttribute, const struct mock_matmul *d, int attribute, void *to,
	size_t room, size_t *ret_bytes)
{
	if (!d)
		return INVALID_VALUE;
	switch (attribute) {
	case 0:
		return answer(to, room, ret_bytes, &d->compute, 4);
	case 3:
		return answer(to, room, ret_bytes, &d->transpose_a, 4);
	case 7:
		return answer(to, room, ret_bytes, &d->epilogue, 4);
	default:
		return INVALID_VALUE;
	}
}

CALL(cublasLtMatmul, void *handle, const struct mock_matmul *desc, const void *alpha, const void *a,
	const struct mock_layout *layout_a, const void *b, const struct mock_layout *layout_b,
	const void *beta, const void *c, const struct mock_layout *layout_c, void *d,
	const struct mock_layout *layout_d, const void *algo, void *room, size_t bytes,
	void *stream)
{
	printf("Lt: %p %p %p %p %zu %p\n", alpha, a, b, d, bytes, stream);
	return desc && layout_a && layout_b && layout_d ? 0 : INVALID_VALUE;
}
