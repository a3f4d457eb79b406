/*
 * Numbers of JSON: read exactly, printed as the shortest text that reads back equal.
 *
 * A decimal is w * 10^e. If e is within 27, then 5^e has 64 bits, and integers of 128 bits say in
 * which direction to round. The C library does the others. Any thread, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decimal {
	const char *from; /* where it stands */
	uint64_t digits;  /* of the number without sign and point, the first 19 */
	int exponent;
	bool negative;
	bool integer; /* neither a point nor an exponent */
	bool cut;     /* there were more digits */
};

/* Reads a number by the grammar of JSON. NULL: there is none, or it ends at `end`, where no JSON
 * text has it end. Else what stands behind it. */
const char *decimal_read(const char *at, const char *end, struct decimal *ret);

/* The nearest double, or the nearest float as a double. Infinity: it is too large for the type. */
double decimal_value(const struct decimal *d, bool single);

#define REAL_MOST 32 /* bytes of a printed number */

/* Prints a double, or a float as a double. Numbers that are whole end in .0, so that a client in a
 * language without types reads a real. NaN, Infinity and -Infinity are as Triton prints them, which
 * is no JSON but read by Python and by rapidjson. Returns the bytes. */
size_t real_put(char out[static REAL_MOST], double value, bool single);
