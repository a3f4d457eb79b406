/*
 * An allocator of device memory as pure code: it chooses a block's address, and the addresses that
 * need physical memory. It makes no system calls and uses no allocation, clock or libc. Wrong
 * calls, such as a free of an unknown block, return -1 and change nothing.
 *
 * A pool is one range of addresses, divided into slots of one size. The caller reserves the range,
 * makes handles (physical memory of a slot's size), maps and unmaps them. The pool says where. A
 * block lies at a multiple of 512 bytes, at the lowest address with room, across slots if needed.
 * So live memory stays at the low end, and whole slots stay free. Handles do not influence the
 * place of a block. A live block keeps its handle. A slot without live blocks is idle and keeps its
 * handle until the caller takes it with pool_take_idle().
 *
 *	struct pool *p = mmap(NULL, pool_memory(&shape), ...);  (zeroed, of the caller)
 *	pool_init(p, &shape);
 *
 *	if (pool_place(p, bytes, tag, &at))
 *		return elsewhere;
 *	for (uint32_t slot = at.first_slot; pool_next_missing(p, &at, &slot);) {
 *		if (at the limit, or no new handle is to be had) {
 *			if (!pool_take_idle(p, &from, &handle)) {
 *				pool_undo(p, &at);
 *				return no_memory;
 *			}
 *			unmap(from);
 *		}
 *		map(slot, handle);
 *		pool_back(p, slot, handle);
 *	}
 *
 * Memory freed in the order of a stream may be reused at once in that stream, and elsewhere only
 * when the stream has reached the free. Such a free carries the stream's tag, 1 to POOL_TAGS - 1.
 * pool_settle() says that the stream has reached all frees of that tag. Tag 0 is free for all.
 * While all unsettled frees and new blocks have one tag, tags have no effect. A slot is idle only
 * when all frees in it are settled.
 *
 * Unsettled memory of one stream cannot serve others, and the pool grows. So when at.missing and
 * counters.unsettled are not 0, ask which streams have reached their last free and pool_settle()
 * those. Then call pool_undo() and pool_place() again.
 *
 * The state has no pointers, so it can lie in any mapping and be copied. One caller at a time.
 * Several may read pool_find() and the counters while nobody changes anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	POOL_GRAIN = 512, /* bytes; addresses and sizes of blocks are multiples */
	POOL_TAGS = 64,
	POOL_LEVELS = 6, /* of bits over the grains */
};
#define POOL_MOST_BYTES (UINT64_C(1) << 40) /* of addresses */

struct pool_shape {
	uint64_t base;       /* of the range; a multiple of slot_bytes */
	uint64_t bytes;      /* of the range; a multiple of slot_bytes */
	uint64_t slot_bytes; /* a power of two, from 4096 to 2^30 */
	uint32_t ranges; /* live blocks and free ranges, at most; twice the blocks and 64 is enough
			    unless tags differ from block to block */
};

/* The pool's present contents, and their peaks. */
struct pool_counters {
	uint64_t live_bytes, live_bytes_peak; /* that were asked for */
	uint64_t placed, freed;               /* blocks, so far; undone ones are neither */
	uint64_t refused;                     /* pool_place() said -1 */
	uint64_t taken;                       /* handles, by pool_take_idle() */
	uint32_t busy_slots, busy_slots_peak; /* that a live block touches, if only until undone */
	uint32_t backed_slots, backed_slots_peak;
	uint32_t idle_slots;    /* backed, and may be taken */
	uint32_t waiting_slots; /* backed, without a live block, and not settled */
	uint32_t free_ranges;
	uint64_t unsettled; /* a bit for each tag with frees that pool_settle() has not had */
};

struct pool_list {
	uint32_t first, last; /* slots + 1 */
};

/* For members of src/pool, but for `counters`. */
struct pool {
	struct pool_shape shape;
	struct pool_counters counters;
	struct pool_list idle, waiting;
	uint64_t clock;                 /* frees so far */
	uint64_t settled_at[POOL_TAGS]; /* the clock, when what the stream has come to was freed */
	uint64_t freed_at[POOL_TAGS];   /* the clock, when the last was freed under the tag */
	uint32_t roots[POOL_TAGS];      /* of the trees of free ranges, by tag */
	uint32_t tagged;                /* free ranges in trees but the first */
	uint32_t owner; /* of what is free in the first tree below owned_end, or 0 */
	uint32_t owned_end;
	uint32_t slot_shift; /* from grains */
	uint32_t fresh;      /* records from here on were never used */
	uint32_t unused;     /* those that are not used any more */
	uint32_t hash_shift;
	uint64_t ranges_at, slots_at, hash_at, level_at[POOL_LEVELS]; /* bytes from the beginning */
};

/* How much memory it takes; 0 if the shape is none.  Most of it is not touched unless it is needed:
 * 256 KiB for each GiB of addresses in use, and some 60 bytes a range. */
size_t pool_memory(const struct pool_shape *shape);

/* In pool_memory() bytes, aligned to 64, which are zero.  -1 if the shape is none. */
int pool_init(struct pool *p, const struct pool_shape *shape);

struct pool_place {
	uint64_t address;
	uint64_t bytes;               /* asked for */
	uint32_t first_slot, n_slots; /* that the block touches */
	uint32_t missing;             /* of them without a handle */
	uint32_t tag;
};

/* Finds room.  -1 where there are no addresses or no records left, or nothing was asked for:
 * counters.unsettled says which tags might have some. */
int pool_place(struct pool *p, uint64_t bytes, uint32_t tag, struct pool_place *ret_at);

/* Sets *slot to the first one from there on, under the block, that has no handle. */
bool pool_next_missing(const struct pool *p, const struct pool_place *at, uint32_t *slot);

/* The handle is mapped there.  -1 if one is already. */
int pool_back(struct pool *p, uint32_t slot, uint64_t handle);

/* The one that has been idle longest loses its handle.  The caller unmaps it there, and may map it
 * in another slot. */
bool pool_take_idle(struct pool *p, uint32_t *ret_slot, uint64_t *ret_handle);

/* The handle of the first slot from *slot on that has one, whatever uses it: for the end of a pool,
 * which then has no blocks that could be used. */
bool pool_take_backed(struct pool *p, uint32_t *slot, uint64_t *ret_handle);

/* There was no memory for all of the block: it is gone.  Slots that have got a handle keep it. */
void pool_undo(struct pool *p, const struct pool_place *at);

/* -1: no block begins there. */
int pool_free(struct pool *p, uint64_t address, uint32_t tag);

/* The stream has come to all that was freed under the tag: that is free for all. */
void pool_settle(struct pool *p, uint32_t tag);

/*
 * The two halves of it, for who can have one stream wait for another without waiting itself.
 * pool_share(): blocks may be placed there for all tags, because whoever uses them waits for the
 * stream.  Slots are not idle for that: work may still be on its way to them.  pool_reached(): the
 * stream has come to what was freed under the tag until pool_now() was `when`: slots may be idle,
 * whoever may have their addresses.
 */
void pool_share(struct pool *p, uint32_t tag);
void pool_reached(struct pool *p, uint32_t tag, uint64_t when);

static inline uint64_t pool_now(const struct pool *p)
{
	return p->clock;
}

struct pool_block {
	uint64_t address, bytes; /* as asked for */
	uint32_t tag;            /* that it was placed for */
};

/* The live block that the address is in. */
bool pool_find(const struct pool *p, uint64_t address, struct pool_block *ret_block);

static inline uint64_t pool_slot_address(const struct pool *p, uint32_t slot)
{
	return p->shape.base + slot * p->shape.slot_bytes;
}
