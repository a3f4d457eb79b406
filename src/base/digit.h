/* Digits and letters of ASCII, whatever the locale is. Host safe. */
#pragma once

#include <stdbool.h>

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The value of a hexadecimal digit of either case; -1: it is none. */
static inline int hex_digit(char c)
{
	const char lower = (char)(c | 0x20);
	if (is_digit(c))
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
