/* Digits and letters of ASCII, whatever the locale is. Host safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Writes a number in front of `end`, and returns where it begins. */
static inline char *digits_before(char *end, uint64_t value, unsigned base)
{
	do
		*--end = "0123456789abcdef"[value % base];
	while (value /= base);
	return end;
}

/* The value of a hexadecimal digit of either case; -1: it is none. */
static inline int hex_digit(char c)
{
	const char lower = (char)(c | 0x20);
	if (is_digit(c))
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
