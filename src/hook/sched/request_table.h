/*
 * A fixed table of the open requests that a program declares. A word holds a request's begin, and
 * its index gives the name. Any thread may call, and signal handlers too. A request skipped by
 * longjmp() stays open until it is too old to be believed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook/core/hook_parts.h"

struct request_table {
	_Atomic uint32_t used; /* entries that were ever taken: the first ones */
	struct {
		_Atomic uint64_t begun_ns;    /* 0: free */
		_Atomic uint64_t deadline_ns; /* when it is to be done; 0: whenever */
	} open[OPEN_REQUESTS];
};

/* The name of the request that has begun `now`; 0: all entries are of requests that are younger
 * than `patience`.  deadline_ns: from now on; 0: none. */
uint64_t request_table_open(
	struct request_table *t, uint64_t now, uint64_t deadline_ns, uint64_t patience);

/* False: it has ended, or there never was one of that name. */
bool request_table_close(struct request_table *t, uint64_t name, uint64_t *ret_begun_ns);

/* Whether one is open that began less than `patience` ago. */
bool request_table_holds(const struct request_table *t, uint64_t now, uint64_t patience);

/* When the most urgent of those is to be done; 0: none has a deadline. */
uint64_t request_table_deadline(const struct request_table *t, uint64_t now, uint64_t patience);
