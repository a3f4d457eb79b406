/* Collects the measured times of a trace by call. */

#include "base/sort.h"
#include "join/links.h"
#include "reconstruct/reconstruct.h"
#include "trace/activity.h"

/* Numbers of calls that were timed with events have links of their own (EVENT_CORRELATIONS). */
static struct measured_call measured_of(
	const struct gpu_activity *w, const struct call_link *link, bool by_event)
{
	return (struct measured_call){ .ticks = link->ticks,
		.start_ns = w->start_ns,
		.end_ns = w->end_ns,
		.event_ns = w->end_ns - w->start_ns,
		.waited_ns = (uint32_t)w->host_ns,
		.late_ns = (uint32_t)(w->host_ns >> 32),
		.stream_was = w->valid & (GPU_STREAM_BUSY | GPU_STREAM_IDLE),
		.process = link->process,
		.tid = link->tid,
		.device = w->device,
		.context = w->context,
		.stream = w->stream,
		.valid = w->valid & (GPU_HAS_DEVICE | GPU_HAS_CONTEXT | GPU_HAS_STREAM),
		.is_exact = !by_event,
		.has_event = by_event };
}

ORDERING(call_order, struct measured_call, ORDER(a->process, b->process), ORDER(a->tid, b->tid),
	ORDER(a->ticks, b->ticks), ORDER(a->start_ns, b->start_ns))

/* Several nodes of a graph are one time; what events say of a call stands beside what is exact. */
static void add_to(struct measured_call *to, const struct measured_call *c)
{
	if (c->has_event) {
		to->event_ns = c->event_ns;
		to->waited_ns = c->waited_ns;
		to->late_ns = c->late_ns;
		to->stream_was = c->stream_was;
		to->has_event = true;
	} else if (to->is_exact) {
		to->start_ns = c->start_ns < to->start_ns ? c->start_ns : to->start_ns;
		to->end_ns = c->end_ns > to->end_ns ? c->end_ns : to->end_ns;
	} else {
		to->start_ns = c->start_ns;
		to->end_ns = c->end_ns;
		to->is_exact = true;
	}
}

void measured_calls_join(struct measured_calls *v)
{
	size_t n = 0;
	SORT(v->v, call_order);
	array_each(const struct measured_call, c, v->v) {
		struct measured_call *last = n ? &v->v.v[n - 1] : NULL;
		if (last && last->process == c->process && last->tid == c->tid &&
			last->ticks == c->ticks)
			add_to(last, c);
		else
			v->v.v[n++] = *c;
	}
	v->v.n = n;
}

ORDERING(activity_order, struct measured_activity, ORDER(a->process, b->process),
	ORDER(a->tid, b->tid), ORDER(a->ticks, b->ticks),
	ORDER(a->activity.start_ns, b->activity.start_ns))

static bool is_of(const struct measured_activity *a, const struct measured_call *c)
{
	return a->process == c->process && a->tid == c->tid && a->ticks == c->ticks;
}

/* Both are in the order of calls. */
static void find_activities(struct measured_calls *v)
{
	size_t at = 0;
	SORT(v->activities, activity_order);
	array_each(struct measured_call, c, v->v) {
		if (!c->is_exact)
			continue;
		while (at < v->activities.n && !is_of(&v->activities.v[at], c))
			at++;
		c->first = (uint32_t)at;
		while (at < v->activities.n && is_of(&v->activities.v[at], c))
			at++;
		c->count = (uint32_t)at - c->first;
	}
}

static void add(struct measured_calls *v, const struct gpu_activity *w,
	const struct call_link *link, bool by_event)
{
	*array_push(&v->v) = measured_of(w, link, by_event);
	if (!by_event)
		*array_push(&v->activities) =
			(struct measured_activity){ link->ticks, link->process, link->tid, *w };
}

int measured_calls_load(const struct trace *t, const struct meta *m, struct measured_calls *ret_v)
{
	struct cursor at = { .t = t, .as_measured = true };
	struct links links = { 0 };
	size_t hint = 0;
	*ret_v = (struct measured_calls){ 0 };
	int e = links_load(t, m, &links);
	for (struct gpu_activity w; !e && trace_next_activity(&at, &w);) {
		const struct call_link *link =
			activity_is_work(w.kind) ? links_of(&links, at.ref->process, &w, &hint)
						 : NULL;
		const bool by_event = t->header.sampled && w.correlation < CUPTI_CORRELATIONS;
		if (link)
			add(ret_v, &w, link, by_event);
	}
	links_fini(&links);
	measured_calls_join(ret_v);
	find_activities(ret_v);
	return e ? e : at.error;
}

void measured_calls_fini(struct measured_calls *v)
{
	array_free(&v->v, &v->activities);
}
