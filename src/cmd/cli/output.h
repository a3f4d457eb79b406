/*
 * The output of a command: standard output, a pipe or terminal, or a file. A file appears whole or
 * not at all, and only its owner may read it.
 */
#pragma once

#include <stdio.h>

#include "cmd/cli/options.h"

/* --output; NULL, which is standard output, without it and for "-". */
const char *output_path(const struct options *o);

/*
 * The name of an output with its marks filled in: %p this process's number, %h the host, %q{NAME}
 * a variable of the environment, %% a percent sign.  0, or an exit code after complaining.
 */
int output_expand(const char *pattern, char *ret_path, size_t size);

/*
 * For what is to be read while it is written: for its owner alone, and no link to a file of
 * somebody else's; a pipe or a device may be one.  NULL: errno says why.
 */
FILE *output_open(const char *path);

/* Calls put() with the stream; path NULL is standard output.  0 or -errno, of put() first. */
int output_write(const char *path, int (*put)(void *context, FILE *out), void *context);
