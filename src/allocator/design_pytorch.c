/*
 * PyTorch's published allocator without options. Sizes are multiples of 512 bytes, and each stream
 * has a pool for blocks up to 1 MiB and one for larger blocks. It takes the smallest free block
 * that fits, the lowest of those, and the rest stays a block that joins free neighbours.
 *
 * The design pytorch takes segments of 2 MiB for small blocks and of 20 MiB for blocks below 10
 * MiB. Larger blocks have segments of their own size in multiples of 2 MiB. A large block wastes at
 * most 1 MiB. The design expandable (expandable_segments:True) has one segment a pool, which grows
 * by handles of 2 and 20 MiB. Neither returns memory while there is enough.
 */
#include "allocator/allocator.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/search.h"
#include "palette.h"

#define GRAIN       UINT64_C(512)
#define MIB         (UINT64_C(1) << 20)
#define SMALL_MOST  (1 * MIB)
#define SMALL_PART  (2 * MIB)
#define LARGE_PART  (20 * MIB)
#define MIDDLE_MOST (10 * MIB)
#define APART       (UINT64_C(1) << 40) /* between segments: no two are neighbours */

struct block {
	uint64_t address, size;
	uint32_t prev, next; /* in its segment; 0: none; next also chains those not used */
	bool free;
	uint32_t pool;
};

struct room { /* a free block */
	uint64_t size, address;
	uint32_t block;
};

struct heap {
	ARRAY(struct room) rooms; /* by size, then address */
	uint32_t last;            /* of an expandable one: its highest block */
};

struct state {
	bool expandable;
	ARRAY(struct block) blocks; /* the first is none */
	uint32_t unused;
	struct heap *heaps; /* two for each stream: small and large */
	uint32_t heap_count;
	uint32_t *placed; /* by the number of the allocation */
	uint64_t next_address;
};

static void close_heaps(void *state)
{
	struct state *s = state;
	for (uint32_t i = 0; i < s->heap_count; i++)
		array_free(&s->heaps[i].rooms);
	array_free(&s->blocks);
	free_all(s->heaps, s->placed, s);
}

static void *open_heaps(const struct alloc_trace *t, bool expandable)
{
	struct state *s = xcalloc(1, sizeof *s);
	s->expandable = expandable;
	s->heap_count = 2 * t->streams;
	s->heaps = xcalloc(s->heap_count + 1, sizeof *s->heaps);
	s->placed = xcalloc(t->blocks + 1, sizeof *s->placed);
	*array_push(&s->blocks) = (struct block){ 0 }; /* none */
	return s;
}

static void *open_default(const struct alloc_trace *t, const struct alloc_setup *setup)
{
	return open_heaps(t, false);
}

static void *open_expandable(const struct alloc_trace *t, const struct alloc_setup *setup)
{
	return open_heaps(t, true);
}

/* 0: there are too many. */
static uint32_t block_new(struct state *s, const struct block *b)
{
	uint32_t i = s->unused;
	if (i) {
		s->unused = s->blocks.v[i].next;
	} else {
		if (s->blocks.n >= UINT32_MAX)
			return 0;
		array_reserve(&s->blocks, 1);
		i = (uint32_t)s->blocks.n++;
	}
	s->blocks.v[i] = *b;
	return i;
}

static void block_drop(struct state *s, uint32_t i)
{
	s->blocks.v[i].next = s->unused;
	s->unused = i;
}

/* The first that is not before (size, address). */
static size_t room_at(const struct heap *h, uint64_t size, uint64_t address)
{
	const struct room *v = h->rooms.v;
	return SEARCH(i, 0, h->rooms.n,
		v[i].size < size || (v[i].size == size && v[i].address < address));
}

static void room_add(struct state *s, uint32_t block)
{
	struct block *b = &s->blocks.v[block];
	struct heap *h = &s->heaps[b->pool];
	const size_t at = room_at(h, b->size, b->address);
	array_reserve(&h->rooms, 1);
	memmove(&h->rooms.v[at + 1], &h->rooms.v[at], (h->rooms.n++ - at) * sizeof *h->rooms.v);
	h->rooms.v[at] = (struct room){ b->size, b->address, block };
	b->free = true;
}

static void room_take(struct state *s, uint32_t block)
{
	struct block *b = &s->blocks.v[block];
	struct heap *h = &s->heaps[b->pool];
	const size_t at = room_at(h, b->size, b->address);
	h->rooms.n--;
	memmove(&h->rooms.v[at], &h->rooms.v[at + 1], (h->rooms.n - at) * sizeof *h->rooms.v);
	b->free = false;
}

