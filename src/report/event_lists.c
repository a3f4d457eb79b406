/* See event_lists.h. */
#include "report/event_lists.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "report/analysis.h"
#include "report/lister.h"
#include "report/memory_print.h"
#include "report/report_make.h"
#include "trace/activity.h"
#include "trace/steps.h"

#include "base/banned.h"

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

/* Of one process on one device: who waits for the others shows in the times. */
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

static int add_collective(struct lister *l, struct collective_rows *rows, const struct event *v)
{
	const char *name = v->w.name ? lister_string(l, v->process, v->w.name) : "";
	const uint32_t device = v->w.valid & GPU_HAS_DEVICE ? v->w.device : UINT32_MAX;
	if (v->w.kind != GPU_KERNEL || !activity_communicates(name))
		return 0;
	struct collective_row *row = MAP_ROW(&rows->map,
		MAP_KEY(v->process, device, hash_bytes(name, strlen(name))), &rows->v,
		(struct collective_row){ .of = v->w, .process = v->process, .name = name });
	if (!row)
		return -ENOMEM;
	values_add(&row->device, v->w.end_ns - v->w.start_ns);
	return 0;
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

static int add_host_collective(
	struct lister *l, struct collective_rows *rows, uint32_t process, const struct range *g)
{
	const char *name = lister_string(l, process, g->name);
	if (!range_is_named(g->kind) || !host_collective(name))
		return 0;
	struct collective_row *row =
		MAP_ROW(&rows->map, MAP_KEY(process, UINT64_MAX, hash_bytes(name, strlen(name))),
			&rows->v, (struct collective_row){ .process = process, .name = name });
	if (!row)
		return -ENOMEM;
	struct host_span *span = array_push(&rows->spans);
	if (!span)
		return -ENOMEM;
	*span = (struct host_span){ trace_ns(l->r->trace, g->ticks),
		trace_ns(l->r->trace, range_end(g)), (uint32_t)(row - rows->v.v) };
	values_add(&row->host, span->to_ns - span->from_ns);
	return 0;
}

static int span_order(const void *one, const void *two)
{
	const struct host_span *a = one, *b = two;
	return ORDER(a->from_ns, b->from_ns);
}

/* Those of several threads overlap. */
static void count_any(struct collective_rows *rows)
{
	SORT(rows->spans, span_order);
	for (size_t i = 0; i < rows->spans.n; i++) {
		const struct host_span *s = &rows->spans.v[i];
		struct collective_row *row = &rows->v.v[s->row];
		const uint64_t from = s->from_ns > row->until_ns ? s->from_ns : row->until_ns;
		row->any_ns += s->to_ns > from ? s->to_ns - from : 0;
		row->until_ns = s->to_ns > row->until_ns ? s->to_ns : row->until_ns;
	}
}

static int read_host_collectives(struct lister *l, struct collective_rows *rows)
{
	struct chunk_buf buf = { 0 };
	struct cursor at = { .t = l->r->trace, .buf = &buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0 &&
		!(e = add_host_collective(l, rows, buf.ref->process, &g)))
		;
	chunk_buf_fini(&buf);
	return e;
}

static int collective_order(const void *one, const void *two)
{
	const struct collective_row *a = one, *b = two;
	if (a->device.total != b->device.total)
		return ORDER(b->device.total, a->device.total);
	return a->host.total != b->host.total ? ORDER(b->host.total, a->host.total)
					      : strcmp(a->name, b->name);
}

static int put_collective(struct lister *l, const struct collective_row *row)
{
	size_t bytes;
	struct json *j = lister_begin_row(l);
	const char *collective = collective_of(row->name, &bytes);
	if (collective)
		json_strn(j, "collective", collective, bytes);
	else
		json_str_or_null(j, "collective", host_collective(row->name));
	json_u64(j, "pid", l->r->trace->processes.v[row->process].pid);
	json_u64_or_null(j, "device", row->of.valid & GPU_HAS_DEVICE, row->of.device);
	json_u64(j, "count", row->device.hist.count + row->host.hist.count);
	values_put(j, "device", &row->device);
	values_put(j, "host", &row->host);
	json_u64_or_null(j, "host_any_ns", row->host.hist.count, row->any_ns);
	json_str(j, "name", row->name);
	return lister_end_row(l);
}

static int list_collectives(struct lister *l)
{
	struct events events = { 0 };
	struct collective_rows rows = { 0 };
	int e = events_read(l->r, &events);
	for (size_t i = 0; i < events.v.n && !e; i++)
		e = add_collective(l, &rows, &events.v.v[i]);
	if (!e)
		e = read_host_collectives(l, &rows);
	count_any(&rows);
	SORT(rows.v, collective_order);
	for (size_t i = 0; i < rows.v.n && !e; i++)
		e = put_collective(l, &rows.v.v[i]);
	for (size_t i = 0; i < rows.v.n; i++) {
		hist_fini(&rows.v.v[i].device.hist);
		hist_fini(&rows.v.v[i].host.hist);
	}
	array_free(&rows.v);
	array_free(&rows.spans);
	map_fini(&rows.map);
	events_fini(&events);
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
	const uint64_t all = report_operators_ns(by_shape);
	for (size_t i = 0; i < by_shape->operators.n && !e; i++) {
		struct json *j = lister_begin_row(l);
		report_put_operator(j, by_shape, &by_shape->operators.v[i], all);
		e = lister_end_row(l);
	}
	report_free(by_shape);
	return e;
}

/* ---- idle gaps ---- */

static int list_idle_gaps(struct lister *l)
{
	struct report *with_gaps;
	struct error err;
	int e = report_make_with_gaps(l->r, &with_gaps, &err);
	if (e)
		return e;
	const struct analysis *a = &with_gaps->analysis;
	for (size_t i = 0; i < a->idle_gaps.n && !e; i++) {
		analysis_put_gap(lister_begin_row(l), with_gaps, &a->idle_gaps.v[i]);
		e = lister_end_row(l);
	}
	report_free(with_gaps);
	return e;
}

/* ---- memory ---- */

static int list_allocation_calls(struct lister *l)
{
	const struct memory_time *t = &l->r->memory_detail->time;
	int e = 0;
	for (size_t i = 0; i < t->calls.n && !e; i++) {
		memory_put_call_time(lister_begin_row(l), l->r, &t->calls.v[i]);
		e = lister_end_row(l);
	}
	return e;
}

static int list_memory_points(struct lister *l)
{
	int e = 0;
	for (uint32_t i = 0; i < MEMORY_POINTS && l->r->calls + l->r->allocator_events && !e; i++) {
		memory_put_point(lister_begin_row(l), l->r, i);
		e = lister_end_row(l);
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
		"range,operator,name",
		list_activities },
	{ "api_trace", "start_ns,duration_ns,pid,tid,api,bytes,result,error,kernel,caller,name",
		list_calls },
	{ "waits", "wait_total_ns,share_of_run,count," SPREAD("wait") "kind,api,name", list_waits },
	{ "operators_by_shape",
		"device_self_ns,share,device_total_ns,host_total_ns,count,class,name,shape",
		list_shapes },
	{ "kernel_shapes",
		"device_total_ns,count,device_mean_ns,grid,block,registers,occupancy,waves,"
		"device_occupancy,limited_by,pid,device,name",
		list_kernel_shapes },
	{ "launch_gaps",
		"count,call_total_ns,call_mean_ns,call_p50_ns,call_max_ns,queued_total_ns,"
		"queued_mean_ns,queued_p50_ns,queued_max_ns,device_mean_ns,name",
		list_launch_gaps },
	{ "kernel_families",
		"device_total_ns,device_total_estimate_ns,share,count,device_mean_ns,names,family,"
		"longest",
		list_families },
	{ "idle_gaps", "start_ns,ns,cause,call,operator,module,line,after,before", list_idle_gaps },
	{ "busy_over_time",
		"start_ns,device,busy_share,kernel_share,copy_share,kernels_at_once,"
		"kernels_started",
		list_busy },
	{ "kernels_at_once", "device,at_once,ns,share,share_of_busy", list_at_once },
	{ "nccl",
		"device_total_ns,host_total_ns,host_any_ns,count," SPREAD(
			"device") "host_mean_ns,host_max_ns,"
				  "pid,device,collective,name",
		list_collectives },
	{ "range_kernels", "device_total_ns,share,count," SPREAD("device") "kind,range,name",
		list_range_kernels },
	{ "nvtx_pace",
		"count,pace_mean_ns,pace_p50_ns,pace_min_ns,pace_max_ns,pace_stddev_ns,"
		"duration_p50_ns,duration_max_ns,kind,name",
		list_range_paces },
	{ "steps",
		"number,start_ns,duration_ns,launches,device_busy_ns,device_busy_share,pid,kind,name",
		list_steps },
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
