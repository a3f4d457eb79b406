/*
 * Handles of the driver, and what they were said to be: so that each is written into the trace
 * once.  For any number of threads, without waiting.
 */
#ifndef WEIR_HOOK_META_KNOWN_H
#define WEIR_HOOK_META_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KNOWN_BITS 16
#define KNOWN_SIZE (1u << KNOWN_BITS)

/*
 * A handle that the driver gives out again for something else is another pair, so nothing needs to
 * be forgotten when a module is unloaded.  Open addressing in a window; a full window gives up its
 * first slot, and that handle may be written twice.
 */
struct known {
	uint64_t handle[KNOWN_SIZE];
	uint64_t hash[KNOWN_SIZE];
};

/* True when it was not known that the handle means this. */
bool known_remember(struct known *k, uint64_t handle, uint64_t hash);

bool known_has(struct known *k, uint64_t handle);

uint64_t known_hash(const void *data, size_t bytes);

#endif
