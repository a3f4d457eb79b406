/*
 * Finds the blocks at the peak. The replay finds the peak, and a second walk over the operations
 * finds what was live then.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"
#include "blame/blame.h"
#include "model/tally.h"
#include "stack/stacks.h"

#define ADDRESS_MOST (1ull << 57) /* no processor has more; handles may */

static struct memory_row *row_of(struct memory_rows *rows, struct map *map, uint64_t key)
{
	return MAP_ROW(map, MAP_KEY(key), rows, (struct memory_row){ .key = key });
}

static unsigned class_of(uint64_t bytes)
{
	return bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
}

uint32_t detail_stack(const struct memory_detail *d, const struct memory_op *op)
{
	if (!d->stacks || op->source >= d->sources.n)
		return STACK_NONE;
	return stacks_find(d->stacks, op->process, d->sources.v[op->source].tid, op->ticks);
}

/* The rows that a block counts in: one of calls, one of stacks where that is known, and of what is
 * on the GPU two more. */
struct rows {
	struct memory_row *v[4];
	int n;
};

static struct rows rows_of(struct memory_detail *d, const struct memory_op *op)
{
	struct rows r = { .n = op->kind == MEMORY_HOST ? 1 : 3 };
	const uint32_t stack = detail_stack(d, op);
	r.v[0] = row_of(&d->calls, &d->call_map, op->fn_id);
	if (r.n == 3) {
		r.v[1] = row_of(&d->classes, &d->class_map, class_of(op->bytes));
		r.v[2] = row_of(&d->origins, &d->origin_map, op->source);
	}
	if (stack != STACK_NONE)
		r.v[r.n++] = row_of(&d->callers, &d->caller_map, stack);
	return r;
}

void detail_alloc(struct memory_detail *d, const struct memory_op *op)
{
	const struct rows r = rows_of(d, op);
	if (d->sources.v[op->source].unseen && op->ticks <= d->first_ticks)
		d->before_bytes = sat_add(d->before_bytes, op->bytes);
	for (int i = 0; i < r.n; i++) {
		r.v[i]->allocs++;
		r.v[i]->bytes = sat_add(r.v[i]->bytes, op->bytes);
		r.v[i]->live++;
		r.v[i]->live_bytes = sat_add(r.v[i]->live_bytes, op->bytes);
	}
	unused_change(d, op, false);
}

void detail_free(struct memory_detail *d, const struct memory_op *block, uint64_t ticks)
{
	const uint64_t lifetime = ticks > block->ticks ? ticks - block->ticks : 0;
	const struct rows r = rows_of(d, block);
	for (int i = 0; i < r.n; i++) {
		struct memory_row *row = r.v[i];
		expect(row->live, "what is freed was live");
		row->freed++;
		row->lifetime_ticks = sat_add(row->lifetime_ticks, lifetime);
		row->live--;
		row->live_bytes -= block->bytes < row->live_bytes ? block->bytes : row->live_bytes;
	}
	d->matched += block->kind != MEMORY_HOST;
	unused_change(d, block, true);
}

uint32_t detail_point(const struct memory_detail *d, uint64_t ticks)
{
	if (ticks <= d->first_ticks)
		return 0;
	const __uint128_t span = (__uint128_t)(d->last_ticks - d->first_ticks) + 1;
	const __uint128_t at = (__uint128_t)(ticks - d->first_ticks) * MEMORY_POINTS / span;
	return at < MEMORY_POINTS ? (uint32_t)at : MEMORY_POINTS - 1;
}

static void move_to_point(struct memory_detail *d, const struct report *r, uint32_t point)
{
	const uint64_t gpu = r->gpu_memory.live_bytes, host = r->memory[MEMORY_HOST].live_bytes;
	expect(point < MEMORY_POINTS, "the moment is one of the timeline's");
	while (d->point < point) {
		d->points[++d->point] = (struct memory_point){
			.live = gpu, .most = gpu, .host_live = host, .host_most = host
		};
		d->most_done[d->point] = d->done;
	}
}

void detail_before(struct memory_detail *d, const struct report *r, uint32_t seq, uint64_t ticks)
{
	struct marks *m = &d->marks;
	move_to_point(d, r, detail_point(d, ticks));
	unused_advance(d, ticks, seq);
	while (m->at < m->n && m->ticks[m->at] <= ticks)
		m->least[m->at++] = r->gpu_memory.live_bytes;
}

