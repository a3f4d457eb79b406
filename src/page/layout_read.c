/*
 * Reads the items of a timeline from a trace.
 *
 * Records stand in the order in which calls ended. A thread is read backwards, so a call comes
 * before those inside it, and its depth is the number of open calls. Ranges are sorted by thread
 * and time for the same reason. A stream's activities are one row, and the drawer moves overlapping
 * ones to other rows.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounded.h"
#include "base/expect.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/demangle.h"
#include "model/request_times.h"
#include "model/tally.h"
#include "page/layout.h"
#include "trace/activity.h"
#include "trace/thread_calls.h"

#define NONE      LAYOUT_NONE
#define OPEN_MOST 64
#define TEXT_MOST                                                                                  \
	30000u /* with more calls or ranges, their arguments would be most of the page             \
		*/

struct span { /* a range */
	uint64_t start_ns, end_ns;
	uint32_t lane;
	uint32_t name;
	uint32_t args; /* into meta.names, or META_NONE */
};

struct reader {
	struct layout *t;
	const struct report *r;
	struct chunk_buf buf;
	struct thread_calls calls;
	ARRAY(struct span) spans;
	struct links_by_call links;
	uint64_t open[OPEN_MOST]; /* calls: when they begin */
	uint64_t open_end[OPEN_MOST];
	uint32_t depth;
	uint32_t *meta_name; /* by index into meta.names; NONE until asked for */
	uint32_t *fn_name;   /* by id of a function */
	bool with_text;
};

/* A name of the trace, as people write it. */
static uint32_t name_of(struct reader *r, uint32_t name, const char *instead)
{
	if (name == META_NONE)
		return layout_name(r->t, instead);
	if (!expect(name < r->r->meta.names.n, "a name is one of all"))
		return NONE;
	if (r->meta_name[name] == NONE) {
		char *text = demangle(r->r->meta.names.v[name].text);
		r->meta_name[name] = layout_name(r->t, text);
		free(text);
	}
	return r->meta_name[name];
}

static uint32_t string_of(struct reader *r, uint32_t id)
{
	return name_of(r, meta_find_string(&r->r->meta, r->buf.ref->process, id), "(no name)");
}

static uint32_t call_name(struct reader *r, uint16_t id)
{
	struct fn_name room;
	if (r->fn_name[id] == NONE)
		r->fn_name[id] = layout_name(r->t, report_fn_name(r->r, id, &room));
	return r->fn_name[id];
}

/* The correlation of a call: that of the first link in it; 0 when there is none. */
static uint64_t link_of(const struct reader *r, uint32_t tid, const struct record *c)
{
	const uint32_t process = r->calls.buf.ref->process;
	const size_t at = links_from(&r->links, process, tid, c->ticks);
	const struct call_link *l = links_until(&r->links, at, process, tid, record_end(c));
	return l ? l->correlation : 0;
}

static void describe(struct reader *r, const struct record *c, struct layout_detail *d)
{
	const struct schema_fn *fn = schema_find(&r->r->trace->schema, c->fn);
	const char *error = c->result ? decode_result(fn, c->result) : NULL;
	struct launch_shape shape;
	char line[2100];
	if (error)
		d->error = layout_name(r->t, error);
	if (fn && fn->launch_layout && decode_shape(c, &shape)) {
		const uint32_t name = meta_find_kernel(&r->r->meta, r->calls.buf.ref->process,
			c->arg[LAUNCH_FUNCTION], record_end(c));
		d->valid |= DETAIL_SHAPE | DETAIL_SHARED;
		memcpy(d->grid, shape.grid, sizeof d->grid);
		memcpy(d->block, shape.block, sizeof d->block);
		d->shared = c->aux;
		if (name == META_NONE) /* the driver's call below a runtime's may know it */
			return;
		d->kernel = name_of(r, name, "");
		return;
	}
	if (fn && schema_call_bytes(fn, c, &d->bytes))
		d->valid |= DETAIL_BYTES;
	if (!r->with_text)
		return;
	decode_record(&(struct decoder){ .schema = &r->r->trace->schema }, c, line, sizeof line);
	d->text = layout_name(r->t, line);
}

static uint32_t put_detail(struct reader *r, const struct layout_detail *d)
{
	const bool empty = !d->valid && d->kernel == NONE && d->text == NONE && d->error == NONE;
	return empty ? NONE : layout_detail(r->t, d);
}

/* Leaves the calls that this one is not in, and enters it; its depth. */
static uint32_t enter(struct reader *r, const struct record *c)
{
	while (r->depth &&
		(r->open[r->depth - 1] > c->ticks || r->open_end[r->depth - 1] < record_end(c)))
		r->depth--;
	const uint32_t depth = r->depth;
	expect(!depth ||
			(r->open[depth - 1] <= c->ticks && r->open_end[depth - 1] >= record_end(c)),
		"a call stands below one that contains it");
	if (r->depth < OPEN_MOST) {
		r->open[r->depth] = c->ticks;
		r->open_end[r->depth++] = record_end(c);
	}
	return depth;
}

