/*
 * The levels of recording, by the names that people give them.  One list for the hook, for
 * `weir record --level` and for `weir ctl`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The control word of a level; false when there is none of that name. */
bool control_of_level(const char *name, uint32_t *ret_control);

/* The level of a control word, whether or not arguments are kept and times predicted, or "custom".
 */
const char *level_of_control(uint32_t control);

/*
 * The groups of calls that `--stacks=` names, for `weir record --stacks` and the injected library.
 * api/tables.awk (stack_group) gives each function its group.
 */
#define STACK_BYTES_DEFAULT 8192u
#define STACK_BYTES_LEAST   512u
#define STACK_BYTES_MOST    49152u

struct stack_options {
	uint32_t control; /* CONTROL_STACK() of the groups */
	uint32_t each;    /* of a thread's calls one in so many; 1: all */
	uint32_t bytes;   /* of the stack, at most */
};

/* "alloc,sync,sample:10,bytes:16K", with commas or plus signs between; without groups, or with
 * nothing, alloc and sync.  False when it is none. */
bool stack_options_parse(const char *text, size_t n, struct stack_options *ret);
