/* The report as text: warnings first, then the program's requests to the GPU, largest first. */
#include "base/atomic.h"
#include "report/callers_print.h"
#include "report/analysis.h"
#include "report/gpu_table.h"
#include "report/provenance.h"
#include "hint/hint.h"
#include "hint/summary.h"
#include "report/memory_print.h"
#include "report/report_make.h"
#include "model/roofline.h"
#include "model/prediction.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/table.h"
#include "base/text.h"
#include "trace/activity.h"

#include "base/banned.h"

#define NAME_CUT 110 /* bytes of a kernel's name */

/* ---- what went wrong ---- */

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

/* ---- totals ---- */

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

/* What began in the part may end after it: no activity is cut off. */
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

/* ---- calls ---- */

static int api_of(const struct call_row *c)
{
	return c->fn ? c->fn->api : API_DRIVER;
}

/* Where only some are timed, what is said of times is of those alone. */
static bool is_timed_in_part(const struct call_row *c)
{
	return c->timed && !call_total_known(c);
}

static void put_call(
	const struct report *r, struct table *t, const struct call_row *c, bool says_timed)
{
	struct fn_name room;
	table_count(t, c->count);
	if (says_timed)
		table_count(t, c->summed);
	if (call_total_known(c))
		table_ns(t, trace_span_ns(r->trace, c->total_ticks));
	else
		table_none(t);
	for (int i = 0; i < 3; i++) {
		const double at[] = { 0.5, 0.99, 1 };
		if (c->timed)
			table_ns(t, trace_span_ns(r->trace,
					    i == 2 ? c->hist.max : hist_at(&c->hist, at[i])));
		else
			table_none(t);
	}
	if (c->errors)
		table_count(t, c->errors);
	else
		table_none(t);
	table_cell(t, "%s", report_fn_name(r, c->id, &room));
}

/* The calls of one layer, or of all where `api` is negative. */
static void put_calls_of(
	const struct report *r, const struct text_page *p, int api, const char *heading)
{
	static const char *const all[] = { "calls", "total", "median", "p99", "max", "errors",
		"function" };
	static const char *const some[] = { "calls", "timed", "total", "median", "p99", "max",
		"errors", "function" };
	struct table t;
	size_t rows = 0;
	bool in_part = false;
	for (size_t i = 0; i < r->call_rows.n; i++) {
		const bool shown = api < 0 || api_of(&r->call_rows.v[i]) == api;
		rows += shown;
		in_part |= shown && is_timed_in_part(&r->call_rows.v[i]);
	}
	page_heading(p, heading);
	table_init(&t, in_part ? ">>>>>>><" : ">>>>>><", in_part ? some : all);
	for (size_t i = 0, shown = 0; shown < page_shown(p, rows); i++) {
		if (api >= 0 && api_of(&r->call_rows.v[i]) != api)
			continue;
		put_call(r, &t, &r->call_rows.v[i], in_part);
		shown++;
	}
	page_end_table(p, &t, rows);
}

/* A call of the runtime lasts as long as those that it makes of the driver: in one table the same
 * time would stand twice. */
static void put_calls(const struct report *r, const struct text_page *p)
{
	static const struct {
		int api;
		const char *name, *more;
	} layers[] = { { API_RUNTIME, "Runtime calls", "" },
		{ API_DRIVER, "Driver calls", "; those that runtime calls make are here too" },
		{ API_ALLOCATOR, "Calls of the program's allocator", "" } };
	struct {
		uint64_t ticks, count, summed;
	} of[API_ALLOCATOR + 1] = { 0 };
	char heading[200], without[60];
	struct number sum, untimed;
	for (size_t i = 0; i < r->call_rows.n; i++) {
		const struct call_row *c = &r->call_rows.v[i];
		const int api = api_of(c);
		of[api].count += c->count;
		of[api].summed += c->summed;
		of[api].ticks = sat_add(of[api].ticks, c->total_ticks);
	}
	if (!of[API_RUNTIME].count || !of[API_DRIVER].count)
		return put_calls_of(r, p, -1, "Calls by total time on the host");
	for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
		const int api = layers[i].api;
		if (!of[api].count)
			continue;
		snprintf(without, sizeof without, " without %s that were only counted",
			number_count(&untimed, of[api].count - of[api].summed));
		snprintf(heading, sizeof heading, "%s by total time on the host, together %s%s%s",
			layers[i].name, number_ns(&sum, trace_span_ns(r->trace, of[api].ticks)),
			of[api].count > of[api].summed ? without : "", layers[i].more);
		put_calls_of(r, p, layers[i].api, heading);
	}
}

