/*
 * Collects for the critical path each thread's outermost calls, begins and ends of ranges, and
 * calls that order streams. One pass over all calls of a trace finds them.
 */
#include "path/causes.h"

#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "trace/thread_calls.h"
#include "trace/trace.h"

/* The reader's knowledge of a function: by its id. */
struct trait {
	int8_t order;                   /* enum order_kind, or -1 */
	int8_t stream_word, event_word; /* of the arguments, or -1 */
	uint8_t mark;                   /* enum mark_kind */
};

struct reader {
	struct host *h;
	const struct trace *t;
	struct chunk_buf buf;
	struct trait *traits;
	bool launches; /* streams are told apart by the handles that launches were given */
};

static int order_of(const struct schema_fn *fn)
{
	static const struct {
		const char *name;
		enum order_kind kind;
	} kinds[] = {
		{ "EventRecord", ORDER_RECORD },
		{ "StreamWaitEvent", ORDER_WAIT_EVENT },
		{ "LaunchHostFunc", ORDER_HOST_FUNCTION },
		{ "StreamAddCallback", ORDER_HOST_FUNCTION },
		{ "StreamSynchronize", ORDER_SYNC_STREAM },
		{ "EventSynchronize", ORDER_SYNC_EVENT },
		{ "CtxSynchronize", ORDER_SYNC_ALL },
		{ "DeviceSynchronize", ORDER_SYNC_ALL },
	};
	const char *name = fn->name + (strncmp(fn->name, "cuda", 4) ? 2 : 4);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strncmp(name, kinds[i].name, strlen(kinds[i].name)))
			return kinds[i].kind;
	const bool launches = fn->launch_layout || fn->kind == CALL_GRAPHLAUNCH ||
			      fn->kind == CALL_COPY || fn->kind == CALL_SET;
	return launches ? ORDER_LAUNCH : -1;
}

static int8_t word_of(const struct schema_fn *fn, const char *one, const char *two)
{
	for (uint16_t i = 0; i < fn->arg_count; i++)
		if (fn->args[i].words && fn->args[i].first < INT8_MAX &&
			(!strcmp(fn->args[i].type, one) || !strcmp(fn->args[i].type, two)))
			return (int8_t)fn->args[i].first;
	return -1;
}

static struct trait trait_of(const struct schema_fn *fn)
{
	return (struct trait){ .order = (int8_t)order_of(fn),
		.stream_word =
			fn->launch_layout ? LAUNCH_STREAM : word_of(fn, "CUstream", "cudaStream_t"),
		.event_word = word_of(fn, "CUevent", "cudaEvent_t"),
		.mark = schema_blocks(fn) ? MARK_WAIT
			: !strcmp(fn->class, "memory") || fn->kind == CALL_COPY ||
					!strcmp(fn->class, "copy")
				? MARK_MAY_WAIT
				: MARK_CALL };
}

static void find_traits(struct reader *r)
{
	const struct schema *s = &r->t->schema;
	r->traits = xcalloc(s->id_count + 1, sizeof *r->traits);
	for (uint32_t id = 0; id < s->id_count; id++) {
		const struct schema_fn *fn = schema_find(s, id);
		r->traits[id] = fn ? trait_of(fn) : (struct trait){ -1, -1, -1, MARK_CALL };
	}
}

/* Calls come in the order of their ends: those that are inside one came before it. */
static void put_mark(struct lane *lane, struct mark m)
{
	while (lane->marks.n && lane->marks.v[lane->marks.n - 1].start_ns >= m.start_ns)
		lane->marks.n--;
	const struct mark *last = lane->marks.n ? &lane->marks.v[lane->marks.n - 1] : NULL;
	if (last && last->end_ns > m.start_ns)
		m.start_ns = MIN(last->end_ns, m.end_ns);
	*array_push(&lane->marks) = m;
}

static uint64_t word(const struct record *r, int8_t at)
{
	return at >= 0 && r->words > RECORD_WORDS + at ? r->arg[at] : UINT64_MAX;
}

static void put_order(struct reader *r, const struct record *c, const struct trait *t,
	uint32_t thread, uint64_t start_ns)
{
	if (t->order < 0 || c->flags & RECORD_CAPTURED ||
		(t->order == ORDER_LAUNCH && !r->launches))
		return;
	*array_push(&r->h->orders) = (struct order){ .start_ns = start_ns,
		.stream = word(c, t->stream_word),
		.event = word(c, t->event_word),
		.number = NO_STREAM,
		.thread = thread,
		.kind = (uint8_t)t->order };
}

