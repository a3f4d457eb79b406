/*
 * Sorts an ARRAY by a function, like qsort(). Data of a trace is mostly in order, or consists of
 * long runs that are: in order it costs one pass, and else a merge of its runs. Records that the
 * function takes for equal may change places. An empty array may have no memory.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* How such a function orders two numbers; several: ORDER(a->x, b->x) ?: ORDER(a->y, b->y). */
#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

/* A function that orders two structs of a type, a and b, by the first of up to five expressions
 * that tells them apart. */
#define ORDERING(name, type, ...)                                                                  \
	static int name(const void *one, const void *two)                                          \
	{                                                                                          \
		const type *a = one;                                                               \
		const type *b = two;                                                               \
		static_assert(sizeof((int[]){ __VA_ARGS__ }) <= 5 * sizeof(int), "");              \
		return ORDER_FIRST(__VA_ARGS__, 0, 0, 0, 0, 0);                                    \
	}
#define ORDER_FIRST(p, q, r, s, t, ...) ((p) ?: (q) ?: (r) ?: (s) ?: (t))

static inline int order_u64(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int order_real(const void *a, const void *b)
{
	return ORDER(*(const double *)a, *(const double *)b);
}

void sort_records(void *v, size_t n, size_t each, int (*order)(const void *, const void *));

/*
 * Sorts n elements in place, without memory and without a call for each comparison: Shell's
 * insertion at distances that shrink by about 2.2, and end with 1. is_after(a, b) says of two
 * elements whether a belongs behind b. Host safe.
 */
#define SORT_IN_PLACE(v, n, is_after)                                                              \
	for (size_t gap_ = (n); gap_ > 1;) {                                                       \
		gap_ = gap_ < 5 ? 1 : gap_ * 5 / 11;                                               \
		for (size_t i_ = gap_; i_ < (n); i_++) {                                           \
			const __typeof__(*(v)) late_ = (v)[i_];                                    \
			size_t to_ = i_;                                                           \
			for (; to_ >= gap_ && is_after((v)[to_ - gap_], late_); to_ -= gap_)       \
				(v)[to_] = (v)[to_ - gap_];                                        \
			(v)[to_] = late_;                                                          \
		}                                                                                  \
	}

static inline void sort_floats(float *v, size_t n)
{
#define IS_LARGER(a, b) ((a) > (b))
	SORT_IN_PLACE(v, n, IS_LARGER)
#undef IS_LARGER
}

#define SORT(array, order) sort_records((array).v, (array).n, sizeof(*(array).v), order)

/* The same with a context, which the function gets. */
#define SORT_WITH(array, order, context)                                                           \
	do {                                                                                       \
		if ((array).n)                                                                     \
			qsort_r((array).v, (array).n, sizeof(*(array).v), order, context);         \
	} while (0)
