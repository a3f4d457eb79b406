/* weir import TRACE: makes a trace of Weir's from another tool's. */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "report/import.h"

#include "base/banned.h"

static void tell(const struct import_stats *st, const char *to)
{
	struct number calls, events, ranges, work, bytes;
	fprintf(stderr,
		"weir import: %s calls, %s events of allocators, %s ranges, %s pieces of device "
		"work in %s (%s)\n",
		number_count(&calls, st->calls), number_count(&events, st->allocator_events),
		number_count(&ranges, st->ranges), number_count(&work, st->work), to,
		number_bytes(&bytes, st->bytes));
}

static void warn(const struct import_stats *st, const char *from)
{
	struct number n;
	if (*st->partial)
		fprintf(stderr, "weir import: %s was not read whole: %s\n", from, st->partial);
	if (st->left_out)
		fprintf(stderr, "weir import: %s events make no sense and were left out\n",
			number_count(&n, st->left_out));
	if (st->unjoined)
		fprintf(stderr,
			"weir import: of %s pieces of device work the file does not have the call\n",
			number_count(&n, st->unjoined));
}

int cmd_import(const struct options *o)
{
	const char *to = opt_str(o, "output");
	struct import_stats st;
	struct error err;
	if (opt_argc(o) != 1)
		return complain(EXIT_USAGE, "name one file: weir import FILE");
	const char *from = opt_argv(o)[0];
	const int e = import_file(from, to, &st, &err);
	if (e)
		return complain(
			e == -ENOMEM || e == -ENOSPC || e == -EIO ? EXIT_ENVIRONMENT : EXIT_USAGE,
			"%s", err.text);
	warn(&st, from);
	if (!opt_flag(o, "quiet"))
		tell(&st, to);
	return EXIT_YES;
}
