/*
 * Arrays that grow: ARRAY(T) declares one, zeroed memory is an empty one, and array_free() releases
 * one or more. Elements move when the array grows, so keep indices, not pointers.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/each.h"
#include "base/xmalloc.h"

#define ARRAY(T)                                                                                   \
	struct {                                                                                   \
		T *v;                                                                              \
		size_t n, room;                                                                    \
	}

/* Room for `more` elements after n. */
static inline void array_reserve_(void **v, size_t *room, size_t n, size_t more, size_t each)
{
	size_t want = sat_add(n, more);
	if (want <= *room)
		return;
	want = MAX(*room * 2, want);
	want = MAX(16, want);
	*v = xrealloc(*v, want, each);
	*room = want;
}

#define array_reserve(a, more)                                                                     \
	array_reserve_((void **)&(a)->v, &(a)->room, (a)->n, (more), sizeof(*(a)->v))

/* A new last element, not initialised. */
#define array_push(a) (array_reserve((a), 1), &(a)->v[(a)->n++])

/* Each element as `type *it`: array_each(const struct row, row, r->rows).  The array does not grow
 * meanwhile. */
#define array_each(type, it, array)                                                                \
	for (type *it = (array).v, *it##_end = (array).n ? it + (array).n : it; it < it##_end; it++)

/* Of two arrays that one declaration has: `before` becomes what `now` is, and `now` is empty. */
#define array_turn(now, before)                                                                    \
	do {                                                                                       \
		const __typeof__(*(now)) kept_ = *(before);                                        \
		*(before) = *(now);                                                                \
		*(now) = kept_;                                                                    \
		(now)->n = 0;                                                                      \
	} while (0)

#define array_free(...)                                                                            \
	do {                                                                                       \
		EACH_ARG(array_free_, __VA_ARGS__)                                                 \
	} while (0)
#define array_free_(a) (free((a)->v), (a)->v = NULL, (a)->n = (a)->room = 0);
