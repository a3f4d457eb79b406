/*
 * From the sum of the tallies to the rows of a report: calls, failures, copies, kernels, threads.
 */
#include "model/report.h"

#include <inttypes.h>

#include "base/atomic.h"
#include "base/expect.h"
#include "base/sort.h"
#include "model/demangle.h"
#include "model/tally.h"

const char range_span_meaning[] =
	"Span on device: from the start of the first GPU activity that was launched inside to the end of "
	"the last,\nidle gaps included; the range may be over on the host before.";

const char *report_fn_name(const struct report *r, uint32_t id, struct fn_name *room)
{
	const struct schema_fn *fn = schema_find(&r->trace->schema, id);
	if (fn)
		return fn->name;
	snprintf(room->text, sizeof room->text, "function %" PRIu32, id);
	return room->text;
}

static int call_order(const void *one, const void *two)
{
	const struct call_row *a = one, *b = two;
	const uint64_t all_a = call_total_known(a) ? a->total_ticks : 0;
	const uint64_t all_b = call_total_known(b) ? b->total_ticks : 0;
	return ORDER(all_b, all_a) ?: ORDER(b->count, a->count) ?: ORDER(a->id, b->id);
}

ORDERING(failure_order, struct failure_row, ORDER(b->count, a->count),
	ORDER(a->first_ticks, b->first_ticks), ORDER(a->fn_id, b->fn_id), ORDER(a->tid, b->tid))

ORDERING(kernel_row_order, struct kernel_row, ORDER(b->count, a->count),
	ORDER(b->host_ticks, a->host_ticks), strcmp(a->name, b->name))

static void total_call(struct report *r, const struct call_row *c)
{
	r->errors = sat_add(r->errors, c->errors);
	if (c->fn && c->fn->api == API_ALLOCATOR) {
		if (strcmp(c->fn->class, MEMORY_UNSEEN) != 0)
			r->allocator_events = sat_add(r->allocator_events, c->count);
		return;
	}
	r->calls = sat_add(r->calls, c->count);
	if (c->fn && c->fn->api == API_RUNTIME && strstr(c->fn->name, "GraphLaunch"))
		r->runtime_graph_launches =
			sat_add(r->runtime_graph_launches, c->count - c->errors);
	if (!c->fn || c->fn->api != API_DRIVER)
		return;
	if (c->fn->kind == CALL_LAUNCH) {
		r->launches = sat_add(r->launches, c->ok_plain);
		r->counted_launches = sat_add(r->counted_launches, c->ok_counted);
	} else if (c->fn->kind == CALL_GRAPHLAUNCH) {
		r->graph_launches = sat_add(r->graph_launches, c->ok_plain);
		r->unnamed_graphs = sat_add(r->unnamed_graphs, c->ok_counted);
	}
}

bool report_is_off(const struct report *r)
{
	for (size_t i = 0; i < r->meta.facts.n && !r->calls; i++)
		if (!strcmp(r->meta.names.v[r->meta.facts.v[i].text].text, "level off"))
			return true;
	return false;
}

/* Allocations that were only counted are in no replay. */
static void total_memory(struct report *r, const struct call_row *c)
{
	if (!c->fn || !c->ok_counted || c->fn->api != API_DRIVER)
		return;
	int k = MEMORY_KINDS - 1;
	while (k > 0 && strcmp(memory_kind_name[k], c->fn->memory) != 0)
		k--;
	struct memory_use *both[] = { &r->memory[k], k == MEMORY_HOST ? NULL : &r->gpu_memory };
	for (int i = 0; i < 2; i++) {
		if (both[i] && (c->fn->kind == CALL_ALLOC || c->fn->kind == CALL_FREE))
			both[i]->counted = sat_add(both[i]->counted, c->ok_counted);
		if (both[i] && c->fn->kind == CALL_ALLOC)
			both[i]->allocs = sat_add(both[i]->allocs, c->ok_counted);
		else if (both[i] && c->fn->kind == CALL_FREE)
			both[i]->frees = sat_add(both[i]->frees, c->ok_counted);
	}
}

