/* Sections of the recording as a whole: the trace, what recorded it, warnings, totals. */
#include "base/atomic.h"
#include "report/provenance.h"
#include "report/report_make.h"
#include "report/sections.h"

#include "hint/summary.h"

static void make_trace(struct rows *rows)
{
	rows->v = rows->r->trace;
}

GETTER(get_form, void, of,
	value_text(row->r->trace->header.form == TRACE_PACKED ? "packed" : "raw"))
GETTER(get_mode, void, of,
	value_text(row->r->trace->header.mode == TRACE_FLIGHT ? "flight" : "file"))
GETTER(get_finished, void, of, value_bool(row->r->trace->header.state == TRACE_FINISHED))

static struct value get_exit_status(const struct row *row, const void *of)
{
	const struct trace_header *h = &row->r->trace->header;
	return value_u64_if(h->launched && h->state == TRACE_FINISHED, trace_exit_status(h));
}

static struct value get_exit_signal(const struct row *row, const void *of)
{
	const struct trace_header *h = &row->r->trace->header;
	return value_u64_if(h->launched && h->state == TRACE_FINISHED, trace_exit_signal(h));
}

/* Which part of the recording this is about; NULL: all of it. */
FINDER(part, void, at, row->r->trace->parts.n ? row->r->trace : NULL)
GETTER(get_parts, void, of, value_u64(row->r->trace->parts.n))

#define PART_OF(key, unit, heading, meaning, value, member)                                        \
	{                                                                                          \
		"part." key, unit, heading, meaning, .get = value, .find = part,                   \
						     AT(struct trace, part.member), .absent = true \
	}

static const struct column trace_columns[] = {
	{ "version", UNIT_ID, "version", "of the format", MEMBER(struct trace, header.version) },
	{ "form", UNIT_TEXT, "form", "`packed` or `raw`", .get = get_form },
	{ "mode", UNIT_TEXT, "mode", "`file` or `flight`", .get = get_mode },
	{ "program", UNIT_TEXT, "program", "command line", .get = get_chars,
		AT(struct trace, header.program) },
	{ "host", UNIT_TEXT, "host", "host name", .get = get_chars, AT(struct trace, header.host) },
	{ "start_realtime_ns", UNIT_DATE, "began", "since 1970",
		MEMBER(struct trace, header.start.real_ns) },
	{ "finished", UNIT_BOOL, "finished", "the recording was ended in order",
		.get = get_finished },
	{ "exit_status", UNIT_ID, "exit status", "of the program; null: nobody saw it end",
		.get = get_exit_status },
	{ "exit_signal", UNIT_ID, "exit signal", "that ended the program; 0: none",
		.get = get_exit_signal },
	{ "clock_known", UNIT_BOOL, "clock known", "false: times are ticks of unknown length",
		MEMBER(struct trace, clock.known) },
	PART_OF("from_ns", UNIT_NS, "part from",
		"begin of the first part, since the recording began. All other times are counted from "
		"here, with the time between parts taken out",
		get_u64, from_ns),
	PART_OF("to_ns", UNIT_NS, "part to", "end of the last part", get_u64, to_ns),
	PART_OF("part_ns", UNIT_NS, "part", "all parts together", get_u64, part_ns),
	PART_OF("whole_ns", UNIT_NS, "whole", "the recording", get_u64, whole_ns),
	{ "part.parts", UNIT_COUNT, "parts", "how many there are", .get = get_parts, .find = part,
		.absent = true },
	PART_OF("how", UNIT_TEXT, "chosen",
		"how they were chosen: `steps 5 to 20 of 40`; empty for times", get_chars, how),
	{ 0 },
};

const struct section section_trace = {
	.name = "trace",
	.heading = "Trace",
	.form = SECTION_OBJECT,
	.of = OF_CALLS,
	.columns = trace_columns,
	.make = make_trace,
	.about = "`part` is absent when all was recorded and read.",
};

/* The column's key is the fact's. */
static struct value fact(const struct row *row, const char *key)
{
	return value_text(provenance_fact(row->r, key, row->text, ROW_TEXT) ? row->text : NULL);
}

