/*
 * Lists the calls of the host, each in the order of their begin. A runtime call and its driver
 * calls have a row each, and `caller` connects them.
 */
#include "report/lister.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/host_time.h"
#include "model/memory_op.h"
#include "model/nested.h"

#include "base/banned.h"

struct call {
	struct nested at;
	uint64_t bytes;
	uint32_t kernel; /* index into names; META_NONE */
	uint16_t fn, result;
	uint16_t caller; /* function of the call that made this one, with has_caller */
	bool has_caller, has_bytes, has_shape, captured;
	struct launch_shape shape;
};

struct calls {
	ARRAY(struct call) v;
	struct links_by_call links;
};

static struct call call_of(const struct report *r, const struct chunk_buf *buf,
	const struct schema_fn *fn, const struct record *from)
{
	struct call c = { .at = { .ticks = from->ticks,
				  .end = record_end(from),
				  .process = buf->ref->process,
				  .tid = buf->ref->head.tid },
		.fn = from->fn,
		.result = from->result,
		.captured = from->flags & RECORD_CAPTURED,
		.kernel = META_NONE };
	c.has_bytes = fn && schema_call_bytes(fn, from, &c.bytes);
	c.has_shape = fn && fn->launch_layout && decode_shape(from, &c.shape);
	if (c.has_shape)
		c.kernel = meta_find_kernel(
			&r->meta, c.at.process, from->arg[LAUNCH_FUNCTION], c.at.end);
	return c;
}

static int take_chunk(const struct report *r, const struct chunk_buf *buf, struct calls *calls)
{
	struct records it = records_of(buf);
	const struct record *from;
	while ((from = records_next(&it))) {
		if (!schema_is_call(&r->trace->schema, from->fn))
			continue;
		struct call *to = array_push(&calls->v);
		if (!to)
			return -ENOMEM;
		*to = call_of(r, buf, schema_find(&r->trace->schema, from->fn), from);
	}
	return 0;
}

static int begin_order(const void *one, const void *two)
{
	const struct nested *a = &((const struct call *)one)->at,
			    *b = &((const struct call *)two)->at;
	if (a->ticks != b->ticks)
		return ORDER(a->ticks, b->ticks);
	if (a->process != b->process || a->tid != b->tid)
		return a->process != b->process ? ORDER(a->process, b->process)
						: ORDER(a->tid, b->tid);
	return ORDER(b->end, a->end);
}

/* In the order of their begin, each with who made it. */
static int read_calls(const struct report *r, struct calls *calls)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int e;
	while ((e = trace_next(r->trace, CHUNK_EVENTS, &at, &buf, NULL)) > 0)
		if ((e = take_chunk(r, &buf, calls)))
			break;
	chunk_buf_fini(&buf);
	if (e)
		return e;
	if (calls->v.n >= NESTED_NONE)
		return -EOVERFLOW;
	NESTED(calls->v);
	for (size_t i = 0; i < calls->v.n; i++) {
		struct call *c = &calls->v.v[i];
		c->has_caller = c->at.parent != NESTED_NONE;
		c->caller = c->has_caller ? calls->v.v[c->at.parent].fn : 0;
	}
	SORT(calls->v, begin_order);
	return links_by_call(&r->links, &calls->links);
}

/* The number that it shares with the GPU activities that it asked for. */
static void put_correlation(struct json *j, const struct calls *calls, const struct call *c)
{
	const size_t from = links_from(&calls->links, c->at.process, c->at.tid, c->at.ticks);
	const struct call_link *l =
		links_until(&calls->links, from, c->at.process, c->at.tid, c->at.ticks);
	const bool own = l && l->fn == c->fn;
	json_u64_or_null(j, "correlation", own, own ? l->correlation : 0);
}

