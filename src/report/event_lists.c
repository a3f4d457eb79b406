/* See event_lists.h. */
#include "report/event_lists.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/spread.h"
#include "model/demangle.h"
#include "report/memory_print.h"
#include "report/report_make.h"
#include "trace/activity.h"

#include "base/banned.h"

struct lister {
	const struct report *r;
	const struct section_reader *to;
	struct demangled names;
	struct json j; /* the row at hand, in memory that each row uses again */
	FILE *out;
	char *text;
	size_t bytes;
};

/* ---- rows ---- */

static struct json *begin_row(struct lister *l)
{
	rewind(l->out);
	json_init(&l->j, l->out);
	l->j.pretty = false;
	json_begin_object(&l->j, NULL);
	return &l->j;
}

static int end_row(struct lister *l)
{
	json_end_object(&l->j);
	if (fflush(l->out))
		return -ENOMEM;
	return l->to->row(l->to->context, l->text, l->bytes);
}

/* Values of one kind: of each its keys with this prefix. */
struct values {
	struct hist hist;
	struct spread spread;
	uint64_t total;
};

static void add_value(struct values *v, uint64_t ns)
{
	hist_add(&v->hist, ns);
	spread_add(&v->spread, ns);
	v->total += ns;
}

static void put_values(struct json *j, const char *prefix, const struct values *v)
{
	const uint64_t n = v->hist.count;
	char key[48];
	const struct {
		const char *name;
		bool known;
		uint64_t ns;
	} rows[] = { { "total", n, v->total },
		{ "mean", n, n ? (uint64_t)(v->spread.mean + 0.5) : 0 },
		{ "p50", n, hist_at(&v->hist, 0.5) }, { "min", n, v->hist.min },
		{ "max", n, v->hist.max },
		{ "stddev", n > 1, (uint64_t)(spread_deviation(&v->spread) + 0.5) } };
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		snprintf(key, sizeof key, "%s_%s_ns", prefix, rows[i].name);
		json_u64_or_null(j, key, rows[i].known, rows[i].ns);
	}
}

static uint64_t since(const struct lister *l, uint64_t ns)
{
	const uint64_t start = l->r->trace->header.start.mono_ns;
	return ns > start ? ns - start : 0;
}

static const char *text_of(struct lister *l, uint32_t process, uint32_t id)
{
	return demangled_name(&l->names, meta_find_string(&l->r->meta, process, id), "(no name)");
}

/* ---- each activity ---- */

struct event {
	struct gpu_activity w;
	uint32_t process;
	uint32_t link; /* into links, or UINT32_MAX */
};

struct events {
	ARRAY(struct event) v;
};

static int event_order(const void *one, const void *two)
{
	const struct gpu_activity *a = &((const struct event *)one)->w,
				  *b = &((const struct event *)two)->w;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

static int read_events(const struct report *r, struct events *ret_events)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = r->trace, .buf = &buf };
	struct gpu_activity w;
	size_t hint = 0;
	int e;
	while ((e = trace_next_activity(&at, &w)) > 0) {
		const struct call_link *link = links_of(&r->links, buf.ref->process, &w, &hint);
		struct event *to = array_push(&ret_events->v);
		e = to ? 0 : -ENOMEM;
		if (e)
			break;
		*to = (struct event){ .w = w,
			.process = buf.ref->process,
			.link = link ? (uint32_t)(link - r->links.v.v) : UINT32_MAX };
	}
	chunk_buf_fini(&buf);
	if (!e && ret_events->v.n)
		qsort(ret_events->v.v, ret_events->v.n, sizeof *ret_events->v.v, event_order);
	return e;
}

static void put_triple(struct json *j, const char *key, bool known, const uint32_t *v)
{
	if (!known)
		return json_put_null(j, key);
	json_begin_array(j, key);
	for (int i = 0; i < 3; i++)
		json_u64(j, NULL, v[i]);
	json_end_array(j);
}

/* The call that asked for it, and how long the activity then waited for its device. */
static void put_call(struct lister *l, struct json *j, const struct event *v)
{
	const struct call_link *c = v->link == UINT32_MAX ? NULL : &l->r->links.v.v[v->link];
	const uint64_t begin = c ? trace_ns(l->r->trace, c->ticks) : 0;
	const uint64_t end = c ? begin + trace_span_ns(l->r->trace, c->dur) : 0;
	struct fn_name room;
	json_str_or_null(j, "call", c ? report_fn_name(l->r, c->fn, &room) : NULL);
	json_u64_or_null(j, "tid", c, c ? c->tid : 0);
	json_u64_or_null(j, "call_start_ns", c, since(l, begin));
	json_u64_or_null(j, "call_duration_ns", c && c->dur, end - begin);
	json_u64_or_null(
		j, "queued_ns", c && c->dur, v->w.start_ns > end ? v->w.start_ns - end : 0);
}