/* ---- kernels ---- */

static void cell_triple(struct table *t, const uint32_t *v)
{
	table_cell(t, "(%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")", v[0], v[1], v[2]);
}

/* A last column: on a terminal it is cut where that ends. */
static void cell_name(const struct text_page *p, struct table *t, const char *name)
{
	if (p->full_names || p->width)
		table_cell(t, "%s", name);
	else
		table_cell_name(t, name, NAME_CUT);
}

static void cell_kernel(const struct text_page *p, struct table *t, const char *name)
{
	cell_name(p, t, p->full_names ? name : text_kernel(name));
}

static void put_kernels(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "runs", "in graphs", "host time", "grid", "block",
		"shapes", "kernel" };
	struct table t;
	if (!r->kernel_rows.n || r->device_kernels)
		return;
	page_heading(p, "Kernels by number of runs");
	table_init(&t, ">>><<><", headings);
	for (size_t i = 0; i < page_shown(p, r->kernel_rows.n); i++) {
		const struct kernel_row *k = &r->kernel_rows.v[i];
		table_count(&t, k->count);
		table_count(&t, k->graph_count);
		table_ns(&t, trace_span_ns(r->trace, k->host_ticks));
		cell_triple(&t, k->shape.grid);
		cell_triple(&t, k->shape.block);
		table_count(&t, k->shapes);
		cell_kernel(p, &t, k->name);
	}
	page_end_table(p, &t, r->kernel_rows.n);
	if (!r->activities.n && !r->sampled)
		fputs("  device times were not recorded: weir record --gpu has them\n", p->out);
}

/* ---- what ran on devices ---- */

/* What the devices did for a kernel, or NULL. */
static const struct activity_row *activity_of(const struct report *r, const struct kernel_row *k)
{
	if (k->activity == ACTIVITY_NONE ||
		!expect(k->activity < r->activities.n,
			"the activities of a kernel are one of the rows"))
		return NULL;
	return &r->activities.v[k->activity];
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
	const char *const headings[] = { "device", "busy", r->off_ns ? "while on" : "of wall",
		"kernels", "memcpys", "memsets", "name" };
	struct table t;
	if (r->sampled)
		return analysis_put_sampling(r, p);
	if (!r->devices.n)
		return;
	page_heading(p, "Devices");
	table_init(&t, ">>>>>><", headings);
	for (size_t i = 0; i < page_shown(p, r->devices.n); i++) {
		const struct device_row *d = &r->devices.v[i];
		table_cell(&t, "%" PRIu32, d->device);
		table_ns(&t, d->busy_ns);
		table_share(&t, d->busy_ns, r->wall_ns - r->off_ns);
		table_ns(&t, d->kernel_ns);
		table_ns(&t, d->copy_ns);
		table_ns(&t, d->set_ns);
		table_cell(&t, "%s", d->name ? d->name : "");
	}
	page_end_table(p, &t, r->devices.n);
	put_reconstructed(r, p);
	analysis_put_join(r, p);
}

/* In percent: what is estimated is beside it. */
static void cell_error(struct table *t, const struct activity_row *w)
{
	if (isnan(w->error_ns) || !w->total_ns)
		table_cell(t, "?");
	else
		table_cell(t, "%.2g %%", 100 * w->error_ns / (double)w->total_ns);
}

static void put_nones(struct table *t, int count)
{
	while (count-- > 0)
		table_none(t);
}