static void total_moved(struct report *r, const struct call_row *c)
{
	if (!c->fn || !c->ok_plain || (c->fn->kind != CALL_COPY && c->fn->kind != CALL_SET))
		return;
	struct moved_row *to = &r->sets;
	if (c->fn->kind == CALL_COPY) {
		size_t i = 0;
		while (i < r->copies.n && strcmp(r->copies.v[i].direction, c->fn->memory) != 0)
			i++;
		if (i == r->copies.n)
			*array_push(&r->copies) = (struct moved_row){ .direction = c->fn->memory };
		to = &r->copies.v[i];
	}
	to->count = sat_add(to->count, c->ok_plain);
	to->sized = sat_add(to->sized, c->sized);
	to->bytes = sat_add(to->bytes, c->bytes);
}

/* An allocator's event has no row among the calls, nor has a function that was only called before
 * the part. */
static void drop_allocators(struct report *r)
{
	size_t n = 0;
	array_each(struct call_row, c, r->call_rows) {
		if (!c->count || (c->fn && c->fn->api == API_ALLOCATOR))
			hist_fini(&c->hist);
		else
			r->call_rows.v[n++] = *c;
	}
	r->call_rows.n = n;
}

/* The rows move from the tally to the report, histograms with them. */
static void take_calls(struct report *r, struct tally *t)
{
	memcpy(&r->call_rows, &t->calls, sizeof r->call_rows);
	memset(&t->calls, 0, sizeof t->calls);
	array_each(const struct call_row, c, r->call_rows) {
		total_call(r, c);
		total_memory(r, c);
		total_moved(r, c);
		r->counted_errors += c->errors;
	}
	drop_allocators(r);
	for (size_t i = 0; i < t->failures.n; i++)
		r->counted_errors -= t->failures.v[i].count;
	SORT(r->call_rows, call_order);
	SORT(r->copies, moved_order);
	memcpy(&r->failure_rows, &t->failures, sizeof r->failure_rows);
	memset(&t->failures, 0, sizeof t->failures);
	SORT(r->failure_rows, failure_order);
}

struct graph_sum {
	struct report *r;
	struct tally *t;
};

static void add_graph_node(void *context, uint32_t process, uint32_t name,
	const struct graph_node *n, uint64_t launches)
{
	struct graph_sum *s = context;
	struct launch_shape shape;
	memcpy(shape.grid, n->grid, sizeof shape.grid);
	memcpy(shape.block, n->block, sizeof shape.block);
	const uint64_t kernel = name == META_NONE ? KERNEL_UNNAMED | n->function : name;
	s->r->launches = sat_add(s->r->launches, launches);
	tally_shape(s->t, kernel, &shape, launches, 0, true);
}

static char *kernel_name(const struct report *r, uint64_t kernel)
{
	if (!(kernel & KERNEL_UNNAMED))
		return demangle(r->meta.names.v[kernel].text);
	return xasprintf("(unknown kernel 0x%" PRIx64 ")", (uint64_t)(kernel & ~KERNEL_UNNAMED));
}

static uint32_t kernel_row_of(struct report *r, struct map *rows, uint64_t kernel)
{
	expect(kernel & KERNEL_UNNAMED || kernel < r->meta.names.n,
		"a kernel's name is one of all");
	const char *mangled = kernel & KERNEL_UNNAMED ? NULL : r->meta.names.v[kernel].text;
	struct kernel_row *k = MAP_ROW(rows, MAP_KEY(kernel), &r->kernel_rows,
		(struct kernel_row){ .name = kernel_name(r, kernel),
			.mangled = mangled,
			.activity = ACTIVITY_NONE });
	return (uint32_t)(k - r->kernel_rows.v);
}

static void add_shape(struct kernel_row *k, const struct shape_row *s)
{
	k->count = sat_add(k->count, s->count);
	k->graph_count = sat_add(k->graph_count, s->graph_count);
	k->host_ticks = sat_add(k->host_ticks, s->host_ticks);
	k->shapes++;
	tally_common(&k->shape, &k->common, &s->shape, s->count);
	expect(k->common <= k->count, "the most common shape is part of all launches");
}

