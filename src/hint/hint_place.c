/* Names the place in the program at which calls were made. */
#include "hint/hint_facts.h"

#include "memory/memory.h"

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"

#include "stack/stacks.h"

#define STACK_SHOWN 3u /* frames */

#define QUERIES_MOST 100000u /* calls whose range is looked for */

/* When nothing ran: for each activity, when all before it had ended, and how long nothing had run
 * until then. */
struct idle_time {
	const struct hint_facts *f;
	uint64_t *covered_ns, *idle_ns;
};

static struct idle_time measure(const struct hint_facts *f)
{
	struct idle_time t = { .f = f,
		.covered_ns = xcalloc(f->activities.n + 1, sizeof *t.covered_ns),
		.idle_ns = xcalloc(f->activities.n + 1, sizeof *t.idle_ns) };
	for (size_t i = 0; i < f->activities.n; i++) {
		const struct hint_activity *w = &f->activities.v[i];
		const uint64_t covered = i ? t.covered_ns[i] : w->start_ns;
		t.covered_ns[i + 1] = MAX(covered, w->end_ns);
		t.idle_ns[i + 1] =
			t.idle_ns[i] + (w->start_ns > covered ? w->start_ns - covered : 0);
	}
	return t;
}

static uint64_t idle_until(const struct idle_time *t, uint64_t ns)
{
	const struct hint_activity *v = t->f->activities.v;
	const size_t n = t->f->activities.n, begun = SEARCH(i, 0, n, v[i].start_ns <= ns);
	const bool idle = begun && begun < n && ns > t->covered_ns[begun];
	return t->idle_ns[begun] + (idle ? ns - t->covered_ns[begun] : 0);
}

/* A wait ends what it waited for; other calls keep the host while nothing runs. */
static uint64_t blame_of(const struct idle_time *t, const struct hint_call *c)
{
	const uint64_t until = idle_until(t, c->end_ns);
	return c->kind == HINT_SYNC ? idle_until(t, c->end_ns + 1) > until
				    : until - idle_until(t, c->begin_ns);
}

#define NO_FUNCTION UINT16_MAX

/* The function of the kind whose calls are most to blame that nothing ran, or NO_FUNCTION. */
static uint16_t worst_function(const struct hint_facts *f, uint8_t kind)
{
	struct idle_time t = measure(f);
	uint64_t *blame = xcalloc(NO_FUNCTION, sizeof *blame);
	uint16_t worst = NO_FUNCTION;
	array_each(const struct hint_call, c, f->calls) {
		if (c->kind != kind || c->fn == NO_FUNCTION)
			continue;
		blame[c->fn] += blame_of(&t, c);
		if (blame[c->fn] && (worst == NO_FUNCTION || blame[c->fn] > blame[worst]))
			worst = c->fn;
	}
	free_all(t.covered_ns, t.idle_ns, blame);
	return worst;
}

static size_t make_queries(const struct hint_facts *f, uint16_t fn, struct range_query *v)
{
	size_t n = 0;
	for (size_t i = 0; i < f->calls.n && n < QUERIES_MOST; i++) {
		const struct hint_call *c = &f->calls.v[i];
		expect(c->thread < f->threads.n, "the thread of a call is one of all");
		const struct hint_thread *t = &f->threads.v[c->thread];
		if (c->fn == fn)
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

static uint32_t usual_range(const struct hint_facts *f, uint16_t fn)
{
	const struct report *r = f->report;
	struct range_query *v = xcalloc(QUERIES_MOST, sizeof *v);
	uint32_t name = META_NONE;
	bool any = false;
	const size_t n = make_queries(f, fn, v);
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
	const uint16_t worst = worst_function(f, kind);
	const struct schema_fn *fn = schema_find(&f->report->trace->schema, worst);
	char who[512];
	if (!fn)
		return xasprintf("%s", otherwise);
	facts_stack(f->report, usual_stack(f->report, fn), who, sizeof who);
	const uint32_t range = usual_range(f, worst);
	if (range == META_NONE)
		return xasprintf("%s%s", fn->name, who);
	expect(range < f->report->meta.names.n, "the name of a range is one of all");
	return xasprintf("%s, mostly in %s%s", fn->name, f->report->meta.names.v[range].text, who);
}
