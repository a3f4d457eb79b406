/* Plans of products, and their runs. */
#include <stdlib.h>

#include "kernels/gemm_plan.h"
#include "kernels/tuned.h"

static int load_plain(struct weir_plan *p, struct weir_kernels *k, const struct product_kind *kind,
	const struct gemm_choice *c, const char **ret_from, struct error *err)
{
	struct buf program = { 0 };
	kind->program(p, c, &program);
	p->plain = (struct launch){ .block = c->block, .cluster = 1 };
	p->plain.grid = c->clusters < INT32_MAX ? (unsigned)c->clusters : INT32_MAX;
	const int e = kernel_prepare(k, c->name, &program, &p->plain, ret_from, err);
	buf_free(&program);
	return e;
}

/* Blocks stay for all their tiles, so there are no more than run at a time.  Blocks of gemm_sm80.cu
 * and gemm_few.cu have one tile. */
static int load_tiled(struct weir_plan *p, struct weir_kernels *k, const struct product_kind *kind,
	const struct gemm_choice *c, const char **ret_from, struct error *err)
{
	struct buf program = { 0 };
	unsigned at_a_time = 0;
	struct launch *l = &p->fast;
	kind->program(p, c, &program);
	*l = (struct launch){ .block = c->block, .cluster = c->cluster };
	l->shared_bytes = c->shared_bytes;
	l->ahead = c->form.buffers || c->form.few; /* those wait themselves */
	int e = kernel_prepare(k, c->name, &program, l, ret_from, err);
	e = e ? e : kernel_count_clusters(k, c->name, l, &at_a_time, err);
	if (!c->form.buffers)
		at_a_time = INT32_MAX;
	l->grid = (unsigned)(c->clusters < at_a_time ? c->clusters : at_a_time) * c->cluster;
	if (e)
		l->function = NULL;
	buf_free(&program);
	return e;
}

/* The choice that was measured to be the fastest comes first; the plain kernel stays the last. */
static void put_tuned_first(const struct weir_plan *p, const struct weir_kernels *k,
	const struct product_kind *kind, struct gemm_choice *choice, size_t plain)
{
	char name[TUNED_NAME];
	struct buf what = { 0 };
	kind->describe(p, &what);
	size_t at = tuned_get(k, buf_text(&what), name) ? 0 : plain;
	while (at < plain && strcmp(choice[at].name, name) != 0)
		at++;
	const struct gemm_choice tuned = choice[at];
	for (; at < plain && at > 0; at--)
		choice[at] = choice[at - 1];
	choice[at < plain ? 0 : plain] = tuned;
	buf_free(&what);
}

int product_load(struct weir_plan *p, struct weir_kernels *k, const struct product_kind *kind,
	struct gemm_choice *choice, size_t choices, uint32_t wanted, struct error *err)
{
	const size_t plain = choices - 1;
	const struct gemm_choice *c = &choice[plain];
	struct error refused;
	const char *from;
	put_tuned_first(p, k, kind, choice, plain);
	const struct gemm_choice *fast = &choice[wanted < plain ? wanted : plain];
	error_set(&refused, 0, "%s",
		plain ? "it was asked for" : "this device, type or shape needs the plain kernel");
	if (fast != c && !load_tiled(p, k, kind, fast, &from, &refused)) {
		plan_describe(p, fast->name, from, &p->fast, fast->predicted_ns, "");
		p->tile = *fast;
	}
	const bool needs_plain = !p->fast.function || !p->what.gemm.aligned;
	const int e = needs_plain ? load_plain(p, k, kind, c, &from, err) : 0;
	if (e)
		return e;
	if (!p->fast.function)
		plan_describe(p, c->name, from, &p->plain, c->predicted_ns, refused.text);
	plan_finish(p, k);
	return 0;
}

static void put_program(const struct weir_plan *p, const struct gemm_choice *c, struct buf *ret)
{
	gemm_program(&p->what.gemm, c, ret);
}

static void describe(const struct weir_plan *p, struct buf *ret)
{
	gemm_describe(&p->what.gemm, ret);
}

