/*
 * Sorting records by one number in them, in linear time: a least-significant-digit
 * radix sort that passes over digits in which all numbers agree.  Stable.
 */
#pragma once

#include <stddef.h>

/* n records of `each` bytes at v; the number stands `key` bytes into a record and has `width`
 * bytes, 4 or 8. */
void radix_sort(void *v, size_t n, size_t each, size_t key, size_t width);

/* By a field of the elements of an ARRAY. */
#define RADIX_SORT(array, field)                                                                   \
	radix_sort((array).v, (array).n, sizeof(*(array).v),                                       \
		offsetof(__typeof__(*(array).v), field), sizeof((array).v->field))
