/*
 * Collects the allocations to replay: device memory of the process that allocated most often. It
 * takes the requests to an allocator above CUDA if the recording has them, and otherwise calls of
 * the driver. It leaves out a free without its allocation, and an allocation over a live block ends
 * that block.
 */
#include "allocator/allocator.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "memory/memory.h"
#include "model/gather.h"

#define BYTES_MOST (UINT64_C(1) << 47) /* of a block: no processor has more addresses */

struct live { /* a block, by its address */
	uint32_t block;
	uint64_t bytes;
	uint32_t stream;
};

struct reading {
	const struct report *r;
	struct alloc_trace *t;
	uint32_t process;
	uint64_t first_ticks;
	uint64_t live_bytes, live_blocks;
	struct map streams, by_address;
	ARRAY(struct live) live; /* a row for each address; block MAP_NONE: nothing is live there */
};

static bool is_framework(const struct report *r, const struct memory_op *op)
{
	return !schema_is_call(&r->trace->schema, op->fn_id);
}

static bool is_wanted(const struct reading *g, const struct memory_op *op)
{
	return op->process == g->process && is_framework(g->r, op) == g->t->framework &&
	       (op->free || op->kind == MEMORY_DEVICE);
}

static void choose(struct reading *g, const struct memory_list *lists, unsigned count)
{
	const size_t n = g->r->trace->processes.n;
	uint64_t *allocs[2] = { xcalloc(n + 1, sizeof(uint64_t)),
		xcalloc(n + 1, sizeof(uint64_t)) };
	uint64_t most = 0;
	for (unsigned l = 0; l < count; l++)
		for (size_t i = 0; i < lists[l].count; i++) {
			const struct memory_op *op = &lists[l].ops[i];
			const bool framework = is_framework(g->r, op);
			if (op->free || op->kind != MEMORY_DEVICE || op->process >= n)
				continue;
			allocs[framework][op->process]++;
			g->t->framework = g->t->framework || framework;
		}
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t here = allocs[g->t->framework][i];
		g->t->processes += here != 0;
		if (here > most) {
			most = here;
			g->process = i;
		}
	}
	free_all(allocs[0], allocs[1]);
}

/* The `source` of allocations becomes the number of the stream. */
static void number_streams(struct reading *g, struct memory_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct memory_op *op = &l->ops[i];
		if (op->free || !is_wanted(g, op))
			continue;
		const struct memory_source *s = &l->sources[op->source];
		op->source = map_number(&g->streams, MAP_KEY(s->has_stream ? s->stream : 0));
	}
}

static void put_event(
	struct reading *g, const struct memory_op *op, const struct live *b, bool is_free)
{
	struct alloc_event *e = array_push(&g->t->events);
	if (g->t->events.n == 1)
		g->first_ticks = op->ticks;
	*e = (struct alloc_event){ .ns = trace_span_ns(g->r->trace, op->ticks - g->first_ticks),
		.bytes = b->bytes,
		.block = b->block,
		.stream = b->stream,
		.free = is_free };
}

static void put_free(struct reading *g, const struct memory_op *op, struct live *b)
{
	if (b->block == MAP_NONE)
		return;
	put_event(g, op, b, true);
	g->live_bytes -= b->bytes;
	g->live_blocks--;
	b->block = MAP_NONE;
}

static int put_alloc(struct reading *g, const struct memory_op *op, struct live *b)
{
	struct alloc_trace *t = g->t;
	put_free(g, op, b);
	if (!op->bytes || op->bytes > BYTES_MOST || t->blocks == MAP_NONE)
		return 0;
	if (__builtin_add_overflow(g->live_bytes, op->bytes, &g->live_bytes))
		return -EOVERFLOW;
	*b = (struct live){ t->blocks++, op->bytes, op->source };
	g->live_blocks++;
	t->live_peak = MAX(g->live_bytes, t->live_peak);
	t->live_most = MAX(g->live_blocks, t->live_most);
	put_event(g, op, b, false);
	return 0;
}

static int take(struct reading *g, const struct memory_op *op)
{
	if (!is_wanted(g, op))
		return 0;
	if (op->free && map_find(&g->by_address, MAP_KEY(op->pointer)) == MAP_NONE)
		return 0;
	struct live *b = MAP_ROW(
		&g->by_address, MAP_KEY(op->pointer), &g->live, (struct live){ .block = MAP_NONE });
	if (!op->free)
		return put_alloc(g, op, b);
	put_free(g, op, b);
	return 0;
}

static int read_lists(struct reading *g, struct memory_list *lists, unsigned count)
{
	const struct memory_op *op;
	choose(g, lists, count);
	for (unsigned i = 0; i < count; i++)
		number_streams(g, &lists[i]);
	memory_sort(lists, count);
	int e = 0;
	while (!e && (op = memory_next(lists, count)))
		e = take(g, op);
	g->t->streams = (uint32_t)g->streams.taken;
	return e;
}

int alloc_trace_read(const struct report *r, struct alloc_trace *ret_trace, struct error *err)
{
	struct tallies tallies = { 0 };
	struct memory_list lists[MEMORY_LISTS];
	struct reading g = { .r = r, .t = ret_trace };
	*ret_trace = (struct alloc_trace){ 0 };
	int e = tallies_gather(&tallies, r->trace, &r->meta, FACET(MEMORY), 0);
	if (!e)
		e = read_lists(&g, lists, tallies_memory(&tallies, lists));
	if (g.process < r->trace->processes.n)
		ret_trace->pid = r->trace->processes.v[g.process].pid;
	tallies_fini(&tallies);
	map_fini(&g.streams, &g.by_address);
	array_free(&g.live);
	if (!e)
		return 0;
	alloc_trace_free(ret_trace);
	return error_set(err, e, "the allocations can't be read: %s", strerror(-e));
}

void alloc_trace_free(struct alloc_trace *t)
{
	array_free(&t->events);
}
