/* Builds the index that the exporter of Kineto's JSON needs. */
#include "export/export_chrome.h"

#include <string.h>

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"
#include "memory/memory.h"
#include "trace/activity.h"
#include "trace/thread_calls.h"

#define NONE UINT32_MAX

ORDERING(range_order, struct chrome_range, ORDER(a->process, b->process), ORDER(a->r.tid, b->r.tid),
	ORDER(a->r.ticks, b->r.ticks), ORDER(b->r.dur, a->r.dur),
	ORDER(a->r.external, b->r.external))

static bool is_numbered(const struct chrome_range *g)
{
	return g->r.kind == RANGE_OPERATOR || g->r.kind == RANGE_ANNOTATION;
}

static bool same_thread(const struct chrome_range *a, const struct chrome_range *b)
{
	return a->process == b->process && a->r.tid == b->r.tid;
}

static void find_parents(struct chrome_index *n)
{
	uint32_t top = NONE, python = NONE;
	for (size_t i = 0; i < n->ranges.n; i++) {
		struct chrome_range *g = &n->ranges.v[i];
		const bool is_python = g->r.kind == RANGE_PYTHON;
		if (top != NONE && !same_thread(&n->ranges.v[top], g))
			top = NONE;
		if (python != NONE && !same_thread(&n->ranges.v[python], g))
			python = NONE;
		while (top != NONE && range_end(&n->ranges.v[top].r) <= g->r.ticks)
			top = n->ranges.v[top].parent;
		while (python != NONE && range_end(&n->ranges.v[python].r) <= g->r.ticks)
			python = n->ranges.v[python].caller;
		expect((top == NONE || top < i) && (python == NONE || python < i),
			"ranges inside come later");
		g->parent = top;
		g->caller = is_python ? python : NONE;
		if (is_numbered(g))
			top = (uint32_t)i;
		else if (is_python)
			python = (uint32_t)i;
	}
}

/* Readers find the operator of a kernel by its number, so each has one. */
static void number_ranges(struct chrome_index *n)
{
	uint64_t most = 0;
	for (size_t i = 0; i < n->ranges.n; i++)
		if (n->ranges.v[i].r.valid & RANGE_HAS_EXTERNAL && n->ranges.v[i].r.external > most)
			most = n->ranges.v[i].r.external;
	for (size_t i = 0; i < n->ranges.n; i++)
		if (!(n->ranges.v[i].r.valid & RANGE_HAS_EXTERNAL))
			n->ranges.v[i].r.external = ++most;
}

static int take_ranges(struct chrome_index *n, const struct trace *t)
{
	struct cursor at = { .t = t };
	for (struct range r; trace_next_range(&at, &r);)
		*array_push(&n->ranges) =
			(struct chrome_range){ .r = r, .process = at.ref->process, .parent = NONE };
	return at.error;
}

/* The last range that began by then, of the thread or of those before it; NONE. */
static uint32_t last_begun(
	const struct chrome_index *n, uint32_t process, uint32_t tid, uint64_t ticks)
{
	const struct chrome_range key = { .process = process,
		.r = { .tid = tid, .ticks = ticks, .external = UINT64_MAX } };
	const size_t low = SEARCH(i, 0, n->ranges.n, range_order(&n->ranges.v[i], &key) <= 0);
	return low ? (uint32_t)(low - 1) : NONE;
}

const struct chrome_range *chrome_range_at(
	const struct chrome_index *n, uint32_t process, uint32_t tid, uint64_t ticks)
{
	uint32_t i = last_begun(n, process, tid, ticks);
	const struct chrome_range *g = i == NONE ? NULL : &n->ranges.v[i];
	if (!g || g->process != process || g->r.tid != tid)
		return NULL;
	while (i != NONE &&
		(!is_numbered(&n->ranges.v[i]) || range_end(&n->ranges.v[i].r) <= ticks))
		i = n->ranges.v[i].parent;
	return i == NONE ? NULL : &n->ranges.v[i];
}

bool chrome_is_backward(struct export *x, const struct chrome_range *g)
{
	static const char engine[] = "autograd::engine::evaluate_function";
	x->process = g->process;
	const char *args =
		g->r.args ? strstr(export_string(x, g->r.args), "\"Fwd thread id\":") : NULL;
	if (args)
		return args[16] != '0';
	return !strncmp(export_string(x, g->r.name), engine, sizeof engine - 1);
}

struct pairing {
	struct map forward; /* process, sequence number: into ranges */
	struct map pairs;   /* the same: into pairs */
};

/* The last of the operators with one number makes the step back necessary. */
static void take_forward(struct chrome_index *n, struct pairing *p, uint32_t i)
{
	const struct chrome_range *g = &n->ranges.v[i];
	uint32_t *last = map_get(&p->forward, MAP_KEY(g->process, g->r.sequence));
	if (*last == MAP_NONE || n->ranges.v[*last].r.ticks <= g->r.ticks)
		*last = i;
}

