/*
 * The program `weir`: finds the subcommand, parses its options, runs it.
 */
#include "options.h"

#include <stdio.h>
#include <string.h>

static const struct command *choose(const char *word)
{
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		word = "help";
	if (!strcmp(word, "--version") || !strcmp(word, "-V"))
		word = "version";
	return command_find(word);
}

static int run(const struct command *c, int argc, char **argv)
{
	struct options *o;
	int code;

	command_enter(c);
	code = options_parse(c, argc, argv, &o);
	if (code)
		return code;
	if (o->help)
		help_command(c);
	else
		code = c->run(o);
	options_free(o);
	return code;
}

/* Output that did not arrive (a full disk, say) must not look like success. */
static int finish(int code)
{
	bool failed = ferror(stdout);

	if ((fflush(stdout) || failed) && code == EXIT_YES)
		return complain(EXIT_ENVIRONMENT, "standard output could not be written");
	return code;
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		help_overview();
		return finish(EXIT_USAGE);
	}
	c = choose(argv[1]);
	if (!c)
		return unknown_command(argv[1]);
	return finish(run(c, argc - 2, argv + 2));
}