static void put_sampled_kernels(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "estimate", "±", "share", "runs", "timed", "mean",
		"median", "grid", "block", "kernel" };
	uint64_t all = 0;
	struct table t;
	for (size_t i = 0; i < r->activities.n; i++)
		if (r->activities.v[i].kind == GPU_KERNEL)
			all = sat_add(all, r->activities.v[i].total_ns);
	page_heading(p, "Kernels by estimated time on the device");
	table_init(&t, ">>>>>>><<<", headings);
	for (size_t i = 0; i < page_shown(p, r->kernel_rows.n); i++) {
		const struct kernel_row *k = &r->kernel_rows.v[i];
		const struct activity_row *w = activity_of(r, k);
		if (w) {
			table_ns(&t, w->total_ns);
			cell_error(&t, w);
			expect(w->total_ns <= all, "a kernel is part of all");
			table_share(&t, w->total_ns, all);
		}
		put_nones(&t, w ? 0 : 3);
		table_count(&t, k->count);
		table_count(&t, w ? w->hist.count : 0);
		if (w) {
			table_ns(&t, w->count ? w->total_ns / w->count : 0);
			table_ns(&t, hist_at(&w->hist, 0.5));
		}
		put_nones(&t, w ? 0 : 2);
		cell_triple(&t, k->shape.grid);
		cell_triple(&t, k->shape.block);
		cell_kernel(p, &t, k->name);
	}
	page_end_table(p, &t, r->kernel_rows.n);
}

static void put_kernel_times(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "time", "share", "runs", "mean", "median",
		"bound by", "grid", "block", "kernel" };
	const uint64_t all = report_kernels_ns(r);
	bool over = false;
	struct table t;
	if (!r->device_kernels)
		return;
	if (r->sampled)
		return put_sampled_kernels(r, p);
	page_heading(p, "Kernels by time on the device");
	table_init(&t, ">>>>><<<<", headings);
	for (size_t i = 0; i < page_shown(p, r->kernel_rows.n); i++) {
		const struct kernel_row *k = &r->kernel_rows.v[i];
		const struct activity_row *w = activity_of(r, k);
		if (w) {
			table_ns(&t, w->total_ns);
			table_share(&t, w->total_ns, all);
			table_count(&t, w->count);
			table_ns(&t, w->count ? w->total_ns / w->count : 0);
			table_ns(&t, hist_at(&w->hist, 0.5));
			roofline_cell(&t, &w->roofline);
			over |= roofline_is_over(&w->roofline);
		} else {
			put_nones(&t, 2);
			table_count(&t, k->count);
			put_nones(&t, 3);
		}
		cell_triple(&t, k->shape.grid);
		cell_triple(&t, k->shape.block);
		cell_kernel(p, &t, k->name);
	}
	page_end_table(p, &t, r->kernel_rows.n);
	if (over)
		roofline_put_over(p->out);
}

static void cell_device(struct table *t, const struct report *r, uint64_t ns)
{
	if (report_has_device_times(r))
		table_ns(t, ns);
	else
		table_none(t);
}

static void put_operators(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "self", "share", "total", "count", "activities",
		"host self", "host total", "bound by", "operator" };
	const uint64_t all = report_operators_ns(r);
	size_t rows = 0, put = 0;
	bool over = false;
	struct table t;
	for (size_t i = 0; i < r->operators.n; i++)
		rows += r->operators.v[i].kind == RANGE_OPERATOR;
	if (!rows)
		return;
	page_heading(p, report_has_device_times(r) ? "Operators by their own time on the device"
						   : "Operators by their time on the host");
	table_init(&t, ">>>>>>><<", headings);
	for (size_t i = 0; put < page_shown(p, rows); i++) {
		const struct operator_row *o = &r->operators.v[i];
		if (o->kind != RANGE_OPERATOR)
			continue;
		put++;
		cell_device(&t, r, o->device_self_ns);
		table_share(&t, o->device_self_ns, all);
		cell_device(&t, r, o->device_total_ns);
		table_count(&t, o->count);
		if (report_has_device_times(r))
			table_count(&t, o->activity_count);
		else
			table_none(&t);
		table_ns(&t, trace_span_ns(r->trace, o->host_self_ticks));
		table_ns(&t, trace_span_ns(r->trace, o->host_ticks));
		roofline_cell(&t, &o->roofline);
		over |= roofline_is_over(&o->roofline);
		cell_name(p, &t, o->name);
	}
	page_end_table(p, &t, rows);
	if (over)
		roofline_put_over(p->out);
	roofline_put_unknown(p->out, r);
}

static void cell_p50(struct table *t, uint64_t count, uint64_t ns)
{
	if (count)
		table_ns(t, ns);
	else
		table_none(t);
}

