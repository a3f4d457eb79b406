/* See nested.h. */
#include "model/nested.h"

#include <errno.h>
#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#include "base/banned.h"

static int thread_order(const struct nested *a, const struct nested *b)
{
	return a->process != b->process ? ORDER(a->process, b->process) : ORDER(a->tid, b->tid);
}

static int nested_order(const void *one, const void *two)
{
	const struct nested *a = one, *b = two;
	const int thread = thread_order(a, b);
	if (thread || a->ticks != b->ticks)
		return thread ? thread : ORDER(a->ticks, b->ticks);
	return ORDER(b->end, a->end);
}

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

void nested(void *v, size_t n, size_t each)
{
	uint32_t top = NESTED_NONE;
	sort_records(v, n, each, nested_order);
	for (size_t i = 0; i < n; i++) {
		struct nested *now = element(v, each, i);
		if (i && thread_order(element(v, each, i - 1), now))
			top = NESTED_NONE;
		now->parent = open_at(v, each, top, now->ticks);
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
	while (step < n - from && nested_order(element(v, each, from + step), key) <= 0) {
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
	if (*hint < n && nested_order(element(v, each, *hint), &key) <= 0)
		from = gallop(v, n, each, *hint, &key, &to);
	const size_t begun = SEARCH(i, from, to, nested_order(element(v, each, i), &key) <= 0);
	if (!begun || thread_order(element(v, each, begun - 1), &key))
		return NESTED_NONE;
	expect_slow(element(v, each, begun - 1)->ticks <= ticks, "what was found had begun");
	*hint = begun - 1;
	return open_at(v, each, (uint32_t)(begun - 1), ticks);
}

/* ---- numbers ---- */

static int external_order(const void *one, const void *two)
{
	const struct external *a = one, *b = two;
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	return a->id != b->id ? ORDER(a->id, b->id) : ORDER(a->index, b->index);
}

int externals_make(const void *v, size_t n, size_t each, struct externals *ret_externals)
{
	*ret_externals = (struct externals){ 0 };
	for (size_t i = 0; i < n; i++) {
		const struct nested *at = element(v, each, i);
		if (!at->external)
			continue;
		struct external *x = array_push(&ret_externals->v);
		if (!x)
			return -ENOMEM;
		*x = (struct external){ at->external, at->process, (uint32_t)i };
	}
	SORT(ret_externals->v, external_order);
	return 0;
}

uint32_t externals_find(const struct externals *x, uint32_t process, uint64_t id)
{
	const struct external key = { .id = id, .process = process };
	const size_t at = SEARCH(i, 0, x->v.n, external_order(&x->v.v[i], &key) < 0);
	const struct external *found = at < x->v.n ? &x->v.v[at] : NULL;
	return found && found->process == process && found->id == id ? found->index : NESTED_NONE;
}

/* ---- of a trace ---- */

bool owner_is_library(uint16_t kind, const char *name)
{
	return kind == RANGE_OPERATOR &&
	       (!strncmp(name, "cublas", 6) || !strncmp(name, "cudnn", 5));
}

static int take(struct owners *o, const struct meta *m, const struct range *g, uint32_t process)
{
	const uint32_t name = meta_find_string(m, process, g->name);
	struct owner *to = array_push(&o->v);
	if (!to)
		return -ENOMEM;
	*to = (struct owner){ .at = nested_of(g, process),
		.name = name,
		.kind = g->kind,
		.library = name != META_NONE && owner_is_library(g->kind, m->names.v[name].text) };
	return 0;
}

int owners_load(const struct trace *t, const struct meta *m, struct owners *ret_owners)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = t, .buf = &buf };
	struct range g;
	int e;
	*ret_owners = (struct owners){ 0 };
	while ((e = trace_next_range(&at, &g)) > 0) {
		e = range_nests(g.kind) ? take(ret_owners, m, &g, buf.ref->process) : 0;
		if (e)
			break;
	}
	chunk_buf_fini(&buf);
	if (!e && ret_owners->v.n >= OWNER_NONE)
		e = -EOVERFLOW;
	if (e)
		return e;
	NESTED(ret_owners->v);
	return EXTERNALS_MAKE(ret_owners->v, &ret_owners->externals);
}

void owners_fini(struct owners *o)
{
	array_free(&o->v);
	array_free(&o->externals.v);
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
	while (at != OWNER_NONE && o->v.v[at].kind == RANGE_OPERATOR)
		at = o->v.v[at].at.parent;
	return at;
}

uint32_t owners_name(const struct owners *o, uint32_t at)
{
	return at == OWNER_NONE ? META_NONE : o->v.v[at].name;
}
