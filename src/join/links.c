/* Finds the calls of GPU activities. */
#include "join/links.h"

#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "base/search.h"
#include "base/sort.h"
#include "event/decode.h"
#include "join/join.h"
#include "trace/activity.h"
#include "trace/part.h"
#include "trace/thread_calls.h"

/* a GPU activity. */
struct device_activity {
	uint64_t correlation;
	uint64_t start_ns, end_ns;
	uint64_t shape;
	uint32_t name;
	uint32_t process;
	uint32_t stream; /* of its context, as one number; 0 not known */
	uint8_t kind;    /* enum join_kind; JOIN_GRAPH for all that ran as nodes */
	bool kernel;     /* of a graph's node too */
	bool counts;     /* in the part that is read, and no wait: a call is wanted for it */
};

/* A link's facts of a call. */
struct caller {
	uint64_t ticks, dur;
	uint32_t tid;
	uint16_t fn;
};

struct loader {
	const struct trace *t;
	const struct meta *m;
	struct links *l;
	struct chunk_buf buf;
	bool *has_links; /* by process */
	bool *has_activity;
	uint64_t *graph_hashes; /* by step of meta.steps; UINT64_MAX: not known yet */
	uint32_t last_string, last_string_process, last_name; /* of the activity seen last */
	ARRAY(struct device_activity) found;
	ARRAY(struct join_activity) activities;
	ARRAY(struct join_call) calls;
	ARRAY(struct caller) callers;
	struct thread_chunks chunks; /* of calls */
};

ORDERING(link_order, struct call_link, ORDER(a->process, b->process),
	ORDER(a->correlation, b->correlation), ORDER(a->ticks, b->ticks))

ORDERING(activity_order, struct device_activity, ORDER(a->process, b->process),
	ORDER(a->correlation, b->correlation))

static int take_links(struct loader *o)
{
	struct cursor at = { .t = o->t, .buf = &o->buf };
	for (struct link l; trace_next_link(&at, &l);) {
		*array_push(&o->l->v) = (struct call_link){ .correlation = l.correlation,
			.ticks = l.ticks,
			.dur = l.dur,
			.process = o->buf.ref->process,
			.tid = l.tid,
			.fn = l.fn };
		o->has_links[o->buf.ref->process] = true;
	}
	return at.error;
}

static uint64_t shape_hash(const uint32_t grid[3], const uint32_t block[3])
{
	uint64_t h = 0;
	for (int i = 0; i < 3; i++)
		h = hash_mix(h ^ ((uint64_t)grid[i] << 32 | block[i]));
	return h | 1;
}

static uint32_t name_of(struct loader *o, uint32_t process, uint32_t string)
{
	if (!string)
		return 0;
	if (string != o->last_string || process != o->last_string_process) {
		o->last_string = string;
		o->last_string_process = process;
		o->last_name = meta_find_string(o->m, process, string) + 1; /* META_NONE: 0 */
	}
	return o->last_name;
}

static uint8_t join_kind_of(const struct gpu_activity *w)
{
	if (w->valid & GPU_HAS_GRAPH || w->kind == GPU_GRAPH)
		return JOIN_GRAPH;
	return w->kind == GPU_KERNEL   ? JOIN_KERNEL
	       : w->kind == GPU_MEMCPY ? JOIN_MEMCPY
	       : w->kind == GPU_MEMSET ? JOIN_MEMSET
	       : w->kind == GPU_SYNC   ? JOIN_SYNC
				       : 0;
}

static uint32_t fold(uint64_t h)
{
	return (uint32_t)(h >> 32) | 1;
}

static uint32_t stream_of(const struct gpu_activity *w)
{
	const uint32_t context = w->valid & GPU_HAS_CONTEXT ? w->context : 0;
	return w->valid & GPU_HAS_STREAM ? fold(hash_mix((uint64_t)context << 32 | w->stream)) : 0;
}

