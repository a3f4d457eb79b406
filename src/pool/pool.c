/*
 * Places and frees blocks. A block takes the front of the lowest free range that fits. A freed
 * block becomes a free range and joins its neighbours.
 *
 * Free ranges are in trees by tag. Most programs free in the order of one stream. Then everything
 * is in the first tree, `owner` is that stream's tag, and its unsettled frees are all below
 * owned_end. When another tag first asks or frees, the part below goes into the owner's tree
 * (disown()). From then on each tag frees into its own tree, and ranges join only within a tag.
 * Once everything is settled, there may be an owner again.
 */
#include "base/check.h"
#include "pool/pool_core.h"

static unsigned log2_of(uint64_t n)
{
	return 63u - (unsigned)__builtin_clzll(n);
}

static bool is_shape(const struct pool_shape *s)
{
	const uint64_t slot = s->slot_bytes;
	return slot >= 4096 && slot <= UINT64_C(1) << 30 && !(slot & (slot - 1)) &&
	       !(s->base % slot) && s->bytes && !(s->bytes % slot) && s->bytes <= POOL_MOST_BYTES &&
	       s->base <= UINT64_MAX - s->bytes && s->ranges && s->ranges <= UINT32_C(1) << 28;
}

/* Lays out the parts; returns their end. */
static uint64_t lay_out(struct pool *p, const struct pool_shape *s)
{
	const uint64_t grains = s->bytes / POOL_GRAIN;
	const unsigned hash_bits = log2_of(s->ranges) + 2;
	uint64_t at = round_up(sizeof *p, 64), words = grains;
	p->hash_shift = 64 - hash_bits;
	p->slot_shift = log2_of(s->slot_bytes / POOL_GRAIN);
	p->ranges_at = at;
	at = round_up(at + (s->ranges + 1) * sizeof(struct pool_range), 64);
	p->slots_at = at;
	at = round_up(at + (s->bytes / s->slot_bytes) * sizeof(struct pool_slot), 64);
	p->hash_at = at;
	at += sizeof(struct pool_cell) << hash_bits;
	for (unsigned l = 0; l < POOL_LEVELS; l++) {
		words = (words + 63) / 64;
		p->level_at[l] = at;
		at += words * sizeof(uint64_t);
	}
	return at;
}

size_t pool_memory(const struct pool_shape *s)
{
	struct pool p;
	return is_shape(s) ? lay_out(&p, s) : 0;
}

int pool_init(struct pool *p, const struct pool_shape *s)
{
	if (!is_shape(s))
		return -1;
	p->shape = *s;
	lay_out(p, s);
	p->fresh = 2;
	ranges_of(p)[1] = (struct pool_range){ .size = grains_of(p) };
	pool_tree_insert(p, 0, 1);
	return 0;
}

static bool record_left(const struct pool *p)
{
	return p->unused || p->fresh <= p->shape.ranges;
}

static uint32_t record_new(struct pool *p)
{
	const uint32_t i = p->unused;
	if (!i)
		return p->fresh++;
	p->unused = ranges_of(p)[i].next;
	return i;
}

/* Out of the list of all. */
static void record_drop(struct pool *p, uint32_t i)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t prev = v[i].prev, next = v[i].next;
	if (prev)
		v[prev].next = next;
	if (next)
		v[next].prev = prev;
	v[i].next = p->unused;
	p->unused = i;
}

/* A new record for the first `size` grains of one, which is the rest from now on. */
static uint32_t record_split(struct pool *p, uint32_t i, uint32_t size)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t new = record_new(p), prev = v[i].prev;
	v[new] = (struct pool_range){ .start = v[i].start, .size = size, .prev = prev, .next = i };
	if (prev)
		v[prev].next = new;
	v[i].prev = new;
	v[i].start += size;
	v[i].size -= size;
	return new;
}

static bool joins(const struct pool_range *v, uint32_t i, uint32_t tag)
{
	return i && !v[i].live && v[i].tag == tag;
}

/* The range becomes free in the tree, and one with its neighbours there. */
static void give(struct pool *p, uint32_t i, uint32_t tag)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t prev = v[i].prev, next = v[i].next;
	const bool to_prev = joins(v, prev, tag), to_next = joins(v, next, tag);
	v[i].live = false;
	if (!to_prev && !to_next) {
		pool_tree_insert(p, tag, i);
		return;
	}
	if (to_prev && to_next) {
		pool_tree_remove(p, next);
		v[i].size += v[next].size;
		record_drop(p, next);
	}
	const uint32_t to = to_prev ? prev : next;
	v[to].size += v[i].size;
	if (!to_prev)
		v[next].start = v[i].start;
	record_drop(p, i);
	pool_tree_resized(p, to);
}

/* The owner's ranges go into a tree of their own. */
static void disown(struct pool *p)
{
	struct pool_range *v = ranges_of(p);
	const uint32_t owner = p->owner, end = p->owned_end;
	uint32_t i;
	p->owner = 0;
	while ((i = pool_tree_lowest(p, 0)) && v[i].start < end) {
		uint32_t part = i;
		if (v[i].start + v[i].size > end && record_left(p)) {
			part = record_split(p, i, end - v[i].start);
			pool_tree_resized(p, i);
		} else {
			pool_tree_remove(p, i);
		}
		pool_tree_insert(p, owner, part);
	}
}

static uint32_t lower(const struct pool *p, uint32_t a, uint32_t b)
{
	const struct pool_range *v = ranges_of(p);
	if (!a || !b)
		return a ? a : b;
	return v[a].start < v[b].start ? a : b;
}

