/*
 * Writes Perfetto's trace format (perfetto.dev, protos/perfetto/trace), a Trace of TracePackets.
 * Processes and threads are tracks, and calls are slices with their arguments as annotations.
 * Ranges have a track beside their thread's calls, and overlapping ones share tracks of their
 * process, as do requests to a server of models.
 *
 * A GPU activity is a render stage in its stream's queue, with an arrow from its call. It has grid
 * and block, or its call has them if it was not seen. Names are interned: sent once, then numbered.
 * A function's number is its id, a name's its index plus NAME_BASE, and an argument's 64 × id +
 * index + 1. Annotations of launches are below 64, and a kernel as a value is its index plus 1.
 */
#include "base/atomic.h"
#include "export/export.h"

#include <string.h>

#include "base/bounded.h"
#include "base/expect.h"
#include "base/sort.h"
#include "export/export_perfetto.h"
#include "join/nested.h"
#include "trace/activity.h"

#define STACK      64
#define NAME_BASE  0x10001u /* above all function ids */
#define QUEUE_BASE 64u      /* above all kinds of activities */

/* Notes that several functions share. */
enum annotation {
	ANNOTATION_KERNEL = 1,
	ANNOTATION_GRID,
	ANNOTATION_BLOCK,
	ANNOTATION_SHARED,
	ANNOTATION_STREAM,
	ANNOTATION_RESULT,
	ANNOTATION_STACK,
	ANNOTATIONS
};

enum thread_part { PART_CALLS, PART_RANGES, PART_PYTHON };

/* The begin or end of a range that may cross others; one without a length is one instant. */
struct edge {
	uint64_t ticks;
	uint32_t process, name;
	uint32_t span; /* which one, to find its track at its end */
	uint16_t kind;
	uint8_t type; /* enum event_type */
};

/* A range that nests with those of its thread and kind, as if these were processes and threads. */
struct nesting {
	struct nested at; /* process: the thread; tid: enum thread_part */
	struct range r;
};

struct perfetto {
	struct proto p;
	bool *fn_sent;     /* by function id */
	bool *kernel_sent; /* by index into meta->names, as a value */
	bool *name_sent;   /* by index into meta->names, as the name of an event */
	bool *link_drawn;  /* by index into links: some activity of it will be written */
	bool *link_seen;   /* by index into links: its first activity was written */
	struct map tracks; /* (process, tid, part): number; and (process, device, stream): queue */
	uint32_t track_count, queue_count;
	uint64_t more_activities; /* pieces whose call has other activities before them, or none */
	ARRAY(struct nesting) ranges; /* of the chunk at hand */
	ARRAY(struct edge) edges;
	ARRAY(uint64_t) span_tracks; /* by span */
	ARRAY(uint64_t) free_tracks; /* on which no span is open now */
	bool started;
	int depth;
	uint64_t ends[STACK]; /* of the calls that contain the next, within the chunk */
	uint64_t track;
};

static uint64_t process_track(uint32_t process)
{
	return process + 1u;
}

static void open_packet(struct perfetto *s)
{
	perfetto_packet(&s->p);
	proto_uint(&s->p, PACKET_FLAGS, s->started ? FLAG_NEEDS_STATE : FLAG_CLEARED);
	s->started = true;
}

static void put_process(struct export *x, uint32_t i)
{
	struct perfetto *s = x->state;
	const struct meta_process *m = &x->meta->processes.v[i];
	open_packet(s);
	perfetto_track(&s->p, process_track(i), 0);
	proto_open(&s->p, TRACK_PROCESS);
	proto_uint(&s->p, PROCESS_PID, x->trace->processes.v[i].pid);
	if (*m->arguments)
		proto_str(&s->p, PROCESS_CMDLINE, m->arguments);
	proto_str(&s->p, PROCESS_NAME, *m->executable ? m->executable : "process");
	proto_close_all(&s->p);
}