static void put_event(struct lister *l, struct json *j, const struct event *v)
{
	const struct gpu_activity *w = &v->w;
	const uint64_t ns = w->end_ns - w->start_ns;
	const bool shape = w->valid & GPU_HAS_SHAPE, shared = w->valid & GPU_HAS_SHARED,
		   bytes = w->valid & GPU_HAS_BYTES, graph = w->valid & GPU_HAS_GRAPH;
	json_u64(j, "start_ns", since(l, w->start_ns));
	json_u64(j, "duration_ns", ns);
	json_str_or_null(j, "kind", activity_kind_name(w->kind));
	json_str_or_null(j, "name", w->name ? text_of(l, v->process, w->name) : NULL);
	json_u64(j, "pid", l->r->trace->processes.v[v->process].pid);
	json_u64_or_null(j, "device", w->valid & GPU_HAS_DEVICE, w->device);
	json_u64_or_null(j, "context", w->valid & GPU_HAS_CONTEXT, w->context);
	json_u64_or_null(j, "stream", w->valid & GPU_HAS_STREAM, w->stream);
	put_triple(j, "grid", shape, w->grid);
	put_triple(j, "block", shape, w->block);
	json_u64_or_null(j, "registers", w->valid & GPU_HAS_REGISTERS, w->registers);
	json_u64_or_null(j, "shared_static_bytes", shared, w->shared_static);
	json_u64_or_null(j, "shared_dynamic_bytes", shared, w->shared_dynamic);
	json_u64_or_null(j, "bytes", bytes, w->bytes);
	json_u64_or_null(j, "bytes_per_second", bytes && ns,
		ns ? sat_from((double)w->bytes * 1e9 / (double)ns) : 0);
	json_str_or_null(j, "direction", activity_direction(w));
	json_u64_or_null(j, "graph_node", graph, w->graph_node);
	json_u64_or_null(j, "correlation", w->valid & GPU_HAS_CORRELATION, w->correlation);
	put_call(l, j, v);
}

static int list_events(struct lister *l)
{
	struct events events = { 0 };
	int e = read_events(l->r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++) {
		if (events.v.v[i].w.kind == GPU_SYNC)
			continue; /* of the host: no GPU did anything for it */
		put_event(l, begin_row(l), &events.v.v[i]);
		e = end_row(l);
	}
	array_free(&events.v);
	return e;
}

/* ---- from the launch to the kernel ---- */

struct gap_row {
	uint32_t process, name;
	uint64_t count; /* also of those whose launch is not known */
	struct values call, queued, device;
};

struct gap_rows {
	ARRAY(struct gap_row) v;
	struct map map;
};

static int add_gap(struct lister *l, struct gap_rows *rows, const struct event *v)
{
	const uint32_t name = meta_find_string(&l->r->meta, v->process, v->w.name);
	struct gap_row *row = MAP_ROW(&rows->map, MAP_KEY(name), &rows->v,
		(struct gap_row){ .process = v->process, .name = v->w.name });
	if (!row)
		return -ENOMEM;
	row->count++;
	add_value(&row->device, v->w.end_ns - v->w.start_ns);
	const struct call_link *c = v->link == UINT32_MAX ? NULL : &l->r->links.v.v[v->link];
	if (!c || !c->dur)
		return 0;
	const uint64_t ns = trace_span_ns(l->r->trace, c->dur);
	const uint64_t end = trace_ns(l->r->trace, c->ticks) + ns;
	add_value(&row->call, ns);
	add_value(&row->queued, v->w.start_ns > end ? v->w.start_ns - end : 0);
	return 0;
}

