/* weir import FILE...: makes a trace of Weir's from each of another tool's. */
#include "cmd/cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "import/import.h"
#include "base/xmalloc.h"

static void put_summary(const struct import_stats *st, const char *to)
{
	struct number calls, events, ranges, activities, bytes;
	complain(0, "%s, %s of allocators, %s, %s in %s (%s)", number_of(&calls, st->calls, "call"),
		number_of(&events, st->allocator_events, "event"),
		number_of(&ranges, st->ranges, "range"),
		number_of(&activities, st->activities, "GPU activity"), to,
		number_bytes(&bytes, st->bytes));
}

static void warn(const struct import_stats *st, const char *from)
{
	struct number n;
	if (*st->partial)
		complain(0, "%s was not read whole: %s", from, st->partial);
	if (st->left_out)
		complain(0, "%s events make no sense and were left out",
			number_count(&n, st->left_out));
	if (st->unjoined)
		complain(0, "of %s the file does not have the call",
			number_of(&n, st->unjoined, "GPU activity"));
}

static int import_one(const struct options *o, const char *from, const char *to)
{
	struct import_stats st;
	struct error err;
	const int e = import_file(from, to, &st, &err);
	if (e)
		return complain(
			e == -ENOSPC || e == -EIO ? EXIT_ENVIRONMENT : EXIT_USAGE, "%s", err.text);
	warn(&st, from);
	if (!opt_flag(o, "quiet"))
		put_summary(&st, to);
	return EXIT_YES;
}

/* runs/a.pt.trace.json.gz becomes a.pt.trace.weir. */
static char *target_of(const char *folder, const char *from)
{
	static const char *const endings[] = { ".gz", ".json", ".csv", ".sqlite" };
	const char *name = basename(from);
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		const size_t end = strlen(endings[i]);
		if (n > end && !memcmp(name + n - end, endings[i], end))
			n -= end;
	}
	return xasprintf("%s/%.*s.weir", folder, (int)n, name);
}

/* The earlier file that has the same target; NULL: none. */
static const char *taken_by(const struct options *o, char *const *targets, int i)
{
	for (int k = 0; k < i; k++)
		if (!strcmp(targets[k], targets[i]))
			return opt_argv(o)[k];
	return NULL;
}

static int import_each(const struct options *o, char **targets)
{
	int code = EXIT_YES, done = 0;
	for (int i = 0; i < opt_argc(o); i++) {
		const char *from = opt_argv(o)[i];
		const char *other = taken_by(o, targets, i);
		int one;
		if (other)
			one = complain(EXIT_USAGE,
				"%s and %s would both become %s: import one of them by itself, "
				"with -o",
				other, from, targets[i]);
		else
			one = import_one(o, from, targets[i]);
		done += one == EXIT_YES;
		code = one > code ? one : code;
	}
	if (code != EXIT_YES)
		complain(0, "%d of %d files were imported", done, opt_argc(o));
	return code;
}

#define UNSAID "weir.weir" /* where one trace goes when nobody says */

static int import_many(const struct options *o)
{
	const char *given = opt_str(o, "output"),
		   *folder = strcmp(given, UNSAID) != 0 ? given : ".";
	struct stat st;
	if (stat(folder, &st) || !S_ISDIR(st.st_mode))
		return complain(EXIT_USAGE,
			"%s is no directory: several files become a trace each, so -o names a directory "
			"that is there",
			folder);
	char **targets = xcalloc((size_t)opt_argc(o), sizeof *targets);
	for (int i = 0; i < opt_argc(o); i++)
		targets[i] = target_of(folder, opt_argv(o)[i]);
	const int code = import_each(o, targets);
	for (int i = 0; i < opt_argc(o); i++)
		free(targets[i]);
	free(targets);
	return code;
}

int cmd_import(const struct options *o)
{
	if (opt_argc(o) > 1)
		return import_many(o);
	return import_one(o, opt_argv(o)[0], opt_str(o, "output"));
}
