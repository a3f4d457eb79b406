/*
 * Formats numbers for people: 12,345, 4.5 GiB, 1.23 ms, +1.2 %. Each function fills the caller's
 * buffer and returns it.
 */
#pragma once

#include <stdint.h>

struct number {
	char text[48];
};

const char *number_count(struct number *n, uint64_t value);
/* "1 launch", "2 launches": `one` is the singular. */
const char *number_of(struct number *n, uint64_t value, const char *one);
const char *number_bytes(struct number *n, uint64_t bytes);
const char *number_ns(struct number *n, uint64_t ns);
const char *number_change(struct number *n, double pct); /* "+1.2 %", "x 12" */