void detail_after(struct memory_detail *d, const struct report *r, uint32_t seq, uint64_t ticks)
{
	const uint64_t gpu = r->gpu_memory.live_bytes, host = r->memory[MEMORY_HOST].live_bytes;
	struct memory_point *p = &d->points[d->point];
	struct marks *m = &d->marks;
	d->done = seq + 1ull;
	if (gpu > p->most)
		d->most_done[d->point] = d->done;
	p->live = gpu;
	p->host_live = host;
	p->most = gpu > p->most ? gpu : p->most;
	p->host_most = host > p->host_most ? host : p->host_most;
	if (m->at && gpu < m->least[m->at - 1])
		m->least[m->at - 1] = gpu;
	if (gpu > d->peak_live) {
		d->peak_live = gpu;
		d->peak_ticks = ticks;
		d->peak_seq = seq;
	}
}

void detail_begin_part(struct memory_detail *d, const struct report *r, uint32_t seq)
{
	d->points[0].live = d->points[0].most = d->peak_live = r->gpu_memory.live_bytes;
	d->points[0].host_live = d->points[0].host_most = r->memory[MEMORY_HOST].live_bytes;
	d->most_done[0] = d->done = seq;
	d->peak_ticks = d->first_ticks;
	d->before_bytes = r->gpu_memory.live_bytes;
	d->matched = 0;
	d->peak_seq = seq - 1;
}

struct peak_block {
	uint32_t operator; /* into operators */
	uint64_t bytes;
};

struct walk {
	struct report *r;
	struct touched touched;
	ARRAY(struct extent) at_peak, at_end;
	struct memory_ranges *ranges;
	struct map operator_map;
	ARRAY(struct blame) blames; /* of blocks that were live at the peak */
	ARRAY(struct peak_block) blocks;
};

static void count_operator(struct walk *w, const struct memory_op *op)
{
	struct memory_detail *d = w->r->memory_detail;
	const uint32_t at =
		ranges_at(w->ranges, op->process, d->sources.v[op->source].tid, op->ticks);
	const char *name = at == META_NONE ? NULL : w->r->meta.names.v[at].text;
	struct memory_operator *o = MAP_ROW(&w->operator_map, MAP_KEY(at), &d->operators,
		(struct memory_operator){ .name = name });
	struct blame *blame = array_push(&w->blames);
	struct peak_block *block = array_push(&w->blocks);
	*blame = (struct blame){
		.ticks = op->ticks, .process = op->process, .tid = d->sources.v[op->source].tid
	};
	*block = (struct peak_block){ (uint32_t)(o - d->operators.v), op->bytes };
	o->at_peak++;
	o->at_peak_bytes += op->bytes;
}

struct place { /* of an operator's blocks */
	uint32_t operator, module, line;
	uint64_t bytes;
};

static const char *name_at(const struct report *r, uint32_t name)
{
	return name == META_NONE ? NULL : r->meta.names.v[name].text;
}

/* The place that has most bytes of each operator's. */
static int find_places(struct walk *w)
{
	const struct report *r = w->r;
	struct memory_detail *d = r->memory_detail;
	ARRAY(struct place) places = { 0 };
	struct map map = { 0 };
	int e = blame_find(r->trace, &r->meta, w->blames.v, w->blames.n);
	for (size_t i = 0; i < w->blames.n && !e; i++) {
		const struct blame *b = &w->blames.v[i];
		const uint32_t operator= w->blocks.v[i].operator;
		struct place *p = MAP_ROW(&map, MAP_KEY(operator, b->module, b->line), &places,
			(struct place){ operator, b->module, b->line, 0 });
		p->bytes = sat_add(p->bytes, w->blocks.v[i].bytes);
	}
	for (size_t i = 0; i < places.n && !e; i++) {
		const struct place *p = &places.v[i];
		struct memory_operator *o = &d->operators.v[p->operator];
		if (o->place_bytes && p->bytes <= o->place_bytes)
			continue;
		o->place_bytes = p->bytes;
		o->module = name_at(r, p->module);
		o->line = name_at(r, p->line);
	}
	map_fini(&map);
	array_free(&places);
	return e;
}

static void add_peak(struct walk *w, const struct memory_op *op)
{
	struct memory_detail *d = w->r->memory_detail;
	if (!expect(op->source < d->sources.n, "the source of an allocation is known"))
		return;
	const struct rows r = rows_of(d, op);
	for (int i = 0; i < r.n; i++) {
		r.v[i]->at_peak++;
		r.v[i]->at_peak_bytes = sat_add(r.v[i]->at_peak_bytes, op->bytes);
	}
	if (ranges_any(w->ranges))
		count_operator(w, op);
}