static void take_call(struct reader *r, uint32_t lane, const struct record *c)
{
	struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
	struct layout_item item = { .start_ns = trace_since_ns(r->r->trace, c->ticks),
		.end_ns = trace_since_ns(r->r->trace, record_end(c)),
		.name = call_name(r, c->fn),
		.link = link_of(r, r->calls.buf.ref->head.tid, c) };
	describe(r, c, &d);
	item.detail = put_detail(r, &d);
	item.end_ns = MAX(item.start_ns, item.end_ns);
	layout_add(r->t, lane, enter(r, c), &item);
}

static void read_calls(struct reader *r)
{
	const struct chunk_ref *c = r->calls.buf.ref;
	const uint32_t lane = layout_lane(
		r->t, &(struct layout_lane){
			      .kind = LANE_CALLS, .process = c->process, .tid = c->head.tid });
	if (r->calls.new_thread)
		r->depth = 0;
	for (size_t i = r->calls.calls.n; i-- > 0;)
		take_call(r, lane, r->calls.calls.v[i]);
}

static int read_threads(struct reader *r)
{
	struct progress progress;
	thread_calls_init(&r->calls, r->r->trace);
	int e;
	progress_init(&progress, "laying out");
	while ((e = thread_calls_next(&r->calls)) > 0) {
		read_calls(r);
		progress_show(&progress, r->calls.next - 1, r->calls.chunks.v.n);
	}
	progress_fini(&progress);
	return e;
}

static uint16_t lane_of_range(uint16_t kind)
{
	return range_nests(kind) ? LANE_RANGES : kind == RANGE_PYTHON ? LANE_PYTHON : LANE_OTHER;
}

static int take_ranges(struct reader *r)
{
	struct cursor at = { .t = r->r->trace, .buf = &r->buf };
	for (struct range g; trace_next_range(&at, &g);) {
		const struct layout_lane lane = {
			.kind = lane_of_range(g.kind), .process = r->buf.ref->process, .tid = g.tid
		};
		struct span s = { .start_ns = trace_since_ns(r->r->trace, g.ticks),
			.end_ns = trace_since_ns(r->r->trace, range_end(&g)),
			.lane = layout_lane(r->t, &lane),
			.name = string_of(r, g.name),
			.args = META_NONE };
		if (g.args)
			s.args = meta_find_string(&r->r->meta, r->buf.ref->process, g.args);
		struct span *to = array_push(&r->spans);
		s.end_ns = MAX(s.start_ns, s.end_ns);
		*to = s;
	}
	return at.error;
}

ORDERING(span_order, struct span, ORDER(a->lane, b->lane), ORDER(a->start_ns, b->start_ns),
	ORDER(b->end_ns, a->end_ns))

/* Arguments are most of a range, so they are kept only of few. */
static void put_range(struct reader *r, const struct span *s, uint32_t depth)
{
	struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
	struct layout_item item = { .start_ns = s->start_ns, .end_ns = s->end_ns, .name = s->name };
	if (r->spans.n <= TEXT_MOST && s->args != META_NONE)
		d.text = name_of(r, s->args, "");
	item.detail = put_detail(r, &d);
	layout_add(r->t, s->lane, depth, &item);
}

/* Each on the row below the last that has not ended. */
static void place_ranges(struct reader *r)
{
	uint64_t ends[OPEN_MOST];
	uint32_t depth = 0;
	SORT(r->spans, span_order);
	for (size_t i = 0; i < r->spans.n; i++) {
		const struct span *s = &r->spans.v[i];
		if (i && r->spans.v[i - 1].lane != s->lane)
			depth = 0;
		while (depth && ends[depth - 1] <= s->start_ns)
			depth--;
		expect(depth <= OPEN_MOST && (!depth || ends[depth - 1] > s->start_ns),
			"a range stands below one that has not ended");
		put_range(r, s, depth);
		if (depth < OPEN_MOST)
			ends[depth++] = s->end_ns;
	}
}

static void describe_activity(const struct gpu_activity *w, struct layout_detail *d)
{
	if (w->valid & GPU_HAS_SHAPE) {
		d->valid |= DETAIL_SHAPE;
		memcpy(d->grid, w->grid, sizeof d->grid);
		memcpy(d->block, w->block, sizeof d->block);
	}
	if (w->valid & GPU_HAS_SHARED) {
		d->valid |= DETAIL_SHARED;
		d->shared = w->shared_dynamic;
		d->shared_static = w->shared_static;
	}
	if (w->valid & GPU_HAS_REGISTERS) {
		d->valid |= DETAIL_REGISTERS;
		d->registers = w->registers;
	}
	if (w->valid & GPU_HAS_BYTES) {
		d->valid |= DETAIL_BYTES;
		d->bytes = w->bytes;
	}
}

static uint32_t activity_name(struct reader *r, const struct gpu_activity *w)
{
	char text[48];
	const char *kind = activity_kind_name(w->kind);
	const char *way = w->kind == GPU_MEMCPY && (w->valid & GPU_HAS_WHAT)
				  ? copy_direction_name(w->what)
				  : NULL;
	const uint32_t name = meta_find_string(&r->r->meta, r->buf.ref->process, w->name);
	snprintf(text, sizeof text, "%s%s%s", kind ? kind : "(no name)", way ? " " : "",
		way ? way : "");
	return name_of(r, name, text);
}

