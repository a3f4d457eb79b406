/*
 * A hash map from keys of four words to 32-bit values, usually an index into an array that
 * the caller keeps.  Zeroed memory is an empty map.  Nothing is ever removed: a caller that
 * forgets something stores MAP_NONE.  One owner thread; read-only sharing is safe.
 */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_key {
	uint64_t w[4];
};

struct map_slot {
	struct map_key key;
	uint32_t value;
	uint32_t taken;
};

struct map {
	struct map_slot *slots;
	size_t size; /* a power of two, or 0 */
	size_t taken;
};

/* Where the key's value is; a new one is MAP_NONE.  NULL without memory.  Valid until the
 * next map_get(). */
uint32_t *map_get(struct map *m, struct map_key key);

/* The value, or MAP_NONE for a key that is not there. */
uint32_t map_find(const struct map *m, struct map_key key);

void map_fini(struct map *m);

#define MAP_KEY(...) ((struct map_key){ .w = { __VA_ARGS__ } })

#endif
