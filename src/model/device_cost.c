/*
 * Gives each kernel its part of its operator's FLOPs and bytes, in proportion to its time.
 *
 * In a matrix product only kernels count whose names multiply, because others change layouts or add
 * up parts. The type in the kernel's name takes precedence over the operator's type, since FP32 may
 * run in TF32 or mixed precision.
 */

#include "base/expect.h"
#include "model/device_join.h"
#include "model/roofline.h"

/* The places of the two products of a step back in the order of launches, as names say. */
static void take_order(struct doing *d, const struct predict_product *p, uint64_t ticks)
{
	d->unordered |= !ticks;
	if (p->weight && (!d->weight_from || ticks < d->weight_from))
		d->weight_from = ticks;
	if (p->input && ticks > d->input_to)
		d->input_to = ticks;
}

void cost_claim(struct joiner *j, uint32_t span, uint32_t row, uint32_t call, uint64_t ns)
{
	const uint64_t ticks = call == NO_CALL ? 0 : sat_add(j->r->links.v.v[call].ticks, 1);
	uint32_t at = span;
	for (int i = 0; at != NONE && j->spans.v[at].cost == NONE && i < LOOK_UP_MOST; i++)
		at = j->spans.v[at].at.parent;
	if (at == NONE || j->spans.v[at].cost == NONE)
		return;
	if (!expect(at < j->spans.n && row < j->products.n, "a range and a kernel are of all"))
		return;
	struct doing *d = &j->spans.v[at].doing;
	const struct predict_product *p = &j->products.v[row];
	d->by.fewer |= p->fewer;
	take_order(d, p, ticks);
	if (j->costs.v.v[j->spans.v[at].cost].matrix && p->helps)
		return;
	if (p->copies && at != span)
		return; /* an operator inside converts what this one is given */
	*array_push(&j->claims) = (struct claim){
		.ns = ns, .ticks = ticks, .span = at, .row = row, .weight = p->weight
	};
	d->ns = sat_add(d->ns, ns);
	d->weight_ns = sat_add(d->weight_ns, p->weight ? ns : 0);
	d->count++;
}

/*
 * An operator that has one inside for its product, as aten::addmm has cublasGemmEx, has no kernel
 * of its own that would do it: what it launches besides is a copy or the like.
 */
static void leave_to_inner(struct joiner *j, const struct span *s)
{
	const struct cost *c = s->cost == NONE || !s->doing.ns ? NULL : &j->costs.v.v[s->cost];
	uint32_t up = s->at.parent;
	for (int i = 0; c && c->matrix && up != NONE && i < LOOK_UP_MOST; i++) {
		struct span *p = &j->spans.v[up];
		up = p->at.parent;
		if (p->cost == NONE || j->costs.v.v[p->cost].flops > 2 * c->flops)
			continue;
		p->doing.left = true;
		p->doing.ns = 0;
	}
}

/* The cost as a kernel of that name has it. */
static struct cost cost_by(const struct cost *c, const struct predict_product *by, bool fewer)
{
	struct cost k = *c;
	if (!c->matrix)
		return k;
	cost_set_unit(&k, by);
	k.has_unit &= !fewer;
	return k;
}

/* Keeps what the longest kernel of a product multiplies by, for the operators around too. */
static void keep_longest(struct joiner *j, const struct claim *k)
{
	struct doing *d = &j->spans.v[k->span].doing;
	const struct cost *c = &j->costs.v.v[j->spans.v[k->span].cost];
	if (!c->matrix || d->left || k->ns <= d->longest_ns)
		return;
	const bool fewer = d->by.fewer;
	const struct cost by = cost_by(c, &j->products.v[k->row], false);
	d->longest_ns = k->ns;
	d->by = j->products.v[k->row];
	d->by.fewer = fewer;
	d->unit = by.unit;
	d->has_unit = by.has_unit;
}

/* Ranges inside stand behind those around. */
static void pass_outwards(struct joiner *j)
{
	for (size_t i = j->spans.n; i-- > 0;) {
		const struct span *s = &j->spans.v[i];
		expect(s->at.parent == NONE || s->at.parent < i, "ranges inside come later");
		struct doing *p = s->at.parent == NONE ? NULL : &j->spans.v[s->at.parent].doing;
		if (!p || s->doing.longest_ns <= p->longest_ns)
			continue;
		p->longest_ns = s->doing.longest_ns;
		p->by = s->doing.by;
		p->unit = s->doing.unit;
		p->has_unit = s->doing.has_unit;
	}
}

/*
 * PyTorch makes the gradient of the input first.  If no kernel that multiplies has a name that says
 * whose it is, as by FFT or Winograd, those launched after the last of the input's, or from the
 * first of the weights' on, which may only help, are the weights'.
 */
static void order_claim(struct joiner *j, struct claim *k)
{
	struct doing *d = &j->spans.v[k->span].doing;
	const uint64_t from = d->weight_from ? d->weight_from : d->input_to + 1;
	if (!j->costs.v.v[j->spans.v[k->span].cost].several || d->weight_ns || d->unordered ||
		from == 1 || k->ticks < from)
		return;
	k->weight = true;
	d->ordered_ns += k->ns;
}

