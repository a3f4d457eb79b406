/*
 * A launch's arguments as a key, equal for launches of equal scalars, and the first few scalars.
 *
 * Arguments are words of 8 bytes, or fewer at the end of a parameter. A word that looks like an
 * address counts by its place alone. Buffers move from run to run, and a kernel's time does not
 * depend on that. Other words are hashed, and kept while there is room. Keys depend on the bytes
 * alone, so they are comparable between runs.
 *
 * Host safe: no allocation, and of libc only memcpy. It reads exactly the given bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/format.h"

struct param_place { /* of one parameter in the buffer that the kernel sees */
	uint16_t offset;
	uint16_t bytes;
};

struct launch_args {
	uint64_t key;
	uint32_t kept;    /* of value[] */
	uint32_t scalars; /* words that are no addresses; more than `kept` when there was no room */
	uint32_t bytes;   /* of arguments that were read */
	uint64_t value[ARGS_KEPT];
};

/*
 * Whether a word is taken for an address.  User space ends at 2^47, mappings and most device
 * memory lie at its upper end, a program's own data at 0x55…; device memory that is mapped by
 * hand begins low, and is told from two small integers that share a word by its lower half.
 */
static inline bool looks_like_address(uint64_t v)
{
	const uint64_t high = v >> 32;
	if (!high || v >> 47)
		return false;
	return high >= 0x7000 || (high >= 0x5500 && high < 0x5700) || (uint32_t)v >= 1u << 24;
}

/* Takes kernelParams: one address a parameter. */
void args_of_pointers(struct launch_args *a, const struct param_place *place, uint32_t count,
	void *const *params);

/* Takes a buffer of `bytes`; parameters that end beyond it are left out. */
void args_of_buffer(struct launch_args *a, const struct param_place *place, uint32_t count,
	const void *buffer, size_t bytes);

/* Words that they take in a record, and writing them there. */
static inline uint32_t args_words(const struct launch_args *a)
{
	return ARGS_VALUES + a->kept;
}

void args_put(const struct launch_args *a, uint64_t *to);

/*
 * The arguments in a record of launch layout, which may hold anything; false when it has none.
 */
bool args_get(const struct record *r, struct launch_args *ret_args);
