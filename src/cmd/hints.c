/* weir hints FILE: what the recorded program could gain, and how. */
#include "cmd/cli/command.h"

#include <string.h>

#include "cmd/cli/report_input.h"
#include "hint/hint.h"

#include "base/banned.h"

static void print(const struct options *o, const struct hints *h, unsigned rows)
{
	struct json j;
	if (!opt_flag(o, "json")) {
		hints_print_text(h, stdout, rows, false, report_input_colour());
		return;
	}
	json_init(&j, stdout);
	json_begin_object(&j, NULL);
	hints_put_json(&j, h);
	json_end_object(&j);
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	struct hints *h;
	const int e = hints_make(r, &h);
	if (e)
		return complain(EXIT_ENVIRONMENT, "no hints: %s", strerror(-e));
	print(o, h, rows);
	hints_free(h);
	return EXIT_YES;
}

int cmd_hints(const struct options *o)
{
	return report_input_show(o, show);
}
