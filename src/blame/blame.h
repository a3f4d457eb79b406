/*
 * Names the culprit of an idle gap or of a block of memory. That is the innermost operator, the
 * innermost named range (a module, an annotation), and the line of Python around a call.
 *
 * An operator that only allocates (such as aten::empty) is not the culprit, its caller is. A Python
 * frame belongs to the program unless it lies in a library. One owner thread.
 */
#pragma once

#include "stack/stacks.h"
#include "trace/meta.h"
#include "trace/trace.h"

struct blame {
	uint64_t ticks; /* when */
	uint32_t process, tid;
	/* The answers: into meta.names, or META_NONE. */
	uint32_t operator, module, line;
};

/* Fills in the answers of all, which keep their order.  0 or -errno; damaged chunks are passed
 * over.
 */
int blame_find(const struct trace *t, const struct meta *m, struct blame *v, size_t n);

struct report;

/* Finds the culprits of the report's idle gaps (struct idle_culprit).  0 or -errno. */
int blame_gaps(struct report *r);

/* The innermost line of Python in a call stack that is of the program, else of a library, else
 * NULL. */
const struct stack_frame *blame_line(const struct stacks *s, uint32_t stack);

/* Whether an operator allocates for others. */
bool blame_allocates(const char *name);
