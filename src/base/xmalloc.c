/* Memory that is there, or the end of the program. */
#include "base/xmalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_WITHOUT_MEMORY 3 /* EXIT_ENVIRONMENT of the commands */

void *xcheck(void *p)
{
	if (p)
		return p;
	fputs("weir: there is not enough memory\n", stderr);
	exit(EXIT_WITHOUT_MEMORY);
}

void *xmalloc(size_t bytes)
{
	return xcheck(malloc(bytes));
}

void *xcalloc(size_t n, size_t each)
{
	return xcheck(calloc(n, each));
}

void *xrealloc(void *p, size_t n, size_t each)
{
	return xcheck(reallocarray(p, n, each));
}

char *xstrdup(const char *text)
{
	return xcheck(strdup(text));
}

char *xstrndup(const char *text, size_t most)
{
	return xcheck(strndup(text, most));
}

char *xvasprintf(const char *format, va_list values)
{
	char *text;
	return xcheck(vasprintf(&text, format, values) < 0 ? NULL : text);
}

char *xasprintf(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	char *text = xvasprintf(format, values);
	va_end(values);
	return text;
}
