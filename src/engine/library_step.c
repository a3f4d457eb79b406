/* Steps of a model of kernels that name a kernel of libweirkernels. */
#include "engine/kernel_list.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "gpu/cuda_device.h"
#include "kernels/gemm_plan.h"

/* In the order of struct library_step's places. */
enum { A, B, D, BIAS, RESIDUAL, A_SCALE, B_SCALE };
enum { X, Y, ROW_RESIDUAL, SUM, WEIGHT, ROW_BIAS };
static const char *const product_tensors[LIBRARY_TENSORS] = { "a", "b", "d", "bias", "residual",
	"a_scale", "b_scale" };
static const char *const row_tensors[LIBRARY_TENSORS] = { "x", "y", "residual", "sum", "weight",
	"bias", NULL };

static int word_error(const char *key, const char *word, struct error *err)
{
	return error_set(
		err, -EINVAL, "%s '%s' is unknown: `weir kernels` takes the same words", key, word);
}

static int refused(int e, struct error *err)
{
	return e ? error_set(err, e == WEIR_KERNELS_ERROR_DRIVER ? -EIO : -EINVAL, "%s",
			   weir_kernels_error())
		 : 0;
}

static const char *find_operation(const json_t *step)
{
	const char *name;
	uint32_t operation;
	json_t *value;
	json_object_foreach(
		(json_t *)step, name, value) if (strcmp(name, "gemm") == 0 ||
						 rows_find_operation(name, &operation)) return name;
	return NULL;
}

bool library_step_is(const json_t *step)
{
	return json_is_object(step) && find_operation(step);
}

/* Takes the tensors out of a copy of the step, so that what is left is all else. */
static int read_tensors(const struct kernels *k, json_t *rest, const char *const *names,
	struct library_step *s, struct error *err)
{
	for (unsigned i = 0; i < LIBRARY_TENSORS; i++) {
		const json_t *name = names[i] ? json_object_get(rest, names[i]) : NULL;
		s->place[i] = LIBRARY_NONE;
		if (name && (!json_is_string(name) ||
				    kernel_list_find(k, json_string_value(name), &s->place[i])))
			return error_set(
				err, -EINVAL, "%s names no buffer of this model", names[i]);
		if (!name && i < (s->is_product ? 3 : 2))
			return error_set(err, -EINVAL, "%s is missing", names[i]);
		if (name)
			json_object_del(rest, names[i]);
	}
	return 0;
}

static struct weir_gemm_args product_args(
	const struct library_step *s, const uint64_t at[LIBRARY_TENSORS])
{
	void *v[LIBRARY_TENSORS];
	for (unsigned i = 0; i < LIBRARY_TENSORS; i++)
		v[i] = s->place[i] == LIBRARY_NONE ? NULL : (void *)(uintptr_t)at[i];
	return (struct weir_gemm_args){ .size = sizeof(struct weir_gemm_args),
		.a = v[A],
		.b = v[B],
		.d = v[D],
		.bias = v[BIAS],
		.residual = v[RESIDUAL],
		.a_scale = v[A_SCALE],
		.b_scale = v[B_SCALE] };
}

static int read_product(json_t *rest, struct library_step *s, struct error *err)
{
	const char *type = "bf16", *d_type = NULL, *epilogue = "none";
	json_t *m;
	json_int_t n, k;
	json_error_t why;
	struct weir_gemm *g = &s->gemm;
	*g = (struct weir_gemm){ .size = sizeof *g, .aligned = 1 };
	if (json_unpack_ex(rest, &why, 0, "{s?s, s?s, s?s, s:o, s:I, s:I !}", "type", &type,
		    "d_type", &d_type, "epilogue", &epilogue, "m", &m, "n", &n, "k", &k))
		return error_set(err, -EINVAL, "%s", why.text);
	/* Steps have no workspace, in which TF32X3 would be split. */
	if (!kernel_find_type(type, &g->type) || g->type == WEIR_TF32X3)
		return word_error("type", type, err);
	if (d_type && !kernel_find_type(d_type, &g->d_type))
		return word_error("d_type", d_type, err);
	if (!gemm_find_epilogue(epilogue, &g->epilogue))
		return word_error("epilogue", epilogue, err);
	if (amount_read(m, &s->rows))
		return error_set(err, -EINVAL, "m is no amount");
	g->n = n;
	g->k = k;
	struct weir_gemm filled = *g;
	filled.m = 1;
	int e = gemm_check(&filled, &filled, &kernel_error);
	/* Any addresses: which tensors there are is what counts. */
	const uint64_t at[LIBRARY_TENSORS] = { 16, 16, 16, 16, 16, 16, 16 };
	const struct weir_gemm_args args = product_args(s, at);
	e = e ? e : product_check_args(&filled, &args, true);
	return refused(e, err);
}

