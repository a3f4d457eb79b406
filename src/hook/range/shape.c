/* See shape.h.  Numbers are those of library_types.h, cublas_api.h, cublasLt.h and cudnn_graph.h as
 * published with CUDA 13.0 and cuDNN 9. */
#include "hook/range/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/bounded.h"
#include "base/atomic.h"
#include "hook/range/library.h"
#include "hook/core/strings.h"

static const char *const data_types[] = { /* cudaDataType */
	[0] = "float32",
	[1] = "float64",
	[2] = "float16",
	[3] = "int8",
	[4] = "complex64",
	[5] = "complex128",
	[8] = "uint8",
	[10] = "int32",
	[12] = "uint32",
	[14] = "bfloat16",
	[20] = "int16",
	[22] = "uint16",
	[24] = "int64",
	[26] = "uint64",
	[28] = "float8_e4m3",
	[29] = "float8_e5m2",
	[31] = "float6_e2m3",
	[32] = "float6_e3m2",
	[33] = "float4_e2m1"
};

#define COMPUTE_FIRST 64
static const char *const compute_types[] = { /* cublasComputeType_t, from COMPUTE_FIRST on */
	[0] = "float16",
	[1] = "float16",
	[4] = "float32",
	[5] = "float32",
	[6] = "float64",
	[7] = "float64",
	[8] = "int32",
	[9] = "int32",
	[10] = "float32_by_float16",
	[11] = "float32_by_bfloat16",
	[13] = "float32_by_tf32",
	[14] = "float32_by_bfloat16x9",
	[15] = "float64_by_integers"
};

static const char *const tensor_types[] = { /* cudnnDataType_t */
	[0] = "float32",
	[1] = "float64",
	[2] = "float16",
	[3] = "int8",
	[4] = "int32",
	[6] = "uint8",
	[9] = "bfloat16",
	[10] = "int64",
	[12] = "float8_e4m3",
	[13] = "float8_e5m2",
	[20] = "complex64",
	[21] = "complex128"
};

#define COUNT(array) (sizeof array / sizeof *(array))
#define NAME_OF(names, i)                                                                          \
	((size_t)(int64_t)(i) < COUNT(names) ? (names)[(size_t)(int64_t)(i)] : NULL)

static const char *compute_name(int32_t type)
{
	return type < COMPUTE_FIRST ? NAME_OF(data_types, type)
				    : NAME_OF(compute_types, type - COMPUTE_FIRST);
}

static const struct {
	int32_t bit;
	const char *name;
} epilogues[] = { { 2, "relu" }, { 8, "drelu" }, { 32, "gelu" }, { 64, "dgelu" }, { 128, "aux" },
	{ 4, "bias" }, { 16, "bgrad" }, { 256, "bgrada" }, { 512, "bgradb" } };

/* More than the longest: three shapes of 8 numbers of 11 digits. */
#define SHAPE_TEXT 512

static void put_key(struct bounded *o, const char *key)
{
	bounded_put(o, o->used ? ",\"" : "{\"");
	bounded_put(o, key);
	bounded_put(o, "\":");
}

static void put_word(struct bounded *o, const char *key, const char *word)
{
	if (!word)
		return;
	put_key(o, key);
	bounded_put(o, "\"");
	bounded_put(o, word);
	bounded_put(o, "\"");
}

static void put_count(struct bounded *o, const char *key, int64_t value)
{
	put_key(o, key);
	bounded_signed(o, value);
}

static uint32_t finish(struct bounded *o, uint32_t id)
{
	bounded_put(o, "}");
	string_write(id, o->to, o->used);
	return id;
}

static void put_epilogue(struct bounded *o, int32_t epilogue)
{
	const char *between = "";
	if (epilogue <= 1) /* CUBLASLT_EPILOGUE_DEFAULT */
		return;
	put_key(o, "epilogue");
	bounded_put(o, "\"");
	for (size_t i = 0; i < COUNT(epilogues); i++) {
		if (!(epilogue & epilogues[i].bit))
			continue;
		bounded_put(o, between);
		bounded_put(o, epilogues[i].name);
		between = "_";
	}
	bounded_put(o, "\"");
}

uint32_t product_args(const struct product *p)
{
	static_assert(sizeof *p == 56, "no padding");
	char text[SHAPE_TEXT];
	struct bounded o = BOUNDED(text);
	uint32_t id;
	if (!string_claim(string_hash(p, sizeof *p, 4), &id))
		return id;
	put_count(&o, "m", p->m);
	put_count(&o, "n", p->n);
	put_count(&o, "k", p->k);
	if (p->batch != 1)
		put_count(&o, "batch", p->batch);
	put_word(&o, "type", NAME_OF(data_types, p->type));
	if (p->type_b != p->type)
		put_word(&o, "type_b", NAME_OF(data_types, p->type_b));
	if (p->type_c != p->type)
		put_word(&o, "type_c", NAME_OF(data_types, p->type_c));
	put_word(&o, "compute", compute_name(p->compute));
	put_epilogue(&o, p->epilogue);
	return finish(&o, id);
}