#define FACT(key)                                                                                  \
	static struct value get_##key(const struct row *row, const void *of)                       \
	{                                                                                          \
		return fact(row, #key);                                                            \
	}
FACT(driver)
FACT(cuda)
FACT(torch)
FACT(python)
FACT(weir)
FACT(level)

static struct value get_clock_hz(const struct row *row, const void *of)
{
	const double hz = provenance_tick_rate(row->r->trace);
	return hz > 0 ? value_u64((uint64_t)(hz + 0.5)) : value_null();
}

GETTER(get_device_name, uint32_t, it, value_text(row->r->meta.names.v[*it].text))

/* Null where it is 0: the file does not say. */
static const struct column said_columns[] = {
	{ "device", UNIT_ID, "device", "its number", MEMBER(struct meta_device, device) },
	{ "name", UNIT_TEXT, "name", "its name", .get = get_device_name,
		AT(struct meta_device, name) },
	{ "sms", UNIT_COUNT, "SMs", "null: the file does not say", .get = get_nonzero_u32,
		AT(struct meta_device, multiprocessors) },
	{ "memory_bytes", UNIT_BYTES, "memory", "its memory", .get = get_nonzero,
		AT(struct meta_device, memory_bytes) },
	{ "clock_khz", UNIT_KHZ, "clock", "the highest", .get = get_nonzero,
		AT(struct meta_device, clock_khz) },
	{ "memory_clock_khz", UNIT_KHZ, "memory clock", "the highest", .get = get_nonzero,
		AT(struct meta_device, memory_clock_khz) },
	{ 0 },
};

static void make_said(struct rows *rows)
{
	const struct report *r = rows->r;
	struct meta_device *v = xcalloc(r->meta.devices.n + 1, sizeof *v);
	size_t n = 0;
	for (size_t i = 0; i < r->meta.devices.n; i++)
		if (!provenance_is_said(r, i))
			v[n++] = r->meta.devices.v[i];
	rows_own(rows, v, n, sizeof *v);
}

const struct section section_provenance_devices = {
	.name = "provenance.devices",
	.heading = "Devices of the recording",
	.about = "Recordings with `--gpu` or `--args` have them.",
	.of = OF_GPU,
	.columns = said_columns,
	.make = make_said,
	.nested = true,
};

static const struct column provenance_columns[] = {
	{ "driver", UNIT_TEXT, "driver", "version of the kernel driver", .get = get_driver },
	{ "cuda", UNIT_TEXT, "CUDA", "the CUDA version of the driver", .get = get_cuda },
	{ "torch", UNIT_TEXT, "PyTorch", "its version, with `--python`", .get = get_torch },
	{ "python", UNIT_TEXT, "Python", "its version, with `--python`", .get = get_python },
	{ "weir", UNIT_TEXT, "Weir", "who recorded", .get = get_weir },
	{ "level", UNIT_TEXT, "level", "what was asked for", .get = get_level },
	{ "clock_hz", UNIT_COUNT, "clock, Hz", "of the processor's time-stamp counter",
		.get = get_clock_hz },
	{ "devices", UNIT_LIST, "devices", "the devices", .inner = &section_provenance_devices },
	{ 0 },
};

const struct section section_provenance = {
	.name = "provenance",
	.heading = "Recorded with",
	.about =
		"The software and the machine of the recording, as far as the recording says. If processes disagree, their values stand with commas between.",
	.form = SECTION_OBJECT,
	.of = OF_CALLS,
	.columns = provenance_columns,
};

static const struct column summary_columns[] = {
	{ "text", UNIT_TEXT, "summary", "what took the time, why, what to do first",
		.get = get_chars },
	{ 0 },
};

static void make_summary(struct rows *rows)
{
	struct summary *s = xcalloc(1, sizeof *s);
	summary_make(rows->r, s);
	rows_own(rows, s, s->n, sizeof *s->text);
	rows->v = s->text;
}

const struct section section_summary = {
	.name = "summary",
	.heading = "Summary",
	.about = "At most three sentences.",
	.of = OF_WARNINGS,
	.facets = FACET(HINTS),
	.columns = summary_columns,
	.make = make_summary,
	.texts = true,
};

static const struct column warning_columns[] = {
	{ "text", UNIT_TEXT, "warning", "a sentence about what is missing or doubtful",
		.get = get_text },
	{ 0 },
};

const struct section section_warnings = {
	.name = "warnings",
	.heading = "Warnings",
	.of = OF_WARNINGS,
	.facets = FACET(WARNINGS),
	.columns = warning_columns,
	ROWS_OF(warnings),
	.texts = true,
};

GETTER(get_processes, void, of, value_u64(row->r->trace->processes.n))
GETTER(get_threads, void, of, value_u64(row->r->threads.n))

static struct value get_probes(const struct row *row, const void *of)
{
	const struct report *r = row->r;
	uint64_t known = 0;
	for (size_t i = 0; i < r->failure_rows.n; i++)
		known = sat_add(known, r->failure_rows.v[i].count);
	return value_u64_if(known >= r->errors, failures_probed(r));
}

GETTER(get_overwritten, void, of, value_u64(load_relaxed(&row->r->trace->header.overwritten)))

/* Calls: of some traces nobody counted them. */
static const void *counted(const struct row *row)
{
	const struct report *r = row->r;
	return report_is_off(r) || (!r->trace->header.launched && !r->accounts.known && !r->calls &&
					   !r->lost)
		       ? NULL
		       : r;
}

/* Launches are known by what ran, too. */
static const void *launched(const struct row *row)
{
	const struct report *r = row->r;
	return r->launches || r->graph_launches ? r : counted(row);
}

/* Only finished live recordings tell what was entered and left. */
FINDER(accounts, void, at, row->r->accounts.known && !report_is_off(row->r) ? row->r : NULL)

/* Null where not all calls of the driver are known to be here. */
static struct value get_used(const struct row *row, const void *of)
{
	const struct report *r = row->r;
	const uint64_t n = *(const uint64_t *)of;
	bool known = r->trace->header.launched && !report_is_off(r);
	for (size_t i = 0; i < r->call_rows.n && known; i++)
		known = !r->call_rows.v[i].uses_stream || !r->call_rows.v[i].ok_counted;
	return value_u64_if(known || n, n);
}

FINDER(asked_gpu, void, at, row->r->device_kernels || provenance_asked_gpu(row->r) ? row->r : NULL)
FINDER(sampled, void, at, row->r->sampled ? row->r : NULL)
FINDER(reconstructed, void, at, row->r->reconstructed ? row->r : NULL)
GETTER(get_rounded, double, it, value_u64(sat_from(*it + 0.5)))

static struct value get_least(const struct row *row, const void *of)
{
	const double ns = row->r->sampled_least_ns;
	return isnan(ns) ? value_null() : value_u64(sat_from(ns));
}

GETTER(get_most, void, of, value_u64(sat_from(report_sampled_most_ns(row->r) + 0.5)))

static const struct column total_columns[] = {
	{ "wall_ns", UNIT_NS, "wall time", "wall time", MEMBER(struct report, wall_ns) },
	{ "off_ns", UNIT_NS, "switched off", "the part of it in which recording was switched off",
		MEMBER(struct report, off_ns) },
	{ "processes", UNIT_COUNT, "processes", "that made calls", .get = get_processes },
	{ "threads", UNIT_COUNT, "threads", "that made calls", .get = get_threads,
		.find = counted },
	{ "calls", UNIT_COUNT, "calls", "of driver and runtime, counted ones included",
		.find = counted, MEMBER(struct report, calls) },
	{ "allocator_events", UNIT_COUNT, "allocator events",
		"of a program's own allocator, in imported traces",
		MEMBER(struct report, allocator_events) },
	{ "launches", UNIT_COUNT, "kernels run",
		"kernels that were launched, one by one or in graphs", .find = launched,
		MEMBER(struct report, launches) },
	{ "graph_launches", UNIT_COUNT, "graph launches", "launches of graphs", .find = counted,
		MEMBER(struct report, graph_launches) },
	{ "lost", UNIT_COUNT, "calls lost", "calls that are not in the trace", .find = counted,
		MEMBER(struct report, lost) },
	{ "entered", UNIT_COUNT, "calls entered",
		"calls that wrappers entered; only in finished live recordings", .find = accounts,
		MEMBER(struct report, accounts.entered), .absent = true },
	{ "returned", UNIT_COUNT, "calls returned", "calls that wrappers left", .find = accounts,
		MEMBER(struct report, accounts.returned), .absent = true },
	{ "overwritten", UNIT_COUNT, "calls overwritten", "calls that a flight recording overwrote",
		.get = get_overwritten, .find = accounts, .absent = true },
	{ "missing", UNIT_COUNT, "calls missing",
		"calls that returned and are not accounted for; 0 unless Weir has a defect",
		.find = accounts, MEMBER(struct report, accounts.missing), .absent = true },
	{ "surplus", UNIT_COUNT, "calls surplus",
		"calls that are in the trace and were not entered; 0 unless Weir has a defect",
		.find = accounts, MEMBER(struct report, accounts.surplus), .absent = true },
	{ "errors", UNIT_COUNT, "failing calls", "failing calls", .find = counted,
		MEMBER(struct report, errors) },
	{ "probes", UNIT_COUNT, "of these no fault",
		"the part of them that is no fault of the program; null: they were only counted",
		.get = get_probes, .find = counted },
	{ "streams", UNIT_COUNT, "streams used",
		"streams that something ran on, or without GPU activities that calls put launches, "
		"copies or sets on",
		.get = get_used, AT(struct report, streams) },
	{ "contexts", UNIT_COUNT, "contexts used", "contexts, likewise", .get = get_used,
		AT(struct report, contexts) },
	{ "sampled", UNIT_COUNT, "sampled", "one launch in so many was timed; null: all",
		.get = get_nonzero_u32, AT(struct report, sampled) },
	{ "reconstructed", UNIT_COUNT, "reconstructed",
		"GPU activities that are reconstructed, not measured; null: none",
		.find = reconstructed, MEMBER(struct report, reconstructed) },
	{ "reconstructed_error_ns", UNIT_NS, "error of these",
		"mean of their standard deviations; only where there are some", .get = get_rounded,
		.find = reconstructed, AT(struct report, reconstructed_error_ns), .absent = true },
	{ "device_kernels", UNIT_COUNT, "kernels timed",
		"kernels whose device time is known; null: nobody asked for them",
		.find = asked_gpu, MEMBER(struct report, device_kernels) },
	{ "device_total_estimate_ns", UNIT_NS, "kernels, estimate",
		"only of samples: estimated time of all kernels", .get = get_rounded,
		.find = sampled, AT(struct report, sampled_ns), .absent = true },
	{ "device_total_estimate_error_ns", UNIT_NS, "±",
		"half the width of its 95 % confidence interval, for the choice of launches alone",
		.get = get_rounded, .find = sampled, AT(struct report, sampled_error_ns),
		.absent = true },
	{ "device_total_least_ns", UNIT_NS, "at least",
		"only of samples: lower end of the 95 % interval, without what events measure besides "
		"the kernels; null: the recording has no empty event pairs",
		.get = get_least, .find = sampled, .absent = true },
	{ "device_total_most_ns", UNIT_NS, "at most",
		"only of samples: upper end of that interval, with the wait of the device for the "
		"launch",
		.get = get_most, .find = sampled, .absent = true },
	{ "device_left_out", UNIT_COUNT, "left out",
		"only of samples: timed launches that are left out, since the host was slow and the "
		"device waited for it",
		.find = sampled, MEMBER(struct report, sampled_left_out), .absent = true },
	{ 0 },
};

const struct section section_totals = {
	.name = "totals",
	.heading = "Totals",
	.form = SECTION_OBJECT,
	.of = OF_CALLS,
	.facets = FACET(CALLS) | FACET(KERNELS) | FACET(THREADS) | FACET(STREAMS) | FACET(DEVICE),
	.columns = total_columns,
};

FINDER(clock_known, void, at, row->r->trace->clock.known ? row->r : NULL)
FINDER(joined, void, at, row->r->links.joined ? row->r : NULL)

static const struct column clock_columns[] = {
	{ "residual_ns", UNIT_NS, "residual",
		"how far the clock's line is from its readings at most", .find = clock_known,
		MEMBER(struct report, clock_residual_ns), .absent = true },
	{ "early_activities", UNIT_COUNT, "early activities",
		"activities that seem to begin before their call", .find = joined,
		MEMBER(struct report, links.early), .absent = true },
	{ 0 },
};

const struct section section_clock = {
	.name = "clock",
	.heading = "Clock",
	.form = SECTION_OBJECT,
	.of = OF_CALLS,
	.facets = FACET(CALLS) | FACET(LINKS),
	.columns = clock_columns,
};

static const struct column join_columns[] = {
	{ "activities", UNIT_COUNT, "activities", "activities",
		MEMBER(struct report, links.activities) },
	{ "joined", UNIT_COUNT, "joined", "activities whose call was found",
		MEMBER(struct report, links.joined) },
	{ "checked", UNIT_COUNT, "checked",
		"kernels whose name, grid and block agree with the call's",
		MEMBER(struct report, links.checked) },
	{ "lost", UNIT_COUNT, "lost", "activities that the collector says are missing",
		MEMBER(struct report, links.lost) },
	{ 0 },
};

static void make_join(struct rows *rows)
{
	rows->absent = !rows->r->links.activities;
}

const struct section section_join = {
	.name = "join",
	.heading = "Activities and calls",
	.about = "Only where activities were joined to calls when the trace was read.",
	.form = SECTION_OBJECT,
	.of = OF_GPU,
	.facets = FACET(LINKS),
	.columns = join_columns,
	.make = make_join,
};
