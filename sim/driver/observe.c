/* See observe.h. */
#include "driver/observe.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/graph.h"

static void (*_Atomic observer)(const struct observed *what);
static atomic_uint last_number;
static _Thread_local uint32_t call_number;

/* Whose work is being handed over; under the lock. */
static struct {
	const struct stream *stream;
	uint32_t graph;
} scope;

__attribute__((visibility("default"))) void weir_sim_observe(
	void (*new_observer)(const struct observed *what))
{
	atomic_store(&observer, new_observer);
}

bool observe_wanted(void)
{
	return atomic_load_explicit(&observer, memory_order_relaxed) != NULL;
}

void observe_call(void)
{
	if (observe_wanted())
		call_number = atomic_fetch_add(&last_number, 1) + 1;
}

uint64_t observe_now(void)
{
	struct timespec t;

	if (!observe_wanted())
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void observe_reach(uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	if (!observe_wanted() || ns <= observe_now())
		return;
	sim_unlock();
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
	sim_lock();
}

void observe_scope(const struct stream *stream, uint32_t graph)
{
	scope.stream = stream;
	scope.graph = graph;
}

const struct stream *observe_stream(void)
{
	return scope.stream;
}

/* CUpti_ActivityMemcpyKind */
static uint32_t direction(const struct copy_region *r)
{
	static const uint32_t kinds[2][2] = { { 9, 1 }, { 2, 8 } };

	return kinds[r->src.device][r->dst.device];
}

/* CUpti_ActivityMemoryKind */
static uint32_t memory_kind(const struct place *p)
{
	return p->device ? 3 : p->pageable ? 1 : 2;
}

static void describe_kernel(struct observed *o, const struct launch *l)
{
	o->kind = OBSERVED_KERNEL;
	memcpy(o->grid, l->grid, sizeof o->grid);
	memcpy(o->block, l->block, sizeof o->block);
	o->shared_static = (uint32_t)l->function->k->shared_bytes;
	o->shared_dynamic = l->shared;
	o->registers = (uint32_t)l->function->k->registers;
	o->name = l->function->k->name;
}

static void describe(struct observed *o, const struct op *op)
{
	switch (op->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		describe_kernel(o, &op->launch);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		o->kind = OBSERVED_MEMCPY;
		o->what = direction(&op->region);
		o->from = memory_kind(&op->region.src);
		o->to = memory_kind(&op->region.dst);
		o->bytes = op->region.width * op->region.height * op->region.depth;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		o->kind = OBSERVED_MEMSET;
		o->from = 3;
		o->bytes = op->fill.width * op->fill.height * op->fill.element;
		break;
	}
}

struct observed *observe_op(const struct op *op)
{
	if (!observe_wanted() || !scope.stream || !scope.stream->obj.ctx)
		return NULL;
	struct observed *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->number = call_number;
	o->device = (uint32_t)scope.stream->obj.ctx->device;
	o->context = (uint32_t)scope.stream->obj.ctx->id;
	o->stream = (uint32_t)scope.stream->id;
	o->graph = scope.graph;
	o->graph_node = scope.graph ? (uintptr_t)op : 0;
	describe(o, op);
	if (o->kind)
		return o;
	free(o);
	return NULL;
}

void observe_done(struct observed *o, uint64_t start_ns, uint64_t end_ns)
{
	void (*tell)(const struct observed *) = atomic_load(&observer);

	o->start_ns = start_ns;
	o->end_ns = end_ns;
	if (tell)
		tell(o);
}

void observe_sync(uint32_t what, uint32_t context, uint64_t stream, uint64_t since_ns)
{
	struct observed o = {
		.kind = OBSERVED_SYNC,
		.number = call_number,
		.context = context,
		.stream = (uint32_t)stream,
		.what = what,
	};

	if (since_ns)
		observe_done(&o, since_ns, observe_now());
}