static void put_interned(struct perfetto *s, uint32_t field, uint64_t iid, const char *text)
{
	proto_open(&s->p, field);
	proto_uint(&s->p, IID, iid);
	proto_str(&s->p, IID_TEXT, text);
	proto_close(&s->p);
}

static void put_specification(struct perfetto *s, uint64_t iid, const char *name, uint32_t category)
{
	proto_open(&s->p, INTERNED_SPECIFICATION);
	proto_uint(&s->p, SPECIFICATION_IID, iid);
	proto_str(&s->p, SPECIFICATION_NAME, name);
	proto_uint(&s->p, SPECIFICATION_CATEGORY, category);
	proto_close(&s->p);
}

/* Names that are known from the beginning. */
static void put_fixed_names(struct export *x)
{
	static const char *const annotations[ANNOTATIONS] = { [ANNOTATION_KERNEL] = "kernel",
		[ANNOTATION_GRID] = "grid",
		[ANNOTATION_BLOCK] = "block",
		[ANNOTATION_SHARED] = "shared",
		[ANNOTATION_STREAM] = "stream",
		[ANNOTATION_RESULT] = "result",
		[ANNOTATION_STACK] = "stack" };
	struct perfetto *s = x->state;
	open_packet(s);
	proto_open(&s->p, PACKET_INTERNED);
	for (uint32_t i = 1; i < ANNOTATIONS; i++)
		put_interned(s, INTERNED_ANNOTATION, i, annotations[i]);
	for (uint32_t kind = GPU_KERNEL; kind <= GPU_OTHER; kind++)
		put_specification(s, kind, activity_kind_name(kind),
			kind == GPU_KERNEL ? CATEGORY_COMPUTE : CATEGORY_OTHER);
	for (uint32_t i = 0; i < x->trace->processes.n; i++) {
		proto_open(&s->p, INTERNED_CONTEXT);
		proto_uint(&s->p, CONTEXT_IID, i + 1);
		proto_uint(&s->p, CONTEXT_PID, x->trace->processes.v[i].pid);
		proto_uint(&s->p, CONTEXT_API, API_CUDA);
		proto_close(&s->p);
	}
	proto_close_all(&s->p);
}

/* Devices are numbered by their places, so one that is missing ends the list. */
static void put_devices(struct export *x)
{
	struct perfetto *s = x->state;
	open_packet(s);
	proto_open(&s->p, PACKET_GPUS);
	for (uint32_t number = 0, i = 0; i < x->meta->devices.n; i++) {
		const struct meta_device *d = &x->meta->devices.v[i];
		if (d->device != number)
			continue;
		proto_open(&s->p, GPUS_GPU);
		proto_str(&s->p, GPU_NAME, x->meta->names.v[d->name].text);
		proto_close(&s->p);
		number++;
		i = UINT32_MAX; /* from the first again: they may be in any order */
	}
	proto_close_all(&s->p);
}

/* Waits are of the host, spans of ranges, which have slices of their own. */
static bool is_drawn(const struct gpu_activity *w)
{
	return w->kind != GPU_SYNC && w->kind != GPU_SPAN && w->kind <= GPU_OTHER;
}

/* An arrow needs an end, and calls come before the activity that they asked for. */
static int find_drawn(struct export *x)
{
	struct perfetto *s = x->state;
	struct cursor at = { .t = x->trace };
	size_t hint = 0;
	for (struct gpu_activity w; x->links.v.n && trace_next_activity(&at, &w);) {
		const struct call_link *l =
			is_drawn(&w) ? links_of(&x->links, at.ref->process, &w, &hint) : NULL;
		if (l)
			s->link_drawn[l - x->links.v.v] = true;
	}
	return at.error;
}

