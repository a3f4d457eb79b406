/*
 * Parses the options of every subcommand.
 *
 * Options are --name, --name=VALUE, --name VALUE, -n, -n VALUE and -nVALUE, and `--` ends them. A
 * value in brackets in the table, "[WHAT]", must be joined. Options may stand before or after the
 * arguments. If a command starts a program, everything after the program's name belongs to the
 * program.
 */
#include "cmd/cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/shared_library.h"
#include "base/xmalloc.h"

static const struct command *speaker;

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

void command_enter(const struct command *c)
{
	speaker = c;
}

/* Names of files and kernels may be in it. */
static char *safe_text(const char *format, va_list ap)
{
	char *text;
	if (vasprintf(&text, format, ap) < 0)
		return NULL;
	text_make_safe(text);
	return text;
}

int complain(int code, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	char *text = safe_text(format, ap);
	va_end(ap);
	fflush(stdout);
	fprintf(stderr, "weir%s%s: %s\n", speaker ? " " : "", speaker ? speaker->name : "",
		text ? text : format);
	free(text);
	return code;
}

void remark(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	char *text = safe_text(format, ap);
	va_end(ap);
	fprintf(stderr, "weir: %s\n", text ? text : format);
	free(text);
}

/* Options of the command being parsed; the rest of the table belongs to others. */
static const struct option_row *next_row(const struct command *c, const struct option_row *row)
{
	for (row = row ? row + 1 : option_rows; row->command; row++)
		if (!strcmp(row->command, c->name))
			return row;
	return NULL;
}

static const struct option_row *find_long(const struct command *c, const char *name, size_t length)
{
	const struct option_row *row = NULL;
	while ((row = next_row(c, row)))
		if (strlen(row->name) == length && !memcmp(row->name, name, length))
			break;
	return row;
}

static const struct option_row *find_letter(const struct command *c, char letter)
{
	const struct option_row *row = NULL;
	while ((row = next_row(c, row)))
		if (row->letter == letter)
			break;
	return row;
}

/* next(context) returns names until NULL. The one nearest to word is returned, or NULL if none is
 * near enough to be a slip of the keyboard. */
static const char *nearest(const char *word, const char *(*next)(void *context), void *context)
{
	const char *name, *found = NULL;
	unsigned limit = strlen(word) < 4 ? 2 : 3;
	while ((name = next(context))) {
		unsigned d = text_distance(word, name, limit);
		if (d < limit) {
			limit = d;
			found = name;
		}
	}
	return found;
}

struct cursor {
	const struct command *command;
	const struct option_row *row;
	bool done;
};

static const char *next_option(void *context)
{
	struct cursor *at = context;
	if (at->done)
		return NULL;
	at->row = next_row(at->command, at->row);
	at->done = !at->row;
	return at->row ? at->row->name : "help";
}

static const char *next_command(void *context)
{
	const struct command **at = context;
	const char *name = (*at)->name;
	if (name)
		++*at;
	return name;
}

/* Bytes of a word without its ending: launch, launches, launching are one. */
static size_t stem(const char *word, size_t length)
{
	static const struct {
		const char *text;
		size_t stays; /* bytes at least */
	} endings[] = { { "s", 3 }, { "ing", 3 }, { "ed", 3 }, { "e", 4 } };
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		const size_t n = strlen(endings[i].text);
		if (length >= n + endings[i].stays &&
			!strncasecmp(word + length - n, endings[i].text, n))
			length -= n;
	}
	return length;
}

static const char *next_token(const char *text, size_t *ret_length)
{
	text += strspn(text, " \t\n,?");
	*ret_length = strcspn(text, " \t\n,?");
	return *ret_length ? text : NULL;
}

/* One of these words is this one, in whatever form. */
static bool has_word(const char *words, const char *word, size_t length)
{
	size_t n, most = stem(word, length);
	if (length < 2)
		return false;
	for (const char *at = words; (at = next_token(at, &n)); at += n)
		if (stem(at, n) == most && !strncasecmp(at, word, most))
			return true;
	return false;
}

/* How many words of the text are among these, of so many letters at least. */
static unsigned fits(const char *words, const char *text, size_t letters)
{
	unsigned count = 0;
	size_t n;
	for (const char *at = text; (at = next_token(at, &n)); at += n)
		count += n >= letters && has_word(words, at, n);
	return count;
}

/* Whether one of the words that rows are about is in the text. */
static bool is_known(const char *text)
{
	for (const struct question_row *at = question_rows; at->words; at++)
		if (fits(at->words, text, 2))
			return true;
	return false;
}

/* The row's own words; those of its question where no row's are in the text. */
static unsigned fits_row(const struct question_row *row, const char *text, bool known)
{
	return known ? fits(row->words, text, 2) : fits(row->text, text, 5);
}

