/*
 * One command line, parsed by the tables that api/cli.awk makes. A struct options points into argv,
 * reorders it, and lives until options_free(). One thread uses it.
 *
 * Commands use opt_str() and similar functions (command.h). Only main.c and help.c need this
 * header.
 */
#pragma once

#include <limits.h>

#include "cmd/cli/command.h"

struct option_row {
	const char *command;
	const char *name;     /* as in --name */
	char letter;          /* as in -n; 0 when it has none */
	const char *argument; /* what the value is called, NULL for a flag; "X..." may repeat,
			       * "[X]" be left out, and is "" then */
	const char *fallback; /* the value when it is not given, or NULL */
	const char *help;
};

struct question_row {
	const char *words; /* with a blank around each: what it is looked up by */
	const char *here;  /* the command that answers it; NULL: none does */
	const char *text;
};

extern const struct question_row question_rows[]; /* ends with NULL words */
extern const struct command commands[];       /* in the order of the help; ends with a NULL name */
extern const struct option_row option_rows[]; /* grouped by command; ends with a NULL command */

struct given {
	const struct option_row *row;
	const char *value; /* NULL for a flag */
};

struct options {
	const struct command *command;
	bool help; /* --help was among the options: the rest was not checked */
	int argc;
	char **argv;
	int count;
	int split; /* how many arguments stand before a --; -1: there is none */
	struct given given[];
};

/* NULL when there is no such command. */
const struct command *command_find(const char *name);

/* Sets the speaker of `complain`; main() calls it. */
void command_enter(const struct command *c);

/*
 * Parses what follows the command's name: argv[0 .. argc-1], with argv[argc] NULL.  Returns 0,
 * or EXIT_USAGE after saying on stderr what is wrong.
 */
int options_parse(const struct command *c, int argc, char **argv, struct options **ret_o);
void options_free(struct options *o);

/* Says that there is no command `word`, and which name is near, or what answers when the argument
 * after it (or NULL) is a file; returns EXIT_USAGE. */
int unknown_command(const char *word, const char *argument);

/* The next question after `row` (NULL: the first) about one of the words of a text, those about
 * most of them first, or NULL; all are about NULL. */
const struct question_row *question_find(const struct question_row *row, const char *text);

/* The command that answers it, where there is one, with this installation's directories. */
#define QUESTION_COMMAND (PATH_MAX + 200)
void question_command(const struct question_row *row, char ret[QUESTION_COMMAND]);

/* `weir help` and `weir help COMMAND`. */
void help_overview(void);
void help_command(const struct command *c);
