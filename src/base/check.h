/*
 * Arithmetic on sizes that come from outside: check_mul() says whether the product fits, and stores
 * it only then.  Also the smaller and the larger of two numbers.  Host safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool check_mul(size_t a, size_t b, size_t *ret_product)
{
	size_t product;
	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret_product = product;
	return true;
}

/* They name their arguments twice, as the conditional would. */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Counts and byte totals stop at the largest number instead of starting over. */
static inline uint64_t sat_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t sat_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t sat_mul(uint64_t a, uint64_t b)
{
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The next multiple, of a number that is far from the largest. */
static inline uint64_t round_up(uint64_t n, uint64_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

/* A number that is not below 0, as far as it fits. */
static inline uint64_t sat_from(double value)
{
	return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}