static void take_chunk(struct reader *r, uint32_t thread)
{
	static const struct trait plain = { -1, -1, -1, MARK_CALL };
	struct lane *lane = &r->h->lanes.v[thread];
	struct records it = records_of(&r->buf);
	for (const struct record *c; (c = records_next(&it));) {
		if (!schema_is_call(&r->t->schema, c->fn))
			continue;
		const struct trait *t = c->fn < r->t->schema.id_count ? &r->traits[c->fn] : &plain;
		const uint64_t start = trace_ns(r->t, c->ticks);
		const uint64_t end = trace_ns(r->t, record_end(c));
		put_mark(lane, (struct mark){ .start_ns = start,
				       .end_ns = MAX(end, start),
				       .thread = thread,
				       .activity = NONE,
				       .fn = c->fn,
				       .kind = t->mark });
		put_order(r, c, t, thread, start);
	}
}

static int take_chunks(struct reader *r)
{
	struct thread_chunks list;
	trace_thread_chunks(r->t, false, &list);
	int e = 0;
	for (size_t i = 0; i < list.v.n && !e; i++) {
		const struct chunk_ref *c = &r->t->chunks[list.v.v[i]];
		const uint32_t thread =
			map_find(r->h->in->threads, MAP_KEY(c->process, c->head.tid));
		if (thread == MAP_NONE)
			continue;
		r->h->lanes.v[thread].process = c->process;
		e = trace_load(r->t, list.v.v[i], &r->buf, NULL);
		if (!e)
			take_chunk(r, thread);
		else if (trace_lost(e))
			e = 0;
	}
	array_free(&list.v);
	return e;
}

/* Moments inside a call say nothing. */
static void merge_moments(struct lane *lane, const struct moment *v, size_t n)
{
	ARRAY(struct mark) all = { 0 };
	size_t i = 0, k = 0;
	array_reserve(&all, lane->marks.n + n);
	while (i < n || k < lane->marks.n) {
		const struct mark *call = k < lane->marks.n ? &lane->marks.v[k] : NULL;
		if (i == n || (call && call->start_ns <= v[i].ns)) {
			all.v[all.n++] = *call;
			k++;
			continue;
		}
		if (!all.n || all.v[all.n - 1].end_ns < v[i].ns)
			all.v[all.n++] = (struct mark){ .start_ns = v[i].ns,
				.end_ns = v[i].ns,
				.thread = v[i].thread,
				.activity = NONE };
		i++;
	}
	array_free(&lane->marks);
	memcpy(&lane->marks, &all, sizeof all);
}

static void take_moments(struct host *h)
{
	const struct timeline *t = h->in->t;
	for (size_t from = 0, to; from < t->moments.n; from = to) {
		const struct moment *v = &t->moments.v[from];
		for (to = from; to < t->moments.n && t->moments.v[to].thread == v->thread;)
			to++;
		if (expect(v->thread < h->in->thread_count, "a moment is a thread's"))
			merge_moments(&h->lanes.v[v->thread], v, to - from);
	}
}

/* Takes the waits of profilers, whose calls have no arguments. */
static void take_waits(struct host *h)
{
	const struct timeline *t = h->in->t;
	array_reserve(&h->orders, t->waits.n);
	for (size_t i = 0; i < t->waits.n; i++) {
		const struct caller *c = &t->calls.v[t->waits.v[i].call];
		h->orders.v[h->orders.n++] = (struct order){ .start_ns = c->start_ns,
			.stream = UINT64_MAX,
			.event = UINT64_MAX,
			.number = t->waits.v[i].stream,
			.thread = c->thread,
			.kind = ORDER_SYNC_STREAM };
	}
}

int host_read(struct host *h)
{
	struct reader r = { .h = h, .t = h->in->trace, .launches = h->in->t->stream_count > 1 };
	h->lane_of = xcalloc(h->in->thread_count + 1, sizeof *h->lane_of);
	array_reserve(&h->lanes, h->in->thread_count);
	for (uint32_t i = 0; i < h->in->thread_count; i++) {
		h->lane_of[i] = i;
		h->lanes.v[h->lanes.n++] = (struct lane){ .owner = NONE };
	}
	find_traits(&r);
	int e = take_chunks(&r);
	if (!e)
		take_moments(h);
	if (!e)
		take_waits(h);
	free(r.traits);
	chunk_buf_fini(&r.buf);
	return e;
}

uint32_t host_mark_at(const struct host *h, uint32_t lane, uint64_t ns)
{
	const struct lane *l = &h->lanes.v[lane];
	const size_t n = SEARCH(i, 0, l->marks.n, l->marks.v[i].start_ns <= ns);
	return n ? (uint32_t)(n - 1) : NONE;
}
