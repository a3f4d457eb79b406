/* Builds a playable program from recorded calls. */
#include "reconstruct/program.h"

#include "base/expect.h"
#include "base/map.h"
#include "base/sort.h"

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

static uint32_t stream_number(struct builder *b, uint64_t handle)
{
	const uint32_t i = map_number(&b->streams, MAP_KEY(handle));
	if (i == MAP_NONE || i < b->p->streams.n)
		return i;
	*array_push(&b->p->streams) =
		(struct program_stream){ .handle = handle, .newest = PLAY_NONE };
	return i;
}

static void make_stream(struct builder *b, const struct gpu_call *c)
{
	const uint32_t i = stream_number(b, c->stream);
	b->p->streams.v[i].is_free = c->is_free;
}

static void add_edge(struct builder *b, uint32_t before, uint32_t after)
{
	if (before != PLAY_NONE)
		*array_push(&b->p->play.edges) = (struct play_edge){ before, after };
}

/* The legacy stream goes on behind all that do not leave it alone, and those behind it. */
static void add_legacy_edges(struct builder *b, uint32_t stream, uint32_t step)
{
	const struct program_stream *s = &b->p->streams.v[stream];
	if (s->handle != LEGACY) {
		const bool behind = !s->is_free && b->legacy != PLAY_NONE &&
				    (s->newest == PLAY_NONE || s->newest < b->legacy);
		if (behind)
			add_edge(b, b->legacy, step);
		return;
	}
	for (size_t i = 0; i < b->p->streams.n; i++) {
		const struct program_stream *o = &b->p->streams.v[i];
		const bool news = b->legacy == PLAY_NONE || o->newest > b->legacy;
		if (i != stream && !o->is_free && o->newest != PLAY_NONE && news)
			add_edge(b, o->newest, step);
	}
}

/* The next step of the call's stream. */
static uint32_t add_step(struct builder *b, const struct gpu_call *c, bool is_mark)
{
	const uint32_t stream = stream_number(b, c->stream ? c->stream : LEGACY);
	const uint32_t i = (uint32_t)b->p->play.steps.n;
	add_legacy_edges(b, stream, i);
	struct play_step *s = array_push(&b->p->play.steps);
	const uint64_t from = trace_ns(b->t, c->start), to = trace_ns(b->t, c->end);
	*s = (struct play_step){ .called_ns = from,
		.returned_ns = MAX(to, from),
		.stream = stream,
		.is_mark = is_mark,
		.blocks = c->waits };
	struct program_stream *on = &b->p->streams.v[stream];
	on->newest = i;
	if (on->handle == LEGACY)
		b->legacy = i;
	return i;
}

static void add_waited(struct builder *b, uint32_t step)
{
	if (step != PLAY_NONE)
		*array_push(&b->p->play.waited) = step;
}

/* A call that waits for the legacy stream also waits for what that stream waits for. */
static void add_waited_streams(struct builder *b, const struct gpu_call *c)
{
	array_each(const struct program_stream, s, b->p->streams) {
		const bool meant = !c->stream || s->handle == c->stream ||
				   (c->stream == LEGACY && !s->is_free);
		if (meant)
			add_waited(b, s->newest);
	}
}

static uint32_t *event_of(struct builder *b, uint64_t handle)
{
	const uint32_t i = map_number(&b->events, MAP_KEY(handle));
	while (i != MAP_NONE && b->recorded.n <= i)
		*array_push(&b->recorded) = PLAY_NONE;
	return i == MAP_NONE ? NULL : &b->recorded.v[i];
}

/* only: the one step that is waited for, or PLAY_NONE. */
static void add_wait(struct builder *b, const struct gpu_call *c, uint32_t only)
{
	const size_t first = b->p->play.waited.n;
	const uint32_t *event = c->event ? event_of(b, c->event) : NULL;
	if (only != PLAY_NONE)
		add_waited(b, only);
	else if (event)
		add_waited(b, *event);
	else
		add_waited_streams(b, c);
	if (b->p->play.waited.n == first)
		return;
	struct play_wait *w = array_push(&b->p->play.waits);
	const uint64_t from = trace_ns(b->t, c->start), to = trace_ns(b->t, c->end);
	*w = (struct play_wait){ from, MAX(to, from), (uint32_t)first,
		(uint32_t)(b->p->play.waited.n - first) };
}

