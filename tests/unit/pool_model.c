/* See pool_model.h. */
#include "pool_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition, what)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			broken(what, __LINE__);                                                    \
	} while (0)

static void broken(const char *what, int line)
{
	fprintf(stderr, "pool_model.c:%d: does not hold: %s\n", line, what);
	abort();
}

static void *zeroed(size_t n, size_t each)
{
	void *p = calloc(n, each);
	MUST(p, "there is memory");
	return p;
}

struct pool_model *model_new(const struct pool_shape *shape, uint64_t handles)
{
	struct pool_model *m = zeroed(1, sizeof *m);
	const size_t bytes = (pool_memory(shape) + 63) / 64 * 64;
	m->pool = aligned_alloc(64, bytes);
	MUST(m->pool, "there is memory for the pool");
	memset(m->pool, 0, bytes);
	MUST(!pool_init(m->pool, shape), "the shape is one");
	m->slots = (uint32_t)(shape->bytes / shape->slot_bytes);
	m->slot_grains = (uint32_t)(shape->slot_bytes / POOL_GRAIN);
	m->grains = zeroed(shape->bytes / POOL_GRAIN, 1);
	m->handles = zeroed(m->slots, sizeof *m->handles);
	m->live = zeroed(m->slots, sizeof *m->live);
	m->unsettled = zeroed(m->slots, sizeof *m->unsettled);
	m->handles_left = handles;
	return m;
}

void model_free(struct pool_model *m)
{
	array_free(&m->blocks);
	free(m->pool);
	free(m->grains);
	free(m->handles);
	free(m->live);
	free(m->unsettled);
	free(m);
}

static uint32_t grains_for(uint64_t bytes)
{
	return (uint32_t)((bytes + POOL_GRAIN - 1) / POOL_GRAIN);
}

static uint32_t grain_at(const struct pool_model *m, uint64_t address)
{
	return (uint32_t)((address - m->pool->shape.base) / POOL_GRAIN);
}

static uint32_t *count_for(struct pool_model *m, uint8_t state, uint32_t slot)
{
	return state == MODEL_LIVE ? &m->live[slot] : &m->unsettled[slot];
}

static void set_grain(struct pool_model *m, uint32_t at, uint8_t state)
{
	const uint32_t slot = at / m->slot_grains;
	const uint8_t was = m->grains[at];
	if (was)
		--*count_for(m, was, slot);
	if (state)
		++*count_for(m, state, slot);
	m->grains[at] = state;
}

static bool may_have(uint8_t state, uint32_t tag)
{
	return !state || (state != MODEL_LIVE && state == tag);
}

/* The lowest run that a block of the tag may have; UINT32_MAX. */
static uint32_t lowest_run(const struct pool_model *m, uint32_t size, uint32_t tag)
{
	const uint32_t n = m->slots * m->slot_grains;
	uint32_t run = 0;
	for (uint32_t i = 0; i < n; i++) {
		run = may_have(m->grains[i], tag) ? run + 1 : 0;
		if (run == size)
			return i + 1 - size;
	}
	return UINT32_MAX;
}

/* While tags are apart, ranges of several are not joined, and it may lie higher. */
static bool is_one_tree(const struct pool_model *m, uint32_t tag)
{
	return !m->pool->tagged && (!m->pool->owner || m->pool->owner == tag);
}

static bool record_left(const struct pool_model *m)
{
	const struct pool_counters *c = &m->pool->counters;
	return c->placed - c->freed + c->free_ranges < m->pool->shape.ranges;
}

static void take_idle(struct pool_model *m, uint64_t *ret_handle)
{
	uint32_t slot;
	MUST(pool_take_idle(m->pool, &slot, ret_handle), "an idle handle is there");
	MUST(slot < m->slots && m->handles[slot] == *ret_handle && *ret_handle,
		"a handle is taken from where it is");
	MUST(!m->live[slot], "no handle behind a live block is taken");
	MUST(!m->unsettled[slot], "no handle is taken before all frees are settled");
	m->handles[slot] = 0;
}

static bool any_idle(const struct pool_model *m)
{
	return m->pool->counters.idle_slots;
}

bool model_give_back(struct pool_model *m)
{
	uint64_t handle;
	if (!any_idle(m))
		return false;
	take_idle(m, &handle);
	m->handles_left++;
	return true;
}

static bool get_handle(struct pool_model *m, uint64_t *ret_handle)
{
	if (m->handles_left) {
		m->handles_left--;
		*ret_handle = ++m->made;
		return true;
	}
	if (!any_idle(m))
		return false;
	take_idle(m, ret_handle);
	return true;
}

static bool back_all(struct pool_model *m, const struct pool_place *at)
{
	uint32_t missing = at->missing;
	uint64_t handle;
	for (uint32_t slot = at->first_slot; pool_next_missing(m->pool, at, &slot); missing--) {
		MUST(slot - at->first_slot < at->n_slots && !m->handles[slot],
			"a slot that is missing has no handle");
		if (!get_handle(m, &handle))
			return false;
		MUST(!pool_back(m->pool, slot, handle), "a slot without a handle gets one");
		MUST(pool_back(m->pool, slot, handle) == -1, "a slot gets one handle only");
		m->handles[slot] = handle;
	}
	MUST(!missing, "the number of those missing is right");
	for (uint32_t i = 0; i < at->n_slots; i++)
		MUST(m->handles[at->first_slot + i], "each slot under a block has a handle");
	return true;
}