static struct device_activity device_activity_of(struct loader *o, const struct gpu_activity *w)
{
	struct device_activity p = { .correlation = w->correlation,
		.start_ns = w->start_ns,
		.end_ns = w->end_ns,
		.process = o->buf.ref->process,
		.stream = stream_of(w),
		.kind = join_kind_of(w),
		.kernel = w->kind == GPU_KERNEL,
		.counts = w->kind != GPU_SYNC && part_has(o->t, o->buf.ref->process, w) };
	if (w->kind == GPU_KERNEL) {
		p.name = name_of(o, p.process, w->name);
		p.shape = w->valid & GPU_HAS_SHAPE ? shape_hash(w->grid, w->block) : 0;
	} else if (w->kind == GPU_SYNC) {
		p.name = w->valid & GPU_HAS_WHAT ? w->what : 0;
	} else {
		p.name = w->kind == GPU_MEMCPY && w->valid & GPU_HAS_WHAT ? w->what : 0;
		p.shape = w->valid & GPU_HAS_BYTES ? w->bytes : 0;
	}
	return p;
}

/* Beside launches that were timed with events, which have links, others by CUPTI have none. */
static bool has_link(const struct loader *o, uint32_t process, const struct gpu_activity *w)
{
	const bool by_cupti = o->t->header.sampled && w->correlation >= CUPTI_CORRELATIONS;
	return o->has_links[process] && !by_cupti;
}

static int take_activities(struct loader *o)
{
	struct cursor at = { .t = o->t, .buf = &o->buf };
	for (struct gpu_activity w; trace_next_activity(&at, &w);) {
		const uint32_t process = o->buf.ref->process;
		if (has_link(o, process, &w) || !(w.valid & GPU_HAS_CORRELATION) ||
			!w.correlation || !join_kind_of(&w))
			continue;
		struct device_activity *to = array_push(&o->found);
		*to = device_activity_of(o, &w);
		o->has_activity[process] = true;
		o->l->activities += to->counts;
	}
	return at.error;
}

static uint64_t node_hash(uint32_t name, uint64_t shape)
{
	return hash_mix(shape ^ name);
}

/* One entry a correlation; a graph's name is the sum over its kernels. */
static void group(struct loader *o, size_t from, size_t to)
{
	o->activities.n = 0;
	uint64_t nodes = 0;
	for (size_t i = from; i < to; i++) {
		const struct device_activity *p = &o->found.v[i];
		struct join_activity *w =
			o->activities.n ? &o->activities.v[o->activities.n - 1] : NULL;
		if (!w || w->correlation != p->correlation) {
			w = array_push(&o->activities);
			*w = (struct join_activity){ p->correlation, p->start_ns, p->end_ns,
				p->shape, p->name, p->kind, p->stream };
			nodes = 0;
		}
		w->start_ns = p->start_ns < w->start_ns ? p->start_ns : w->start_ns;
		w->end_ns = p->end_ns > w->end_ns ? p->end_ns : w->end_ns;
		if (p->kind != JOIN_GRAPH)
			continue;
		nodes += p->kernel ? node_hash(p->name, p->shape) : 0;
		w->kind = JOIN_GRAPH;
		w->stream = 0;
		w->shape = 0;
		w->name = nodes ? fold(nodes) : 0;
	}
}

static uint32_t wait_of(const char *name)
{
	static const struct {
		const char *name;
		uint32_t what;
	} waits[] = {
		{ "cuEventSynchronize", 1 },
		{ "cuStreamWaitEvent", 2 },
		{ "cuStreamSynchronize", 3 },
		{ "cuCtxSynchronize", 4 },
	};
	for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
		if (!strncmp(name, waits[i].name, strlen(waits[i].name)))
			return waits[i].what;
	return 0;
}

static uint32_t direction_of(const char *memory)
{
	for (unsigned i = 1; i < COPY_DIRECTIONS; i++)
		if (!strcmp(memory, copy_direction_name(i)))
			return i;
	return 0; /* any */
}

