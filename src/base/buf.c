/* Bytes that grow: numbers and formatted text behind what is there. */
#include "base/buf.h"
#include "base/digit.h"

#include <stdio.h>

void buf_u64(struct buf *b, uint64_t value)
{
	char digits[20], *const end = digits + sizeof digits;
	const char *at = digits_before(end, value, 10);
	buf_put(b, at, (size_t)(end - at));
}

void buf_i64(struct buf *b, int64_t value)
{
	if (value < 0)
		buf_put(b, "-", 1);
	buf_u64(b, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n <= 0)
		return;
	va_start(args, format);
	vsnprintf(buf_more(b, (size_t)n + 1), (size_t)n + 1, format, args);
	va_end(args);
	b->n += (size_t)n;
}

const char *buf_text(struct buf *b)
{
	*buf_more(b, 1) = 0;
	return b->v;
}
