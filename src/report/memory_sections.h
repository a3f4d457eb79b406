/* Sections of `weir memory`, beside those of sections.h.  Internal to src/report and its tests. */
#pragma once

#include "memory/memory.h"
#include "report/sections.h"

/* The i-th of the sections of `weir memory --json`, in their order; NULL behind the last. */
const struct section *memory_section_at(size_t i);
extern const struct section section_memory_members, section_memory_details, section_memory_by_call,
	section_memory_by_size, section_memory_by_thread, section_memory_by_operator,
	section_memory_by_stack, section_memory_space, section_memory_worst;
#define ROWS_OF_MEMORY(member)                                                                     \
	.pointer = offsetof(struct report, memory_detail),                                         \
	.array = offsetof(struct memory_detail, member),                                           \
	.each = sizeof *((struct memory_detail *)0)->member.v

extern const struct column memory_live_columns[];
column_getter get_blocks; /* struct live_blocks */

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
