/* The operators in which calls were made: the innermost range of the thread at that time.  See
 * memory.h. */
#include "memory/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "trace/activity.h"

#include "base/banned.h"

struct span {
	uint64_t ticks, end;
	uint32_t process, tid;
	uint32_t name; /* into meta.names */
	uint32_t parent;
};
#define NONE UINT32_MAX

struct spans {
	ARRAY(struct span) spans;
	struct chunk_buf buf;
};

static int span_order(const void *one, const void *two)
{
	const struct span *a = one, *b = two;
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	if (a->tid != b->tid)
		return ORDER(a->tid, b->tid);
	if (a->ticks != b->ticks)
		return ORDER(a->ticks, b->ticks);
	return -ORDER(a->end, b->end);
}

static int query_order(const void *one, const void *two)
{
	const struct range_query *a = one, *b = two;
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	if (a->tid != b->tid)
		return ORDER(a->tid, b->tid);
	return ORDER(a->ticks, b->ticks);
}

static int take_chunk(const struct meta *m, struct spans *s)
{
	struct range g;
	size_t at = 0;
	while (range_next(&s->buf, &at, &g)) {
		if (!range_nests(g.kind))
			continue;
		struct span *to = array_push(&s->spans);
		if (!to)
			return -ENOMEM;
		*to = (struct span){ .ticks = g.ticks,
			.end = range_end(&g),
			.process = s->buf.ref->process,
			.tid = g.tid,
			.name = meta_find_string(m, s->buf.ref->process, g.name),
			.parent = NONE };
	}
	return 0;
}

static int take_chunks(const struct trace *t, const struct meta *m, struct spans *s)
{
	size_t at = 0;
	int e;
	while ((e = trace_next(t, CHUNK_RANGES, &at, &s->buf, NULL)) > 0 && !(e = take_chunk(m, s)))
		;
	return e;
}

static bool same_thread(const struct span *s, const struct range_query *q)
{
	return s->process == q->process && s->tid == q->tid;
}

static bool begun(const struct span *s, const struct range_query *q)
{
	if (s->process != q->process)
		return s->process < q->process;
	if (s->tid != q->tid)
		return s->tid < q->tid;
	return s->ticks <= q->ticks;
}

static uint32_t leave_ended(const struct spans *s, uint32_t top, uint64_t ticks)
{
	while (top != NONE && s->spans.v[top].end <= ticks)
		top = s->spans.v[top].parent;
	return top;
}

static uint32_t enter(struct spans *s, uint32_t i, uint32_t top)
{
	struct span *new = &s->spans.v[i];
	const struct span *old = top == NONE ? NULL : &s->spans.v[top];
	const bool same = old && old->process == new->process && old->tid == new->tid;
	new->parent = same ? leave_ended(s, top, new->ticks) : NONE;
	return i;
}

static void answer(struct spans *s, struct range_query *v, size_t n)
{
	uint32_t top = NONE;
	size_t next = 0;
	for (size_t i = 0; i < n; i++) {
		while (next < s->spans.n && begun(&s->spans.v[next], &v[i]))
			top = enter(s, (uint32_t)next++, top);
		if (top != NONE && !same_thread(&s->spans.v[top], &v[i]))
			top = NONE;
		top = leave_ended(s, top, v[i].ticks);
		v[i].name = top == NONE ? META_NONE : s->spans.v[top].name;
	}
}

int ranges_name(
	const struct trace *t, const struct meta *m, struct range_query *v, size_t n, bool *ret_any)
{
	struct spans s = { 0 };
	*ret_any = false;
	if (!n)
		return 0;
	const int e = take_chunks(t, m, &s);
	*ret_any = s.spans.n;
	if (s.spans.n)
		qsort(s.spans.v, s.spans.n, sizeof(*s.spans.v), span_order);
	qsort(v, n, sizeof(*v), query_order);
	answer(&s, v, n);
	array_free(&s.spans);
	chunk_buf_fini(&s.buf);
	return e;
}