typedef int get_attribute(void *of, int attribute, void *to, size_t bytes, size_t *ret_bytes);

/* cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t */
enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLS = 3, LAYOUT_BATCH = 5 };
enum { MATMUL_COMPUTE = 0, MATMUL_TRANSPOSE_A = 3, MATMUL_EPILOGUE = 7 };

static int32_t ask32(get_attribute *get, void *of, int attribute, int32_t otherwise)
{
	int32_t value = 0;
	size_t bytes = 0;
	return get(of, attribute, &value, sizeof value, &bytes) ? otherwise : value;
}

/* Rows and columns. */
static bool ask_size(get_attribute *get, void *of, int attribute, int64_t *ret_value)
{
	size_t bytes = 0;
	return !get(of, attribute, ret_value, sizeof *ret_value, &bytes);
}

uint32_t matmul_args(void *desc, void *a, void *b, void *d)
{
	get_attribute *layout = (get_attribute *)load_relaxed(&library_ask[ASK_LAYOUT]);
	get_attribute *matmul = (get_attribute *)load_relaxed(&library_ask[ASK_MATMUL]);
	if (!layout || !matmul || !desc || !a || !b || !d)
		return 0;
	const int inner = ask32(matmul, desc, MATMUL_TRANSPOSE_A, 0) ? LAYOUT_ROWS : LAYOUT_COLS;
	struct product p = {
		.batch = ask32(layout, d, LAYOUT_BATCH, 1),
		.type = ask32(layout, a, LAYOUT_TYPE, UNSAID),
		.type_b = ask32(layout, b, LAYOUT_TYPE, UNSAID),
		.type_c = ask32(layout, d, LAYOUT_TYPE, UNSAID),
		.compute = ask32(matmul, desc, MATMUL_COMPUTE, UNSAID),
		.epilogue = ask32(matmul, desc, MATMUL_EPILOGUE, 0),
	};
	if (!ask_size(layout, d, LAYOUT_ROWS, &p.m) || !ask_size(layout, d, LAYOUT_COLS, &p.n) ||
		!ask_size(layout, a, inner, &p.k))
		return 0;
	return product_args(&p);
}

#define DIMS 8 /* CUDNN_DIM_MAX */

struct tensor { /* no padding: it is hashed */
	int32_t type;
	int32_t dims;
	int32_t dim[DIMS];
};

typedef int get_dims(void *of, int most, int32_t *ret_type, int32_t *, int32_t *, int32_t *);

/* A tensor tells its dimensions and then its strides, a filter its format and then those. */
static bool ask_dims(enum library_question which, void *of, struct tensor *ret)
{
	get_dims *get = (get_dims *)load_relaxed(&library_ask[which]);
	int32_t other[DIMS];
	if (!get || !of ||
		(which == ASK_FILTER ? get(of, DIMS, &ret->type, other, &ret->dims, ret->dim)
				     : get(of, DIMS, &ret->type, &ret->dims, ret->dim, other)))
		return false;
	return ret->dims > 0 && ret->dims <= DIMS;
}

static void put_dims(struct bounded *o, const char *key, const struct tensor *t)
{
	put_key(o, key);
	for (int32_t i = 0; i < t->dims; i++) {
		bounded_put(o, i ? "," : "[");
		bounded_signed(o, t->dim[i]);
	}
	bounded_put(o, "]");
}

uint32_t conv_args(void *input, void *filter, void *output)
{
	struct tensor t[3];
	char text[SHAPE_TEXT];
	struct bounded o = BOUNDED(text);
	uint32_t id;
	memset(t, 0, sizeof t);
	if (!ask_dims(ASK_TENSOR, input, &t[0]) || !ask_dims(ASK_FILTER, filter, &t[1]) ||
		!ask_dims(ASK_TENSOR, output, &t[2]))
		return 0;
	if (!string_claim(string_hash(t, sizeof t, 5), &id))
		return id;
	put_dims(&o, "input", &t[0]);
	put_dims(&o, "filter", &t[1]);
	put_dims(&o, "output", &t[2]);
	put_word(&o, "type", NAME_OF(tensor_types, t[0].type));
	return finish(&o, id);
}
