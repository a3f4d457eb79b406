/* Finds the state of a host thread at a moment. */
#include "model/host_time.h"

#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "trace/thread_calls.h"

/* A call of a thread, in ticks. */
struct call {
	uint64_t start, end;
	uint16_t fn;
	bool inner; /* inside the one that stands behind it */
};

struct maker {
	const struct trace *trace;
	struct host_time *h;
	struct chunk_buf buf;
	ARRAY(struct call) calls; /* of one chunk */
	uint8_t *traits;          /* by function id: enum trait */
};

enum trait { WAITS = 1, LAUNCHES = 2, COPIES = 4, ALLOCATES = 8, LOADS = 16 };

static uint8_t traits_of(const struct schema_fn *fn)
{
	const bool copies = fn->kind == CALL_COPY;
	const bool launches = fn->kind == CALL_LAUNCH || fn->kind == CALL_RTLAUNCH ||
			      fn->kind == CALL_GRAPHLAUNCH || !strcmp(fn->class, "launch");
	const bool loads = !strcmp(fn->class, "module") || !strcmp(fn->class, "context");
	return (schema_blocks(fn) ? WAITS : 0) | (launches ? LAUNCHES : 0) |
	       (copies || !strcmp(fn->class, "copy") ? COPIES : 0) |
	       (strcmp(fn->class, "memory") ? 0 : ALLOCATES) | (loads ? LOADS : 0);
}

static void find_traits(struct maker *m)
{
	const struct schema *s = &m->trace->schema;
	m->traits = xcalloc(s->id_count + 1, 1);
	for (uint32_t id = 0; id < s->id_count; id++) {
		const struct schema_fn *fn = schema_find(s, id);
		m->traits[id] = fn ? traits_of(fn) : 0;
	}
}

static enum host_state state_of(const struct maker *m, const struct call *c, uint64_t ns)
{
	const uint8_t traits = c->fn < m->trace->schema.id_count ? m->traits[c->fn] : 0;
	if (traits & WAITS)
		return HOST_WAITING;
	const bool brief = ns < HOST_GAP_NS;
	if (traits & ALLOCATES)
		return brief ? HOST_ALLOCATING : HOST_LONG_ALLOC;
	if (traits & LOADS)
		return brief ? HOST_LOADING : HOST_LONG_LOAD;
	if (brief && traits & COPIES)
		return HOST_COPYING;
	if (brief || traits & LAUNCHES)
		return HOST_LAUNCHING;
	/* A copy that takes long has waited: for memory that is not pinned, or for room. */
	return traits & COPIES ? HOST_WAITING : HOST_DRIVER;
}

/* Grows the last span, or begins another. */
static void put_span(
	struct host_thread *thread, uint64_t start, uint64_t end, enum host_state state)
{
	struct host_span *last = thread->spans.n ? &thread->spans.v[thread->spans.n - 1] : NULL;
	if (last && last->end_ns > start)
		start = last->end_ns;
	if (start >= end)
		return;
	expect(!last || last->end_ns <= start, "what a thread did comes in the order of time");
	if (last && last->end_ns == start && last->state == state) {
		last->end_ns = end;
		return;
	}
	struct host_span *new = array_push(&thread->spans);
	*new = (struct host_span){ .start_ns = start, .end_ns = end, .state = (uint8_t)state };
}

static void put_call(struct maker *m, struct host_thread *thread, const struct call *c)
{
	const uint64_t start = trace_ns(m->trace, c->start), end = trace_ns(m->trace, c->end);
	const enum host_state state = state_of(m, c, end > start ? end - start : 0);
	const struct host_span *last =
		thread->spans.n ? &thread->spans.v[thread->spans.n - 1] : NULL;
	if (last && start > last->end_ns && start - last->end_ns < HOST_GAP_NS)
		put_span(thread, last->end_ns, start, HOST_LAUNCHING);
	put_span(thread, start, end, state);
}

