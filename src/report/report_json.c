/* The report as JSON. Times are nanoseconds, sizes are bytes, and rows are never left out. */
#include "report/callers_print.h"
#include "report/analysis.h"
#include "report/gpu_table.h"
#include "report/provenance.h"
#include "report/sections.h"
#include "hint/hint.h"
#include "hint/summary.h"
#include "report/memory_print.h"
#include "report/report_make.h"
#include "model/roofline.h"
#include "model/prediction.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/json.h"
#include "trace/activity.h"

#include "base/banned.h"

/* Which part of the recording this is about; times are counted from its begin. */
static void put_part(struct json *j, const struct trace *t)
{
	if (!t->parts.n)
		return;
	json_begin_object(j, "part");
	json_u64(j, "from_ns", t->part.from_ns);
	json_u64(j, "to_ns", t->part.to_ns);
	json_u64(j, "part_ns", t->part.part_ns);
	json_u64(j, "whole_ns", t->part.whole_ns);
	json_u64(j, "parts", t->parts.n);
	json_str(j, "how", t->part.how);
	json_end_object(j);
}

static void put_trace(struct json *j, const struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	json_begin_object(j, "trace");
	json_u64(j, "version", h->version);
	json_str(j, "form", h->form == TRACE_PACKED ? "packed" : "raw");
	json_str(j, "mode", h->mode == TRACE_FLIGHT ? "flight" : "file");
	json_str(j, "program", h->program);
	json_str(j, "host", h->host);
	json_u64(j, "start_realtime_ns", h->start.real_ns);
	json_bool(j, "finished", h->state == TRACE_FINISHED);
	json_u64(j, "exit_status", trace_exit_status(h));
	json_u64(j, "exit_signal", trace_exit_signal(h));
	json_bool(j, "clock_known", r->trace->clock.known);
	put_part(j, r->trace);
	json_end_object(j);
}

static void put_totals(struct json *j, const struct report *r)
{
	json_begin_object(j, "totals");
	json_u64(j, "wall_ns", r->wall_ns);
	json_u64(j, "off_ns", r->off_ns);
	json_u64(j, "processes", r->trace->processes.n);
	json_u64(j, "threads", r->threads.n);
	json_u64(j, "calls", r->calls);
	json_u64(j, "allocator_events", r->allocator_events);
	json_u64(j, "launches", r->launches);
	json_u64(j, "graph_launches", r->graph_launches);
	json_u64(j, "lost", r->lost);
	if (r->accounts.known) {
		json_u64(j, "entered", r->accounts.entered);
		json_u64(j, "returned", r->accounts.returned);
		json_u64(j, "overwritten", r->trace->header.overwritten);
		json_u64(j, "missing", r->accounts.missing);
		json_u64(j, "surplus", r->accounts.surplus);
	}
	json_u64(j, "errors", r->errors);
	json_u64(j, "probes", failures_probed(r));
	const bool all_driver_calls = r->trace->header.launched;
	json_u64_or_null(j, "streams", all_driver_calls || r->streams, r->streams);
	json_u64_or_null(j, "contexts", all_driver_calls || r->contexts, r->contexts);
	json_u64_or_null(j, "sampled", r->sampled, r->sampled);
	json_u64_or_null(j, "reconstructed", r->reconstructed, r->reconstructed);
	if (r->reconstructed)
		json_u64(j, "reconstructed_error_ns", sat_from(r->reconstructed_error_ns + 0.5));
	json_u64(j, "device_kernels", r->device_kernels);
	if (r->sampled) {
		json_u64(j, "device_total_estimate_ns", sat_from(r->sampled_ns + 0.5));
		json_u64(j, "device_total_estimate_error_ns", sat_from(r->sampled_error_ns + 0.5));
		json_u64_or_null(j, "device_total_least_ns", !isnan(r->sampled_least_ns),
			isnan(r->sampled_least_ns) ? 0 : sat_from(r->sampled_least_ns));
		json_u64(j, "device_total_most_ns", sat_from(report_sampled_most_ns(r) + 0.5));
	}
	json_end_object(j);
}