/* A kernel copies operands into the workspace before the tiled one. */
static int load_split(struct weir_plan *p, struct weir_kernels *k, struct error *err)
{
	struct buf name = { 0 }, program = { 0 };
	const char *from;
	p->workspace_bytes = gemm_split(&p->what.gemm, p->operand);
	if (!p->workspace_bytes)
		return 0;
	p->pack = (struct launch){
		.grid = 8 * k->device.sms, .block = 256, .cluster = 1, .ahead = true
	};
	gemm_split_program(&name, &program);
	const int e = kernel_prepare(k, buf_text(&name), &program, &p->pack, &from, err);
	buf_free(&name, &program);
	return e;
}

static int make_plan(struct weir_kernels *k, const struct weir_gemm *what,
	struct weir_plan **ret_plan, struct error *err)
{
	static const struct product_kind kind = { put_program, describe };
	struct gemm_choice choice[GEMM_FORMS_MOST];
	struct weir_plan *p = xcalloc(1, sizeof *p);
	struct weir_gemm *w = &p->what.gemm;
	p->kind = PLAN_GEMM;
	int e = gemm_check(what, w, err);
	if (!e)
		e = product_load(
			p, k, &kind, choice, gemm_choose(&k->device, w, choice), w->choice, err);
	if (e) {
		free(p);
		return e;
	}
	e = p->fast.function && p->tile.form.buffers ? load_split(p, k, err) : 0;
	if (e)
		weir_plan_close(p);
	else
		*ret_plan = p;
	return e;
}

int weir_gemm_plan(
	struct weir_kernels *kernels, const struct weir_gemm *what, struct weir_plan **ret_plan)
{
	if (!kernels || !what || !ret_plan)
		return kernel_argument("weir_gemm_plan() has an argument that is NULL");
	return make_plan(kernels, what, ret_plan, &kernel_error);
}

/* One matrix as the copy engine sees it: columns that are adjacent, rows that are pitch apart. */
struct matrix {
	const void *at;
	int64_t columns, rows, pitch, apart; /* apart: from one of a batch to the next, 0: shared */
};

static int map_type(uint32_t type)
{
	/* CUtensorMapDataType.  The copy engine rounds FP32 to TFLOAT32. */
	static const int types[] = { [WEIR_F32] = 7,
		[WEIR_F16] = 6,
		[WEIR_BF16] = 9,
		[WEIR_S8] = 0,
		[WEIR_E4M3] = 0,
		[WEIR_TF32] = 11,
		[WEIR_TF32X3] = 11 };
	return types[type];
}

int product_map_type(const struct weir_plan *p)
{
	return map_type(p->what.gemm.type);
}

static int encode(const struct weir_plan *p, uint32_t type, const struct matrix *m,
	unsigned box_columns, unsigned box_rows, int swizzle, struct tensor_map *ret)
{
	const uint64_t batch = (uint64_t)gemm_batch(&p->what.gemm), each = kernel_type_bytes(type);
	const uint64_t columns = (uint64_t)m->columns, rows = (uint64_t)m->rows;
	const uint64_t pitch = (uint64_t)m->pitch * each;
	/* The second dimension of a batch is the product. */
	const uint64_t sizes[] = { columns, batch > 1 ? (m->apart ? batch : 1) : rows, rows };
	const uint64_t apart = m->apart ? (uint64_t)m->apart * each : pitch;
	const uint64_t pitches[] = { batch > 1 ? apart : pitch, pitch };
	const uint32_t box[] = { box_columns, batch > 1 ? 1 : box_rows, box_rows };
	const uint32_t steps[] = { 1, 1, 1 };
	const struct weir_kernels *k = p->kernels;
	return KERNEL_CALL(k, &kernel_error, cuTensorMapEncodeTiled, ret, map_type(type),
		batch > 1 ? 3 : 2, m->at, sizes, pitches, box, steps, 0, swizzle,
		p->tile.form.few ? MAP_PROMOTE_256B : MAP_PROMOTE_128B, 0);
}

/* An operand of `rows` times k; blocks load `box` rows of it at a time. */
static int encode_operand(const struct weir_plan *p, const void *at, int64_t rows, int64_t pitch,
	int64_t apart, bool transposed, unsigned box, struct tensor_map *ret)
{
	const int64_t k = p->what.gemm.k;
	const uint32_t type = p->what.gemm.type;
	const struct matrix m = { at, transposed ? rows : k, transposed ? k : rows, pitch, apart };
	return encode(p, type, &m, 128 / kernel_type_bytes(type), transposed ? 64 : box,
		MAP_SWIZZLE_128B, ret);
}