static bool rows_add_up(const struct report *r, const struct tally *t)
{
	uint64_t rows = 0, shapes = 0;
	for (size_t i = 0; i < r->kernel_rows.n; i++)
		rows = sat_add(rows, r->kernel_rows.v[i].count);
	for (size_t i = 0; i < t->shapes.n; i++)
		shapes = sat_add(shapes, t->shapes.v[i].count);
	return rows == shapes;
}

static void make_kernels(struct report *r, struct tally *t)
{
	struct graph_sum sum = { .r = r, .t = t };
	struct map rows = { 0 };
	meta_expand_graphs(&r->meta, t->graph_launches, add_graph_node, &sum);
	for (size_t i = 0; i < t->shapes.n; i++) {
		const uint32_t row = kernel_row_of(r, &rows, t->shapes.v[i].kernel);
		add_shape(&r->kernel_rows.v[row], &t->shapes.v[i]);
	}
	expect(rows_add_up(r, t), "the rows of kernels add up to the launches in all shapes");
	for (size_t i = 0; i < t->times.n; i++) {
		const uint32_t row = kernel_row_of(r, &rows, t->times.v[i].kernel);
		hist_merge(&r->kernel_rows.v[row].hist, &t->times.v[i].hist);
	}
	map_fini(&rows);
	SORT(r->kernel_rows, kernel_row_order);
}

static struct thread_row *thread_of(
	struct report *r, struct map *index, uint32_t number, const struct chunk_ref *c)
{
	return MAP_ROW(index, MAP_KEY(number), &r->threads,
		(struct thread_row){
			.process = c->process, .tid = c->head.tid, .sums.number = number });
}

/* By thread id: the row of the newest thread that has it. */
static void index_newest(const struct report *r, struct map *ids)
{
	for (size_t i = 0; i < r->threads.n; i++) {
		const struct thread_row *t = &r->threads.v[i];
		uint32_t *row = map_get(ids, MAP_KEY(t->process, t->tid));
		if (*row == MAP_NONE || r->threads.v[*row].sums.number < t->sums.number)
			*row = (uint32_t)i;
	}
}

/* The call that each thread was in, as its account says. */
static int find_inflight(struct report *r, const struct map *index)
{
	struct cursor at = { .t = r->trace };
	for (struct thread_account a; trace_next_account(&at, &a);) {
		if (!a.inflight_fn)
			continue;
		const uint32_t i = map_find(index, MAP_KEY(at.ref->process, a.tid));
		if (i == MAP_NONE || !expect(i < r->threads.n, "a thread has its row"))
			continue;
		r->threads.v[i].inflight_fn = a.inflight_fn;
		r->threads.v[i].inflight_ticks = a.inflight_ticks;
	}
	return at.error;
}

/* A chunk of its own: the newest has its name and the call that it was in. */
static void see_thread(const struct report *r, struct thread_row *row, const struct chunk_ref *c)
{
	const bool is_newest = c->head.kind == CHUNK_EVENTS && c->head.seq >= row->last_seq;
	if (is_newest || !*row->name)
		memcpy(row->name, c->head.thread, sizeof row->name);
	if (!is_newest)
		return;
	row->last_seq = c->head.seq;
	if (load_relaxed(&r->trace->header.optional) & FEATURE_ACCOUNTS)
		return;
	row->inflight_fn = c->head.next_free;
	row->inflight_ticks = c->head.identity;
}

static int find_threads(struct report *r, const struct tally *t)
{
	struct map index = { 0 }, ids = { 0 };
	for (size_t i = 0; i < r->trace->chunk_count; i++) {
		const struct chunk_ref *c = &r->trace->chunks[i];
		if (t->thread_numbers[i] == MAP_NONE)
			continue;
		struct thread_row *row = thread_of(r, &index, t->thread_numbers[i], c);
		see_thread(r, row, c);
	}
	array_each(const struct thread_sums, s, t->threads) {
		const uint32_t row = map_find(&index, MAP_KEY(s->number));
		if (row != MAP_NONE && expect(row < r->threads.n, "a thread has its row"))
			r->threads.v[row].sums = *s;
	}
	index_newest(r, &ids);
	int e = find_inflight(r, &ids);
	map_fini(&index, &ids);
	return e;
}

