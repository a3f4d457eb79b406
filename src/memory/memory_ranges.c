/* The operators in which calls were made: the innermost range of the thread at that time.  See
 * memory.h. */
#include "memory/memory.h"

#include "blame/blame.h"

struct span {
	struct nested at;
	uint32_t name;  /* into meta.names */
	bool allocates; /* for the range around it */
};

struct memory_ranges {
	ARRAY(struct span) v;
	size_t hint; /* where the last answer was */
};

static struct span span_of(const struct meta *m, uint32_t process, const struct range *g)
{
	const uint32_t name = meta_find_string(m, process, g->name);
	return (struct span){ nested_of(g, process), name,
		name != META_NONE && blame_allocates(m->names.v[name].text) };
}

static int take_ranges(const struct trace *t, const struct meta *m, struct memory_ranges *s)
{
	struct cursor at = { .t = t };
	for (struct range g; trace_next_range(&at, &g);) {
		const uint32_t process = at.ref->process;
		if (range_nests(g.kind))
			*array_push(&s->v) = span_of(m, process, &g);
	}
	return at.error;
}

int ranges_open(const struct trace *t, const struct meta *m, struct memory_ranges **ret_ranges)
{
	struct memory_ranges *g = xcalloc(1, sizeof *g);
	*ret_ranges = g;
	const int e = take_ranges(t, m, g);
	NESTED(g->v);
	return e;
}

uint32_t ranges_at(struct memory_ranges *g, uint32_t process, uint32_t tid, uint64_t ticks)
{
	if (!g)
		return META_NONE;
	const uint32_t at = NESTED_AT(g->v, process, tid, ticks, &g->hint);
	uint32_t up = at;
	while (up != NESTED_NONE && g->v.v[up].allocates)
		up = g->v.v[up].at.parent;
	up = up == NESTED_NONE ? at : up;
	return up == NESTED_NONE ? META_NONE : g->v.v[up].name;
}

bool ranges_any(const struct memory_ranges *g)
{
	return g && g->v.n;
}

void ranges_close(struct memory_ranges *g)
{
	if (!g)
		return;
	array_free(&g->v);
	free(g);
}

int ranges_name(
	const struct trace *t, const struct meta *m, struct range_query *v, size_t n, bool *ret_any)
{
	struct memory_ranges *g = NULL;
	*ret_any = false;
	if (!n)
		return 0;
	const int e = ranges_open(t, m, &g);
	if (g) {
		*ret_any = ranges_any(g);
		for (size_t i = 0; i < n; i++)
			v[i].name = ranges_at(g, v[i].process, v[i].tid, v[i].ticks);
	}
	ranges_close(g);
	return e;
}
