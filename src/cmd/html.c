/* weir html FILE: a trace as one page for a browser. */
#include "cmd/cli/command.h"
#include "cmd/cli/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event/schema_text.h"
#include "cmd/cli/output.h"
#include "page/html.h"

#include "base/banned.h"

#define ITEMS_LEAST 1000u
#define ITEMS_MOST  5000000u

static int parse_items(const char *text, size_t *ret_items)
{
	char *end;
	errno = 0;
	const unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || end == text || n < ITEMS_LEAST || n > ITEMS_MOST)
		return complain(EXIT_USAGE, "--items wants a number from %u to %u, not %s",
			ITEMS_LEAST, ITEMS_MOST, text);
	*ret_items = n;
	return 0;
}

static int put_page(void *context, FILE *out)
{
	return html_put(context, out);
}

static int write_page(const struct options *o, const struct trace *t, size_t items)
{
	const struct decoder decoder = {
		.schema = &t->schema, .enums = enum_names, .enum_count = enum_names_count
	};
	const char *path = output_path(o);
	struct html page;
	struct error err = { .text = "" };
	int code = html_make(&page, t, &decoder, items, &err)
			   ? complain(EXIT_ENVIRONMENT, "%s", err.text)
			   : EXIT_YES;
	const int e = code ? 0 : output_write(path, put_page, &page);
	if (e)
		code = complain(EXIT_ENVIRONMENT, "%s can't be written: %s",
			path ? path : "standard output", strerror(-e));
	html_fini(&page);
	return code;
}

int cmd_html(const struct options *o)
{
	struct trace *t;
	size_t items = 0;
	const int wrong = parse_items(opt_str(o, "items"), &items);
	if (wrong)
		return wrong;
	if (!output_path(o) && isatty(STDOUT_FILENO) == 1)
		return complain(EXIT_USAGE, "a page is no text to read: name a file with -o");
	int code = input_open(o, &t);
	if (code)
		return code;
	code = write_page(o, t, items);
	trace_close(t);
	return code;
}