const struct question_row *question_find(const struct question_row *row, const char *text)
{
	const struct question_row *found = NULL;
	unsigned best = 0;
	if (!text) {
		row = row ? row + 1 : question_rows;
		return row->words ? row : NULL;
	}
	const bool known = is_known(text);
	const unsigned most = row ? fits_row(row, text, known) : UINT_MAX;
	for (const struct question_row *at = question_rows; at->words; at++) {
		const unsigned n = fits_row(at, text, known);
		if (n <= best || n > most || (row && n == most && at <= row))
			continue;
		best = n;
		found = at;
	}
	return found;
}

void question_command(const struct question_row *row, char ret[QUESTION_COMMAND])
{
	static const char prefix[] = "PREFIX/lib/weir/python";
	const char *at = strstr(row->here, prefix);
	char python[PATH_MAX];
	if (at && !library_path("python", python, sizeof python))
		snprintf(ret, QUESTION_COMMAND, "%.*s%s%s", (int)(at - row->here), row->here,
			python, at + sizeof prefix - 1);
	else
		snprintf(ret, QUESTION_COMMAND, "%s", row->here);
}

bool question_section(const char *word, char ret_name[40])
{
	const struct question_row *row = NULL;
	while ((row = question_find(row, word))) {
		const char *only = row->here ? strstr(row->here, " --only ") : NULL;
		if (only)
			return sscanf(only, " --only %39[a-z_.]", ret_name) == 1;
	}
	return false;
}

/* The commands that answer a question about the word, in a row of text; those alone that read a
 * file when one was given. */
static int complain_of_topic(const char *word, const char *file)
{
	char text[2 * QUESTION_COMMAND] = "", command[QUESTION_COMMAND];
	const struct question_row *row = NULL;
	while ((row = question_find(row, word))) {
		const size_t n = strlen(text);
		if (!row->here || (file && !strstr(row->here, "FILE")))
			continue;
		question_command(row, command);
		snprintf(text + n, sizeof text - n, "%s`%s`", n ? ", " : "", command);
	}
	if (!*text && file)
		return complain(
			EXIT_USAGE, "there is no command '%s'. Try `weir report %s`", word, file);
	if (!*text)
		return complain(
			EXIT_USAGE, "there is no command '%s'. See `weir help %s`", word, word);
	return complain(EXIT_USAGE, "there is no command '%s'. Try %s", word, text);
}

static bool is_file(const char *path)
{
	struct stat st;
	return path && !stat(path, &st) && S_ISREG(st.st_mode);
}

int unknown_command(const char *word, const char *argument)
{
	const struct command *at = commands;
	const char *near = nearest(word, next_command, &at);
	if (question_find(NULL, word))
		return complain_of_topic(word, is_file(argument) ? argument : NULL);
	if (near)
		return complain(
			EXIT_USAGE, "there is no command '%s'. Did you mean '%s'?", word, near);
	return complain(EXIT_USAGE,
		"there is no command '%s', nor a question about it. `weir help` lists the commands, `weir help questions` the questions",
		word);
}

static int unknown(const struct command *c, const char *name, size_t length)
{
	char word[40];
	struct cursor at = { .command = c };
	const char *near;
	snprintf(word, sizeof word, "%.*s", (int)(length < 39 ? length : 39), name);
	near = nearest(word, next_option, &at);
	if (near)
		return complain(
			EXIT_USAGE, "there is no option --%s. Did you mean --%s?", word, near);
	return complain(
		EXIT_USAGE, "there is no option --%s. `weir %s --help` lists them", word, c->name);
}

static void add(struct options *o, const struct option_row *row, const char *value)
{
	o->given[o->count].row = row;
	o->given[o->count].value = value;
	o->count++;
}

/* Takes the value of row from `joined` (the text after = or after the letter) or from the next
 * argument; returns how many arguments that used, or -1 after complaining. */
static int take(struct options *o, const struct option_row *row, const char *joined, char **argv)
{
	if (!row->argument) {
		add(o, row, NULL);
		return 1;
	}
	if (joined) {
		add(o, row, joined);
		return 1;
	}
	if (row->argument[0] == '[') {
		add(o, row, "");
		return 1;
	}
	if (!argv[1]) {
		complain(EXIT_USAGE, "--%s needs a value: --%s=%s (%s)", row->name, row->name,
			row->argument, row->help);
		return -1;
	}
	add(o, row, argv[1]);
	return 2;
}

static int take_long(struct options *o, char **argv)
{
	const char *name = argv[0] + 2;
	const char *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct option_row *row = find_long(o->command, name, length);
	if (!row) {
		unknown(o->command, name, length);
		return -1;
	}
	if (equals && !row->argument) {
		complain(EXIT_USAGE, "--%s takes no value. Leave out %s", row->name, equals);
		return -1;
	}
	return take(o, row, equals ? equals + 1 : NULL, argv);
}