static int begin(struct export *x)
{
	struct perfetto *s = x->state = xcalloc(1, sizeof *s);
	s->fn_sent = xcalloc(0x10000, sizeof(bool));
	s->kernel_sent = xcalloc(x->meta->names.n + 1, sizeof(bool));
	s->name_sent = xcalloc(x->meta->names.n + 1, sizeof(bool));
	s->link_drawn = xcalloc(x->links.v.n + 1, sizeof(bool));
	s->link_seen = xcalloc(x->links.v.n + 1, sizeof(bool));
	const int e = find_drawn(x);
	if (e)
		return e;
	s->track_count = (uint32_t)x->trace->processes.n;
	for (uint32_t i = 0; i < x->meta->processes.n; i++)
		put_process(x, i);
	put_fixed_names(x);
	if (x->meta->devices.n)
		put_devices(x);
	proto_write(&s->p, x->out);
	return 0;
}

static void put_thread(struct export *x, const struct chunk_ref *c, uint32_t tid, uint32_t number)
{
	struct perfetto *s = x->state;
	open_packet(s);
	perfetto_track(&s->p, number, process_track(c->process));
	proto_open(&s->p, TRACK_THREAD);
	proto_uint(&s->p, THREAD_PID, c->head.pid);
	proto_uint(&s->p, THREAD_TID, tid ? tid : UINT32_MAX);
	if (*c->head.thread && tid == c->head.tid)
		proto_str(&s->p, THREAD_NAME, c->head.thread);
	proto_close_all(&s->p);
}

static void put_part(struct perfetto *s, uint64_t parent, uint32_t number, const char *name)
{
	open_packet(s);
	perfetto_track(&s->p, number, parent);
	proto_str(&s->p, TRACK_NAME, name);
	proto_close_all(&s->p);
}

/* The number of a thread's track, which is written when it is first asked for. */
static uint64_t track_of(
	struct export *x, const struct chunk_ref *c, uint32_t tid, enum thread_part part)
{
	struct perfetto *s = x->state;
	uint64_t parent = 0;
	if (part != PART_CALLS)
		parent = track_of(x, c, tid, PART_CALLS);
	uint32_t *track = map_get(&s->tracks, MAP_KEY(c->process, tid, part));
	if (*track == MAP_NONE) {
		*track = ++s->track_count;
		if (part == PART_CALLS)
			put_thread(x, c, tid, *track);
		else
			put_part(s, parent, *track, part == PART_RANGES ? "ranges" : "Python");
	}
	return *track;
}

static uint64_t arg_iid(const struct schema_fn *fn, unsigned i)
{
	return (uint64_t)fn->id * 64 + i + 1;
}

static void intern(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	const uint16_t id = c->record->fn;
	const bool new_kernel = c->kernel != META_NONE && !s->kernel_sent[c->kernel];
	if (s->fn_sent[id] && !new_kernel)
		return;
	proto_open(&s->p, PACKET_INTERNED);
	if (!s->fn_sent[id]) {
		put_interned(s, INTERNED_EVENT, id, c->name);
		put_interned(s, INTERNED_CATEGORY, id, c->fn ? c->fn->class : "unknown");
		for (unsigned i = 0; c->fn && i < c->fn->arg_count; i++)
			put_interned(
				s, INTERNED_ANNOTATION, arg_iid(c->fn, i), c->fn->args[i].name);
	}
	if (new_kernel) {
		put_interned(s, INTERNED_STRING, c->kernel + 1u, export_kernel_name(x, c->kernel));
		s->kernel_sent[c->kernel] = true;
	}
	s->fn_sent[id] = true;
	proto_close(&s->p);
}

static void put_number(struct perfetto *s, enum annotation name, uint32_t kind, uint64_t value)
{
	proto_open(&s->p, EVENT_ANNOTATION);
	proto_uint(&s->p, ANNOTATION_NAME_IID, name);
	proto_uint(&s->p, kind, value);
	proto_close(&s->p);
}

static void put_text(struct perfetto *s, enum annotation name, const char *text)
{
	proto_open(&s->p, EVENT_ANNOTATION);
	proto_uint(&s->p, ANNOTATION_NAME_IID, name);
	proto_str(&s->p, ANNOTATION_STRING, text);
	proto_close(&s->p);
}

static void put_triple(struct perfetto *s, enum annotation name, const uint32_t *v)
{
	char text[48];
	snprintf(text, sizeof text, "(%u,%u,%u)", v[0], v[1], v[2]);
	put_text(s, name, text);
}

