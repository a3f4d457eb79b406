/*
 * Ranges of NVTX that are requests of the scheduler: weir run --request range:NAME.  A push of that
 * name begins one, and the pop that belongs to it in its domain ends it; so do start and end, in
 * any thread.  A thread has one that was pushed: another push of the name ends it, since its pop
 * may have been left out by longjmp().  Whether ranges are kept in a trace makes no difference.
 */
#ifndef WEIR_HOOK_RANGE_REQUEST_RANGE_H
#define WEIR_HOOK_RANGE_REQUEST_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/config.h"

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

#endif
