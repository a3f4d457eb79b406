/*
 * The levels of recording, by the names that people give them.  One list for the guest, for
 * `weir record --level` and for `weir ctl`.
 */
#ifndef WEIR_EVENT_LEVEL_H
#define WEIR_EVENT_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include "event/format.h"

struct level {
	const char *name;
	uint32_t control; /* as in struct trace_header */
	const char *help;
};
extern const struct level levels[]; /* ends with a NULL name */

/* The control word of a level; false when there is none of that name. */
bool control_of_level(const char *name, uint32_t *ret_control);

/* Bits that say how, of what is recorded. */
#define CONTROL_HOW (CONTROL_ARGS | CONTROL_PREDICT | CONTROL_SAMPLE)

/* Whether nothing is recorded with that control word. */
static inline bool control_is_off(uint32_t control)
{
	return !(control & ~CONTROL_HOW);
}

/* The level of a control word, whether or not arguments are kept and times foretold, or "custom".
 */
const char *level_of_control(uint32_t control);

#endif
