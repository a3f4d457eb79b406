/*
 * The input of a reading command: a trace, another tool's file, or "-" for standard input. Another
 * tool's file is first imported to a file without a name. The contents decide, not the name.
 */
#pragma once

#include "cmd/cli/command.h"
#include "trace/trace.h"

/* 0, or an exit code after complaining. */
int input_open_file(const char *path, struct trace **ret_t);

/* Whether it begins as a recording of Weir's does, whatever its state. */
bool input_is_recording(const char *path);

struct input_files {
	char *const *v;
	int count; /* one at least */
};

/* The arguments; when there are none, the name that `weir record` gives a recording. */
struct input_files input_files(const struct options *o);

/* All of these as one recording (merge.h), and of it the part that is asked for
 * (part_options.h).  Says so when it reads a file that was not named. */
int input_open(const struct options *o, struct trace **ret_t);

/* The same of some of them; `o` for the part. */
int input_open_files(const struct options *o, char *const *files, int count, struct trace **ret_t);