/* The first operator of the backward pass, which is the outermost. */
static void take_backward(struct chrome_index *n, struct pairing *p, uint32_t i)
{
	const struct chrome_range *g = &n->ranges.v[i];
	const struct map_key key = MAP_KEY(g->process, g->r.sequence);
	const uint32_t forward = map_find(&p->forward, key);
	uint32_t *pair = forward == MAP_NONE ? NULL : map_get(&p->pairs, key);
	if (forward == MAP_NONE)
		return;
	if (pair && *pair != MAP_NONE) {
		uint32_t *first = &n->pairs.v[*pair].backward;
		*first = g->r.ticks < n->ranges.v[*first].r.ticks ? i : *first;
		return;
	}
	expect(forward < n->ranges.n && forward != i, "a step back is of another operator");
	*array_push(&n->pairs) = (struct chrome_pair){ forward, i };
	*pair = (uint32_t)(n->pairs.n - 1);
}

static void pair_up(struct chrome_index *n, struct export *x)
{
	struct pairing p = { 0 };
	for (int backward = 0; backward < 2; backward++) {
		for (size_t i = 0; i < n->ranges.n; i++) {
			const struct chrome_range *g = &n->ranges.v[i];
			if (g->r.kind != RANGE_OPERATOR || !(g->r.valid & RANGE_HAS_SEQUENCE) ||
				chrome_is_backward(x, g) != backward)
				continue;
			if (backward)
				take_backward(n, &p, (uint32_t)i);
			else
				take_forward(n, &p, (uint32_t)i);
		}
	}
	map_fini(&p.forward, &p.pairs);
}

static struct map_key call_key(const struct chunk_ref *c, uint64_t ticks, uint16_t fn)
{
	return MAP_KEY(c->process, c->head.tid, ticks, fn);
}

/* The outermost call that is being looked at, of a thread. */
struct outer_call {
	uint64_t ticks;
	uint16_t fn;
	bool there;
};

static void add_outer(struct chrome_index *n, const struct chunk_ref *c,
	const struct outer_call *outer, uint32_t link)
{
	uint32_t *to = map_get(&n->outer, call_key(c, outer->ticks, outer->fn));
	uint32_t *back = map_get(&n->asked, MAP_KEY(link));
	uint64_t *ticks = array_push(&n->calls);
	*to = link;
	*back = (uint32_t)(n->calls.n - 1);
	*ticks = outer->ticks;
}

static void look_at_call(struct chrome_index *n, struct export *x, const struct chunk_ref *c,
	const struct record *r, struct outer_call *outer)
{
	const struct schema_fn *fn = schema_find(&x->trace->schema, r->fn);
	if (!fn)
		return;
	if (!outer->there || r->ticks < outer->ticks)
		*outer = (struct outer_call){ r->ticks, r->fn, fn->api == API_RUNTIME };
	if (!outer->there || (outer->ticks == r->ticks && outer->fn == r->fn))
		return;
	const struct call_link *link = export_link_of(x, c->process, c->head.tid, r);
	if (link)
		add_outer(n, c, outer, (uint32_t)(link - x->links.v.v));
}

static int find_outer(struct chrome_index *n, struct export *x)
{
	struct thread_calls c;
	struct outer_call outer = { 0 };
	thread_calls_init(&c, x->trace);
	int e;
	while ((e = thread_calls_next(&c)) > 0) {
		if (c.new_thread)
			outer = (struct outer_call){ 0 };
		for (size_t i = c.calls.n; i-- > 0;)
			look_at_call(n, x, c.buf.ref, c.calls.v[i], &outer);
	}
	thread_calls_fini(&c);
	return e;
}

const struct call_link *chrome_link_of(
	const struct chrome_index *n, const struct export *x, const struct export_call *c)
{
	const uint32_t i = map_find(&n->outer, call_key(c->chunk, c->record->ticks, c->record->fn));
	if (i != MAP_NONE && expect(i < x->links.v.n, "the link of a call is one of all"))
		return &x->links.v.v[i];
	if (!c->link ||
		map_find(&n->asked, MAP_KEY((uint64_t)(c->link - x->links.v.v))) != MAP_NONE)
		return NULL;
	return c->link;
}

uint64_t chrome_issued_at(
	const struct chrome_index *n, const struct export *x, const struct call_link *link)
{
	const uint32_t i = map_find(&n->asked, MAP_KEY((uint64_t)(link - x->links.v.v)));
	expect(i == MAP_NONE || i < n->calls.n, "the call that asked is one of all");
	return i == MAP_NONE ? link->ticks : n->calls.v[i];
}

