/* The report as text: warnings first, then the program's requests to the GPU, largest first. */
#include "base/atomic.h"
#include "report/analysis.h"
#include "report/provenance.h"
#include "hint/hint.h"
#include "hint/summary.h"
#include "report/memory_print.h"
#include "report/report_make.h"
#include "report/sections.h"
#include "section/view.h"
#include "model/gpu_state.h"
#include "model/roofline.h"
#include "model/prediction.h"

#include <inttypes.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/text.h"

static bool is_probe(const struct row *row)
{
	return failure_probe(row->r, row->at);
}

static bool is_fault(const struct row *row)
{
	return !is_probe(row);
}

static const struct view failures = { .section = &section_failures,
	.heading = "Failing calls",
	.keys = "count,name,code,error,tid,first_ns",
	.has = is_fault,
	.wrong = true };

static const struct view probes = { .section = &section_failures,
	.heading = "Failing calls that are no fault",
	.keys = "count,name,code,error,tid,first_ns,probe",
	.has = is_probe };

static void put_warnings(const struct report *r, const struct text_page *p)
{
	if (!r->warnings.n)
		return;
	page_heading(p, "Warnings");
	for (size_t i = 0; i < page_shown(p, r->warnings.n); i++) {
		fputs("  ", p->out);
		text_put_safe(p->out, r->warnings.v[i]);
		putc('\n', p->out);
	}
	if (page_shown(p, r->warnings.n) < r->warnings.n)
		fprintf(p->out, "  … and %zu more (-n 0 shows all)\n",
			r->warnings.n - page_shown(p, r->warnings.n));
}

static void put_total(const struct text_page *p, const char *what, const char *value)
{
	fprintf(p->out, "  %-16s %s\n", what, value);
}

static void put_exit(const struct report *r, const struct text_page *p)
{
	const struct trace_header *h = &r->trace->header;
	char text[64];
	if (h->state != TRACE_FINISHED)
		snprintf(text, sizeof text, "not finished, or not ended in order");
	else if (!h->launched)
		return;
	else if (trace_exit_signal(h))
		snprintf(text, sizeof text, "killed by signal %u", trace_exit_signal(h));
	else
		snprintf(text, sizeof text, "exit status %u", trace_exit_status(h));
	put_total(p, "ended", text);
}

/* Which part of the recording this is about. */
static void put_part(const struct report *r, const struct text_page *p)
{
	const struct trace_cut_text *c = &r->trace->part;
	struct number part, whole, from, to;
	char text[400];
	if (!r->trace->parts.n)
		return;
	snprintf(text, sizeof text, "%s of %s, from %s to %s%s%s", number_ns(&part, c->part_ns),
		number_ns(&whole, c->whole_ns), number_ns(&from, c->from_ns),
		number_ns(&to, c->to_ns), *c->how ? "; " : "", c->how);
	put_total(p, r->trace->cut ? "read in part" : "recorded in part", text);
	if (r->trace->parts.n > 1) {
		snprintf(text, sizeof text, "%zu, with the time between them left out",
			r->trace->parts.n);
		put_total(p, "parts", text);
	}
}

/* An activity that began in the part may end after it: no activity is cut off. */
static void put_wall(const struct report *r, const struct text_page *p)
{
	const uint64_t part_ns = r->trace->part.part_ns;
	struct number wall, late;
	fprintf(p->out, "  %-16s %s", "wall time", number_ns(&wall, r->wall_ns));
	if (r->trace->cut && r->wall_ns > part_ns)
		fprintf(p->out, ": GPU activities that began in the part end up to %s after it",
			number_ns(&late, r->wall_ns - part_ns));
	putc('\n', p->out);
}

