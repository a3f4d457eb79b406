/*
 * Handles of the driver, and what they were said to be: so that each is written into the trace
 * once.  For any number of threads, without waiting.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLES_BITS 16
#define HANDLES_SIZE (1u << HANDLES_BITS)

/*
 * A handle that the driver gives out again for something else is another pair, so nothing needs to
 * be forgotten when a module is unloaded.  Open addressing in a window; a full window gives up its
 * first slot, and that handle may be written twice.
 */
struct handles {
	_Atomic uint64_t handle[HANDLES_SIZE];
	_Atomic uint64_t hash[HANDLES_SIZE];
};

/* True when it was not known that the handle means this. */
bool handles_remember(struct handles *k, uint64_t handle, uint64_t hash);

bool handles_has(struct handles *k, uint64_t handle);
