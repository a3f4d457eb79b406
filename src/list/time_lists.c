/* Sections busy_over_time, in intervals of equal length, and kernels_at_once. */
#include "list/device_events.h"
#include "list/lists.h"

#include "base/sort.h"
#include "list/busy.h"

static bool is_copy(uint16_t kind)
{
	return kind == GPU_MEMCPY || kind == GPU_MEMSET;
}

static bool is_kernel(uint16_t kind)
{
	return kind == GPU_KERNEL || kind == GPU_GRAPH;
}

static uint32_t device_of(const struct gpu_activity *w)
{
	return w->valid & GPU_HAS_DEVICE ? w->device : 0;
}

/* From the begin of the recording, or of the first activity, to the end. */
struct wall {
	uint64_t from_ns, ns;
};

static struct wall wall_of(const struct report *r)
{
	return (struct wall){ r->analysis.start_ns, r->wall_ns };
}

/* The time covered by activities that come in the order of their starts. */
struct covered {
	uint64_t until;
	uint64_t ns[BUSY_POINTS];
};

struct busy_device {
	struct covered all, kernels, copies;
	uint64_t running_ns[BUSY_POINTS]; /* kernels, one by one */
	uint64_t started[BUSY_POINTS];
};

static void cover(struct covered *c, const struct wall *wall, const struct gpu_activity *w)
{
	const uint64_t from = w->start_ns > c->until ? w->start_ns : c->until;
	if (w->end_ns <= from)
		return;
	busy_spread(c->ns, wall->ns, from - wall->from_ns, w->end_ns - wall->from_ns);
	c->until = w->end_ns;
}

static void add(struct busy_device *d, const struct wall *wall, const struct gpu_activity *w)
{
	const uint64_t from = w->start_ns - wall->from_ns;
	cover(&d->all, wall, w);
	cover(is_copy(w->kind) ? &d->copies : &d->kernels, wall, w);
	if (is_copy(w->kind))
		return;
	busy_spread(d->running_ns, wall->ns, from, w->end_ns - wall->from_ns);
	d->started[busy_point(wall->ns, from)]++;
}

struct interval_row {
	uint64_t from_ns, ns; /* since the wall time began */
	uint32_t device;
	double busy, kernels, copies, at_once;
	uint64_t started;
};

static struct interval_row interval(
	const struct wall *wall, const struct busy_device *d, uint32_t device, unsigned i)
{
	const uint64_t from = busy_begin(wall->ns, i), ns = busy_begin(wall->ns, i + 1) - from;
	const double all = ns ? (double)ns : 1;
	return (struct interval_row){ .from_ns = wall->from_ns + from,
		.ns = ns,
		.device = device,
		.busy = (double)d->all.ns[i] / all,
		.kernels = (double)d->kernels.ns[i] / all,
		.copies = (double)d->copies.ns[i] / all,
		.at_once = (double)d->running_ns[i] / all,
		.started = d->started[i] };
}

struct intervals {
	ARRAY(struct interval_row) v;
};

static void list_device(
	const struct report *r, const struct events *events, uint32_t device, void *to)
{
	const struct wall wall = wall_of(r);
	struct intervals *list = to;
	struct busy_device *d = xcalloc(1, sizeof *d);
	for (size_t i = 0; i < events->v.n; i++) {
		const struct gpu_activity *w = &events->v.v[i].w;
		if ((is_kernel(w->kind) || is_copy(w->kind)) && device_of(w) == device)
			add(d, &wall, w);
	}
	for (unsigned i = 0; i < BUSY_POINTS; i++)
		*array_push(&list->v) = interval(&wall, d, device, i);
	free(d);
}

struct at_once {
	ARRAY(uint64_t) starts;
	ARRAY(uint64_t) ends;
	ARRAY(uint64_t) ns; /* by how many ran */
};

static void spend(struct at_once *a, size_t running, uint64_t ns)
{
	while (a->ns.n <= running)
		*array_push(&a->ns) = 0;
	a->ns.v[running] += ns;
}

/* Through the moments at which one began or ended. */
static void walk(struct at_once *a, const struct wall *wall)
{
	uint64_t last = wall->from_ns;
	size_t in = 0, out = 0;
	SORT(a->starts, order_u64);
	SORT(a->ends, order_u64);
	while (out < a->ends.n) {
		const bool begins = in < a->starts.n && a->starts.v[in] < a->ends.v[out];
		const uint64_t at = begins ? a->starts.v[in] : a->ends.v[out];
		const size_t running = in > out ? in - out : 0;
		if (at > last)
			spend(a, running, at - last);
		last = MAX(at, last);
		*(begins ? &in : &out) += 1;
	}
	const uint64_t end = wall->from_ns + wall->ns;
	spend(a, 0, end > last ? end - last : 0);
}

struct level_row {
	uint32_t device;
	uint64_t at_once, ns;
	double share, of_busy;
};

struct levels {
	ARRAY(struct level_row) v;
};

