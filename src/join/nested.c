/* Finds the innermost range at a moment. */
#include "join/nested.h"

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

static int thread_order(const struct nested *a, const struct nested *b)
{
	return a->process != b->process ? ORDER(a->process, b->process) : ORDER(a->tid, b->tid);
}

static int begin_order(const struct nested *a, const struct nested *b)
{
	const int thread = thread_order(a, b);
	return thread ? thread : ORDER(a->ticks, b->ticks);
}

/* `parent` is still the place among all as they were given. */
ORDERING(nested_order, struct nested, begin_order(a, b), ORDER(b->end, a->end),
	ORDER(a->parent, b->parent))

static struct nested *element(const void *v, size_t each, size_t i)
{
	return (struct nested *)((char *)v + i * each);
}

static uint32_t open_at(const void *v, size_t each, uint32_t i, uint64_t ticks)
{
	while (i != NESTED_NONE && element(v, each, i)->end <= ticks)
		i = element(v, each, i)->parent;
	return i;
}

/* A range that outlasts the one before it does not lie inside. */
static uint32_t around(const void *v, size_t each, uint32_t i, const struct nested *now)
{
	i = open_at(v, each, i, now->ticks);
	while (i != NESTED_NONE && element(v, each, i)->end < now->end)
		i = element(v, each, i)->parent;
	return i;
}

static bool is_empty(const struct nested *a)
{
	return a->end == a->ticks;
}

/* In one thread and tick, [from, empty) took time and [empty, to) took none.  An empty range that
 * was given before a range that took time had ended when it began, and stands before it. */
static void merge_empty(void *v, size_t each, size_t from, size_t empty, size_t to)
{
	char *given = xmalloc((to - from) * each);
	size_t left = to - empty, at = to;
	memcpy(given, element(v, each, from), (to - from) * each);
	for (size_t i = empty - from; i-- > 0;) {
		const struct nested *now = element(given, each, i);
		const size_t before = SEARCH(
			k, 0, left, element(given, each, empty - from + k)->parent < now->parent);
		at -= left - before;
		memcpy(element(v, each, at), element(given, each, empty - from + before),
			(left - before) * each);
		memcpy(element(v, each, --at), now, each);
		left = before;
	}
	memcpy(element(v, each, from), element(given, each, empty - from), left * each);
	free(given);
}

static void put_empty_first(void *v, size_t n, size_t each)
{
	for (size_t from = 0, empty, to; from < n; from = to) {
		const struct nested *first = element(v, each, from);
		empty = from;
		while (empty < n && !is_empty(element(v, each, empty)) &&
			!begin_order(first, element(v, each, empty)))
			empty++;
		to = empty;
		while (to < n && !begin_order(first, element(v, each, to)))
			to++;
		if (from < empty && empty < to)
			merge_empty(v, each, from, empty, to);
	}
}

void nested(void *v, size_t n, size_t each)
{
	uint32_t top = NESTED_NONE;
	for (size_t i = 0; i < n; i++)
		element(v, each, i)->parent = (uint32_t)i;
	sort_records(v, n, each, nested_order);
	put_empty_first(v, n, each);
	for (size_t i = 0; i < n; i++) {
		struct nested *now = element(v, each, i);
		if (i && thread_order(element(v, each, i - 1), now))
			top = NESTED_NONE;
		now->parent = around(v, each, top, now);
		expect(now->parent == NESTED_NONE || now->parent < i,
			"those around stand before those inside");
		top = (uint32_t)i;
	}
}

/* Up to where elements stand before the key, from a place that does on: in steps that double. */
static size_t gallop(
	const void *v, size_t n, size_t each, size_t from, const struct nested *key, size_t *ret_to)
{
	size_t step = 1;
	while (step < n - from && begin_order(element(v, each, from + step), key) <= 0) {
		from += step;
		step *= 2;
	}
	*ret_to = step < n - from ? from + step : n;
	return from;
}

uint32_t nested_at(const void *v, size_t n, size_t each, uint32_t process, uint32_t tid,
	uint64_t ticks, size_t *hint)
{
	const struct nested key = { .ticks = ticks, .process = process, .tid = tid };
	size_t from = 0, to = n;
	if (*hint < n && begin_order(element(v, each, *hint), &key) <= 0)
		from = gallop(v, n, each, *hint, &key, &to);
	const size_t begun = SEARCH(i, from, to, begin_order(element(v, each, i), &key) <= 0);
	if (!begun || thread_order(element(v, each, begun - 1), &key))
		return NESTED_NONE;
	expect_slow(element(v, each, begun - 1)->ticks <= ticks, "what was found had begun");
	*hint = begun - 1;
	return open_at(v, each, (uint32_t)(begun - 1), ticks);
}