static void put_totals(const struct report *r, const struct text_page *p)
{
	const struct {
		const char *what;
		uint64_t count;
		bool always;
	} counts[] = {
		{ "processes", r->trace->processes.n, true },
		{ "threads", r->threads.n, true },
		{ "calls", r->calls, true },
		{ "failing calls", r->errors, false },
		{ "calls lost", r->lost, false },
		{ "allocator events", r->allocator_events, false },
		{ "kernels run", r->launches, true },
		{ "graph launches", r->graph_launches, false },
		{ "streams used", r->streams, false },
		{ "contexts used", r->contexts, false },
	};
	struct number n;
	page_heading(p, "Totals");
	put_part(r, p);
	put_wall(r, p);
	if (r->off_ns)
		put_total(p, "switched off", number_ns(&n, r->off_ns));
	put_exit(r, p);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		if (counts[i].count || counts[i].always)
			put_total(p, counts[i].what, number_count(&n, counts[i].count));
}

static int api_of(const struct call_row *c)
{
	return c->fn ? c->fn->api : API_DRIVER;
}

static bool is_of_runtime(const struct row *row)
{
	return api_of(row->at) == API_RUNTIME;
}

static bool is_of_driver(const struct row *row)
{
	return api_of(row->at) == API_DRIVER;
}

static bool is_of_allocator(const struct row *row)
{
	return api_of(row->at) == API_ALLOCATOR;
}

/* If only some calls of a function are timed, its times are of those alone, and a column says how
 * many they are. */
static void put_calls_of(const struct report *r, const struct text_page *p,
	bool (*has)(const struct row *row), const char *heading)
{
	bool in_part = false;
	array_each(const struct call_row, c, r->call_rows)
		in_part |=
			(!has || has(&(struct row){ .at = c })) && c->timed && !call_total_known(c);
	const struct view view = { .section = &section_calls,
		.heading = heading,
		.keys = in_part ? "count,summed_count,total_ns,p50_ns,p99_ns,max_ns,errors,name"
				: "count,total_ns,p50_ns,p99_ns,max_ns,errors,name",
		.has = has };
	view_put(&view, r, p);
}

/* A call of the runtime lasts as long as those that it makes of the driver: in one table the same
 * time would stand twice. */
static void put_calls(const struct report *r, const struct text_page *p)
{
	static const struct {
		int api;
		bool (*has)(const struct row *row);
		const char *name, *more;
	} layers[] = { { API_RUNTIME, is_of_runtime, "Runtime calls", "" },
		{ API_DRIVER, is_of_driver, "Driver calls",
			"; those that runtime calls make are here too" },
		{ API_ALLOCATOR, is_of_allocator, "Calls of the program's allocator", "" } };
	struct {
		uint64_t ticks, count, summed;
	} of[API_ALLOCATOR + 1] = { 0 };
	char heading[200], without[60];
	struct number sum, untimed;
	array_each(const struct call_row, c, r->call_rows) {
		const int api = api_of(c);
		of[api].count += c->count;
		of[api].summed += c->summed;
		of[api].ticks = sat_add(of[api].ticks, c->total_ticks);
	}
	if (!of[API_RUNTIME].count || !of[API_DRIVER].count)
		return put_calls_of(r, p, NULL, "Calls by total time on the host");
	for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
		const int api = layers[i].api;
		if (!of[api].count)
			continue;
		snprintf(without, sizeof without, " without %s that were only counted",
			number_count(&untimed, of[api].count - of[api].summed));
		snprintf(heading, sizeof heading, "%s by total time on the host, together %s%s%s",
			layers[i].name, number_ns(&sum, trace_span_ns(r->trace, of[api].ticks)),
			of[api].count > of[api].summed ? without : "", layers[i].more);
		put_calls_of(r, p, layers[i].has, heading);
	}
}

static void put_kernels(const struct report *r, const struct text_page *p)
{
	static const struct view view = { .section = &section_kernels,
		.heading = "Kernels by number of runs",
		.keys = "count,graph_count,host_total_ns,grid,block,shapes,name" };
	if (!r->kernel_rows.n || r->device_kernels)
		return;
	view_put(&view, r, p);
	if (!r->activities.n && !r->sampled)
		fputs("  device times were not recorded: weir record --gpu has them\n", p->out);
}