static int layer_order(const void *one, const void *two)
{
	const struct operator_row *a = *(const struct operator_row *const *)one;
	const struct operator_row *b = *(const struct operator_row *const *)two;
	if (a->device_total_ns != b->device_total_ns)
		return a->device_total_ns > b->device_total_ns ? -1 : 1;
	if (a->host_ticks != b->host_ticks)
		return a->host_ticks > b->host_ticks ? -1 : 1;
	const int names = strcmp(a->name, b->name);
	return names ? names : a->kind - b->kind;
}

/* What the program, or its framework, has given a name to: with all that runs inside. */
static void put_layers(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "device", "count", "host", "median span on device",
		"median host", "kind", "name" };
	const struct operator_row **rows = calloc(r->operators.n + 1, sizeof *rows);
	size_t n = 0;
	bool spans = false;
	struct table t;
	for (size_t i = 0; rows && i < r->operators.n; i++)
		if (r->operators.v[i].kind != RANGE_OPERATOR)
			rows[n++] = &r->operators.v[i];
	if (n) {
		qsort(rows, n, sizeof *rows, layer_order);
		page_heading(p, report_has_device_times(r)
					? "Layers and annotations by time on the device, "
					  "with all inside"
					: "Layers and annotations by time on the host");
		table_init(&t, ">>>>><<", headings);
	}
	for (size_t i = 0; i < page_shown(p, n); i++) {
		cell_device(&t, r, rows[i]->device_total_ns);
		table_count(&t, rows[i]->count);
		table_ns(&t, trace_span_ns(r->trace, rows[i]->host_ticks));
		cell_p50(&t, rows[i]->span_hist.count, hist_at(&rows[i]->span_hist, 0.5));
		cell_p50(&t, rows[i]->host_hist.count,
			trace_span_ns(r->trace, hist_at(&rows[i]->host_hist, 0.5)));
		table_cell(&t, "%s", range_kind_name(rows[i]->kind));
		cell_name(p, &t, rows[i]->name);
		spans |= rows[i]->span_hist.count != 0;
	}
	if (n)
		page_end_table(p, &t, n);
	if (spans)
		fprintf(p->out, "%s\n", range_span_meaning);
	free(rows);
}

static void put_spans(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "host", "count", "median host", "kind", "name" };
	struct table t;
	if (!r->span_rows.n)
		return;
	page_heading(p, "Ranges that may cross others, and marks");
	table_init(&t, ">>><<", headings);
	for (size_t i = 0; i < page_shown(p, r->span_rows.n); i++) {
		const struct span_row *s = &r->span_rows.v[i];
		table_ns(&t, trace_span_ns(r->trace, s->host_ticks));
		table_count(&t, s->count);
		cell_p50(&t, s->host_hist.count,
			trace_span_ns(r->trace, hist_at(&s->host_hist, 0.5)));
		table_cell(&t, "%s", range_kind_name(s->kind));
		cell_name(p, &t, s->name);
	}
	page_end_table(p, &t, r->span_rows.n);
}

static void put_streams(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "time", "busy of wall", "activities", "device",
		"context", "stream", "pid" };
	struct table t;
	if (!r->stream_rows.n)
		return;
	page_heading(p, "Streams by time on the device");
	table_init(&t, ">>>>>>>", headings);
	for (size_t i = 0; i < page_shown(p, r->stream_rows.n); i++) {
		const struct stream_row *s = &r->stream_rows.v[i];
		table_ns(&t, s->total_ns);
		table_share(&t, s->busy_ns, r->wall_ns - r->off_ns);
		table_count(&t, s->count);
		table_cell(&t, "%" PRIu32, s->device);
		table_cell(&t, "%" PRIu32, s->context);
		table_cell(&t, "%" PRIu32, s->stream);
		table_cell(&t, "%" PRIu32, r->trace->processes.v[s->process].pid);
	}
	page_end_table(p, &t, r->stream_rows.n);
}

static void cell_rate(struct table *t, uint64_t bytes, uint64_t ns)
{
	struct number n;
	if (ns)
		table_cell(t, "%s/s", number_bytes(&n, sat_from((double)bytes * 1e9 / (double)ns)));
	else
		table_none(t);
}

