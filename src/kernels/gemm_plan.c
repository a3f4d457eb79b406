/* Plans of products, and their runs. */
#include <stdlib.h>

#include "kernels/gemm.cuh"
#include "kernels/plan.h"
#include "kernels/tuned.h"

#include "base/banned.h"

static int load_plain(struct weir_kernels *k, const struct weir_gemm *w,
	const struct gemm_choice *c, struct launch *ret, const char **ret_from, struct error *err)
{
	struct buf program = { 0 };
	gemm_program(w, c, &program);
	*ret = (struct launch){ .block = c->block, .cluster = 1 };
	ret->grid = c->clusters < INT32_MAX ? (unsigned)c->clusters : INT32_MAX;
	const int e = kernel_prepare(k, c->name, &program, ret, ret_from, err);
	buf_free(&program);
	return e;
}

/* Blocks stay for all their tiles, so there are no more than run at a time. */
static int load_tiled(struct weir_kernels *k, const struct weir_gemm *w,
	const struct gemm_choice *c, struct launch *ret, const char **ret_from, struct error *err)
{
	struct buf program = { 0 };
	struct cu_launch_attribute cluster = { .id = 4, .u.cluster = { c->cluster, 1, 1 } };
	const struct cu_launch_config config = { k->device.sms / c->cluster * c->cluster, 1, 1,
		c->block, 1, 1, c->shared_bytes, NULL, &cluster, 1 };
	int at_a_time = 0;
	gemm_program(w, c, &program);
	*ret = (struct launch){ .block = c->block, .cluster = c->cluster };
	ret->shared_bytes = c->shared_bytes;
	int e = kernel_prepare(k, c->name, &program, ret, ret_from, err);
	e = e ? e
	      : KERNEL_CALL(
			k, err, cuOccupancyMaxActiveClusters, &at_a_time, ret->function, &config);
	if (!e && at_a_time < 1)
		e = error_set(err, WEIR_KERNELS_ERROR_UNSUPPORTED, "%s fits on no SM", c->name);
	ret->grid =
		(unsigned)(c->clusters < (uint64_t)at_a_time ? c->clusters : (uint64_t)at_a_time) *
		c->cluster;
	if (e)
		ret->function = NULL;
	buf_free(&program);
	return e;
}

/* What was measured to be the fastest comes first; the plain kernel stays the last. */
static void put_tuned_first(const struct weir_kernels *k, const struct weir_gemm *w,
	struct gemm_choice *choice, size_t plain)
{
	char name[TUNED_NAME];
	struct buf what = { 0 };
	gemm_describe(w, &what);
	size_t at = tuned_get(k, buf_text(&what), name) ? 0 : plain;
	while (at < plain && strcmp(choice[at].name, name) != 0)
		at++;
	const struct gemm_choice tuned = choice[at];
	for (; at < plain && at > 0; at--)
		choice[at] = choice[at - 1];
	choice[at < plain ? 0 : plain] = tuned;
	buf_free(&what);
}

static int make_plan(struct weir_kernels *k, const struct weir_gemm *what,
	struct weir_plan **ret_plan, struct error *err)
{
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct error refused;
	const char *from;
	struct weir_plan *p = xcalloc(1, sizeof *p);
	struct weir_gemm *w = &p->what.gemm;
	p->kind = PLAN_GEMM;
	int e = gemm_check(what, w, err);
	if (e)
		goto free_plan;
	const size_t plain = gemm_choose(&k->device, w, choice) - 1;
	put_tuned_first(k, w, choice, plain);
	const struct gemm_choice *c = &choice[plain];
	e = load_plain(k, w, c, &p->plain, &from, err);
	if (e)
		goto free_plan;
	const struct gemm_choice *fast = &choice[w->choice];
	if (w->choice >= plain)
		plan_describe(p, c->name, from, &p->plain, c->predicted_ns,
			plain ? "it was asked for"
			      : "this device, type or pitch needs the plain kernel");
	else if (load_tiled(k, w, fast, &p->fast, &from, &refused))
		plan_describe(p, c->name, from, &p->plain, c->predicted_ns, refused.text);
	else
		plan_describe(p, fast->name, from, &p->fast, fast->predicted_ns, "");
	if (p->fast.function)
		p->tile = *fast;
	plan_finish(p, k);
	*ret_plan = p;
	return 0;
free_plan:
	free(p);
	return e;
}

int weir_gemm_plan(
	struct weir_kernels *kernels, const struct weir_gemm *what, struct weir_plan **ret_plan)
{
	if (!kernels || !what || !ret_plan)
		return kernel_argument("weir_gemm_plan() has an argument that is NULL");
	return make_plan(kernels, what, ret_plan, &kernel_error);
}

/* ---- runs ---- */

/* One matrix as the copy engine sees it: columns that are adjacent, rows that are pitch apart. */
struct matrix {
	const void *at;
	int64_t columns, rows, pitch;
};