/* Calls stand in the order of their ends, so what is inside a call stands before it. */
static void mark_inner(struct maker *m)
{
	uint64_t outer = UINT64_MAX;
	for (size_t i = m->calls.n; i-- > 0;) {
		struct call *c = &m->calls.v[i];
		c->inner = c->start >= outer;
		if (!c->inner)
			outer = c->start;
	}
}

static void read_calls(struct maker *m)
{
	struct records it = records_of(&m->buf);
	m->calls.n = 0;
	for (const struct record *r; (r = records_next(&it));) {
		if (!schema_is_call(&m->trace->schema, r->fn))
			continue;
		*array_push(&m->calls) =
			(struct call){ .start = r->ticks, .end = record_end(r), .fn = r->fn };
	}
	mark_inner(m);
}

static int take_chunk(struct maker *m, size_t chunk, struct host_thread *thread)
{
	int e = trace_load(m->trace, chunk, &m->buf, NULL);
	if (e)
		return 0;
	read_calls(m);
	for (size_t i = 0; i < m->calls.n && !e; i++)
		if (!m->calls.v[i].inner)
			put_call(m, thread, &m->calls.v[i]);
	return e;
}

static int take_chunks(struct maker *m, const struct map *threads)
{
	struct thread_chunks list;
	trace_thread_chunks(m->trace, false, &list);
	int e = 0;
	for (size_t i = 0; i < list.v.n && !e; i++) {
		const struct chunk_ref *c = &m->trace->chunks[list.v.v[i]];
		const uint32_t thread = map_find(threads, MAP_KEY(c->process, c->head.tid));
		if (thread != MAP_NONE)
			e = take_chunk(m, list.v.v[i], &m->h->threads.v[thread]);
	}
	array_free(&list.v);
	return e;
}

static int make(struct maker *m, const struct map *threads, size_t count)
{
	array_reserve(&m->h->threads, count);
	for (size_t i = 0; i < count; i++)
		m->h->threads.v[m->h->threads.n++] = (struct host_thread){ 0 };
	find_traits(m);
	return take_chunks(m, threads);
}

int host_time_make(
	const struct trace *t, const struct map *threads, size_t count, struct host_time *ret_h)
{
	struct maker m = { .trace = t, .h = ret_h };
	*ret_h = (struct host_time){ 0 };
	const int e = make(&m, threads, count);
	chunk_buf_fini(&m.buf);
	array_free(&m.calls);
	free(m.traits);
	return e;
}

void host_time_fini(struct host_time *h)
{
	for (size_t i = 0; i < h->threads.n; i++)
		array_free(&h->threads.v[i].spans);
	array_free(&h->threads);
}

void host_time_split(
	struct host_time *h, uint32_t thread, uint64_t from, uint64_t to, uint64_t ns[HOST_STATES])
{
	struct host_thread *t = &h->threads.v[thread];
	while (t->cursor < t->spans.n && t->spans.v[t->cursor].end_ns <= from)
		t->cursor++;
	for (size_t i = t->cursor; i < t->spans.n && from < to; i++) {
		const struct host_span *s = &t->spans.v[i];
		if (s->start_ns >= to)
			break;
		const uint64_t start = MAX(s->start_ns, from);
		const uint64_t end = MIN(s->end_ns, to);
		ns[HOST_ELSEWHERE] += start - from;
		ns[s->state] += end - start;
		from = end;
	}
	if (from < to)
		ns[HOST_ELSEWHERE] += to - from;
	expect(t->cursor <= t->spans.n, "the cursor stays among the spans");
}

/* The first span that ends later. */
static size_t span_after(const struct host_thread *t, uint64_t ns)
{
	return SEARCH(i, 0, t->spans.n, t->spans.v[i].end_ns <= ns);
}

enum host_state host_time_state(const struct host_time *h, uint32_t thread, uint64_t ns)
{
	const struct host_thread *t = &h->threads.v[thread];
	const size_t at = span_after(t, ns);
	const bool inside = at < t->spans.n && t->spans.v[at].start_ns <= ns;
	return inside ? (enum host_state)t->spans.v[at].state : HOST_ELSEWHERE;
}
