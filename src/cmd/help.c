/*
 * `weir help`: what there is, and how each command is called, read from the same tables as
 * the parser.
 */
#include "cmd/cli/options.h"
#include "base/xmalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *group, *title;
} groups[] = {
	{ "record", "See what a program does" },
	{ "look", "Read a recording" },
	{ "share", "Share a GPU" },
	{ "serve", "Serve models" },
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
	puts("weir records CUDA programs as they are, lets them share a GPU, and serves models.\n\n"
	     "usage: weir COMMAND [OPTION...] [ARGUMENT...]");
	for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
		print_group(groups[g].group, groups[g].title);
	puts("\n`weir help COMMAND` explains one.  `weir doctor` says what works on this machine.\n"
	     "`weir help questions` lists what people ask, with the command that answers each;\n"
	     "`weir help WORD` those about a word: leak, idle, overlap, flops, gaps ...");
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

/* Whether it names a file. */
static bool print_question(const struct question_row *row)
{
	char command[QUESTION_COMMAND];
	puts(row->text);
	if (!row->here)
		return false;
	question_command(row, command);
	printf("    %s\n", command);
	return strstr(row->here, "FILE");
}

static void explain_file(void)
{
	puts("\nFILE: a recording (weir record --gpu -- ./app), or a trace of torch.profiler, JAX or\n"
	     "Nsight Systems (SQLite).");
}

/* text: NULL for all. */
static void print_questions(const char *text)
{
	const struct question_row *row = NULL;
	bool of_file = false;
	while ((row = question_find(row, text)))
		of_file = print_question(row) || of_file;
	if (of_file)
		explain_file();
}

/* A question without a command of its own names the command in its text. */
static bool is_answered_by(const struct question_row *row, const char *name)
{
	char begin[40];
	snprintf(begin, sizeof begin, "weir %s ", name);
	return row->here ? !strncmp(row->here, begin, strlen(begin))
			 : strstr(row->text, begin) != NULL;
}

#define QUESTIONS_SHOWN 5u

static void print_questions_of(const struct command *c)
{
	const struct question_row *row = NULL;
	unsigned n = 0;
	bool of_file = false;
	while ((row = question_find(row, NULL))) {
		if (!is_answered_by(row, c->name) || ++n > QUESTIONS_SHOWN)
			continue;
		if (n == 1)
			puts("\nQuestions that it answers:");
		of_file = print_question(row) || of_file;
	}
	if (n > QUESTIONS_SHOWN)
		printf("`weir help questions` lists %u more.\n", n - QUESTIONS_SHOWN);
	if (of_file)
		explain_file();
}

/* Several arguments are words of one question: joined. */
static char *join(char **argv)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = xcheck(open_memstream(&text, &bytes));
	for (int i = 0; argv[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", argv[i]);
	fclose(out);
	return xcheck(text);
}

static int answer(const char *text)
{
	const bool all = !strcmp(text, "questions");
	if (!all && !question_find(NULL, text))
		return unknown_command(text, NULL);
	print_questions(all ? NULL : text);
	return EXIT_YES;
}

int cmd_help(const struct options *o)
{
	char **argv = opt_argv(o);
	const struct command *c;
	if (!argv[0]) {
		help_overview();
		return EXIT_YES;
	}
	c = argv[1] ? NULL : command_find(argv[0]);
	if (c) {
		help_command(c);
		print_questions_of(c);
		return EXIT_YES;
	}
	char *text = join(argv);
	const int code = answer(text);
	free(text);
	return code;
}
