/* Columns of a call stack: struct caller_row and blocks of memory have one.  Internal to
 * src/report.
 */
#pragma once

#include "report/sections.h"

column_getter get_called_by; /* uint32_t into stacks.rows */
column_getter get_frames;

extern const struct section section_frames; /* of a stack */

#define STACK(found, at)                                                                           \
	{ "called_by", UNIT_STACK, "called by",                                                    \
		"who called, in a line: the innermost frames of the program",                      \
		.get = get_called_by, .find = found, .offset = at, .absent = true },               \
	{                                                                                          \
		"frames", UNIT_LIST, "frames", "who called, innermost first",                      \
			.get = get_frames, .find = found, .offset = at, .absent = true,            \
			.inner = &section_frames                                                   \
	}
