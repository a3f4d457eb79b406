/* Failures in words: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	va_list ap;
	va_start(ap, format);
	vsnprintf(err->text, sizeof err->text, format, ap);
	va_end(ap);
	return code;
}
