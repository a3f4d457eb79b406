/*
 * The hook has no stdio, so it has its own error_set() of base/error.h. It knows %s, %u, %d, %zu,
 * %llu, %.1f and %%.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
	char *at, *end; /* end: where the NUL has room */
};

static void put(struct text *t, const char *s)
{
	while (*s && t->at < t->end)
		*t->at++ = *s++;
}

static void put_number(struct text *t, uint64_t value)
{
	char digits[24];
	size_t at = sizeof digits;
	digits[--at] = 0;
	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	put(t, digits + at);
}

static void put_tenths(struct text *t, double value)
{
	const uint64_t tenths = (uint64_t)((value < 0 ? -value : value) * 10 + 0.5);
	const char last[] = { '.', (char)('0' + tenths % 10), 0 };
	put(t, value < 0 ? "-" : "");
	put_number(t, tenths / 10);
	put(t, last);
}

static void put_int(struct text *t, int value)
{
	put(t, value < 0 ? "-" : "");
	put_number(t, (uint64_t)(value < 0 ? -(int64_t)value : value));
}

int error_set(struct error *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	struct text t = { err->text, err->text + sizeof err->text - 1 };
	va_list ap;
	va_start(ap, format);
	for (; *format && t.at < t.end; format++) {
		if (*format != '%') {
			*t.at++ = *format;
		} else if (*++format == 's') {
			put(&t, va_arg(ap, const char *));
		} else if (*format == 'u') {
			put_number(&t, va_arg(ap, unsigned));
		} else if (*format == 'd') {
			put_int(&t, va_arg(ap, int));
		} else if (!strncmp(format, "zu", 2)) {
			put_number(&t, va_arg(ap, size_t));
			format++;
		} else if (!strncmp(format, "llu", 3)) {
			put_number(&t, va_arg(ap, unsigned long long));
			format += 2;
		} else if (!strncmp(format, ".1f", 3)) {
			put_tenths(&t, va_arg(ap, double));
			format += 2;
		} else {
			put(&t, "%");
		}
	}
	va_end(ap);
	*t.at = 0;
	return code;
}
