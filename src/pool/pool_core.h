/*
 * The data that the parts of the pool share. The range of addresses is cut into ranges, each live
 * or free, with a record of place and size in grains of 512 bytes. A record is
 *
 *	in the list of all, by address: what lies beside a block is a neighbour there;
 *	if free, in a tree by address, of its tag (pool_tree.c);
 *	if live, in a hash table by its start, which is also a bit in level 0 (pool_block.c).
 *
 * Records are numbered from 1. Record 0 is none and stays zero, so a tree's end has no room.
 */
#pragma once

#include "pool/pool.h"

struct pool_range {
	uint32_t start, size;
	uint32_t prev, next;      /* by address; next also chains those not used */
	uint32_t left, right, up; /* of those that are free */
	uint32_t most;            /* the largest size from here down the tree */
	uint8_t tag;              /* of the tree, or what the block was placed for */
	bool live;
	uint16_t slack; /* bytes at the end that were not asked for */
};

struct pool_slot {
	uint64_t handle;
	uint64_t unsettled; /* tags of frees in it, as of the last */
	uint64_t freed_at;  /* the last free's clock */
	uint32_t live;      /* blocks that touch it */
	uint32_t prev, next;
	bool backed;
	uint8_t list; /* which it is in */
};
enum { LIST_NONE, LIST_IDLE, LIST_WAITING };

struct pool_cell { /* of the hash table; 0: empty */
	uint32_t start, range;
};

static inline struct pool_range *ranges_of(const struct pool *p)
{
	return (struct pool_range *)((char *)p + p->ranges_at);
}

static inline struct pool_slot *slots_of(const struct pool *p)
{
	return (struct pool_slot *)((char *)p + p->slots_at);
}

static inline struct pool_cell *cells_of(const struct pool *p)
{
	return (struct pool_cell *)((char *)p + p->hash_at);
}

static inline uint64_t *level_of(const struct pool *p, unsigned level)
{
	return (uint64_t *)((char *)p + p->level_at[level]);
}

static inline uint32_t grains_of(const struct pool *p)
{
	return (uint32_t)(p->shape.bytes / POOL_GRAIN);
}

static inline uint32_t slots_count(const struct pool *p)
{
	return grains_of(p) >> p->slot_shift;
}

/* pool_tree.c: free ranges of one tag by address. */
void pool_tree_insert(struct pool *p, uint32_t tag, uint32_t range);
void pool_tree_remove(struct pool *p, uint32_t range);
void pool_tree_resized(struct pool *p, uint32_t range); /* its place among them is the same */
uint32_t pool_tree_lowest(const struct pool *p, uint32_t tag);             /* 0: empty */
uint32_t pool_tree_fit(const struct pool *p, uint32_t tag, uint32_t size); /* the lowest; 0: none */

/* pool_block.c: live blocks by address. */
void pool_block_add(struct pool *p, uint32_t range);
uint32_t pool_block_take(struct pool *p, uint32_t start); /* 0: no block begins there */
uint32_t pool_block_at(const struct pool *p, uint32_t start);
uint32_t pool_block_around(const struct pool *p, uint32_t grain); /* which begins there or below */

/* pool_slot.c: what live blocks do to the slots that they touch. */
void pool_slots_enter(struct pool *p, struct pool_place *at);
void pool_slots_leave(struct pool *p, uint32_t start, uint32_t size, uint32_t tag);
void pool_slots_settle(struct pool *p);