/* In slices of 64 columns, 32 of FP32, and what is left of a tile's. */
static int encode_result(const struct weir_plan *p, const struct matrix *m,
	struct tensor_map *ret_full, struct tensor_map *ret_tail)
{
	const bool pairs = p->what.gemm.epilogue == WEIR_EPILOGUE_SWIGLU;
	const unsigned columns = pairs ? p->tile.form.bn / 2 : p->tile.form.bn;
	const uint32_t type = gemm_d_type(&p->what.gemm);
	const unsigned width = kernel_type_bytes(type) == 4 ? 32 : 64, tail = columns % width;
	const int swizzle = kernel_type_bytes(type) > 1 ? MAP_SWIZZLE_128B : MAP_SWIZZLE_64B;
	const int e = encode(p, type, m, width, 64, swizzle, ret_full);
	return e || !tail ? e : encode(p, type, m, tail, 64, 0, ret_tail);
}

int product_tile(const struct weir_plan *p, const struct weir_gemm_args *a, struct tiled_args *ret)
{
	const struct weir_gemm *w = &p->what.gemm;
	const int64_t columns = w->epilogue == WEIR_EPILOGUE_SWIGLU ? w->n / 2 : w->n;
	const struct matrix d = { a->d, columns, w->m, w->d_pitch, w->d_batch };
	const struct matrix residual = { a->residual, w->n, w->m, w->residual_pitch,
		w->residual_batch };
	*ret = (struct tiled_args){ .bias = a->bias,
		.a_scale = a->a_scale,
		.b_scale = a->b_scale,
		.m = (int)w->m,
		.n = (int)w->n,
		.k = (int)w->k,
		.group = (int)p->tile.group,
		.batch = (int)gemm_batch(w),
		.a_step = w->a_batch > 0,
		.b_step = w->b_batch > 0,
		.residual_step = w->residual_batch > 0 };
	const int e = encode_result(p, &d, &ret->d, &ret->d_tail);
	return e || !a->residual ? e
				 : encode_result(p, &residual, &ret->residual, &ret->residual_tail);
}

/* An operand's copy, and the maps of its parts. */
static int run_split(const struct weir_plan *p, const struct split_operand *o,
	struct split_args *args, char *workspace, unsigned box, struct tensor_map *ret,
	struct tensor_map *ret_low, void *stream)
{
	args->high = (float *)(workspace + o->high);
	args->low = o->low > o->high ? (float *)(workspace + o->low) : NULL;
	args->rows = o->rows;
	args->k = p->what.gemm.k;
	args->pitch = o->pitch;
	args->batch = o->batch;
	int e = kernel_launch(p->kernels, &p->pack, args, stream);
	e = e ? e : encode_operand(p, args->high, o->rows, o->pitch, o->apart, false, box, ret);
	return e ? e
		 : encode_operand(
			   p, workspace + o->low, o->rows, o->pitch, o->apart, false, box, ret_low);
}

/* A or B as the kernel reads it. */
static int put_operand(const struct weir_plan *p, bool is_b, const struct weir_gemm_args *a,
	struct tensor_map *ret, struct tensor_map *ret_low, void *stream)
{
	const struct weir_gemm *w = &p->what.gemm;
	const struct gemm_form *f = &p->tile.form;
	const unsigned box = is_b ? f->bn / f->clm : f->bm / f->cln;
	const void *at = is_b ? a->b : a->a;
	const int64_t pitch = is_b ? w->b_pitch : w->a_pitch,
		      apart = is_b ? w->b_batch : w->a_batch;
	const bool transposed = is_b ? w->b_transposed : w->a_transposed;
	struct split_args copy = { .from = at,
		.step_row = transposed ? 1 : pitch,
		.step_k = transposed ? pitch : 1,
		.apart = apart };
	if (p->operand[is_b].copied)
		return run_split(
			p, &p->operand[is_b], &copy, a->workspace, box, ret, ret_low, stream);
	return encode_operand(p, at, is_b ? w->n : w->m, pitch, apart, transposed, box, ret);
}

int product_run(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	struct tiled_args t;
	int e = product_tile(p, a, &t);
	e = e ? e : put_operand(p, false, a, &t.a, &t.a_low, stream);
	e = e ? e : put_operand(p, true, a, &t.b, &t.b_low, stream);
	return e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
}