static int gap_order(const void *one, const void *two)
{
	const struct gap_row *a = one, *b = two;
	if (a->queued.total != b->queued.total)
		return a->queued.total > b->queued.total ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int put_gaps(struct lister *l, struct gap_rows *rows)
{
	int e = 0;
	if (rows->v.n)
		qsort(rows->v.v, rows->v.n, sizeof *rows->v.v, gap_order);
	for (size_t i = 0; i < rows->v.n && !e; i++) {
		struct gap_row *row = &rows->v.v[i];
		struct json *j = begin_row(l);
		json_str(j, "name", text_of(l, row->process, row->name));
		json_u64(j, "count", row->count);
		json_u64(j, "launches_known", row->call.hist.count);
		put_values(j, "call", &row->call);
		put_values(j, "queued", &row->queued);
		put_values(j, "device", &row->device);
		e = end_row(l);
	}
	return e;
}

static int list_gaps(struct lister *l)
{
	struct events events = { 0 };
	struct gap_rows rows = { 0 };
	int e = read_events(l->r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++)
		if (events.v.v[i].w.kind == GPU_KERNEL)
			e = add_gap(l, &rows, &events.v.v[i]);
	if (!e)
		e = put_gaps(l, &rows);
	for (size_t i = 0; i < rows.v.n; i++) {
		hist_fini(&rows.v.v[i].call.hist);
		hist_fini(&rows.v.v[i].queued.hist);
		hist_fini(&rows.v.v[i].device.hist);
	}
	array_free(&rows.v);
	map_fini(&rows.map);
	array_free(&events.v);
	return e;
}

/* ---- collective operations ---- */

/* "AllReduce" of ncclDevKernel_AllReduce_Sum_f32_RING_LL(…). */
static const char *collective_of(const char *kernel, size_t *ret_bytes)
{
	static const char *const heads[] = { "ncclDevKernel_", "ncclKernel_" };
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		const char *at = strstr(kernel, heads[i]);
		if (!at)
			continue;
		at += strlen(heads[i]);
		*ret_bytes = strcspn(at, "_(<");
		return at;
	}
	return NULL;
}

static int list_collectives(struct lister *l)
{
	int e = 0;
	for (size_t i = 0; i < l->r->activities.n && !e; i++) {
		const struct activity_row *w = &l->r->activities.v[i];
		size_t bytes;
		if (w->kind != GPU_KERNEL || !w->communicates)
			continue;
		struct json *j = begin_row(l);
		const char *collective = collective_of(w->name, &bytes);
		if (collective)
			json_strn(j, "collective", collective, bytes);
		else
			json_put_null(j, "collective");
		json_u64(j, "count", w->count);
		report_put_device_times(j, l->r, w);
		json_str(j, "name", w->name);
		e = end_row(l);
	}
	return e;
}

/* ---- the pace of ranges ---- */

struct pace_row {
	uint32_t process, name;
	uint16_t kind;
	struct values duration, pace;
	uint64_t last_ns; /* when the one before began */
};

struct pace_rows {
	ARRAY(struct pace_row) v;
	struct map map;
	ARRAY(struct range_start) starts;
};

struct range_start {
	uint64_t ns, duration_ns;
	uint32_t row;
};

static bool is_named(uint16_t kind)
{
	return kind == RANGE_ANNOTATION || kind == RANGE_NVTX || kind == RANGE_NVTX_SPAN;
}

static int start_order(const void *one, const void *two)
{
	const struct range_start *a = one, *b = two;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* Steps bear a number each ("ProfilerStep#5") and are one range: the name up to it. */
static size_t pace_name_length(const char *name)
{
	const size_t length = strlen(name);
	size_t n = length;
	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return n && name[n - 1] == '#' ? n : length;
}

static int add_start(
	struct lister *l, struct pace_rows *rows, uint32_t process, const struct range *g)
{
	const char *name = text_of(l, process, g->name);
	const uint64_t key = hash_bytes(name, pace_name_length(name));
	struct pace_row *row = MAP_ROW(&rows->map, MAP_KEY(process, key, g->kind), &rows->v,
		(struct pace_row){ .process = process, .name = g->name, .kind = g->kind });
	struct range_start *to = row ? array_push(&rows->starts) : NULL;
	if (!to)
		return -ENOMEM;
	const uint64_t begin = trace_ns(l->r->trace, g->ticks);
	*to = (struct range_start){ .ns = begin,
		.duration_ns = trace_ns(l->r->trace, range_end(g)) - begin,
		.row = (uint32_t)(row - rows->v.v) };
	return 0;
}

static int read_starts(struct lister *l, struct pace_rows *rows)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = l->r->trace, .buf = &buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0) {
		e = is_named(g.kind) ? add_start(l, rows, buf.ref->process, &g) : 0;
		if (e)
			break;
	}
	chunk_buf_fini(&buf);
	if (!e && rows->starts.n)
		qsort(rows->starts.v, rows->starts.n, sizeof *rows->starts.v, start_order);
	return e;
}

static int put_paces(struct lister *l, struct pace_rows *rows)
{
	int e = 0;
	for (size_t i = 0; i < rows->starts.n; i++) {
		const struct range_start *s = &rows->starts.v[i];
		struct pace_row *row = &rows->v.v[s->row];
		if (row->duration.hist.count)
			add_value(&row->pace, s->ns - row->last_ns);
		add_value(&row->duration, s->duration_ns);
		row->last_ns = s->ns;
	}
	for (size_t i = 0; i < rows->v.n && !e; i++) {
		const struct pace_row *row = &rows->v.v[i];
		struct json *j = begin_row(l);
		const char *name = text_of(l, row->process, row->name);
		char *common = strndup(name, pace_name_length(name));
		json_str(j, "name", common ? common : name);
		free(common);
		json_str_or_null(j, "kind", range_kind_name(row->kind));
		json_u64(j, "pid", l->r->trace->processes.v[row->process].pid);
		json_u64(j, "count", row->duration.hist.count);
		put_values(j, "pace", &row->pace);
		put_values(j, "duration", &row->duration);
		e = end_row(l);
	}
	return e;
}

