/* The classification extension, as clients of Triton ask for it. */
#include "serve/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

size_t bytes_skip(const void *data, uint64_t elements)
{
	const char *p = data;
	size_t at = 0;
	for (; elements; elements--) {
		uint32_t n;
		memcpy(&n, p + at, sizeof n);
		at += sizeof n + n;
	}
	return at;
}

struct value {
	double value;
	uint64_t index;
};

#define READ(type)                                                                                 \
	{                                                                                          \
		type value;                                                                        \
		memcpy(&value, (const char *)data + i * sizeof value, sizeof value);               \
		return (double)value;                                                              \
	}

static double value_at(enum dtype type, const void *data, uint64_t i)
{
	switch (type) {
	case DTYPE_UINT8:
		READ(uint8_t)
	case DTYPE_UINT16:
		READ(uint16_t)
	case DTYPE_UINT32:
		READ(uint32_t)
	case DTYPE_UINT64:
		READ(uint64_t)
	case DTYPE_INT8:
		READ(int8_t)
	case DTYPE_INT16:
		READ(int16_t)
	case DTYPE_INT32:
		READ(int32_t)
	case DTYPE_INT64:
		READ(int64_t)
	case DTYPE_FP32:
		READ(float)
	default:
		READ(double)
	}
}

static bool has_order(enum dtype t)
{
	return t != DTYPE_BOOL && t != DTYPE_BYTES && t != DTYPE_FP16 && t != DTYPE_BF16;
}

/* The larger first, and of equal ones that with the lower index. */
static int larger(const void *a, const void *b)
{
	const struct value *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

static void put_class(struct buf *b, const struct value *v, char *const *labels, size_t nlabels)
{
	const size_t at = b->n;
	buf_put(b, "\0\0\0\0", 4);
	buf_printf(b, "%f:%llu", v->value, (unsigned long long)v->index);
	if (v->index < nlabels)
		buf_printf(b, ":%s", labels[v->index]);
	const uint32_t n = (uint32_t)(b->n - at - 4);
	memcpy(b->v + at, &n, sizeof n);
}

int classes_put(struct tensor *t, bool batched, uint32_t classes, char *const *labels,
	size_t nlabels, struct buf *memory, struct error *err)
{
	uint64_t all = 0;
	if (!has_order(t->type))
		return error_set(err, -EINVAL, "output '%.*s' can't be classified: its type is %s",
			SLICE_ARG(t->name), dtype_rows[t->type].name);
	shape_elements(&t->shape, &all);
	const uint64_t rows = batched ? (uint64_t)t->shape.dims[0] : 1;
	const uint64_t each = rows ? all / rows : 0;
	const uint64_t kept = MIN(classes, each);
	struct value *v = xmalloc((each + 1) * sizeof *v);
	for (uint64_t r = 0; r < rows; r++) {
		for (uint64_t i = 0; i < each; i++)
			v[i] = (struct value){ value_at(t->type, t->data, r * each + i), i };
		qsort(v, each, sizeof *v, larger);
		for (uint64_t i = 0; i < kept; i++)
			put_class(memory, &v[i], labels, nlabels);
	}
	free(v);
	t->type = DTYPE_BYTES;
	t->shape = batched ? (struct shape){ 2, { (int64_t)rows, (int64_t)kept } }
			   : (struct shape){ 1, { (int64_t)kept } };
	t->data = memory->v;
	t->bytes = memory->n;
	return 0;
}
