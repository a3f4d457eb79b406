/*
 * A hash map from keys of four words to 32-bit values, usually indices into the caller's array.
 * Zeroed memory is an empty map, and a caller stores MAP_NONE to forget, since nothing is removed.
 * One thread owns it, and sharing for reading is safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

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

/* The place of the key's value; a new one is MAP_NONE.  Valid until the next map_get(). */
uint32_t *map_get(struct map *m, struct map_key key);

/* The value, or MAP_NONE for a key that is not there. */
uint32_t map_find(const struct map *m, struct map_key key);

/* The key's number, given out from 0 in the order in which keys come, in a map that
 * holds nothing else. */
uint32_t map_number(struct map *m, struct map_key key);

/*
 * The row of an ARRAY that a key stands for.  The map holds where.  For a new
 * key there is a new last row, whose content is the last argument: that is evaluated for new keys
 * alone, after the row has its place.
 *
 *	struct thread_row *t = MAP_ROW(&map, MAP_KEY(process, tid), &threads,
 *		(struct thread_row){ .process = process, .tid = tid });
 */
#define MAP_ROW(m, key, array, ...)                                                                \
	({                                                                                         \
		uint32_t *index_ = map_get((m), (key));                                            \
		__typeof__((array)->v) row_;                                                       \
		if (*index_ != MAP_NONE) {                                                         \
			row_ = &(array)->v[*index_];                                               \
		} else {                                                                           \
			row_ = array_push(array);                                                  \
			*row_ = (__VA_ARGS__);                                                     \
			*index_ = (uint32_t)((array)->n - 1);                                      \
		}                                                                                  \
		row_;                                                                              \
	})

/* Frees one map, and one to eight of them. */
void map_release(struct map *m);
#define map_release_(m) map_release(m);
#define map_fini(...)                                                                              \
	do {                                                                                       \
		EACH_ARG(map_release_, __VA_ARGS__)                                                \
	} while (0)

/* A text, and a number beside it; two texts of equal hashes and length would be taken for one. */
struct map_key map_text_key(const char *text, size_t bytes, uint64_t number);

#define MAP_KEY(...) ((struct map_key){ .w = { __VA_ARGS__ } })