static void put_reconstructed(const struct report *r, const struct text_page *p)
{
	struct number n, error;
	if (r->reconstructed)
		fprintf(p->out,
			"  %s GPU activities are reconstructed, and off by %s on average (standard deviation)\n",
			number_count(&n, r->reconstructed),
			number_ns(&error, sat_from(r->reconstructed_error_ns)));
}

static void put_devices(const struct report *r, const struct text_page *p)
{
	static const struct view view = { .section = &section_devices,
		.heading = "Devices",
		.keys = "device,busy_ns,busy_share,kernel_ns,copy_ns,set_ns,name" };
	if (r->sampled)
		return analysis_put_sampling(r, p);
	if (!view_put(&view, r, p))
		return;
	put_reconstructed(r, p);
	analysis_put_join(r, p);
}

/* Says why a share may be above 1, if one of the kernels that the page shows has one. */
static void put_over(const struct report *r, const struct text_page *p)
{
	for (size_t i = 0; i < page_shown(p, r->kernel_rows.n); i++) {
		const uint32_t activity = r->kernel_rows.v[i].activity;
		if (activity != ACTIVITY_NONE &&
			roofline_is_over(&r->activities.v[activity].roofline))
			return roofline_put_over(p->out);
	}
}

static void put_kernel_times(const struct report *r, const struct text_page *p)
{
	static const struct view times = { .section = &section_kernels,
		.heading = "Kernels by time on the device",
		.keys = "device_total_ns,share,count,device_mean_ns,device_p50_ns,bound,grid,block,"
			"name" };
	static const struct view estimates = { .section = &section_kernels,
		.heading = "Kernels by estimated time on the device",
		.keys = "device_total_estimate_ns,estimate_error,share,count,device_timed,"
			"device_mean_ns,device_p50_ns,grid,block,name" };
	if (!r->device_kernels)
		return;
	view_put(r->sampled ? &estimates : &times, r, p);
	if (!r->sampled)
		put_over(r, p);
}

static bool is_operator(const struct row *row)
{
	return ((const struct operator_row *)row->at)->kind == RANGE_OPERATOR;
}

static bool is_layer(const struct row *row)
{
	return !is_operator(row);
}

static void put_operators(const struct report *r, const struct text_page *p)
{
	const struct view view = { .section = &section_operators,
		.heading = report_has_device_times(r) ? "Operators by their own time on the device"
						      : "Operators by their time on the host",
		.keys = "device_self_ns,share,device_total_ns,count,device_count,host_self_ns,"
			"host_total_ns,bound,name",
		.has = is_operator };
	const size_t shown = page_shown(p, view_put(&view, r, p));
	bool over = false;
	for (size_t i = 0, n = 0; i < r->operators.n && n < shown; i++) {
		const struct operator_row *o = &r->operators.v[i];
		n += o->kind == RANGE_OPERATOR;
		over |= o->kind == RANGE_OPERATOR && roofline_is_over(&o->roofline);
	}
	if (over)
		roofline_put_over(p->out);
	if (shown)
		roofline_put_unknown(p->out, r);
}

ORDERING(layer_order, struct operator_row *const,
	ORDER((*b)->device_total_ns, (*a)->device_total_ns),
	ORDER((*b)->host_ticks, (*a)->host_ticks), strcmp((*a)->name, (*b)->name),
	ORDER((*a)->kind, (*b)->kind))

/* Shows the ranges that the program, or its framework, has named: with all that runs inside. */
static void put_layers(const struct report *r, const struct text_page *p)
{
	const struct view view = { .section = &section_operators,
		.heading = report_has_device_times(r)
				   ? "Layers and annotations by time on the device, with all inside"
				   : "Layers and annotations by time on the host",
		.keys = "device_total_ns,count,host_total_ns,span_p50_ns,host_p50_ns,kind,name",
		.has = is_layer,
		.order = layer_order };
	bool spans = false;
	for (size_t i = 0; i < r->operators.n; i++)
		spans |= r->operators.v[i].kind != RANGE_OPERATOR &&
			 r->operators.v[i].span_hist.count;
	if (view_put(&view, r, p) && spans)
		fprintf(p->out, "%s\n", range_span_meaning);
}

