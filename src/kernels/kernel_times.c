/* Times plans on a GPU. */
#include "kernels/kernel_times.h"

#include <stdlib.h>

#include "base/shared_library.h"
#include "base/sort.h"
#include "kernels/plan.h"

#define ROTATE_BYTES (200u << 20) /* more than any L2 */
#define COPIES_MOST  64u

#define MEASURE_FUNCTIONS(X)                                                                       \
	X(cuInit, (unsigned flags))                                                                \
	X(cuDeviceGet, (int *ret, int number))                                                     \
	X(cuDevicePrimaryCtxRetain, (void **ret, int device))                                      \
	X(cuDevicePrimaryCtxRelease_v2, (int device))                                              \
	X(cuCtxSetCurrent, (void *context))                                                        \
	X(cuGetErrorName, (int code, const char **ret))                                            \
	X(cuMemAlloc_v2, (uint64_t * ret, size_t bytes))                                           \
	X(cuMemFree_v2, (uint64_t at))                                                             \
	X(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t bytes, void *stream))         \
	X(cuStreamCreate, (void **ret, unsigned flags))                                            \
	X(cuStreamDestroy_v2, (void *stream))                                                      \
	X(cuStreamSynchronize, (void *stream))                                                     \
	X(cuStreamBeginCapture_v2, (void *stream, int mode))                                       \
	X(cuStreamEndCapture, (void *stream, void **ret))                                          \
	X(cuGraphInstantiateWithFlags, (void **ret, void *graph, uint64_t flags))                  \
	X(cuGraphLaunch, (void *exec, void *stream))                                               \
	X(cuGraphExecDestroy, (void *exec))                                                        \
	X(cuGraphDestroy, (void *graph))                                                           \
	X(cuEventCreate, (void **ret, unsigned flags))                                             \
	X(cuEventDestroy_v2, (void *event))                                                        \
	X(cuEventRecord, (void *event, void *stream))                                              \
	X(cuEventElapsedTime, (float *ret_ms, void *begin, void *end))

struct measure {
	struct {
#define MEASURE_POINTER(name, parameters) int(*name) parameters;
		MEASURE_FUNCTIONS(MEASURE_POINTER)
#undef MEASURE_POINTER
	} cu;
	int device;
	void *context, *stream, *begin, *end;
};

static const struct library_symbol symbols[] = {
#define MEASURE_SYMBOL(name, parameters)                                                           \
	{ #name, offsetof(struct measure, cu) +                                                    \
			 offsetof(__typeof__(((struct measure *)NULL)->cu), name) },
	MEASURE_FUNCTIONS(MEASURE_SYMBOL)
};

#define CALL KERNEL_CALL

int measure_open(struct measure **ret, struct error *err)
{
	struct measure *m = xcalloc(1, sizeof *m);
	if (library_load("libcuda.so.1", symbols, sizeof symbols / sizeof *symbols, m)) {
		free(m);
		return error_set(err, WEIR_KERNELS_ERROR_NO_DRIVER,
			"there is no CUDA driver (libcuda.so.1)");
	}
	int e = CALL(m, err, cuInit, 0);
	e = e ? e : CALL(m, err, cuDeviceGet, &m->device, 0);
	e = e ? e : CALL(m, err, cuDevicePrimaryCtxRetain, &m->context, m->device);
	e = e ? e : CALL(m, err, cuCtxSetCurrent, m->context);
	e = e ? e : CALL(m, err, cuStreamCreate, &m->stream, 1);
	e = e ? e : CALL(m, err, cuEventCreate, &m->begin, 0);
	e = e ? e : CALL(m, err, cuEventCreate, &m->end, 0);
	if (e)
		measure_close(m);
	else
		*ret = m;
	return e;
}

void measure_close(struct measure *m)
{
	if (!m)
		return;
	if (m->end)
		m->cu.cuEventDestroy_v2(m->end);
	if (m->begin)
		m->cu.cuEventDestroy_v2(m->begin);
	if (m->stream)
		m->cu.cuStreamDestroy_v2(m->stream);
	if (m->context)
		m->cu.cuDevicePrimaryCtxRelease_v2(m->device);
	free(m);
}

/* From the first to behind the last element of a tensor of non-negative strides. */
static size_t span(int64_t rows, int64_t row, int64_t columns, int64_t column, uint32_t type)
{
	const int64_t last = (rows - 1) * row + (columns - 1) * column;
	return (((size_t)last + 1) * kernel_type_bytes(type) + 511) / 512 * 512;
}

