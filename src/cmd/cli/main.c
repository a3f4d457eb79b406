/*
 * The program `weir`: finds the subcommand, parses its options, runs it.
 */
#include "cmd/cli/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/expect.h"

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

/* Warns if weir's checks of itself failed: the output may be wrong, or all right. */
static void warn_of_broken(void)
{
	const struct expect_report r = expect_report();
	if (r.count)
		complain(EXIT_YES,
			"%llu checks of weir itself failed, so what it said may be wrong: a defect, "
			"please report it. The first: %s (%s:%d) does not hold",
			(unsigned long long)r.count, r.what, r.file, r.line);
}

/* Output that did not arrive (a full disk, say) must not look like success. */
static int finish(int code)
{
	bool failed = ferror(stdout);
	warn_of_broken();
	if ((fflush(stdout) || failed) && code == EXIT_YES)
		return complain(EXIT_ENVIRONMENT, "standard output could not be written");
	return code;
}

/*
 * If a standard stream is closed, the next opened file would become it, and receive text for a
 * person.  Something that can't be used the right way takes its place, for this process alone: a
 * program that is started finds it closed again.
 */
static void fill_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	const struct command *c;
	fill_standard_streams();
	if (argc < 2) {
		help_overview();
		return finish(EXIT_USAGE);
	}
	c = choose(argv[1]);
	if (!c)
		return unknown_command(argv[1], argv[2]);
	return finish(run(c, argc - 2, argv + 2));
}