uint32_t nested_named(const void *v, size_t each, uint32_t at)
{
	while (at != NESTED_NONE && !element(v, each, at)->named)
		at = element(v, each, at)->parent;
	return at;
}

/* Named ranges that are inside of no other of their thread. */
struct outermost {
	ARRAY(struct alone) v;
};

struct edge { /* where a thread goes into named ranges, or leaves them */
	uint64_t ticks;
	uint32_t process, tid;
	bool leaves;
};

struct edges {
	ARRAY(struct edge) v;
};

ORDERING(outermost_order, struct alone, ORDER(a->process, b->process), ORDER(a->from, b->from),
	ORDER(b->to, a->to))

ORDERING(edge_order, struct edge, ORDER(a->process, b->process), ORDER(a->ticks, b->ticks),
	(int)b->leaves - (int)a->leaves)

static void find_outermost(const void *v, size_t n, size_t each, struct outermost *to)
{
	for (size_t i = 0; i < n; i++) {
		const struct nested *at = element(v, each, i);
		if (!at->named || at->end <= at->ticks ||
			nested_named(v, each, at->parent) != NESTED_NONE)
			continue;
		*array_push(&to->v) = (struct alone){ at->ticks, at->end, at->process, at->tid };
	}
	SORT(to->v, outermost_order);
}

/* A thread that is inside of ranges only while another is all the while, and longer, does a part of
 * that one's: as those of a communication library that mark what they are at. */
static void drop_parts(struct outermost *of)
{
	struct alone around = { .process = UINT32_MAX };
	size_t n = 0;
	for (size_t i = 0; i < of->v.n; i++) {
		const struct alone s = of->v.v[i];
		const bool part = s.process == around.process && s.to <= around.to &&
				  (s.from > around.from || s.to < around.to);
		if (part)
			continue;
		if (s.process != around.process || s.to > around.to)
			around = s;
		of->v.v[n++] = s;
	}
	of->v.n = n;
}

static void add_edges(struct edges *to, const struct alone *of)
{
	array_reserve(&to->v, 2);
	to->v.v[to->v.n++] = (struct edge){ of->from, of->process, of->tid, false };
	to->v.v[to->v.n++] = (struct edge){ of->to, of->process, of->tid, true };
}

/* The sum of the threads that are inside says which it is, once there is one. */
static void put_alones(const struct edges *edges, struct alones *to)
{
	uint64_t inside = 0, sum = 0;
	for (size_t i = 0; i < edges->v.n; i++) {
		const struct edge *e = &edges->v.v[i], *next = e + 1;
		inside += e->leaves ? -1ull : 1ull;
		sum += e->leaves ? -(uint64_t)e->tid : e->tid;
		if (inside != 1 || next->ticks == e->ticks)
			continue;
		*array_push(&to->v) =
			(struct alone){ e->ticks, next->ticks, e->process, (uint32_t)sum };
	}
	expect(!inside, "threads leave the ranges that they went into");
}

void alones_make(const void *v, size_t n, size_t each, struct alones *ret_alones)
{
	struct outermost outermost = { 0 };
	struct edges edges = { 0 };
	*ret_alones = (struct alones){ 0 };
	find_outermost(v, n, each, &outermost);
	drop_parts(&outermost);
	for (size_t i = 0; i < outermost.v.n; i++)
		add_edges(&edges, &outermost.v.v[i]);
	SORT(edges.v, edge_order);
	put_alones(&edges, ret_alones);
	array_free(&outermost.v, &edges.v);
}

uint32_t alones_at(
	struct alones *a, const void *v, size_t n, size_t each, uint32_t process, uint64_t ticks)
{
	const struct alone *s = a->v.v;
	const size_t begun = SEARCH(i, 0, a->v.n,
		s[i].process < process || (s[i].process == process && s[i].from <= ticks));
	if (!begun || s[begun - 1].process != process || s[begun - 1].to <= ticks)
		return NESTED_NONE;
	return nested_named(
		v, each, nested_at(v, n, each, process, s[begun - 1].tid, ticks, &a->hint));
}

