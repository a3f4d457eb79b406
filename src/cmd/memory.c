/* weir memory FILE: says what was live in memory when, what made the peak, and what leaks. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event/schema_text.h"
#include "report/memory.h"
#include "report/model.h"

#include "base/banned.h"

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(STDOUT_FILENO) == 1 && !(no && *no);
}

/* What the environment says of the terminal's characters: the first of these that is set. */
static bool wants_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *v = getenv(names[i]);
		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
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
		memory_print_json(r, stdout);
	else
		memory_print_text(r, stdout, rows, wants_colour(), wants_utf8());
}

static int memory_trace(const struct options *o, const struct trace *t, unsigned rows)
{
	const struct decoder decoder = {
		.schema = &t->schema, .enums = enum_names, .enum_count = enum_names_count
	};
	struct report *r;
	struct error err;
	if (report_make(t, &decoder, 0, &r, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	print(o, r, rows);
	report_free(r);
	return EXIT_YES;
}

int cmd_memory(const struct options *o)
{
	struct trace *t;
	struct error err;
	unsigned rows;
	if (opt_argc(o) != 1)
		return complain(EXIT_USAGE, "name one trace: weir memory FILE");
	if (parse_rows(opt_str(o, "top"), &rows))
		return complain(EXIT_USAGE, "--top wants a number, not %s", opt_str(o, "top"));
	if (trace_open(opt_argv(o)[0], &t, &err))
		return complain(EXIT_USAGE, "%s", err.text);
	const int code = memory_trace(o, t, rows);
	trace_close(t);
	return code;
}
