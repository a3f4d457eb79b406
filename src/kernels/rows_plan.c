/* Plans of softmax and norms, and their runs. */
#include <stdlib.h>

#include "kernels/plan.h"
#include "kernels/rows.cuh"
#include "kernels/tuned.h"

static int load_choice(struct weir_kernels *k, const struct weir_rows *w,
	const struct rows_choice *c, struct launch *ret, const char **ret_from, struct error *err)
{
	struct buf program = { 0 };
	unsigned at_a_time;
	rows_program(w, c, &program);
	*ret = (struct launch){ .grid = c->grid,
		.block = c->block,
		.cluster = c->cluster,
		.shared_bytes = c->shared_bytes,
		.ahead = c->form.vectors && k->device.cc >= 90 };
	int e = kernel_prepare(k, c->name, &program, ret, ret_from, err);
	if (!e && c->form.stages) { /* no more blocks than run at a time, since they stay */
		e = kernel_count_clusters(k, c->name, ret, &at_a_time, err);
		if (!e && ret->grid > at_a_time * c->cluster)
			ret->grid = at_a_time * c->cluster;
	}
	if (e)
		ret->function = NULL;
	buf_free(&program);
	return e;
}

/* The choice that was measured to be the fastest comes first; the plain kernel stays the last. */
static void put_tuned_first(const struct weir_kernels *k, const struct weir_rows *w,
	struct rows_choice *choice, size_t plain)
{
	char name[TUNED_NAME];
	struct buf what = { 0 };
	rows_describe(w, &what);
	size_t at = tuned_get(k, buf_text(&what), name) ? 0 : plain;
	while (at < plain && strcmp(choice[at].name, name) != 0)
		at++;
	const struct rows_choice tuned = choice[at];
	for (; at < plain && at > 0; at--)
		choice[at] = choice[at - 1];
	choice[at < plain ? 0 : plain] = tuned;
	buf_free(&what);
}

static int make_plan(struct weir_kernels *k, const struct weir_rows *what,
	struct weir_plan **ret_plan, struct error *err)
{
	struct rows_choice choice[ROWS_FORMS_MOST];
	struct error refused;
	const char *from;
	struct weir_plan *p = xcalloc(1, sizeof *p);
	struct weir_rows *w = &p->what.rows;
	p->kind = PLAN_ROWS;
	int e = rows_check(what, w, err);
	if (e)
		goto free_plan;
	const size_t plain = rows_choose(&k->device, w, choice) - 1;
	put_tuned_first(k, w, choice, plain);
	const struct rows_choice *c = &choice[plain];
	const struct rows_choice *fast = &choice[w->choice < plain ? w->choice : plain];
	error_set(&refused, 0, "%s",
		plain ? "it was asked for" : "these strides and this width need the plain kernel");
	if (fast != c && !load_choice(k, w, fast, &p->fast, &from, &refused))
		plan_describe(p, fast->name, from, &p->fast, fast->predicted_ns, "");
	if (!p->fast.function || !w->aligned)
		e = load_choice(k, w, c, &p->plain, &from, err);
	if (e)
		goto free_plan;
	if (!p->fast.function)
		plan_describe(p, c->name, from, &p->plain, c->predicted_ns, refused.text);
	plan_finish(p, k);
	*ret_plan = p;
	return 0;
free_plan:
	free(p);
	return e;
}

int weir_rows_plan(
	struct weir_kernels *kernels, const struct weir_rows *what, struct weir_plan **ret_plan)
{
	if (!kernels || !what || !ret_plan)
		return kernel_argument("weir_rows_plan() has an argument that is NULL");
	return make_plan(kernels, what, ret_plan, &kernel_error);
}

static int check_args(const struct weir_rows *w, const struct weir_rows_args *a)
{
	const uintptr_t all = (uintptr_t)a->x | (uintptr_t)a->y | (uintptr_t)a->residual |
			      (uintptr_t)a->sum | (uintptr_t)a->weight | (uintptr_t)a->bias;
	if (a->size != sizeof *a)
		return error_set(&kernel_error, WEIR_KERNELS_ERROR_SIZE,
			"struct weir_rows_args has %zu bytes, and this library knows %zu", a->size,
			sizeof *a);
	if (!a->x || !a->y)
		return kernel_argument("x or y is NULL");
	if (!a->residual != !w->has_residual || !a->sum != !w->has_sum ||
		!a->weight != !w->has_weight || !a->bias != !w->has_bias)
		return kernel_argument(
			"residual, sum, weight and bias are given where the plan has them, and "
			"nowhere else");
	if (all % kernel_type_bytes(w->type))
		return kernel_argument("a pointer is no multiple of an element's bytes");
	return 0;
}

static bool is_vector_aligned(const struct weir_rows_args *a)
{
	return !(((uintptr_t)a->x | (uintptr_t)a->y | (uintptr_t)a->residual | (uintptr_t)a->sum |
			 (uintptr_t)a->weight | (uintptr_t)a->bias) %
		 16);
}

int weir_rows_run(const struct weir_plan *plan, const struct weir_rows_args *args, void *stream)
{
	if (!plan || !args || plan->kind != PLAN_ROWS)
		return kernel_argument(
			"weir_rows_run() needs a plan of weir_rows_plan() and arguments");
	const struct weir_rows *w = &plan->what.rows;
	if (!w->rows || !w->width)
		return 0;
	const int e = check_args(w, args);
	if (e)
		return e;
	struct rows_args a = { .x = { (void *)args->x, w->x_row, w->x_column },
		.y = { args->y, w->y_row, w->y_column },
		.residual = { (void *)args->residual, w->residual_row, w->residual_column },
		.sum = { args->sum, w->residual_row, w->residual_column },
		.weight = args->weight,
		.bias = args->bias,
		.rows = w->rows,
		.width = w->width,
		.epsilon = w->epsilon };
	const bool fast = plan->fast.function && is_vector_aligned(args);
	return kernel_launch(plan->kernels, fast ? &plan->fast : &plan->plain, &a, stream);
}
