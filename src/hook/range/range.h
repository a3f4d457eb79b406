/*
 * Pushes and pops the ranges of a thread. Each is written when it begins and completed when it
 * ends, so a killed program leaves its open ranges in the trace.
 *
 * The open ranges of a thread form a chain through the trace itself (struct writer, `open`). Every
 * push counts, even without room or while recording is off, so that pops stay balanced. Nothing
 * allocates or locks. A signal handler may push and pop between any two lines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "event/level.h"
#include "hook/core/config.h"
#include "hook/core/hook_table.h"
#include "hook/core/process.h"
#include "hook/core/strings.h"

struct range_text { /* what a range is called; numbers of strings */
	uint32_t name;
	uint32_t args;
	uint32_t scope; /* a pop ends the innermost range of its scope */
	uint16_t kind;  /* enum range_kind */
	uint16_t valid; /* enum range_valid */
	uint64_t external;
	uint64_t sequence;
};

/* Sets the process up: the first range of a thread, or of a forked child. */
void ranges_begin(void);

/* Whether calls are kept in a file, and so ranges. */
static inline bool ranges_are_kept(void)
{
	return config_get()->records;
}

/* Whether ranges are to be written now.  Only then may their strings be asked for. */
static inline bool ranges_wanted(void)
{
	const uint32_t any = (1u << CLASS_COUNT) - 1;
	if (__builtin_expect(!hook_ranges.tid || !process_is_started(), 0))
		ranges_begin();
	return (process_control() & any) && hook_recorder.header;
}

/* A range of Weir's own. */
static inline struct range_text range_of_weir(const char *name, uint32_t args)
{
	return (struct range_text){ .name = string_of(name),
		.args = args,
		.scope = string_of("weir"),
		.kind = RANGE_NVTX };
}

/* How many were open around it; a pop's -1: none was open.  NULL: a push that is not wanted. */
int range_push(const struct range_text *text);
int range_pop(uint32_t scope);

/* The args of the innermost open annotation that has some, of this thread; or 0. */
uint32_t range_args_around(void);

/* Whether an operator, or a range of this scope, is open in this thread. */
bool range_is_inside(uint32_t scope);

/* The rest of them only while ranges are wanted.  A range of no length: */
void range_mark(const struct range_text *text);

/* A range that any thread may end, by its number; 0 when it is not kept. */
uint64_t range_start(const struct range_text *text);
void range_stop(uint64_t id);

void python_forget(void); /* after a fork: numbers begin anew */
