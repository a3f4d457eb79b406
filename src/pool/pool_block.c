/*
 * Finds live blocks by address. A free names a block's beginning, which a hash table with open
 * addressing finds. Removal leaves nothing behind in it.
 *
 * A question about a pointer may name any address in a block. A bit for each grain marks
 * beginnings, and each higher level has a bit for each word below that is not empty. They give the
 * nearest beginning at or below.
 */
#include "pool/pool_core.h"

static uint32_t cell_of(const struct pool *p, uint32_t start)
{
	return (uint32_t)((start * UINT64_C(0x9e3779b97f4a7c15)) >> p->hash_shift);
}

static uint32_t cell_mask(const struct pool *p)
{
	return (uint32_t)((UINT64_C(1) << (64 - p->hash_shift)) - 1);
}

/* Its cell, or the empty cell that it would get: half of the cells are empty at least. */
static uint32_t probe(const struct pool *p, uint32_t start)
{
	const struct pool_cell *c = cells_of(p);
	const uint32_t mask = cell_mask(p);
	uint32_t i = cell_of(p, start);
	while (c[i].range && c[i].start != start)
		i = (i + 1) & mask;
	return i;
}

static void set_bit(struct pool *p, uint32_t at)
{
	for (unsigned l = 0; l < POOL_LEVELS; l++, at >>= 6) {
		uint64_t *word = &level_of(p, l)[at >> 6];
		const uint64_t was = *word;
		*word = was | UINT64_C(1) << (at & 63);
		if (was)
			return;
	}
}

static void clear_bit(struct pool *p, uint32_t at)
{
	for (unsigned l = 0; l < POOL_LEVELS; l++, at >>= 6) {
		uint64_t *word = &level_of(p, l)[at >> 6];
		*word &= ~(UINT64_C(1) << (at & 63));
		if (*word)
			return;
	}
}

void pool_block_add(struct pool *p, uint32_t range)
{
	const uint32_t start = ranges_of(p)[range].start;
	cells_of(p)[probe(p, start)] = (struct pool_cell){ start, range };
	set_bit(p, start);
}

uint32_t pool_block_at(const struct pool *p, uint32_t start)
{
	return cells_of(p)[probe(p, start)].range;
}

/* Cells behind the one that becomes empty move up to it, unless that is before where they belong.
 */
uint32_t pool_block_take(struct pool *p, uint32_t start)
{
	struct pool_cell *c = cells_of(p);
	const uint32_t mask = cell_mask(p);
	uint32_t hole = probe(p, start);
	const uint32_t range = c[hole].range;
	if (!range)
		return 0;
	for (uint32_t i = (hole + 1) & mask; c[i].range; i = (i + 1) & mask) {
		const uint32_t from_home = (i - cell_of(p, c[i].start)) & mask;
		if (from_home >= ((i - hole) & mask)) {
			c[hole] = c[i];
			hole = i;
		}
	}
	c[hole] = (struct pool_cell){ 0, 0 };
	clear_bit(p, start);
	return range;
}

static uint32_t top_bit(uint64_t word)
{
	return 63u - (uint32_t)__builtin_clzll(word);
}

/* Up to the level where there is a bit at or below, and down again along the highest ones. */
uint32_t pool_block_around(const struct pool *p, uint32_t grain)
{
	uint64_t at = grain;
	for (unsigned l = 0; l < POOL_LEVELS; l++, at >>= 6) {
		/* Above the lowest level the word that was looked at is not looked at again. */
		const uint64_t below = (UINT64_C(1) << (at & 63)) - 1;
		const uint64_t word = level_of(p, l)[at >> 6] & (l ? below : below << 1 | 1);
		if (!word)
			continue;
		at = (at & ~UINT64_C(63)) | top_bit(word);
		while (l--)
			at = at << 6 | top_bit(level_of(p, l)[at]);
		return pool_block_at(p, (uint32_t)at);
	}
	return 0;
}