static uint64_t segment_bytes(uint64_t size)
{
	if (size <= SMALL_MOST)
		return SMALL_PART;
	return size < MIDDLE_MOST ? LARGE_PART : round_up(size, SMALL_PART);
}

/* A free block of at least that size that is in no list of rooms. */
static uint32_t new_segment(struct state *s, uint32_t pool, uint64_t size, struct alloc_meter *m)
{
	const uint64_t bytes = segment_bytes(size);
	meter_calls(m, CALL_MEM_ALLOC, bytes, 1);
	meter_reserve(m, bytes);
	s->next_address += APART;
	return block_new(s, &(struct block){ s->next_address, bytes, .pool = pool });
}

static uint32_t expand(struct state *s, uint32_t pool, uint64_t size, struct alloc_meter *m)
{
	struct heap *h = &s->heaps[pool];
	const uint32_t last = h->last;
	const struct block top = s->blocks.v[last];
	const uint64_t part = size <= SMALL_MOST ? SMALL_PART : LARGE_PART;
	const uint64_t bytes = round_up(size - (top.free ? top.size : 0), part);
	meter_calls(m, CALL_CREATE, part, bytes / part);
	meter_calls(m, CALL_MAP, part, bytes / part);
	meter_calls(m, CALL_ACCESS, part, bytes / part);
	meter_reserve(m, bytes);
	if (top.free) {
		room_take(s, last);
		s->blocks.v[last].size += bytes;
		return last;
	}
	h->last = block_new(
		s, &(struct block){ top.address + top.size, bytes, .prev = last, .pool = pool });
	if (last && h->last)
		s->blocks.v[last].next = h->last;
	return h->last;
}

static int split(struct state *s, uint32_t i, uint64_t size)
{
	const struct block b = s->blocks.v[i];
	const uint64_t rest = b.size - size;
	const bool small = size <= SMALL_MOST;
	if (s->expandable || small ? rest < GRAIN : rest <= SMALL_MOST)
		return 0;
	const uint32_t new = block_new(s, &(struct block){ b.address + size, rest, .prev = i,
						  .next = b.next, .pool = b.pool });
	if (!new)
		return -ENOMEM;
	if (b.next)
		s->blocks.v[b.next].prev = new;
	s->blocks.v[i].next = new;
	s->blocks.v[i].size = size;
	if (s->heaps[b.pool].last == i)
		s->heaps[b.pool].last = new;
	room_add(s, new);
	return 0;
}

static int place(void *state, const struct alloc_event *e, struct alloc_meter *m)
{
	struct state *s = state;
	const uint64_t size = round_up(e->bytes, GRAIN);
	const uint32_t pool = 2 * e->stream + (size > SMALL_MOST);
	const struct heap *h = &s->heaps[pool];
	const size_t at = room_at(h, size, 0);
	uint32_t i;
	if (at < h->rooms.n) {
		i = h->rooms.v[at].block;
		room_take(s, i);
	} else {
		i = (s->expandable ? expand : new_segment)(s, pool, size, m);
	}
	s->placed[e->block] = i;
	return i ? split(s, i, size) : -ENOMEM;
}

/* b is behind a: it goes. */
static void join(struct state *s, uint32_t a, uint32_t b)
{
	struct block *v = s->blocks.v;
	struct heap *h = &s->heaps[v[a].pool];
	v[a].size += v[b].size;
	v[a].next = v[b].next;
	if (v[b].next)
		v[v[b].next].prev = a;
	if (h->last == b)
		h->last = a;
	block_drop(s, b);
}

static int release(void *state, const struct alloc_event *e, struct alloc_meter *m)
{
	struct state *s = state;
	const struct block *v = s->blocks.v;
	uint32_t i = s->placed[e->block];
	const uint32_t prev = v[i].prev, next = v[i].next;
	if (next && v[next].free) {
		room_take(s, next);
		join(s, i, next);
	}
	if (prev && v[prev].free) {
		room_take(s, prev);
		join(s, prev, i);
		i = prev;
	}
	room_add(s, i);
	return 0;
}

const struct alloc_design design_pytorch = { "pytorch", LINE_RED, open_default, place, release,
	NULL, close_heaps };
const struct alloc_design design_expandable = { "expandable", LINE_GREEN, open_expandable, place,
	release, NULL, close_heaps };
