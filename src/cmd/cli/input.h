/*
 * What a command that reads is given: a trace of Weir's, a file of another tool's, which is
 * imported to a file without a name first, or "-", standard input.  Contents decide, not names.
 */
#ifndef WEIR_CMD_CLI_INPUT_H
#define WEIR_CMD_CLI_INPUT_H

#include "cmd/cli/command.h"
#include "trace/trace.h"

/* 0, or an exit code after complaining. */
int input_open_file(const char *path, struct trace **ret_t);

/* Whether it is a recording of Weir's, whatever its state. */
bool input_is_recording(const char *path);

/* All arguments as one recording (together.h), and of it the part that is asked for
 * (part_options.h). */
int input_open(const struct options *o, struct trace **ret_t);

/* The same of some of the arguments; `o` for the part. */
int input_open_files(const struct options *o, char *const *files, int count, struct trace **ret_t);

#endif
