/* Reads the report that a command prints. */
#include "report/report_make.h"
#include "cmd/cli/report_input.h"

#include <unistd.h>

#include "cmd/cli/input.h"
#include "cmd/cli/values.h"

bool report_input_colour(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(STDOUT_FILENO) == 1 && !(no && *no);
}

/* Whether the environment asks for UTF-8: the first of these that is set. */
bool report_input_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = getenv(names[i]);
		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

int report_input_rows(const struct options *o, unsigned *ret_rows)
{
	uint64_t rows = 0;
	const int code = take_number(o, "top", 0, 1000000, &rows);
	*ret_rows = (unsigned)rows;
	return code;
}

static int report_of(const struct options *o, const struct trace *t, uint32_t facets, unsigned rows,
	int (*show)(const struct options *o, struct report *r, unsigned rows))
{
	struct report *r;
	struct error err;
	if (report_make(t, 0, facets, &r, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	const int code = show(o, r, rows);
	report_free(r);
	return code;
}

int report_input_show(const struct options *o, uint32_t facets,
	int (*show)(const struct options *o, struct report *r, unsigned rows))
{
	struct trace *t;
	unsigned rows = 0;
	int code = report_input_rows(o, &rows);
	if (code)
		return code;
	code = input_open(o, &t);
	if (code)
		return code;
	code = report_of(o, t, facets, rows, show);
	trace_close(t);
	return code;
}
