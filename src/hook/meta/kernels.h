/*
 * Writes names and attributes of kernels into the trace. It asks the driver when a program gets a
 * handle, or at the launch of an unknown handle. The questions change nothing and go to the real
 * functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/format.h"

/* Asks the driver for the kernel's name and writes it down. */
void kernel_describe(uint64_t handle);

/* Asks the driver for the attributes of a function or kernel that has been launched, and writes
 * them down.  Fills value[] by enum kernel_attribute; bit i of the result: value[i] is known. */
uint32_t kernel_attributes(uint64_t handle, uint32_t value[ATTRIBUTES]);

/* The kernel's name as the driver tells it, or NULL. */
const char *kernel_name(uint64_t handle);

void kernels_forget(void); /* after a fork: the child's trace starts empty */

/*
 * Handles of the driver, and what they were said to be: so that each is written into the trace
 * once.  For any number of threads, without waiting.
 */
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
