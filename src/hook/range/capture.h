/*
 * Chooses the part of a run that is recorded: weir record --capture, --delay, --duration and
 * --until-launches.
 *
 * Outside its part a process is closed: hook_hot.control points to a word of its own in place of
 * the trace's. That word is 0, or CONTROL_COUNT while calls must be inspected to find the beginning
 * of the part. During a part a range of kind RANGE_CAPTURE is open in the trace, and CUPTI
 * collects.
 *
 * Any thread may call, and so may a signal handler between any two lines. Nothing here uses the
 * heap or a lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hook/core/config.h"
#include "hook/core/process.h"

void capture_start(void);
void capture_forget(void);

/* A call of the driver has returned; flags: of its record. */
void capture_saw(uint32_t fn, int result, uint32_t flags);

static inline bool capture_ranges_are_asked(void)
{
	return *config_get()->capture.range;
}

/* Whether a range of this text is the one: by its name alone, where PyTorch has put more behind. */
bool capture_range_is(const char *text, size_t bytes);

/* Any push, before its range is written, and any pop, after; in its domain. */
void capture_range_push(const void *domain, bool named);
void capture_range_pop(const void *domain);

/* A range of the name that any thread may end: before it is written; then its number, 0 when it
 * found no room; and the end of any such range. */
void capture_span_begin(void);
void capture_span_began(uint64_t span);
void capture_span_ended(uint64_t span);