static int list_paces(struct lister *l)
{
	struct pace_rows rows = { 0 };
	int e = read_starts(l, &rows);
	if (!e)
		e = put_paces(l, &rows);
	for (size_t i = 0; i < rows.v.n; i++) {
		hist_fini(&rows.v.v[i].pace.hist);
		hist_fini(&rows.v.v[i].duration.hist);
	}
	array_free(&rows.v);
	array_free(&rows.starts);
	map_fini(&rows.map);
	return e;
}

/* ---- operators by shape ---- */

static int list_shapes(struct lister *l)
{
	struct report *by_shape;
	struct error err;
	int e = report_make_by_shape(l->r, &by_shape, &err);
	if (e)
		return e;
	for (size_t i = 0; i < by_shape->operators.n && !e; i++) {
		struct json *j = begin_row(l);
		report_put_operator(j, by_shape, &by_shape->operators.v[i]);
		e = end_row(l);
	}
	report_free(by_shape);
	return e;
}

/* ---- memory ---- */

static int list_allocation_calls(struct lister *l)
{
	const struct memory_time *t = &l->r->memory_detail->time;
	int e = 0;
	for (size_t i = 0; i < t->calls.n && !e; i++) {
		memory_put_call_time(begin_row(l), l->r, &t->calls.v[i]);
		e = end_row(l);
	}
	return e;
}

static int list_memory_points(struct lister *l)
{
	int e = 0;
	for (uint32_t i = 0; i < MEMORY_POINTS && l->r->calls + l->r->allocator_events && !e; i++) {
		memory_put_point(begin_row(l), l->r, i);
		e = end_row(l);
	}
	return e;
}

/* ---- the lists ---- */

#define SPREAD(of) of "_mean_ns," of "_p50_ns," of "_min_ns," of "_max_ns," of "_stddev_ns,"

static const struct {
	const char *name, *columns;
	int (*list)(struct lister *l);
} lists[] = {
	{ "gpu_trace",
		"start_ns,duration_ns,queued_ns,device,stream,grid,block,bytes,bytes_per_second,kind,"
		"name",
		list_events },
	{ "operators_by_shape",
		"device_self_ns,device_total_ns,host_total_ns,count,class,name,shape",
		list_shapes },
	{ "launch_gaps",
		"queued_total_ns,count,queued_mean_ns,queued_p50_ns,queued_max_ns,call_mean_ns,"
		"call_p50_ns,call_max_ns,device_mean_ns,name",
		list_gaps },
	{ "nccl", "device_total_ns,count," SPREAD("device") "collective,name", list_collectives },
	{ "nvtx_pace", "count," SPREAD("pace") "duration_mean_ns,duration_p50_ns,kind,name",
		list_paces },
	{ "allocation_calls", "total_ns,share_of_run,count,p50_ns,p90_ns,p99_ns,max_ns,waits,name",
		list_allocation_calls },
	{ "memory_over_time", "at_ns,bytes,max_bytes,reserved_bytes,unused_bytes,host_bytes",
		list_memory_points },
};
#define LISTS (sizeof lists / sizeof lists[0])

const char *event_list_name(size_t i)
{
	return i < LISTS ? lists[i].name : NULL;
}

const char *event_list_columns(const char *name)
{
	for (size_t i = 0; i < LISTS; i++)
		if (!strcmp(lists[i].name, name))
			return lists[i].columns;
	return NULL;
}

int event_list_read(const struct report *r, size_t i, const struct section_reader *to)
{
	struct lister l = { .r = r, .to = to };
	expect(i < LISTS, "a list that is asked for is one of all");
	int e = to->section(to->context, lists[i].name, true);
	if (!e)
		e = demangled_init(&l.names, &r->meta);
	l.out = e ? NULL : open_memstream(&l.text, &l.bytes);
	if (!e && !l.out)
		e = -ENOMEM;
	if (l.out)
		__fsetlocking(l.out, FSETLOCKING_BYCALLER); /* a row is hundreds of small writes */
	if (!e)
		e = lists[i].list(&l);
	if (l.out)
		fclose(l.out);
	free(l.text);
	demangled_fini(&l.names);
	return e;
}
