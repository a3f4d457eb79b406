/*
 * Fuzzes the parser of command lines.  The input is a command line whose arguments are separated
 * by zero bytes; the first names the command.
 */
#include "cmd/cli/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

/* A table that has every shape of row and argument. */
const struct command commands[] = {
	{ "run", "g", "-- PROGRAM [ARGUMENT...]", "start a program", NULL },
	{ "look", "g", "FILE", "one file", NULL },
	{ "two", "g", "PID|FILE COMMAND", "two arguments", NULL },
	{ "maybe", "g", "[-- PROGRAM [ARGUMENT...]]", "perhaps a program", NULL },
	{ "bare", "g", "", "no arguments", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

const struct question_row question_rows[] = { { NULL, NULL, NULL } };

const struct option_row option_rows[] = {
	{ "run", "output", 'o', "FILE", "x", "a value with a default" },
	{ "run", "expression", 'e', "FILTER...", NULL, "many values" },
	{ "run", "quiet", 'q', NULL, NULL, "a flag" },
	{ "look", "json", 0, NULL, NULL, "a flag without a letter" },
	{ "look", "top", 'n', "N", "20", "a number" },
	{ NULL, NULL, 0, NULL, NULL, NULL },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int split(char *text, size_t size, char **argv, int most)
{
	int argc = 0;

	for (size_t i = 0; i < size && argc < most; i += strlen(text + i) + 1)
		argv[argc++] = text + i;
	argv[argc] = NULL;
	return argc;
}

/* Uses the options as a command may. */
static void use(struct options *o)
{
	if (o->help)
		return;
	for (int i = 0; i < opt_argc(o); i++)
		if (!opt_argv(o)[i])
			abort();
	if (opt_argv(o)[opt_argc(o)])
		abort();
	for (const struct option_row *row = option_rows; row->command; row++) {
		if (strcmp(row->command, o->command->name))
			continue;
		if (row->argument && opt_flag(o, row->name) && !opt_str(o, row->name))
			abort();
		if (row->argument && opt_flag(o, row->name) != (opt_nth(o, row->name, 0) != NULL))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[64];
	struct options *o;
	const struct command *c;
	int argc;

	memcpy(text, data, size);
	text[size] = 0;
	argc = split(text, size, argv, 63);
	c = argc ? command_find(argv[0]) : NULL;
	if (argc && !c)
		unknown_command(argv[0], NULL);
	if (c && options_parse(c, argc - 1, argv + 1, &o) == 0) {
		use(o);
		options_free(o);
	}
	free(text);
	return 0;
}
