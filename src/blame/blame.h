/*
 * What was going on around a call: the innermost operator of a framework, the innermost range that
 * the program names (a module, an annotation), and the line of Python.  That is the culprit that a
 * table names beside an idle gap or a block of memory.
 *
 * An operator whose work is to allocate (aten::empty and its kind) is not to blame: the one that
 * called it is.  A frame of Python is of the program unless it lies in a library.
 *
 * One owner thread.
 */
#ifndef WEIR_BLAME_BLAME_H
#define WEIR_BLAME_BLAME_H

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

/* Of a call stack the innermost line of Python that is of the program, or of a library; or NULL. */
const struct stack_frame *blame_line(const struct stacks *s, uint32_t stack);

/* Whether an operator allocates for others. */
bool blame_allocates(const char *name);

#endif
