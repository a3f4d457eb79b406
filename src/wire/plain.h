/*
 * Text that JSON holds as it stands, found eight bytes at a time: printable ASCII without quotation
 * marks and backslashes. Little-endian, as tensors are.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#define EIGHT(byte) (0x0101010101010101u * (uint8_t)(byte))

/* The lowest bit that is set is in the first byte below the limit; bits above it say nothing. */
static inline uint64_t eight_below(uint64_t v, uint8_t limit)
{
	return (v - EIGHT(limit)) & ~v & EIGHT(0x80);
}

/* The first byte that is not plain, or end. */
static inline const char *plain_end(const char *at, const char *end)
{
	for (; end - at >= 8; at += 8) {
		uint64_t v;
		memcpy(&v, at, sizeof v);
		const uint64_t other = eight_below(v, ' ') | eight_below(v ^ EIGHT('"'), 1) |
				       eight_below(v ^ EIGHT('\\'), 1) | (v & EIGHT(0x80));
		if (other)
			return at + (__builtin_ctzll(other) >> 3);
	}
	while (at < end && (unsigned char)(*at - ' ') < 0x60 && *at != '"' && *at != '\\')
		at++;
	return at;
}
