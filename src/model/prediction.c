/* Compares predicted with measured times. */
#include "model/prediction.h"

#include <inttypes.h>

#include "base/expect.h"
#include "base/sort.h"
#include "model/samples.h"

/* One launch that was predicted and ran. */
struct pair {
	double error; /* |predicted / measured - 1| */
	double measured_ns, predicted_ns;
	uint32_t group;
	bool covered;
};

struct pairs {
	ARRAY(struct pair) v;
};

ORDERING(error_order, struct pair, ORDER(a->error, b->error))

ORDERING(measured_order, struct pair, ORDER(a->measured_ns, b->measured_ns))

ORDERING(predicted_order, struct pair, ORDER(a->predicted_ns, b->predicted_ns))

ORDERING(group_order, struct pair, ORDER(a->group, b->group))

/* Sums n pairs, which are put into another order; n > 0. */
static struct prediction_row sum(struct pair *v, size_t n)
{
	struct prediction_row row = { .count = n };
	for (size_t i = 0; i < n; i++)
		row.covered += v[i].covered;
	row.covered /= (double)n;
	expect(row.covered <= 1, "a share is of all at most");
	qsort(v, n, sizeof *v, measured_order);
	row.measured_ns = (uint64_t)v[n / 2].measured_ns;
	qsort(v, n, sizeof *v, predicted_order);
	row.predicted_ns = (uint64_t)v[n / 2].predicted_ns;
	qsort(v, n, sizeof *v, error_order);
	row.error = v[n / 2].error;
	row.error90 = v[n * 9 / 10].error;
	return row;
}

/* The surest come first. */
static uint32_t tier_of(const struct sample *s)
{
	return PREDICT_TIERS - s->prediction.tier;
}

static uint32_t kernel_of(const struct sample *s)
{
	return s->p.name;
}

/* The launches that had the device to themselves, in groups. */
static void gather(
	struct pairs *p, const struct launch_samples *all, uint32_t (*group)(const struct sample *))
{
	p->v.n = 0;
	array_each(const struct sample, s, all->v) {
		if (!s->has_prediction || s->p.launch.contended || s->end_ns == s->start_ns)
			continue;
		const double took = s->p.measured_ns, predicted = (double)s->prediction.t50_ns;
		*array_push(&p->v) = (struct pair){ .error = fabs(predicted / took - 1),
			.measured_ns = took,
			.predicted_ns = predicted,
			.group = group(s),
			.covered = took <= (double)s->prediction.t90_ns };
	}
	SORT(p->v, group_order);
}

static void sum_groups(struct pairs *p, struct prediction_rows *to,
	const char *(*name)(const struct launch_samples *, uint32_t),
	const struct launch_samples *all)
{
	for (size_t from = 0, end; from < p->v.n; from = end) {
		const uint32_t group = p->v.v[from].group;
		for (end = from; end < p->v.n && p->v.v[end].group == group;)
			end++;
		struct prediction_row *row = array_push(&to->rows);
		*row = sum(p->v.v + from, end - from);
		row->name = name(all, group);
	}
}

static const char *tier_name(const struct launch_samples *all, uint32_t group)
{
	return predict_tier_word((enum predict_tier)(PREDICT_TIERS - group));
}

static const char *kernel_name(const struct launch_samples *all, uint32_t group)
{
	return all->kernels.v[group]->name;
}

ORDERING(time_order, struct prediction_row,
	ORDER((double)b->measured_ns *(double)b->count, (double)a->measured_ns *(double)a->count),
	strcmp(a->name, b->name))

static uint64_t count_of(const struct prediction_rows *r)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < r->rows.n; i++)
		sum += r->rows.v[i].count;
	return sum;
}

static void compare(struct prediction *p, const struct launch_samples *all)
{
	struct pairs pairs = { 0 };
	gather(&pairs, all, tier_of);
	sum_groups(&pairs, &p->tiers, tier_name, all);
	if (pairs.v.n)
		p->all = sum(pairs.v.v, pairs.v.n);
	gather(&pairs, all, kernel_of);
	sum_groups(&pairs, &p->kernels, kernel_name, all);
	expect(count_of(&p->tiers) == pairs.v.n, "the rows of sources add up to all");
	expect(count_of(&p->kernels) == pairs.v.n, "the rows of kernels add up to all");
	SORT(p->kernels.rows, time_order);
	array_free(&pairs.v);
}

ORDERING(call_order, struct sample *const, ORDER((*a)->p.app, (*b)->p.app),
	ORDER((*a)->call_tid, (*b)->call_tid), ORDER((*a)->call_ticks, (*b)->call_ticks))

/* From the first kernel's start to the last one's end. */
static struct pair pair_of_graph(const struct sample *const *v, size_t n)
{
	uint64_t from = UINT64_MAX, to = 0;
	for (size_t i = 0; i < n; i++) {
		from = MIN(v[i]->start_ns, from);
		to = MAX(v[i]->end_ns, to);
	}
	const double took = to > from ? (double)(to - from) : 1;
	const double predicted = (double)v[0]->prediction.t50_ns;
	return (struct pair){ .error = fabs(predicted / took - 1),
		.measured_ns = took,
		.predicted_ns = predicted,
		.covered = took <= (double)v[0]->prediction.t90_ns };
}

static void sum_graphs(struct prediction *p, const struct launch_samples *all)
{
	ARRAY(const struct sample *) of = { 0 };
	struct pairs pairs = { 0 };
	for (size_t i = 0; i < all->v.n; i++) {
		if (all->v.v[i].graph_predicted)
			*array_push(&of) = &all->v.v[i];
	}
	SORT(of, call_order);
	for (size_t from = 0, end; from < of.n; from = end) {
		for (end = from + 1; end < of.n && !call_order(&of.v[from], &of.v[end]);)
			end++;
		struct pair *to = array_push(&pairs.v);
		*to = pair_of_graph(of.v + from, end - from);
	}
	if (pairs.v.n)
		p->graphs = sum(pairs.v.v, pairs.v.n);
	array_free(&pairs.v, &of);
}

int prediction_fill(struct report *r)
{
	struct error err;
	if (!r->predicted && !r->unpredicted)
		return 0;
	struct prediction *p = xcalloc(1, sizeof *p);
	struct launch_samples *all = xcalloc(1, sizeof *all);
	r->prediction = p;
	p->memory = all;
	p->launches = r->predicted;
	p->unpredicted = r->unpredicted;
	int e = launch_samples_load(r->trace, &r->meta, all, &err);
	for (size_t i = 0; i < all->v.n; i++) {
		p->measured += all->v.v[i].has_prediction;
		p->contended += all->v.v[i].has_prediction && all->v.v[i].p.launch.contended;
	}
	expect(p->contended <= p->measured && p->measured <= all->v.n,
		"what shared the device is part of what was measured");
	if (!e)
		compare(p, all);
	if (!e)
		sum_graphs(p, all);
	p->measured += p->graphs.count;
	return e;
}

void prediction_free(struct prediction *p)
{
	if (!p)
		return;
	array_free(&p->tiers.rows, &p->kernels.rows);
	launch_samples_fini(p->memory);
	free(p->memory);
	free(p);
}
