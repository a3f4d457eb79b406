/*
 * Unwinds pieces of stacks with elfutils (libdw, loaded when needed). Unwind information of the
 * mapped files gives return addresses, and symbols and debugging information give functions and
 * lines. The trace is not trusted: only regular files with the right build-id are used.
 *
 * One owner thread.
 */
#pragma once

#include "stack/pieces.h"

struct unwinder;

/* Unwinds a process of the trace.  NULL: no memory, or libdw is not there, which `why` then says.
 * */
struct unwinder *unwinder_new(
	const struct pieces *p, uint32_t process, struct stacks *s, char *why, size_t why_size);
void unwinder_free(struct unwinder *u);

/* A piece of a stack, as a record of CHUNK_STACKS has it. */
struct stack_piece {
	const uint64_t *registers; /* of enum stack_word */
	const uint8_t *bytes;      /* of the stack, from STACK_SP on */
	size_t count;
};

/* The callers of the innermost frames: numbers of frames of `s`. */
struct unwound {
	uint32_t *frames;
	uint32_t count;
	uint32_t room;
	enum stack_end end;
};

/* Fills in at most to->room frames; those of the injected library are left out.  0 or -errno. */
int unwinder_run(struct unwinder *u, const struct stack_piece *piece, struct unwound *to);