static void put_call(
	struct lister *l, struct json *j, const struct calls *calls, const struct call *c)
{
	const struct report *r = l->r;
	const struct schema_fn *fn = schema_find(&r->trace->schema, c->fn);
	const uint64_t begin = trace_ns(r->trace, c->at.ticks), end = trace_ns(r->trace, c->at.end);
	struct fn_name name, caller;
	json_u64(j, "start_ns", lister_since(l, begin));
	json_u64(j, "duration_ns", end > begin ? end - begin : 0);
	json_u64(j, "pid", r->trace->processes.v[c->at.process].pid);
	json_u64(j, "tid", c->at.tid);
	json_str(j, "api", schema_api_name(fn));
	json_str_or_null(j, "class", fn ? fn->class : NULL);
	json_str(j, "name", report_fn_name(r, c->fn, &name));
	json_str_or_null(j, "caller", c->has_caller ? report_fn_name(r, c->caller, &caller) : NULL);
	json_u64(j, "result", c->result);
	json_str_or_null(j, "error", c->result ? decode_result(r->decoder, fn, c->result) : NULL);
	json_u64_or_null(j, "bytes", c->has_bytes, c->bytes);
	json_str_or_null(j, "kernel", c->kernel == META_NONE ? NULL : lister_name(l, c->kernel));
	lister_put_triple(j, "grid", c->has_shape, c->shape.grid);
	lister_put_triple(j, "block", c->has_shape, c->shape.block);
	json_bool(j, "captured", c->captured);
	put_correlation(j, calls, c);
}

int list_calls(struct lister *l)
{
	struct calls calls = { 0 };
	int e = read_calls(l->r, &calls);
	for (size_t i = 0; i < calls.v.n && !e; i++) {
		put_call(l, lister_begin_row(l), &calls, &calls.v.v[i]);
		e = lister_end_row(l);
	}
	array_free(&calls.v);
	array_free(&calls.links.v);
	return e;
}

/* ---- those that wait for the GPU ---- */

/* Why a call returned late. */
enum wait_kind { WAIT_NONE, WAIT_SYNC, WAIT_COPY, WAIT_FREE, WAIT_LONG_COPY };

struct wait_call {
	struct nested at; /* among those that wait: one inside another has that as its parent */
	uint16_t fn;
	uint8_t wait;
};

/* When the GPU had copied what a call asked for. */
struct copied {
	uint64_t ticks; /* when the call began */
	uint64_t end_ns;
	uint32_t process, tid;
};

struct wait_row {
	uint16_t fn;
	uint8_t wait;
	struct values time;
};

struct waits {
	ARRAY(struct wait_call) calls;
	ARRAY(struct copied) copied; /* by process, thread and time */
	ARRAY(struct wait_row) v;
	struct map map;
};

static const char *const wait_name[] = { [WAIT_SYNC] = "synchronization",
	[WAIT_COPY] = "blocking copy",
	[WAIT_FREE] = "free",
	[WAIT_LONG_COPY] = "long copy" };

static enum wait_kind wait_of(const struct report *r, const struct schema_fn *fn, uint64_t ticks)
{
	const bool copies = fn && (fn->kind == CALL_COPY || !strcmp(fn->class, "copy"));
	if (!fn)
		return WAIT_NONE;
	if (schema_blocks(fn))
		return copies ? WAIT_COPY : WAIT_SYNC;
	if (memory_call_of(fn) == MEMORY_CALL_WAITS)
		return WAIT_FREE;
	return copies && trace_span_ns(r->trace, ticks) >= HOST_GAP_NS ? WAIT_LONG_COPY : WAIT_NONE;
}

static int take_waits(const struct report *r, const struct chunk_buf *buf, struct waits *waits)
{
	struct records it = records_of(buf);
	const struct record *from;
	while ((from = records_next(&it))) {
		const struct schema_fn *fn = schema_find(&r->trace->schema, from->fn);
		const enum wait_kind wait = wait_of(r, fn, from->dur);
		struct wait_call *to = wait ? array_push(&waits->calls) : NULL;
		if (to)
			*to = (struct wait_call){ .at = { .ticks = from->ticks,
							  .end = record_end(from),
							  .process = buf->ref->process,
							  .tid = buf->ref->head.tid },
				.fn = from->fn,
				.wait = (uint8_t)wait };
		else if (wait)
			return -ENOMEM;
	}
	return 0;
}

static int read_waits(const struct report *r, struct waits *waits)
{
	struct chunk_buf buf = { 0 };
	size_t at = 0;
	int e;
	while ((e = trace_next(r->trace, CHUNK_EVENTS, &at, &buf, NULL)) > 0)
		if ((e = take_waits(r, &buf, waits)))
			break;
	chunk_buf_fini(&buf);
	if (!e && waits->calls.n >= NESTED_NONE)
		e = -EOVERFLOW;
	if (!e)
		NESTED(waits->calls);
	return e;
}

static int copied_order(const void *one, const void *two)
{
	const struct copied *a = one, *b = two;
	if (a->process != b->process || a->tid != b->tid)
		return a->process != b->process ? ORDER(a->process, b->process)
						: ORDER(a->tid, b->tid);
	return ORDER(a->ticks, b->ticks);
}

