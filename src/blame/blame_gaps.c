/*
 * Finds the culprits of idle gaps. The thread that launched the next activity is examined. Its call
 * with most of the gap is to blame if it has a quarter of the gap or calls are the cause.
 *
 * If calls are nested, the inner one counts, unless most of the time is the outer one's own. The
 * ranges are those around that call. Without such a call they are those in the middle of the
 * thread's time before the launch.
 */
#include "blame/blame.h"

#include <stdlib.h>

#include "base/search.h"
#include "base/sort.h"
#include "model/report.h"
#include "trace/thread_calls.h"

struct candidate {             /* a call */
	uint64_t from, to, ns; /* ns: of the gap, in ticks */
	uint16_t fn;
};

struct gap { /* in ticks; gaps of a thread do not overlap */
	uint64_t from, to;
	uint32_t process, tid;
	uint32_t index; /* into idle_gaps */
	struct candidate best;
};

struct gaps {
	struct report *r;
	ARRAY(struct gap) v; /* by process, thread and time */
};

/* The first tick at which the clock shows that time, of those before `last`. */
static uint64_t ticks_at(const struct trace *t, uint64_t ns, uint64_t last)
{
	return SEARCH(k, t->header.start.ticks, last, trace_ns(t, k) < ns);
}

ORDERING(gap_order, struct gap, ORDER(a->process, b->process), ORDER(a->tid, b->tid),
	ORDER(a->from, b->from))

static void take_gaps(struct gaps *g)
{
	const struct report *r = g->r;
	const uint64_t last =
		r->trace->last_ticks > r->last_ticks ? r->trace->last_ticks : r->last_ticks;
	for (uint32_t i = 0; i < r->analysis.idle_gaps.n; i++) {
		const struct idle_gap *p = &r->analysis.idle_gaps.v[i];
		const struct call_link *l = p->link < r->links.v.n ? &r->links.v.v[p->link] : NULL;
		if (!l)
			continue;
		struct gap *to = array_push(&g->v);
		const uint64_t from_ns = r->analysis.start_ns + p->start_ns;
		*to = (struct gap){ .from = ticks_at(r->trace, from_ns, last + 1),
			.to = ticks_at(r->trace, from_ns + p->ns, last + 1),
			.process = l->process,
			.tid = l->tid,
			.index = i };
	}
	SORT(g->v, gap_order);
}

static bool contains(const struct candidate *outer, const struct candidate *inner)
{
	return outer->from <= inner->from && outer->to >= inner->to;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (contains(b, a))
		return 2 * a->ns >= b->ns;
	if (contains(a, b))
		return a->ns > 2 * b->ns;
	return a->ns > b->ns;
}

static size_t first_gap(const struct gaps *g, uint32_t process, uint32_t tid, uint64_t ticks)
{
	const struct gap *v = g->v.v;
	return SEARCH(k, 0, g->v.n,
		v[k].process < process ||
			(v[k].process == process &&
				(v[k].tid < tid || (v[k].tid == tid && v[k].to <= ticks))));
}

static void take_call(
	struct gaps *g, uint32_t process, uint32_t tid, size_t first, const struct record *c)
{
	struct candidate a = { .from = c->ticks, .to = record_end(c), .fn = c->fn };
	for (size_t i = first; i < g->v.n; i++) {
		struct gap *p = &g->v.v[i];
		if (p->process != process || p->tid != tid || p->from >= a.to)
			break;
		if (p->to <= a.from)
			continue;
		a.ns = (a.to < p->to ? a.to : p->to) - (a.from > p->from ? a.from : p->from);
		if (!p->best.ns || is_better(&a, &p->best))
			p->best = a;
	}
}

static int take_chunk(struct gaps *g, size_t chunk, struct chunk_buf *buf)
{
	const struct trace *t = g->r->trace;
	const int e = trace_load(t, chunk, buf, NULL);
	if (e)
		return trace_lost(e) ? 0 : e;
	struct records it = records_of(buf);
	for (const struct record *c; (c = records_next(&it));)
		if (schema_is_call(&t->schema, c->fn))
			take_call(g, buf->ref->process, buf->ref->head.tid,
				first_gap(g, buf->ref->process, buf->ref->head.tid, c->ticks), c);
	return 0;
}