static uint64_t wall_ns(const struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	if (h->end.mono_ns > h->start.mono_ns)
		return h->end.mono_ns - h->start.mono_ns;
	return r->last_ticks ? trace_since_ns(r->trace, r->last_ticks) : 0;
}

static uint64_t off_ns(const struct report *r)
{
	const struct trace_header *h = &r->trace->header;
	const uint64_t end = h->start.mono_ns + r->wall_ns;
	const uint64_t last = load_relaxed(&h->off_since_ns) && load_relaxed(&h->off_since_ns) < end
				      ? end - load_relaxed(&h->off_since_ns)
				      : 0;
	const uint64_t ns = sat_add(load_relaxed(&h->off_ns), last);
	return ns < r->wall_ns ? ns : r->wall_ns;
}

static uint64_t clock_residual(const struct trace *t)
{
	uint64_t most = 0;
	const struct clock_pair *ends[] = { &t->header.start, &t->header.end };
	for (size_t i = 0; i < t->chunk_count * 2 + 2; i++) {
		const struct chunk_header *c = i < 2 ? NULL : &t->chunks[i / 2 - 1].head;
		const struct clock_pair *p = i < 2 ? ends[i] : i % 2 ? &c->last : &c->open;
		const uint64_t off = clock_fit_error_ns(&t->clock, p);
		most = MAX(off, most);
	}
	return most;
}

static void check_rows(const struct report *r)
{
	uint64_t calls = 0, errors = 0;
	array_each(const struct call_row, c, r->call_rows) {
		calls = sat_add(calls, c->count);
		errors = sat_add(errors, c->errors);
		expect(c->summed <= c->count, "the calls whose time is added up are part of all");
	}
	expect(calls == r->calls, "the rows of calls add up to all calls");
	expect(errors <= r->errors, "the errors of calls are part of all");
}

int calls_make(struct report *r, struct tally *t)
{
	r->torn = t->torn + r->meta.torn;
	r->damaged_chunks = t->damaged_chunks;
	r->lost = sat_add(load_relaxed(&r->trace->header.lost), t->torn);
	r->first_ticks = t->first_ticks;
	r->last_ticks = t->last_ticks;
	r->wall_ns = wall_ns(r);
	r->off_ns = off_ns(r);
	expect(r->off_ns <= r->wall_ns, "recording is off for the wall time at most");
	r->clock_residual_ns = clock_residual(r->trace);
	take_calls(r, t);
	check_rows(r);
	return accounts_balance(r->trace, r->calls, r->lost, &r->accounts);
}

void calls_free(struct report *r)
{
	for (size_t i = 0; i < r->call_rows.n; i++)
		hist_fini(&r->call_rows.v[i].hist);
	array_free(&r->call_rows, &r->failure_rows, &r->copies);
}

int kernels_make(struct report *r, struct tally *t)
{
	r->unnamed_graphs = sat_add(r->unnamed_graphs, t->unnamed_graphs);
	make_kernels(r, t);
	return 0;
}

void kernels_free(struct report *r)
{
	for (size_t i = 0; i < r->kernel_rows.n; i++) {
		free(r->kernel_rows.v[i].name);
		hist_fini(&r->kernel_rows.v[i].hist);
	}
	array_free(&r->kernel_rows);
}

int threads_make(struct report *r, struct tally *t)
{
	return find_threads(r, t);
}

void threads_free(struct report *r)
{
	array_free(&r->threads);
}

int waits_make(struct report *r, struct tally *t)
{
	if (t->waits.n >= NESTED_NONE)
		return -EOVERFLOW;
	array_reserve(&r->waits, t->waits.n);
	for (size_t i = 0; i < t->waits.n; i++)
		*array_push(&r->waits) = t->waits.v[i];
	NESTED(r->waits);
	return 0;
}

void waits_free(struct report *r)
{
	array_free(&r->waits);
}

int streams_make(struct report *r, struct tally *t)
{
	r->streams = t->streams.taken;
	r->contexts = t->contexts.taken;
	return 0;
}
