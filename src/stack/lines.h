/* Finds an address in the program's source: the function, inlined functions, and lines. */
#pragma once

#include "stack/libdw.h"
#include "stack/stacks.h"

#define LINES_INLINED 16 /* frames of one address at most */

struct line_finder {
	const struct libdw *dw;
	Dwfl *dwfl;
};

/* The frames of an address in code, innermost first: how many. */
int line_find(struct line_finder *l, struct stacks *s, uint64_t address, const char *module,
	uint32_t frames[LINES_INLINED]);
