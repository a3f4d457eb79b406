/*
 * Sections api_trace, each call of the host in the order in which they began, and waits, those that
 * wait for the GPU.  A call of the runtime and those that it made of the driver have a row each.
 * `caller` tells them apart.
 */
#include "list/device_events.h"
#include "list/lists.h"
#include "section/shared_columns.h"

#include "base/search.h"
#include "base/sort.h"
#include "model/host_time.h"

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

static struct call call_of(const struct report *r, const struct chunk_ref *of,
	const struct schema_fn *fn, const struct record *from)
{
	struct call c = { .at = { .ticks = from->ticks,
				  .end = record_end(from),
				  .process = of->process,
				  .tid = of->head.tid },
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

ORDERING(begin_order, struct call, ORDER(a->at.ticks, b->at.ticks),
	ORDER(a->at.process, b->at.process), ORDER(a->at.tid, b->at.tid),
	ORDER(b->at.end, a->at.end))

/* In the order of their begin, each with who made it. */
static int read_calls(const struct report *r, struct calls *calls)
{
	struct cursor at = { .t = r->trace };
	for (const struct record *from; (from = trace_next_call(&at));)
		if (schema_is_call(&at.t->schema, from->fn))
			*array_push(&calls->v) =
				call_of(r, at.ref, schema_find(&at.t->schema, from->fn), from);
	if (at.error)
		return at.error;
	if (calls->v.n >= NESTED_NONE)
		return -EOVERFLOW;
	NESTED(calls->v);
	array_each(struct call, c, calls->v) {
		c->has_caller = c->at.parent != NESTED_NONE;
		c->caller = c->has_caller ? calls->v.v[c->at.parent].fn : 0;
	}
	SORT(calls->v, begin_order);
	links_by_call(&r->links, &calls->links);
	return 0;
}

MAKER(make_calls, struct calls, read_calls(rows->r, own))

static void free_calls(struct rows *rows)
{
	struct calls *calls = rows->own;
	array_free(&calls->v, &calls->links.v);
	free(calls);
}

GETTER(get_start, struct call, c,
	value_u64(rows_since(row->rows, trace_ns(row->r->trace, c->at.ticks))))

static struct value get_duration(const struct row *row, const void *of)
{
	const struct call *c = of;
	const uint64_t begin = trace_ns(row->r->trace, c->at.ticks),
		       end = trace_ns(row->r->trace, c->at.end);
	return value_u64(end > begin ? end - begin : 0);
}

static const struct schema_fn *function_of(const struct row *row, const struct call *c)
{
	return schema_find(&row->r->trace->schema, c->fn);
}

GETTER(get_api, void, of, value_text(schema_api_name(function_of(row, of))))

static struct value get_class(const struct row *row, const void *of)
{
	const struct schema_fn *fn = function_of(row, of);
	return value_text(fn ? fn->class : NULL);
}

GETTER(get_name, struct call, it, function_name(row, it->fn))
GETTER(get_caller, struct call, c, c->has_caller ? function_name(row, c->caller) : value_null())
GETTER(get_error, struct call, c,
	value_text(c->result ? decode_result(function_of(row, c), c->result) : NULL))
GETTER(get_bytes, struct call, c, value_u64_if(c->has_bytes, c->bytes))
GETTER(get_kernel, struct call, c,
	value_text(c->kernel == META_NONE ? NULL : rows_name(row->rows, c->kernel)))

/* The shape of a launch. */
FINDER(call_shape, struct call, c, c->has_shape ? &c->shape : NULL)

/* The number that it shares with the GPU activities that it asked for. */
static struct value get_correlation(const struct row *row, const void *of)
{
	const struct call *c = of;
	const struct links_by_call *links = &((const struct calls *)row->rows->own)->links;
	const size_t from = links_from(links, c->at.process, c->at.tid, c->at.ticks);
	const struct call_link *l = links_until(links, from, c->at.process, c->at.tid, c->at.ticks);
	return l && l->fn == c->fn ? value_u64(l->correlation) : value_null();
}

static const struct column call_columns[] = {
	{ "start_ns", UNIT_MOMENT, "at", "when it began, on the host", .get = get_start },
	{ "duration_ns", UNIT_NS, "time", "how long it took, on the host", .get = get_duration },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct call, at.process) },
	{ "tid", UNIT_ID, "tid", "thread", MEMBER(struct call, at.tid) },
	{ "api", UNIT_TEXT, "api", "`driver`, `runtime`", .get = get_api },
	{ "class", UNIT_TEXT, "class", "as of `calls`", .get = get_class },
	{ "name", UNIT_TEXT, "function", "function", .get = get_name },
	{ "caller", UNIT_TEXT, "caller",
		"function that was running on this thread and made this call", .get = get_caller },
	{ "result", UNIT_ID, "result", "0: it succeeded", MEMBER(struct call, result) },
	{ "error", UNIT_TEXT, "error", "name of the result, where it is not 0", .get = get_error },
	{ "bytes", UNIT_BYTES, "bytes", "allocated, copied or set, of calls of the driver",
		.get = get_bytes },
	{ "kernel", UNIT_KERNEL, "kernel", "that it launched", .get = get_kernel },
	{ "grid", UNIT_DIM3, "grid", "of that", .find = call_shape,
		MEMBER(struct launch_shape, grid) },
	{ "block", UNIT_DIM3, "block", "of that", .find = call_shape,
		MEMBER(struct launch_shape, block) },
	{ "captured", UNIT_BOOL, "captured", "it went into a graph that was being captured",
		MEMBER(struct call, captured) },
	{ "correlation", UNIT_ID, "correlation",
		"as of the activities of `gpu_trace` that it asked for", .get = get_correlation },
	{ 0 },
};

