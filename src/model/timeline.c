/* Accounts for the wall time. */
#include "model/device_time.h"

#include "base/atomic.h"
#include "base/expect.h"
#include "base/radix.h"
#include "model/host_time.h"

/* How much of the time is covered by intervals that come in the order of their starts. */
struct cover {
	uint64_t until, ns;
};

struct account {
	struct report *r;
	struct timeline *t;
	struct host_time host;
	uint64_t start_ns, end_ns;                        /* of the wall time */
	struct cover all, compute, compute_communication; /* of any device */
	uint32_t last_row;                                /* of the activity that ended last */
	uint64_t latency_ns; /* from a launch's begin to the earliest that its kernel starts */
};

static void cover_add(struct cover *c, const struct activity *p)
{
	const uint64_t from = p->start_ns > c->until ? p->start_ns : c->until;
	if (p->end_ns <= from)
		return;
	c->ns += p->end_ns - from;
	c->until = p->end_ns;
}

static void count_activity(struct account *a, const struct activity *p)
{
	const bool copies = p->kind == GPU_MEMCPY || p->kind == GPU_MEMSET;
	cover_add(&a->all, p);
	if (!copies && !p->communicates)
		cover_add(&a->compute, p);
	if (!copies)
		cover_add(&a->compute_communication, p);
}

/* The page has the same words: partLook in viewer/charts.js. */
const char *const wall_part_name[WALL_PARTS] = {
	[WALL_COMPUTING] = "computing",
	[WALL_COMMUNICATING] = "communicating",
	[WALL_COPYING] = "copying",
	[WALL_LAUNCHING] = "idle_launch_bound",
	[WALL_WAITING] = "idle_waiting",
	[WALL_DRIVER] = "idle_driver",
	[WALL_HOST] = "idle_host_busy",
	[WALL_QUEUED] = "idle_queued",
	[WALL_UNKNOWN] = "idle_unknown",
	[WALL_OFF] = "off",
	[WALL_BEFORE] = "before",
	[WALL_AFTER] = "after",
};

const char *const wall_part_text[WALL_PARTS] = {
	[WALL_COMPUTING] = "kernels running",
	[WALL_COMMUNICATING] = "communication between devices, no other kernel running",
	[WALL_COPYING] = "memcpy and memset, no kernel running",
	[WALL_LAUNCHING] = "idle, launch-bound: host still launching",
	[WALL_WAITING] = "idle: host in a synchronizing call",
	[WALL_DRIVER] = "idle: host in another long CUDA call",
	[WALL_HOST] = "idle: host busy outside CUDA",
	[WALL_QUEUED] = "idle: queued activities had not begun",
	[WALL_UNKNOWN] = "idle: cause not known",
	[WALL_OFF] = "not recorded: switched off",
	[WALL_BEFORE] = "before the first GPU activity",
	[WALL_AFTER] = "after the last GPU activity",
};

static const enum wall_part part_of_state[HOST_STATES] = {
	[HOST_LAUNCHING] = WALL_LAUNCHING,
	[HOST_ALLOCATING] = WALL_LAUNCHING,
	[HOST_LOADING] = WALL_LAUNCHING,
	[HOST_COPYING] = WALL_LAUNCHING,
	[HOST_WAITING] = WALL_WAITING,
	[HOST_DRIVER] = WALL_DRIVER,
	[HOST_LONG_ALLOC] = WALL_DRIVER,
	[HOST_LONG_LOAD] = WALL_DRIVER,
	[HOST_ELSEWHERE] = WALL_HOST,
};

#define LATENCY_MOST 20000u /* a launch that takes longer was held up by something else */

static uint64_t find_latency(const struct timeline *t)
{
	uint64_t least = LATENCY_MOST;
	array_each(const struct activity, p, t->activities) {
		const struct caller *c = p->call == NO_CALL ? NULL : &t->calls.v[p->call];
		if (c && p->kind == GPU_KERNEL && c->start_ns < p->start_ns &&
			p->start_ns - c->start_ns < least)
			least = p->start_ns - c->start_ns;
	}
	return least < LATENCY_MOST ? least : 0;
}

/* Keeps the longest, longest first. */
static void keep_long_gap(struct analysis *to, const struct idle_gap *p)
{
	const bool full = to->idle_gaps.n == IDLE_GAPS_KEPT;
	if (full && to->idle_gaps.v[IDLE_GAPS_KEPT - 1].ns >= p->ns)
		return;
	array_reserve(&to->idle_gaps, 1);
	size_t at = full ? IDLE_GAPS_KEPT - 1 : to->idle_gaps.n++;
	for (; at && to->idle_gaps.v[at - 1].ns < p->ns; at--)
		to->idle_gaps.v[at] = to->idle_gaps.v[at - 1];
	to->idle_gaps.v[at] = *p;
}

