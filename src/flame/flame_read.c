/*
 * Reads a trace into the tree of a flame graph.
 *
 * Records stand in the order in which calls ended. A thread is read backwards, so a call comes
 * before those inside it, and the open calls are a stack. Ranges and links are sorted by thread and
 * time. A call finds the innermost range at its begin, the links in it find their call, and each
 * activity finds its link by correlation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/expect.h"
#include "base/progress.h"
#include "event/decode.h"
#include "flame/flame.h"
#include "model/demangle.h"
#include "join/links.h"
#include "join/nested.h"
#include "stack/stacks.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/thread_calls.h"

#define NONE        FLAME_NONE
#define RANGES_DEEP 200 /* ranges around; those deeper are counted to the one above */
#define CALLS_DEEP  64
#define CODE_DEEP   200 /* functions of a call stack, the innermost */

struct span {
	struct nested at;
	uint32_t name; /* into meta.names */
	uint32_t node;
	uint32_t depth;
};

struct thread {
	uint32_t process, tid;
	char name[16];
	uint32_t node;
};

struct open_call {
	uint64_t ticks, end;
	uint64_t inside_ns; /* of the calls directly inside */
	uint64_t ns;
	uint32_t node;
	uint32_t kernel; /* launches: name in meta; META_NONE */
	bool launch;
	bool launched; /* a call inside was the launch */
};

struct reader {
	const struct trace *t;
	struct flame *f;
	struct meta meta;
	struct chunk_buf buf;
	struct map thread_map;
	ARRAY(struct thread) threads;
	struct thread_calls calls;
	ARRAY(struct span) spans;
	struct links links;
	struct links_by_call by_call;
	uint32_t *link_node; /* by link; NONE until its call is found */
	struct externals externals;
	struct open_call stack[CALLS_DEEP];
	int depth;
	struct demangled names;
	struct stacks stacks; /* none: they were not recorded */
	size_t hint, span_hint;
};

static const char *kernel_text(struct reader *r, uint32_t name)
{
	return demangled_name(&r->names, name, "(unknown kernel)");
}

static uint32_t process_node(struct reader *r, uint32_t process)
{
	char text[320];
	const char *name = "";
	if (process < r->meta.processes.n)
		name = basename(r->meta.processes.v[process].executable);
	snprintf(text, sizeof text, "%s%s%" PRIu32 "%s", *name ? name : "process ",
		*name ? " (" : "", r->t->processes.v[process].pid, *name ? ")" : "");
	return flame_child(r->f, 0, FRAME_PROCESS, text);
}

static uint32_t thread_node(struct reader *r, struct thread *t)
{
	char text[48];
	if (t->node != NONE)
		return t->node;
	snprintf(text, sizeof text, "%.15s%s%" PRIu32 "%s", *t->name ? t->name : "thread ",
		*t->name ? " (" : "", t->tid, *t->name ? ")" : "");
	return t->node = flame_child(r->f, process_node(r, t->process), FRAME_THREAD, text);
}

static uint32_t call_node(struct reader *r, uint32_t parent, uint16_t id)
{
	const struct schema_fn *fn = schema_find(&r->t->schema, id);
	char text[32];
	snprintf(text, sizeof text, "function %u", id);
	return flame_child(r->f, parent,
		fn && fn->api == API_RUNTIME ? FRAME_RUNTIME : FRAME_DRIVER, fn ? fn->name : text);
}

static struct thread *thread_of(struct reader *r, uint32_t process, uint32_t tid, const char *name)
{
	struct thread *t = MAP_ROW(&r->thread_map, MAP_KEY(process, tid), &r->threads,
		(struct thread){ .process = process, .tid = tid, .node = NONE });
	if (name && !*t->name)
		snprintf(t->name, sizeof t->name, "%.15s", name);
	return t;
}

