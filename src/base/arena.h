/*
 * Memory that the caller provides in one piece and that is given back in one piece.  Host
 * safe: no allocation, no lock, usable inside a recorded program.  One thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena {
	char *base;
	size_t size;
	size_t used;
};

/* bytes, aligned to 8 whatever base is; NULL when the arena is full. */
static inline void *arena_take(struct arena *a, size_t bytes)
{
	const size_t skip = -((uintptr_t)a->base + a->used) & 7;
	if (a->size - a->used < skip || a->size - a->used - skip < bytes)
		return NULL;
	void *p = a->base + a->used + skip;
	a->used += skip + bytes;
	return p;
}
