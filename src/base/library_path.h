/* Finds Weir's own libraries. */
#ifndef WEIR_BASE_LIBRARY_PATH_H
#define WEIR_BASE_LIBRARY_PATH_H

#include <stddef.h>

/* Beside the program that runs (../lib/weir), NUL-terminated; 0 or -errno. */
int library_path(const char *name, char *ret_path, size_t size);

#endif