static int take_ranges(struct reader *r)
{
	struct cursor at = { .t = r->t, .buf = &r->buf };
	for (struct range g; trace_next_range(&at, &g);) {
		const uint32_t process = r->buf.ref->process;
		if (!range_nests(g.kind))
			continue;
		*array_push(&r->spans) = (struct span){ .at = nested_of(&g, process),
			.name = meta_find_string(&r->meta, process, g.name),
			.node = NONE };
	}
	return at.error;
}

static void nest_spans(struct reader *r)
{
	NESTED(r->spans);
	for (size_t i = 0; i < r->spans.n; i++) {
		struct span *s = &r->spans.v[i];
		if (!expect(s->at.parent == NONE || s->at.parent < i, "ranges inside come later"))
			s->at.parent = NONE;
		s->depth = s->at.parent == NONE ? 0 : r->spans.v[s->at.parent].depth + 1;
	}
}

/* The frame of a thread, which is made when something is to stand in it. */
static uint32_t thread_frame(struct reader *r, uint32_t process, uint32_t tid)
{
	return thread_node(r, thread_of(r, process, tid, NULL));
}

/* Made when something is asked for below: ranges without activities are no frames. */
static uint32_t span_node(struct reader *r, uint32_t i)
{
	struct span *path[RANGES_DEEP];
	const struct nested *of = &r->spans.v[i].at;
	int n = 0;
	while (i != NONE && r->spans.v[i].depth >= RANGES_DEEP)
		i = r->spans.v[i].at.parent;
	for (; i != NONE && r->spans.v[i].node == NONE; i = r->spans.v[i].at.parent)
		if (expect(n < RANGES_DEEP, "the ranges around are no more than there is room for"))
			path[n++] = &r->spans.v[i];
	uint32_t node = i == NONE ? thread_frame(r, of->process, of->tid) : r->spans.v[i].node;
	while (n-- > 0) {
		const uint32_t name = path[n]->name;
		node = flame_child(r->f, node, FRAME_RANGE,
			name == META_NONE ? "(no name)" : r->meta.names.v[name].text);
		path[n]->node = node;
	}
	return node;
}

/* The place of a thread's frame that began at that time. */
static uint32_t node_at(struct reader *r, uint32_t process, uint32_t tid, uint64_t ticks)
{
	const uint32_t i = NESTED_AT(r->spans, process, tid, ticks, &r->span_hint);
	return i == NONE ? thread_frame(r, process, tid) : span_node(r, i);
}

static int take_links(struct reader *r)
{
	const int e = links_load(r->t, &r->meta, &r->links);
	links_by_call(&r->links, &r->by_call);
	r->link_node = xmalloc((r->links.v.n + 1) * sizeof *r->link_node);
	memset(r->link_node, 0xff, r->links.v.n * sizeof *r->link_node); /* NONE */
	return e;
}

/* All links that began in a call are its, until a call inside takes them. */
static void give_links(struct reader *r, const struct record *c, uint32_t node)
{
	const struct chunk_ref *of = r->calls.buf.ref;
	const struct call_link *l;
	size_t at = links_from(&r->by_call, of->process, of->head.tid, c->ticks);
	while ((l = links_until(&r->by_call, at++, of->process, of->head.tid, record_end(c))))
		r->link_node[l - r->links.v.v] = node;
}

static void leave(struct reader *r)
{
	expect(r->depth > 0, "a call is left that was entered");
	const struct open_call *c = &r->stack[--r->depth];
	uint64_t self = c->ns > c->inside_ns ? c->ns - c->inside_ns : 0;
	uint32_t node = c->node;
	if (r->depth) {
		struct open_call *around = &r->stack[r->depth - 1];
		around->inside_ns = sat_add(around->inside_ns, c->ns);
		around->launched |= c->launch;
	}
	if (r->f->by_device)
		return;
	if (c->launch && !c->launched)
		node = flame_child(r->f, node, FRAME_KERNEL, kernel_text(r, c->kernel));
	if (node != NONE)
		flame_add(r->f, node, self);
}