static uint32_t find_room(struct pool *p, uint32_t size, uint32_t tag)
{
	if (p->owner && p->owner != tag)
		disown(p);
	const uint32_t i = pool_tree_fit(p, 0, size);
	return p->tagged && tag ? lower(p, i, pool_tree_fit(p, tag, size)) : i;
}

/* The range, or its front, as a record outside of the trees; 0 without a record left. */
static uint32_t take_front(struct pool *p, uint32_t i, uint32_t size)
{
	if (ranges_of(p)[i].size == size) {
		pool_tree_remove(p, i);
		return i;
	}
	if (!record_left(p))
		return 0;
	const uint32_t block = record_split(p, i, size);
	pool_tree_resized(p, i);
	return block;
}

static int refuse(struct pool *p)
{
	p->counters.refused++;
	return -1;
}

int pool_place(struct pool *p, uint64_t bytes, uint32_t tag, struct pool_place *ret_at)
{
	struct pool_counters *c = &p->counters;
	if (!bytes || bytes > p->shape.bytes || tag >= POOL_TAGS)
		return refuse(p);
	const uint32_t size = (uint32_t)((bytes + POOL_GRAIN - 1) / POOL_GRAIN);
	const uint32_t from = find_room(p, size, tag);
	const uint32_t i = from ? take_front(p, from, size) : 0;
	if (!i)
		return refuse(p);
	struct pool_range *b = &ranges_of(p)[i];
	b->live = true;
	b->tag = (uint8_t)tag;
	b->slack = (uint16_t)((uint64_t)size * POOL_GRAIN - bytes);
	pool_block_add(p, i);
	*ret_at = (struct pool_place){
		.address = p->shape.base + (uint64_t)b->start * POOL_GRAIN,
		.bytes = bytes,
		.first_slot = b->start >> p->slot_shift,
		.n_slots =
			((b->start + size - 1) >> p->slot_shift) - (b->start >> p->slot_shift) + 1,
		.tag = tag,
	};
	pool_slots_enter(p, ret_at);
	c->placed++;
	c->live_bytes += bytes;
	c->live_bytes_peak = MAX(c->live_bytes, c->live_bytes_peak);
	return 0;
}

static uint64_t bytes_of(const struct pool_range *r)
{
	return (uint64_t)r->size * POOL_GRAIN - r->slack;
}

/* Which tree a free of the tag goes to. */
static uint32_t tree_for(struct pool *p, uint32_t tag, uint32_t end)
{
	if (!tag)
		return 0;
	p->counters.unsettled |= UINT64_C(1) << tag;
	if (!p->owner && !p->tagged) {
		p->owner = tag;
		p->owned_end = 0;
	}
	if (p->owner && p->owner != tag)
		disown(p);
	if (p->owner && end > p->owned_end)
		p->owned_end = end;
	return p->owner ? 0 : tag;
}

int pool_free(struct pool *p, uint64_t address, uint32_t tag)
{
	const uint64_t offset = address - p->shape.base;
	if (offset >= p->shape.bytes || offset % POOL_GRAIN || tag >= POOL_TAGS)
		return -1;
	const uint32_t i = pool_block_take(p, (uint32_t)(offset / POOL_GRAIN));
	if (!i)
		return -1;
	const struct pool_range *b = &ranges_of(p)[i];
	p->counters.live_bytes -= bytes_of(b);
	p->counters.freed++;
	pool_slots_leave(p, b->start, b->size, tag);
	give(p, i, tree_for(p, tag, b->start + b->size));
	return 0;
}

/* Under its own tag: what it was taken from may not have been settled. */
void pool_undo(struct pool *p, const struct pool_place *at)
{
	if (pool_free(p, at->address, at->tag))
		return;
	p->counters.placed--;
	p->counters.freed--;
}

void pool_share(struct pool *p, uint32_t tag)
{
	uint32_t i;
	if (tag >= POOL_TAGS || !(p->counters.unsettled & UINT64_C(1) << tag))
		return;
	p->counters.unsettled &= ~(UINT64_C(1) << tag);
	if (p->owner == tag)
		p->owner = 0;
	while ((i = p->roots[tag])) {
		pool_tree_remove(p, i);
		give(p, i, 0);
	}
}

void pool_reached(struct pool *p, uint32_t tag, uint64_t when)
{
	if (tag >= POOL_TAGS || when <= p->settled_at[tag] || when > p->clock)
		return;
	/* Nothing of it is left: slots that others have freed in since need not wait for it. */
	p->settled_at[tag] = when < p->freed_at[tag] ? when : p->clock;
	pool_slots_settle(p);
}

void pool_settle(struct pool *p, uint32_t tag)
{
	pool_share(p, tag);
	pool_reached(p, tag, p->clock);
}

bool pool_find(const struct pool *p, uint64_t address, struct pool_block *ret_block)
{
	const uint64_t offset = address - p->shape.base;
	if (offset >= p->shape.bytes)
		return false;
	const uint32_t grain = (uint32_t)(offset / POOL_GRAIN), i = pool_block_around(p, grain);
	const struct pool_range *b = &ranges_of(p)[i];
	if (!i || grain - b->start >= b->size)
		return false;
	*ret_block = (struct pool_block){
		.address = p->shape.base + (uint64_t)b->start * POOL_GRAIN,
		.bytes = bytes_of(b),
		.tag = b->tag,
	};
	return true;
}
