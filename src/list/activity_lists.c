/*
 * Sections of device activities. gpu_trace has each in the order of their start, launch_gaps has
 * the wait from launch to kernel, and kernel_families groups kernels by their names.
 */
#include "list/device_events.h"
#include "list/lists.h"
#include "section/shared_columns.h"

#include "base/sort.h"
#include "predict/predict.h"

/* The list leaves out activities of the host and sums of others: no GPU did anything for them. */
static int read_own(const struct report *r, struct events *events)
{
	const int e = events_read(r, events);
	size_t n = 0;
	for (size_t i = 0; i < events->v.n; i++) {
		const uint16_t kind = events->v.v[i].w.kind;
		if (kind != GPU_SYNC && kind != GPU_SPAN)
			events->v.v[n++] = events->v.v[i];
	}
	events->v.n = n;
	return e;
}

MAKER(make_activities, struct events, read_own(rows->r, own))

static void free_activities(struct rows *rows)
{
	events_fini(rows->own);
	free(rows->own);
}

static uint64_t duration(const struct event *v)
{
	return v->w.end_ns - v->w.start_ns;
}

GETTER(get_duration, void, of, value_u64(duration(of)))
GETTER(get_name, struct event, v,
	value_text(v->w.name ? rows_string(row->rows, v->process, v->w.name) : NULL))

/* The activity, where it has that. */
#define HAS(name, bit) FINDER(name, struct event, v, v->w.valid &(bit) ? v : NULL)
HAS(has_device, GPU_HAS_DEVICE)
HAS(has_context, GPU_HAS_CONTEXT)
HAS(has_stream, GPU_HAS_STREAM)
HAS(has_shape, GPU_HAS_SHAPE)
HAS(has_registers, GPU_HAS_REGISTERS)
HAS(has_shared, GPU_HAS_SHARED)
HAS(has_bytes, GPU_HAS_BYTES)
HAS(has_graph, GPU_HAS_GRAPH)
HAS(has_correlation, GPU_HAS_CORRELATION)

static struct value get_rate(const struct row *row, const void *of)
{
	const struct event *v = of;
	const uint64_t ns = duration(v);
	return value_u64_if(ns, ns ? sat_from((double)v->w.bytes * 1e9 / (double)ns) : 0);
}

GETTER(get_direction, struct event, it, value_text(activity_direction(&it->w)))

/* The call that asked for it, or NULL. */
FINDER(call, struct event, v, v->link == UINT32_MAX ? NULL : &row->r->links.v.v[v->link])
GETTER(get_call, struct call_link, it, function_name(row, it->fn))
GETTER(get_call_start, struct call_link, c,
	value_u64(rows_since(row->rows, trace_ns(row->r->trace, c->ticks))))
GETTER(get_call_duration, struct call_link, c,
	value_u64_if(c->dur, trace_span_ns(row->r->trace, c->dur)))

/* How long the activity waited for its device when the call had returned. */
static struct value get_queued(const struct row *row, const void *of)
{
	const struct call_link *c = of;
	const struct event *v = row->at;
	const struct trace *t = row->r->trace;
	const uint64_t end = trace_ns(t, c->ticks) + trace_span_ns(t, c->dur);
	return value_u64_if(c->dur, v->w.start_ns > end ? v->w.start_ns - end : 0);
}

static struct value owner(const struct row *row, uint32_t at)
{
	const struct events *events = row->rows->own;
	if (at == OWNER_NONE)
		return value_null();
	return value_text(rows_name(row->rows, owners_name(&events->owners, at)));
}

static struct value get_operator(const struct row *row, const void *of)
{
	const struct events *events = row->rows->own;
	const struct event *v = of;
	return owner(row, owners_operator(&events->owners, v->owner));
}

GETTER(get_range, struct event, v, owner(row, v->named == OWNER_NONE ? v->waiting : v->named))