static void cell_bytes(struct table *t, bool known, uint64_t bytes)
{
	if (known)
		table_bytes(t, bytes);
	else
		table_none(t);
}

static void put_device_copy(struct table *t, const struct copy_row *c)
{
	const char *direction = c->is_memset ? "memset" : copy_direction_name(c->what);
	const char *from = activity_memory_kind_name(c->from),
		   *to = activity_memory_kind_name(c->to);
	table_count(t, c->count);
	cell_bytes(t, c->sized, c->bytes);
	cell_bytes(t, c->sized, c->sized ? c->bytes / c->sized : 0);
	table_ns(t, c->total_ns);
	table_ns(t, hist_at(&c->hist, 0.5));
	cell_rate(t, c->bytes, c->sized_ns);
	table_cell(t, "%s%s%s%s%s", direction ? direction : "copy", from ? ", " : "",
		from ? from : "", to ? " to " : "", to ? to : "");
}

static void put_device_copies(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "count", "bytes", "mean", "time", "median", "rate",
		"direction" };
	struct table t;
	page_heading(p, "Copies and memsets by time on the device");
	table_init(&t, ">>>>>><", headings);
	for (size_t i = 0; i < page_shown(p, r->device_copies.n); i++)
		put_device_copy(&t, &r->device_copies.v[i]);
	page_end_table(p, &t, r->device_copies.n);
}

/* ---- copies ---- */

static void put_moved(struct table *t, const struct moved_row *m, const char *name)
{
	table_count(t, m->count);
	cell_bytes(t, m->sized, m->bytes);
	cell_bytes(t, m->sized, m->sized ? m->bytes / m->sized : 0);
	table_cell(t, "%s", name);
}

static void put_copies(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "calls", "bytes", "mean", "direction" };
	struct table t;
	if (r->device_copies.n)
		return put_device_copies(r, p);
	if (!r->copies.n && !r->sets.count)
		return;
	page_heading(p, "Copies and memsets");
	table_init(&t, ">>><", headings);
	for (size_t i = 0; i < r->copies.n; i++)
		put_moved(&t, &r->copies.v[i], r->copies.v[i].direction);
	if (r->sets.count)
		put_moved(&t, &r->sets, "memset");
	table_print(&t, p->out, p->dim, p->plain);
	table_fini(&t);
}

/* ---- processes ---- */

static void put_processes(const struct report *r, const struct text_page *p)
{
	static const char *const headings[] = { "pid", "parent", "program" };
	struct table t;
	if (!r->meta.processes.n)
		return;
	page_heading(p, "Processes");
	table_init(&t, ">><", headings);
	for (size_t i = 0; i < page_shown(p, r->meta.processes.n); i++) {
		const struct meta_process *m = &r->meta.processes.v[i];
		table_cell(&t, "%" PRIu32, r->trace->processes.v[i].pid);
		table_cell(&t, "%" PRIu32, m->parent);
		table_cell(&t, "%.*s", 120, *m->arguments ? m->arguments : m->executable);
	}
	page_end_table(p, &t, r->meta.processes.n);
}

static void put_prediction(const struct report *r, const struct text_page *p)
{
	if (!r->prediction)
		return;
	page_heading(p, "Predicted times");
	prediction_put_text(r, p);
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
	failures_put_text(r, &p, false);
	put_warnings(r, &p);
	if (!r->calls && !r->allocator_events && !r->activities.n && !r->operators.n) {
		put_nothing(r, &p);
		return put_processes(r, &p);
	}
	put_totals(r, &p);
	put_devices(r, &p);
	gpu_table_put_text(r, &p);
	analysis_put_text(r, &p);
	put_prediction(r, &p);
	put_kernel_times(r, &p);
	put_operators(r, &p);
	put_layers(r, &p);
	put_spans(r, &p);
	if (r->calls)
		put_calls(r, &p);
	callers_put_text(r, &p);
	put_kernels(r, &p);
	memory_put_short(r, &p);
	put_copies(r, &p);
	put_streams(r, &p);
	put_processes(r, &p);
	if (r->hints)
		hints_print_text(r->hints, out, 0, true, style->colour);
	failures_put_text(r, &p, true);
}
