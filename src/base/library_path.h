/* Finds Weir's own libraries. */
#pragma once

#include <stddef.h>

/* Beside the program that runs (../lib/weir), NUL-terminated; 0 or -errno. */
int library_path(const char *name, char *ret_path, size_t size);
