/* weir hints FILE: what the recorded program could gain, and how. */
#include "cmd/cli/command.h"

#include "cmd/cli/pager.h"
#include "cmd/cli/report_input.h"
#include "hint/hint.h"
#include "hint/summary.h"
#include "report/report_make.h"

static void print(const struct options *o, const struct report *r, unsigned rows, bool colour)
{
	struct summary summary;
	if (opt_flag(o, "json"))
		return hints_print_json(r, stdout);
	summary_make(r, &summary);
	summary_put_text(&summary, stdout);
	hints_print_text(r->hints, stdout, rows, false, colour);
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	const bool colour = report_input_colour();
	pager_begin();
	print(o, r, rows, colour);
	pager_end();
	return EXIT_YES;
}

int cmd_hints(const struct options *o)
{
	return report_input_show(o, FACETS_ALL, show);
}