static const struct view spans = { .section = &section_spans,
	.heading = "Ranges that may cross others, and marks",
	.keys = "host_total_ns,count,host_p50_ns,kind,name" };

static const struct view streams = { .section = &section_streams,
	.heading = "Streams by time on the device",
	.keys = "device_total_ns,busy_share,count,device,context,stream,pid" };

static void put_copies(const struct report *r, const struct text_page *p)
{
	static const struct view device_copies = { .section = &section_memops,
		.heading = "Copies and memsets by time on the device",
		.keys = "count,bytes,mean_bytes,device_total_ns,device_p50_ns,bytes_per_second,"
			"route" };
	static const struct view copies = { .section = &section_memcpys,
		.keys = "count,bytes,mean_bytes,direction" };
	static const struct view sets = { .section = &section_memsets,
		.keys = "count,bytes,mean_bytes" };
	if (view_put(&device_copies, r, p))
		return;
	view_put(&copies, r, p);
	if (r->sets.count)
		view_put(&sets, r, p);
}

static const struct view processes = {
	.section = &section_processes, .heading = "Processes", .keys = "pid,parent,program"
};

/* How many there are, and how they compare with what was measured. */
static void put_prediction(const struct report *r, const struct text_page *p)
{
	static const struct view graphs = { .section = &section_prediction,
		.heading = "Predictions of whole graphs, from the first kernel to the last",
		.keys = "graphs.launches,graphs.error_median,graphs.error_p90,graphs.covered,"
			"graphs.measured_ns,graphs.predicted_ns" };
	const struct prediction *all = r->prediction;
	struct number a, b;
	if (!all)
		return;
	page_heading(p, "Predicted times");
	fprintf(p->out, "  %s launches were predicted", number_count(&a, all->launches));
	if (all->unpredicted)
		fprintf(p->out, ", %s were not", number_count(&b, all->unpredicted));
	if (!all->measured) {
		fputs("; there are no device times to compare them with\n", p->out);
		return;
	}
	fprintf(p->out, "; %s of them have a device time", number_count(&a, all->measured));
	if (all->contended)
		fprintf(p->out, ", of which %s shared the device and are left out",
			number_count(&b, all->contended));
	putc('\n', p->out);
	view_put(&(struct view){ .section = &section_predictors }, r, p);
	if (all->graphs.count)
		view_put_object(&graphs, r, p);
	view_put(&(struct view){ .section = &section_prediction_kernels }, r, p);
}

static void put_cell(struct table *t, const struct column *c, const struct row *row)
{
	const struct value v = column_get(c, row);
	section_put_cell(t, c, &v, &(struct cell_style){ .full = true });
}

/* A line for each metric that a GPU tells: in its columns an object of three values. */
static void put_gpu_metrics(const struct report *r, const struct text_page *p)
{
	const struct section *s = &section_gpu_state_gpus;
	struct rows rows;
	struct table t = table_of(">GPU|>min|>median|>max|<what");
	section_open(s, r, &rows);
	for (size_t i = 0; i < rows.n; i++) {
		const struct row row = row_at(&rows, i);
		for (const struct column *c = s->columns; c->key; c++) {
			if (c->unit != UNIT_LIST || c->inner ||
				column_get(c, &row).kind == VALUE_NULL)
				continue;
			put_cell(&t, s->columns, &row);
			for (int k = 1; k <= 3; k++)
				put_cell(&t, c + k, &row);
			table_cell(&t, "%s", c->heading);
		}
	}
	section_close(&rows);
	table_end(&t, p->out, p->dim, p->plain, 0);
}

