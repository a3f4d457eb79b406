/*
 * Each call of the host, in the order in which calls began: see event_lists.h.  A call of the
 * runtime and those that it made of the driver have a row each; `caller` tells them apart.
 */
#include "report/lister.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sort.h"
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
