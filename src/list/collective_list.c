/*
 * Section nccl: collective operations by kernel, process and device. Operations of gloo, MPI or UCC
 * on the host are listed by the name of their range.
 */
#include "list/device_events.h"
#include "list/lists.h"
#include "section/shared_columns.h"

#include "base/hash.h"
#include "base/sort.h"
#include "trace/steps.h"

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

/* The collectives of one process on one device. Their times show which rank waits for the others.
 */
struct collective_row {
	struct gpu_activity of; /* one of them; of the host's, nothing */
	uint32_t process;
	const char *name;
	struct values device, host;
	uint64_t any_ns;   /* of the host's: one or more were under way … */
	uint64_t until_ns; /* … up to then, while they are counted in the order of time */
};

struct host_span {
	uint64_t from_ns, to_ns;
	uint32_t row;
};

struct collective_rows {
	ARRAY(struct collective_row) v;
	ARRAY(struct host_span) spans;
	struct map map;
};

static void add_collective(struct rows *rows, struct collective_rows *all, const struct event *v)
{
	const char *name = v->w.name ? rows_string(rows, v->process, v->w.name) : "";
	const uint32_t device = v->w.valid & GPU_HAS_DEVICE ? v->w.device : UINT32_MAX;
	if (v->w.kind != GPU_KERNEL || !activity_communicates(name))
		return;
	struct collective_row *row = MAP_ROW(&all->map,
		MAP_KEY(v->process, device, hash_bytes(name, strlen(name))), &all->v,
		(struct collective_row){ .of = v->w, .process = v->process, .name = name });
	values_add(&row->device, v->w.end_ns - v->w.start_ns);
}

/* "all_reduce" of gloo:all_reduce, which a library does on the host; NULL: it is none. */
static const char *host_collective(const char *range)
{
	static const char *const heads[] = { "gloo:", "mpi:", "ucc:" };
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
		if (!strncmp(range, heads[i], strlen(heads[i])))
			return range + strlen(heads[i]);
	return NULL;
}

static void add_host_collective(
	struct rows *rows, struct collective_rows *all, uint32_t process, const struct range *g)
{
	const char *name = rows_string(rows, process, g->name);
	if (!range_is_named(g->kind) || !host_collective(name))
		return;
	struct collective_row *row =
		MAP_ROW(&all->map, MAP_KEY(process, UINT64_MAX, hash_bytes(name, strlen(name))),
			&all->v, (struct collective_row){ .process = process, .name = name });
	struct host_span *span = array_push(&all->spans);
	*span = (struct host_span){ trace_ns(rows->r->trace, g->ticks),
		trace_ns(rows->r->trace, range_end(g)), (uint32_t)(row - all->v.v) };
	values_add(&row->host, span->to_ns - span->from_ns);
}

ORDERING(span_order, struct host_span, ORDER(a->from_ns, b->from_ns))

/* Collectives of several threads overlap. */
static void count_any(struct collective_rows *rows)
{
	SORT(rows->spans, span_order);
	array_each(const struct host_span, s, rows->spans) {
		struct collective_row *row = &rows->v.v[s->row];
		const uint64_t from = s->from_ns > row->until_ns ? s->from_ns : row->until_ns;
		row->any_ns += s->to_ns > from ? s->to_ns - from : 0;
		row->until_ns = s->to_ns > row->until_ns ? s->to_ns : row->until_ns;
	}
}

static int read_host_collectives(struct rows *rows, struct collective_rows *all)
{
	struct cursor at = { .t = rows->r->trace };
	for (struct range g; trace_next_range(&at, &g);)
		add_host_collective(rows, all, at.ref->process, &g);
	return at.error;
}

ORDERING(collective_order, struct collective_row, ORDER(b->device.total, a->device.total),
	ORDER(b->host.total, a->host.total), strcmp(a->name, b->name))

static int count_collectives(struct rows *rows, struct collective_rows *all)
{
	struct events events = { 0 };
	int e = events_read(rows->r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++)
		add_collective(rows, all, &events.v.v[i]);
	if (!e)
		e = read_host_collectives(rows, all);
	events_fini(&events);
	count_any(all);
	SORT(all->v, collective_order);
	return e;
}

MAKER(make_collectives, struct collective_rows, count_collectives(rows, own))

static void free_collectives(struct rows *rows)
{
	struct collective_rows *all = rows->own;
	for (size_t i = 0; i < all->v.n; i++) {
		hist_fini(&all->v.v[i].device.hist);
		hist_fini(&all->v.v[i].host.hist);
	}
	array_free(&all->v, &all->spans);
	map_fini(&all->map);
	free(all);
}

static struct value get_operation(const struct row *row, const void *of)
{
	const struct collective_row *c = of;
	size_t bytes;
	const char *name = collective_of(c->name, &bytes);
	if (!name)
		return value_text(host_collective(c->name));
	snprintf(row->text, ROW_TEXT, "%.*s", (int)bytes, name);
	return value_text(row->text);
}

FINDER(on_device, struct collective_row, c, c->of.valid &GPU_HAS_DEVICE ? c : NULL)
GETTER(get_count, struct collective_row, c, value_u64(c->device.hist.count + c->host.hist.count))
GETTER(get_any, struct collective_row, c, value_u64_if(c->host.hist.count, c->any_ns))

static const struct column collective_columns[] = {
	{ "collective", UNIT_TEXT, "operation",
		"`AllReduce`, `all_reduce` …, where the name says it", .get = get_operation },
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct collective_row, process) },
	{ "device", UNIT_ID, "device", "device", .find = on_device,
		MEMBER(struct collective_row, of.device) },
	{ "count", UNIT_COUNT, "runs", "how many", .get = get_count, .sums = true },
	VALUES("device", "", "time on the device", struct collective_row, device, true),
	VALUES("host", "host, ", "time on the host, of those there", struct collective_row, host,
		false),
	{ "host_any_ns", UNIT_NS, "host, any",
		"time in which one or more of those on the host were under way", .get = get_any },
	{ "name", UNIT_KERNEL, "name", "kernel or range", MEMBER(struct collective_row, name) },
	{ 0 },
};

const struct section section_nccl = {
	.name = "nccl",
	.heading = "Collective operations",
	.about =
		"Collective operations, by kernel, process and device, and operations of gloo, MPI or UCC on the host, by the name of their range. A process whose operations last much longer than those of the others waits in them for the slowest. A recording of samples counts only what was timed.",
	.of = OF_NCCL,
	.columns = collective_columns,
	.make = make_collectives,
	.fini = free_collectives,
	.asked = true,
	.shown = "device_total_ns,host_total_ns,host_any_ns,count,device_mean_ns,device_p50_ns,"
		 "device_min_ns,device_max_ns,device_stddev_ns,host_mean_ns,host_max_ns,pid,device,"
		 "collective,name",
	.note = "An operation of NCCL has its kernel's time on the device.  An operation of gloo or MPI has the time on the host, and those of several threads overlap.  host_any_ns is the time in which one or more were under way.  If a process's operations last longer than the others', it waits in them for the slowest.",
};
