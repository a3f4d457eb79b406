/* weir report FILE: says what a recorded program asked of the GPU. */
#include "report/report_make.h"
#include "cmd/cli/command.h"
#include "cmd/cli/report_input.h"
#include "hint/hint.h"

#include "base/banned.h"

static int show(const struct options *o, struct report *r, unsigned rows)
{
	if (hints_make(r, &r->hints))
		complain(EXIT_YES, "there is no memory for hints");
	if (opt_flag(o, "json"))
		report_print_json(r, stdout);
	else
		report_print_text(r, stdout, rows, report_input_colour());
	return EXIT_YES;
}

int cmd_report(const struct options *o)
{
	return report_input_show(o, show);
}
