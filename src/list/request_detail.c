/* Sections about the one request that somebody asks for: what it waited for, and what ran then. */
#include "list/lists.h"

#include "base/sort.h"
#include "model/request_times.h"
#include "section/shared_columns.h"

static const struct request_row *asked(const struct report *r)
{
	return r->request == REQUEST_NONE ? NULL : &r->requests->v.v[r->request];
}

static const struct batch_row *batch_of(const struct report *r)
{
	const struct request_row *q = asked(r);
	return q && q->batch != BATCH_NONE ? &r->requests->batches.v[q->batch] : NULL;
}

static struct value name_at(const struct row *row, uint32_t name)
{
	return name == META_NONE ? value_null() : value_text(rows_name(row->rows, name));
}

static void make_behind(struct rows *rows)
{
	struct behinds behind = { 0 };
	const struct request_row *q = asked(rows->r);
	rows->absent = !q;
	if (q)
		request_behind(rows->r->requests, q, &behind);
	rows_own(rows, behind.v.v, behind.v.n, sizeof *behind.v.v);
}

GETTER(get_model, struct behind, it, name_at(row, it->model))

static const struct column behind_columns[] = {
	{ "model", UNIT_TEXT, "model", "its batches ran", .get = get_model },
	{ "batches", UNIT_COUNT, "batches", "of it that ran while the request was queued",
		MEMBER(struct behind, batches), .sums = true },
	{ "ns", UNIT_NS, "time", "how long those ran meanwhile", MEMBER(struct behind, ns),
		.sums = true },
	{ 0 },
};

const struct section section_request_behind = {
	.name = "request_behind",
	.heading = "It was queued behind",
	.about =
		"Models whose batches ran while the request of `--request` was queued, that of most time first.",
	.of = OF_REQUEST,
	.facets = FACET(REQUESTS),
	.columns = behind_columns,
	.make = make_behind,
	.asked = true,
};

static void make_trace(struct rows *rows)
{
	const struct batch_row *b = batch_of(rows->r);
	const struct batch_activity *v = rows->r->requests->activities.v;
	rows->absent = !asked(rows->r);
	rows_take(rows, b ? v + b->first : NULL, b ? b->count : 0, sizeof *v);
}

static struct value get_since_byte(const struct row *row, const void *of)
{
	const uint64_t from = asked(row->r)->q.ns[REQUEST_BEGAN], at = *(const uint64_t *)of;
	return value_u64_if(at >= from, at - from);
}

GETTER(get_duration, struct gpu_activity, w, value_u64(w->end_ns - w->start_ns))
GETTER(get_name, struct batch_activity, a,
	value_text(a->w.name ? rows_string(row->rows, a->process, a->w.name) : NULL))

#define HAS(name, bit) FINDER(name, struct batch_activity, a, a->w.valid &(bit) ? a : NULL)
HAS(has_device, GPU_HAS_DEVICE)
HAS(has_stream, GPU_HAS_STREAM)
HAS(has_shape, GPU_HAS_SHAPE)
HAS(has_bytes, GPU_HAS_BYTES)

#define W(member) AT(struct batch_activity, w.member)

static const struct column trace_columns[] = {
	{ "since_ns", UNIT_NS, "since its first byte",
		"when it began, from the request's first byte", .get = get_since_byte,
		W(start_ns) },
	{ "duration_ns", UNIT_NS, "time", "how long it took on the device", .get = get_duration,
		.sums = true, AT(struct batch_activity, w) },
	{ "kind", UNIT_TEXT, "kind", "`kernel`, `memcpy`, `memset`, `graph`",
		.get = get_activity_kind, W(kind) },
	{ "start_ns", UNIT_MOMENT, "at", "when it began on the device", .get = get_since_start,
		W(start_ns) },
	{ "device", UNIT_ID, "device", "device", .get = get_u32, .find = has_device, W(device) },
	{ "stream", UNIT_ID, "stream", "stream", .get = get_u32, .find = has_stream, W(stream) },
	{ "grid", UNIT_DIM3, "grid", "x, y, z", .get = get_dim3, .find = has_shape, W(grid) },
	{ "block", UNIT_DIM3, "block", "x, y, z", .get = get_dim3, .find = has_shape, W(block) },
	{ "bytes", UNIT_BYTES, "bytes", "copied or set", .get = get_u64, .find = has_bytes,
		W(bytes), .sums = true },
	{ "name", UNIT_KERNEL, "name", "its name", .get = get_name },
	{ 0 },
};