const struct section section_api_trace = {
	.name = "api_trace",
	.heading = "Calls by time",
	.about =
		"Each call of the host to CUDA, in the order of their begin. Calls that were only counted (`--level=stat`) or lost are not here. The runtime calls the driver: both are here, and `caller` of the inner one is the outer one. So times of rows without `caller` add up to what the program spent in CUDA.",
	.of = OF_EVENTS,
	.facets = FACET(LINKS),
	.columns = call_columns,
	.make = make_calls,
	.fini = free_calls,
	.asked = true,
	.shown = "start_ns,duration_ns,pid,tid,api,bytes,result,error,kernel,caller,name",
	.note = "Each call has a row, of the runtime or of the driver.  The caller of a driver's call may be one of the runtime.  Result 0 is success.  Calls that are only counted, such as cudaGetDevice, have no row.  --only calls has them.",
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
	ARRAY(struct copied) copied; /* by process, thread and time */
	ARRAY(struct wait_row) v;
	struct map map;
};

static const char *const wait_name[] = { [WAIT_SYNC] = "synchronization",
	[WAIT_COPY] = "blocking copy",
	[WAIT_FREE] = "free",
	[WAIT_LONG_COPY] = "long copy" };

ORDERING(copied_order, struct copied, ORDER(a->process, b->process), ORDER(a->tid, b->tid),
	ORDER(a->ticks, b->ticks))

static int take_copied(const struct report *r, struct waits *waits)
{
	struct cursor at = { .t = r->trace };
	size_t hint = 0;
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const struct call_link *l =
			w.kind == GPU_MEMCPY ? links_of(&r->links, at.ref->process, &w, &hint)
					     : NULL;
		if (l)
			*array_push(&waits->copied) =
				(struct copied){ l->ticks, w.end_ns, l->process, l->tid };
	}
	SORT(waits->copied, copied_order);
	return at.error;
}

/* If an asynchronous copy took long, its activity tells until when the GPU copied. */
static int read_copied(const struct report *r, struct waits *waits)
{
	for (size_t i = 0; i < r->waits.n; i++)
		if (r->waits.v[i].kind == WAIT_LONG_COPY)
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
	if (c->kind != WAIT_LONG_COPY)
		return took;
	size_t i = SEARCH(k, 0, waits->copied.n, copied_order(&v[k], &key) < 0);
	for (; i < waits->copied.n && v[i].process == at->process && v[i].tid == at->tid &&
		v[i].ticks < at->end;
		i++)
		until = MAX(v[i].end_ns, until);
	return !until || until >= begin + took ? took : until > begin ? until - begin : 0;
}

