/*
 * The times at which a recording was switched off, behind the header, in the room that header_bytes
 * leaves. The switch (record/control.c) writes them, and trace_open() reads them. If there are too
 * many, the last entries become one.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "event/format.h"

#define OFF_TIMES 60u

struct off_time {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC; the last may still be without an end: it is
				  * off_since_ns of the header, and not here */
};

struct off_times {
	uint32_t count; /* of v */
	uint32_t reserved;
	struct off_time v[OFF_TIMES];
};
static_assert(sizeof(struct off_times) == 968, "on disk");

#define HEADER_WITH_OFF_TIMES (sizeof(struct trace_header) + sizeof(struct off_times))
