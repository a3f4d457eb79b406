/*
 * Sections of the ranges that a program names. range_pace has their length and the time between
 * starts, and range_kernels has the kernels launched inside.
 */
#include "list/device_events.h"
#include "list/lists.h"
#include "section/shared_columns.h"

#include "base/hash.h"
#include "base/sort.h"
#include "trace/steps.h"

struct pace_row {
	uint32_t process, name;
	bool numbered;
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

ORDERING(start_order, struct range_start, ORDER(a->ns, b->ns))

static void add_start(
	struct rows *rows, struct pace_rows *paces, uint32_t process, const struct range *g)
{
	const char *name = rows_string(rows, process, g->name);
	const size_t common = name_without_number(name);
	const uint64_t key = hash_bytes(name, common);
	struct pace_row *row = MAP_ROW(&paces->map, MAP_KEY(process, key, g->kind), &paces->v,
		(struct pace_row){ .process = process,
			.name = g->name,
			.kind = g->kind,
			.numbered = name[common] });
	const uint64_t begin = trace_ns(rows->r->trace, g->ticks);
	*array_push(&paces->starts) = (struct range_start){ .ns = begin,
		.duration_ns = trace_ns(rows->r->trace, range_end(g)) - begin,
		.row = (uint32_t)(row - paces->v.v) };
}

static int read_starts(struct rows *rows, struct pace_rows *paces)
{
	struct cursor at = { .t = rows->r->trace };
	for (struct range g; trace_next_range(&at, &g);)
		if (range_is_named(g.kind))
			add_start(rows, paces, at.ref->process, &g);
	SORT(paces->starts, start_order);
	return at.error;
}

/* Steps first, then what lasts longest. */
ORDERING(pace_order, struct pace_row, ORDER(b->numbered, a->numbered),
	ORDER(b->duration.total, a->duration.total), ORDER(a->process, b->process),
	ORDER(a->name, b->name))

static int count_paces(struct rows *rows, struct pace_rows *paces)
{
	const int e = read_starts(rows, paces);
	for (size_t i = 0; i < paces->starts.n && !e; i++) {
		const struct range_start *s = &paces->starts.v[i];
		struct pace_row *row = &paces->v.v[s->row];
		if (row->duration.hist.count)
			values_add(&row->pace, s->ns - row->last_ns);
		values_add(&row->duration, s->duration_ns);
		row->last_ns = s->ns;
	}
	SORT(paces->v, pace_order);
	return e;
}

MAKER(make_paces, struct pace_rows, count_paces(rows, own))

static void free_paces(struct rows *rows)
{
	struct pace_rows *paces = rows->own;
	for (size_t i = 0; i < paces->v.n; i++) {
		hist_fini(&paces->v.v[i].pace.hist);
		hist_fini(&paces->v.v[i].duration.hist);
	}
	array_free(&paces->v, &paces->starts);
	map_fini(&paces->map);
	free(paces);
}

/* The common part of a row's names. */
static struct value get_pace_name(const struct row *row, const void *of)
{
	const struct pace_row *p = of;
	const char *name = rows_string(row->rows, p->process, p->name);
	snprintf(row->text, ROW_TEXT, "%.*s", (int)name_without_number(name), name);
	return value_text(row->text);
}

static const struct column pace_columns[] = {
	{ "name", UNIT_TEXT, "name", "its name, without its number", .get = get_pace_name },
	{ "kind", UNIT_TEXT, "kind", "`annotation`, `nvtx`, `nvtx span`", .get = get_range_kind,
		AT(struct pace_row, kind) },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct pace_row, process) },
	{ "count", UNIT_COUNT, "count", "how many", .get = get_values_count,
		AT(struct pace_row, duration) },
	VALUES("pace", "pace, ", "from one start to the next; null: there was one", struct pace_row,
		pace, false),
	VALUES("duration", "duration, ", "duration on the host", struct pace_row, duration, false),
	{ 0 },
};

const struct section section_range_pace = {
	.name = "range_pace",
	.heading = "Pace of ranges",
	.about =
		"Ranges that a program names: NVTX and annotations. Names that number [steps](#steps) are one, as `ProfilerStep#`.",
	.of = OF_RANGES,
	.columns = pace_columns,
	.make = make_paces,
	.fini = free_paces,
	.asked = true,
	.shown = "count,pace_mean_ns,pace_p50_ns,pace_min_ns,pace_max_ns,pace_stddev_ns,"
		 "duration_p50_ns,duration_max_ns,kind,name",
	.note = "Pace is the time from the begin of one to the begin of the next of the same name.  Duration is on the host.  Ranges that the program numbers, as ProfilerStep#2, are one row, and come first.  --steady or --steps N-M leaves out start-up.",
};

/* The activities of one name in all ranges of one name. */
struct inside_row {
	uint32_t range, name; /* rows of ranges; into meta.names */
	uint16_t kind;        /* of the activities */
	struct values device;
};

