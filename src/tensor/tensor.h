/*
 * A model's inputs and outputs: types of elements, shapes, tensors.  The protocol of models (V2),
 * config files and engines name the types differently; DTYPE_LIST has all names once.
 *
 * Values are row-major and little-endian.  An element of BYTES is its length (a little-endian u32)
 * and so many bytes, as the binary extension of V2 has it.  Pure, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* The name in V2, in config.pbtxt, bytes of an element (0: they vary), the number in ONNX.  The
 * order is that of the enum DataType of config.pbtxt. */
#define DTYPE_LIST(X)                                                                              \
	X(BOOL, "TYPE_BOOL", 1, 9)                                                                 \
	X(UINT8, "TYPE_UINT8", 1, 2)                                                               \
	X(UINT16, "TYPE_UINT16", 2, 4)                                                             \
	X(UINT32, "TYPE_UINT32", 4, 12)                                                            \
	X(UINT64, "TYPE_UINT64", 8, 13)                                                            \
	X(INT8, "TYPE_INT8", 1, 3)                                                                 \
	X(INT16, "TYPE_INT16", 2, 5)                                                               \
	X(INT32, "TYPE_INT32", 4, 6)                                                               \
	X(INT64, "TYPE_INT64", 8, 7)                                                               \
	X(FP16, "TYPE_FP16", 2, 10)                                                                \
	X(FP32, "TYPE_FP32", 4, 1)                                                                 \
	X(FP64, "TYPE_FP64", 8, 11)                                                                \
	X(BYTES, "TYPE_STRING", 0, 8)                                                              \
	X(BF16, "TYPE_BF16", 2, 16)

#define DTYPE_ENUM(name, config, bytes, onnx) DTYPE_##name,
enum dtype { DTYPE_NONE, DTYPE_LIST(DTYPE_ENUM) DTYPES };
#undef DTYPE_ENUM

struct dtype_row {
	const char *name;   /* V2: "FP32" */
	const char *config; /* config.pbtxt: "TYPE_FP32" */
	unsigned bytes;     /* of an element; 0 for BYTES */
	int onnx;
};
extern const struct dtype_row dtype_rows[DTYPES];

/* DTYPE_NONE: there is no such type. */
enum dtype dtype_find(struct slice v2_name);
enum dtype dtype_of_config(struct slice name);
enum dtype dtype_of_onnx(int onnx);
/* The element of a floating type at `from`; NAN for all other types. */
double dtype_float(enum dtype type, const void *from);

#define SHAPE_DIMS 8
struct shape {
	unsigned n;
	int64_t dims[SHAPE_DIMS]; /* -1 in what a model says of itself: any size */
};

/* How many elements: -EINVAL for a negative dimension, -EOVERFLOW. */
int shape_elements(const struct shape *s, uint64_t *ret_elements);
/* The same in bytes; not for BYTES. */
int shape_bytes(const struct shape *s, enum dtype type, uint64_t *ret_bytes);
bool shape_equal(const struct shape *a, const struct shape *b);
/* As many dimensions, and each the model's, or any where that says -1. */
bool shape_fits(const struct shape *asked, const struct shape *model);
void shape_put(struct buf *b, const struct shape *s); /* [1,3,-1] */

#define TENSOR_NAME 256
/* An input or output of a model, with the batch dimension (-1) where it has one. */
struct tensor_spec {
	char *name;
	enum dtype type;
	struct shape shape;
	bool optional;
};

/* A parameter of a model. */
struct parameter {
	const char *key, *value;
};
/* The value of one of n, or NULL. */
const char *parameter_find(const struct parameter *list, unsigned n, const char *key);

struct tensor {
	struct slice name;
	enum dtype type;
	struct shape shape;
	const void *data;
	size_t bytes;
};

/* Checks that the bytes are as many as type and shape say, each element of BYTES included: -EINVAL
 * and a sentence that names the tensor. */
int tensor_check(const struct tensor *t, struct error *err);
