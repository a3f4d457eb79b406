/* Builds a playable program from recorded calls. */
#include "reconstruct/program.h"

#include <errno.h>

#include "base/expect.h"
#include "base/map.h"
#include "base/sort.h"

#include "base/banned.h"

#define LEGACY 1u /* as struct gpu_call names it */

struct builder {
	const struct trace *t;
	const struct gpu_calls *calls;
	struct process_program *p;
	struct map streams, events; /* handles to numbers */
	ARRAY(uint32_t) recorded;   /* by event: its step */
	ARRAY(uint32_t) order;      /* calls of the process */
	uint32_t legacy;            /* newest step of the legacy stream */
};

/* ---- streams ---- */

static uint32_t stream_number(struct builder *b, uint64_t handle)
{
	const uint32_t i = map_number(&b->streams, MAP_KEY(handle));
	if (i == MAP_NONE || i < b->p->streams.n)
		return i;
	struct program_stream *s = array_push(&b->p->streams);
	if (!s)
		return MAP_NONE;
	*s = (struct program_stream){ .handle = handle, .newest = PLAY_NONE };
	return i;
}

static int make_stream(struct builder *b, const struct gpu_call *c)
{
	const uint32_t i = stream_number(b, c->stream);
	if (i == MAP_NONE)
		return -ENOMEM;
	b->p->streams.v[i].is_free = c->is_free;
	return 0;
}

/* ---- steps ---- */

static int add_edge(struct builder *b, uint32_t before, uint32_t after)
{
	struct play_edge *to = before == PLAY_NONE ? NULL : array_push(&b->p->play.edges);
	if (!to)
		return before == PLAY_NONE ? 0 : -ENOMEM;
	*to = (struct play_edge){ before, after };
	return 0;
}

/* The legacy stream goes on behind all that do not leave it alone, and those behind it. */
static int add_legacy_edges(struct builder *b, uint32_t stream, uint32_t step)
{
	const struct program_stream *s = &b->p->streams.v[stream];
	if (s->handle != LEGACY) {
		const bool behind = !s->is_free && b->legacy != PLAY_NONE &&
				    (s->newest == PLAY_NONE || s->newest < b->legacy);
		return behind ? add_edge(b, b->legacy, step) : 0;
	}
	int e = 0;
	for (size_t i = 0; i < b->p->streams.n && !e; i++) {
		const struct program_stream *o = &b->p->streams.v[i];
		const bool news = b->legacy == PLAY_NONE || o->newest > b->legacy;
		if (i != stream && !o->is_free && o->newest != PLAY_NONE && news)
			e = add_edge(b, o->newest, step);
	}
	return e;
}

/* The next step of the call's stream; PLAY_NONE without memory. */
static uint32_t add_step(struct builder *b, const struct gpu_call *c, bool is_mark)
{
	const uint32_t stream = stream_number(b, c->stream ? c->stream : LEGACY);
	const uint32_t i = (uint32_t)b->p->play.steps.n;
	if (stream == MAP_NONE || i == PLAY_NONE - 1 || add_legacy_edges(b, stream, i))
		return PLAY_NONE;
	struct play_step *s = array_push(&b->p->play.steps);
	if (!s)
		return PLAY_NONE;
	const uint64_t from = trace_ns(b->t, c->start), to = trace_ns(b->t, c->end);
	*s = (struct play_step){ .called_ns = from,
		.returned_ns = to > from ? to : from,
		.stream = stream,
		.is_mark = is_mark,
		.blocks = c->waits };
	struct program_stream *on = &b->p->streams.v[stream];
	on->newest = i;
	on->has_work |= !is_mark;
	if (on->handle == LEGACY)
		b->legacy = i;
	return i;
}

/* ---- waits ---- */

static int add_waited(struct builder *b, uint32_t step)
{
	uint32_t *to = step == PLAY_NONE ? NULL : array_push(&b->p->play.waited);
	if (!to)
		return step == PLAY_NONE ? 0 : -ENOMEM;
	*to = step;
	return 0;
}

/* Who waits for the legacy stream waits for what that waits for. */
static int add_waited_streams(struct builder *b, const struct gpu_call *c)
{
	int e = 0;
	for (size_t i = 0; i < b->p->streams.n && !e; i++) {
		const struct program_stream *s = &b->p->streams.v[i];
		const bool meant = !c->stream || s->handle == c->stream ||
				   (c->stream == LEGACY && !s->is_free);
		e = meant ? add_waited(b, s->newest) : 0;
	}
	return e;
}