static int take_copied(const struct report *r, struct waits *waits)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = r->trace, .buf = &buf };
	struct gpu_activity w;
	size_t hint = 0;
	int e;
	while ((e = trace_next_activity(&at, &w)) > 0) {
		const struct call_link *l =
			w.kind == GPU_MEMCPY ? links_of(&r->links, buf.ref->process, &w, &hint)
					     : NULL;
		struct copied *to = l ? array_push(&waits->copied) : NULL;
		if (to)
			*to = (struct copied){ l->ticks, w.end_ns, l->process, l->tid };
		else if (l) {
			e = -ENOMEM;
			break;
		}
	}
	chunk_buf_fini(&buf);
	SORT(waits->copied, copied_order);
	return e;
}

/* Where an asynchronous copy took long, it is needed to know until when the GPU copied. */
static int read_copied(const struct report *r, struct waits *waits)
{
	for (size_t i = 0; i < waits->calls.n; i++)
		if (waits->calls.v[i].wait == WAIT_LONG_COPY)
			return take_copied(r, waits);
	return 0;
}

/* A copy that returns late has waited until the GPU had copied, and not for what came then. */
static uint64_t waited_ns(
	const struct report *r, const struct waits *waits, const struct wait_call *c)
{
	const struct nested *at = &c->at;
	const struct copied key = { at->ticks, 0, at->process, at->tid };
	const uint64_t begin = trace_ns(r->trace, at->ticks),
		       took = trace_ns(r->trace, at->end) - begin;
	const struct copied *v = waits->copied.v;
	uint64_t until = 0;
	if (c->wait != WAIT_LONG_COPY)
		return took;
	size_t i = SEARCH(k, 0, waits->copied.n, copied_order(&v[k], &key) < 0);
	for (; i < waits->copied.n && v[i].process == at->process && v[i].tid == at->tid &&
		v[i].ticks < at->end;
		i++)
		until = v[i].end_ns > until ? v[i].end_ns : until;
	return !until || until >= begin + took ? took : until > begin ? until - begin : 0;
}

static int add_wait(struct lister *l, struct waits *waits, const struct wait_call *c)
{
	const uint64_t ns = waited_ns(l->r, waits, c);
	if (c->wait == WAIT_LONG_COPY && ns < HOST_GAP_NS)
		return 0;
	struct wait_row *row = MAP_ROW(&waits->map, MAP_KEY(c->fn, c->wait), &waits->v,
		(struct wait_row){ .fn = c->fn, .wait = c->wait });
	if (!row)
		return -ENOMEM;
	values_add(&row->time, ns);
	return 0;
}

static int wait_order(const void *one, const void *two)
{
	const struct wait_row *a = one, *b = two;
	return a->time.total != b->time.total ? ORDER(b->time.total, a->time.total)
					      : ORDER(a->fn, b->fn);
}

static int put_wait(struct lister *l, const struct wait_row *row)
{
	const struct report *r = l->r;
	struct json *j = lister_begin_row(l);
	struct fn_name name;
	json_str(j, "name", report_fn_name(r, row->fn, &name));
	json_str(j, "api", schema_api_name(schema_find(&r->trace->schema, row->fn)));
	json_str(j, "kind", wait_name[row->wait]);
	json_u64(j, "count", row->time.hist.count);
	json_put_real(
		j, "share_of_run", r->wall_ns ? (double)row->time.total / (double)r->wall_ns : NAN);
	values_put(j, "wait", &row->time);
	return lister_end_row(l);
}

int list_waits(struct lister *l)
{
	struct waits waits = { 0 };
	int e = read_waits(l->r, &waits);
	if (!e)
		e = read_copied(l->r, &waits);
	for (size_t i = 0; i < waits.calls.n && !e; i++)
		if (waits.calls.v[i].at.parent == NESTED_NONE)
			e = add_wait(l, &waits, &waits.calls.v[i]);
	SORT(waits.v, wait_order);
	for (size_t i = 0; i < waits.v.n && !e; i++)
		e = put_wait(l, &waits.v.v[i]);
	for (size_t i = 0; i < waits.v.n; i++)
		hist_fini(&waits.v.v[i].time.hist);
	array_free(&waits.calls);
	array_free(&waits.copied);
	array_free(&waits.v);
	map_fini(&waits.map);
	return e;
}
