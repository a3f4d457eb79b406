/*
 * The names of types, arithmetic on shapes, and whether bytes are what type and shape say.  All of
 * it is for bytes from outside, so that each product and each length is checked.
 */
#include "tensor/tensor.h"

#include <errno.h>
#include <math.h>
#include <inttypes.h>

#include "base/check.h"

#define DTYPE_ROW(name, config, bytes, onnx) [DTYPE_##name] = { #name, config, bytes, onnx },
const struct dtype_row dtype_rows[DTYPES] = { { "", "TYPE_INVALID", 0, 0 }, DTYPE_LIST(DTYPE_ROW) };

enum dtype dtype_find(struct slice v2_name)
{
	for (enum dtype t = DTYPE_NONE + 1; t < DTYPES; t++)
		if (slice_is(v2_name, dtype_rows[t].name))
			return t;
	return DTYPE_NONE;
}

enum dtype dtype_of_config(struct slice name)
{
	for (enum dtype t = DTYPE_NONE + 1; t < DTYPES; t++)
		if (slice_is(name, dtype_rows[t].config))
			return t;
	return DTYPE_NONE;
}

enum dtype dtype_of_onnx(int onnx)
{
	for (enum dtype t = DTYPE_NONE + 1; t < DTYPES; t++)
		if (dtype_rows[t].onnx == onnx)
			return t;
	return DTYPE_NONE;
}

double dtype_float(enum dtype type, const void *from)
{
	uint16_t bits;
	uint32_t wide;
	float f;
	double d;
	switch (type) {
	case DTYPE_FP64:
		memcpy(&d, from, sizeof d);
		return d;
	case DTYPE_FP32:
		memcpy(&f, from, sizeof f);
		return (double)f;
	case DTYPE_BF16: /* the upper half of a float */
		memcpy(&bits, from, sizeof bits);
		wide = (uint32_t)bits << 16;
		memcpy(&f, &wide, sizeof f);
		return (double)f;
	case DTYPE_FP16:
		break;
	default:
		return NAN;
	}
	memcpy(&bits, from, sizeof bits);
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	d = exponent == 31 ? (fraction ? NAN : INFINITY)
	    : exponent     ? ldexp(fraction + 1024, exponent - 25)
			   : ldexp(fraction, -24);
	return bits >> 15 ? -d : d;
}

int shape_elements(const struct shape *s, uint64_t *ret_elements)
{
	size_t elements = 1;
	bool none = false;
	for (unsigned i = 0; i < s->n; i++) {
		if (s->dims[i] < 0)
			return -EINVAL;
		none |= s->dims[i] == 0;
		if (s->dims[i] && !check_mul(elements, (size_t)s->dims[i], &elements))
			return -EOVERFLOW;
	}
	*ret_elements = none ? 0 : elements;
	return 0;
}

int shape_bytes(const struct shape *s, enum dtype type, uint64_t *ret_bytes)
{
	uint64_t elements;
	size_t bytes;
	const int e = shape_elements(s, &elements);
	if (e)
		return e;
	if (!check_mul(elements, dtype_rows[type].bytes, &bytes))
		return -EOVERFLOW;
	*ret_bytes = bytes;
	return 0;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
	return a->n == b->n && memcmp(a->dims, b->dims, a->n * sizeof a->dims[0]) == 0;
}

bool shape_fits(const struct shape *asked, const struct shape *model)
{
	if (asked->n != model->n)
		return false;
	for (unsigned i = 0; i < asked->n; i++)
		if (model->dims[i] != -1 && model->dims[i] != asked->dims[i])
			return false;
	return true;
}

void shape_put(struct buf *b, const struct shape *s)
{
	buf_put(b, "[", 1);
	for (unsigned i = 0; i < s->n; i++) {
		if (i)
			buf_put(b, ",", 1);
		buf_i64(b, s->dims[i]);
	}
	buf_put(b, "]", 1);
}

/* Whether so many elements, each behind its length, fill the bytes. */
static bool strings_fill(const unsigned char *data, size_t bytes, uint64_t elements)
{
	for (; elements; elements--) {
		if (bytes < 4)
			return false;
		const size_t length =
			data[0] | data[1] << 8 | data[2] << 16 | (size_t)data[3] << 24;
		if (bytes - 4 < length)
			return false;
		data += 4 + length;
		bytes -= 4 + length;
	}
	return bytes == 0;
}

int tensor_check(const struct tensor *t, struct error *err)
{
	uint64_t elements, bytes;
	if (shape_elements(&t->shape, &elements) || shape_bytes(&t->shape, t->type, &bytes))
		return error_set(err, -EINVAL,
			"the shape of '%.*s' has a negative dimension, or too many elements",
			SLICE_ARG(t->name));
	if (t->type == DTYPE_BYTES)
		return strings_fill(t->data, t->bytes, elements)
			       ? 0
			       : error_set(err, -EINVAL,
					 "the %zu bytes of '%.*s' are not %" PRIu64
					 " elements of BYTES, each behind its length of 4 bytes",
					 t->bytes, SLICE_ARG(t->name), elements);
	return t->bytes == bytes
		       ? 0
		       : error_set(err, -EINVAL,
				 "'%.*s' has %zu bytes, and its shape and type %s need %" PRIu64,
				 SLICE_ARG(t->name), t->bytes, dtype_rows[t->type].name, bytes);
}

const char *parameter_find(const struct parameter *list, unsigned n, const char *key)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(list[i].key, key) == 0)
			return list[i].value;
	return NULL;
}