static void add_event(struct builder *b, const struct gpu_call *c)
{
	uint32_t *event = event_of(b, c->event);
	const uint32_t step = add_step(b, c, true);
	if (c->use == USE_AWAIT) {
		add_edge(b, *event, step);
		return;
	}
	*event = step;
}

static void add_work(struct builder *b, uint32_t call)
{
	const struct gpu_call *c = &b->calls->v.v[call];
	const uint32_t step = add_step(b, c, false);
	*array_push(&b->p->work) = (struct program_work){ call, step };
	if (c->waits)
		add_wait(b, c, step);
}

static void take(struct builder *b, uint32_t call)
{
	const struct gpu_call *c = &b->calls->v.v[call];
	switch (c->use) {
	case USE_STREAM:
		make_stream(b, c);
		return;
	case USE_RECORD:
	case USE_AWAIT:
		add_event(b, c);
		return;
	case USE_SYNC:
		add_wait(b, c, PLAY_NONE);
		return;
	default:
		add_work(b, call);
		return;
	}
}

static int start_order(const void *one, const void *two, void *calls)
{
	const struct gpu_calls *all = calls;
	const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
	const struct gpu_call *x = &all->v.v[a], *y = &all->v.v[b];
	return x->start != y->start ? ORDER(x->start, y->start) : ORDER(a, b);
}

static void order_calls(struct builder *b, uint32_t process)
{
	for (size_t i = 0; i < b->calls->v.n; i++) {
		if (b->calls->v.v[i].process != process)
			continue;
		*array_push(&b->order) = (uint32_t)i;
	}
	SORT_WITH(b->order, start_order, (void *)b->calls);
}

void program_of(const struct trace *t, const struct gpu_calls *calls, uint32_t process,
	struct process_program *ret_p)
{
	struct builder b = { .t = t, .calls = calls, .p = ret_p, .legacy = PLAY_NONE };
	*ret_p = (struct process_program){ .play.delays = play_usual };
	order_calls(&b, process);
	for (size_t i = 0; i < b.order.n; i++)
		take(&b, b.order.v[i]);
	ret_p->play.streams = (uint32_t)ret_p->streams.n;
	map_fini(&b.streams, &b.events);
	array_free(&b.recorded, &b.order);
}

void process_program_fini(struct process_program *p)
{
	play_program_fini(&p->play);
	array_free(&p->work, &p->streams);
}

#define DISABLED 0x80000000u

static void put(struct graph_nodes *g, const struct graph_node *n)
{
	*array_push(&g->v) = *n;
}

static void update(struct graph_nodes *g, const struct graph_node *n)
{
	for (size_t i = 0; i < g->v.n; i++)
		if (g->v.v[i].node == n->node) {
			g->v.v[i] = *n;
			return;
		}
	put(g, n);
}

static void leave_out_disabled(struct graph_nodes *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->v.n; i++)
		if (!(g->v.v[i].type & DISABLED))
			g->v.v[n++] = g->v.v[i];
	g->v.n = n;
}

void graph_nodes_of(const struct meta *m, uint32_t step, struct graph_nodes *ret_nodes)
{
	uint32_t first = step;
	ret_nodes->v.n = 0;
	while (first && m->steps.v[first].kind != STEP_NEW &&
		m->steps.v[first - 1].exec == m->steps.v[step].exec)
		first--;
	for (uint32_t s = first; s <= step; s++) {
		const struct graph_step *g = &m->steps.v[s];
		for (uint32_t i = 0; i < g->node_count; i++) {
			const struct graph_node *n = &m->nodes.v[g->first_node + i];
			if (g->kind == STEP_UPDATE)
				update(ret_nodes, n);
			else
				put(ret_nodes, n);
		}
	}
	leave_out_disabled(ret_nodes);
}
