/* weir report FILE: says what a recorded program asked of the GPU. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event/schema_text.h"
#include "report/hint.h"

#include "base/banned.h"

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(STDOUT_FILENO) == 1 && !(no && *no);
}

static int parse_rows(const char *text, unsigned *ret_rows)
{
	char *end;
	errno = 0;
	const unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || n > 1000000)
		return -EINVAL;
	*ret_rows = (unsigned)n;
	return 0;
}

static void print(const struct options *o, const struct report *r, unsigned rows)
{
	if (opt_flag(o, "json"))
		report_print_json(r, stdout);
	else
		report_print_text(r, stdout, rows, wants_colour());
}

static int report_trace(const struct options *o, const struct trace *t, unsigned rows)
{
	const struct decoder decoder = {
		.schema = &t->schema, .enums = enum_names, .enum_count = enum_names_count
	};
	struct report *r;
	struct error err;
	if (report_make(t, &decoder, 0, &r, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (hints_make(r, &r->hints))
		complain(EXIT_YES, "there is no memory for hints");
	print(o, r, rows);
	report_free(r);
	return EXIT_YES;
}

int cmd_report(const struct options *o)
{
	struct trace *t;
	struct error err;
	unsigned rows;
	if (opt_argc(o) != 1)
		return complain(EXIT_USAGE, "name one trace: weir report FILE");
	if (parse_rows(opt_str(o, "top"), &rows))
		return complain(EXIT_USAGE, "--top wants a number, not %s", opt_str(o, "top"));
	if (trace_open(opt_argv(o)[0], &t, &err))
		return complain(EXIT_USAGE, "%s", err.text);
	const int code = report_trace(o, t, rows);
	trace_close(t);
	return code;
}
