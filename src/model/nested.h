/*
 * Ranges that nest: which of a thread's was the innermost at a moment.
 *
 * An element of whatever array begins with a struct nested; what else is in it is its owner's.  The
 * functions take the array and the size of its elements; the macros fill that in for an ARRAY.
 */
#ifndef WEIR_MODEL_NESTED_H
#define WEIR_MODEL_NESTED_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "trace/activity.h"

#define NESTED_NONE UINT32_MAX

struct nested {
	uint64_t ticks, end; /* [ticks, end) */
	uint64_t external;   /* the number by which activities may name it; 0: none */
	uint32_t process, tid;
	uint32_t parent; /* the one around it, once nested() has run; or NESTED_NONE */
};

static inline struct nested nested_of(const struct range *g, uint32_t process)
{
	return (struct nested){ .ticks = g->ticks,
		.end = range_end(g),
		.external = g->valid & RANGE_HAS_EXTERNAL ? g->external : 0,
		.process = process,
		.tid = g->tid,
		.parent = NESTED_NONE };
}

/* Puts them in order: by process, thread and begin, those around before those inside; and gives
 * each its parent.  There must be fewer than NESTED_NONE. */
void nested(void *v, size_t n, size_t each);

/* The innermost of the thread's that had begun by then and had not ended; or NESTED_NONE.  *hint is
 * where the last one was, 0 at first: whoever asks in the order of time finds it beside that. */
uint32_t nested_at(const void *v, size_t n, size_t each, uint32_t process, uint32_t tid,
	uint64_t ticks, size_t *hint);

/* Numbers of ranges, in order. */
struct external {
	uint64_t id;
	uint32_t process, index;
};
struct externals {
	ARRAY(struct external) v;
};

/* 0 or -ENOMEM. */
int externals_make(const void *v, size_t n, size_t each, struct externals *ret_externals);

/* The first range of a process with that number; or NESTED_NONE. */
uint32_t externals_find(const struct externals *x, uint32_t process, uint64_t id);

/* The same for an ARRAY. */
#define NESTED(array) nested((array).v, (array).n, sizeof(*(array).v))
#define NESTED_AT(array, process, tid, ticks, hint)                                                \
	nested_at((array).v, (array).n, sizeof(*(array).v), process, tid, ticks, hint)
#define EXTERNALS_MAKE(array, ret) externals_make((array).v, (array).n, sizeof(*(array).v), ret)

#endif