static void keep_gap(struct report *r, const struct idle_gap *p)
{
	if (!r->all_gaps) {
		keep_long_gap(&r->analysis, p);
		return;
	}
	*array_push(&r->analysis.idle_gaps) = *p;
}

static enum wall_part largest_part(const uint64_t ns[WALL_PARTS])
{
	enum wall_part largest = WALL_UNKNOWN;
	for (enum wall_part k = 0; k < WALL_PARTS; k++)
		if (ns[k] > ns[largest])
			largest = k;
	return largest;
}

static enum wall_part part_of(const struct idle *i)
{
	return i->what == IDLE_QUEUED    ? WALL_QUEUED
	       : i->what == IDLE_UNKNOWN ? WALL_UNKNOWN
	       : i->what == IDLE_OFF     ? WALL_OFF
					 : part_of_state[i->what];
}

static void put_idle(struct account *a, struct idle i, uint64_t ns[WALL_PARTS])
{
	if (!i.ns)
		return;
	*array_push(&a->r->analysis.idle) = i;
	ns[part_of(&i)] += i.ns;
}

/* The host's state when the device ran dry: a launch takes its time to reach it. */
static struct idle begin_of(const struct account *a, const struct activity *p, uint64_t from)
{
	expect(p->call < a->t->calls.n, "the call of a GPU activity is known");
	const struct caller *c = &a->t->calls.v[p->call];
	const uint64_t dry = from - (from < a->latency_ns ? from : a->latency_ns);
	const bool again = p > a->t->activities.v && p[-1].call == p->call;
	return (struct idle){ .until_ns = p->start_ns,
		.blocked = (uint8_t)host_time_state(&a->host, c->thread, dry),
		.issued = again                ? ISSUED_BY_SAME_CALL
			  : c->end_ns <= dry   ? ISSUED_BEFORE
			  : c->start_ns <= dry ? ISSUED_DURING
					       : ISSUED_AFTER };
}

static uint64_t overlap(uint64_t from, uint64_t to, uint64_t other_from, uint64_t other_to)
{
	const uint64_t begin = MAX(from, other_from);
	const uint64_t end = MIN(to, other_to);
	return end > begin ? end - begin : 0;
}

/* For how long between the two nobody recorded; in a part of a trace that is not known. */
static uint64_t off_between(const struct trace *t, uint64_t from, uint64_t to)
{
	const uint64_t since = load_relaxed(&t->header.off_since_ns);
	uint64_t ns = since ? overlap(from, to, since, UINT64_MAX) : 0;
	for (uint32_t i = 0; i < t->off.count; i++)
		ns += overlap(from, to, t->off.v[i].from_ns, t->off.v[i].to_ns);
	return t->parts.n || ns > to - from ? 0 : ns;
}

/* Why nothing ran from `from` until p began. */
static void explain(struct account *a, const struct activity *p, uint64_t from, uint64_t ns[])
{
	const uint64_t to = p->start_ns;
	if (p->call == NO_CALL) {
		struct idle i = {
			.until_ns = to, .ns = off_between(a->r->trace, from, to), .what = IDLE_OFF
		};
		put_idle(a, i, ns);
		i.ns = to - from - i.ns;
		i.what = IDLE_UNKNOWN;
		put_idle(a, i, ns);
		return;
	}
	const struct caller *c = &a->t->calls.v[p->call];
	const uint64_t issued = c->end_ns < from ? from : c->end_ns > to ? to : c->end_ns;
	uint64_t host[HOST_STATES] = { 0 };
	struct idle i = begin_of(a, p, from);
	host_time_split(&a->host, c->thread, from, issued, host);
	i.what = IDLE_OFF;
	i.ns = off_between(a->r->trace, from, issued);
	i.ns = MIN(i.ns, host[HOST_ELSEWHERE]);
	host[HOST_ELSEWHERE] -= i.ns;
	put_idle(a, i, ns);
	for (int s = 0; s < HOST_STATES; s++) {
		i.what = (uint8_t)s;
		i.ns = host[s];
		put_idle(a, i, ns);
	}
	i.what = IDLE_QUEUED;
	i.ns = to - issued;
	put_idle(a, i, ns);
}