static void put_launch(struct perfetto *s, const struct export_call *c)
{
	if (c->kernel != META_NONE)
		put_number(s, ANNOTATION_KERNEL, ANNOTATION_STRING_IID, c->kernel + 1u);
	else
		put_number(
			s, ANNOTATION_KERNEL, ANNOTATION_POINTER, c->record->arg[LAUNCH_FUNCTION]);
	if (c->link)
		return;
	put_triple(s, ANNOTATION_GRID, c->shape.grid);
	put_triple(s, ANNOTATION_BLOCK, c->shape.block);
	put_number(s, ANNOTATION_SHARED, ANNOTATION_UINT, c->record->aux);
	put_number(s, ANNOTATION_STREAM, ANNOTATION_POINTER, c->record->arg[LAUNCH_STREAM]);
}

static void put_arg(struct export *x, const struct export_call *c, unsigned i)
{
	struct perfetto *s = x->state;
	char text[600];
	const size_t n = decode_arg(c->fn, i, c->record, text, sizeof text);
	proto_open(&s->p, EVENT_ANNOTATION);
	proto_uint(&s->p, ANNOTATION_NAME_IID, arg_iid(c->fn, i));
	proto_bytes(&s->p, ANNOTATION_STRING, text, n);
	proto_close(&s->p);
}

static void put_stack(struct export *x, uint32_t stack)
{
	char text[2048];
	if (stack == STACK_NONE)
		return;
	stacks_row_text(&x->stacks, stack, 32, text, sizeof text);
	put_text(x->state, ANNOTATION_STACK, text);
}

static void put_annotations(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	const char *error = decode_result(c->fn, c->record->result);
	if (c->launch)
		put_launch(s, c);
	else
		for (unsigned i = 0; c->fn && i < c->fn->arg_count; i++)
			put_arg(x, c, i);
	if (c->record->result && error)
		put_text(s, ANNOTATION_RESULT, error);
	else if (c->record->result)
		put_number(s, ANNOTATION_RESULT, ANNOTATION_UINT, c->record->result);
	if (c->record->flags & RECORD_CAPTURED)
		put_text(s, ANNOTATION_RESULT, "captured into a graph");
	put_stack(x, export_stack_of(x, c));
}

static void put_end(struct perfetto *s, uint64_t ns)
{
	open_packet(s);
	perfetto_event(&s->p, ns, TYPE_END, s->track);
	proto_close_all(&s->p);
}

/* Numbers of activities: even ones follow from the call, odd ones are counted. */
static uint64_t first_activity(const struct export *x, const struct call_link *link)
{
	return ((uint64_t)(link - x->links.v.v) + 1) * 2;
}

/* Ends what is over before `ns`. */
static void pop(struct perfetto *s, uint64_t ns)
{
	while (s->depth && s->ends[s->depth - 1] <= ns)
		put_end(s, s->ends[--s->depth]);
	expect(ns != UINT64_MAX || !s->depth, "all that began has ended");
}

/* The slice that has begun ends then, no later than the one around it. */
static void push_end(struct perfetto *s, uint64_t ns)
{
	expect(!s->depth || ns <= s->ends[s->depth - 1], "what is inside ends first");
	if (s->depth < STACK)
		s->ends[s->depth++] = ns;
	else
		put_end(s, ns);
}

static void put_begin(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	open_packet(s);
	proto_uint(&s->p, PACKET_TIMESTAMP, c->begin_ns);
	intern(x, c);
	proto_open(&s->p, PACKET_EVENT);
	proto_uint(&s->p, EVENT_TYPE, TYPE_BEGIN);
	proto_uint(&s->p, EVENT_TRACK, s->track);
	proto_uint(&s->p, EVENT_NAME_IID, c->record->fn);
	proto_uint(&s->p, EVENT_CATEGORY_IIDS, c->record->fn);
	put_annotations(x, c);
	if (c->link && s->link_drawn[c->link - x->links.v.v]) {
		proto_open(&s->p, EVENT_GPU_CORRELATION);
		proto_uint(&s->p, CORRELATION_SUBMITTED, first_activity(x, c->link));
		proto_close(&s->p);
	}
	proto_close_all(&s->p);
}

