/*
 * From a trace to the tree of a flame graph.
 *
 * Records stand in the order in which calls ended, so a thread is read backwards: then a call
 * comes before those inside it, and the calls that are open are a stack.  Ranges and links are
 * sorted by thread and time; a call finds the innermost range at its begin, and the links in it
 * find their call.  Device work then finds its link by correlation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/search.h"
#include "base/sort.h"
#include "flame/flame.h"
#include "model/links.h"
#include "model/tally.h"
#include "trace/activity.h"
#include "trace/meta.h"
#include "trace/thread_calls.h"

#include "base/banned.h"

#define NONE        FLAME_NONE
#define RANGES_DEEP 200 /* ranges around; those deeper are counted to the one above */
#define CALLS_DEEP  64

struct span {
	uint64_t ticks, end;
	uint64_t external;
	uint32_t thread;
	uint32_t name; /* into meta.names */
	uint32_t parent;
	uint32_t node;
	uint32_t depth;
};

struct asked { /* a link */
	uint64_t correlation;
	uint64_t ticks;
	uint32_t process;
	uint32_t thread;
	uint32_t node; /* NONE until its call is found */
	uint16_t fn;
};

struct thread {
	uint32_t process, tid;
	char name[16];
	uint32_t node;
	uint32_t first_span, span_count;
	uint32_t first_asked, asked_count;
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
	ARRAY(struct asked) links;
	ARRAY(uint32_t) externals; /* spans by process and external */
	struct open_call stack[CALLS_DEEP];
	int depth;
	char **kernel_name; /* demangled on first use, by name */
	size_t hint;
};

/* ---- names ---- */

static const char *kernel_text(struct reader *r, uint32_t name)
{
	if (name == META_NONE)
		return "(unknown kernel)";
	if (!r->kernel_name[name])
		r->kernel_name[name] = demangle(r->meta.names.v[name].text);
	return r->kernel_name[name] ? r->kernel_name[name] : r->meta.names.v[name].text;
}

static uint32_t process_node(struct reader *r, uint32_t process)
{
	char text[320];
	const char *name = "", *slash;
	if (process < r->meta.processes.n)
		name = r->meta.processes.v[process].executable;
	slash = strrchr(name, '/');
	name = slash ? slash + 1 : name;
	snprintf(text, sizeof(text), "%s%s%" PRIu32 "%s", *name ? name : "process ",
		*name ? " (" : "", r->t->processes.v[process].pid, *name ? ")" : "");
	return flame_child(r->f, 0, FRAME_PROCESS, text);
}

static uint32_t thread_node(struct reader *r, struct thread *t)
{
	char text[48];
	if (t->node != NONE)
		return t->node;
	snprintf(text, sizeof(text), "%.15s%s%" PRIu32 "%s", *t->name ? t->name : "thread ",
		*t->name ? " (" : "", t->tid, *t->name ? ")" : "");
	return t->node = flame_child(r->f, process_node(r, t->process), FRAME_THREAD, text);
}

static uint32_t call_node(struct reader *r, uint32_t parent, uint16_t id)
{
	const struct schema_fn *fn = schema_find(&r->t->schema, id);
	char text[32];
	snprintf(text, sizeof(text), "function %u", id);
	return flame_child(r->f, parent,
		fn && fn->api == API_RUNTIME ? FRAME_RUNTIME : FRAME_DRIVER, fn ? fn->name : text);
}

static int thread_of(
	struct reader *r, uint32_t process, uint32_t tid, const char *name, uint32_t *ret_thread)
{
	struct thread *t = MAP_ROW(&r->thread_map, MAP_KEY(process, tid), &r->threads,
		(struct thread){ .process = process, .tid = tid, .node = NONE });
	if (!t)
		return -ENOMEM;
	*ret_thread = (uint32_t)(t - r->threads.v);
	if (name && *name)
		snprintf(t->name, sizeof(t->name), "%.15s", name);
	return 0;
}

/* ---- ranges ---- */

static int take_ranges(struct reader *r)
{
	struct cursor at = { .t = r->t, .buf = &r->buf };
	struct range g;
	int e;
	while ((e = trace_next_range(&at, &g)) > 0) {
		const uint32_t process = r->buf.ref->process;
		struct span s = {
			.ticks = g.ticks, .end = range_end(&g), .parent = NONE, .node = NONE
		};
		if (!range_nests(g.kind))
			continue;
		if (g.valid & RANGE_HAS_EXTERNAL)
			s.external = g.external;
		s.name = meta_find_string(&r->meta, process, g.name);
		const int failed = thread_of(r, process, g.tid, NULL, &s.thread);
		struct span *to = failed ? NULL : array_push(&r->spans);
		if (!to)
			return -ENOMEM;
		*to = s;
	}
	return e;
}

