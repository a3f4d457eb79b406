/* Collects the calls that launch or await GPU activities. */
#include "model/gpu_calls.h"

#include <string.h>

#include "event/args.h"
#include "event/predicted.h"
#include "trace/activity.h"
#include "trace/thread_calls.h"

#define NO_WORD 0xff

/* A function's use here. */
struct fn_use {
	uint8_t use; /* enum call_use */
	uint8_t stream_word, event_word;
	uint8_t direction;
	bool waits, apart, per_thread, is_set;
};

struct loader {
	const struct trace *t;
	struct gpu_calls *calls;
	struct fn_use *fns; /* by function id */
	struct chunk_buf buf;
	size_t thread_from; /* where the calls of the thread at hand begin */
};

/* The word of the first argument of one of two types, which the call gets or gives back. */
static uint8_t word_of(
	const struct schema_fn *fn, bool out, const char *type, const char *other_type)
{
	for (uint32_t i = 0; i < fn->arg_count; i++) {
		const struct schema_arg *a = &fn->args[i];
		if (a->words == 1 && a->out == out &&
			(!strcmp(a->type, type) || !strcmp(a->type, other_type)))
			return a->first < NO_WORD ? (uint8_t)a->first : NO_WORD;
	}
	return NO_WORD;
}

static enum call_use use_of(const struct schema_fn *fn)
{
	if (fn->launch_layout)
		return USE_LAUNCH;
	if (fn->kind == CALL_GRAPHLAUNCH || !strncmp(fn->name, "cudaGraphLaunch", 15))
		return USE_GRAPH;
	if (fn->kind == CALL_COPY || fn->kind == CALL_SET || !strcmp(fn->class, "copy") ||
		!strcmp(fn->class, "set"))
		return USE_MOVE;
	if (!strncmp(fn->name, "cuStreamCreate", 14))
		return USE_STREAM;
	if (strstr(fn->name, "StreamWaitEvent"))
		return USE_AWAIT;
	if (strstr(fn->name, "EventRecord"))
		return USE_RECORD;
	return strcmp(fn->class, "sync") ? USE_NONE : USE_SYNC;
}

static bool is_set(const struct schema_fn *fn)
{
	return fn->kind == CALL_SET || strstr(fn->name, "Memset");
}

static uint8_t direction_of(const struct schema_fn *fn)
{
	for (unsigned i = 1; i < COPY_DIRECTIONS; i++)
		if (!strcmp(fn->memory, copy_direction_name(i)))
			return (uint8_t)i;
	return strcmp(fn->memory, "Peer") ? 0 : COPY_PTOP;
}

static struct fn_use fn_use_of(const struct schema_fn *fn)
{
	const enum call_use use = fn->api == API_ALLOCATOR ? USE_NONE : use_of(fn);
	const bool apart = use == USE_MOVE && !strstr(fn->name, "Async");
	return (struct fn_use){ .use = (uint8_t)use,
		.stream_word = use == USE_LAUNCH
				       ? LAUNCH_STREAM
				       : word_of(fn, use == USE_STREAM, "CUstream", "cudaStream_t"),
		.event_word = word_of(fn, false, "CUevent", "cudaEvent_t"),
		.direction = use == USE_MOVE ? direction_of(fn) : 0,
		.is_set = is_set(fn),
		.waits = apart && !is_set(fn),
		.apart = apart,
		.per_thread = strstr(fn->name, "_ptsz") || strstr(fn->name, "_ptds") };
}

static void find_uses(struct loader *l)
{
	const struct schema *s = &l->t->schema;
	l->fns = xcalloc(s->id_count + 1, sizeof *l->fns);
	for (uint32_t id = 0; id < s->id_count; id++) {
		const struct schema_fn *fn = schema_find(s, id);
		if (fn)
			l->fns[id] = fn_use_of(fn);
	}
}

static uint64_t word_at(const struct record *r, uint8_t word)
{
	return word + RECORD_WORDS < r->words ? r->arg[word] : 0;
}

/* Handles 0 and 1 are the legacy stream, 2 the thread's own. */
static uint64_t stream_of(const struct record *r, const struct fn_use *u, uint32_t tid)
{
	if (u->stream_word == NO_WORD)
		return u->use == USE_MOVE ? 1 : 0;
	const uint64_t s = word_at(r, u->stream_word);
	if (s == 2 || (s == 0 && u->per_thread))
		return 2 | (uint64_t)tid << 8;
	return s ? s : 1;
}

