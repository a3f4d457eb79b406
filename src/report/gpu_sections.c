/* Sections of what devices did: kernels, activities by name, copies, streams, devices. */
#include "section/shared_columns.h"
#include "report/report_make.h"
#include "report/sections.h"

#include "base/expect.h"
#include "model/roofline.h"

/* The kernel's device activities, or NULL. */
static const void *kernel_activity(const struct row *row)
{
	const struct kernel_row *k = row->at;
	if (k->activity == ACTIVITY_NONE ||
		!expect(k->activity < row->r->activities.n,
			"the activities of a kernel are one of the rows"))
		return NULL;
	return &row->r->activities.v[k->activity];
}

/* Without one nothing is known of what bounds it. */
static const void *kernel_bound(const struct row *row)
{
	const struct activity_row *w = kernel_activity(row);
	static const struct roofline unknown;
	return w ? &w->roofline : &unknown;
}

/* Other tools' files have kernels without their grid and block. */
FINDER(has_shape, struct kernel_row, k, k->shapes ? k : NULL)

GETTER(get_family, struct kernel_row, it, value_text(list_kernel_family(it->name)))

static struct value get_host_total(const struct row *row, const void *of)
{
	const struct kernel_row *k = of;
	const bool launched = row->r->trace->header.launched && k->graph_count == k->count;
	return value_u64_if(launched || k->host_ticks, trace_span_ns(row->r->trace, k->host_ticks));
}

GETTER(get_estimate_error, struct activity_row, w,
	w->total_ns ? value_real(w->error_ns / (double)w->total_ns) : value_null())
GETTER(get_queued, struct activity_row, w, value_u64_if(w->queued_count, w->queued_ns))
GETTER(get_starved, struct activity_row, w,
	value_u64_if(w->queued_count && !row->r->sampled, w->starved_ns))
GETTER(get_path, struct activity_row, it, value_u64_if(!row->r->sampled, it->path_ns))

static const struct column kernel_columns[] = {
	{ "name", UNIT_KERNEL, "kernel", "demangled", MEMBER(struct kernel_row, name) },
	{ "mangled", UNIT_TEXT, "mangled", "as the driver has it",
		MEMBER(struct kernel_row, mangled) },
	{ "family", UNIT_TEXT, "family",
		"what its name says that it does: a `family` of `kernel_families`",
		.get = get_family },
	{ "count", UNIT_COUNT, "runs", "executions", MEMBER(struct kernel_row, count),
		.sums = true },
	{ "graph_count", UNIT_COUNT, "in graphs", "those of them that were nodes of graphs",
		MEMBER(struct kernel_row, graph_count), .sums = true },
	{ "host_total_ns", UNIT_NS, "host time", "time in the launching calls",
		.get = get_host_total, .sums = true },
	{ "grid", UNIT_DIM3, "grid", "x, y, z of most launches", .find = has_shape,
		MEMBER(struct kernel_row, shape.grid) },
	{ "block", UNIT_DIM3, "block", "x, y, z of most launches", .find = has_shape,
		MEMBER(struct kernel_row, shape.block) },
	{ "shapes", UNIT_COUNT, "shapes", "different grids and blocks",
		MEMBER(struct kernel_row, shapes) },
	DEVICE_TIMES(kernel_activity, true),
	{ "estimate_error", UNIT_SHARE, "±", "`device_total_estimate_error_ns` of the estimate",
		.get = get_estimate_error, .find = kernel_activity, .text_only = true },
	{ "share", UNIT_SHARE, "share", "of the time of all kernels on devices",
		.get = get_share_of_all, .find = kernel_activity, AT(struct activity_row, total_ns),
		.sums = true },
	{ "queued_ns", UNIT_NS, "queued", "sum of the times from the launch's return to the start",
		.get = get_queued, .find = kernel_activity },
	{ "launch_starved_ns", UNIT_NS, "starved",
		"the device stood still before it, waiting for the host's launch",
		.get = get_starved, .find = kernel_activity },
	{ "path_ns", UNIT_NS, "on path", "on the critical path", .get = get_path,
		.find = kernel_activity },
	ROOFLINE(kernel_bound, true),
	{ 0 },
};

static void make_kernels(struct rows *rows)
{
	rows->all = 0;
	array_each(const struct activity_row, w, rows->r->activities)
		rows->all += w->kind == GPU_KERNEL ? (double)w->total_ns : 0;
}

static const char *choose_kernels(const struct report *r)
{
	return r->device_kernels
		       ? "device_total_ns,device_total_estimate_ns,share,count,device_mean_ns,"
			 "device_p50_ns,device_min_ns,device_max_ns,device_stddev_ns,class,name"
		       : "count,graph_count,host_total_ns,grid,block,shapes,name";
}

static void put_sum(const struct report *r, FILE *out)
{
	roofline_put_sum(out, r);
}

const struct section section_kernels = {
	.name = "kernels",
	.heading = "Kernels by time on the device",
	.of = OF_LAUNCHES,
	.facets = FACET(KERNELS) | FACET(DEVICE),
	.columns = kernel_columns,
	ROWS_OF(kernel_rows),
	.make = make_kernels,
	.choose = choose_kernels,
	.note = "Class is the ceiling that the kernel comes closer to, compute or memory.  A latency kernel is far below both.  Before a launch kernel the GPU mostly stood still, because the host launched late.  A question mark means a guess by the name.  flops_share and bytes_share are of what such a GPU was measured to reach, and may exceed 100 %.  flops_peak_share is of the maker's peak.  --only gpu has both.",
	.below = put_sum,
	.below_with = "flops",
};