static const struct column activity_columns[] = {
	{ "start_ns", UNIT_MOMENT, "at", "when it began on the device", .get = get_since_start,
		AT(struct event, w.start_ns) },
	{ "duration_ns", UNIT_NS, "time", "how long it took on the device", .get = get_duration,
		.sums = true },
	{ "kind", UNIT_TEXT, "kind", "`kernel`, `memcpy`, `memset` …", .get = get_activity_kind,
		AT(struct event, w.kind) },
	{ "name", UNIT_KERNEL, "name", "its name", .get = get_name },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct event, process) },
	{ "device", UNIT_ID, "device", "device", .find = has_device,
		MEMBER(struct event, w.device) },
	{ "context", UNIT_ID, "context", "context", .find = has_context,
		MEMBER(struct event, w.context) },
	{ "stream", UNIT_ID, "stream", "stream", .find = has_stream,
		MEMBER(struct event, w.stream) },
	{ "grid", UNIT_DIM3, "grid", "x, y, z", .find = has_shape, MEMBER(struct event, w.grid) },
	{ "block", UNIT_DIM3, "block", "x, y, z", .find = has_shape,
		MEMBER(struct event, w.block) },
	{ "registers", UNIT_COUNT, "registers", "of a thread", .find = has_registers,
		MEMBER(struct event, w.registers) },
	{ "shared_static_bytes", UNIT_BYTES, "static shared", "static shared memory of a block",
		.find = has_shared, MEMBER(struct event, w.shared_static) },
	{ "shared_dynamic_bytes", UNIT_BYTES, "dynamic shared", "dynamic shared memory of a block",
		.find = has_shared, MEMBER(struct event, w.shared_dynamic) },
	{ "bytes", UNIT_BYTES, "bytes", "copied or set", .find = has_bytes,
		MEMBER(struct event, w.bytes), .sums = true },
	{ "bytes_per_second", UNIT_BYTES_PER_S, "rate", "`bytes` by `duration_ns`", .get = get_rate,
		.find = has_bytes },
	{ "direction", UNIT_TEXT, "direction", "`HtoD` …", .get = get_direction },
	{ "graph_node", UNIT_ID, "graph node", "which node of a graph it is", .find = has_graph,
		MEMBER(struct event, w.graph_node) },
	{ "correlation", UNIT_ID, "correlation", "as of the call that asked for it",
		.find = has_correlation, MEMBER(struct event, w.correlation) },
	{ "call", UNIT_TEXT, "call", "function that asked for it; null: not known", .get = get_call,
		.find = call },
	{ "tid", UNIT_ID, "tid", "thread of that call", .find = call,
		MEMBER(struct call_link, tid) },
	{ "call_start_ns", UNIT_MOMENT, "call at", "when that call began, on the host",
		.get = get_call_start, .find = call },
	{ "call_duration_ns", UNIT_NS, "in call", "how long that call took",
		.get = get_call_duration, .find = call },
	{ "queued_ns", UNIT_NS, "queued", "from the call's return to the start", .get = get_queued,
		.find = call },
	{ "operator", UNIT_TEXT, "operator", "innermost operator in which the call was made",
		.get = get_operator },
	{ "range", UNIT_TEXT, "range",
		"innermost range around it that the program names: NVTX push and pop, annotations, "
		"modules",
		.get = get_range },
	{ 0 },
};

const struct section section_gpu_trace = {
	.name = "gpu_trace",
	.heading = "GPU activities by time",
	.about =
		"Each activity of a device, in the order of their start. Times in which the host waited for a device are left out.",
	.of = OF_GPU,
	.facets = FACET(LINKS),
	.columns = activity_columns,
	.make = make_activities,
	.fini = free_activities,
	.asked = true,
	.shown = "start_ns,duration_ns,queued_ns,device,stream,grid,block,bytes,bytes_per_second,"
		 "kind,range,operator,name",
	.note = "Queued is the time from the return of the launching call to the start.",
};

struct gap_row {
	uint32_t process, name;
	uint64_t count; /* also of those whose launch is not known, or is another's, too */
	struct values call, queued, device;
};

struct gap_rows {
	ARRAY(struct gap_row) v;
	struct map map;
	bool *launched; /* by link: its first kernel was there */
};

static void add_gap(const struct report *r, struct gap_rows *gaps, const struct event *v)
{
	const uint32_t name = meta_find_string(&r->meta, v->process, v->w.name);
	struct gap_row *row = MAP_ROW(&gaps->map, MAP_KEY(name), &gaps->v,
		(struct gap_row){ .process = v->process, .name = v->w.name });
	row->count++;
	values_add(&row->device, v->w.end_ns - v->w.start_ns);
	const struct call_link *c = v->link == UINT32_MAX ? NULL : &r->links.v.v[v->link];
	if (!c || !c->dur || gaps->launched[v->link])
		return;
	gaps->launched[v->link] = true; /* the others of a graph wait for each other */
	const uint64_t ns = trace_span_ns(r->trace, c->dur);
	const uint64_t end = trace_ns(r->trace, c->ticks) + ns;
	values_add(&row->call, ns);
	values_add(&row->queued, v->w.start_ns > end ? v->w.start_ns - end : 0);
}