/* The sum over the kernels of an instantiation; 0 when it was changed since. */
static uint64_t hash_graph(const struct loader *o, uint32_t process, uint32_t step)
{
	const struct meta *m = o->m;
	uint64_t sum = 0;
	for (uint32_t s = step;; s--) {
		const struct graph_step *g = &m->steps.v[s];
		if (g->kind == STEP_UPDATE || g->exec != m->steps.v[step].exec)
			return 0;
		for (uint32_t i = 0; i < g->node_count; i++) {
			const struct graph_node *n = &m->nodes.v[g->first_node + i];
			const uint32_t name =
				meta_find_kernel(m, process, n->function, g->ticks) + 1;
			sum += node_hash(name, shape_hash(n->grid, n->block));
		}
		if (g->kind == STEP_NEW || !s)
			return sum;
	}
}

static uint32_t graph_name(struct loader *o, uint32_t process, const struct record *r)
{
	const uint32_t step = r->words > RECORD_WORDS ? meta_find_graph(o->m, process, r->arg[0],
								part_ticks(o->t, r->ticks))
						      : META_NONE;
	if (step == META_NONE)
		return 0;
	uint64_t *hash = &o->graph_hashes[step];
	if (*hash == UINT64_MAX)
		*hash = hash_graph(o, process, step);
	return *hash ? fold(*hash) : 0;
}

/* False for calls that launch no activity. */
static bool describe(
	struct loader *o, const struct schema_fn *fn, const struct record *r, struct join_call *c)
{
	struct launch_shape s;
	switch (fn->kind) {
	case CALL_LAUNCH:
		c->kind = JOIN_KERNEL;
		if (!decode_shape(r, &s))
			return false;
		c->stream = r->arg[LAUNCH_STREAM] + 1;
		c->shape = s.block[0] ? shape_hash(s.grid, s.block) : 0;
		c->name = meta_find_kernel(o->m, o->buf.ref->process, r->arg[LAUNCH_FUNCTION],
				  part_ticks(o->t, record_end(r))) +
			  1;
		return true;
	case CALL_GRAPHLAUNCH:
		c->kind = JOIN_GRAPH;
		c->name = graph_name(o, o->buf.ref->process, r);
		return true;
	case CALL_COPY:
	case CALL_SET:
		c->kind = fn->kind == CALL_COPY ? JOIN_MEMCPY : JOIN_MEMSET;
		c->name = fn->kind == CALL_COPY ? direction_of(fn->memory) : 0;
		c->blocks = c->name == COPY_DTOH && !strstr(fn->name, "Async");
		return schema_call_bytes(fn, r, &c->shape) && c->shape;
	default:
		c->kind = JOIN_SYNC;
		c->name = wait_of(fn->name);
		return c->name != 0;
	}
}

static void take_call(struct loader *o, const struct record *r)
{
	const struct schema_fn *fn = schema_find(&o->t->schema, r->fn);
	if (!fn || fn->api != API_DRIVER || r->result || r->flags & RECORD_CAPTURED)
		return;
	struct join_call c = { .begin_ns = trace_ns(o->t, r->ticks),
		.end_ns = trace_ns(o->t, record_end(r)),
		.thread = o->buf.ref->head.tid,
		.id = (uint32_t)o->callers.n };
	if (!describe(o, fn, r, &c))
		return;
	struct join_call *to = array_push(&o->calls);
	struct caller *who = array_push(&o->callers);
	*to = c;
	*who = (struct caller){ r->ticks, record_dur(r), o->buf.ref->head.tid, r->fn };
}

static void take_chunk(struct loader *o)
{
	struct records it = records_of(&o->buf);
	const struct record *r;
	while ((r = records_next(&it)))
		take_call(o, r);
}

static int take_calls(struct loader *o, uint32_t process)
{
	int e = 0;
	o->calls.n = o->callers.n = 0;
	for (size_t i = 0; i < o->chunks.v.n && !e; i++) {
		const uint32_t chunk = o->chunks.v.v[i];
		if (o->t->chunks[chunk].process != process)
			continue;
		e = trace_load(o->t, chunk, &o->buf, NULL);
		if (!e)
			take_chunk(o);
		else if (trace_lost(e))
			e = 0;
	}
	if (!e)
		join_sort(o->calls.v, o->calls.n);
	return e;
}

