/*
 * FLOPs and bytes of samples, from the innermost operator with a known cost around the call. The
 * operator's longest kernel that does not only help has all of them (predict_product_of()), and
 * others have none. An operator has none either if one inside makes its product.
 */
#include "model/samples_cost.h"

#include "base/expect.h"

#include "model/cost.h"
#include "join/nested.h"
#include "trace/activity.h"

/* An operator of known cost. */
struct span {
	struct nested at;
	uint32_t cost; /* into costs */
	struct sample *longest;
};

struct coster {
	const struct trace *t;
	const struct meta *m;
	struct chunk_buf buf;
	ARRAY(struct span) spans;
	struct cost_table costs;
};

static const char *text_of(const struct coster *c, uint32_t string)
{
	const uint32_t name = meta_find_string(c->m, c->buf.ref->process, string);
	return name == META_NONE ? NULL : c->m->names.v[name].text;
}

static int take_ranges(struct coster *c)
{
	struct cursor at = { .t = c->t, .buf = &c->buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0) {
		uint32_t cost;
		if (g.kind != RANGE_OPERATOR || !g.args)
			continue;
		cost_table_find(&c->costs, text_of(c, g.name), text_of(c, g.args), &cost);
		if (cost == COST_NONE)
			continue;
		*array_push(&c->spans) =
			(struct span){ .at = nested_of(&g, c->buf.ref->process), .cost = cost };
	}
	return e;
}

static struct span *span_around(struct coster *c, const struct sample *s, size_t *hint)
{
	const uint32_t at = NESTED_AT(c->spans, s->p.app, s->call_tid, s->call_ticks, hint);
	return at == NESTED_NONE ? NULL : &c->spans.v[at];
}

static void claim(struct coster *c, struct sample *s, const char *kernel, size_t *hint)
{
	struct span *span = s->has_call ? span_around(c, s, hint) : NULL;
	if (span && c->costs.v.v[span->cost].matrix && predict_product_of(kernel).helps)
		return;
	if (span && (!span->longest || s->p.measured_ns > span->longest->p.measured_ns))
		span->longest = s;
}

/* An operator that has one inside for its product has no kernel of its own that would do it. */
static void leave_to_inner(struct coster *c, const struct span *s)
{
	const struct cost *cost = &c->costs.v.v[s->cost];
	for (uint32_t up = s->at.parent; s->longest && cost->matrix && up != NESTED_NONE;) {
		expect(up < c->spans.n, "a range around is one of all");
		struct span *p = &c->spans.v[up];
		up = p->at.parent;
		if (c->costs.v.v[p->cost].flops <= 2 * cost->flops)
			p->longest = NULL;
	}
}

/* FLOPs count only where it is known what would do them. */
static void fill(const struct coster *c, const struct span *span, const struct launch_samples *all)
{
	expect(span->cost < c->costs.v.n, "the cost of an operator is known");
	struct cost cost = c->costs.v.v[span->cost];
	struct predict_launch *l = &span->longest->p.launch;
	expect(span->longest->p.name < all->kernels.n, "the kernel of a sample is known");
	const struct predict_product by =
		predict_product_of(all->kernels.v[span->longest->p.name]->name);
	if (cost.matrix)
		cost_set_unit(&cost, &by);
	l->has_bytes = cost.has_bytes;
	l->bytes = cost.bytes;
	l->has_flops = cost.has_flops && cost.has_unit;
	if (!l->has_flops)
		return;
	l->flops = cost.flops;
	l->unit = cost.unit;
}

int samples_cost(const struct trace *t, const struct meta *m, struct launch_samples *all)
{
	struct coster c = { .t = t, .m = m };
	const int e = take_ranges(&c);
	if (!e) {
		size_t hint = 0;
		NESTED(c.spans);
		for (size_t i = 0; i < all->v.n; i++)
			claim(&c, &all->v.v[i], all->kernels.v[all->v.v[i].p.name]->name, &hint);
		for (size_t i = c.spans.n; i-- > 0;)
			leave_to_inner(&c, &c.spans.v[i]);
		for (size_t i = 0; i < c.spans.n; i++)
			if (c.spans.v[i].longest)
				fill(&c, &c.spans.v[i], all);
	}
	array_free(&c.spans);
	cost_table_fini(&c.costs);
	chunk_buf_fini(&c.buf);
	return e;
}
