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

static inline void bounded_decimal(struct bounded *b, uint64_t value)
{
	char digits[20];
	size_t n = 0;
	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		bounded_char(b, digits[--n]);
}

/* Puts the NUL, and is the text; NULL where there is no room even for that. */
static inline const char *bounded_end(struct bounded *b)
{
	if (b->size)
		b->to[b->used] = '\0';
	return b->size ? b->to : NULL;
}