static int run_few(const struct weir_plan *p, const struct weir_gemm_args *a, void *stream)
{
	const struct weir_gemm *w = &p->what.gemm;
	const struct gemm_form *f = &p->tile.form;
	struct few_args t = { .bias = a->bias,
		.residual = a->residual,
		.d = a->d,
		.d_row = w->d_pitch,
		.residual_row = w->residual_pitch,
		.m = (int)w->m,
		.n = (int)w->n,
		.k = (int)w->k };
	int e = encode_operand(p, a->a, w->m, w->a_pitch, 0, false, f->bn, &t.a);
	e = e ? e : encode_operand(p, a->b, w->n, w->b_pitch, 0, false, f->bm, &t.b);
	return e ? e : kernel_launch(p->kernels, &p->fast, &t, stream);
}

static int run_by_args(const struct weir_plan *p, const struct launch *l,
	const struct weir_gemm_args *a, void *stream)
{
	const struct weir_gemm *w = &p->what.gemm;
	struct gemm_args g = { .m = w->m, .n = w->n, .k = w->k, .a = a->a, .b = a->b };
	g.bias = a->bias;
	g.residual = a->residual;
	g.a_scale = a->a_scale;
	g.b_scale = a->b_scale;
	g.d = a->d;
	g.a_row = w->a_transposed ? 1 : w->a_pitch;
	g.a_k = w->a_transposed ? w->a_pitch : 1;
	g.b_row = w->b_transposed ? 1 : w->b_pitch;
	g.b_k = w->b_transposed ? w->b_pitch : 1;
	g.d_row = w->d_pitch;
	g.residual_row = w->residual_pitch;
	g.epilogue = (int)w->epilogue;
	g.batch = w->batch;
	g.a_batch = w->a_batch;
	g.b_batch = w->b_batch;
	g.d_batch = w->d_batch;
	g.residual_batch = w->residual_batch;
	return kernel_launch(p->kernels, l, &g, stream);
}

int product_check_args(const struct weir_gemm *w, const struct weir_gemm_args *a, bool rows)
{
	const bool scaled = kernel_type_bytes(w->type) == 1;
	const uintptr_t operands = (uintptr_t)a->a | (uintptr_t)a->b | (uintptr_t)a->residual;
	const uintptr_t floats = (uintptr_t)a->a_scale | (uintptr_t)a->b_scale;
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
	if (!a->a_scale != !(scaled && rows) || !a->b_scale != !scaled)
		return kernel_argument(
			"a_scale and b_scale are given for operands of 8 bits, and nowhere else. "
			"Convolutions have no a_scale");
	if (operands % kernel_type_bytes(w->type) ||
		(uintptr_t)a->d % kernel_type_bytes(gemm_d_type(w)) || floats % sizeof(float) ||
		(uintptr_t)a->bias % (scaled ? sizeof(float) : kernel_type_bytes(w->type)))
		return kernel_argument("a pointer is no multiple of an element's bytes");
	return 0;
}

bool product_is_aligned(const struct weir_gemm_args *a)
{
	return ((uintptr_t)a->a | (uintptr_t)a->b | (uintptr_t)a->d | (uintptr_t)a->bias |
		       (uintptr_t)a->residual) %
		       16 ==
	       0;
}

int weir_gemm_run(const struct weir_plan *plan, const struct weir_gemm_args *args, void *stream)
{
	if (!plan || !args || plan->kind != PLAN_GEMM)
		return kernel_argument(
			"weir_gemm_run() needs a plan of weir_gemm_plan() and arguments");
	const struct weir_gemm *w = &plan->what.gemm;
	if (!w->m || !w->n)
		return 0;
	const int e = product_check_args(w, args, true);
	if (e)
		return e;
	if (plan->workspace_bytes && (!args->workspace || (uintptr_t)args->workspace % 16))
		return kernel_argument("workspace is NULL, or no multiple of 16 bytes");
	if (!plan->fast.function || !product_is_aligned(args))
		return run_by_args(plan, &plan->plain, args, stream);
	if (plan->tile.form.few)
		return run_few(plan, args, stream);
	return plan->tile.form.buffers ? product_run(plan, args, stream)
				       : run_by_args(plan, &plan->fast, args, stream);
}