/* The tensors of a run, one behind the other, from `at` on; the bytes of all. */
static size_t place_rows(const struct weir_rows *w, char *at, struct weir_rows_args *ret)
{
	char *next = at;
	*ret = (struct weir_rows_args){ .size = sizeof *ret, .x = next };
	next += span(w->rows, w->x_row, w->width, w->x_column, w->type);
	ret->y = next;
	next += span(w->rows, w->y_row, w->width, w->y_column, w->type);
	const size_t more = span(w->rows, w->residual_row, w->width, w->residual_column, w->type);
	const size_t few = span(1, 0, w->width, 1, w->type);
	ret->residual = w->has_residual ? next : NULL;
	next += w->has_residual ? more : 0;
	ret->sum = w->has_sum ? next : NULL;
	next += w->has_sum ? more : 0;
	ret->weight = w->has_weight ? next : NULL;
	next += w->has_weight ? few : 0;
	ret->bias = w->has_bias ? next : NULL;
	next += w->has_bias ? few : 0;
	return (size_t)(next - at);
}

/* The same of each product of a batch. */
static size_t span_batch(const struct weir_gemm *w, int64_t apart, int64_t rows, int64_t row,
	int64_t columns, uint32_t type)
{
	return (size_t)((gemm_batch(w) - 1) * apart) * kernel_type_bytes(type) +
	       span(rows, row, columns, 1, type);
}

static size_t place_gemm(const struct weir_gemm *w, char *at, struct weir_gemm_args *ret)
{
	char *next = at;
	const bool pairs = w->epilogue == WEIR_EPILOGUE_SWIGLU;
	*ret = (struct weir_gemm_args){ .size = sizeof *ret, .a = next };
	const int64_t a_rows = w->a_transposed ? w->k : w->m,
		      b_rows = w->b_transposed ? w->k : w->n;
	next += span_batch(w, w->a_batch, a_rows, w->a_pitch, w->m + w->k - a_rows, w->type);
	ret->b = next;
	next += span_batch(w, w->b_batch, b_rows, w->b_pitch, w->n + w->k - b_rows, w->type);
	ret->d = next;
	next += span_batch(
		w, w->d_batch, w->m, w->d_pitch, pairs ? w->n / 2 : w->n, gemm_d_type(w));
	if (kernel_type_bytes(w->type) == 1) {
		ret->a_scale = (const float *)next;
		next += span(1, 0, w->m, 1, WEIR_F32);
		ret->b_scale = (const float *)next;
		next += span(1, 0, w->n, 1, WEIR_F32);
	}
	if (w->epilogue >= WEIR_EPILOGUE_BIAS && w->epilogue <= WEIR_EPILOGUE_BIAS_SILU) {
		ret->bias = next;
		next += span(1, 0, w->n, 1, ret->a_scale ? WEIR_F32 : w->type);
	}
	if (w->epilogue == WEIR_EPILOGUE_RESIDUAL) {
		ret->residual = next;
		next += span_batch(w, w->residual_batch, w->m, w->residual_pitch, w->n, w->type);
	}
	return (size_t)(next - at);
}

static size_t place_conv(const struct weir_conv *w, char *at, struct weir_gemm_args *ret)
{
	const int64_t p = conv_outputs(w->h, w->r, w->stride_h, w->pad_h, w->dilation_h);
	const int64_t q = conv_outputs(w->w, w->s, w->stride_w, w->pad_w, w->dilation_w);
	char *const input = at;
	char *const filters = input + span(w->n * w->h * w->w, w->c, w->c, 1, w->type);
	char *const output =
		filters + span(w->k * w->r * w->s, w->c / w->groups, w->c / w->groups, 1, w->type);
	char *const bias = output + span(w->n * p * q, w->k, w->k, 1, conv_d_type(w));
	char *const scale = bias + span(1, 0, w->c > w->k ? w->c : w->k, 1, WEIR_F32);
	char *const residual = scale + span(1, 0, w->k, 1, WEIR_F32);
	const bool back = w->pass == WEIR_CONV_INPUT;
	*ret = (struct weir_gemm_args){ .size = sizeof *ret };
	ret->a = w->pass == WEIR_CONV_FORWARD ? input : output;
	ret->b = w->pass == WEIR_CONV_FILTERS ? input : filters;
	ret->d = w->pass == WEIR_CONV_FORWARD ? output : back ? input : filters;
	if (w->epilogue >= WEIR_EPILOGUE_BIAS && w->epilogue <= WEIR_EPILOGUE_BIAS_SILU)
		ret->bias = bias;
	if (w->type == WEIR_S8)
		ret->b_scale = (const float *)scale;
	if (w->epilogue != WEIR_EPILOGUE_RESIDUAL)
		return (size_t)(residual - at);
	ret->residual = residual;
	return (size_t)(residual - at) + (size_t)(back ? filters - input : bias - output);
}