#define MADE_UP_MOST 0x10000u /* no device has memory there */

static bool is_made_up(const struct memory_detail *d, const struct memory_op *op)
{
	return op->pointer <= MADE_UP_MOST && d->sources.v[op->source].unseen;
}

static void walk_alloc(struct walk *w, const struct memory_op *op, uint32_t seq)
{
	const struct memory_detail *d = w->r->memory_detail;
	const bool in_peak = d->peak_live && seq <= d->peak_seq && op->end > d->peak_seq;
	const struct extent e = { op->pointer, op->pointer + op->bytes, op->process, op->kind };
	if (in_peak && op->kind != MEMORY_HOST)
		add_peak(w, op);
	if (op->kind != MEMORY_HOST)
		stack_add(w->r->memory_detail, w->ranges, op, seq);
	if (unused_is_worst(d, op, seq))
		memory_keep_block(w->r, &w->r->memory_detail->unused.worst_blocks, op);
	if (is_made_up(d, op)) {
		struct memory_detail *to = w->r->memory_detail;
		to->nowhere_bytes = sat_add(to->nowhere_bytes, in_peak ? op->bytes : 0);
		return;
	}
	/* A handle is no address. */
	if (op->kind == MEMORY_VMM || op->pointer > ADDRESS_MOST || op->bytes > ADDRESS_MOST)
		return;
	touched_add(&w->touched, &e);
	if (in_peak)
		*array_push(&w->at_peak) = e;
	if (op->end == MEMORY_NEVER)
		*array_push(&w->at_end) = e;
}

ORDERING(operator_order, struct memory_operator, ORDER(b->at_peak_bytes, a->at_peak_bytes),
	strcmp(a->name ? a->name : "", b->name ? b->name : ""))

static int walk(struct walk *w, struct memory_list *lists, unsigned count)
{
	struct memory_detail *d = w->r->memory_detail;
	const struct memory_op *op;
	for (uint32_t seq = 0; (op = memory_next(lists, count)); seq++) {
		if (!op->free)
			walk_alloc(w, op, seq);
		if (seq == d->peak_seq)
			space_measure(w->at_peak.v, w->at_peak.n, &w->touched, d->at_peak);
	}
	memory_sort_blocks(&d->unused.worst_blocks);
	space_measure(w->at_end.v, w->at_end.n, &w->touched, d->at_end);
	int e = find_places(w);
	SORT(d->operators, operator_order);
	stack_finish(d, w->r->gpu_memory.allocated_bytes == UINT64_MAX);
	return e;
}

static int look_again(struct report *r, struct memory_list *lists, unsigned count)
{
	struct walk w = { .r = r };
	int e = r->gpu_memory.allocs ? ranges_open(r->trace, &r->meta, &w.ranges) : 0;
	e = e ? e : walk(&w, lists, count);
	ranges_close(w.ranges);
	map_fini(&w.operator_map);
	array_free(&w.blames, &w.blocks);
	touched_fini(&w.touched);
	array_free(&w.at_peak, &w.at_end);
	return e;
}

static uint32_t take_source(struct memory_detail *d, const struct memory_source *s)
{
	const struct memory_source *row =
		MAP_ROW(&d->source_map, memory_source_key(s), &d->sources, *s);
	return (uint32_t)(row - d->sources.v);
}

/* From the numbers of one worker to those of all. */
static void take_sources(struct memory_detail *d, struct memory_list *l)
{
	uint32_t *to = xcalloc(l->source_count + 1, sizeof *to);
	for (size_t i = 0; i < l->source_count; i++)
		to[i] = take_source(d, &l->sources[i]);
	for (size_t i = 0; i < l->count; i++)
		if (!l->ops[i].free)
			l->ops[i].source = to[l->ops[i].source];
	free(to);
}

static void take_vmm_sources(struct memory_detail *d, struct memory_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		l->ops[i].source =
			take_source(d, &(struct memory_source){ .process = l->ops[i].process,
					       .tid = l->ops[i].source });
}

ORDERING(bytes_order, struct memory_row, ORDER(b->bytes, a->bytes), ORDER(b->allocs, a->allocs),
	ORDER(a->key, b->key))

