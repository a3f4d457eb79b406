/* Sections of what the host called: functions, threads, processes, failing calls. */
#include "section/shared_columns.h"
#include "report/provenance.h"
#include "report/sections.h"

#include "base/expect.h"

GETTER(get_api, struct call_row, it, value_text(schema_api_name(it->fn)))
GETTER(get_class, struct call_row, c, value_text(c->fn ? c->fn->class : ""))
SHARED_GETTER(get_call_total, struct call_row, c,
	value_u64_if(call_total_known(c), trace_span_ns(row->r->trace, c->total_ticks)))

static struct value timed(const struct row *row, const struct call_row *c, uint64_t ticks)
{
	return value_u64_if(c->timed, trace_span_ns(row->r->trace, ticks));
}

SHARED_GETTER(get_call_p50, struct call_row, c, timed(row, c, hist_at(&c->hist, 0.5)))
SHARED_GETTER(get_call_p90, struct call_row, c, timed(row, c, hist_at(&c->hist, 0.9)))
SHARED_GETTER(get_call_p99, struct call_row, c, timed(row, c, hist_at(&c->hist, 0.99)))
SHARED_GETTER(get_call_max, struct call_row, c, timed(row, c, c->hist.max))

static const struct column call_columns[] = {
	{ "name", UNIT_TEXT, "function", "function", .get = get_function, AT(struct call_row, id) },
	{ "api", UNIT_TEXT, "api", "`driver`, `runtime` or `allocator`", .get = get_api },
	{ "class", UNIT_TEXT, "class", "its class, as in `weir trace -e`", .get = get_class },
	{ "count", UNIT_COUNT, "calls", "calls", MEMBER(struct call_row, count) },
	{ "timed_count", UNIT_COUNT, "timed",
		"calls whose time is known one by one; queries that succeed are only counted unless the "
		"level is `all`",
		MEMBER(struct call_row, timed) },
	{ "summed_count", UNIT_COUNT, "timed", "calls whose time is in `total_ns`",
		MEMBER(struct call_row, summed), .text_only = true },
	{ "total_ns", UNIT_NS, "total",
		"on the host, of all the calls; null: of some of them it is not known",
		.get = get_call_total },
	{ "p50_ns", UNIT_NS, "median", "of the `timed_count` calls; null: there are none",
		.get = get_call_p50 },
	{ "p99_ns", UNIT_NS, "p99", "of the `timed_count` calls", .get = get_call_p99 },
	{ "max_ns", UNIT_NS, "max", "of the `timed_count` calls", .get = get_call_max },
	{ "errors", UNIT_COUNT, "errors", "failing calls", MEMBER(struct call_row, errors) },
	{ 0 },
};

const struct section section_calls = {
	.name = "calls",
	.heading = "Calls by total time on the host",
	.of = OF_CALLS,
	.facets = FACET(CALL_TIMES),
	.columns = call_columns,
	ROWS_OF(call_rows),
	.shown = "total_ns,count,p50_ns,p99_ns,max_ns,errors,api,name",
	.note = "A call of the runtime contains the calls of the driver that it makes, so do not add their times.  A dash means that calls were only counted.  If some were counted, times are of those that failed.  --only waits has the calls that waited for the GPU.  --steps N-M and --range NAME read a part of the run.",
};

/* Whether the trace tells of allocations by the driver: imported traces need not tell it of any
 * thread. */
static bool tells_allocations(const struct report *r)
{
	bool told = r->trace->header.launched && !report_is_off(r);
	for (size_t i = 0; i < r->threads.n && !told; i++)
		told = r->threads.v[i].sums.allocated_bytes;
	return told;
}

/* rows->all: allocations are known. */
static void make_threads(struct rows *rows)
{
	rows->all = tells_allocations(rows->r);
}

GETTER(get_allocated, uint64_t, it, value_u64_if(row->rows->all != 0, *it))

#define SUMS(type, member)                                                                         \
	{ "calls", UNIT_COUNT, "calls", "calls of driver and runtime, counted ones included",      \
		.find = row_recorded, MEMBER(type, member.calls), .sums = true },                  \
		{ "launches", UNIT_COUNT, "launches",                                              \
			"calls that launched a kernel or a graph, not into a capture; in traces "  \
			"of other tools also calls of the runtime without one of the driver "      \
			"inside",                                                                  \
			.find = row_recorded, MEMBER(type, member.launches), .sums = true },       \
		{ "timed_driver_calls", UNIT_COUNT, "timed driver calls",                          \
			"calls of the driver whose time is known; at level `full` queries that "   \
			"succeed are only counted",                                                \
			.find = row_recorded, MEMBER(type, member.timed), .sums = true },          \
		{ "timed_driver_calls_ns", UNIT_NS, "time of these", "the time of these calls",    \
			.get = get_span, .find = row_recorded, AT(type, member.timed_ticks),       \
			.sums = true },                                                            \
		{ "sync_calls", UNIT_COUNT, "sync calls",                                          \
			"calls that wait for the GPU, counted like `launches`",                    \
			.find = row_recorded, MEMBER(type, member.waits), .sums = true },          \
		{ "sync_ns", UNIT_NS, "sync time", "the time of those that are timed",             \
			.get = get_span, .find = row_recorded, AT(type, member.wait_ticks),        \
			.sums = true },                                                            \
	{                                                                                          \
		"allocated_bytes", UNIT_BYTES, "allocated",                                        \
			"bytes that were asked of the driver; null: an imported trace does not "   \
			"tell it",                                                                 \
			.get = get_allocated, AT(type, member.allocated_bytes), .sums = true       \
	}

