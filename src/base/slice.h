/*
 * Bytes of somebody else's memory: a piece of a text that has no NUL behind it.  The giver of the
 * slice says how long the bytes stay.  Host safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct slice {
	const char *at; /* NULL: there is none */
	size_t n;
};

#define SLICE(literal) ((struct slice){ (literal), sizeof "" literal - 1 })
/* For printf's %.*s. */
#define SLICE_ARG(s) (int)(s).n, (s).at ? (s).at : ""

static inline struct slice slice_of(const char *text)
{
	return (struct slice){ text, text ? strlen(text) : 0 };
}

static inline bool slice_equal(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

static inline bool slice_is(struct slice s, const char *text)
{
	return slice_equal(s, slice_of(text));
}

/* Capital letters of ASCII are like small ones. */
static inline bool slice_is_nocase(struct slice s, const char *text)
{
	return s.n == strlen(text) && (s.n == 0 || strncasecmp(s.at, text, s.n) == 0);
}

/* Decimal digits and nothing else; false when there are none, or the number does not fit. */
static inline bool slice_u64(struct slice s, uint64_t *ret)
{
	uint64_t value = 0;
	for (size_t i = 0; i < s.n; i++) {
		const unsigned digit = (unsigned char)s.at[i] - (unsigned)'0';
		if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, digit, &value))
			return false;
	}
	if (s.n)
		*ret = value;
	return s.n > 0;
}
