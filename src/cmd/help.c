/*
 * `weir help`: what there is, and how each command is called, read from the same tables as
 * the parser.
 */
#include "cmd/cli/options.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *group, *title;
} groups[] = {
	{ "record", "See what a program does" },
	{ "share", "Share a GPU" },
	{ "look", "Read a recording" },
	{ "help", "Find your way" },
};

static void print_group(const char *group, const char *title)
{
	bool first = true;

	for (const struct command *c = commands; c->name; c++) {
		if (strcmp(c->group, group))
			continue;
		if (first)
			printf("\n%s\n", title);
		printf("  %-9s %s\n", c->name, c->help);
		first = false;
	}
}

void help_overview(void)
{
	puts("weir records what a CUDA program asks of the GPU, without changing the program.\n\n"
	     "usage: weir COMMAND [OPTION...] [ARGUMENT...]");
	for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
		print_group(groups[g].group, groups[g].title);
	puts("\n`weir help COMMAND` explains one.  `weir doctor` says what works on this machine.");
}

static void print_option(const struct option_row *row)
{
	char argument[32] = "", letter[4] = "  ", name[64];

	if (row->argument && row->argument[0] == '[')
		snprintf(argument, sizeof argument, "[=%s", row->argument + 1);
	else if (row->argument)
		snprintf(argument, sizeof argument, "=%.*s", (int)strcspn(row->argument, "."),
			row->argument);
	if (row->letter)
		snprintf(letter, sizeof letter, "-%c", row->letter);
	snprintf(name, sizeof name, "--%s%s", row->name, argument);
	printf("  %s%c %-22s %s", letter, row->letter ? ',' : ' ', name, row->help);
	if (row->fallback)
		printf(" (%s)", row->fallback);
	putchar('\n');
}

/* Commands without options are explained in weir(1). */
static bool has_page(const struct command *c)
{
	for (const struct option_row *row = option_rows; row->command; row++)
		if (!strcmp(row->command, c->name))
			return true;
	return !strcmp(c->group, "record");
}

void help_command(const struct command *c)
{
	printf("weir %s: %s\n\nusage: weir %s [OPTION...]%s%s\n\n", c->name, c->help, c->name,
		*c->arguments ? " " : "", c->arguments);
	for (const struct option_row *row = option_rows; row->command; row++)
		if (!strcmp(row->command, c->name))
			print_option(row);
	printf("  -h, %-22s %s\n", "--help", "explain the command");
	printf("\n`man %s%s` says more.\n", has_page(c) ? "weir-" : "weir",
		has_page(c) ? c->name : "");
}

int cmd_help(const struct options *o)
{
	const char *name = opt_argv(o)[0];
	const struct command *c;

	if (!name) {
		help_overview();
		return EXIT_YES;
	}
	c = command_find(name);
	if (c) {
		help_command(c);
		return EXIT_YES;
	}
	return unknown_command(name);
}
