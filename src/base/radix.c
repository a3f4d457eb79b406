/* Sorts by radix. */
#include "base/radix.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/xmalloc.h"

#define DIGIT_BITS 11
#define DIGITS     6 /* of 11 bits: 64 and two to spare */
#define VALUES     (1u << DIGIT_BITS)

struct layout {
	size_t n, each, key, width;
};

static uint64_t key_at(const char *v, size_t i, const struct layout *l)
{
	const char *at = v + i * l->each + l->key;
	uint64_t k = 0;
	uint32_t half;
	if (l->width == sizeof k) {
		memcpy(&k, at, sizeof k);
		return k;
	}
	memcpy(&half, at, sizeof half);
	return half;
}

static unsigned digit_of(uint64_t k, int digit)
{
	return (unsigned)(k >> digit * DIGIT_BITS) & (VALUES - 1);
}

static bool is_sorted(const char *v, const struct layout *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (key_at(v, i - 1, l) > key_at(v, i, l))
			return false;
	return true;
}

/* How many records have each value of the digit; false when all have the same. */
static bool count_digit(const char *v, const struct layout *l, int digit, size_t counts[VALUES])
{
	memset(counts, 0, VALUES * sizeof *counts);
	for (size_t i = 0; i < l->n; i++)
		counts[digit_of(key_at(v, i, l), digit)]++;
	return counts[digit_of(key_at(v, 0, l), digit)] != l->n;
}

static void deal(
	const char *from, char *to, const struct layout *l, int digit, size_t counts[VALUES])
{
	size_t at = 0;
	for (unsigned d = 0; d < VALUES; d++) {
		const size_t here = counts[d];
		counts[d] = at;
		at += here;
	}
	for (size_t i = 0; i < l->n; i++)
		memcpy(to + counts[digit_of(key_at(from, i, l), digit)]++ * l->each,
			from + i * l->each, l->each);
}

void radix_sort(void *v, size_t n, size_t each, size_t key, size_t width)
{
	const struct layout l = { n, each, key, width };
	size_t counts[VALUES];
	char *from = v;
	if (is_sorted(v, &l))
		return;
	char *other = xcalloc(n, each), *to = other;
	for (int digit = 0; digit < DIGITS; digit++) {
		if (!count_digit(from, &l, digit, counts))
			continue;
		deal(from, to, &l, digit, counts);
		char *swap = from;
		from = to;
		to = swap;
	}
	if (from == other)
		memcpy(v, other, n * each);
	free(other);
}