static bool number_of(const struct export_call *c, const char *name, uint64_t *ret_value)
{
	for (unsigned i = 0; i < c->fn->arg_count; i++) {
		const struct schema_arg *a = &c->fn->args[i];
		if (strcmp(a->name, name) != 0 || a->first >= c->record->words - RECORD_WORDS)
			continue;
		*ret_value = c->record->arg[a->first];
		return !(a->out && c->record->aux >> i & 1);
	}
	return false;
}

void chrome_memory_add(struct chrome_index *n, const struct export *x, const struct export_call *c)
{
	const struct schema_fn *fn = c->fn;
	const struct record *r = c->record;
	uint64_t device = 0;
	if (!fn || fn->api == API_RUNTIME || r->result || r->flags & RECORD_CAPTURED ||
		(fn->kind != CALL_ALLOC && fn->kind != CALL_FREE) ||
		(strcmp(fn->memory, "device") != 0 && strcmp(fn->memory, "managed") != 0))
		return;
	struct chrome_memory m = { .process = c->chunk->process,
		.pid = c->chunk->head.pid,
		.tid = c->chunk->head.tid,
		.is_free = fn->kind == CALL_FREE,
		.allocator = fn->api == API_ALLOCATOR,
		.seen = strcmp(fn->class, MEMORY_UNSEEN) != 0 };
	m.ticks = m.is_free ? r->ticks : record_end(r);
	if (!schema_call_pointer(fn, r, &m.pointer) || !m.pointer)
		return;
	if (m.allocator && number_of(c, "device", &device))
		m.device = (uint32_t)device;
	else if (x->meta->devices.n)
		m.device = x->meta->devices.v[0].device;
	if (m.allocator)
		m.has_reserved = number_of(c, "reserved", &m.reserved);
	if (m.is_free ? m.allocator && !number_of(c, "bytes", &m.bytes)
		      : !schema_call_bytes(fn, r, &m.bytes))
		return;
	*array_push(&n->memory) = m;
}

ORDERING(order_of_memory, struct chrome_memory, ORDER(a->ticks, b->ticks),
	ORDER(b->is_free, a->is_free), ORDER(a->pointer, b->pointer))

struct totals {
	struct map live;    /* process, address: index of the allocation */
	struct map devices; /* process, device: into total */
	ARRAY(uint64_t) total;
};

static uint64_t *total_of(struct totals *t, const struct chrome_memory *m)
{
	return MAP_ROW(&t->devices, MAP_KEY(m->process, m->device), &t->total, 0);
}

static void replay(struct chrome_index *n, struct totals *t, size_t i)
{
	struct chrome_memory *m = &n->memory.v[i];
	uint32_t *live = map_get(&t->live, MAP_KEY(m->process, m->pointer));
	expect(*live == MAP_NONE || *live < i, "what is live was allocated before");
	const struct chrome_memory *old = *live != MAP_NONE ? &n->memory.v[*live] : NULL;
	if (m->is_free && old && !m->allocator)
		m->device = old->device;
	uint64_t *total = total_of(t, m);
	if (old)
		*total -= MIN(old->bytes, *total);
	if (old && m->is_free)
		m->bytes = old->bytes;
	if (!m->is_free)
		*total += m->bytes;
	*live = m->is_free ? MAP_NONE : (uint32_t)i;
	m->total = *total;
}

void chrome_memory_finish(struct chrome_index *n)
{
	struct totals t = { 0 };
	bool allocator = false;
	size_t kept = 0;
	for (size_t i = 0; i < n->memory.n; i++)
		allocator |= n->memory.v[i].allocator;
	for (size_t i = 0; i < n->memory.n; i++)
		if (n->memory.v[i].allocator == allocator)
			n->memory.v[kept++] = n->memory.v[i];
	n->memory.n = kept;
	SORT(n->memory, order_of_memory);
	for (size_t i = 0; i < n->memory.n; i++)
		replay(n, &t, i);
	map_fini(&t.live, &t.devices);
	array_free(&t.total);
}

static bool has_runtime(const struct export *x)
{
	for (uint32_t i = 0; i < x->trace->schema.fn_count; i++)
		if (x->trace->schema.fns[i].api == API_RUNTIME)
			return true;
	return false;
}

int chrome_index_make(struct chrome_index *n, struct export *x)
{
	int e = take_ranges(n, x->trace);
	if (!e && x->links.v.n && has_runtime(x))
		e = find_outer(n, x);
	if (e)
		return e;
	SORT(n->ranges, range_order);
	find_parents(n);
	number_ranges(n);
	pair_up(n, x);
	return 0;
}

void chrome_index_fini(struct chrome_index *n)
{
	array_free(&n->ranges, &n->memory, &n->pairs, &n->calls);
	map_fini(&n->outer, &n->asked);
}