static void check_place(
	const struct pool_model *m, const struct pool_place *at, uint32_t tag, bool look)
{
	const uint32_t from = grain_at(m, at->address), size = grains_for(at->bytes);
	MUST(at->address % POOL_GRAIN == 0, "a block begins at a grain");
	MUST(from + size <= m->slots * m->slot_grains, "a block ends in the range");
	for (uint32_t i = from; i < from + size; i++)
		MUST(may_have(m->grains[i], tag), "a block has what is free, and for its tag");
	MUST(at->first_slot == from / m->slot_grains &&
			at->first_slot + at->n_slots - 1 == (from + size - 1) / m->slot_grains,
		"the slots of a block are those under it");
	if (look)
		MUST(from == lowest_run(m, size, tag), "a block lies as low as can be");
}

bool model_place(struct pool_model *m, uint64_t bytes, uint32_t tag, bool look)
{
	struct pool_place at;
	look = look && is_one_tree(m, tag); /* before: the last range of a tag may go */
	if (pool_place(m->pool, bytes, tag, &at)) {
		if (look && bytes && bytes <= m->pool->shape.bytes && record_left(m))
			MUST(lowest_run(m, grains_for(bytes), tag) == UINT32_MAX,
				"a block is refused where there is no room");
		return false;
	}
	check_place(m, &at, tag, look);
	if (!back_all(m, &at)) {
		const uint32_t from = grain_at(m, at.address);
		pool_undo(m->pool, &at);
		for (uint32_t i = 0; tag && i < grains_for(bytes); i++)
			set_grain(m, from + i, (uint8_t)tag);
		return false;
	}
	for (uint32_t i = 0; i < grains_for(bytes); i++)
		set_grain(m, grain_at(m, at.address) + i, MODEL_LIVE);
	struct model_block *b = array_push(&m->blocks);
	MUST(b, "there is memory for a block");
	*b = (struct model_block){ at.address, bytes, tag };
	return true;
}

static void check_block(const struct pool_model *m, const struct model_block *b, uint64_t offset)
{
	struct pool_block found;
	MUST(pool_find(m->pool, b->address + offset, &found), "a live block is found");
	MUST(found.address == b->address && found.bytes == b->bytes && found.tag == b->tag,
		"what is found is the block");
}

void model_release(struct pool_model *m, size_t block, uint32_t tag)
{
	const struct model_block b = m->blocks.v[block];
	const uint32_t from = grain_at(m, b.address);
	check_block(m, &b, b.bytes - 1);
	MUST(!pool_free(m->pool, b.address, tag), "a live block is freed");
	MUST(pool_free(m->pool, b.address, tag) == -1, "a block is freed once");
	m->blocks.v[block] = m->blocks.v[--m->blocks.n];
	for (uint32_t i = 0; i < grains_for(b.bytes); i++)
		set_grain(m, from + i, (uint8_t)tag);
}

void model_settle(struct pool_model *m, uint32_t tag)
{
	pool_settle(m->pool, tag);
	for (uint32_t slot = 0; tag && slot < m->slots; slot++)
		for (uint32_t i = 0; m->unsettled[slot] && i < m->slot_grains; i++)
			if (m->grains[slot * m->slot_grains + i] == tag)
				set_grain(m, slot * m->slot_grains + i, 0);
}

void model_ask(struct pool_model *m, uint64_t offset)
{
	const struct pool_shape *s = &m->pool->shape;
	const uint64_t address = s->base + offset;
	struct pool_block found;
	const bool is = pool_find(m->pool, address, &found);
	if (offset >= s->bytes) {
		MUST(!is && pool_free(m->pool, address, 0) == -1, "other addresses are not known");
		return;
	}
	MUST(is == (m->grains[offset / POOL_GRAIN] == MODEL_LIVE), "what is live is found");
	MUST(!is || (address >= found.address && grain_at(m, address) - grain_at(m, found.address) <
							 grains_for(found.bytes)),
		"the address is in the block");
	if (!is || address != found.address)
		MUST(pool_free(m->pool, address, 0) == -1, "only a block's beginning is freed");
	MUST(pool_free(m->pool, address, POOL_TAGS) == -1, "a tag is one");
}

void model_check(const struct pool_model *m)
{
	const struct pool_counters *c = &m->pool->counters;
	uint32_t busy = 0, backed = 0;
	uint64_t bytes = 0;
	const char *wrong = pool_check(m->pool);
	MUST(!wrong, wrong);
	for (uint32_t i = 0; i < m->slots; i++) {
		busy += m->live[i] != 0;
		backed += m->handles[i] != 0;
		MUST(!m->live[i] || m->handles[i], "what is live has a handle");
	}
	for (size_t i = 0; i < m->blocks.n; i++)
		bytes += m->blocks.v[i].bytes;
	MUST(busy == c->busy_slots && backed == c->backed_slots, "slots are counted");
	MUST(bytes == c->live_bytes, "bytes are counted");
	MUST(c->backed_slots_peak >= backed && c->live_bytes_peak >= bytes, "a peak is a peak");
}

void model_end(struct pool_model *m)
{
	const uint64_t handles = m->handles_left + m->pool->counters.backed_slots;
	while (m->blocks.n)
		model_release(m, m->blocks.n - 1, (uint32_t)(m->blocks.n % 3));
	for (uint32_t tag = 1; tag < POOL_TAGS; tag++)
		model_settle(m, tag);
	model_check(m);
	MUST(m->pool->counters.free_ranges == 1 && !m->pool->counters.live_bytes,
		"in the end all is one free range");
	MUST(m->pool->counters.idle_slots == m->pool->counters.backed_slots,
		"in the end all handles are idle");
	while (model_give_back(m))
		;
	MUST(m->handles_left == handles, "in the end all handles are given back");
	model_check(m);
}
