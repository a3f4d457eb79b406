/* Collects the kernels of a trace as samples for predictions. */
#include "model/samples.h"

#include "base/expect.h"
#include "base/sort.h"
#include "join/links.h"
#include "join/nested.h"
#include "model/cost.h"
#include "model/demangle.h"
#include "predict/key.h"
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
	for (struct range g; trace_next_range(&at, &g);) {
		if (g.kind != RANGE_OPERATOR || !g.args)
			continue;
		const uint32_t cost =
			cost_table_find(&c->costs, text_of(c, g.name), text_of(c, g.args));
		if (cost == COST_NONE)
			continue;
		*array_push(&c->spans) =
			(struct span){ .at = nested_of(&g, c->buf.ref->process), .cost = cost };
	}
	return at.error;
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

/* Samples stay where they are.  0 or -errno; damaged chunks are passed over. */
static int samples_cost(const struct trace *t, const struct meta *m, struct launch_samples *all)
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
	return e;
}

/* A recorded launch that says more than its shape. */
struct given {
	uint64_t ticks;
	uint64_t function;
	uint32_t process;
	uint32_t tid;
	bool has_args, has_prediction;
	struct launch_args args;
	struct predicted_time prediction;
};

struct loader {
	const struct trace *t;
	const struct meta *m;
	struct launch_samples *s;
	struct links links;
	size_t hint; /* into links */
	struct chunk_buf buf;
	ARRAY(struct given) given; /* by process, tid, ticks */
	struct map kernel_map;
};

static int take_calls(struct loader *l)
{
	struct cursor at = { .t = l->t, .buf = &l->buf };
	for (const struct record *r; (r = trace_next_call(&at));) {
		const struct schema_fn *fn = schema_find(&l->t->schema, r->fn);
		struct given g = { .ticks = r->ticks,
			.process = l->buf.ref->process,
			.tid = l->buf.ref->head.tid };
		if (fn && fn->launch_layout) {
			g.has_args = args_get(r, &g.args);
			g.has_prediction = predicted_get(r, &g.prediction);
		} else if (fn && fn->kind == CALL_GRAPHLAUNCH) {
			g.has_prediction =
				predicted_get_behind(r, GRAPH_LAUNCH_WORDS, &g.prediction);
		}
		if (!g.has_args && !g.has_prediction)
			continue;
		g.function = r->arg[LAUNCH_FUNCTION];
		*array_push(&l->given) = g;
	}
	return at.error;
}

ORDERING(given_order, struct given, ORDER(a->process, b->process), ORDER(a->tid, b->tid),
	ORDER(a->ticks, b->ticks))

/* The arguments of the launch behind a link, or NULL. */
static const struct given *given_to(const struct loader *l, const struct call_link *link)
{
	if (!link || !l->given.n)
		return NULL;
	const struct given key = {
		.process = link->process, .tid = link->tid, .ticks = link->ticks
	};
	return bsearch(&key, l->given.v, l->given.n, sizeof key, given_order);
}

/* The known attributes of the code, best source first: the activity itself, then the function. */
static struct predict_kernel attributes_of(
	const struct gpu_activity *w, const struct meta_attributes *a)
{
	struct predict_kernel k = { 0 };
	const uint32_t known = a ? a->known : 0;
	k.has_regs = w->valid & GPU_HAS_REGISTERS || known >> ATTRIBUTE_REGISTERS & 1;
	if (w->valid & GPU_HAS_REGISTERS)
		k.regs = w->registers;
	else if (k.has_regs)
		k.regs = a->value[ATTRIBUTE_REGISTERS];
	if (w->valid & GPU_HAS_SHARED)
		k.smem_static_bytes = w->shared_static;
	else if (known >> ATTRIBUTE_STATIC_SHARED & 1)
		k.smem_static_bytes = a->value[ATTRIBUTE_STATIC_SHARED];
	k.has_local = known >> ATTRIBUTE_LOCAL & 1;
	if (k.has_local)
		k.local_bytes = a->value[ATTRIBUTE_LOCAL];
	return k;
}

/* The id is that of the name as the program has it, which is all that the hook knows of it; the
 * rest is read from the name that people write. */
static struct sample_kernel *new_kernel(
	const char *mangled, const struct predict_kernel *attributes)
{
	struct sample_kernel *n = xcalloc(1, sizeof *n);
	char *name = demangle(mangled);
	n->name = name;
	n->mangled = mangled;
	n->k = *attributes;
	predict_kernel_name(&n->k, name, 0);
	n->k.id = predict_kernel_id(mangled, strlen(mangled), 0);
	return n;
}

static uint32_t kernel_of(
	struct loader *l, const struct gpu_activity *w, const struct meta_attributes *a)
{
	const uint32_t name = meta_find_string(l->m, l->buf.ref->process, w->name);
	const struct predict_kernel k = attributes_of(w, a);
	const bool has_shared =
		w->valid & GPU_HAS_SHARED || (a && a->known >> ATTRIBUTE_STATIC_SHARED & 1);
	uint32_t *index = map_get(&l->kernel_map,
		MAP_KEY(name, (uint64_t)k.regs << 32 | k.smem_static_bytes, k.local_bytes,
			k.has_regs | k.has_local << 1 | has_shared << 2));
	if (*index == MAP_NONE) {
		struct sample_kernel *n =
			new_kernel(name == META_NONE ? "(no name)" : l->m->names.v[name].text, &k);
		n->has_shared = has_shared;
		*array_push(&l->s->kernels) = n;
		*index = (uint32_t)(l->s->kernels.n - 1);
	}
	return *index;
}