static int span_order(const void *one, const void *two)
{
	const struct span *a = one, *b = two;
	if (a->thread != b->thread)
		return ORDER(a->thread, b->thread);
	return a->ticks != b->ticks ? ORDER(a->ticks, b->ticks) : -ORDER(a->end, b->end);
}

static void nest_spans(struct reader *r)
{
	uint32_t top = NONE;
	for (size_t i = 0; i < r->spans.n; i++) {
		struct span *s = &r->spans.v[i];
		struct thread *t = &r->threads.v[s->thread];
		if (!t->span_count++) {
			t->first_span = (uint32_t)i;
			top = NONE;
		}
		while (top != NONE && r->spans.v[top].end <= s->ticks)
			top = r->spans.v[top].parent;
		s->parent = top;
		s->depth = top == NONE ? 0 : r->spans.v[top].depth + 1;
		top = (uint32_t)i;
	}
}

/* Made when something is asked for below: ranges without work are no frames. */
static uint32_t span_node(struct reader *r, uint32_t i)
{
	struct span *path[RANGES_DEEP];
	int n = 0;
	struct thread *t = &r->threads.v[r->spans.v[i].thread];
	while (i != NONE && r->spans.v[i].depth >= RANGES_DEEP)
		i = r->spans.v[i].parent;
	for (; i != NONE && r->spans.v[i].node == NONE; i = r->spans.v[i].parent)
		path[n++] = &r->spans.v[i];
	uint32_t node = i == NONE ? thread_node(r, t) : r->spans.v[i].node;
	while (n-- > 0) {
		const uint32_t name = path[n]->name;
		node = flame_child(r->f, node, FRAME_RANGE,
			name == META_NONE ? "(no name)" : r->meta.names.v[name].text);
		path[n]->node = node;
	}
	return node;
}

/* Where something of a thread stands that began at that time. */
static uint32_t node_at(struct reader *r, uint32_t thread, uint64_t ticks)
{
	struct thread *t = &r->threads.v[thread];
	const uint32_t low = (uint32_t)SEARCH(
		i, t->first_span, t->first_span + t->span_count, r->spans.v[i].ticks <= ticks);
	uint32_t i = low > t->first_span ? low - 1 : NONE;
	while (i != NONE && r->spans.v[i].end <= ticks)
		i = r->spans.v[i].parent;
	return i == NONE ? thread_node(r, t) : span_node(r, i);
}

/* ---- links ---- */

static int take_link(struct reader *r, const struct call_link *l)
{
	struct asked k = { .correlation = l->correlation,
		.ticks = l->ticks,
		.process = l->process,
		.node = NONE,
		.fn = l->fn };
	const int e = thread_of(r, l->process, l->tid, NULL, &k.thread);
	struct asked *to = e ? NULL : array_push(&r->links);
	if (!to)
		return -ENOMEM;
	*to = k;
	return 0;
}

static int take_links(struct reader *r)
{
	struct links l;
	int e = links_load(r->t, &r->meta, &l);
	if (e)
		return e;
	for (size_t i = 0; i < l.v.n && !e; i++)
		e = take_link(r, &l.v.v[i]);
	links_fini(&l);
	return e;
}

static int link_by_time(const void *one, const void *two)
{
	const struct asked *a = one, *b = two;
	if (a->thread != b->thread)
		return ORDER(a->thread, b->thread);
	return ORDER(a->ticks, b->ticks);
}

static int link_by_correlation(const void *one, const void *two)
{
	const struct asked *a = one, *b = two;
	if (a->process != b->process)
		return ORDER(a->process, b->process);
	return a->correlation != b->correlation ? ORDER(a->correlation, b->correlation)
						: ORDER(a->ticks, b->ticks);
}

static void index_links(struct reader *r)
{
	for (size_t i = 0; i < r->links.n; i++) {
		struct thread *t = &r->threads.v[r->links.v[i].thread];
		if (!t->asked_count++)
			t->first_asked = (uint32_t)i;
	}
}

/* All links that began in a call are its, until a call inside takes them. */
static void give_links(struct reader *r, uint32_t thread, const struct record *c, uint32_t node)
{
	const struct thread *t = &r->threads.v[thread];
	const size_t end = t->first_asked + t->asked_count;
	size_t i = SEARCH(k, t->first_asked, end, r->links.v[k].ticks < c->ticks);
	for (; i < end && r->links.v[i].ticks <= record_end(c); i++)
		r->links.v[i].node = node;
}