static void put_gpu_state(const struct report *r, const struct text_page *p)
{
	static const struct view slow = { .section = &section_gpu_slow };
	const struct gpu_states *s = r->gpu_states;
	struct number interval;
	char heading[100];
	if (!s || !s->gpus.n)
		return;
	snprintf(heading, sizeof heading, "GPU state (NVML, a sample each %s)",
		number_ns(&interval, s->interval_ns));
	page_heading(p, s->interval_ns ? heading : "GPU state (NVML, one sample)");
	put_gpu_metrics(r, p);
	view_put(&slow, r, p);
}

static void put_requests(const struct report *r, const struct text_page *p)
{
	static const struct view view = { .section = &section_requests,
		.keys = "id,outcome,total_ns,cause,queue_ns,kernels_ns,engine_ns,model" };
	if (r->requests && view_put(&view, r, p))
		fputs("  --only requests has all parts of their time, --request N what one waited for\n",
			p->out);
}

static void put_title(const struct report *r, const struct text_page *p)
{
	const struct trace_header *h = &r->trace->header;
	fputs(p->bold, p->out);
	text_put_safe(p->out, *h->program ? h->program : "(program unknown)");
	fputs(p->plain, p->out);
	if (*h->host) {
		fputs(" on ", p->out);
		text_put_safe(p->out, h->host);
	}
	putc('\n', p->out);
}

/* Calls that were outside of the part that was asked for say nothing about the program. */
static void put_no_part(const struct report *r, const struct text_page *p)
{
	char part[300];
	const bool known = provenance_part(r, part, sizeof part);
	fprintf(p->out, "\n%s",
		r->trace->captures ? "No CUDA call was made in the part that was asked for"
				   : "The part that was asked for never began");
	if (known) {
		fputs(" (", p->out);
		text_put_safe(p->out, part);
		putc(')', p->out);
	}
	fputs(". Calls outside of it are not recorded.\n", p->out);
}

static void put_nothing(const struct report *r, const struct text_page *p)
{
	const struct trace *t = r->trace;
	const bool ended = !t->damage_count && t->header.state == TRACE_FINISHED;
	const char *what = "No CUDA calls were recorded.";
	char level[64];
	if (ended && !t->cut && load_relaxed(&t->header.optional) & FEATURE_CAPTURE)
		return put_no_part(r, p);
	if (t->damage_count)
		what = "No CUDA call can be read from what is left of the file.";
	else if (t->cut)
		what = "No CUDA calls are in the part that is read.";
	else if (provenance_fact(r, "level", level, sizeof level) && !strcmp(level, "off"))
		what = "No CUDA calls were recorded: the level was off.";
	else if (ended)
		what = "The program made no CUDA calls.";
	fprintf(p->out, "\n%s\n", what);
}

void report_print_text(const struct report *r, FILE *out, const struct report_style *style)
{
	struct text_page p = text_page_of(out, style->rows, style->colour);
	struct summary summary;
	p.width = style->width;
	p.full_names = style->full_names;
	p.utf8 = style->utf8;
	put_title(r, &p);
	summary_make(r, &summary);
	summary_put_text(&summary, out);
	provenance_put_text(r, &p);
	view_put(&failures, r, &p);
	put_warnings(r, &p);
	put_requests(r, &p);
	if (!r->calls && !r->allocator_events && !r->activities.n && !r->operators.n) {
		put_nothing(r, &p);
		view_put(&processes, r, &p);
		return;
	}
	put_totals(r, &p);
	put_devices(r, &p);
	put_gpu_state(r, &p);
	analysis_put_text(r, &p);
	put_prediction(r, &p);
	put_kernel_times(r, &p);
	put_operators(r, &p);
	put_layers(r, &p);
	view_put(&spans, r, &p);
	if (r->calls)
		put_calls(r, &p);
	callers_put_text(r, &p);
	put_kernels(r, &p);
	memory_put_short(r, &p);
	put_copies(r, &p);
	view_put(&streams, r, &p);
	view_put(&processes, r, &p);
	if (r->hints)
		hints_print_text(r->hints, out, 0, true, style->colour);
	view_put(&probes, r, &p);
}