const struct section section_request_gpu_trace = {
	.name = "request_gpu_trace",
	.heading = "GPU activities of its batch",
	.about =
		"The GPU activities of the batch of the request of `--request`, in the order of their start.",
	.of = OF_REQUEST_WORK,
	.facets = FACET(REQUESTS),
	.columns = trace_columns,
	.make = make_trace,
	.asked = true,
	.series = true,
	.shown = "since_ns,duration_ns,kind,stream,grid,block,bytes,name",
};

struct beside_row {
	uint32_t process, name, model; /* name: a string of the process; model: or META_NONE */
	uint16_t kind;
	uint64_t count, ns;
};

struct besides {
	const struct requests *requests;
	ARRAY(struct beside_row) v;
};

static void add_beside(void *context, const struct batch_activity *a, uint64_t from, uint64_t to)
{
	struct besides *all = context;
	const uint32_t model =
		a->batch == BATCH_NONE ? META_NONE : all->requests->batches.v[a->batch].model;
	array_each(struct beside_row, b, all->v) {
		if (b->process != a->process || b->name != a->w.name || b->kind != a->w.kind ||
			b->model != model)
			continue;
		b->count++;
		b->ns += to - from;
		return;
	}
	*array_push(&all->v) =
		(struct beside_row){ a->process, a->w.name, model, a->w.kind, 1, to - from };
}

ORDERING(beside_order, struct beside_row, ORDER(b->ns, a->ns), ORDER(a->process, b->process),
	ORDER(a->name, b->name))

static void make_beside(struct rows *rows)
{
	const struct report *r = rows->r;
	const struct batch_row *b = batch_of(r);
	struct besides all = { .requests = r->requests };
	rows->absent = !asked(r);
	if (b && b->on)
		requests_beside(r->requests, b->on, b->to, asked(r)->batch, add_beside, &all);
	SORT(all.v, beside_order);
	rows_own(rows, all.v.v, all.v.n, sizeof *all.v.v);
}

GETTER(get_beside_name, struct beside_row, b,
	value_text(b->name ? rows_string(row->rows, b->process, b->name) : NULL))
GETTER(get_beside_model, struct beside_row, it, name_at(row, it->model))
GETTER(get_beside_kind, struct beside_row, it, value_text(activity_kind_name(it->kind)))

static const struct column beside_columns[] = {
	{ "count", UNIT_COUNT, "count", "of such activities", MEMBER(struct beside_row, count),
		.sums = true },
	{ "ns", UNIT_NS, "time", "that those ran while the batch was on the device",
		MEMBER(struct beside_row, ns), .sums = true },
	{ "kind", UNIT_TEXT, "kind", "`kernel`, `memcpy`, `memset`, `graph`",
		.get = get_beside_kind },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct beside_row, process) },
	{ "model", UNIT_TEXT, "model", "of the batch that it ran for; null: for none",
		.get = get_beside_model },
	{ "name", UNIT_KERNEL, "name", "its name", .get = get_beside_name },
	{ 0 },
};

const struct section section_request_beside = {
	.name = "request_beside",
	.heading = "Work of others beside it",
	.about =
		"The GPU activities of others in the recording while the batch of the request of `--request` was on the device, by name.",
	.of = OF_REQUEST_WORK,
	.facets = FACET(REQUESTS),
	.columns = beside_columns,
	.make = make_beside,
	.asked = true,
};