ORDERING(
	gap_order, struct gap_row, ORDER(b->queued.total, a->queued.total), ORDER(a->name, b->name))

static int count_gaps(const struct report *r, struct gap_rows *gaps)
{
	struct events events = { 0 };
	const int e = events_read(r, &events);
	gaps->launched = xcalloc(r->links.v.n + 1, sizeof *gaps->launched);
	for (size_t i = 0; i < events.v.n && !e; i++)
		if (events.v.v[i].w.kind == GPU_KERNEL)
			add_gap(r, gaps, &events.v.v[i]);
	events_fini(&events);
	SORT(gaps->v, gap_order);
	return e;
}

MAKER(make_gaps, struct gap_rows, count_gaps(rows->r, own))

static void free_gaps(struct rows *rows)
{
	struct gap_rows *gaps = rows->own;
	for (size_t i = 0; i < gaps->v.n; i++) {
		hist_fini(&gaps->v.v[i].call.hist);
		hist_fini(&gaps->v.v[i].queued.hist);
		hist_fini(&gaps->v.v[i].device.hist);
	}
	array_free(&gaps->v);
	free(gaps->launched);
	map_fini(&gaps->map);
	free(gaps);
}

GETTER(get_gap_name, struct gap_row, g, value_text(rows_string(row->rows, g->process, g->name)))

static const struct column gap_columns[] = {
	{ "name", UNIT_KERNEL, "kernel", "its name", .get = get_gap_name },
	{ "count", UNIT_COUNT, "runs", "executions", MEMBER(struct gap_row, count), .sums = true },
	{ "launches_known", UNIT_COUNT, "launches known",
		"executions whose call is known and theirs: of the kernels of a graph the first has "
		"its launch",
		.get = get_values_count, AT(struct gap_row, call) },
	VALUES("call", "call, ", "time in the launching call", struct gap_row, call, true),
	VALUES("queued", "queued, ",
		"from a call's return to the start; 0 for those that had begun by then",
		struct gap_row, queued, true),
	VALUES("device", "device, ", "time on the device", struct gap_row, device, true),
	{ 0 },
};

const struct section section_launch_gaps = {
	.name = "launch_gaps",
	.heading = "From the launch to the kernel",
	.about =
		"Kernels by name: from the launching call to the kernel. The kernels that waited longest together come first. Waiting is not bad in itself: a queue that is never empty keeps the device busy.",
	.of = OF_GPU,
	.facets = FACET(LINKS),
	.columns = gap_columns,
	.make = make_gaps,
	.fini = free_gaps,
	.asked = true,
	.shown = "count,call_total_ns,call_mean_ns,call_p50_ns,call_max_ns,queued_total_ns,"
		 "queued_mean_ns,queued_p50_ns,queued_max_ns,device_mean_ns,name",
	.note = "Call is the time in the driver's call that launches, if it was recorded.  The runtime's call around it takes longer (--only calls).  Queued is the time from its return to the kernel's start, in which the GPU may run what was launched before.  The first kernel of a graph has the launch of the graph.  --steady or --steps N-M leaves out start-up.",
};

#define COLLECTIVE  (FAMILIES)     /* between devices */
#define COPIES      (FAMILIES + 1) /* memcpys */
#define SETS        (FAMILIES + 2)
#define FAMILY_ROWS (FAMILIES + 3)

struct family_row {
	unsigned family;
	uint64_t names, count, total_ns;
	const struct activity_row *longest;
};

static unsigned family_of_kernel(const char *name)
{
	struct predict_kernel k = { 0 };
	if (activity_communicates(name))
		return COLLECTIVE;
	predict_kernel_name(&k, name, 0);
	return k.family;
}

