/*
 * The levels of recording, by the names that people give them.  One list for the hook, for
 * `weir record --level` and for `weir ctl`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct level {
	const char *name;
	uint32_t control; /* as in struct trace_header */
	const char *help;
};
extern const struct level levels[]; /* ends with a NULL name */

/* The control word of a level; false when there is none of that name. */
bool control_of_level(const char *name, uint32_t *ret_control);

/* The level of a control word, whether or not arguments are kept and times predicted, or "custom".
 */
const char *level_of_control(uint32_t control);