/* Below a thread or range: the functions that have made the call, as far as that was recorded. */
static uint32_t code_node(struct reader *r, uint32_t around, const struct record *c)
{
	const struct chunk_ref *of = r->calls.buf.ref;
	const struct stack_frame *f[CODE_DEEP];
	char text[256];
	const uint32_t stack =
		stacks_find_within(&r->stacks, of->process, of->head.tid, c->ticks, record_end(c));
	uint32_t n = stack == STACK_NONE ? 0 : stacks_pick(&r->stacks, stack, f, CODE_DEEP);
	while (n-- > 0 && around != NONE) {
		stacks_frame_text(f[n], text, sizeof text);
		around = flame_child(r->f, around, FRAME_CODE, text);
	}
	return around;
}

/* Functions of a call in an operator are left out: they would stand below it, though some of them
 * called it, and only for the calls whose stack was kept. */
static bool is_in_operator(struct reader *r, const struct record *c)
{
	const struct chunk_ref *of = r->calls.buf.ref;
	uint32_t i = NESTED_AT(r->spans, of->process, of->head.tid, c->ticks, &r->span_hint);
	while (i != NONE && r->spans.v[i].at.named)
		i = r->spans.v[i].at.parent;
	return i != NONE;
}

static void enter(struct reader *r, const struct record *c)
{
	const struct chunk_ref *of = r->calls.buf.ref;
	while (r->depth && (r->stack[r->depth - 1].ticks > c->ticks ||
				   r->stack[r->depth - 1].end < record_end(c)))
		leave(r);
	uint32_t around = r->depth ? r->stack[r->depth - 1].node
				   : node_at(r, of->process, of->head.tid, c->ticks);
	if (!r->depth && r->stacks.samples.n && !is_in_operator(r, c))
		around = code_node(r, around, c);
	const uint32_t node = call_node(r, around, c->fn);
	give_links(r, c, node);
	if (r->depth == CALLS_DEEP)
		return;
	struct launch_shape shape;
	const struct schema_fn *fn = schema_find(&r->t->schema, c->fn);
	const bool launch = fn && fn->launch_layout && decode_shape(c, &shape);
	r->stack[r->depth++] = (struct open_call){ .ticks = c->ticks,
		.end = record_end(c),
		.ns = trace_span_ns(r->t, record_dur(c)),
		.node = node,
		.launch = launch,
		.kernel = launch ? meta_find_kernel(&r->meta, r->calls.buf.ref->process,
					   c->arg[LAUNCH_FUNCTION], record_end(c))
				 : META_NONE };
}

static void read_calls(struct reader *r)
{
	while (r->depth && r->calls.new_thread)
		leave(r);
	for (size_t i = r->calls.calls.n; i-- > 0;)
		enter(r, r->calls.calls.v[i]);
}

/* Names the threads of damaged chunks too. */
static void name_threads(struct reader *r)
{
	for (size_t i = 0; i < r->calls.chunks.v.n; i++) {
		const struct chunk_ref *c = &r->t->chunks[r->calls.chunks.v.v[i]];
		thread_of(r, c->process, c->head.tid, c->head.thread);
	}
}

static int read_threads(struct reader *r)
{
	struct progress progress;
	thread_calls_init(&r->calls, r->t);
	name_threads(r);
	int e = 0;
	progress_init(&progress, "reading");
	while (e >= 0 && (e = thread_calls_next(&r->calls)) > 0) {
		read_calls(r);
		progress_show(&progress, r->calls.next - 1, r->calls.chunks.v.n);
	}
	while (r->depth)
		leave(r);
	progress_fini(&progress);
	return e;
}

/* The frame of the call behind a link. */
static uint32_t link_frame(struct reader *r, const struct call_link *l)
{
	expect((size_t)(l - r->links.v.v) < r->links.v.n, "the link of an activity is one of all");
	uint32_t *node = &r->link_node[l - r->links.v.v];
	if (*node == NONE) { /* its call is not in the trace */
		const uint32_t around = node_at(r, l->process, l->tid, l->ticks);
		*node = around == NONE || !l->fn ? around : call_node(r, around, l->fn);
	}
	return *node;
}

