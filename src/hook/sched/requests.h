/*
 * Requests that the program declares, through libweirapi (include/weir/sched.h) or by ranges of one
 * name. After the first one, stream activity begins no more requests. The process is inside a
 * request exactly while a credible one is open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether the program says its requests. */
bool requests_are_said(void);

/* Whether one is open that began less than the patience of a wait ago. */
bool requests_hold(void);

/* Its name, for its end; 0: the process does not share a GPU, or too many are open.  deadline_ns:
 * from now; 0: the program's. */
uint64_t request_begin(uint64_t deadline_ns);

/* False: it has ended, or there was none of that name in this process. */
bool request_end(uint64_t name);

void requests_forget(void);
