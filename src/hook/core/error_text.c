/*
 * The hook has no stdio, so it has its own error_set() of base/error.h. It knows %s, %u, %d, %zu,
 * %llu, %.1f and %%.
 */
#include "base/error.h"

#include <stdarg.h>

#include "base/bounded.h"

static void put_tenths(struct bounded *t, double value)
{
	const uint64_t tenths = (uint64_t)((value < 0 ? -value : value) * 10 + 0.5);
	bounded_put(t, value < 0 ? "-" : "");
	bounded_decimal(t, tenths / 10);
	bounded_char(t, '.');
	bounded_decimal(t, tenths % 10);
}

int error_set(struct error *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	struct bounded t = BOUNDED(err->text);
	va_list ap;
	va_start(ap, format);
	for (; *format; format++) {
		if (*format != '%') {
			bounded_char(&t, *format);
		} else if (*++format == 's') {
			bounded_put(&t, va_arg(ap, const char *));
		} else if (*format == 'u') {
			bounded_decimal(&t, va_arg(ap, unsigned));
		} else if (*format == 'd') {
			bounded_signed(&t, va_arg(ap, int));
		} else if (!strncmp(format, "zu", 2)) {
			bounded_decimal(&t, va_arg(ap, size_t));
			format++;
		} else if (!strncmp(format, "llu", 3)) {
			bounded_decimal(&t, va_arg(ap, unsigned long long));
			format += 2;
		} else if (!strncmp(format, ".1f", 3)) {
			put_tenths(&t, va_arg(ap, double));
			format += 2;
		} else {
			bounded_char(&t, '%');
		}
	}
	va_end(ap);
	bounded_end(&t);
	return code;
}
