/*
 * The driver's design: each allocation is a call of cuMemAlloc and each free one of cuMemFree.
 * Blocks of 2 MiB or more have their own pages of 2 MiB. Smaller blocks share pages, which go back
 * when they are empty, so this is the driver's least possible memory.
 */
#include "allocator/allocator.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "pool/pool.h"
#include "palette.h"

#define PAGE (UINT64_C(1) << 21)

/* With no tags, free ranges are no more than blocks; and in twice as many pages as blocks one of
 * the gaps is a page at least. */
static void *open_pages(const struct alloc_trace *t, const struct alloc_setup *setup)
{
	const uint64_t most = t->live_most < UINT32_C(1) << 27 ? t->live_most : UINT32_C(1) << 27;
	const uint64_t limit = POOL_MOST_BYTES / PAGE, pages = 2 * most + 2;
	const struct pool_shape shape = { 0, (pages < limit ? pages : limit) * PAGE, PAGE,
		(uint32_t)most * 2 + 64 };
	return alloc_pool_new(t, &shape);
}

static int place(void *state, const struct alloc_event *e, struct alloc_meter *m)
{
	struct alloc_pool *s = state;
	struct pool_place at;
	meter_calls(m, CALL_MEM_ALLOC, e->bytes, 1);
	if (e->bytes >= PAGE) {
		meter_reserve(m, round_up(e->bytes, PAGE));
		return 0;
	}
	if (pool_place(s->pool, e->bytes, 0, &at))
		return -ENOSPC;
	for (uint32_t slot = at.first_slot; pool_next_missing(s->pool, &at, &slot);) {
		meter_reserve(m, PAGE);
		pool_back(s->pool, slot, 1);
	}
	s->addresses[e->block] = at.address;
	return 0;
}

static int release(void *state, const struct alloc_event *e, struct alloc_meter *m)
{
	struct alloc_pool *s = state;
	uint32_t slot;
	uint64_t handle;
	if (e->bytes >= PAGE) {
		meter_give_back(m, round_up(e->bytes, PAGE));
		return 0;
	}
	const int failed = pool_free(s->pool, s->addresses[e->block], 0);
	while (pool_take_idle(s->pool, &slot, &handle))
		meter_give_back(m, PAGE);
	return failed ? -EINVAL : 0;
}

const struct alloc_design design_driver = { "driver", LINE_PURPLE, open_pages, place, release, NULL,
	alloc_pool_free };
