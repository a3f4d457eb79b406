/* How busy the devices were over time, and how many kernels ran at once: see event_lists.h. */
#include "report/lister.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "report/busy.h"

#include "base/banned.h"

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

/* ---- intervals ---- */

/* What is covered by activities that come in the order of their starts. */
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

static void put_interval(struct lister *l, const struct wall *wall, const struct busy_device *d,
	uint32_t device, unsigned i)
{
	struct json *j = lister_begin_row(l);
	const uint64_t from = busy_begin(wall->ns, i), ns = busy_begin(wall->ns, i + 1) - from;
	const double all = ns ? (double)ns : 1;
	json_u64(j, "start_ns", lister_since(l, wall->from_ns + from));
	json_u64(j, "duration_ns", ns);
	json_u64(j, "device", device);
	json_put_real(j, "busy_share", (double)d->all.ns[i] / all);
	json_put_real(j, "kernel_share", (double)d->kernels.ns[i] / all);
	json_put_real(j, "copy_share", (double)d->copies.ns[i] / all);
	json_put_real(j, "kernels_at_once", (double)d->running_ns[i] / all);
	json_u64(j, "kernels_started", d->started[i]);
}

static int list_device(struct lister *l, const struct events *events, uint32_t device)
{
	const struct wall wall = wall_of(l->r);
	struct busy_device *d = calloc(1, sizeof *d);
	int e = d ? 0 : -ENOMEM;
	for (size_t i = 0; i < events->v.n && !e; i++) {
		const struct gpu_activity *w = &events->v.v[i].w;
		if ((is_kernel(w->kind) || is_copy(w->kind)) && device_of(w) == device)
			add(d, &wall, w);
	}
	for (unsigned i = 0; i < BUSY_POINTS && !e; i++) {
		put_interval(l, &wall, d, device, i);
		e = lister_end_row(l);
	}
	free(d);
	return e;
}

/* ---- at once ---- */

static int time_order(const void *one, const void *two)
{
	const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)two;
	return ORDER(a, b);
}

struct at_once {
	ARRAY(uint64_t) starts;
	ARRAY(uint64_t) ends;
	ARRAY(uint64_t) ns; /* by how many ran */
};

static int push(struct at_once *a, const struct gpu_activity *w)
{
	uint64_t *start = array_push(&a->starts), *end = array_push(&a->ends);
	if (!start || !end)
		return -ENOMEM;
	*start = w->start_ns;
	*end = w->end_ns;
	return 0;
}

static int spend(struct at_once *a, size_t running, uint64_t ns)
{
	while (a->ns.n <= running) {
		uint64_t *to = array_push(&a->ns);
		if (!to)
			return -ENOMEM;
		*to = 0;
	}
	a->ns.v[running] += ns;
	return 0;
}

/* Through the moments at which one began or ended. */
static int walk(struct at_once *a, const struct wall *wall)
{
	uint64_t last = wall->from_ns;
	size_t in = 0, out = 0;
	int e = 0;
	SORT(a->starts, time_order);
	SORT(a->ends, time_order);
	while (out < a->ends.n && !e) {
		const bool begins = in < a->starts.n && a->starts.v[in] < a->ends.v[out];
		const uint64_t at = begins ? a->starts.v[in] : a->ends.v[out];
		const size_t running = in > out ? in - out : 0;
		if (at > last)
			e = spend(a, running, at - last);
		last = at > last ? at : last;
		*(begins ? &in : &out) += 1;
	}
	const uint64_t end = wall->from_ns + wall->ns;
	return e ? e : spend(a, 0, end > last ? end - last : 0);
}

static int put_levels(
	struct lister *l, const struct at_once *a, const struct wall *wall, uint32_t device)
{
	uint64_t busy = 0;
	int e = 0;
	for (size_t i = 1; i < a->ns.n; i++)
		busy += a->ns.v[i];
	for (size_t i = 0; i < a->ns.n && !e; i++) {
		struct json *j = lister_begin_row(l);
		json_u64(j, "device", device);
		json_u64(j, "at_once", i);
		json_u64(j, "ns", a->ns.v[i]);
		json_put_real(j, "share", wall->ns ? (double)a->ns.v[i] / (double)wall->ns : 0);
		json_put_real(
			j, "share_of_busy", i && busy ? (double)a->ns.v[i] / (double)busy : NAN);
		e = lister_end_row(l);
	}
	return e;
}

static int list_levels(struct lister *l, const struct events *events, uint32_t device)
{
	const struct wall wall = wall_of(l->r);
	struct at_once a = { 0 };
	int e = 0;
	for (size_t i = 0; i < events->v.n && !e; i++)
		if (is_kernel(events->v.v[i].w.kind) && device_of(&events->v.v[i].w) == device)
			e = push(&a, &events->v.v[i].w);
	if (!e)
		e = walk(&a, &wall);
	if (!e)
		e = put_levels(l, &a, &wall, device);
	array_free(&a.starts);
	array_free(&a.ends);
	array_free(&a.ns);
	return e;
}

/* ---- each device ---- */

/* Times of samples make no timeline. */
static int each_device(struct lister *l,
	int (*list)(struct lister *l, const struct events *events, uint32_t device))
{
	struct events events = { 0 };
	int e = l->r->analysis.known ? events_read(l->r, &events) : 0;
	for (size_t i = 0; i < l->r->devices.n && !e && l->r->analysis.known; i++)
		e = list(l, &events, l->r->devices.v[i].device);
	events_fini(&events);
	return e;
}

int list_busy(struct lister *l)
{
	return each_device(l, list_device);
}

int list_at_once(struct lister *l)
{
	return each_device(l, list_levels);
}