/* FAMILY_ROWS: none, since it is a sum of others or nothing that kept a device busy. */
static unsigned family_of(const struct activity_row *w)
{
	switch (w->kind) {
	case GPU_MEMCPY:
		return COPIES;
	case GPU_MEMSET:
		return SETS;
	case GPU_KERNEL:
		return family_of_kernel(w->name);
	default:
		return FAMILY_ROWS;
	}
}

static const char *family_name(unsigned family)
{
	return family == COLLECTIVE ? "collective"
	       : family == COPIES   ? "memcpy"
	       : family == SETS     ? "memset"
				    : predict_family_word((enum predict_family)family);
}

const char *list_kernel_family(const char *name)
{
	return family_name(family_of_kernel(name));
}

ORDERING(family_order, struct family_row, ORDER(b->total_ns, a->total_ns),
	ORDER(a->family, b->family))

static void add_family(struct family_row *rows, const struct activity_row *w)
{
	const unsigned family = family_of(w);
	if (family >= FAMILY_ROWS)
		return;
	struct family_row *to = &rows[family];
	to->family = family;
	to->names++;
	to->count += w->count;
	to->total_ns += w->total_ns;
	if (!to->longest || w->total_ns > to->longest->total_ns)
		to->longest = w;
}

/* rows->all: the time of all families. */
static void make_families(struct rows *rows)
{
	const struct report *r = rows->r;
	struct family_row *v = xcalloc(FAMILY_ROWS, sizeof *v);
	size_t n = 0;
	for (size_t i = 0; i < r->activities.n; i++)
		add_family(v, &r->activities.v[i]);
	qsort(v, FAMILY_ROWS, sizeof *v, family_order);
	rows->all = 0;
	for (unsigned i = 0; i < FAMILY_ROWS; i++) {
		rows->all += (double)v[i].total_ns;
		if (v[i].count)
			v[n++] = v[i];
	}
	rows_own(rows, v, n, sizeof *v);
}

GETTER(get_family, struct family_row, it, value_text(family_name(it->family)))
GETTER(get_family_total, struct family_row, it, value_u64_if(!row->r->sampled, it->total_ns))
GETTER(get_family_estimate, struct family_row, it, value_u64_if(row->r->sampled, it->total_ns))
GETTER(get_family_mean, struct family_row, f, value_u64(f->total_ns / f->count))
GETTER(get_family_share, struct family_row, f,
	value_real(row->rows->all > 0 ? (double)f->total_ns / row->rows->all : 0))
GETTER(get_longest, struct family_row, it, value_text(it->longest->name))

static const struct column family_columns[] = {
	{ "family", UNIT_TEXT, "family",
		"`gemm`, `conv`, `attention`, `softmax`, `norm`, `reduce`, `scan`, `sort`, `gather`, "
		"`stencil`, `pool`, `transpose`, `copy`, `random`, `elementwise`, `unknown`: kernels; "
		"`collective`, `memcpy`, `memset`",
		.get = get_family },
	{ "names", UNIT_COUNT, "names", "different names", MEMBER(struct family_row, names),
		.sums = true },
	{ "count", UNIT_COUNT, "runs", "activities", MEMBER(struct family_row, count),
		.sums = true },
	{ "device_total_ns", UNIT_NS, "time", "time on the device; null: estimated",
		.get = get_family_total, .sums = true },
	{ "device_total_estimate_ns", UNIT_NS, "estimate",
		"the same, estimated from the executions that were timed",
		.get = get_family_estimate, .sums = true },
	{ "device_mean_ns", UNIT_NS, "mean", "of one", .get = get_family_mean },
	{ "share", UNIT_SHARE, "share", "of the time of all rows", .get = get_family_share,
		.sums = true },
	{ "longest", UNIT_KERNEL, "longest", "name of the kernel with most time",
		.get = get_longest },
	{ 0 },
};

const struct section section_kernel_families = {
	.name = "kernel_families",
	.heading = "Kernels by family",
	.about =
		"Kernels by what their names say that they do, collective operations, memcpys and memsets, most time first. `api/family.tbl` has the words.",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = family_columns,
	.make = make_families,
	.asked = true,
	.shown = "device_total_ns,device_total_estimate_ns,share,count,device_mean_ns,names,family,"
		 "longest",
	.note = "The names of kernels say what they do.  Collective kernels are NCCL's.  A family without a row did not run.  --only kernels --filter 'family = gemm' lists the kernels of one.",
};