static int read_rows(json_t *rest, uint32_t operation, struct library_step *s, struct error *err)
{
	const char *type = "bf16";
	json_t *rows;
	json_int_t width;
	double epsilon = 1e-5;
	json_error_t why;
	struct weir_rows *w = &s->row;
	*w = (struct weir_rows){ .size = sizeof *w, .operation = operation, .aligned = 1 };
	if (json_unpack_ex(rest, &why, 0, "{s?s, s:o, s:I, s?F !}", "type", &type, "rows", &rows,
		    "width", &width, "epsilon", &epsilon))
		return error_set(err, -EINVAL, "%s", why.text);
	if (!kernel_find_type(type, &w->type))
		return word_error("type", type, err);
	if (amount_read(rows, &s->rows))
		return error_set(err, -EINVAL, "rows is no amount");
	w->width = width;
	w->epsilon = operation >= WEIR_LAYER_NORM ? (float)epsilon : 0;
	w->has_residual = s->place[ROW_RESIDUAL] != LIBRARY_NONE;
	w->has_sum = s->place[SUM] != LIBRARY_NONE;
	w->has_weight = s->place[WEIGHT] != LIBRARY_NONE;
	w->has_bias = s->place[ROW_BIAS] != LIBRARY_NONE;
	struct weir_rows filled = *w;
	filled.rows = INT32_MAX; /* the most that a plan has, for which bytes are counted */
	return refused(rows_check(&filled, &filled, &kernel_error), err);
}

int library_step_read(
	const struct kernels *k, const json_t *step, struct library_step *ret, struct error *err)
{
	uint32_t operation = 0;
	const char *name = find_operation(step);
	json_t *rest = json_copy(json_object_get(step, name)); /* or NULL */
	ret->is_product = !rows_find_operation(name, &operation);
	int e = 0;
	if (json_object_size(step) != 1 || !json_is_object(rest))
		e = error_set(err, -EINVAL, "it is not alone, or no object");
	e = e ? e
	      : read_tensors(k, rest, ret->is_product ? product_tensors : row_tensors, ret, err);
	if (!e)
		e = ret->is_product ? read_product(rest, ret, err)
				    : read_rows(rest, operation, ret, err);
	json_decref(rest);
	return e;
}

int library_open(const char *driver, struct weir_kernels **ret, struct error *err)
{
	return refused(kernels_open(NULL, driver ? driver : GPU_LIBRARY, ret, &kernel_error), err);
}

/* The bytes of each place that a step reads and writes. */
static void count_bytes(const struct library_step *s, int64_t rows, uint64_t ret[LIBRARY_TENSORS])
{
	const struct weir_gemm *g = &s->gemm;
	const struct weir_rows *w = &s->row;
	const int64_t pairs = g->epilogue == WEIR_EPILOGUE_SWIGLU ? 2 : 1;
	const int64_t each = s->is_product ? kernel_type_bytes(g->type) : 0, of_float = 4;
	const int64_t product[] = { [A] = rows * g->k * each,
		[B] = g->n * g->k * each,
		[D] = rows * (g->n / pairs) *
		      (s->is_product ? kernel_type_bytes(gemm_d_type(g)) : 0),
		[BIAS] = g->n * (each == 1 ? of_float : each),
		[RESIDUAL] = rows * g->n * each,
		[A_SCALE] = rows * of_float,
		[B_SCALE] = g->n * of_float };
	for (unsigned i = 0; i < LIBRARY_TENSORS; i++)
		ret[i] = (uint64_t)(s->is_product ? product[i]
						  : (i < WEIGHT ? rows : 1) * w->width *
							    kernel_type_bytes(w->type));
}

int library_step_plan(const struct library_step *s, struct weir_kernels *library, uint32_t rows,
	const uint64_t bytes[LIBRARY_TENSORS], struct weir_plan **ret, struct error *err)
{
	const char *const *names = s->is_product ? product_tensors : row_tensors;
	const uint64_t m = amount(&s->rows, rows);
	uint64_t needs[LIBRARY_TENSORS];
	if (m > INT32_MAX)
		return error_set(err, -EINVAL, "a step has %" PRIu64 " rows", m);
	count_bytes(s, (int64_t)m, needs);
	for (unsigned i = 0; i < LIBRARY_TENSORS; i++)
		if (s->place[i] != LIBRARY_NONE && bytes[i] < needs[i])
			return error_set(err, -EINVAL,
				"%s needs %" PRIu64 " bytes, and its buffer has %" PRIu64, names[i],
				needs[i], bytes[i]);
	struct weir_gemm gemm = s->gemm;
	struct weir_rows row = s->row;
	gemm.m = row.rows = (int64_t)m;
	return refused(s->is_product ? weir_gemm_plan(library, &gemm, ret)
				     : weir_rows_plan(library, &row, ret),
		err);
}

int library_step_run(const struct library_step *s, const struct weir_plan *p,
	const uint64_t at[LIBRARY_TENSORS], void *stream, struct error *err)
{
	void *v[LIBRARY_TENSORS];
	for (unsigned i = 0; i < LIBRARY_TENSORS; i++)
		v[i] = s->place[i] == LIBRARY_NONE ? NULL : (void *)(uintptr_t)at[i];
	const struct weir_gemm_args gemm = product_args(s, at);
	const struct weir_rows_args row = { .size = sizeof row,
		.x = v[X],
		.y = v[Y],
		.residual = v[ROW_RESIDUAL],
		.sum = v[SUM],
		.weight = v[WEIGHT],
		.bias = v[ROW_BIAS] };
	return refused(
		s->is_product ? weir_gemm_run(p, &gemm, stream) : weir_rows_run(p, &row, stream),
		err);
}