/* ---- calls ---- */

static void leave(struct reader *r)
{
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

static int enter(struct reader *r, uint32_t thread, const struct record *c)
{
	while (r->depth && (r->stack[r->depth - 1].ticks > c->ticks ||
				   r->stack[r->depth - 1].end < record_end(c)))
		leave(r);
	const uint32_t around =
		r->depth ? r->stack[r->depth - 1].node : node_at(r, thread, c->ticks);
	const uint32_t node = around == NONE ? NONE : call_node(r, around, c->fn);
	if (node == NONE)
		return -ENOMEM;
	give_links(r, thread, c, node);
	if (r->depth == CALLS_DEEP)
		return 0;
	struct launch_shape shape;
	const struct schema_fn *fn = schema_find(&r->t->schema, c->fn);
	const bool launch = fn && fn->launch_layout && decode_shape(c, &shape);
	r->stack[r->depth++] = (struct open_call){ .ticks = c->ticks,
		.end = record_end(c),
		.ns = clock_fit_span_ns(&r->t->clock, record_dur(c)),
		.node = node,
		.launch = launch,
		.kernel = launch ? meta_find_kernel(&r->meta, r->calls.buf.ref->process,
					   c->arg[LAUNCH_FUNCTION], record_end(c))
				 : META_NONE };
	return 0;
}

static int read_calls(struct reader *r, uint32_t *thread)
{
	const struct chunk_ref *c = r->calls.buf.ref;
	while (r->depth && r->calls.new_thread)
		leave(r);
	const char *name =
		r->calls.new_thread || !*r->threads.v[*thread].name ? c->head.thread : NULL;
	int e = thread_of(r, c->process, c->head.tid, name, thread);
	for (size_t i = r->calls.calls.n; i-- > 0 && !e;)
		e = enter(r, *thread, r->calls.calls.v[i]);
	return e;
}

static int read_threads(struct reader *r)
{
	struct progress progress;
	uint32_t thread = NONE;
	int e = thread_calls_init(&r->calls, r->t);
	progress_init(&progress, "reading");
	while (!e && (e = thread_calls_next(&r->calls)) > 0) {
		e = read_calls(r, &thread);
		progress_show(&progress, r->calls.next - 1, r->calls.chunks.v.n);
	}
	while (r->depth)
		leave(r);
	progress_fini(&progress);
	return e;
}

/* ---- device work ---- */

static struct asked *link_of(struct reader *r, uint32_t process, uint64_t correlation)
{
	const struct asked key = { .process = process, .correlation = correlation };
	for (size_t i = r->hint; i < r->hint + 2 && i < r->links.n; i++)
		if (r->links.v[i].process == process && r->links.v[i].correlation == correlation) {
			r->hint = i;
			return &r->links.v[i];
		}
	const size_t low = SEARCH(i, 0, r->links.n, link_by_correlation(&r->links.v[i], &key) < 0);
	r->hint = low;
	if (low == r->links.n || r->links.v[low].process != process ||
		r->links.v[low].correlation != correlation)
		return NULL;
	return &r->links.v[low];
}

static const struct reader *external_reader; /* as `sorting` */

static int external_order(const void *one, const void *two)
{
	const struct reader *r = external_reader;
	const struct span *a = &r->spans.v[*(const uint32_t *)one];
	const struct span *b = &r->spans.v[*(const uint32_t *)two];
	const uint32_t p = r->threads.v[a->thread].process, q = r->threads.v[b->thread].process;
	if (p != q)
		return ORDER(p, q);
	return a->external != b->external ? ORDER(a->external, b->external)
					  : ORDER(*(const uint32_t *)one, *(const uint32_t *)two);
}

static int index_externals(struct reader *r)
{
	for (size_t i = 0; i < r->spans.n; i++) {
		if (!r->spans.v[i].external)
			continue;
		uint32_t *to = array_push(&r->externals);
		if (!to)
			return -ENOMEM;
		*to = (uint32_t)i;
	}
	external_reader = r;
	if (r->externals.n)
		qsort(r->externals.v, r->externals.n, sizeof(*r->externals.v), external_order);
	return 0;
}

static bool external_before(
	const struct reader *r, uint32_t span, uint32_t process, uint64_t external)
{
	const struct span *s = &r->spans.v[span];
	const uint32_t p = r->threads.v[s->thread].process;
	return p < process || (p == process && s->external < external);
}

static uint32_t external_node(struct reader *r, uint32_t process, uint64_t external)
{
	const size_t low = SEARCH(
		i, 0, r->externals.n, external_before(r, r->externals.v[i], process, external));
	if (low == r->externals.n)
		return NONE;
	const struct span *s = &r->spans.v[r->externals.v[low]];
	const bool same = s->external == external && r->threads.v[s->thread].process == process;
	return same ? span_node(r, r->externals.v[low]) : NONE;
}

/* The frame above a piece of work. */
static uint32_t owner_of(struct reader *r, const struct device_work *w)
{
	const uint32_t process = r->buf.ref->process;
	struct asked *k =
		w->valid & WORK_HAS_CORRELATION ? link_of(r, process, w->correlation) : NULL;
	if (k && k->node == NONE) { /* its call is not in the trace */
		const uint32_t around = node_at(r, k->thread, k->ticks);
		k->node = around == NONE || !k->fn ? around : call_node(r, around, k->fn);
	}
	if (k)
		return k->node;
	const uint32_t node = w->valid & WORK_HAS_EXTERNAL && w->external
				      ? external_node(r, process, w->external)
				      : NONE;
	return node != NONE ? node
			    : flame_child(r->f, process_node(r, process), FRAME_OTHER,
				      "(call not known)");
}

static const char *move_name(const struct device_work *w, char *room, size_t size)
{
	const char *way = w->valid & WORK_HAS_WHAT ? copy_direction_name(w->what) : NULL;
	snprintf(room, size, "%s%s%s", w->kind == WORK_SET ? "set" : "copy",
		w->kind == WORK_COPY && way ? " " : "", w->kind == WORK_COPY && way ? way : "");
	return room;
}

static int take_work(struct reader *r)
{
	struct cursor at = { .t = r->t, .buf = &r->buf };
	struct device_work w;
	char room[64];
	int e;
	while ((e = trace_next_work(&at, &w)) > 0) {
		const bool move = w.kind == WORK_COPY || w.kind == WORK_SET;
		if (!move && w.kind != WORK_KERNEL && w.kind != WORK_GRAPH)
			continue;
		const uint32_t name = meta_find_string(&r->meta, r->buf.ref->process, w.name);
		const uint32_t around = owner_of(r, &w);
		const uint32_t node =
			around == NONE ? NONE
				       : flame_child(r->f, around, move ? FRAME_MOVE : FRAME_KERNEL,
						 move ? move_name(&w, room, sizeof(room))
						      : kernel_text(r, name));
		if (node == NONE)
			return -ENOMEM;
		flame_add(r->f, node, w.end_ns - w.start_ns);
	}
	return e;
}

/* ---- the whole ---- */

static int read_all(struct reader *r)
{
	int e = take_ranges(r);
	if (!e && r->f->by_device)
		e = take_links(r);
	if (e)
		return e;
	if (r->spans.n >= NONE || r->links.n >= NONE)
		return -EOVERFLOW;
	SORT(r->spans, span_order);
	SORT(r->links, link_by_time);
	nest_spans(r);
	index_links(r);
	e = read_threads(r);
	if (e || !r->f->by_device)
		return e;
	SORT(r->links, link_by_correlation);
	e = index_externals(r);
	return e ? e : take_work(r);
}

static bool has_device(const struct trace *t)
{
	for (size_t i = 0; i < t->chunk_count; i++)
		if (t->chunks[i].head.kind == CHUNK_DEVICE)
			return true;
	return false;
}

static void reader_fini(struct reader *r)
{
	for (size_t i = 0; r->kernel_name && i < r->meta.names.n; i++)
		free(r->kernel_name[i]);
	free(r->kernel_name);
	map_fini(&r->thread_map);
	array_free(&r->threads);
	thread_calls_fini(&r->calls);
	array_free(&r->spans);
	array_free(&r->links);
	array_free(&r->externals);
	chunk_buf_fini(&r->buf);
	meta_fini(&r->meta);
}

int flame_make(const struct trace *t, enum flame_by by, struct flame **ret_f, struct error *err)
{
	struct reader r = { .t = t, .f = calloc(1, sizeof(struct flame)) };
	if (!r.f)
		return error_set(err, -ENOMEM, "no memory for a flame graph");
	r.f->by_device = by == FLAME_DEVICE || (by == FLAME_AUTO && has_device(t));
	snprintf(r.f->program, sizeof(r.f->program), "%s", t->header.program);
	int e = meta_load(t, &r.meta, err);
	if (e)
		goto fail;
	r.kernel_name = calloc(r.meta.names.n + 1, sizeof(*r.kernel_name));
	e = r.kernel_name && flame_child(r.f, NONE, FRAME_ALL, "all") == 0 ? 0 : -ENOMEM;
	if (!e)
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
