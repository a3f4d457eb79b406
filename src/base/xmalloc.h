/*
 * Memory of the program: these never return NULL.  Without memory weir says so and ends with the
 * status of an environment that does not let it work, so no caller looks for a failure.  Any
 * thread; not for code that runs inside other people's programs.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/each.h"

void *xmalloc(size_t bytes);
void *xcalloc(size_t n, size_t each);
void *xrealloc(void *p, size_t n, size_t each);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t most);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list values) __attribute__((format(printf, 1, 0)));

/* A library's allocation, unless it is NULL. */
void *xcheck(void *p);

/* Frees one to eight of them. */
#define free_all(...)                                                                              \
	do {                                                                                       \
		EACH_ARG(free_one_, __VA_ARGS__)                                                   \
	} while (0)
#define free_one_(p) free(p);