/* The activities [from, to) of one correlation, and their call. */
static void count(struct loader *o, const struct join_call *c, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct device_activity *p = &o->found.v[i];
		if (!p->counts)
			continue;
		o->l->joined++;
		o->l->early += p->start_ns < c->begin_ns;
		o->l->checked += c->kind == JOIN_KERNEL && c->name && c->shape &&
				 c->name == p->name && c->shape == p->shape;
	}
}

/* The links of the calls found. */
static void keep(struct loader *o, uint32_t process, size_t from, size_t to, const uint32_t *call)
{
	size_t at = from;
	for (size_t i = 0; i < o->activities.n; i++) {
		const struct join_activity *w = &o->activities.v[i];
		const size_t first = at;
		while (at < to && o->found.v[at].correlation == w->correlation)
			at++;
		if (call[i] == JOIN_NONE)
			continue;
		if (!expect(call[i] < o->calls.n, "the call found is one of the process's"))
			continue;
		const struct join_call *c = &o->calls.v[call[i]];
		const struct caller *who = &o->callers.v[c->id];
		*array_push(&o->l->v) = (struct call_link){ .correlation = w->correlation,
			.ticks = who->ticks,
			.dur = who->dur,
			.process = process,
			.tid = who->tid,
			.fn = who->fn };
		count(o, c, first, at);
	}
	expect(at <= to, "an activity is joined inside its process");
}

/* How many kernels were joined: those of a name that the calls do not know are none. */
static size_t count_kernels(const struct loader *o, const uint32_t *call)
{
	size_t n = 0;
	for (size_t i = 0; i < o->activities.n; i++)
		n += o->activities.v[i].kind == JOIN_KERNEL && call[i] != JOIN_NONE;
	return n;
}

/* Names that agree nowhere are names in two spellings: then by shape alone. */
static int join_by_shape(struct loader *o, uint32_t *call)
{
	for (size_t i = 0; i < o->activities.n; i++)
		if (o->activities.v[i].kind == JOIN_KERNEL || o->activities.v[i].kind == JOIN_GRAPH)
			o->activities.v[i].name = 0;
	return join_calls(o->calls.v, o->calls.n, o->activities.v, o->activities.n, call);
}

static int join_process(struct loader *o, size_t from, size_t to)
{
	const uint32_t process = o->found.v[from].process;
	group(o, from, to);
	int e = take_calls(o, process);
	if (e)
		return e;
	uint32_t *call = xcalloc(o->activities.n, sizeof *call);
	e = join_calls(o->calls.v, o->calls.n, o->activities.v, o->activities.n, call);
	if (!e && !count_kernels(o, call))
		e = join_by_shape(o, call);
	if (!e)
		keep(o, process, from, to, call);
	free(call);
	return e;
}

static int join_all(struct loader *o)
{
	trace_thread_chunks(o->t, false, &o->chunks);
	int e = 0;
	SORT(o->found, activity_order);
	for (size_t from = 0, to; from < o->found.n && !e; from = to) {
		to = from + 1;
		while (to < o->found.n && o->found.v[to].process == o->found.v[from].process)
			to++;
		e = join_process(o, from, to);
	}
	return e;
}

static int load_all(struct loader *o)
{
	int e = take_links(o);
	if (!e)
		e = take_activities(o);
	if (!e && o->found.n)
		e = join_all(o);
	for (size_t i = 0; i < o->l->v.n; i++)
		o->l->v.v[i].ticks = part_ticks(o->t, o->l->v.v[i].ticks);
	SORT(o->l->v, link_order);
	expect(o->l->joined <= o->l->activities, "no more is joined than there is");
	expect(o->l->early <= o->l->joined && o->l->checked <= o->l->joined,
		"what is early or checked is joined");
	return e;
}

