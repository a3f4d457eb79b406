/*
 * Which launches are the first few of their kernel and shape: a recording that is to be
 * reconstructed times those whatever the turn. Any thread may ask. No locks, no heap.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook/core/launch_shape.h"

bool shape_is_new(uint32_t fn, const struct launch_shape *s);

void shape_counts_forget(void); /* after a fork */
