/*
 * The pool (src/pool) with a caller that acts like the injected library. It makes handles up to the
 * limit, then moves idle ones, and then waits for streams that hold some.
 *
 * Each stream has a tag. A free is settled for other streams a millisecond after its last use,
 * because no recording says when streams reach it.
 */
#include "allocator/allocator.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/expect.h"
#include "pool/pool.h"
#include "palette.h"

#define SETTLE_NS UINT64_C(1000000)

struct alloc_pool *alloc_pool_new(const struct alloc_trace *t, const struct pool_shape *shape)
{
	struct alloc_pool *s = xcalloc(1, sizeof *s);
	s->pool = xcalloc(1, pool_memory(shape));
	s->addresses = xcalloc(t->blocks + 1, sizeof *s->addresses);
	expect(!pool_init(s->pool, shape), "a recording makes a shape of a pool");
	return s;
}

void alloc_pool_free(void *state)
{
	struct alloc_pool *s = state;
	free_all(s->pool, s->addresses, s);
}

/* Free ranges are as many as blocks, and as many again between those of several streams. */
static struct pool_shape shape_for(const struct alloc_trace *t, uint64_t slot)
{
	const uint64_t most = POOL_MOST_BYTES / 2, ranges = t->live_most * 8 + 4096;
	const uint64_t bytes = t->live_peak < most / 16 ? t->live_peak * 16 + slot * 64 : most;
	return (struct pool_shape){ .base = UINT64_C(1) << 40,
		.bytes = round_up(bytes, slot),
		.slot_bytes = slot,
		.ranges = ranges < UINT32_C(1) << 27 ? (uint32_t)ranges : UINT32_C(1) << 27 };
}

static void *open_pool(const struct alloc_trace *t, const struct alloc_setup *setup)
{
	const struct pool_shape shape = shape_for(t, setup->handle_bytes);
	struct alloc_pool *s = alloc_pool_new(t, &shape);
	s->limit =
		setup->limit_bytes ? (uint32_t)(setup->limit_bytes / shape.slot_bytes) : UINT32_MAX;
	return s;
}

static uint32_t tag_of(const struct alloc_event *e)
{
	return 1 + e->stream % (POOL_TAGS - 1);
}

static void settle_all(struct pool *p)
{
	for (uint32_t tag = 1; tag < POOL_TAGS; tag++)
		pool_settle(p, tag);
}

/* A handle for a slot: a new one, or one from elsewhere. */
static void get_handle(struct alloc_pool *s, struct alloc_meter *m)
{
	struct pool *p = s->pool;
	const uint64_t bytes = p->shape.slot_bytes;
	uint32_t from;
	uint64_t handle;
	if (p->counters.backed_slots >= s->limit) {
		if (!p->counters.idle_slots)
			settle_all(p);
		if (pool_take_idle(p, &from, &handle)) {
			meter_calls(m, CALL_UNMAP, bytes, 1);
			return;
		}
		m->over++;
	}
	meter_calls(m, CALL_CREATE, bytes, 1);
	meter_reserve(m, bytes);
}

static int place(void *state, const struct alloc_event *e, struct alloc_meter *m)
{
	struct alloc_pool *s = state;
	struct pool *p = s->pool;
	struct pool_place at;
	if (e->ns - s->settled_ns >= SETTLE_NS) {
		settle_all(p);
		s->settled_ns = e->ns;
	}
	if (pool_place(p, e->bytes, tag_of(e), &at)) {
		settle_all(p);
		if (pool_place(p, e->bytes, tag_of(e), &at))
			return -ENOSPC;
	}
	for (uint32_t slot = at.first_slot; pool_next_missing(p, &at, &slot);) {
		get_handle(s, m);
		meter_calls(m, CALL_MAP, p->shape.slot_bytes, 1);
		meter_calls(m, CALL_ACCESS, p->shape.slot_bytes, 1);
		pool_back(p, slot, 1);
	}
	s->addresses[e->block] = at.address;
	return 0;
}

static int release(void *state, const struct alloc_event *e, struct alloc_meter *m)
{
	struct alloc_pool *s = state;
	return pool_free(s->pool, s->addresses[e->block], tag_of(e)) ? -EINVAL : 0;
}

/* A block's place does not depend on handles, so all it takes is as many as were in use at once. */
static uint64_t minimum_limit(const void *state)
{
	const struct pool *p = ((const struct alloc_pool *)state)->pool;
	return p->counters.busy_slots_peak * p->shape.slot_bytes;
}

const struct alloc_design design_pool = { "pool", LINE_BLUE, open_pool, place, release,
	minimum_limit, alloc_pool_free };