static void count_gap(struct account *a, const struct activity *p)
{
	struct analysis *to = &a->r->analysis;
	struct activity_row *row = &a->r->activities.v[p->row];
	uint64_t ns[WALL_PARTS] = { 0 };
	explain(a, p, a->all.until, ns);
	for (int k = 0; k < WALL_PARTS; k++)
		to->wall_ns[k] += ns[k];
	row->starved_ns += ns[WALL_LAUNCHING];
	row->starved_count += ns[WALL_LAUNCHING] > p->end_ns - p->start_ns;
	const struct idle_gap kept = { .start_ns = a->all.until - a->start_ns,
		.ns = p->start_ns - a->all.until,
		.cause = largest_part(ns),
		.ended = a->r->activities.v[a->last_row].name,
		.began = row->name,
		.began_bytes = p->bytes,
		.began_named = p->kind != GPU_MEMCPY && p->kind != GPU_MEMSET,
		.link = p->call,
		.culprit = { .operator= META_NONE,
			.module = META_NONE,
			.line = META_NONE,
			.began_in = META_NONE,
			.stack = UINT32_MAX } };
	keep_gap(a->r, &kept);
}

/* From the call's return until the activity began; activities of a graph wait for each other. */
static void count_queued(struct account *a, const struct activity *p)
{
	struct analysis *to = &a->r->analysis;
	if (p->call == NO_CALL)
		return;
	struct caller *c = &a->t->calls.v[p->call];
	if (c->first_ns)
		return;
	c->first_ns = p->start_ns ? p->start_ns : 1;
	const uint64_t ns = p->start_ns > c->end_ns ? p->start_ns - c->end_ns : 0;
	struct activity_row *row = &a->r->activities.v[p->row];
	row->queued_ns = sat_add(row->queued_ns, ns);
	row->queued_count++;
	to->queue.calls++;
	to->queue.api_ns = sat_add(to->queue.api_ns, c->end_ns - c->start_ns);
	to->queue.queued_ns = sat_add(to->queue.queued_ns, ns);
	hist_add(&to->queue.queued, ns);
}

struct depth { /* a walk over the moments at which the queue grew and shrank */
	uint64_t *grown, *shrunk;
	size_t n;
};

static void walk_queue(const struct depth *d, struct queue *q)
{
	uint64_t area = 0, last = d->n ? d->grown[0] : 0, now = 0;
	size_t in = 0, out = 0;
	while (out < d->n) {
		const bool grows = in < d->n && d->grown[in] <= d->shrunk[out];
		const uint64_t at = grows ? d->grown[in] : d->shrunk[out];
		area += now * (at - last);
		q->empty_ns += now ? 0 : at - last;
		last = at;
		grows ? in++ : out++;
		expect(in >= out, "nothing leaves the queue before it came");
		now = in - out;
		q->depth_most = now > q->depth_most ? now : q->depth_most;
	}
	q->span_ns = d->n ? last - d->grown[0] : 0;
	q->depth_mean = q->span_ns ? (double)area / (double)q->span_ns : 0;
}

/* An activity that began before its call did has waited for nothing: the clocks differ by that. */
static void measure_queue(struct account *a)
{
	const struct timeline *t = a->t;
	uint64_t *moments = xcalloc(t->calls.n ? t->calls.n : 1, 2 * sizeof *moments);
	struct depth d = { .grown = moments, .shrunk = moments + t->calls.n };
	array_each(const struct caller, c, t->calls) {
		if (!c->first_ns)
			continue;
		d.grown[d.n] = c->start_ns < c->first_ns ? c->start_ns : c->first_ns;
		d.shrunk[d.n++] = c->first_ns;
	}
	radix_sort(d.grown, d.n, sizeof *moments, 0, sizeof *moments);
	radix_sort(d.shrunk, d.n, sizeof *moments, 0, sizeof *moments);
	walk_queue(&d, &a->r->analysis.queue);
	free(moments);
}

/* Wall time is that of the recording, or more where activities lie outside of it. */
static void find_wall(struct account *a)
{
	const struct timeline *t = a->t;
	a->start_ns = a->r->trace->header.start.mono_ns;
	a->end_ns = a->start_ns + a->r->wall_ns;
	a->start_ns = MIN(t->activities.v[0].start_ns, a->start_ns);
	for (size_t i = 0; i < t->activities.n; i++)
		a->end_ns = MAX(t->activities.v[i].end_ns, a->end_ns);
	a->r->wall_ns = a->end_ns - a->start_ns;
	a->r->analysis.start_ns = a->start_ns;
}

static void walk(struct account *a)
{
	const struct timeline *t = a->t;
	uint64_t *wall = a->r->analysis.wall_ns;
	a->all.until = t->activities.v[0].start_ns;
	wall[WALL_BEFORE] = a->all.until - a->start_ns;
	for (size_t i = 0; i < t->activities.n; i++) {
		const struct activity *p = &t->activities.v[i];
		expect(!i || p[-1].start_ns <= p->start_ns, "activities come in the order of time");
		if (p->start_ns > a->all.until) {
			count_gap(a, p);
			a->all.until = p->start_ns;
		}
		if (p->end_ns >= a->all.until)
			a->last_row = p->row;
		count_queued(a, p);
		count_activity(a, p);
	}
	wall[WALL_AFTER] = a->end_ns - a->all.until;
}

