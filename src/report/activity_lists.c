/* Lists of what ran on devices: see event_lists.h. */
#include "report/lister.h"
#include "report/report_make.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "predict/predict.h"
#include "trace/activity.h"

#include "base/banned.h"

/* ---- each activity ---- */

void events_fini(struct events *events)
{
	array_free(&events->v);
	owners_fini(&events->owners);
}

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

int events_read(const struct report *r, struct events *ret_events)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = r->trace, .buf = &buf };
	struct gpu_activity w;
	size_t hint = 0;
	int e = owners_load(r->trace, &r->meta, &ret_events->owners);
	while (!e && (e = trace_next_activity(&at, &w)) > 0) {
		const struct call_link *link = links_of(&r->links, buf.ref->process, &w, &hint);
		struct event *to = array_push(&ret_events->v);
		e = to ? 0 : -ENOMEM;
		if (e)
			break;
		const uint32_t owner = owners_of(&ret_events->owners, buf.ref->process, &w, link);
		*to = (struct event){ .w = w,
			.process = buf.ref->process,
			.link = link ? (uint32_t)(link - r->links.v.v) : UINT32_MAX,
			.owner = owner,
			.named = owners_named(&ret_events->owners, owner),
			.waiting = owners_waiting(&ret_events->owners, owner, link) };
	}
	chunk_buf_fini(&buf);
	if (!e && ret_events->v.n)
		qsort(ret_events->v.v, ret_events->v.n, sizeof *ret_events->v.v, event_order);
	return e;
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
	json_u64_or_null(j, "call_start_ns", c, lister_since(l, begin));
	json_u64_or_null(j, "call_duration_ns", c && c->dur, end - begin);
	json_u64_or_null(
		j, "queued_ns", c && c->dur, v->w.start_ns > end ? v->w.start_ns - end : 0);
}

static void put_owner(
	struct lister *l, struct json *j, const char *key, const struct owners *o, uint32_t at)
{
	json_str_or_null(j, key, at == OWNER_NONE ? NULL : lister_name(l, owners_name(o, at)));
}

static void put_event(
	struct lister *l, struct json *j, const struct events *events, const struct event *v)
{
	const struct gpu_activity *w = &v->w;
	const uint64_t ns = w->end_ns - w->start_ns;
	const bool shape = w->valid & GPU_HAS_SHAPE, shared = w->valid & GPU_HAS_SHARED,
		   bytes = w->valid & GPU_HAS_BYTES, graph = w->valid & GPU_HAS_GRAPH;
	json_u64(j, "start_ns", lister_since(l, w->start_ns));
	json_u64(j, "duration_ns", ns);
	json_str_or_null(j, "kind", activity_kind_name(w->kind));
	json_str_or_null(j, "name", w->name ? lister_string(l, v->process, w->name) : NULL);
	json_u64(j, "pid", l->r->trace->processes.v[v->process].pid);
	json_u64_or_null(j, "device", w->valid & GPU_HAS_DEVICE, w->device);
	json_u64_or_null(j, "context", w->valid & GPU_HAS_CONTEXT, w->context);
	json_u64_or_null(j, "stream", w->valid & GPU_HAS_STREAM, w->stream);
	lister_put_triple(j, "grid", shape, w->grid);
	lister_put_triple(j, "block", shape, w->block);
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
	put_owner(l, j, "operator", &events->owners, owners_operator(&events->owners, v->owner));
	put_owner(l, j, "range", &events->owners, v->named == OWNER_NONE ? v->waiting : v->named);
}

int list_activities(struct lister *l)
{
	struct events events = { 0 };
	int e = events_read(l->r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++) {
		const uint16_t kind = events.v.v[i].w.kind;
		if (kind == GPU_SYNC || kind == GPU_SPAN)
			continue; /* of the host, and a sum of others: no GPU did anything for it */
		put_event(l, lister_begin_row(l), &events, &events.v.v[i]);
		e = lister_end_row(l);
	}
	events_fini(&events);
	return e;
}

/* ---- from the launch to the kernel ---- */

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

static int add_gap(struct lister *l, struct gap_rows *rows, const struct event *v)
{
	const uint32_t name = meta_find_string(&l->r->meta, v->process, v->w.name);
	struct gap_row *row = MAP_ROW(&rows->map, MAP_KEY(name), &rows->v,
		(struct gap_row){ .process = v->process, .name = v->w.name });
	if (!row)
		return -ENOMEM;
	row->count++;
	values_add(&row->device, v->w.end_ns - v->w.start_ns);
	const struct call_link *c = v->link == UINT32_MAX ? NULL : &l->r->links.v.v[v->link];
	if (!c || !c->dur || rows->launched[v->link])
		return 0;
	rows->launched[v->link] = true; /* the others of a graph wait for each other */
	const uint64_t ns = trace_span_ns(l->r->trace, c->dur);
	const uint64_t end = trace_ns(l->r->trace, c->ticks) + ns;
	values_add(&row->call, ns);
	values_add(&row->queued, v->w.start_ns > end ? v->w.start_ns - end : 0);
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
		struct json *j = lister_begin_row(l);
		json_str(j, "name", lister_string(l, row->process, row->name));
		json_u64(j, "count", row->count);
		json_u64(j, "launches_known", row->call.hist.count);
		values_put(j, "call", &row->call);
		values_put(j, "queued", &row->queued);
		values_put(j, "device", &row->device);
		e = lister_end_row(l);
	}
	return e;
}

int list_launch_gaps(struct lister *l)
{
	struct events events = { 0 };
	struct gap_rows rows = { 0 };
	int e = events_read(l->r, &events);
	rows.launched = calloc(l->r->links.v.n + 1, sizeof *rows.launched);
	if (!e && !rows.launched)
		e = -ENOMEM;
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
	free(rows.launched);
	map_fini(&rows.map);
	events_fini(&events);
	return e;
}

/* ---- by family ---- */

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

const char *report_kernel_family(const char *name)
{
	return family_name(family_of_kernel(name));
}

static int family_order(const void *one, const void *two)
{
	const struct family_row *a = one, *b = two;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->family < b->family ? -1 : a->family > b->family;
}

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

int list_families(struct lister *l)
{
	struct family_row rows[FAMILY_ROWS] = { 0 };
	uint64_t all = 0;
	int e = 0;
	for (size_t i = 0; i < l->r->activities.n; i++)
		add_family(rows, &l->r->activities.v[i]);
	for (unsigned i = 0; i < FAMILY_ROWS; i++)
		all += rows[i].total_ns;
	qsort(rows, FAMILY_ROWS, sizeof *rows, family_order);
	for (unsigned i = 0; i < FAMILY_ROWS && !e; i++) {
		const struct family_row *f = &rows[i];
		if (!f->count)
			continue;
		struct json *j = lister_begin_row(l);
		json_str(j, "family", family_name(f->family));
		json_u64(j, "names", f->names);
		json_u64(j, "count", f->count);
		json_u64_or_null(j, "device_total_ns", !l->r->sampled, f->total_ns);
		json_u64_or_null(j, "device_total_estimate_ns", l->r->sampled, f->total_ns);
		json_u64(j, "device_mean_ns", f->total_ns / f->count);
		json_put_real(j, "share", all ? (double)f->total_ns / (double)all : 0);
		json_str(j, "longest", f->longest->name);
		e = lister_end_row(l);
	}
	return e;
}