struct named_range {
	uint32_t name; /* into meta.names */
	uint16_t kind;
	uint64_t total_ns; /* on devices */
};

/* A range from a start to an end that may be another thread's. */
struct open_span {
	uint64_t from, to; /* ticks */
	uint32_t process, range;
};

struct inside {
	struct events events;
	ARRAY(struct inside_row) v;
	ARRAY(struct named_range) ranges;
	ARRAY(struct open_span) spans; /* by process and begin; those of one name apart */
	ARRAY(uint32_t) order;         /* events whose call is known, by process and its time */
	struct map map, range_map;
	const struct report *r; /* for sorting */
};

static uint32_t range_of(struct inside *in, uint32_t name, uint16_t kind)
{
	const struct named_range *row = MAP_ROW(&in->range_map, MAP_KEY(name, kind), &in->ranges,
		(struct named_range){ .name = name, .kind = kind });
	return (uint32_t)(row - in->ranges.v);
}

static void add_inside(struct inside *in, uint32_t range, const struct event *v)
{
	const uint32_t name = meta_find_string(&in->r->meta, v->process, v->w.name);
	struct inside_row *row = MAP_ROW(&in->map, MAP_KEY(range, name, v->w.kind), &in->v,
		(struct inside_row){ .range = range, .name = name, .kind = v->w.kind });
	values_add(&row->device, v->w.end_ns - v->w.start_ns);
	in->ranges.v[range].total_ns += v->w.end_ns - v->w.start_ns;
}

/* Inside another one of its name: that one has all that is in it. */
static bool is_repeated(const struct owners *o, uint32_t at)
{
	const struct owner *v = &o->v.v[at];
	for (uint32_t up = v->at.parent; up != OWNER_NONE; up = o->v.v[up].at.parent)
		if (o->v.v[up].name == v->name && o->v.v[up].kind == v->kind)
			return true;
	return false;
}

static void add_from(struct inside *in, uint32_t at, const struct event *v)
{
	const struct owners *o = &in->events.owners;
	for (; at != OWNER_NONE; at = owners_named(o, o->v.v[at].at.parent))
		if (!is_repeated(o, at))
			add_inside(in, range_of(in, o->v.v[at].name, o->v.v[at].kind), v);
}

ORDERING(name_order, struct open_span, ORDER(a->process, b->process), ORDER(a->range, b->range),
	ORDER(a->from, b->from))

ORDERING(begin_order, struct open_span, ORDER(a->process, b->process), ORDER(a->from, b->from))

/* Overlapping ranges of one name are one: activities in both count once. */
static void merge_spans(struct inside *in)
{
	size_t n = 0;
	SORT(in->spans, name_order);
	for (size_t i = 0; i < in->spans.n; i++) {
		const struct open_span s = in->spans.v[i];
		struct open_span *last = n ? &in->spans.v[n - 1] : NULL;
		if (!last || last->process != s.process || last->range != s.range ||
			s.from > last->to)
			in->spans.v[n++] = s;
		else if (s.to > last->to)
			last->to = s.to;
	}
	in->spans.n = n;
	SORT(in->spans, begin_order);
}

static int read_spans(struct inside *in)
{
	struct cursor at = { .t = in->r->trace };
	for (struct range g; trace_next_range(&at, &g);) {
		const uint32_t process = at.ref->process,
			       name = meta_find_string(&in->r->meta, process, g.name);
		if (g.kind == RANGE_NVTX_SPAN)
			*array_push(&in->spans) = (struct open_span){ g.ticks, range_end(&g),
				process, range_of(in, name, g.kind) };
	}
	merge_spans(in);
	return at.error;
}

static int call_order(const void *one, const void *two, void *context)
{
	const struct inside *in = context;
	const struct call_link *links = in->r->links.v.v;
	const struct call_link *a = &links[in->events.v.v[*(const uint32_t *)one].link],
			       *b = &links[in->events.v.v[*(const uint32_t *)two].link];
	return ORDER(a->process, b->process) ?: ORDER(a->ticks, b->ticks);
}

static void order_by_call(struct inside *in)
{
	for (size_t i = 0; i < in->events.v.n; i++)
		if (in->events.v.v[i].link != UINT32_MAX)
			*array_push(&in->order) = (uint32_t)i;
	SORT_WITH(in->order, call_order, in);
}

struct open_spans {
	ARRAY(uint32_t) v;
	size_t next; /* of the spans: the first that has not begun */
};

static void open_until(const struct inside *in, struct open_spans *open, const struct call_link *c)
{
	for (; open->next < in->spans.n; open->next++) {
		const struct open_span *s = &in->spans.v[open->next];
		if (s->process > c->process || (s->process == c->process && s->from > c->ticks))
			return;
		*array_push(&open->v) = (uint32_t)open->next;
	}
}

