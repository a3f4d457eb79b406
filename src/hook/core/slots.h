/*
 * Tables of fixed size that any number of threads fill without waiting. A key has one slot, and its
 * values stand at the same index of another array.
 *
 * A key stands in one of `window` slots from its first on. Storing the key over 0 claims a slot,
 * and nothing frees it. If a window is full, the caller decides which key to overwrite. A fork
 * drops the keys with their pages (pages.h). Nothing calls or allocates, so an intercepted call or
 * a signal handler may use a table.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SLOTS_NONE UINT32_MAX

/* All constants where it is used, so that the compiler sees the orders. */
struct slots {
	_Atomic uint64_t *keys; /* 0 is free, and no key */
	uint32_t size;          /* a power of two */
	uint32_t window;
	memory_order load, claim; /* the memory orders of looking at a key, and of storing one */
};

/* The key's slot, or SLOTS_NONE.  The first slot is taken modulo the size. */
static inline uint32_t slots_find(struct slots s, uint32_t first, uint64_t key)
{
	for (uint32_t i = 0; i < s.window; i++) {
		const uint32_t at = (first + i) & (s.size - 1);
		if (atomic_load_explicit(&s.keys[at], s.load) == key)
			return at;
	}
	return SLOTS_NONE;
}

/* The key's slot, else a free one made its own, or SLOTS_NONE in a full window.  If several threads
 * bring a new key, one of them learns that it is new. */
static inline uint32_t slots_claim(struct slots s, uint32_t first, uint64_t key, bool *ret_new)
{
	*ret_new = false;
	for (uint32_t i = 0; i < s.window; i++) {
		const uint32_t at = (first + i) & (s.size - 1);
		uint64_t seen = atomic_load_explicit(&s.keys[at], s.load);
		if (!seen && key)
			*ret_new = atomic_compare_exchange_strong_explicit(
				&s.keys[at], &seen, key, s.claim, s.load);
		if (*ret_new || seen == key)
			return at;
	}
	return SLOTS_NONE;
}