/* Sources are numbered as the workers met them, so ties go by what they are. */
static int source_order(const void *one, const void *two, void *sources)
{
	const struct memory_row *a = one, *b = two;
	if (a->bytes != b->bytes || a->allocs != b->allocs)
		return bytes_order(one, two);
	const struct memory_source *x = (const struct memory_source *)sources + a->key;
	const struct memory_source *y = (const struct memory_source *)sources + b->key;
	const int order = ORDER(x->process, y->process) ?: ORDER(x->tid, y->tid);
	return order ?: ORDER(x->stream, y->stream) ?: ORDER(x->pool, y->pool);
}

ORDERING(live_order, struct memory_row, ORDER(b->live_bytes, a->live_bytes),
	ORDER(b->at_peak_bytes, a->at_peak_bytes), bytes_order(one, two))

ORDERING(key_order, struct memory_row, ORDER(a->key, b->key))

static void sort_rows(struct memory_detail *d)
{
	SORT(d->calls, bytes_order);
	SORT(d->callers, live_order);
	SORT(d->classes, key_order);
	SORT_WITH(d->origins, source_order, d->sources.v);
}

/* Leaks are known when the recording saw the end and every call.  Other tools' traces may have
 * calls without arguments. */
static bool knows_leaks(const struct report *r)
{
	if (!r->trace->header.launched && !r->gpu_memory.allocs && !r->memory[MEMORY_HOST].allocs)
		return false;
	if (r->trace->header.state != TRACE_FINISHED || r->trace->parts.n || r->lost ||
		r->damaged_chunks)
		return false;
	array_each(const struct memory_row, call, r->memory_detail->calls)
		if (!schema_is_call(&r->trace->schema, (uint32_t)call->key))
			return false; /* a profiler is switched off before the program ends */
	array_each(const struct call_row, c, r->call_rows)
		if (c->fn && c->ok_counted &&
			(c->fn->kind == CALL_ALLOC || c->fn->kind == CALL_FREE || c->vmm))
			return false;
	return true;
}

/* To the end, when all operations are done: so many as blocks can live through. */
static void finish_timeline(struct report *r)
{
	struct memory_detail *d = r->memory_detail;
	move_to_point(d, r, MEMORY_POINTS - 1);
	unused_advance(d, sat_add(d->last_ticks, 1), MEMORY_NEVER);
	for (; d->marks.at < d->marks.n; d->marks.at++)
		d->marks.least[d->marks.at] = r->gpu_memory.live_bytes;
}

static int fill(struct report *r, struct memory_list *lists, unsigned count, const struct tally *t,
	struct vmm_blocks *blocks)
{
	struct memory_detail *d = r->memory_detail;
	struct memory_list again[MEMORY_LISTS];
	vmm_replay(&d->vmm, lists, count, blocks);
	for (unsigned i = 0; i < count; i++)
		take_sources(d, &lists[i]);
	lists[count] = (struct memory_list){ .ops = blocks->ops.v, .count = blocks->ops.n };
	take_vmm_sources(d, &lists[count]);
	growth_find_marks(r, lists, count + 1, t);
	memcpy(again, lists, (count + 1) * sizeof *lists);
	unused_begin(r, lists, count);
	memory_replay(r, lists, count + 1);
	finish_timeline(r);
	const int e = look_again(r, again, count + 1);
	expect(e || d->peak_live == r->gpu_memory.peak_bytes, "both ways find the same peak");
	if (!e)
		d->vmm.segments_at_peak = vmm_segments_at(lists, count, d->peak_ticks);
	return e;
}

int memory_fill(struct report *r, struct memory_list *lists, unsigned count, const struct tally *t)
{
	struct vmm_blocks blocks = { 0 };
	struct memory_detail *d = xcalloc(1, sizeof *d);
	r->memory_detail = d;
	d->stacks = r->stacks && r->stacks->samples.n ? r->stacks : NULL;
	d->first_ticks = r->first_ticks;
	d->last_ticks = r->last_ticks > r->first_ticks ? r->last_ticks : r->first_ticks;
	memory_time_fill(r, lists, count);
	int e = fill(r, lists, count, t, &blocks);
	array_free(&blocks.ops);
	unused_end(d);
	growth_finish(d);
	sort_rows(d);
	d->leaks_known = knows_leaks(r);
	free(d->marks.ticks);
	free(d->marks.least);
	d->marks = (struct marks){ 0 };
	return e;
}

void memory_free(struct memory_detail *d)
{
	if (!d)
		return;
	array_free(&d->sources, &d->calls, &d->classes, &d->origins, &d->callers, &d->operators);
	stack_free(d);
	array_free(&d->unused.worst_blocks, &d->time.calls);
	map_fini(&d->source_map, &d->call_map, &d->class_map, &d->origin_map, &d->caller_map);
	free(d);
}
