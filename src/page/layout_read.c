/*
 * From a trace to the items of a timeline.
 *
 * Records stand in the order in which calls ended, so a thread is read backwards: then a call
 * comes before those inside it, and its depth is the number of calls that are open.  Ranges are
 * sorted by thread and time for the same.  What ran on a device is one row a stream; whoever
 * draws it puts what overlaps on rows of its own.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/tally.h"
#include "page/layout.h"
#include "trace/activity.h"

#include "base/banned.h"

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

struct asked { /* a link */
	uint64_t ticks;
	uint64_t correlation;
	uint32_t process, tid;
};

struct reader {
	struct layout *t;
	const struct report *r;
	struct chunk_buf buf;
	ARRAY(uint32_t) order; /* chunks of calls: by thread, newest first */
	ARRAY(const struct record *) records;
	ARRAY(struct span) spans;
	ARRAY(struct asked) links;
	uint64_t open[OPEN_MOST]; /* calls: when they begin */
	uint64_t open_end[OPEN_MOST];
	uint32_t depth;
	uint32_t *meta_name; /* by index into meta.names; NONE until asked for */
	uint32_t *fn_name;   /* by id of a function */
	bool with_text;
};

/* ---- names ---- */

/* A name of the trace, as people write it. */
static uint32_t name_of(struct reader *r, uint32_t name, const char *instead)
{
	if (name == META_NONE)
		return layout_name(r->t, instead);
	if (r->meta_name[name] == NONE) {
		char *text = demangle(r->r->meta.names.v[name].text);
		r->meta_name[name] = layout_name(r->t, text ? text : r->r->meta.names.v[name].text);
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

/* ---- links ---- */

static int take_links(struct reader *r)
{
	struct link l;
	size_t at = 0;
	while (link_next(&r->buf, &at, &l)) {
		struct asked *to = array_push(&r->links);
		if (!to)
			return -ENOMEM;
		*to = (struct asked){ .ticks = l.ticks,
			.correlation = l.correlation,
			.process = r->buf.ref->process,
			.tid = l.tid };
	}
	return 0;
}

static int link_order(const void *one, const void *two)
{
	const struct asked *a = one, *b = two;
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	if (a->tid != b->tid)
		return ORDER(a->tid, b->tid);
	return ORDER(a->ticks, b->ticks);
}

/* The correlation of a call: that of the first link in it; 0 when there is none. */
static uint64_t link_of(const struct reader *r, uint32_t tid, const struct record *c)
{
	const struct asked key = { .process = r->buf.ref->process, .tid = tid, .ticks = c->ticks };
	const size_t low = SEARCH(i, 0, r->links.n, link_order(&r->links.v[i], &key) < 0);
	if (low == r->links.n || r->links.v[low].process != key.process ||
		r->links.v[low].tid != tid || r->links.v[low].ticks > record_end(c))
		return 0;
	return r->links.v[low].correlation;
}

/* ---- calls ---- */

static int describe(struct reader *r, const struct record *c, struct layout_detail *d)
{
	const struct schema_fn *fn = schema_find(&r->r->trace->schema, c->fn);
	const char *error = c->result ? decode_result(r->r->decoder, fn, c->result) : NULL;
	struct launch_shape shape;
	char line[2100];
	if (error && (d->error = layout_name(r->t, error)) == NONE)
		return -ENOMEM;
	if (fn && fn->launch_layout && decode_shape(c, &shape)) {
		const uint32_t name = meta_find_kernel(
			&r->r->meta, r->buf.ref->process, c->arg[LAUNCH_FUNCTION], record_end(c));
		d->valid |= DETAIL_SHAPE | DETAIL_SHARED;
		memcpy(d->grid, shape.grid, sizeof(d->grid));
		memcpy(d->block, shape.block, sizeof(d->block));
		d->shared = c->aux;
		if (name == META_NONE) /* the driver's call below a runtime's may know it */
			return 0;
		d->kernel = name_of(r, name, "");
		return d->kernel == NONE ? -ENOMEM : 0;
	}
	if (fn && schema_call_bytes(fn, c, &d->bytes))
		d->valid |= DETAIL_BYTES;
	if (!r->with_text)
		return 0;
	decode_record(r->r->decoder, c, line, sizeof(line));
	d->text = layout_name(r->t, line);
	return d->text == NONE ? -ENOMEM : 0;
}

static int put_detail(struct reader *r, const struct layout_detail *d, uint32_t *ret_detail)
{
	const bool empty = !d->valid && d->kernel == NONE && d->text == NONE && d->error == NONE;
	*ret_detail = empty ? NONE : layout_detail(r->t, d);
	return empty || *ret_detail != NONE ? 0 : -ENOMEM;
}

/* Leaves the calls that this one is not in, and enters it; its depth. */
static uint32_t enter(struct reader *r, const struct record *c)
{
	while (r->depth &&
		(r->open[r->depth - 1] > c->ticks || r->open_end[r->depth - 1] < record_end(c)))
		r->depth--;
	const uint32_t depth = r->depth;
	if (r->depth < OPEN_MOST) {
		r->open[r->depth] = c->ticks;
		r->open_end[r->depth++] = record_end(c);
	}
	return depth;
}

static int take_call(struct reader *r, uint32_t lane, const struct record *c)
{
	struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
	struct layout_item item = { .start_ns = trace_since_ns(r->r->trace, c->ticks),
		.end_ns = trace_since_ns(r->r->trace, record_end(c)),
		.name = call_name(r, c->fn),
		.link = link_of(r, r->buf.ref->head.tid, c) };
	int e = item.name == NONE ? -ENOMEM : describe(r, c, &d);
	if (!e)
		e = put_detail(r, &d, &item.detail);
	if (item.end_ns < item.start_ns)
		item.end_ns = item.start_ns;
	return e ? e : layout_add(r->t, lane, enter(r, c), &item);
}

static int read_calls(struct reader *r)
{
	const struct chunk_ref *c = r->buf.ref;
	const uint32_t lane = layout_lane(
		r->t, &(struct layout_lane){
			      .kind = LANE_CALLS, .process = c->process, .tid = c->head.tid });
	struct records it = records_of(&r->buf);
	const struct record *record;
	int e = lane == NONE ? -ENOMEM : 0;
	r->records.n = 0;
	while ((record = records_next(&it))) {
		if (!schema_is_call(&r->r->trace->schema, record->fn))
			continue;
		const struct record **to = array_push(&r->records);
		if (!to)
			return -ENOMEM;
		*to = record;
	}
	for (size_t i = r->records.n; i-- > 0 && !e;)
		e = take_call(r, lane, r->records.v[i]);
	return e;
}

static int newest_first(const void *one, const void *two, void *trace)
{
	const struct trace *t = trace;
	const struct chunk_ref *a = &t->chunks[*(const uint32_t *)one];
	const struct chunk_ref *b = &t->chunks[*(const uint32_t *)two];
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	if (a->head.tid != b->head.tid)
		return ORDER(a->head.tid, b->head.tid);
	if (a->head.open.ticks != b->head.open.ticks)
		return -ORDER(a->head.open.ticks, b->head.open.ticks);
	return -ORDER(a->head.seq, b->head.seq);
}

static int order_chunks(struct reader *r)
{
	const struct trace *t = r->r->trace;
	for (size_t i = 0; i < t->chunk_count; i++) {
		if (t->chunks[i].head.kind != CHUNK_EVENTS)
			continue;
		uint32_t *to = array_push(&r->order);
		if (!to)
			return -ENOMEM;
		*to = (uint32_t)i;
	}
	if (r->order.n)
		qsort_r(r->order.v, r->order.n, sizeof(*r->order.v), newest_first, (void *)t);
	return 0;
}

static bool is_lost(int e)
{
	return e == -EBADMSG || e == -ENODATA;
}

static int read_threads(struct reader *r)
{
	const struct trace *t = r->r->trace;
	const struct chunk_ref *last = NULL;
	struct progress progress;
	int e = order_chunks(r);
	progress_init(&progress, "laying out");
	for (size_t i = 0; i < r->order.n && !e; i++) {
		const struct chunk_ref *c = &t->chunks[r->order.v[i]];
		if (last && (last->process != c->process || last->head.tid != c->head.tid))
			r->depth = 0;
		last = c;
		e = trace_load(t, r->order.v[i], &r->buf, NULL);
		e = is_lost(e) ? 0 : e ? e : read_calls(r);
		progress_show(&progress, i, r->order.n);
	}
	progress_fini(&progress);
	return e;
}

/* ---- ranges ---- */

static uint16_t lane_of_range(uint16_t kind)
{
	return range_nests(kind) ? LANE_RANGES : kind == RANGE_PYTHON ? LANE_PYTHON : LANE_OTHER;
}

static int take_ranges(struct reader *r)
{
	struct range g;
	size_t at = 0;
	while (range_next(&r->buf, &at, &g)) {
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
		struct span *to = s.lane == NONE || s.name == NONE ? NULL : array_push(&r->spans);
		if (!to)
			return -ENOMEM;
		if (s.end_ns < s.start_ns)
			s.end_ns = s.start_ns;
		*to = s;
	}
	return 0;
}

static int span_order(const void *one, const void *two)
{
	const struct span *a = one, *b = two;
	if (a->lane != b->lane)
		return ORDER(a->lane, b->lane);
	return a->start_ns != b->start_ns ? ORDER(a->start_ns, b->start_ns)
					  : -ORDER(a->end_ns, b->end_ns);
}

/* Arguments are most of a range, so they are kept only of few. */
static int put_range(struct reader *r, const struct span *s, uint32_t depth)
{
	struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
	struct layout_item item = { .start_ns = s->start_ns, .end_ns = s->end_ns, .name = s->name };
	if (r->spans.n <= TEXT_MOST && s->args != META_NONE)
		d.text = name_of(r, s->args, "");
	const int e = put_detail(r, &d, &item.detail);
	return e ? e : layout_add(r->t, s->lane, depth, &item);
}

/* Each on the row below the last that has not ended. */
static int place_ranges(struct reader *r)
{
	uint64_t ends[OPEN_MOST];
	uint32_t depth = 0;
	int e = 0;
	if (r->spans.n)
		qsort(r->spans.v, r->spans.n, sizeof(*r->spans.v), span_order);
	for (size_t i = 0; i < r->spans.n && !e; i++) {
		const struct span *s = &r->spans.v[i];
		if (i && r->spans.v[i - 1].lane != s->lane)
			depth = 0;
		while (depth && ends[depth - 1] <= s->start_ns)
			depth--;
		e = put_range(r, s, depth);
		if (depth < OPEN_MOST)
			ends[depth++] = s->end_ns;
	}
	return e;
}

/* ---- device work ---- */

static void describe_work(const struct device_work *w, struct layout_detail *d)
{
	if (w->valid & WORK_HAS_SHAPE) {
		d->valid |= DETAIL_SHAPE;
		memcpy(d->grid, w->grid, sizeof(d->grid));
		memcpy(d->block, w->block, sizeof(d->block));
	}
	if (w->valid & WORK_HAS_SHARED) {
		d->valid |= DETAIL_SHARED;
		d->shared = w->shared_dynamic;
		d->shared_static = w->shared_static;
	}
	if (w->valid & WORK_HAS_REGISTERS) {
		d->valid |= DETAIL_REGISTERS;
		d->registers = w->registers;
	}
	if (w->valid & WORK_HAS_BYTES) {
		d->valid |= DETAIL_BYTES;
		d->bytes = w->bytes;
	}
}

static uint32_t work_name(struct reader *r, const struct device_work *w)
{
	char text[48];
	const char *kind = work_kind_name(w->kind);
	const char *way = w->kind == WORK_COPY && (w->valid & WORK_HAS_WHAT)
				  ? copy_direction_name(w->what)
				  : NULL;
	const uint32_t name = meta_find_string(&r->r->meta, r->buf.ref->process, w->name);
	snprintf(text, sizeof(text), "%s%s%s", kind ? kind : "(no name)", way ? " " : "",
		way ? way : "");
	return name_of(r, name, text);
}

static uint64_t since_start(const struct reader *r, uint64_t ns)
{
	const uint64_t start = r->r->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

static int take_work(struct reader *r)
{
	struct device_work w;
	size_t at = 0;
	int e = 0;
	while (!e && work_next(&r->buf, &at, &w)) {
		struct layout_detail d = { .kernel = NONE, .text = NONE, .error = NONE };
		const struct layout_lane lane = { .kind = w.kind == WORK_SPAN ? LANE_SPANS
									      : LANE_STREAM,
			.process = r->buf.ref->process,
			.device = w.valid & WORK_HAS_DEVICE ? w.device : 0,
			.context = w.valid & WORK_HAS_CONTEXT ? w.context : 0,
			.stream = w.valid & WORK_HAS_STREAM ? w.stream : 0 };
		struct layout_item item = { .start_ns = since_start(r, w.start_ns),
			.end_ns = since_start(r, w.end_ns),
			.link = w.valid & WORK_HAS_CORRELATION ? w.correlation : 0,
			.name = work_name(r, &w) };
		const uint32_t at_lane = layout_lane(r->t, &lane);
		describe_work(&w, &d);
		e = item.name == NONE || at_lane == NONE ? -ENOMEM
							 : put_detail(r, &d, &item.detail);
		if (!e && w.kind != WORK_WAIT)
			e = layout_add(r->t, at_lane, 0, &item);
	}
	return e;
}

/* ---- the whole ---- */

static int each_chunk(struct reader *r, uint16_t kind, int (*use)(struct reader *r))
{
	size_t at = 0;
	int e;
	while ((e = trace_next(r->r->trace, kind, &at, &r->buf, NULL)) > 0 && !(e = use(r)))
		;
	return e;
}

static uint32_t *nones(size_t n)
{
	static_assert(NONE == UINT32_MAX, "in all its bytes");
	uint32_t *v = malloc((n + 1) * sizeof(*v));
	return v ? memset(v, 0xff, (n + 1) * sizeof(*v)) : NULL;
}

static int read_all(struct reader *r)
{
	int e = each_chunk(r, CHUNK_DEVICE, take_work);
	if (!e)
		e = each_chunk(r, CHUNK_RANGES, take_ranges);
	if (!e)
		e = place_ranges(r);
	if (!e)
		e = each_chunk(r, CHUNK_LINKS, take_links);
	if (!e && r->links.n)
		qsort(r->links.v, r->links.n, sizeof(*r->links.v), link_order);
	return e ? e : read_threads(r);
}

int layout_read(struct layout *t, const struct report *report)
{
	struct reader r = { .t = t,
		.r = report,
		.meta_name = nones(report->meta.names.n),
		.fn_name = nones(FN_IDS),
		.with_text = report->calls <= TEXT_MOST };
	const int e = r.meta_name && r.fn_name ? read_all(&r) : -ENOMEM;
	chunk_buf_fini(&r.buf);
	array_free(&r.order);
	array_free(&r.records);
	array_free(&r.spans);
	array_free(&r.links);
	free(r.meta_name);
	free(r.fn_name);
	return e;
}
