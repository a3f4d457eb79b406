/*
 * A subcommand of weir is one function in src/cmd/NAME.c. Its name, help and options are rows of
 * api/command.tbl and api/option.tbl. The parser, `weir help`, the man pages and the completions
 * come from these.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum exit_code {
	EXIT_YES = 0, /* done, or the answer is yes */
	EXIT_NO = 1,  /* the answer is no: a difference, a failed check */
	EXIT_USAGE =
		2, /* the command line is wrong, an input unreadable or without what is asked */
	EXIT_ENVIRONMENT = 3, /* no GPU, no permission, no room */
};

struct options; /* one parsed command line */

/* The option's value, or the default of its row, or NULL when it has neither. */
const char *opt_str(const struct options *o, const char *name);
bool opt_flag(const struct options *o, const char *name);

/* The default of another command's option, NULL when it has none. */
const char *opt_default(const char *command, const char *name);

/* Each value of an option that may be given several times: i = 0, 1 … until NULL. */
const char *opt_nth(const struct options *o, const char *name, int i);

/* The rest: the arguments that are no options (from the program on, where one is started).
 * Terminated by a NULL. */
int opt_argc(const struct options *o);
char **opt_argv(const struct options *o);

/* How many of them stood before a "--"; -1 when there was none. */
int opt_split(const struct options *o);

struct command {
	const char *name;
	const char *group;
	const char *arguments; /* as in the synopsis: "FILE", "-- PROGRAM [ARGUMENT...]" */
	const char *help;      /* one line */
	int (*run)(const struct options *o);
};

/* The section of a report that answers a question about the word; false when none does. */
bool question_section(const char *word, char ret_name[40]);

/* Prints "weir COMMAND: message" on stderr, returns code: `return complain(EXIT_USAGE, …);` */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "weir: message" on stderr: what beside the recorded program's own output is known to be Weir's.
 */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));