GETTER(get_activity_bytes, struct activity_row, w, value_u64_if(w->sized, w->bytes))

static const struct column activity_columns[] = {
	{ "name", UNIT_KERNEL, "name", "demangled", MEMBER(struct activity_row, name) },
	{ "kind", UNIT_TEXT, "kind",
		"`kernel`, `memcpy`, `memset`, `sync`, `span`, `graph`, `other`; `sync`: the host waited for "
		"the device, which is no work of it",
		.get = get_activity_kind, AT(struct activity_row, kind) },
	{ "count", UNIT_COUNT, "runs", "executions", MEMBER(struct activity_row, count) },
	{ "graph_count", UNIT_COUNT, "in graphs", "those of them that were nodes of graphs",
		MEMBER(struct activity_row, graph_count) },
	DEVICE_TIMES(NULL, false),
	{ "bytes", UNIT_BYTES, "bytes",
		"copied or set by those whose size is known; null: a copy or set whose size never is",
		.get = get_activity_bytes },
	{ 0 },
};

const struct section section_device_activities = {
	.name = "device_activities",
	.heading = "GPU activities by time on the device",
	.about = "All that ran on devices, by name.",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = activity_columns,
	ROWS_OF(activities),
	.shown = "device_total_ns,device_total_estimate_ns,count,device_mean_ns,device_p50_ns,"
		 "device_min_ns,device_max_ns,device_stddev_ns,kind,name",
};

/* rows->all: the wall time in which recording was on. */
static void make_of_wall(struct rows *rows)
{
	rows->all = (double)(rows->r->wall_ns - rows->r->off_ns);
}

#define BUSY_SHARE_MEANING "`busy_ns` of the wall time in which recording was on"

static const struct column device_columns[] = {
	{ "device", UNIT_ID, "device", "its number", MEMBER(struct device_row, device) },
	{ "name", UNIT_TEXT, "name", "its name", MEMBER(struct device_row, name) },
	{ "count", UNIT_COUNT, "activities", "activities that ran on it",
		MEMBER(struct device_row, count) },
	{ "busy_ns", UNIT_NS, "busy", "time in which something ran",
		MEMBER(struct device_row, busy_ns) },
	{ "busy_share", UNIT_SHARE, "busy share", BUSY_SHARE_MEANING, .get = get_share_of_all,
		AT(struct device_row, busy_ns) },
	{ "kernel_ns", UNIT_NS, "kernels", "sum of the kernels' times, which may overlap",
		MEMBER(struct device_row, kernel_ns) },
	{ "copy_ns", UNIT_NS, "memcpys", "sum of the memcpys' times",
		MEMBER(struct device_row, copy_ns) },
	{ "set_ns", UNIT_NS, "memsets", "sum of the memsets' times",
		MEMBER(struct device_row, set_ns) },
	{ 0 },
};

const struct section section_devices = {
	.name = "devices",
	.heading = "Devices",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = device_columns,
	ROWS_OF(devices),
	.make = make_of_wall,
	.shown = "device,busy_ns,busy_share,kernel_ns,copy_ns,set_ns,name",
	.note = "Busy is the time in which something ran.  Shares are of the wall time with recording on, start-up included.  --steady or --steps N-M leaves out start-up.  Sums of kinds may overlap.  If several traces name no devices by UUID, a number that two of them use counts as two devices.",
};

static const struct column stream_columns[] = {
	{ "pid", UNIT_ID, "pid", "process", .get = get_pid, AT(struct stream_row, process) },
	{ "device", UNIT_ID, "device", "device", MEMBER(struct stream_row, device) },
	{ "context", UNIT_ID, "context", "context", MEMBER(struct stream_row, context) },
	{ "stream", UNIT_ID, "stream", "stream", MEMBER(struct stream_row, stream) },
	{ "count", UNIT_COUNT, "activities", "activities of it", MEMBER(struct stream_row, count),
		.sums = true },
	{ "device_total_ns", UNIT_NS, "time", "time of its activities, added up",
		MEMBER(struct stream_row, total_ns), .sums = true },
	{ "busy_ns", UNIT_NS, "busy", "time in which something of it ran",
		MEMBER(struct stream_row, busy_ns) },
	{ "busy_share", UNIT_SHARE, "busy share", BUSY_SHARE_MEANING, .get = get_share_of_all,
		AT(struct stream_row, busy_ns) },
	{ "first_ns", UNIT_MOMENT, "first at", "when its first activity began",
		.get = get_since_start, AT(struct stream_row, first_ns) },
	{ "last_ns", UNIT_MOMENT, "last at", "when its last activity ended", .get = get_since_start,
		AT(struct stream_row, last_ns) },
	{ 0 },
};

const struct section section_streams = {
	.name = "streams",
	.heading = "Streams by time on the device",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = stream_columns,
	ROWS_OF(stream_rows),
	.make = make_of_wall,
	.note = "Busy is the time in which something of the stream ran.  Shares are of the wall time with recording on, start-up included.  --steady, --steps N-M or --after leaves out start-up.",
};