/* A callee ends no later than its caller, whatever a rounded clock says. */
static void call(struct export *x, const struct export_call *c)
{
	struct perfetto *s = x->state;
	uint64_t end = c->end_ns;
	if (c->fn && c->fn->api == API_ALLOCATOR)
		return;
	s->track = track_of(x, c->chunk, c->chunk->head.tid, PART_CALLS);
	pop(s, c->begin_ns);
	if (s->depth && end > s->ends[s->depth - 1])
		end = s->ends[s->depth - 1];
	put_begin(x, c);
	push_end(s, end);
	proto_write(&s->p, x->out);
}

static uint32_t name_index(const struct export *x, uint32_t id)
{
	const uint32_t found = meta_find_string(x->meta, x->process, id);
	expect(found == META_NONE || found < x->meta->names.n, "a name is one of the trace's");
	return found == META_NONE ? (uint32_t)x->meta->names.n : found;
}

/* Into the interned data that are open. */
static void put_name(struct export *x, uint32_t id)
{
	struct perfetto *s = x->state;
	const uint32_t name = name_index(x, id);
	if (!s->name_sent[name])
		put_interned(s, INTERNED_EVENT, NAME_BASE + name, export_string(x, id));
	s->name_sent[name] = true;
}

static void add_edge(struct export *x, const struct range *g, uint64_t ticks, enum event_type type)
{
	struct perfetto *s = x->state;
	*array_push(&s->edges) = (struct edge){ .ticks = ticks,
		.process = x->process,
		.name = g->name,
		.span = (uint32_t)s->span_tracks.n,
		.kind = g->kind,
		.type = (uint8_t)type };
}

/* Slices of a track can't cross: these wait until all are there, and then share tracks. */
static void add_span(struct export *x, const struct range *g)
{
	struct perfetto *s = x->state;
	const bool instant = range_end(g) == g->ticks;
	add_edge(x, g, g->ticks, instant ? TYPE_INSTANT : TYPE_BEGIN);
	if (!instant)
		add_edge(x, g, range_end(g), TYPE_END);
	*array_push(&s->span_tracks) = 0;
}

static void range(struct export *x, const struct chunk_ref *c, const struct range *g)
{
	struct perfetto *s = x->state;
	if (!range_nests(g->kind) && g->kind != RANGE_PYTHON) {
		add_span(x, g);
		return;
	}
	*array_push(&s->ranges) = (struct nesting){ .at = nested_of(g, g->tid), .r = *g };
	s->ranges.v[s->ranges.n - 1].at.tid = range_nests(g->kind) ? PART_RANGES : PART_PYTHON;
}

/* The beginning of a slice, or an instant, on the track at hand. */
static void put_named(struct export *x, uint64_t ns, uint32_t name, enum event_type type)
{
	struct perfetto *s = x->state;
	open_packet(s);
	proto_uint(&s->p, PACKET_TIMESTAMP, ns);
	if (!s->name_sent[name_index(x, name)]) {
		proto_open(&s->p, PACKET_INTERNED);
		put_name(x, name);
		proto_close(&s->p);
	}
	proto_open(&s->p, PACKET_EVENT);
	proto_uint(&s->p, EVENT_TYPE, type);
	proto_uint(&s->p, EVENT_TRACK, s->track);
	proto_uint(&s->p, EVENT_NAME_IID, NAME_BASE + name_index(x, name));
	proto_close_all(&s->p);
}

static void put_range(struct export *x, const struct range *g)
{
	struct perfetto *s = x->state;
	const uint64_t start = trace_ns(x->trace, g->ticks);
	uint64_t end = trace_ns(x->trace, range_end(g));
	pop(s, start);
	if (s->depth && end > s->ends[s->depth - 1])
		end = s->ends[s->depth - 1];
	put_named(x, start, g->name, TYPE_BEGIN);
	push_end(s, end);
}