static void add_wait(const struct report *r, struct waits *waits, const struct wait_call *c)
{
	const uint64_t ns = waited_ns(r, waits, c);
	if (c->kind == WAIT_LONG_COPY && ns < HOST_GAP_NS)
		return;
	struct wait_row *row = MAP_ROW(&waits->map, MAP_KEY(c->fn, c->kind), &waits->v,
		(struct wait_row){ .fn = c->fn, .wait = c->kind });
	values_add(&row->time, ns);
}

ORDERING(wait_order, struct wait_row, ORDER(b->time.total, a->time.total), ORDER(a->fn, b->fn))

static int count_waits(const struct report *r, struct waits *waits)
{
	const int e = read_copied(r, waits);
	for (size_t i = 0; i < r->waits.n && !e; i++)
		if (r->waits.v[i].at.parent == NESTED_NONE)
			add_wait(r, waits, &r->waits.v[i]);
	SORT(waits->v, wait_order);
	return e;
}

MAKER(make_waits, struct waits, count_waits(rows->r, own))

static void free_waits(struct rows *rows)
{
	struct waits *waits = rows->own;
	for (size_t i = 0; i < waits->v.n; i++)
		hist_fini(&waits->v.v[i].time.hist);
	array_free(&waits->copied, &waits->v);
	map_fini(&waits->map);
	free(waits);
}

GETTER(get_wait_name, struct wait_row, it, function_name(row, it->fn))
GETTER(get_wait_api, struct wait_row, w,
	value_text(schema_api_name(schema_find(&row->r->trace->schema, w->fn))))
GETTER(get_wait_kind, struct wait_row, it, value_text(wait_name[it->wait]))
GETTER(get_wait_share, struct wait_row, it, value_share(it->time.total, row->r->wall_ns))

static const struct column wait_columns[] = {
	{ "name", UNIT_TEXT, "function", "function", .get = get_wait_name },
	{ "api", UNIT_TEXT, "api", "`driver`, `runtime`", .get = get_wait_api },
	{ "kind", UNIT_TEXT, "kind",
		"`synchronization`; `blocking copy`; `free`: of memory, which waits until the GPU has "
		"done what it was given; `long copy`: an asynchronous one, until the GPU had copied "
		"where that is known, if that was 100 us or more, as copies of memory that is not "
		"pinned do",
		.get = get_wait_kind },
	{ "count", UNIT_COUNT, "calls", "calls", .get = get_values_count, AT(struct wait_row, time),
		.sums = true },
	{ "share_of_run", UNIT_SHARE, "of run",
		"sum of their times, of the wall time: with several threads it may be above 1",
		.get = get_wait_share, .sums = true },
	VALUES("wait", "", "time in the call", struct wait_row, time, true),
	{ 0 },
};

const struct section section_waits = {
	.name = "waits",
	.heading = "Calls that wait for the GPU",
	.about =
		"Functions whose calls return when the GPU has done something, and how long they took. If one of these calls made another one, as the runtime does, the outer one alone counts. So the rows add up.",
	.of = OF_WAITS,
	.facets = FACET(WAITS) | FACET(DEVICE), /* which knows how long the wall time is */
	.columns = wait_columns,
	.make = make_waits,
	.fini = free_waits,
	.asked = true,
	.shown = "wait_total_ns,share_of_run,count,wait_mean_ns,wait_p50_ns,wait_min_ns,"
		 "wait_max_ns,wait_stddev_ns,kind,api,name",
	.note = "These calls return when the GPU has done something: synchronizations, blocking copies and frees.  Asynchronous copies are here if the call lasted 100 us or more until the GPU had copied.  A call inside another one counts with that.  Shares are of the wall time that is read, start-up included.  --steady or --steps N-M leaves out start-up.",
};
