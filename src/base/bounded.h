/*
 * Writes text into existing memory, leaves out the text that does not fit, and sets `cut`.
 *
 *	struct bounded b = BOUNDED(list);
 *	bounded_printf(&b, "%s%s", b.used ? ", " : "", name);
 *	puts(bounded_end(&b));
 *
 * All functions but bounded_printf() are safe inside other people's programs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/digit.h"

struct bounded {
	char *to;
	size_t size; /* with the NUL */
	size_t used; /* without it */
	bool cut;
};

#define BOUNDED(array) ((struct bounded){ .to = (array), .size = sizeof array })

static inline void bounded_char(struct bounded *b, char c)
{
	if (b->used + 1 < b->size)
		b->to[b->used++] = c;
	else
		b->cut = true;
}

static inline void bounded_bytes(struct bounded *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bounded_char(b, s[i]);
}

static inline void bounded_put(struct bounded *b, const char *s)
{
	bounded_bytes(b, s, strlen(s));
}

void bounded_printf(struct bounded *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* With zeros in front, `least` digits.  Bases from 10 to 16. */
static inline void bounded_number(struct bounded *b, uint64_t value, unsigned base, int least)
{
	char digits[20], *const end = digits + sizeof digits;
	const char *at = digits_before(end, value, base);
	for (long zeros = least - (end - at); zeros > 0; zeros--)
		bounded_char(b, '0');
	bounded_bytes(b, at, (size_t)(end - at));
}

static inline void bounded_decimal(struct bounded *b, uint64_t value)
{
	bounded_number(b, value, 10, 1);
}

static inline void bounded_signed(struct bounded *b, int64_t value)
{
	if (value < 0)
		bounded_char(b, '-');
	bounded_decimal(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Puts the NUL, and is the text; NULL where there is no room even for that. */
static inline const char *bounded_end(struct bounded *b)
{
	if (b->size)
		b->to[b->used] = '\0';
	return b->size ? b->to : NULL;
}
