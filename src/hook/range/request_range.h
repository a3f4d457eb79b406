/*
 * Makes requests of the scheduler from NVTX ranges of one name (weir run --request range:NAME).
 *
 * A push of the name begins a request, and its pop in the same domain ends it. So do start and end,
 * in any thread. A second push ends the first one's request, since longjmp() may have skipped its
 * pop. Requests do not depend on whether the trace keeps ranges.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/core/config.h"

/* Whether a name is given. */
static inline bool request_ranges_are_asked(void)
{
	return *config_get()->request_range;
}

bool request_range_is(const char *text, size_t bytes);

/* Any push and pop of a thread, in its domain. */
void request_range_push(const void *domain, bool named);
void request_range_pop(const void *domain);

/* The number of a started range that the program is given in place of the span's. */
uint64_t request_range_start(uint64_t span);

/* The span's number again, when id is one of those; else id. */
uint64_t request_range_stop(uint64_t id);
