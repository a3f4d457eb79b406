/* weir hints FILE: what the recorded program could gain, and how. */
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

static void print(const struct options *o, const struct hints *h, unsigned rows)
{
	struct json j;
	if (!opt_flag(o, "json")) {
		hints_print_text(h, stdout, rows, false, wants_colour());
		return;
	}
	json_init(&j, stdout);
	json_begin_object(&j, NULL);
	hints_put_json(&j, h);
	json_end_object(&j);
}

static int hints_of_trace(const struct options *o, const struct trace *t, unsigned rows)
{
	const struct decoder decoder = {
		.schema = &t->schema, .enums = enum_names, .enum_count = enum_names_count
	};
	struct report *r;
	struct hints *h;
	struct error err;
	if (report_make(t, &decoder, 0, &r, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	const int e = hints_make(r, &h);
	if (!e) {
		print(o, h, rows);
		hints_free(h);
	}
	report_free(r);
	return e ? complain(EXIT_ENVIRONMENT, "no hints: %s", strerror(-e)) : EXIT_YES;
}

int cmd_hints(const struct options *o)
{
	struct trace *t;
	struct error err;
	unsigned rows;
	if (opt_argc(o) != 1)
		return complain(EXIT_USAGE, "name one trace: weir hints FILE");
	if (parse_rows(opt_str(o, "top"), &rows))
		return complain(EXIT_USAGE, "--top wants a number, not %s", opt_str(o, "top"));
	if (trace_open(opt_argv(o)[0], &t, &err))
		return complain(EXIT_USAGE, "%s", err.text);
	const int code = hints_of_trace(o, t, rows);
	trace_close(t);
	return code;
}