static void put_clock(struct json *j, const struct report *r)
{
	json_begin_object(j, "clock");
	if (r->trace->clock.known)
		json_u64(j, "residual_ns", r->clock_residual_ns);
	if (r->links.joined)
		json_u64(j, "early_work", r->links.early);
	json_end_object(j);
}

/* Of traces whose activities were joined to calls, not known which they are. */
static void put_join(struct json *j, const struct report *r)
{
	if (!r->links.activities)
		return;
	json_begin_object(j, "join");
	json_u64(j, "work", r->links.activities);
	json_u64(j, "joined", r->links.joined);
	json_u64(j, "checked", r->links.checked);
	json_u64(j, "lost", r->lost_activities);
	json_end_object(j);
}

static void put_failures(struct json *j, const struct report *r)
{
	struct fn_name room;
	json_begin_array(j, "failures");
	for (size_t i = 0; i < r->failure_rows.n; i++) {
		const struct failure_row *f = &r->failure_rows.v[i];
		expect(f->process < r->trace->processes.n, "the process of a call is one of all");
		const struct schema_fn *fn = schema_find(&r->trace->schema, f->fn_id);
		const char *error = decode_result(r->decoder, fn, f->code);
		json_begin_object(j, NULL);
		json_str(j, "name", report_fn_name(r, f->fn_id, &room));
		json_u64(j, "code", f->code);
		json_str_or_null(j, "error", error);
		json_str_or_null(j, "probe", failure_probe(r, f));
		json_u64(j, "count", f->count);
		json_u64(j, "pid", r->trace->processes.v[f->process].pid);
		json_u64(j, "tid", f->tid);
		json_u64(j, "first_ns", trace_since_ns(r->trace, f->first_ticks));
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_warnings(struct json *j, const struct report *r)
{
	json_begin_array(j, "warnings");
	for (size_t i = 0; i < r->warnings.n; i++)
		json_str(j, NULL, r->warnings.v[i]);
	json_end_array(j);
}

/* Measured, or estimated from samples. */
static void put_device_total(struct json *j, const struct report *r, const struct activity_row *w)
{
	const uint64_t ns = w ? w->total_ns : 0;
	expect(!w || w->graph_count <= w->count, "what graphs ran is part of all that ran");
	json_u64_or_null(j, "device_total_ns", w && !r->sampled, ns);
	json_u64_or_null(j, "device_total_estimate_ns", w && r->sampled, ns);
	if (w && r->sampled)
		json_u64_or_null(j, "device_total_estimate_error_ns", !isnan(w->error_ns),
			sat_from(w->error_ns + 0.5));
	json_u64_or_null(j, "device_timed", w, w ? w->hist.count : 0);
}

/* Of those that were timed. */
static void put_device_spread(struct json *j, const struct activity_row *w)
{
	const uint64_t timed = w ? w->hist.count : 0;
	json_u64_or_null(j, "device_min_ns", timed, timed ? w->hist.min : 0);
	json_u64_or_null(j, "device_mean_ns", timed, timed ? sat_from(w->spread.mean + 0.5) : 0);
	json_u64_or_null(j, "device_p50_ns", w, w ? hist_at(&w->hist, 0.5) : 0);
	json_u64_or_null(j, "device_p90_ns", w, w ? hist_at(&w->hist, 0.9) : 0);
	json_u64_or_null(j, "device_p99_ns", w, w ? hist_at(&w->hist, 0.99) : 0);
	json_u64_or_null(j, "device_max_ns", timed, timed ? w->hist.max : 0);
	json_u64_or_null(j, "device_stddev_ns", timed > 1,
		timed > 1 ? sat_from(spread_deviation(&w->spread) + 0.5) : 0);
}

void report_put_device_times(struct json *j, const struct report *r, const struct activity_row *w)
{
	put_device_total(j, r, w);
	put_device_spread(j, w);
}

static void put_memory(struct json *j, const struct report *r)
{
	json_begin_object(j, "memory");
	memory_put_use(j, r, &r->gpu_memory);
	memory_put_keys(j, r);
	for (int k = 0; k < MEMORY_KINDS; k++) {
		json_begin_object(j, memory_kind_name[k]);
		memory_put_use(j, r, &r->memory[k]);
		json_end_object(j);
	}
	memory_put_live(j, r, LIVE_SHOWN);
	json_end_object(j);
}

/* Of those whose size is known, which took so long. */
static void put_rate(struct json *j, uint64_t bytes, uint64_t ns)
{
	json_u64_or_null(
		j, "bytes_per_second", ns, ns ? sat_from((double)bytes * 1e9 / (double)ns) : 0);
}

static void put_amounts(struct json *j, const struct report *r, const struct moved_row *m)
{
	json_u64(j, "count", m->count);
	json_u64_or_null(j, "bytes", m->sized || !m->count, m->bytes);
	json_u64_or_null(j, "device_total_ns", r->device_copies.n, m->device_ns);
	put_rate(j, m->bytes, m->sized_ns);
}

static void put_moved(struct json *j, const struct report *r)
{
	json_begin_array(j, "copies");
	for (size_t i = 0; i < r->copies.n; i++) {
		json_begin_object(j, NULL);
		json_str(j, "direction", r->copies.v[i].direction);
		put_amounts(j, r, &r->copies.v[i]);
		json_end_object(j);
	}
	json_end_array(j);
	json_begin_object(j, "sets");
	put_amounts(j, r, &r->sets);
	json_end_object(j);
}

/* ---- what ran on devices ---- */

static void put_devices(struct json *j, const struct report *r)
{
	const uint64_t on = r->wall_ns - r->off_ns;
	json_begin_array(j, "devices");
	for (size_t i = 0; i < r->devices.n; i++) {
		const struct device_row *d = &r->devices.v[i];
		json_begin_object(j, NULL);
		json_u64(j, "device", d->device);
		json_str_or_null(j, "name", d->name);
		json_u64(j, "count", d->count);
		json_u64(j, "busy_ns", d->busy_ns);
		json_put_real(j, "busy_share", on ? (double)d->busy_ns / (double)on : NAN);
		json_u64(j, "kernel_ns", d->kernel_ns);
		json_u64(j, "copy_ns", d->copy_ns);
		json_u64(j, "set_ns", d->set_ns);
		json_end_object(j);
	}
	json_end_array(j);
}

/* All that ran, by name: kernels, memcpys, memsets, and the spans of annotations. */
static void put_activity(struct json *j, const struct report *r)
{
	json_begin_array(j, "device_work");
	for (size_t i = 0; i < r->activities.n; i++) {
		const struct activity_row *w = &r->activities.v[i];
		json_begin_object(j, NULL);
		json_str(j, "name", w->name);
		json_str_or_null(j, "kind", activity_kind_name(w->kind));
		json_u64(j, "count", w->count);
		json_u64(j, "graph_count", w->graph_count);
		report_put_device_times(j, r, w);
		json_u64_or_null(j, "bytes", w->sized, w->bytes);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_device_copies(struct json *j, const struct report *r)
{
	json_begin_array(j, "device_copies");
	for (size_t i = 0; i < r->device_copies.n; i++) {
		const struct copy_row *c = &r->device_copies.v[i];
		json_begin_object(j, NULL);
		json_str(j, "kind", c->is_memset ? "set" : "copy");
		json_str_or_null(j, "direction", copy_direction_name(c->what));
		json_str_or_null(
			j, "from", c->is_memset ? NULL : activity_memory_kind_name(c->from));
		json_str_or_null(
			j, "to", activity_memory_kind_name(c->is_memset ? c->from : c->to));
		json_u64(j, "count", c->count);
		json_u64_or_null(j, "bytes", c->sized, c->bytes);
		json_u64_or_null(j, "min_bytes", c->sized, c->min_bytes);
		json_u64_or_null(j, "mean_bytes", c->sized, c->sized ? c->bytes / c->sized : 0);
		json_u64_or_null(j, "max_bytes", c->sized, c->max_bytes);
		json_u64(j, "device_total_ns", c->total_ns);
		json_u64(j, "device_p50_ns", hist_at(&c->hist, 0.5));
		put_rate(j, c->bytes, c->sized_ns);
		json_end_object(j);
	}
	json_end_array(j);
}

uint64_t report_kernels_ns(const struct report *r)
{
	uint64_t all = 0;
	for (size_t i = 0; i < r->activities.n; i++)
		if (r->activities.v[i].kind == GPU_KERNEL)
			all = sat_add(all, r->activities.v[i].total_ns);
	return all;
}

uint64_t report_operators_ns(const struct report *r)
{
	uint64_t all = 0;
	for (size_t i = 0; i < r->operators.n; i++)
		all = sat_add(all, r->operators.v[i].device_self_ns);
	return all;
}

void report_put_operator(
	struct json *j, const struct report *r, const struct operator_row *o, uint64_t all)
{
	json_str(j, "name", o->name);
	json_str_or_null(j, "kind", range_kind_name(o->kind));
	json_u64(j, "count", o->count);
	const bool known = report_has_device_times(r);
	json_u64_or_null(j, "device_count", known, o->activity_count);
	json_u64_or_null(j, "device_self_ns", known, o->device_self_ns);
	json_u64_or_null(j, "device_total_ns", known, o->device_total_ns);
	json_put_real(
		j, "total_share", known && all ? (double)o->device_total_ns / (double)all : NAN);
	json_put_real(j, "share", known && all ? (double)o->device_self_ns / (double)all : NAN);
	json_u64(j, "host_self_ns", trace_span_ns(r->trace, o->host_self_ticks));
	json_u64(j, "host_total_ns", trace_span_ns(r->trace, o->host_ticks));
	json_u64_or_null(j, "host_p50_ns", o->host_hist.count,
		trace_span_ns(r->trace, hist_at(&o->host_hist, 0.5)));
	json_u64_or_null(j, "device_p50_ns", o->device_hist.count, hist_at(&o->device_hist, 0.5));
	if (o->kind != RANGE_OPERATOR)
		json_u64_or_null(j, "span_p50_ns", o->span_hist.count, hist_at(&o->span_hist, 0.5));
	roofline_put_json(j, r->gpu, &o->roofline);
	if (r->by_shape && o->shape_bytes)
		json_strn(j, "shape", o->shape, o->shape_bytes);
	else if (r->by_shape)
		json_put_null(j, "shape");
}

static void put_operators(struct json *j, const struct report *r)
{
	const uint64_t all = report_operators_ns(r);
	json_begin_array(j, "operators");
	for (size_t i = 0; i < r->operators.n; i++) {
		json_begin_object(j, NULL);
		report_put_operator(j, r, &r->operators.v[i], all);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_spans(struct json *j, const struct report *r)
{
	json_begin_array(j, "spans");
	for (size_t i = 0; i < r->span_rows.n; i++) {
		const struct span_row *s = &r->span_rows.v[i];
		json_begin_object(j, NULL);
		json_str(j, "name", s->name);
		json_str_or_null(j, "kind", range_kind_name(s->kind));
		json_u64(j, "count", s->count);
		json_u64(j, "host_total_ns", trace_span_ns(r->trace, s->host_ticks));
		json_u64_or_null(j, "host_p50_ns", s->host_hist.count,
			trace_span_ns(r->trace, hist_at(&s->host_hist, 0.5)));
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_streams(struct json *j, const struct report *r)
{
	const uint64_t start = r->trace->header.start.mono_ns, on = r->wall_ns - r->off_ns;
	json_begin_array(j, "streams");
	for (size_t i = 0; i < r->stream_rows.n; i++) {
		const struct stream_row *s = &r->stream_rows.v[i];
		expect(s->first_ns <= s->last_ns, "a stream ends after it began");
		json_begin_object(j, NULL);
		json_u64(j, "pid", r->trace->processes.v[s->process].pid);
		json_u64(j, "device", s->device);
		json_u64(j, "context", s->context);
		json_u64(j, "stream", s->stream);
		json_u64(j, "count", s->count);
		json_u64(j, "device_total_ns", s->total_ns);
		json_u64(j, "busy_ns", s->busy_ns);
		json_put_real(j, "busy_share", on ? (double)s->busy_ns / (double)on : NAN);
		json_u64(j, "first_ns", s->first_ns > start ? s->first_ns - start : 0);
		json_u64(j, "last_ns", s->last_ns > start ? s->last_ns - start : 0);
		json_end_object(j);
	}
	json_end_array(j);
}

/* What was asked of the driver: imported traces need not tell it of any thread. */
static bool tells_allocations(const struct report *r)
{
	bool told = r->trace->header.launched;
	for (size_t i = 0; i < r->threads.n && !told; i++)
		told = r->threads.v[i].sums.allocated_bytes;
	return told;
}

static void put_sums(struct json *j, const struct report *r, const struct thread_sums *s, bool told)
{
	json_u64(j, "calls", s->calls);
	json_u64(j, "launches", s->launches);
	json_u64(j, "timed_driver_calls", s->timed);
	json_u64(j, "timed_driver_calls_ns", trace_span_ns(r->trace, s->timed_ticks));
	json_u64(j, "sync_calls", s->waits);
	json_u64(j, "sync_ns", trace_span_ns(r->trace, s->wait_ticks));
	json_u64_or_null(j, "allocated_bytes", told, s->allocated_bytes);
}

/* Of all its threads. */
static struct thread_sums process_sums(const struct report *r, uint32_t process, uint32_t *ret_n)
{
	struct thread_sums all = { .process = process };
	for (size_t i = *ret_n = 0; i < r->threads.n; i++) {
		const struct thread_sums *s = &r->threads.v[i].sums;
		if (r->threads.v[i].process != process)
			continue;
		++*ret_n;
		all.calls = sat_add(all.calls, s->calls);
		all.launches = sat_add(all.launches, s->launches);
		all.timed = sat_add(all.timed, s->timed);
		all.timed_ticks = sat_add(all.timed_ticks, s->timed_ticks);
		all.waits = sat_add(all.waits, s->waits);
		all.wait_ticks = sat_add(all.wait_ticks, s->wait_ticks);
		all.allocated_bytes = sat_add(all.allocated_bytes, s->allocated_bytes);
	}
	return all;
}

static uint64_t process_device_ns(const struct report *r, uint32_t process)
{
	uint64_t ns = 0;
	for (size_t i = 0; i < r->stream_rows.n; i++)
		if (r->stream_rows.v[i].process == process)
			ns = sat_add(ns, r->stream_rows.v[i].total_ns);
	return ns;
}

static void put_processes(struct json *j, const struct report *r)
{
	const bool told = tells_allocations(r);
	json_begin_array(j, "processes");
	for (size_t i = 0; i < r->meta.processes.n; i++) {
		const struct meta_process *m = &r->meta.processes.v[i];
		json_begin_object(j, NULL);
		json_u64(j, "pid", r->trace->processes.v[i].pid);
		json_u64(j, "parent", m->parent);
		uint32_t threads;
		const struct thread_sums sums = process_sums(r, (uint32_t)i, &threads);
		json_u64(j, "threads", threads);
		put_sums(j, r, &sums, told);
		json_u64_or_null(
			j, "device_total_ns", r->stream_rows.n, process_device_ns(r, (uint32_t)i));
		json_str(j, "executable", m->executable);
		json_str(j, "arguments", m->arguments);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_all(struct json *j, const struct report *r)
{
	struct summary summary;
	put_trace(j, r);
	provenance_put_json(r, j);
	summary_make(r, &summary);
	summary_put_json(&summary, j);
	put_failures(j, r);
	put_warnings(j, r);
	put_totals(j, r);
	put_clock(j, r);
	put_join(j, r);
	section_put_json(j, &section_calls, r);
	callers_put_json(j, r);
	section_put_json(j, &section_kernels, r);
	put_memory(j, r);
	put_moved(j, r);
	put_devices(j, r);
	gpu_table_put_json(r, j);
	roofline_put_gpu(j, r);
	analysis_put_json(r, j);
	prediction_put_json(j, r);
	put_activity(j, r);
	put_device_copies(j, r);
	put_operators(j, r);
	put_spans(j, r);
	put_streams(j, r);
	put_processes(j, r);
	section_put_json(j, &section_threads, r);
	if (r->hints)
		hints_put_json(j, r->hints);
	json_end_object(j);
}

void report_print_json(const struct report *r, FILE *out)
{
	struct json j;
	json_begin_document(&j, out);
	put_all(&j, r);
}

void report_print_json_compact(const struct report *r, FILE *out)
{
	struct json j;
	json_begin_compact(&j, out);
	put_all(&j, r);
}