static void fill_launch(struct gpu_call *c, const struct record *r)
{
	struct predicted_time p;
	struct launch_args args;
	if (r->words < RECORD_WORDS + LAUNCH_WORDS)
		return;
	c->what = r->arg[LAUNCH_FUNCTION];
	c->grid[0] = (uint32_t)r->arg[LAUNCH_GRID_XY];
	c->grid[1] = (uint32_t)(r->arg[LAUNCH_GRID_XY] >> 32);
	c->grid[2] = (uint32_t)r->arg[LAUNCH_GRID_Z_BLOCK_X];
	c->block[0] = (uint32_t)(r->arg[LAUNCH_GRID_Z_BLOCK_X] >> 32);
	c->block[1] = (uint32_t)r->arg[LAUNCH_BLOCK_YZ];
	c->block[2] = (uint32_t)(r->arg[LAUNCH_BLOCK_YZ] >> 32);
	c->shared = r->aux;
	c->plain = !(r->flags & RECORD_CLUSTER) || !word_at(r, LAUNCH_CLUSTER);
	c->predicted_ns = predicted_get(r, &p) ? p.t50_ns : 0;
	c->args_key = args_get(r, &args) ? args.key : 0;
}

static struct gpu_call call_of(
	const struct loader *l, const struct record *r, const struct fn_use *u)
{
	struct gpu_call c = { .start = r->ticks,
		.end = record_end(r),
		.outer = r->ticks,
		.process = l->buf.ref->process,
		.tid = l->buf.ref->head.tid,
		.fn = r->fn,
		.use = u->use,
		.direction = u->direction,
		.is_set = u->is_set,
		.waits = u->waits,
		.apart = u->apart };
	c.stream = stream_of(r, u, c.tid);
	c.event = u->event_word == NO_WORD ? 0 : word_at(r, u->event_word);
	if (u->use == USE_LAUNCH)
		fill_launch(&c, r);
	if (u->use == USE_GRAPH)
		c.what = word_at(r, 0);
	if (u->use == USE_STREAM) /* the flags come next, and 1 is the one that there is */
		c.is_free = word_at(r, (uint8_t)(u->stream_word + 1)) & 1;
	if (u->use == USE_MOVE)
		c.sized = schema_call_bytes(schema_find(&l->t->schema, r->fn), r, &c.bytes);
	return c;
}

static bool returns_done(const struct gpu_call *c)
{
	return c->use == USE_SYNC || c->waits;
}

/* Calls stand in the order of their ends, so one that the last was made in comes behind it: it is
 * left out, but for a wait that the inner one does not do. */
static void add(struct loader *l, struct gpu_call c)
{
	struct gpu_call *last =
		l->calls->v.n > l->thread_from ? &l->calls->v.v[l->calls->v.n - 1] : NULL;
	const bool outer = last && last->start >= c.start && last->end <= c.end;
	if (outer) {
		last->outer = c.start;
		if (!returns_done(&c) || returns_done(last))
			return;
		c.use = USE_SYNC;
		c.waits = false;
		c.start = last->end;
	}
	*array_push(&l->calls->v) = c;
}

static int take_chunk(struct loader *l, size_t chunk)
{
	int e = trace_load(l->t, chunk, &l->buf, NULL);
	if (e)
		return trace_lost(e) ? 0 : e;
	struct records it = records_of(&l->buf);
	for (const struct record *r; !e && (r = records_next(&it));) {
		const bool known = r->fn < l->t->schema.id_count;
		const struct fn_use *u = known ? &l->fns[r->fn] : NULL;
		if (u && u->use && !r->result && !(r->flags & RECORD_CAPTURED)) {
			const struct gpu_call c = call_of(l, r, u);
			add(l, c);
		}
	}
	return e;
}

int gpu_calls_load(const struct trace *t, struct gpu_calls *ret_calls)
{
	struct loader l = { .t = t, .calls = ret_calls };
	struct thread_chunks list = { 0 };
	const struct chunk_ref *before = NULL;
	*ret_calls = (struct gpu_calls){ 0 };
	find_uses(&l);
	trace_thread_chunks(t, false, &list);
	int e = 0;
	for (size_t i = 0; i < list.v.n && !e; i++) {
		const struct chunk_ref *c = &t->chunks[list.v.v[i]];
		if (!before || before->process != c->process || before->head.tid != c->head.tid)
			l.thread_from = ret_calls->v.n;
		before = c;
		e = take_chunk(&l, list.v.v[i]);
	}
	array_free(&list.v);
	chunk_buf_fini(&l.buf);
	free(l.fns);
	return e;
}