/* The covered time of one device: of all activities and of sets of kinds.  Another device's
 * computing hides nothing. */
struct device_cover {
	struct cover all, compute, communication, copy, compute_communication, compute_copy;
};

static void cover_device(struct device_cover *d, const struct activity *p)
{
	const bool copies = p->kind == GPU_MEMCPY || p->kind == GPU_MEMSET;
	cover_add(&d->all, p);
	cover_add(copies ? &d->copy : p->communicates ? &d->communication : &d->compute, p);
	if (!copies)
		cover_add(&d->compute_communication, p);
	if (copies || !p->communicates)
		cover_add(&d->compute_copy, p);
}

static void add_overlap(struct analysis *to, const struct device_cover *d)
{
	to->copy_ns += d->copy.ns;
	to->copy_hidden_ns += d->copy.ns + d->compute.ns - d->compute_copy.ns;
	to->communication_ns += d->communication.ns;
	to->communication_hidden_ns +=
		d->communication.ns + d->compute.ns - d->compute_communication.ns;
}

static void measure_devices(struct account *a)
{
	struct report *r = a->r;
	struct device_cover *devices = xcalloc(r->devices.n, sizeof *devices);
	struct cover *streams = xcalloc(r->stream_rows.n + 1, sizeof *streams);
	array_each(const struct activity, p, a->t->activities) {
		cover_device(&devices[p->device], p);
		if (p->stream != NO_STREAM)
			cover_add(&streams[p->stream], p);
	}
	for (size_t i = 0; i < r->devices.n; i++) {
		r->devices.v[i].busy_ns = devices[i].all.ns;
		add_overlap(&r->analysis, &devices[i]);
		expect(devices[i].all.ns <= a->all.ns, "a device is busy while any is");
	}
	for (size_t i = 0; i < r->stream_rows.n; i++) {
		r->stream_rows.v[i].busy_ns = streams[i].ns;
		expect(streams[i].ns <= a->all.ns, "a stream is busy while any device is");
	}
	expect(r->analysis.copy_hidden_ns <= r->analysis.copy_ns,
		"no more copying is hidden than there is");
	expect(r->analysis.communication_hidden_ns <= r->analysis.communication_ns,
		"no more communication is hidden than there is");
	free(devices);
	free(streams);
}

static uint64_t sum_of(const uint64_t *v, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

static void sum_covers(struct account *a)
{
	struct analysis *to = &a->r->analysis;
	to->wall_ns[WALL_COMPUTING] = a->compute.ns;
	to->wall_ns[WALL_COMMUNICATING] = a->compute_communication.ns - a->compute.ns;
	to->wall_ns[WALL_COPYING] = a->all.ns - a->compute_communication.ns;
	expect(sum_of(to->wall_ns, WALL_PARTS) == a->r->wall_ns,
		"the parts of the wall time add up to it");
}

static int fill_path(struct account *a, const struct map *threads, size_t thread_count)
{
	const struct path_input in = { .trace = a->r->trace,
		.t = a->t,
		.threads = threads,
		.thread_count = thread_count,
		.start_ns = a->start_ns,
		.wall_ns = a->r->wall_ns };
	struct path path;
	const int e = path_find(&in, &path);
	if (!e) {
		memcpy(a->r->analysis.path_ns, path.ns, sizeof path.ns);
		a->r->analysis.path_host_most_ns = path.host_most_ns;
	}
	for (size_t i = 0; i < path.activity_ns.n && !e; i++)
		a->r->activities.v[a->t->activities.v[i].row].path_ns += path.activity_ns.v[i];
	path_fini(&path);
	return e;
}

int timeline_fill(
	struct report *r, struct timeline *t, const struct map *threads, size_t thread_count)
{
	struct account a = { .r = r, .t = t };
	if (!t->activities.n)
		return 0;
	RADIX_SORT(t->activities, start_ns);
	int e = host_time_make(r->trace, threads, thread_count, &a.host);
	if (!e) {
		find_wall(&a);
		a.latency_ns = find_latency(t);
		walk(&a);
		sum_covers(&a);
	}
	if (!e)
		measure_devices(&a);
	if (!e)
		measure_queue(&a);
	if (!e)
		RADIX_SORT(t->moments, ns);
	if (!e)
		RADIX_SORT(t->moments, thread);
	if (!e)
		e = fill_path(&a, threads, thread_count);
	host_time_fini(&a.host);
	r->analysis.known = !e;
	return e;
}

void timeline_fini(struct timeline *t)
{
	array_free(&t->activities, &t->calls, &t->moments, &t->waits);
}
