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

#define NESTED_NONE UINT32_MAX

struct nested {
	uint64_t ticks, end; /* [ticks, end) */
	uint32_t process, tid;
	uint32_t parent; /* the one around it, once nested() has run; or NESTED_NONE */
};

/* Puts them in order: by process, thread and begin, those around before those inside; and gives
 * each its parent.  There must be fewer than NESTED_NONE. */
void nested(void *v, size_t n, size_t each);

/* The innermost of the thread's that had begun by then and had not ended; or NESTED_NONE. */
uint32_t nested_at(
	const void *v, size_t n, size_t each, uint32_t process, uint32_t tid, uint64_t ticks);

/* From i outwards, the first that had not ended by then; or NESTED_NONE. */
uint32_t nested_open(const void *v, size_t each, uint32_t i, uint64_t ticks);

#define NESTED(array) nested((array).v, (array).n, sizeof(*(array).v))
#define NESTED_AT(array, process, tid, ticks)                                                      \
	nested_at((array).v, (array).n, sizeof(*(array).v), process, tid, ticks)
#define NESTED_OPEN(array, i, ticks) nested_open((array).v, sizeof(*(array).v), i, ticks)

#endif