static uint64_t since_start(const struct reader *r, uint64_t ns)
{
	const uint64_t start = r->r->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

static void add_activity(struct reader *r, const struct gpu_activity *w)
{
	struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
	const struct layout_lane lane = { .kind = w->kind == GPU_SPAN ? LANE_SPANS : LANE_STREAM,
		.process = r->buf.ref->process,
		.device = w->valid & GPU_HAS_DEVICE ? w->device : 0,
		.context = w->valid & GPU_HAS_CONTEXT ? w->context : 0,
		.stream = w->valid & GPU_HAS_STREAM ? w->stream : 0 };
	struct layout_item item = { .start_ns = since_start(r, w->start_ns),
		.end_ns = since_start(r, w->end_ns),
		.link = w->valid & GPU_HAS_CORRELATION ? w->correlation : 0,
		.name = activity_name(r, w) };
	const uint32_t at_lane = layout_lane(r->t, &lane);
	describe_activity(w, &d);
	item.detail = put_detail(r, &d);
	if (w->kind != GPU_SYNC)
		layout_add(r->t, at_lane, 0, &item);
}

static int take_activity(struct reader *r)
{
	struct cursor at = { .t = r->r->trace, .buf = &r->buf };
	for (struct gpu_activity w; trace_next_activity(&at, &w);)
		add_activity(r, &w);
	return at.error;
}

/* As arguments of a range are: an object of JSON. */
static uint32_t request_text(struct reader *r, const struct request_row *q)
{
	char text[600];
	struct bounded b = BOUNDED(text);
	struct number n;
	bounded_printf(&b, "{\"request\":%llu,\"outcome\":\"%s\",\"cause\":\"%s\"",
		(unsigned long long)q->q.id, request_outcome_name(q->q.outcome),
		request_part_name(request_cause(q)));
	if (q->q.batch)
		bounded_printf(&b, ",\"batch\":%llu,\"batch rows\":%u",
			(unsigned long long)q->q.batch, q->q.batch_rows);
	for (int i = 0; i < REQUEST_PARTS; i++)
		if (q->part[i])
			bounded_printf(&b, ",\"%s\":\"%s\"",
				request_part_name((enum request_part)i), number_ns(&n, q->part[i]));
	bounded_printf(&b, "}");
	return layout_name(r->t, bounded_end(&b));
}

/* The rows of a process: when the last of each ends. */
struct request_rows {
	uint64_t ends[OPEN_MOST];
};

/* The first that is free again; those beyond the last share it. */
static uint32_t request_row(struct request_rows *of, uint64_t from, uint64_t to)
{
	uint32_t row = 0;
	while (row < OPEN_MOST - 1 && of->ends[row] > from)
		row++;
	of->ends[row] = to;
	return row;
}

static void take_requests(struct reader *r, const struct requests *all)
{
	struct request_rows *rows = xcalloc(r->r->trace->processes.n + 1, sizeof *rows);
	array_each(const struct request_row, q, all->v) {
		const uint64_t from = since_start(r, q->q.ns[REQUEST_BEGAN]);
		struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
		struct layout_item item = { .start_ns = from,
			.end_ns = from + request_total(q),
			.name = name_of(r, q->model, "unknown model") };
		const struct layout_lane lane = { .kind = LANE_REQUESTS, .process = q->process };
		if (all->v.n <= TEXT_MOST)
			d.text = request_text(r, q);
		item.detail = put_detail(r, &d);
		layout_add(r->t, layout_lane(r->t, &lane),
			request_row(&rows[q->process], item.start_ns, item.end_ns), &item);
	}
	free(rows);
}

static int read_requests(struct reader *r)
{
	struct requests all = { 0 };
	const int e = requests_load(r->r->trace, &r->r->meta, &r->r->links, &all);
	if (!e)
		take_requests(r, &all);
	requests_fini(&all);
	return e;
}

static uint32_t *nones(size_t n)
{
	static_assert(NONE == UINT32_MAX, "in all its bytes");
	uint32_t *v = xmalloc((n + 1) * sizeof *v);
	return memset(v, 0xff, (n + 1) * sizeof *v);
}

static int read_all(struct reader *r)
{
	int e = take_activity(r);
	if (!e)
		e = take_ranges(r);
	place_ranges(r);
	if (!e)
		e = read_requests(r);
	links_by_call(&r->r->links, &r->links);
	return e ? e : read_threads(r);
}

int layout_read(struct layout *t, const struct report *report)
{
	struct reader r = { .t = t,
		.r = report,
		.meta_name = nones(report->meta.names.n),
		.fn_name = nones(FN_IDS),
		.with_text = report->calls <= TEXT_MOST };
	const int e = read_all(&r);
	thread_calls_fini(&r.calls);
	array_free(&r.spans, &r.links.v);
	free(r.meta_name);
	free(r.fn_name);
	return e;
}