static uint32_t *event_of(struct builder *b, uint64_t handle)
{
	const uint32_t i = map_number(&b->events, MAP_KEY(handle));
	while (i != MAP_NONE && b->recorded.n <= i) {
		uint32_t *to = array_push(&b->recorded);
		if (!to)
			return NULL;
		*to = PLAY_NONE;
	}
	return i == MAP_NONE ? NULL : &b->recorded.v[i];
}

/* only: the one step that is waited for, or PLAY_NONE. */
static int add_wait(struct builder *b, const struct gpu_call *c, uint32_t only)
{
	const size_t first = b->p->play.waited.n;
	const uint32_t *event = c->event ? event_of(b, c->event) : NULL;
	if (c->event && !event)
		return -ENOMEM;
	const int e = only != PLAY_NONE ? add_waited(b, only)
		      : event           ? add_waited(b, *event)
					: add_waited_streams(b, c);
	if (e || b->p->play.waited.n == first)
		return e;
	struct play_wait *w = array_push(&b->p->play.waits);
	if (!w)
		return -ENOMEM;
	const uint64_t from = trace_ns(b->t, c->start), to = trace_ns(b->t, c->end);
	*w = (struct play_wait){ from, to > from ? to : from, (uint32_t)first,
		(uint32_t)(b->p->play.waited.n - first) };
	return 0;
}

/* ---- calls ---- */

static int add_event(struct builder *b, const struct gpu_call *c)
{
	uint32_t *event = event_of(b, c->event);
	const uint32_t step = event ? add_step(b, c, true) : PLAY_NONE;
	if (step == PLAY_NONE)
		return -ENOMEM;
	if (c->use == USE_AWAIT)
		return add_edge(b, *event, step);
	*event = step;
	return 0;
}

static int add_work(struct builder *b, uint32_t call)
{
	const struct gpu_call *c = &b->calls->v.v[call];
	const uint32_t step = add_step(b, c, false);
	struct program_work *w = step == PLAY_NONE ? NULL : array_push(&b->p->work);
	if (!w)
		return -ENOMEM;
	*w = (struct program_work){ call, step };
	return c->waits ? add_wait(b, c, step) : 0;
}

static int take(struct builder *b, uint32_t call)
{
	const struct gpu_call *c = &b->calls->v.v[call];
	switch (c->use) {
	case USE_STREAM:
		return make_stream(b, c);
	case USE_RECORD:
	case USE_AWAIT:
		return add_event(b, c);
	case USE_SYNC:
		return add_wait(b, c, PLAY_NONE);
	default:
		return add_work(b, call);
	}
}

static int start_order(const void *one, const void *two, void *calls)
{
	const struct gpu_calls *all = calls;
	const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
	const struct gpu_call *x = &all->v.v[a], *y = &all->v.v[b];
	return x->start != y->start ? ORDER(x->start, y->start) : ORDER(a, b);
}

static int order_calls(struct builder *b, uint32_t process)
{
	for (size_t i = 0; i < b->calls->v.n; i++) {
		if (b->calls->v.v[i].process != process)
			continue;
		uint32_t *to = array_push(&b->order);
		if (!to)
			return -ENOMEM;
		*to = (uint32_t)i;
	}
	if (b->order.n)
		qsort_r(b->order.v, b->order.n, sizeof *b->order.v, start_order, (void *)b->calls);
	return 0;
}

int program_of(const struct trace *t, const struct gpu_calls *calls, uint32_t process,
	struct process_program *ret_p)
{
	struct builder b = { .t = t, .calls = calls, .p = ret_p, .legacy = PLAY_NONE };
	*ret_p = (struct process_program){ .play.delays = play_usual };
	int e = order_calls(&b, process);
	for (size_t i = 0; i < b.order.n && !e; i++)
		e = take(&b, b.order.v[i]);
	ret_p->play.streams = (uint32_t)ret_p->streams.n;
	map_fini(&b.streams);
	map_fini(&b.events);
	array_free(&b.recorded);
	array_free(&b.order);
	if (e)
		process_program_fini(ret_p);
	return e;
}

void process_program_fini(struct process_program *p)
{
	play_program_fini(&p->play);
	array_free(&p->work);
	array_free(&p->streams);
}
