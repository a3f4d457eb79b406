/*
 * A progress bar on standard error for work of over a second. It prints nothing earlier or off a
 * terminal, and wipes its line at the end. One thread calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	uint64_t start_ns;
	uint64_t shown_ns;
	bool terminal;
};

void progress_init(struct progress *p, const char *what);
/* `progress` is one, so that this is what a part of Weir calls that knows no terminal. */
void progress_show(void *progress, uint64_t done, uint64_t all);
void progress_fini(struct progress *p);