static uint64_t lost_activities(const struct trace *t)
{
	uint64_t lost = 0;
	for (size_t i = 0; i < t->chunk_count; i++)
		if (t->chunks[i].head.kind == CHUNK_DEVICE)
			lost = sat_add(lost, t->chunks[i].head.lost);
	return lost;
}

int links_load(const struct trace *t, const struct meta *m, struct links *ret_links)
{
	struct links l = { .lost = lost_activities(t) };
	struct loader o = { .t = t,
		.m = m,
		.l = &l,
		.has_links = xcalloc(t->processes.n + 1, sizeof(bool)),
		.has_activity = xcalloc(t->processes.n + 1, sizeof(bool)),
		.buf.whole =
			true, /* a call may be outside of the part in which its activities are */
		.graph_hashes = xmalloc((m->steps.n + 1) * sizeof(uint64_t)) };
	memset(o.graph_hashes, 0xff, m->steps.n * sizeof(uint64_t));
	int e = load_all(&o);
	free_all(o.has_links, o.has_activity, o.graph_hashes);
	chunk_buf_fini(&o.buf);
	array_free(&o.found, &o.activities, &o.calls, &o.callers, &o.chunks.v);
	if (e)
		links_fini(&l);
	else
		*ret_links = l;
	return e;
}

void links_fini(struct links *l)
{
	array_free(&l->v);
}

static bool is_link(const struct links *l, size_t i, uint32_t process, uint64_t correlation)
{
	return i < l->v.n && l->v.v[i].process == process && l->v.v[i].correlation == correlation;
}

const struct call_link *links_find(
	const struct links *l, uint32_t process, uint64_t correlation, size_t *hint)
{
	const struct call_link key = { .process = process, .correlation = correlation };
	for (size_t i = *hint; i < *hint + 2; i++)
		if (is_link(l, i, process, correlation) &&
			(!i || !is_link(l, i - 1, process, correlation)))
			return &l->v.v[*hint = i];
	const size_t low = SEARCH(i, 0, l->v.n, link_order(&l->v.v[i], &key) < 0);
	return is_link(l, low, process, correlation) ? &l->v.v[*hint = low] : NULL;
}

const struct call_link *links_of(
	const struct links *l, uint32_t process, const struct gpu_activity *w, size_t *hint)
{
	return w->valid & GPU_HAS_CORRELATION ? links_find(l, process, w->correlation, hint) : NULL;
}

static int time_order(const struct call_link *a, const struct call_link *b)
{
	return ORDER(a->process, b->process) ?: ORDER(a->tid, b->tid) ?: ORDER(a->ticks, b->ticks);
}

static int by_call(const void *one, const void *two, void *links)
{
	const struct links *l = links;
	const uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
	const int order = time_order(&l->v.v[a], &l->v.v[b]);
	return order ? order : ORDER(a, b);
}

void links_by_call(const struct links *l, struct links_by_call *ret_calls)
{
	*ret_calls = (struct links_by_call){ .l = l };
	array_reserve(&ret_calls->v, l->v.n);
	for (size_t i = 0; i < l->v.n; i++)
		ret_calls->v.v[ret_calls->v.n++] = (uint32_t)i;
	if (l->v.n)
		qsort_r(ret_calls->v.v, l->v.n, sizeof(uint32_t), by_call, (void *)l);
}

size_t links_from(const struct links_by_call *c, uint32_t process, uint32_t tid, uint64_t ticks)
{
	const struct call_link key = { .process = process, .tid = tid, .ticks = ticks };
	return SEARCH(i, 0, c->v.n, time_order(&c->l->v.v[c->v.v[i]], &key) < 0);
}

const struct call_link *links_until(
	const struct links_by_call *c, size_t at, uint32_t process, uint32_t tid, uint64_t to)
{
	expect_slow(at >= c->v.n || c->v.v[at] < c->l->v.n, "the link is one of the trace's");
	const struct call_link *l = at < c->v.n ? &c->l->v.v[c->v.v[at]] : NULL;
	return l && l->process == process && l->tid == tid && l->ticks <= to ? l : NULL;
}
