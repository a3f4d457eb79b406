/* Allocations in the order of time, for exporters: see export_memory.h. */
#include "export/export_memory.h"

#include <string.h>

#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

static void push(struct block_log *log, const struct block_event *e)
{
	*array_push(&log->events) = *e;
}

static uint64_t stream_of(const struct schema_fn *fn, const struct record *r)
{
	for (unsigned i = 0; i < fn->arg_count; i++)
		if (!strcmp(fn->args[i].type, "CUstream") && !fn->args[i].out &&
			fn->args[i].first < r->words - RECORD_WORDS)
			return r->arg[fn->args[i].first];
	return 0;
}

static void add_vmm(struct block_log *log, const struct export_call *c, struct block_event *e)
{
	const uint8_t role = memory_vmm_role(c->fn);
	struct vmm_op op;
	if (role == VMM_CREATE || role == VMM_RELEASE ||
		!memory_vmm_op(c->fn, role, c->record, &op))
		return;
	e->ticks = op.ticks;
	e->pointer = op.pointer;
	e->bytes = op.bytes;
	e->what = role == VMM_MAP       ? BLOCK_ALLOC
		  : role == VMM_UNMAP   ? BLOCK_UNMAP
		  : role == VMM_RESERVE ? SEGMENT_ALLOC
					: SEGMENT_FREE;
	/* Addresses that are only reserved are no memory. */
	if (!op.segment && (role == VMM_RESERVE || role == VMM_GIVE_BACK))
		return;
	push(log, e);
}

void block_log_add(struct block_log *log, const struct export_call *c)
{
	const struct record *r = c->record;
	const struct schema_fn *fn = c->fn;
	if (!fn || fn->api == API_RUNTIME || r->flags & RECORD_CAPTURED)
		return;
	struct block_event e = { .process = c->chunk->process,
		.tid = c->chunk->head.tid,
		.range = META_NONE,
		.fn_id = r->fn,
		.stream = stream_of(fn, r) };
	if (!r->result && memory_vmm_role(fn)) {
		add_vmm(log, c, &e);
		return;
	}
	if ((fn->kind != CALL_ALLOC && fn->kind != CALL_FREE) || !strcmp(fn->memory, "host"))
		return;
	const bool is_free = fn->kind == CALL_FREE;
	if (r->result && is_free)
		return;
	e.ticks = is_free ? r->ticks : record_end(r);
	e.what = is_free ? BLOCK_FREE : r->result ? BLOCK_FAILED : BLOCK_ALLOC;
	if (!r->result && (!schema_call_pointer(fn, r, &e.pointer) || !e.pointer))
		return;
	if (!is_free && !schema_call_bytes(fn, r, &e.bytes))
		return;
	push(log, &e);
}

ORDERING(event_order, struct block_event, ORDER(a->ticks, b->ticks), ORDER(a->what, b->what),
	ORDER(a->pointer, b->pointer))

ORDERING(live_order, struct block_event *const, ORDER((*a)->process, (*b)->process),
	ORDER((*a)->pointer, (*b)->pointer),
	((*b)->what == SEGMENT_ALLOC) - ((*a)->what == SEGMENT_ALLOC))

struct player {
	struct block_log *log;
	const struct block_sink *sink;
	struct map live; /* process, address, whether it is a segment: index of its event */
};

static bool is_segment(const struct block_event *e)
{
	return e->what == SEGMENT_ALLOC || e->what == SEGMENT_FREE;
}

/* Its bytes, 0 for one that nobody began. */
static uint64_t end_block(struct player *p, const struct block_event *e, uint64_t pointer)
{
	const struct map_key key = MAP_KEY(e->process, pointer, is_segment(e));
	const uint32_t index = map_find(&p->live, key);
	if (index == MAP_NONE)
		return 0;
	struct block_event *alloc = &p->log->events.v[index];
	expect(alloc->what == (is_segment(e) ? SEGMENT_ALLOC : BLOCK_ALLOC),
		"what ends is what began at the address");
	struct block_event end = *e;
	end.pointer = pointer;
	end.bytes = alloc->bytes;
	end.what = is_segment(e) ? SEGMENT_FREE : BLOCK_FREE;
	*map_get(&p->live, key) = MAP_NONE;
	p->sink->event(p->sink->context, &end, alloc);
	return end.bytes;
}

static void begin_block(struct player *p, uint32_t index)
{
	struct block_event *e = &p->log->events.v[index];
	end_block(p, e, e->pointer);
	uint32_t *slot = map_get(&p->live, MAP_KEY(e->process, e->pointer, is_segment(e)));
	*slot = index;
	p->sink->event(p->sink->context, e, e);
}

static void unmap(struct player *p, const struct block_event *e)
{
	uint64_t bytes = 1;
	for (uint64_t done = 0; done < e->bytes && bytes; done = sat_add(done, bytes))
		bytes = end_block(p, e, e->pointer + done);
}

static void play_one(struct player *p, uint32_t index)
{
	struct block_event *e = &p->log->events.v[index];
	expect(!index || e[-1].ticks <= e->ticks, "blocks come and go in the order of time");
	switch (e->what) {
	case BLOCK_FREE:
	case SEGMENT_FREE:
		end_block(p, e, e->pointer);
		break;
	case BLOCK_UNMAP:
		unmap(p, e);
		break;
	case BLOCK_FAILED:
		p->sink->event(p->sink->context, e, e);
		break;
	default:
		begin_block(p, index);
	}
}

static void play_live(struct player *p)
{
	ARRAY(const struct block_event *) live = { 0 };
	for (size_t i = 0; i < p->live.size; i++) {
		const struct map_slot *s = &p->live.slots[i];
		if (!s->taken || s->value == MAP_NONE)
			continue;
		*array_push(&live) = &p->log->events.v[s->value];
	}
	SORT(live, live_order);
	for (size_t i = 0; i < live.n; i++)
		p->sink->live(p->sink->context, live.v[i]);
	array_free(&live);
}

static int find_operators(struct block_log *log, const struct export *x)
{
	ARRAY(struct range_query) queries = { 0 };
	bool any = trace_has(x->trace, CHUNK_RANGES);
	for (size_t i = 0; any && i < log->events.n; i++) {
		const struct block_event *e = &log->events.v[i];
		if (e->what != BLOCK_ALLOC)
			continue;
		*array_push(&queries) = (struct range_query){
			.ticks = e->ticks, .process = e->process, .tid = e->tid, .tag = (uint32_t)i
		};
	}
	const int e = any ? ranges_name(x->trace, x->meta, queries.v, queries.n, &any) : 0;
	for (size_t i = 0; i < queries.n; i++)
		expect(queries.v[i].name == META_NONE || queries.v[i].name < x->meta->names.n,
			"the name of a range is one of all");
	for (size_t i = 0; i < queries.n; i++)
		log->events.v[queries.v[i].tag].range = queries.v[i].name;
	array_free(&queries);
	return e;
}

int block_log_play(struct block_log *log, struct export *x, const struct block_sink *sink)
{
	struct player p = { .log = log, .sink = sink };
	SORT(log->events, event_order);
	const int e = find_operators(log, x);
	for (size_t i = 0; i < log->events.n && !e; i++)
		play_one(&p, (uint32_t)i);
	if (!e && sink->live)
		play_live(&p);
	map_fini(&p.live);
	return e;
}