ORDERING(external_order, struct external, ORDER(a->process, b->process), ORDER(a->id, b->id),
	ORDER(a->index, b->index))

void externals_make(const void *v, size_t n, size_t each, struct externals *ret_externals)
{
	*ret_externals = (struct externals){ 0 };
	for (size_t i = 0; i < n; i++) {
		const struct nested *at = element(v, each, i);
		if (!at->external)
			continue;
		*array_push(&ret_externals->v) =
			(struct external){ at->external, at->process, (uint32_t)i };
	}
	SORT(ret_externals->v, external_order);
}

uint32_t externals_find(const struct externals *x, uint32_t process, uint64_t id)
{
	const struct external key = { .id = id, .process = process };
	const size_t at = SEARCH(i, 0, x->v.n, external_order(&x->v.v[i], &key) < 0);
	const struct external *found = at < x->v.n ? &x->v.v[at] : NULL;
	return found && found->process == process && found->id == id ? found->index : NESTED_NONE;
}

bool owner_is_library(uint16_t kind, const char *name)
{
	return kind == RANGE_OPERATOR &&
	       (!strncmp(name, "cublas", 6) || !strncmp(name, "cudnn", 5));
}

static void take(struct owners *o, const struct meta *m, const struct range *g, uint32_t process)
{
	const uint32_t name = meta_find_string(m, process, g->name);
	*array_push(&o->v) = (struct owner){ .at = nested_of(g, process),
		.name = name,
		.kind = g->kind,
		.library = name != META_NONE && owner_is_library(g->kind, m->names.v[name].text) };
}

int owners_load(const struct trace *t, const struct meta *m, struct owners *ret_owners)
{
	struct cursor at = { .t = t };
	*ret_owners = (struct owners){ 0 };
	for (struct range g; trace_next_range(&at, &g);)
		if (range_nests(g.kind))
			take(ret_owners, m, &g, at.ref->process);
	if (at.error || ret_owners->v.n >= OWNER_NONE)
		return at.error ? at.error : -EOVERFLOW;
	NESTED(ret_owners->v);
	ALONES_MAKE(ret_owners->v, &ret_owners->alones);
	EXTERNALS_MAKE(ret_owners->v, &ret_owners->externals);
	return 0;
}

void owners_fini(struct owners *o)
{
	array_free(&o->v, &o->externals.v, &o->alones.v);
}

uint32_t owners_of(struct owners *o, uint32_t process, const struct gpu_activity *w,
	const struct call_link *link)
{
	if (!o->v.n)
		return OWNER_NONE;
	if (link)
		return NESTED_AT(o->v, link->process, link->tid, link->ticks, &o->hint);
	return w->valid & GPU_HAS_EXTERNAL && w->external
		       ? externals_find(&o->externals, process, w->external)
		       : OWNER_NONE;
}

uint32_t owners_operator(const struct owners *o, uint32_t at)
{
	uint32_t library = OWNER_NONE;
	for (; at != OWNER_NONE; at = o->v.v[at].at.parent) {
		const struct owner *v = &o->v.v[at];
		expect(v->at.parent == OWNER_NONE || v->at.parent < at, "ranges inside come later");
		if (v->kind == RANGE_OPERATOR && !v->library)
			return at;
		if (v->library && library == OWNER_NONE)
			library = at;
	}
	return library;
}

uint32_t owners_named(const struct owners *o, uint32_t at)
{
	return NESTED_NAMED(o->v, at);
}

uint32_t owners_waiting(struct owners *o, uint32_t at, const struct call_link *link)
{
	if (at == OWNER_NONE)
		return link ? ALONES_AT(&o->alones, o->v, link->process, link->ticks) : OWNER_NONE;
	while (o->v.v[at].at.parent != OWNER_NONE)
		at = o->v.v[at].at.parent;
	const struct nested outermost = o->v.v[at].at;
	at = ALONES_AT(&o->alones, o->v, outermost.process, outermost.ticks);
	return at == OWNER_NONE || o->v.v[at].at.tid == outermost.tid ? OWNER_NONE : at;
}

uint32_t owners_name(const struct owners *o, uint32_t at)
{
	return at == OWNER_NONE ? META_NONE : o->v.v[at].name;
}
