/* weir hints FILE: what the recorded program could gain, and how. */
#include "cmd/cli/command.h"

#include <string.h>

#include "cmd/cli/pager.h"
#include "cmd/cli/report_input.h"
#include "hint/hint.h"

#include "base/banned.h"

static void print(const struct options *o, const struct hints *h, unsigned rows, bool colour)
{
	struct json j;
	if (!opt_flag(o, "json")) {
		hints_print_text(h, stdout, rows, false, colour);
		return;
	}
	json_begin_document(&j, stdout);
	hints_put_json(&j, h);
	json_end_object(&j);
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	struct hints *h;
	const int e = hints_make(r, &h);
	if (e)
		return complain(EXIT_ENVIRONMENT, "no hints: %s", strerror(-e));
	const bool colour = report_input_colour();
	pager_begin();
	print(o, h, rows, colour);
	pager_end();
	hints_free(h);
	return EXIT_YES;
}

int cmd_hints(const struct options *o)
{
	return report_input_show(o, show);
}
