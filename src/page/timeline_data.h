/*
 * Writes the timeline of a page twice: in items that open quickly, and in as many as the page can
 * hold. The second form is in blocks that the viewer unpacks for a closer look. An item of the
 * first form says how many of the second it contains, in the same order.
 *
 *	row: for each item zigzag(start - end of the one before), length,
 *	  2 × name + several; and of one event detail + 1 or 0,
 *	  zigzag(link - the link before); of several 2 × count + whether
 *	  parts follow, busy nanoseconds, parts or as many as count
 *	block: of TIMELINE_BLOCK items of a row or its last ones, deflated:
 *	  the lengths of seven columns (gap, length, name, count, busy, detail,
 *	  link), then these, of the same numbers without parts
 */
#pragma once

#include <stdio.h>

#include "base/map.h"
#include "page/layout.h"

#define TIMELINE_BLOCK 8192u

/* Small numbers for what items refer to, in the order in which it is written. */
struct timeline_numbers {
	struct map link_map; /* process, correlation */
	uint32_t links;
	uint32_t *detail; /* by index into details: the number in the page plus 1, 0 unused */
	uint32_t details;
};

/* The blocks of all rows, a line each, in *ret_text, which the caller frees. */
void timeline_pack(
	const struct layout *t, struct timeline_numbers *n, char **ret_text, size_t *ret_bytes);

/* An object of JSON.  fine_items: those in the blocks; 0 without. */
void timeline_put(const struct report *r, const struct layout *t, struct timeline_numbers *n,
	uint64_t fine_items, uint64_t fine_bin_ns, FILE *out);

void timeline_numbers_fini(struct timeline_numbers *n);