static int take_short(struct options *o, char **argv)
{
	const char *rest = argv[0] + 2;
	const struct option_row *row = find_letter(o->command, argv[0][1]);
	if (!row) {
		complain(EXIT_USAGE, "there is no option %.2s. `weir %s --help` lists them",
			argv[0], o->command->name);
		return -1;
	}
	if (*rest && !row->argument) {
		complain(EXIT_USAGE, "-%c takes no value. Give each letter its own -: %s",
			row->letter, argv[0]);
		return -1;
	}
	return take(o, row, *rest ? rest : NULL, argv);
}

/* How many arguments the synopsis asks for: words in brackets need not be there, a word with
 * "..." may stand for many, and "--" is none. */
static void arity(const char *synopsis, int *ret_least, int *ret_most)
{
	int least = 0, most = 0, depth = 0;
	for (const char *p = synopsis; *p;) {
		size_t n = strcspn(p, " ");
		depth += *p == '[';
		if (memchr(p, '.', n))
			most = 1 << 30;
		else if (n && strncmp(p + (*p == '['), "--", 2))
			most += most < 1 << 30;
		if (!depth && n && strncmp(p, "--", 2))
			least++;
		for (size_t i = 0; i < n; i++)
			depth -= p[i] == ']';
		p += n + (p[n] == ' ');
	}
	*ret_least = least;
	*ret_most = most;
}

/* The argument of that number, as the synopsis calls it, without "...". */
static int argument_name(const char *synopsis, int number, const char **ret_name)
{
	const char *p = synopsis;
	for (;; p += strcspn(p, " "), p += *p == ' ') {
		if (strncmp(p, "--", 2) && number-- == 0)
			break;
	}
	*ret_name = p;
	return (int)strcspn(p, " .");
}

static int check_arguments(const struct options *o)
{
	const struct command *c = o->command;
	const char *missing;
	int least, most;
	arity(c->arguments, &least, &most);
	if (o->argc < least) {
		const int length = argument_name(c->arguments, o->argc, &missing);
		return complain(EXIT_USAGE, "%.*s is missing. Usage: weir %s [OPTION...] %s",
			length, missing, c->name, c->arguments);
	}
	if (o->argc > most)
		return complain(EXIT_USAGE, "'%s' is one argument too many. Usage: weir %s %s%s",
			o->argv[most], c->name, "[OPTION...] ", c->arguments);
	return 0;
}

/* Goes through argv once and moves what is no option to its front. */
static int walk(struct options *o, int argc, char **argv)
{
	bool program = strstr(o->command->arguments, "PROGRAM");
	int i = 0, kept = 0;
	while (i < argc) {
		const char *word = argv[i];
		int used;
		if (!strcmp(word, "--")) {
			o->split = kept;
			i++;
			break;
		}
		if (word[0] != '-' || !word[1]) {
			if (program)
				break;
			argv[kept++] = argv[i++];
			continue;
		}
		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			o->help = true;
			return 0;
		}
		used = word[1] == '-' ? take_long(o, argv + i) : take_short(o, argv + i);
		if (used < 0)
			return EXIT_USAGE;
		i += used;
	}
	while (i < argc)
		argv[kept++] = argv[i++];
	argv[kept] = NULL;
	o->argc = kept;
	o->argv = argv;
	return check_arguments(o);
}

int options_parse(const struct command *c, int argc, char **argv, struct options **ret_o)
{
	struct options *o = xcalloc(1, sizeof *o + (size_t)argc * sizeof o->given[0]);
	int rc;
	o->command = c;
	o->split = -1;
	rc = walk(o, argc, argv);
	if (rc)
		options_free(o);
	else
		*ret_o = o;
	return rc;
}

void options_free(struct options *o)
{
	free(o);
}

static const struct given *find_given(const struct options *o, const char *name, int i)
{
	for (int k = 0; k < o->count; k++)
		if (!strcmp(o->given[k].row->name, name) && i-- == 0)
			return &o->given[k];
	return NULL;
}

/* The last one given counts, so that an alias can be overruled. */
const char *opt_str(const struct options *o, const char *name)
{
	const struct option_row *row = find_long(o->command, name, strlen(name));
	for (int k = o->count - 1; k >= 0; k--)
		if (!strcmp(o->given[k].row->name, name))
			return o->given[k].value;
	return row ? row->fallback : NULL;
}

const char *opt_default(const char *command, const char *name)
{
	const struct option_row *row = find_long(command_find(command), name, strlen(name));
	return row ? row->fallback : NULL;
}

bool opt_flag(const struct options *o, const char *name)
{
	return find_given(o, name, 0);
}

const char *opt_nth(const struct options *o, const char *name, int i)
{
	const struct given *g = find_given(o, name, i);
	return g ? g->value : NULL;
}

int opt_argc(const struct options *o)
{
	return o->argc;
}

char **opt_argv(const struct options *o)
{
	return o->argv;
}

int opt_split(const struct options *o)
{
	return o->split;
}
