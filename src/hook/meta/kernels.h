/*
 * Writes names and attributes of kernels into the trace. It asks the driver when a program gets a
 * handle, or at the launch of an unknown handle. The questions change nothing and go to the real
 * functions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

/* Whether the handle's name is in the trace: as far as is remembered, which has room for some
 * tens of thousands. */
bool kernel_is_known(uint64_t handle);

/* Asks the driver for the kernel's name and writes it down. */
void kernel_describe(uint64_t handle);

/* Asks the driver for the attributes of a function or kernel that has been launched, and writes
 * them down.  Fills value[] by enum kernel_attribute; bit i of the result: value[i] is known. */
uint32_t kernel_attributes(uint64_t handle, uint32_t value[ATTRIBUTES]);

/* The kernel's name as the driver tells it, or NULL. */
const char *kernel_name(uint64_t handle);

void kernels_forget(void); /* after a fork: the child's trace starts empty */
