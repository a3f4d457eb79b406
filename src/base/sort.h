/*
 * Sorts an ARRAY by a function, like qsort(). An array that is already in order, as most data of a
 * trace is, costs one pass. An empty array may have no memory.
 */
#ifndef WEIR_BASE_SORT_H
#define WEIR_BASE_SORT_H

#include <stddef.h>
#include <stdlib.h>

/* What such a function says of two numbers. */
#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

static inline void sort_records(
	void *v, size_t n, size_t each, int (*order)(const void *, const void *))
{
	const char *p = v;
	size_t i = 1;
	while (i < n && order(p + (i - 1) * each, p + i * each) <= 0)
		i++;
	if (i < n)
		qsort(v, n, each, order);
}

#define SORT(array, order) sort_records((array).v, (array).n, sizeof(*(array).v), order)

#endif
