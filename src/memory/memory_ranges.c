/* The operators in which calls were made: the innermost range of the thread at that time.  See
 * memory.h. */
#include "memory/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/nested.h"
#include "trace/activity.h"

#include "base/banned.h"

struct span {
	struct nested at;
	uint32_t name; /* into meta.names */
};

struct spans {
	ARRAY(struct span) v;
	struct chunk_buf buf;
};

static int take_ranges(const struct trace *t, const struct meta *m, struct spans *s)
{
	struct cursor at = { .t = t, .buf = &s->buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0) {
		const uint32_t process = s->buf.ref->process;
		struct span *to = range_nests(g.kind) ? array_push(&s->v) : NULL;
		if (to)
			*to = (struct span){ nested_of(&g, process),
				meta_find_string(m, process, g.name) };
		else if (range_nests(g.kind))
			return -ENOMEM;
	}
	return e;
}

int ranges_name(
	const struct trace *t, const struct meta *m, struct range_query *v, size_t n, bool *ret_any)
{
	struct spans s = { 0 };
	size_t hint = 0;
	*ret_any = false;
	if (!n)
		return 0;
	const int e = take_ranges(t, m, &s);
	*ret_any = s.v.n;
	NESTED(s.v);
	for (size_t i = 0; i < n; i++) {
		const uint32_t at = NESTED_AT(s.v, v[i].process, v[i].tid, v[i].ticks, &hint);
		v[i].name = at == NESTED_NONE ? META_NONE : s.v.v[at].name;
	}
	array_free(&s.v);
	chunk_buf_fini(&s.buf);
	return e;
}