/* The bytes of a run's tensors; with a stream it runs. */
static int run_at(const struct weir_plan *p, uint64_t at, void *stream, size_t *ret_bytes)
{
	struct weir_rows_args rows;
	struct weir_gemm_args gemm;
	if (p->kind == PLAN_ROWS) {
		*ret_bytes = place_rows(&p->what.rows, (char *)at, &rows);
		return stream ? weir_rows_run(p, &rows, stream) : 0;
	}
	if (p->kind == PLAN_CONV) {
		*ret_bytes = place_conv(&p->what.conv, (char *)at, &gemm);
		gemm.workspace = (char *)at + *ret_bytes;
		*ret_bytes += (p->workspace_bytes + 511) / 512 * 512;
		return stream ? weir_conv_run(p, &gemm, stream) : 0;
	}
	*ret_bytes = place_gemm(&p->what.gemm, (char *)at, &gemm);
	gemm.workspace = (char *)at + *ret_bytes;
	*ret_bytes += (p->workspace_bytes + 511) / 512 * 512;
	return stream ? weir_gemm_run(p, &gemm, stream) : 0;
}

static int capture(struct measure *m, const struct weir_plan *p, uint64_t at, unsigned copies,
	void **ret_exec, struct error *err)
{
	void *graph = NULL;
	size_t bytes;
	int e = CALL(m, err, cuStreamBeginCapture_v2, m->stream, 0), wrong = 0;
	if (e)
		return e;
	run_at(p, at, NULL, &bytes);
	for (unsigned i = 0; i < copies && !wrong; i++)
		wrong = run_at(p, at + i * bytes, m->stream, &bytes);
	if (wrong)
		error_set(err, wrong, "%s", weir_kernels_error());
	e = CALL(m, wrong ? NULL : err, cuStreamEndCapture, m->stream, &graph);
	e = wrong ? wrong : e;
	e = e ? e : CALL(m, err, cuGraphInstantiateWithFlags, ret_exec, graph, 0);
	if (graph)
		m->cu.cuGraphDestroy(graph);
	return e;
}

static int time_graph(struct measure *m, void *exec, double *ret_ns, struct error *err)
{
	float ms;
	int e = CALL(m, err, cuEventRecord, m->begin, m->stream);
	e = e ? e : CALL(m, err, cuGraphLaunch, exec, m->stream);
	e = e ? e : CALL(m, err, cuEventRecord, m->end, m->stream);
	e = e ? e : CALL(m, err, cuStreamSynchronize, m->stream);
	e = e ? e : CALL(m, err, cuEventElapsedTime, &ms, m->begin, m->end);
	if (!e)
		*ret_ns = ms * 1e6;
	return e;
}

static int time_all(struct measure *m, void *const *exec, size_t n, unsigned copies, double *ret_ns,
	struct error *err)
{
	double ns[MEASURE_PLANS][MEASURE_ROUNDS + 1];
	int e = 0;
	for (unsigned round = 0; round <= MEASURE_ROUNDS; round++) /* the first warms up */
		for (size_t i = 0; i < n && !e; i++) {
			const size_t at = round % 2 ? i : n - 1 - i;
			e = time_graph(m, exec[at], &ns[at][round], err);
		}
	for (size_t i = 0; i < n && !e; i++) {
		qsort(ns[i] + 1, MEASURE_ROUNDS, sizeof ns[i][0], order_real);
		ret_ns[i] = ns[i][1 + MEASURE_ROUNDS / 2] / copies;
	}
	return e;
}

int measure_plans(struct measure *m, struct weir_plan *const *plans, size_t n, double *ret_ns,
	struct error *err)
{
	void *exec[MEASURE_PLANS] = { 0 };
	uint64_t at = 0;
	size_t bytes;
	run_at(plans[0], 0, NULL, &bytes);
	const size_t wanted = ROTATE_BYTES / (bytes + 1) + 1;
	const unsigned copies = wanted < 2             ? 2
				: wanted < COPIES_MOST ? (unsigned)wanted
						       : COPIES_MOST;
	int e = CALL(m, err, cuMemAlloc_v2, &at, copies * bytes);
	e = e ? e : CALL(m, err, cuMemsetD8Async, at, 0x3c, copies * bytes, m->stream);
	for (size_t i = 0; i < n && !e; i++)
		e = capture(m, plans[i], at, copies, &exec[i], err);
	e = e ? e : time_all(m, exec, n, copies, ret_ns, err);
	for (size_t i = 0; i < n; i++)
		if (exec[i])
			m->cu.cuGraphExecDestroy(exec[i]);
	if (at)
		m->cu.cuMemFree_v2(at);
	return e;
}