/* To all that are open; those that have ended are forgotten. */
static void add_to_open(struct inside *in, struct open_spans *open, const struct call_link *c,
	const struct event *v)
{
	size_t n = 0;
	for (size_t k = 0; k < open->v.n; k++) {
		const struct open_span *s = &in->spans.v[open->v.v[k]];
		if (s->process != c->process || s->to <= c->ticks)
			continue;
		open->v.v[n++] = open->v.v[k];
		add_inside(in, s->range, v);
	}
	open->v.n = n;
}

/* Through the calls in the order of time, with the ranges that are open. */
static void add_to_spans(struct inside *in)
{
	struct open_spans open = { 0 };
	if (in->spans.n)
		order_by_call(in);
	for (size_t i = 0; i < in->order.n; i++) {
		const struct event *v = &in->events.v.v[in->order.v[i]];
		const struct call_link *c = &in->r->links.v.v[v->link];
		open_until(in, &open, c);
		add_to_open(in, &open, c, v);
	}
	array_free(&open.v);
}

static int inside_order(const void *one, const void *two, void *context)
{
	const struct inside *in = context;
	const struct inside_row *a = one, *b = two;
	const uint64_t all = in->ranges.v[a->range].total_ns,
		       other = in->ranges.v[b->range].total_ns;
	const int order = ORDER(other, all) ?: ORDER(a->range, b->range);
	return order ?: ORDER(b->device.total, a->device.total) ?: ORDER(a->name, b->name);
}

static int count_inside(const struct report *r, struct inside *in)
{
	struct events *events = &in->events;
	int e = events_read(r, events);
	size_t n = 0;
	in->r = r;
	for (size_t i = 0; i < events->v.n && !e; i++)
		if (activity_is_work(events->v.v[i].w.kind))
			events->v.v[n++] = events->v.v[i];
	events->v.n = n;
	for (size_t i = 0; i < n; i++) {
		add_from(in, events->v.v[i].named, &events->v.v[i]);
		add_from(in, events->v.v[i].waiting, &events->v.v[i]);
	}
	if (!e)
		e = read_spans(in);
	add_to_spans(in);
	SORT_WITH(in->v, inside_order, in);
	return e;
}

MAKER(make_inside, struct inside, count_inside(rows->r, own))

static void free_inside(struct rows *rows)
{
	struct inside *in = rows->own;
	for (size_t i = 0; i < in->v.n; i++)
		hist_fini(&in->v.v[i].device.hist);
	events_fini(&in->events);
	array_free(&in->v, &in->ranges, &in->spans, &in->order);
	map_fini(&in->map, &in->range_map);
	free(in);
}

/* The range that it ran in. */
static const void *range_around(const struct row *row)
{
	const struct inside *in = row->rows->own;
	return &in->ranges.v[((const struct inside_row *)row->at)->range];
}

GETTER(get_name, uint32_t, it, value_text(rows_name(row->rows, *it)))

static struct value get_share(const struct row *row, const void *of)
{
	const uint64_t part = ((const struct inside_row *)row->at)->device.total,
		       all = ((const struct named_range *)of)->total_ns;
	return value_real(all ? (double)part / (double)all : 0);
}

static const struct column inside_columns[] = {
	{ "range", UNIT_TEXT, "range", "name of the range", .get = get_name, .find = range_around,
		AT(struct named_range, name) },
	{ "range_kind", UNIT_TEXT, "range kind", "`annotation`, `nvtx`, `nvtx span`",
		.get = get_range_kind, .find = range_around, AT(struct named_range, kind) },
	{ "kind", UNIT_TEXT, "kind", "`kernel`, `memcpy`, `memset`, `graph`",
		.get = get_activity_kind, AT(struct inside_row, kind) },
	{ "name", UNIT_KERNEL, "name", "of the activities", .get = get_name,
		AT(struct inside_row, name) },
	{ "count", UNIT_COUNT, "runs", "how many", .get = get_values_count,
		AT(struct inside_row, device) },
	{ "share", UNIT_SHARE, "share",
		"of the time on devices of all that was asked for in ranges of this name",
		.get = get_share, .find = range_around },
	VALUES("device", "", "time on the device", struct inside_row, device, false),
	{ 0 },
};

const struct section section_range_kernels = {
	.name = "range_kernels",
	.heading = "What ran in ranges",
	.about =
		"A row says what ran under one name in all ranges of one name: kernels, memcpys, memsets, whole graphs. An activity counts in all ranges around its call, once for each name. NVTX ranges with a start and an end count the calls of all threads of the process. A thread may launch outside of ranges of its own while exactly one other thread of the process is inside some. Such a launch counts in the ranges of that other thread. PyTorch launches the backward pass so. The range with most time on devices comes first.",
	.of = OF_RANGE_KERNELS,
	.facets = FACET(LINKS),
	.columns = inside_columns,
	.make = make_inside,
	.fini = free_inside,
	.asked = true,
	.shown = "device_total_ns,share,count,device_mean_ns,device_p50_ns,device_min_ns,"
		 "device_max_ns,device_stddev_ns,kind,range,name",
	.note = "An activity counts in each range around its launch, and in the ranges of the thread for which its thread works, as in a backward pass.  Share is of the range.",
};
