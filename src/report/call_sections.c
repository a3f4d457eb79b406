/* Sections of what the host called: functions, threads, processes, failing calls. */
#include "report/shared_columns.h"
#include "report/provenance.h"
#include "report/sections.h"

#include <math.h>

#include "base/expect.h"

#include "base/banned.h"

/* ---- calls ---- */

static struct value get_api(const struct row *row, const void *of)
{
	return value_text(schema_api_name(((const struct call_row *)of)->fn));
}

static struct value get_class(const struct row *row, const void *of)
{
	const struct call_row *c = of;
	return value_text(c->fn ? c->fn->class : "");
}

static struct value get_total(const struct row *row, const void *of)
{
	const struct call_row *c = of;
	return value_u64_if(call_total_known(c), trace_span_ns(row->r->trace, c->total_ticks));
}

static struct value timed(const struct row *row, const struct call_row *c, uint64_t ticks)
{
	return value_u64_if(c->timed, trace_span_ns(row->r->trace, ticks));
}

static struct value get_p50(const struct row *row, const void *of)
{
	const struct call_row *c = of;
	return timed(row, c, hist_at(&c->hist, 0.5));
}

static struct value get_p99(const struct row *row, const void *of)
{
	const struct call_row *c = of;
	return timed(row, c, hist_at(&c->hist, 0.99));
}

static struct value get_max(const struct row *row, const void *of)
{
	const struct call_row *c = of;
	return timed(row, c, c->hist.max);
}

static const struct column call_columns[] = {
	{ "name", UNIT_TEXT, "function", "function", .get = get_function, AT(struct call_row, id) },
	{ "api", UNIT_TEXT, "api", "`driver`, `runtime` or `allocator`", .get = get_api },
	{ "class", UNIT_TEXT, "class", "its class, as in `weir trace -e`", .get = get_class },
	{ "count", UNIT_COUNT, "calls", "calls", .get = get_u64, AT(struct call_row, count) },
	{ "timed_count", UNIT_COUNT, "timed",
		"calls whose time is known one by one; queries that succeed are only counted unless the "
		"level is `all`",
		.get = get_u64, AT(struct call_row, timed) },
	{ "total_ns", UNIT_NS, "total",
		"on the host, of all the calls; null: of some of them it is not known",
		.get = get_total },
	{ "p50_ns", UNIT_NS, "median", "of the `timed_count` calls; null: there are none",
		.get = get_p50 },
	{ "p99_ns", UNIT_NS, "p99", "of the `timed_count` calls", .get = get_p99 },
	{ "max_ns", UNIT_NS, "max", "of the `timed_count` calls", .get = get_max },
	{ "errors", UNIT_COUNT, "errors", "failing calls", .get = get_u64,
		AT(struct call_row, errors) },
	{ 0 },
};

const struct section section_calls = {
	.name = "calls",
	.heading = "Calls by total time on the host",
	.of = OF_CALLS,
	.columns = call_columns,
	ROWS_OF(call_rows),
	.shown = "total_ns,count,p50_ns,p99_ns,max_ns,errors,api,name",
	.note = "A call of the runtime contains those of the driver that it makes: their times are in both, and don't add up.  A dash: only counted; of those that are counted, times are of the ones that failed.  Those that waited for the GPU: --only waits; a part of the run: --steps N-M, --range NAME.",
};

/* ---- threads ---- */

/* What was asked of the driver: imported traces need not tell it of any thread. */
static bool tells_allocations(const struct report *r)
{
	bool told = r->trace->header.launched;
	for (size_t i = 0; i < r->threads.n && !told; i++)
		told = r->threads.v[i].sums.allocated_bytes;
	return told;
}

/* rows->all: allocations are known. */
static int make_threads(struct rows *rows)
{
	rows->all = tells_allocations(rows->r);
	return 0;
}

static struct value get_allocated(const struct row *row, const void *of)
{
	return value_u64_if(row->rows->all != 0, *(const uint64_t *)of);
}

#define SUMS(type, member)                                                                         \
	{ "calls", UNIT_COUNT, "calls", "calls of driver and runtime, counted ones included",      \
		.get = get_u64, AT(type, member.calls), .sums = true },                            \
		{ "launches", UNIT_COUNT, "launches",                                              \
			"calls that launched a kernel or a graph, not into a capture; in traces "  \
			"of other tools also calls of the runtime without one of the driver "      \
			"inside",                                                                  \
			.get = get_u64, AT(type, member.launches), .sums = true },                 \
		{ "timed_driver_calls", UNIT_COUNT, "timed driver calls",                          \
			"calls of the driver whose time is known; at level `full` queries that "   \
			"succeed are only counted",                                                \
			.get = get_u64, AT(type, member.timed), .sums = true },                    \
		{ "timed_driver_calls_ns", UNIT_NS, "time of these", "the time of these calls",    \
			.get = get_span, AT(type, member.timed_ticks), .sums = true },             \
		{ "sync_calls", UNIT_COUNT, "sync calls",                                          \
			"calls that wait for the GPU, counted like `launches`", .get = get_u64,    \
			AT(type, member.waits), .sums = true },                                    \
		{ "sync_ns", UNIT_NS, "sync time", "the time of those that are timed",             \
			.get = get_span, AT(type, member.wait_ticks), .sums = true },              \
	{                                                                                          \
		"allocated_bytes", UNIT_BYTES, "allocated",                                        \
			"bytes that were asked of the driver; null: an imported trace does not "   \
			"tell it",                                                                 \
			.get = get_allocated, AT(type, member.allocated_bytes), .sums = true       \
	}

static const struct column thread_columns[] = {
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct thread_row, process) },
	{ "tid", UNIT_ID, "tid", "thread", .get = get_u32, AT(struct thread_row, tid) },
	SUMS(struct thread_row, sums),
	{ "name", UNIT_TEXT, "name", "the thread's name", .get = get_chars,
		AT(struct thread_row, name) },
	{ 0 },
};

const struct section section_threads = {
	.name = "threads",
	.heading = "Threads",
	.of = OF_CALLS,
	.columns = thread_columns,
	ROWS_OF(threads),
	.make = make_threads,
	.shown = "pid,tid,calls,launches,timed_driver_calls,timed_driver_calls_ns,sync_calls,"
		 "sync_ns,allocated_bytes,name",
};