static int encode(const struct weir_plan *p, const struct matrix *m, unsigned box_columns,
	unsigned box_rows, bool swizzle, struct tensor_map *ret)
{
	enum { FLOAT16 = 6, BFLOAT16 = 9, SWIZZLE_128B = 3, PROMOTE_256B = 3 }; /* CUtensorMap... */
	const uint64_t sizes[] = { (uint64_t)m->columns, (uint64_t)m->rows };
	const uint64_t pitches[] = { (uint64_t)m->pitch * 2 };
	const uint32_t box[] = { box_columns, box_rows }, steps[] = { 1, 1 };
	const struct weir_kernels *k = p->kernels;
	return KERNEL_CALL(k, &kernel_error, cuTensorMapEncodeTiled, ret,
		p->what.gemm.type == WEIR_F16 ? FLOAT16 : BFLOAT16, 2, m->at, sizes, pitches, box,
		steps, 0, swizzle ? SWIZZLE_128B : 0, PROMOTE_256B, 0);
}

/* An operand of `rows` times k; blocks load `box` rows of it at a time. */
static int encode_operand(const struct weir_plan *p, const void *at, int64_t rows, int64_t pitch,
	bool transposed, unsigned box, struct tensor_map *ret)
{
	const int64_t k = p->what.gemm.k;
	const struct matrix m = { at, transposed ? rows : k, transposed ? k : rows, pitch };
	return encode(p, &m, 64, transposed ? 64 : box, true, ret);
}

/* In slices of 64 columns and what is left of a tile's. */
static int encode_result(const struct weir_plan *p, const struct matrix *m,
	struct tensor_map *ret_full, struct tensor_map *ret_tail)
{
	const bool pairs = p->what.gemm.epilogue == WEIR_EPILOGUE_SWIGLU;
	const unsigned columns = pairs ? p->tile.form.bn / 2 : p->tile.form.bn;
	const int e = encode(p, m, 64, 64, true, ret_full);
	return e || columns % 64 == 0 ? e : encode(p, m, columns % 64, 64, false, ret_tail);
}

static int run_tiled(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	const struct weir_gemm *w = &p->what.gemm;
	const struct gemm_form *f = &p->tile.form;
	const int64_t columns = w->epilogue == WEIR_EPILOGUE_SWIGLU ? w->n / 2 : w->n;
	const struct matrix d = { a->d, columns, w->m, w->d_pitch };
	const struct matrix residual = { a->residual, w->n, w->m, w->residual_pitch };
	struct tiled_args t = { .bias = a->bias,
		.m = (int)w->m,
		.n = (int)w->n,
		.k = (int)w->k,
		.group = (int)p->tile.group };
	int e = encode_operand(p, a->a, w->m, w->a_pitch, w->a_transposed, f->bm / f->cln, &t.a);
	e = e ? e
	      : encode_operand(p, a->b, w->n, w->b_pitch, w->b_transposed, f->bn / f->clm, &t.b);
	e = e ? e : encode_result(p, &d, &t.d, &t.d_tail);
	if (!e && a->residual)
		e = encode_result(p, &residual, &t.residual, &t.residual_tail);
	return e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
}

static int run_plain(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	const struct weir_gemm *w = &p->what.gemm;
	struct gemm_args g = { .m = w->m, .n = w->n, .k = w->k, .a = a->a, .b = a->b };
	g.bias = a->bias;
	g.residual = a->residual;
	g.d = a->d;
	g.a_row = w->a_transposed ? 1 : w->a_pitch;
	g.a_k = w->a_transposed ? w->a_pitch : 1;
	g.b_row = w->b_transposed ? 1 : w->b_pitch;
	g.b_k = w->b_transposed ? w->b_pitch : 1;
	g.d_row = w->d_pitch;
	g.residual_row = w->residual_pitch;
	g.epilogue = (int)w->epilogue;
	return kernel_launch(p->kernels, &p->plain, &g, stream);
}

static int check_args(const struct weir_gemm *w, const struct weir_gemm_args *a)
{
	const uintptr_t all = (uintptr_t)a->a | (uintptr_t)a->b | (uintptr_t)a->d |
			      (uintptr_t)a->bias | (uintptr_t)a->residual;
	const bool has_bias =
		w->epilogue >= WEIR_EPILOGUE_BIAS && w->epilogue <= WEIR_EPILOGUE_BIAS_SILU;
	if (a->size != sizeof *a)
		return error_set(&kernel_error, WEIR_KERNELS_ERROR_SIZE,
			"struct weir_gemm_args has %zu bytes, and this library knows %zu", a->size,
			sizeof *a);
	if (!a->d || (w->k && (!a->a || !a->b)))
		return kernel_argument("a, b or d is NULL");
	if (!a->bias != !has_bias || !a->residual != (w->epilogue != WEIR_EPILOGUE_RESIDUAL))
		return kernel_argument(
			"bias and residual are given where the epilogue has them, and nowhere else");
	if (all % kernel_type_bytes(w->type))
		return kernel_argument("a pointer is no multiple of an element's bytes");
	return 0;
}

int weir_gemm_run(const struct weir_plan *plan, const struct weir_gemm_args *args, void *stream)
{
	if (!plan || !args || plan->kind != PLAN_GEMM)
		return kernel_argument(
			"weir_gemm_run() needs a plan of weir_gemm_plan() and arguments");
	const struct weir_gemm *w = &plan->what.gemm;
	if (!w->m || !w->n)
		return 0;
	const int e = check_args(w, args);
	if (e)
		return e;
	const uintptr_t all = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->d |
			      (uintptr_t)args->bias | (uintptr_t)args->residual;
	return plan->fast.function && all % 16 == 0 ? run_tiled(plan, args, stream)
						    : run_plain(plan, args, stream);
}