/*
 * Its part of the operator's FLOPs; 0: not known.  Some kernels are known to do one of the two
 * products, which are as large; else two kernels do one each.
 */
static double part_of(const struct cost *c, const struct doing *d, const struct claim *k)
{
	const uint64_t weight_ns = d->weight_ns + d->ordered_ns;
	expect(k->ns <= d->ns, "a kernel's part is none of more than the whole");
	const uint64_t side = k->weight ? weight_ns : d->ns - weight_ns;
	if (!c->several)
		return (double)k->ns / (double)d->ns;
	if (d->weight_ns == d->ns)
		return 0.5 * (double)k->ns / (double)d->ns;
	if (weight_ns && weight_ns < d->ns)
		return 0.5 * (double)k->ns / (double)side;
	return d->count == 2 ? 0.5 : 0;
}

/* Whether only the weights' product of a step back runs, as if the input needs no gradient. */
static bool is_weight_alone(const struct cost *c, const struct doing *d)
{
	return c->several && d->ns && d->weight_ns == d->ns;
}

static void give_kernel(struct joiner *j, const struct claim *k)
{
	const struct span *s = &j->spans.v[k->span];
	const struct doing *d = &s->doing;
	const struct cost *whole = &j->costs.v.v[s->cost];
	const struct predict_product *by = &j->products.v[k->row];
	const double part = d->ns ? part_of(whole, d, k) : 0;
	if (part <= 0)
		return;
	/* By FFT or Winograd it neither multiplies nor moves what the definition says. */
	const bool fewer = whole->matrix && d->by.fewer;
	struct cost c = cost_by(whole, by, fewer);
	c.flops *= part;
	c.bytes *= part;
	roofline_add(fewer ? NULL : j->r->gpu, &j->r->activities.v[k->row].roofline, &c, k->ns);
}

/* An operator's product counts against a peak when the kernel that did it was seen. */
static void give_operator(struct joiner *j, struct operator_row *to, const struct span *s)
{
	expect(s->cost < j->costs.v.n, "the cost of an operator is known");
	expect(s->row < j->r->operators.n, "the row of an operator is one of all");
	struct cost c = j->costs.v.v[s->ran];
	const struct doing *d = &s->doing;
	if (is_weight_alone(&c, d)) {
		c.flops /= 2;
		c.bytes /= 2;
	}
	if (c.matrix && d->longest_ns) {
		if (d->has_unit || d->by.has_unit)
			cost_put_unit(&c, d->has_unit ? d->unit : GPU_UNITS);
		c.unit_by_name = d->by.has_unit;
		c.has_unit = d->has_unit && !d->by.fewer;
	}
	roofline_add(j->r->gpu && (!c.matrix || d->longest_ns) ? j->r->gpu : NULL, &to->roofline,
		&c, s->device_ns);
}

/*
 * A product that calls itself by its name, as under autocast once its inputs are converted, is of
 * the types that the one inside was given.
 */
static void find_ran(struct joiner *j)
{
	for (size_t i = 0; i < j->spans.n; i++)
		j->spans.v[i].ran = j->spans.v[i].cost;
	for (size_t i = j->spans.n; i-- > 0;) {
		const struct span *s = &j->spans.v[i];
		struct span *p = s->at.parent == NONE ? NULL : &j->spans.v[s->at.parent];
		if (!p || s->cost == NONE || p->cost == NONE || !is_namesake(j, s, p))
			continue;
		const struct cost *c = &j->costs.v.v[s->cost];
		if (c->matrix && c->flops == j->costs.v.v[p->cost].flops)
			p->ran = s->ran;
	}
}

/* Whether the operators of `to`'s name have this from a range around already. */
static bool is_counted(
	const struct joiner *j, owner_fn *owner_span, const struct span *s, const struct span *to)
{
	uint32_t up = s->at.parent;
	for (int i = 0; up != NONE && i < LOOK_UP_MOST; i++) {
		const struct span *p = &j->spans.v[up];
		if (p->cost != NONE &&
			(is_namesake(j, p, to) || is_namesake(j, owner_span(j, p), to)))
			return true;
		up = p->at.parent;
	}
	return false;
}

static void give_operators(struct joiner *j, owner_fn *owner_span)
{
	array_each(const struct span, s, j->spans) {
		if (s->cost == NONE)
			continue;
		if (!is_counted(j, owner_span, s, s))
			give_operator(j, &j->r->operators.v[s->row], s);
		const struct span *owner = owner_span(j, s);
		if (owner != s && owner->cost == NONE && !is_counted(j, owner_span, s, owner))
			give_operator(j, &j->r->operators.v[owner->row], s);
	}
}

void cost_sum(struct joiner *j, owner_fn *owner_span)
{
	for (size_t i = j->spans.n; i-- > 0;)
		leave_to_inner(j, &j->spans.v[i]);
	for (size_t i = 0; i < j->claims.n; i++)
		keep_longest(j, &j->claims.v[i]);
	pass_outwards(j);
	for (size_t i = 0; i < j->claims.n; i++)
		order_claim(j, &j->claims.v[i]);
	for (size_t i = 0; i < j->claims.n; i++)
		give_kernel(j, &j->claims.v[i]);
	find_ran(j);
	give_operators(j, owner_span);
}
