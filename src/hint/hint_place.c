/* Names the place in the program at which calls were made. */
#include "hint/hint_facts.h"

#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

#include "stack/stacks.h"

#define STACK_SHOWN 3u /* frames */

#define QUERIES_MOST 100000u /* calls whose range is looked for */

/* The function that most calls of the kind are to, or NULL. */
static const struct schema_fn *usual_function(const struct hint_facts *f, uint8_t kind)
{
	const struct schema_fn *best = NULL;
	uint64_t most = 0;
	array_each(const struct call_row, c, f->report->call_rows) {
		uint64_t n = 0;
		for (size_t k = 0; k < f->calls.n && c->count > most; k++)
			n += f->calls.v[k].kind == kind && f->calls.v[k].fn == c->id;
		if (n > most) {
			most = n;
			best = c->fn;
		}
	}
	return best;
}

static size_t make_queries(const struct hint_facts *f, uint8_t kind, struct range_query *v)
{
	size_t n = 0;
	for (size_t i = 0; i < f->calls.n && n < QUERIES_MOST; i++) {
		const struct hint_call *c = &f->calls.v[i];
		expect(c->thread < f->threads.n, "the thread of a call is one of all");
		const struct hint_thread *t = &f->threads.v[c->thread];
		if (c->kind == kind)
			v[n++] = (struct range_query){
				.ticks = c->ticks, .process = t->process, .tid = t->tid
			};
	}
	return n;
}

ORDERING(name_order, struct range_query, ORDER(a->name, b->name))

/* The name that most queries have, when it is more than half of them. */
static uint32_t usual_name(struct range_query *v, size_t n)
{
	size_t from = 0;
	qsort(v, n, sizeof *v, name_order);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && v[i].name == v[from].name)
			continue;
		if (2 * (i - from) > n)
			return v[from].name;
		from = i;
	}
	return META_NONE;
}

static uint32_t usual_range(const struct hint_facts *f, uint8_t kind)
{
	const struct report *r = f->report;
	struct range_query *v = xcalloc(QUERIES_MOST, sizeof *v);
	uint32_t name = META_NONE;
	bool any = false;
	const size_t n = make_queries(f, kind, v);
	if (n && !ranges_name(r->trace, &r->meta, v, n, &any) && any)
		name = usual_name(v, n);
	free(v);
	return name;
}

const char *facts_stack(const struct report *r, uint32_t stack, char *to, size_t size)
{
	static const char before[] = ", called from ";
	const size_t n = sizeof before - 1;
	*to = 0;
	if (!r->stacks || stack == STACK_NONE || size <= n)
		return to;
	memcpy(to, before, n);
	stacks_row_text(r->stacks, stack, STACK_SHOWN, to + n, size - n);
	return to;
}

/* The stack that most calls of a function came with, of those that were kept. */
static uint32_t usual_stack(const struct report *r, const struct schema_fn *fn)
{
	const struct caller_row *most = NULL;
	array_each(const struct caller_row, c, r->callers)
		if (schema_find(&r->trace->schema, c->fn_id) == fn &&
			(!most || c->count > most->count))
			most = c;
	return most ? most->stack : STACK_NONE;
}

char *facts_place(const struct hint_facts *f, uint8_t kind, const char *otherwise)
{
	const struct schema_fn *fn = usual_function(f, kind);
	char who[512];
	if (!fn)
		return xasprintf("%s", otherwise);
	facts_stack(f->report, usual_stack(f->report, fn), who, sizeof who);
	const uint32_t range = usual_range(f, kind);
	if (range == META_NONE)
		return xasprintf("%s%s", fn->name, who);
	expect(range < f->report->meta.names.n, "the name of a range is one of all");
	return xasprintf("%s, mostly in %s%s", fn->name, f->report->meta.names.v[range].text, who);
}