static void put_ranges(struct export *x, const struct chunk_ref *c)
{
	struct perfetto *s = x->state;
	NESTED(s->ranges);
	for (size_t i = 0; i < s->ranges.n; i++) {
		const struct nesting *g = &s->ranges.v[i], *last = i ? g - 1 : NULL;
		if (!last || last->r.tid != g->r.tid || last->at.tid != g->at.tid) {
			pop(s, UINT64_MAX);
			s->track = track_of(x, c, g->r.tid, g->at.tid);
		}
		put_range(x, &g->r);
	}
	s->ranges.n = 0;
}

static void chunk_end(struct export *x, const struct chunk_ref *c)
{
	struct perfetto *s = x->state;
	put_ranges(x, c);
	pop(s, UINT64_MAX);
	proto_write(&s->p, x->out);
}

/* By process and kind, which have tracks of their own, then by time: a track is free again where
 * the next begins. */
ORDERING(edge_order, struct edge, ORDER(a->process, b->process), ORDER(a->kind, b->kind),
	ORDER(a->ticks, b->ticks), (b->type == TYPE_END) - (a->type == TYPE_END),
	ORDER(a->span, b->span))

/* Tracks of one process that have the same name are shown as one. */
static uint64_t free_track(struct perfetto *s, const struct edge *at)
{
	const char *kind = range_kind_name(at->kind);
	if (s->free_tracks.n)
		return s->free_tracks.v[--s->free_tracks.n];
	put_part(s, process_track(at->process), ++s->track_count, kind ? kind : "other");
	return s->track_count;
}

static void put_edge(struct export *x, const struct edge *at)
{
	struct perfetto *s = x->state;
	const uint64_t ns = trace_ns(x->trace, at->ticks);
	expect(at->span < s->span_tracks.n, "a range that may cross others is one of all");
	expect((at->type == TYPE_END) == (s->span_tracks.v[at->span] != 0),
		"what ends has begun on a track, and once");
	x->process = at->process;
	s->track = at->type == TYPE_END ? s->span_tracks.v[at->span] : free_track(s, at);
	s->span_tracks.v[at->span] = s->track;
	if (at->type == TYPE_END)
		put_end(s, ns);
	else
		put_named(x, ns, at->name, at->type);
	uint64_t *to = at->type == TYPE_BEGIN ? &s->track : array_push(&s->free_tracks);
	*to = s->track;
	proto_write(&s->p, x->out);
}

static int end(struct export *x)
{
	struct perfetto *s = x->state;
	SORT(s->edges, edge_order);
	for (size_t i = 0; i < s->edges.n; i++) {
		const struct edge *at = &s->edges.v[i];
		if (i && (at[-1].process != at->process || at[-1].kind != at->kind))
			s->free_tracks.n = 0;
		put_edge(x, at);
	}
	const int e = perfetto_requests(x, &s->p, &s->track_count);
	return e ? e : perfetto_counters(x, &s->p, s->track_count);
}

static void put_queue(struct export *x, const struct gpu_activity *w, uint32_t queue)
{
	struct perfetto *s = x->state;
	char name[80];
	struct bounded b = BOUNDED(name);
	if (w->valid & GPU_HAS_STREAM)
		bounded_printf(&b, "stream %u", w->stream);
	else
		bounded_put(&b, "stream not known");
	if (x->trace->header.sampled)
		bounded_printf(
			&b, ", one launch in %u, about when it was made", x->trace->header.sampled);
	if (load_relaxed(&x->trace->header.optional) & FEATURE_REBUILT)
		bounded_printf(&b, ", reconstructed");
	put_specification(s, QUEUE_BASE + queue, bounded_end(&b), CATEGORY_OTHER);
}

/* The queue of the activity's stream; what is new of queue and name goes into the packet that is
 * open: a packet has room for interned data once. */
