/*
 * Arrays that grow: ARRAY(T) declares one, zeroed memory is an empty one, and array_free() releases
 * it. Elements move when the array grows, so keep indices, not pointers. If memory is short,
 * array_push() returns NULL and leaves the array unchanged.
 */
#ifndef WEIR_BASE_ARRAY_H
#define WEIR_BASE_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"

#define ARRAY(T)                                                                                   \
	struct {                                                                                   \
		T *v;                                                                              \
		size_t n, room;                                                                    \
	}

/* Room for `more` elements after n; false without memory. */
static inline bool array_reserve_(void **v, size_t *room, size_t n, size_t more, size_t each)
{
	size_t want, bytes;
	if (!check_add(n, more, &want))
		return false;
	if (want <= *room)
		return true;
	if (want < *room * 2)
		want = *room * 2;
	if (want < 16)
		want = 16;
	if (!check_mul(want, each, &bytes))
		return false;
	void *p = realloc(*v, bytes);
	if (!p)
		return false;
	*v = p;
	*room = want;
	return true;
}

#define array_reserve(a, more)                                                                     \
	array_reserve_((void **)&(a)->v, &(a)->room, (a)->n, (more), sizeof(*(a)->v))

/* A new last element, not initialised; NULL without memory. */
#define array_push(a) (array_reserve((a), 1) ? &(a)->v[(a)->n++] : NULL)

#define array_free(a)                                                                              \
	do {                                                                                       \
		free((a)->v);                                                                      \
		(a)->v = NULL;                                                                     \
		(a)->n = (a)->room = 0;                                                            \
	} while (0)

#endif
