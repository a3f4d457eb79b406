/* Writes text into a buffer of fixed size. */
#include "base/bounded.h"

#include <stdarg.h>
#include <stdio.h>

void bounded_printf(struct bounded *b, const char *format, ...)
{
	const size_t left = b->size - b->used;
	va_list ap;
	va_start(ap, format);
	const int n = left ? vsnprintf(b->to + b->used, left, format, ap) : -1;
	va_end(ap);
	const bool fits = n >= 0 && (size_t)n < left;
	b->cut |= !fits;
	b->used += fits ? (size_t)n : n < 0 || !left ? 0 : left - 1;
}