static uint64_t intern_activity(struct export *x, const struct gpu_activity *w)
{
	struct perfetto *s = x->state;
	const uint64_t stream = w->valid & GPU_HAS_STREAM ? w->stream : UINT32_MAX;
	uint32_t *queue = map_get(
		&s->tracks, MAP_KEY(x->process, stream << 32 | w->device, w->context, UINT64_MAX));
	const bool new_queue = *queue == MAP_NONE;
	if (new_queue)
		*queue = s->queue_count++;
	if (new_queue || !s->name_sent[name_index(x, w->name)]) {
		proto_open(&s->p, PACKET_INTERNED);
		if (new_queue)
			put_queue(x, w, *queue);
		put_name(x, w->name);
		proto_close(&s->p);
	}
	return QUEUE_BASE + *queue;
}

static void put_dim3(struct perfetto *s, uint32_t field, const uint32_t *v)
{
	proto_open(&s->p, field);
	for (uint32_t i = 0; i < 3; i++)
		proto_uint(&s->p, i + 1, v[i]);
	proto_close(&s->p);
}

static void put_activity_annotations(struct perfetto *s, const struct gpu_activity *w)
{
	char text[24];
	if (w->valid & GPU_HAS_SHAPE) {
		proto_open(&s->p, STAGE_LAUNCH);
		put_dim3(s, LAUNCH_GRID, w->grid);
		put_dim3(s, LAUNCH_WORKGROUP, w->block);
		proto_close(&s->p);
	}
	if (!(w->valid & GPU_HAS_BYTES))
		return;
	snprintf(text, sizeof text, "%llu", (unsigned long long)w->bytes);
	proto_open(&s->p, STAGE_EXTRA);
	proto_str(&s->p, EXTRA_NAME, "bytes");
	proto_str(&s->p, EXTRA_VALUE, text);
	proto_close(&s->p);
}

static uint64_t activity_number(struct export *x, const struct call_link *link)
{
	struct perfetto *s = x->state;
	if (!link || s->link_seen[link - x->links.v.v])
		return s->more_activities++ * 2 + 1;
	s->link_seen[link - x->links.v.v] = true;
	return first_activity(x, link);
}

static void activity(struct export *x, const struct chunk_ref *c, const struct gpu_activity *w,
	const struct call_link *link)
{
	struct perfetto *s = x->state;
	if (!is_drawn(w))
		return;
	open_packet(s);
	proto_uint(&s->p, PACKET_TIMESTAMP, w->start_ns);
	const uint64_t queue = intern_activity(x, w);
	proto_open(&s->p, PACKET_STAGE);
	proto_uint(&s->p, STAGE_EVENT, activity_number(x, link));
	proto_uint(&s->p, STAGE_DURATION, w->end_ns - w->start_ns);
	proto_uint(&s->p, STAGE_CONTEXT, x->process + 1);
	proto_uint(&s->p, STAGE_GPU, w->valid & GPU_HAS_DEVICE ? w->device : 0);
	proto_uint(&s->p, STAGE_QUEUE_IID, queue);
	proto_uint(&s->p, STAGE_IID, w->kind);
	if (w->name)
		proto_uint(&s->p, STAGE_NAME_IID, NAME_BASE + name_index(x, w->name));
	put_activity_annotations(s, w);
	proto_close_all(&s->p);
	proto_write(&s->p, x->out);
}

static void cleanup(struct export *x)
{
	struct perfetto *s = x->state;
	if (!s)
		return;
	array_free(&s->p.bytes);
	free_all(s->fn_sent, s->kernel_sent, s->name_sent, s->link_drawn, s->link_seen);
	map_fini(&s->tracks);
	array_free(&s->ranges, &s->edges, &s->span_tracks, &s->free_tracks);
	free(s);
}

const struct exporter export_perfetto = {
	.name = "perfetto",
	.suffixes = ".pftrace .perfetto-trace .perfetto",
	.begin = begin,
	.call = call,
	.activity = activity,
	.range = range,
	.chunk_end = chunk_end,
	.end = end,
	.cleanup = cleanup,
};
