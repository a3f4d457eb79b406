/* Libraries that are looked for when they are needed, so that all else works where they are not. */
#pragma once

#include <stddef.h>

/* A function, and where in a struct of pointers to functions its address goes. */
struct library_symbol {
	const char *name;
	size_t at;
};

/* Loads a library for good, and fills in all of them.  0; -ENOENT: it is not here; -ENOSYS: it
 * lacks one. */
int library_load(const char *file, const struct library_symbol *symbols, size_t n, void *functions);

/* Beside the program that runs (../lib/weir), NUL-terminated; 0 or -errno. */
int library_path(const char *name, char *ret_path, size_t size);
