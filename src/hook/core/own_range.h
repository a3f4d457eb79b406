/*
 * Ranges that the injected library leaves of itself: while recording is on, while CUPTI calibrates.
 * Any thread begins one, and any thread ends it.
 */
#pragma once

#include <stdint.h>

/* kind: enum range_kind.  0: there is no room, which is counted. */
uint64_t own_range_begin(uint16_t kind, const char *name);

/* Nothing for 0. */
void own_range_end(uint64_t id);