static void put_levels(
	struct levels *to, const struct at_once *a, const struct wall *wall, uint32_t device)
{
	uint64_t busy = 0;
	for (size_t i = 1; i < a->ns.n; i++)
		busy += a->ns.v[i];
	for (size_t i = 0; i < a->ns.n; i++)
		*array_push(&to->v) = (struct level_row){ .device = device,
			.at_once = i,
			.ns = a->ns.v[i],
			.share = wall->ns ? (double)a->ns.v[i] / (double)wall->ns : 0,
			.of_busy = i && busy ? (double)a->ns.v[i] / (double)busy : NAN };
}

static void list_levels(
	const struct report *r, const struct events *events, uint32_t device, void *to)
{
	const struct wall wall = wall_of(r);
	struct at_once a = { 0 };
	for (size_t i = 0; i < events->v.n; i++) {
		const struct gpu_activity *w = &events->v.v[i].w;
		if (!is_kernel(w->kind) || device_of(w) != device)
			continue;
		*array_push(&a.starts) = w->start_ns;
		*array_push(&a.ends) = w->end_ns;
	}
	walk(&a, &wall);
	put_levels(to, &a, &wall, device);
	array_free(&a.starts, &a.ends, &a.ns);
}

/* Times of samples make no timeline. */
static int each_device(const struct report *r,
	void (*list)(
		const struct report *r, const struct events *events, uint32_t device, void *to),
	void *to)
{
	struct events events = { 0 };
	const int e = r->analysis.known ? events_read(r, &events) : 0;
	for (size_t i = 0; i < r->devices.n && !e && r->analysis.known; i++)
		list(r, &events, r->devices.v[i].device, to);
	events_fini(&events);
	return e;
}

static void make_intervals(struct rows *rows)
{
	struct intervals list = { 0 };
	rows->error = each_device(rows->r, list_device, &list);
	rows_own(rows, list.v.v, list.v.n, sizeof *list.v.v);
}

static void make_levels(struct rows *rows)
{
	struct levels list = { 0 };
	rows->error = each_device(rows->r, list_levels, &list);
	rows_own(rows, list.v.v, list.v.n, sizeof *list.v.v);
}

static const struct column interval_columns[] = {
	{ "start_ns", UNIT_MOMENT, "at", "when the interval begins", .get = get_since_start,
		AT(struct interval_row, from_ns) },
	{ "duration_ns", UNIT_NS, "time", "how long it is", MEMBER(struct interval_row, ns) },
	{ "device", UNIT_ID, "device", "device", MEMBER(struct interval_row, device) },
	{ "busy_share", UNIT_SHARE, "busy", "part of the interval in which anything ran",
		MEMBER(struct interval_row, busy) },
	{ "kernel_share", UNIT_SHARE, "kernels", "part of it in which a kernel ran",
		MEMBER(struct interval_row, kernels) },
	{ "copy_share", UNIT_SHARE, "copies", "part of it in which a memcpy or memset ran",
		MEMBER(struct interval_row, copies) },
	{ "kernels_at_once", UNIT_REAL, "kernels at once", "mean of how many kernels ran",
		MEMBER(struct interval_row, at_once) },
	{ "kernels_started", UNIT_COUNT, "kernels started", "how many began",
		MEMBER(struct interval_row, started) },
	{ 0 },
};

const struct section section_busy_over_time = {
	.name = "busy_over_time",
	.heading = "Busy over time",
	.about =
		"The wall time of each device in 120 intervals of equal length. The line `busy` of the report has all devices together, two intervals a column.",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = interval_columns,
	.make = make_intervals,
	.asked = true,
	.series = true,
	.shown = "start_ns,device,busy_share,kernel_share,copy_share,kernels_at_once,"
		 "kernels_started",
	.note = "The wall time has 120 equal parts.  weir report draws it in a line, and weir html as a picture.  --after, --before, --steps or --range reads a part of the run, more finely.  kernels_at_once is the mean of how many ran.",
};

static const struct column level_columns[] = {
	{ "device", UNIT_ID, "device", "device", MEMBER(struct level_row, device) },
	{ "at_once", UNIT_COUNT, "at once", "how many kernels ran",
		MEMBER(struct level_row, at_once) },
	{ "ns", UNIT_NS, "time", "for how long", MEMBER(struct level_row, ns) },
	{ "share", UNIT_SHARE, "of wall", "`ns` of the wall time",
		MEMBER(struct level_row, share) },
	{ "share_of_busy", UNIT_SHARE, "of busy",
		"`ns` of the time in which a kernel ran; null of `at_once` 0",
		MEMBER(struct level_row, of_busy) },
	{ 0 },
};

const struct section section_kernels_at_once = {
	.name = "kernels_at_once",
	.heading = "Kernels at once",
	.about =
		"For how much of the wall time no kernel ran on a device, one, two and so on. A graph that was timed as a whole counts as one.",
	.of = OF_GPU,
	.facets = FACET(DEVICE),
	.columns = level_columns,
	.make = make_levels,
	.asked = true,
	.note = "For this part of the wall time so many kernels ran at once.  share_of_busy is of the time in which any ran.",
};