static const struct column thread_columns[] = {
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct thread_row, process) },
	{ "tid", UNIT_ID, "tid", "thread", MEMBER(struct thread_row, tid) },
	SUMS(struct thread_row, sums),
	{ "name", UNIT_TEXT, "name", "the thread's name", .get = get_chars,
		AT(struct thread_row, name) },
	{ 0 },
};

const struct section section_threads = {
	.name = "threads",
	.heading = "Threads",
	.of = OF_CALLS,
	.facets = FACET(THREADS),
	.columns = thread_columns,
	ROWS_OF(threads),
	.make = make_threads,
	.shown = "pid,tid,calls,launches,timed_driver_calls,timed_driver_calls_ns,sync_calls,"
		 "sync_ns,allocated_bytes,name",
};

/* A process with the sums of its threads. */
struct process_row {
	const struct meta_process *meta;
	uint32_t process, threads;
	struct thread_sums sums;
	uint64_t device_ns;
};

static void add_threads(struct process_row *to, const struct report *r)
{
	array_each(const struct thread_row, t, r->threads) {
		if (t->process != to->process)
			continue;
		to->threads++;
		thread_sums_add(&to->sums, &t->sums);
	}
}

static void make_processes(struct rows *rows)
{
	const struct report *r = rows->r;
	const size_t n = r->meta.processes.n;
	struct process_row *v = xcalloc(n + 1, sizeof *v);
	for (size_t i = 0; i < n; i++) {
		v[i].meta = &r->meta.processes.v[i];
		v[i].process = (uint32_t)i;
		add_threads(&v[i], r);
		array_each(const struct stream_row, s, r->stream_rows)
			if (s->process == i)
				v[i].device_ns = sat_add(v[i].device_ns, s->total_ns);
	}
	rows->all = tells_allocations(r);
	rows_own(rows, v, n, sizeof *v);
}

GETTER(get_parent, struct process_row, it, value_u64_if(it->meta->parent, it->meta->parent))
GETTER(get_process_device, struct process_row, it,
	value_u64_if(row->r->stream_rows.n, it->device_ns))
GETTER(get_executable, struct process_row, it, value_text(it->meta->executable))
GETTER(get_arguments, struct process_row, it, value_text(it->meta->arguments))

/* The command line, or the executable where nobody knows it. */
static struct value get_program(const struct row *row, const void *of)
{
	const struct meta_process *m = ((const struct process_row *)of)->meta;
	return value_text(*m->arguments ? m->arguments : m->executable);
}

static const struct column process_columns[] = {
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct process_row, process) },
	{ "parent", UNIT_ID, "parent", "the process that started it; null: not known",
		.get = get_parent },
	{ "threads", UNIT_COUNT, "threads", "threads that made calls or marked ranges",
		.find = row_recorded, MEMBER(struct process_row, threads), .sums = true },
	SUMS(struct process_row, sums),
	{ "device_total_ns", UNIT_NS, "time on device",
		"time of its activities on GPUs, added up; null: not recorded",
		.get = get_process_device, .sums = true },
	{ "executable", UNIT_TEXT, "executable", "the program's file", .get = get_executable },
	{ "program", UNIT_TEXT, "program", "`arguments`, or `executable` without them",
		.get = get_program, .text_only = true },
	{ "arguments", UNIT_TEXT, "arguments", "the command line", .get = get_arguments },
	{ 0 },
};

const struct section section_processes = {
	.name = "processes",
	.heading = "Processes",
	.of = OF_CALLS,
	.facets = FACET(THREADS) | FACET(DEVICE),
	.columns = process_columns,
	.make = make_processes,
	.shown = "pid,threads,calls,launches,timed_driver_calls_ns,sync_ns,device_total_ns,"
		 "allocated_bytes,executable",
};

static struct value get_error(const struct row *row, const void *of)
{
	const struct failure_row *f = of;
	const struct schema_fn *fn = schema_find(&row->r->trace->schema, f->fn_id);
	return value_text(decode_result(fn, f->code));
}

GETTER(get_probe, void, of, value_text(failure_probe(row->r, of)))

static const struct column failure_columns[] = {
	{ "name", UNIT_TEXT, "function", "function", .get = get_function,
		AT(struct failure_row, fn_id) },
	{ "code", UNIT_ID, "code", "the result", MEMBER(struct failure_row, code) },
	{ "error", UNIT_TEXT, "error", "the result's name", .get = get_error },
	{ "probe", UNIT_TEXT, "why it is no fault",
		"why the failure is no fault of the program; null: it may be one",
		.get = get_probe },
	{ "count", UNIT_COUNT, "calls", "how often", MEMBER(struct failure_row, count),
		.sums = true },
	{ "pid", UNIT_ID, "pid", "process of the first one", .get = get_pid,
		AT(struct failure_row, process) },
	{ "tid", UNIT_ID, "thread", "thread of the first one", MEMBER(struct failure_row, tid) },
	{ "first_ns", UNIT_MOMENT, "first at", "when the first one began", .get = get_since,
		AT(struct failure_row, first_ticks) },
	{ 0 },
};

const struct section section_failures = {
	.name = "failures",
	.heading = "Failing calls",
	.about = "Failing calls, most frequent first.",
	.of = OF_FAILURES,
	.facets = FACET(CALLS),
	.columns = failure_columns,
	ROWS_OF(failure_rows),
	.shown = "count,name,code,error,pid,tid,first_ns,probe",
};