/* The frame above a GPU activity. */
static uint32_t owner_of(struct reader *r, const struct gpu_activity *w)
{
	const uint32_t process = r->buf.ref->process;
	const struct call_link *l = links_of(&r->links, process, w, &r->hint);
	if (l)
		return link_frame(r, l);
	const uint32_t span = w->valid & GPU_HAS_EXTERNAL && w->external
				      ? externals_find(&r->externals, process, w->external)
				      : NONE;
	const uint32_t node = span == NONE ? NONE : span_node(r, span);
	return node != NONE ? node
			    : flame_child(r->f, process_node(r, process), FRAME_OTHER,
				      "(call not known)");
}

static const char *move_name(const struct gpu_activity *w, char *room, size_t size)
{
	const char *way = w->valid & GPU_HAS_WHAT ? copy_direction_name(w->what) : NULL;
	snprintf(room, size, "%s%s%s", w->kind == GPU_MEMSET ? "set" : "copy",
		w->kind == GPU_MEMCPY && way ? " " : "", w->kind == GPU_MEMCPY && way ? way : "");
	return room;
}

static int take_activity(struct reader *r)
{
	struct cursor at = { .t = r->t, .buf = &r->buf };
	char room[64];
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const bool move = w.kind == GPU_MEMCPY || w.kind == GPU_MEMSET;
		if (!move && w.kind != GPU_KERNEL && w.kind != GPU_GRAPH)
			continue;
		const uint32_t name = meta_find_string(&r->meta, r->buf.ref->process, w.name);
		const uint32_t around = owner_of(r, &w);
		const uint32_t node = flame_child(r->f, around, move ? FRAME_MOVE : FRAME_KERNEL,
			move ? move_name(&w, room, sizeof room) : kernel_text(r, name));
		expect(w.end_ns >= w.start_ns, "an activity ends after it began");
		flame_add(r->f, node, w.end_ns - w.start_ns);
	}
	return at.error;
}

static int read_all(struct reader *r)
{
	int e = take_ranges(r);
	if (!e)
		e = stacks_load(r->t, &r->stacks, NULL);
	if (!e && r->f->by_device)
		e = take_links(r);
	if (e)
		return e;
	if (r->spans.n >= NONE || r->links.v.n >= NONE)
		return -EOVERFLOW;
	nest_spans(r);
	e = read_threads(r);
	if (e || !r->f->by_device)
		return e;
	EXTERNALS_MAKE(r->spans, &r->externals);
	return take_activity(r);
}

static void reader_fini(struct reader *r)
{
	demangled_fini(&r->names);
	stacks_fini(&r->stacks);
	map_fini(&r->thread_map);
	thread_calls_fini(&r->calls);
	links_fini(&r->links);
	free(r->link_node);
	array_free(&r->threads, &r->spans, &r->by_call.v, &r->externals.v);
	meta_fini(&r->meta);
}

int flame_make(const struct trace *t, enum flame_by by, struct flame **ret_f, struct error *err)
{
	struct reader r = { .t = t, .f = xcalloc(1, sizeof(struct flame)) };
	r.f->by_device = by == FLAME_DEVICE || (by == FLAME_AUTO && trace_has(t, CHUNK_DEVICE));
	snprintf(r.f->program, sizeof r.f->program, "%s", t->header.program);
	int e = meta_load(t, &r.meta, err);
	if (e)
		goto fail;
	demangled_init(&r.names, &r.meta);
	flame_child(r.f, NONE, FRAME_ALL, "all");
	e = read_all(&r);
	reader_fini(&r);
	if (e) {
		error_set(err, e, "the trace can't be read to its end: %s", strerror(-e));
		goto fail;
	}
	flame_finish(r.f);
	*ret_f = r.f;
	return 0;
fail:
	flame_free(r.f);
	return e;
}