/* Calls stand where they ended: in the chunks that were open during a gap, and the one behind.  The
 * times of chunks are those of the whole, so of a part all are looked at. */
static bool may_have(const struct gaps *g, const struct thread_chunks *list, size_t i)
{
	const struct trace *t = g->r->trace;
	const struct chunk_ref *c = &t->chunks[list->v.v[i]];
	const struct chunk_ref *before = i ? &t->chunks[list->v.v[i - 1]] : NULL,
			       *next = i + 1 < list->v.n ? &t->chunks[list->v.v[i + 1]] : NULL;
	const bool has_before = before && before->process == c->process &&
				before->head.tid == c->head.tid,
		   has_next = next && next->process == c->process && next->head.tid == c->head.tid;
	const uint64_t from = has_before && !t->parts.n ? before->head.open.ticks : 0,
		       to = has_next && !t->parts.n && next->head.open.ticks ? next->head.open.ticks
									     : UINT64_MAX;
	const size_t k = first_gap(g, c->process, c->head.tid, from);
	return k < g->v.n && g->v.v[k].process == c->process && g->v.v[k].tid == c->head.tid &&
	       g->v.v[k].from <= to;
}

static int take_calls(struct gaps *g)
{
	struct thread_chunks list;
	struct chunk_buf buf = { 0 };
	trace_thread_chunks(g->r->trace, false, &list);
	int e = 0;
	for (size_t i = 0; i < list.v.n && !e; i++)
		if (may_have(g, &list, i))
			e = take_chunk(g, list.v.v[i], &buf);
	array_free(&list.v);
	chunk_buf_fini(&buf);
	return e;
}

/* Activities that were queued wait for the device, not for the thread.  If calls are the cause, the
 * longest is to blame, however many there are. */
static bool has_culprit(const struct gap *p, const struct idle_gap *of)
{
	const bool calls = of->cause == WALL_DRIVER || of->cause == WALL_WAITING;
	return of->cause != WALL_QUEUED && p->best.ns &&
	       (calls || 4 * p->best.ns >= p->to - p->from);
}

static uint64_t moment_of(const struct gap *p, const struct idle_gap *of, uint64_t launch)
{
	if (has_culprit(p, of))
		return p->best.from;
	const uint64_t until = launch < p->to ? launch : p->to;
	return until > p->from ? p->from + (until - p->from) / 2 : launch;
}

static void put_culprit(
	struct report *r, const struct gap *p, const struct blame *at, const struct blame *began)
{
	struct idle_gap *of = &r->analysis.idle_gaps.v[p->index];
	struct idle_culprit *to = &of->culprit;
	to->operator= at->operator;
	to->module = at->module;
	to->line = at->line;
	to->began_in = began->operator;
	if (!has_culprit(p, of))
		return;
	to->call_fn = p->best.fn;
	to->call_ns = trace_span_ns(r->trace, p->best.ns);
	to->call_ns = to->call_ns < of->ns ? to->call_ns : of->ns;
	if (r->stacks)
		to->stack = stacks_find(r->stacks, p->process, p->tid, p->best.from);
}

static int take_ranges(struct gaps *g)
{
	struct report *r = g->r;
	struct blame *v = xcalloc(2 * g->v.n + 1, sizeof *v), *began = v + g->v.n;
	for (size_t i = 0; i < g->v.n; i++) {
		const struct gap *p = &g->v.v[i];
		const struct idle_gap *of = &r->analysis.idle_gaps.v[p->index];
		const uint64_t launch = r->links.v.v[of->link].ticks;
		v[i] = (struct blame){
			.ticks = moment_of(p, of, launch), .process = p->process, .tid = p->tid
		};
		began[i] = v[i];
		began[i].ticks = launch;
	}
	const int e = blame_find(r->trace, &r->meta, v, 2 * g->v.n);
	for (size_t i = 0; i < g->v.n && !e; i++)
		put_culprit(r, &g->v.v[i], &v[i], &began[i]);
	free(v);
	return e;
}

int blame_gaps(struct report *r)
{
	struct gaps g = { .r = r };
	take_gaps(&g);
	int e = 0;
	if (g.v.n)
		e = take_calls(&g);
	if (!e && g.v.n)
		e = take_ranges(&g);
	array_free(&g.v);
	return e;
}