static const struct meta_device *device_of(const struct loader *l, const struct gpu_activity *w)
{
	for (size_t i = 0; w->valid & GPU_HAS_DEVICE && i < l->m->devices.n; i++) {
		const struct meta_device *d = &l->m->devices.v[i];
		if (d->process == l->buf.ref->process && d->device == w->device)
			return d;
	}
	return NULL;
}

static void fill_args(struct sample *s, const struct launch_args *a)
{
	struct predict_launch *launch = &s->p.launch;
	s->has_args = true;
	s->args_key = a->key;
	s->scalars = a->scalars;
	launch->args = a->kept;
	memcpy(launch->arg, a->value, a->kept * sizeof a->value[0]);
}

static void add_sample(struct loader *l, const struct gpu_activity *w)
{
	const struct call_link *link = links_of(&l->links, l->buf.ref->process, w, &l->hint);
	const struct given *whole = given_to(l, link);
	const struct given *g = w->valid & GPU_HAS_GRAPH ? NULL : whole;
	const struct meta_attributes *a =
		g ? meta_find_attributes(l->m, g->process, g->function, g->ticks) : NULL;
	struct sample s = { .start_ns = w->start_ns,
		.end_ns = w->end_ns,
		.device = w->device,
		.stream = w->stream,
		.has_device = w->valid & GPU_HAS_DEVICE,
		.has_stream = w->valid & GPU_HAS_STREAM,
		.has_dynamic = w->valid & GPU_HAS_SHARED,
		.graph = w->valid & GPU_HAS_GRAPH,
		.has_call = link != NULL,
		.call_ticks = link ? link->ticks : 0,
		.call_tid = link ? link->tid : 0,
		.on = device_of(l, w) };
	s.p = (struct predict_sample){ .measured_ns = (double)(w->end_ns - w->start_ns),
		.order = w->start_ns,
		.app = l->buf.ref->process };
	memcpy(s.p.launch.grid, w->grid, sizeof w->grid);
	memcpy(s.p.launch.block, w->block, sizeof w->block);
	s.p.launch.smem_dynamic_bytes = s.has_dynamic ? w->shared_dynamic : 0;
	if (g && g->has_args)
		fill_args(&s, &g->args);
	s.has_prediction = g && g->has_prediction;
	s.graph_predicted = !g && whole && whole->has_prediction;
	if (s.has_prediction || s.graph_predicted)
		s.prediction = whole->prediction;
	s.p.name = kernel_of(l, w, a);
	*array_push(&l->s->v) = s;
}

static int take_activity(struct loader *l)
{
	struct cursor at = { .t = l->t, .buf = &l->buf };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const bool has_shape = w.valid & GPU_HAS_SHAPE;
		if (w.kind == GPU_KERNEL && has_shape)
			add_sample(l, &w);
		l->s->shapeless += w.kind == GPU_KERNEL && !has_shape;
	}
	return at.error;
}

/* By device, then start; devices that are not known are one. */
ORDERING(device_order, struct sample,
	ORDER(a->has_device ? a->device : 0, b->has_device ? b->device : 0),
	ORDER(a->start_ns, b->start_ns))

ORDERING(start_order, struct sample, ORDER(a->start_ns, b->start_ns), ORDER(a->end_ns, b->end_ns),
	ORDER(a->p.name, b->p.name))

/*
 * The samples that began before i and still run are known to be contended, but for the one that
 * ends last: two of them would have met each other when the later began.
 */
static void mark_contended(struct launch_samples *s)
{
	struct sample *last = NULL; /* of those before, the one that ends last */
	array_each(struct sample, now, s->v) {
		if (last && (last->has_device ? last->device : 0) !=
				    (now->has_device ? now->device : 0))
			last = NULL;
		if (last && last->end_ns > now->start_ns)
			last->p.launch.contended = now->p.launch.contended = true;
		if (!last || now->end_ns > last->end_ns)
			last = now;
	}
}

static void finish(struct launch_samples *s)
{
	if (!s->v.n)
		return;
	SORT(s->v, device_order);
	mark_contended(s);
	SORT(s->v, start_order);
	array_each(struct sample, n, s->v) {
		struct predict_launch *launch = &n->p.launch;
		if (!expect(n->p.name < s->kernels.n, "the kernel of a sample is known"))
			continue;
		expect(n->end_ns >= n->start_ns, "a sample ends after it began");
		launch->kernel = &s->kernels.v[n->p.name]->k;
		launch->key = predict_key(launch);
		if (n->has_args)
			launch->key = predict_key_of_args(launch->key, n->args_key);
	}
}

int launch_samples_load(const struct trace *t, const struct meta *m,
	struct launch_samples *ret_samples, struct error *err)
{
	struct loader l = { .t = t, .m = m, .s = ret_samples };
	*ret_samples = (struct launch_samples){ 0 };
	int e = links_load(t, m, &l.links);
	if (!e)
		e = take_calls(&l);
	SORT(l.given, given_order);
	if (!e)
		e = take_activity(&l);
	links_fini(&l.links);
	array_free(&l.given);
	map_fini(&l.kernel_map);
	if (!e) {
		finish(ret_samples);
		e = samples_cost(t, m, ret_samples);
	}
	if (!e)
		return 0;
	launch_samples_fini(ret_samples);
	return error_set(err, e, "the kernels of the trace can't be gathered: %s", strerror(-e));
}

void launch_samples_fini(struct launch_samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->kernels.n; i++) {
		free(s->kernels.v[i]->name);
		free(s->kernels.v[i]);
	}
	array_free(&s->kernels, &s->v);
	*s = (struct launch_samples){ 0 };
}
