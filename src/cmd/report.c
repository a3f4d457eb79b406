/* weir report FILE: says what a recorded program asked of the GPU. */
#include "report/report_make.h"
#include "cmd/cli/command.h"
#include "cmd/cli/pager.h"
#include "cmd/cli/report_input.h"

#include <errno.h>
#include <string.h>

#include "hint/hint.h"
#include "report/sections.h"
#include "report/select.h"

#include "base/banned.h"

#define FILTERS_MOST 32

static int show_whole(const struct options *o, struct report *r, unsigned rows)
{
	const struct report_style style = { .rows = rows,
		.width = terminal_width(),
		.colour = report_input_colour(),
		.full_names = opt_flag(o, "full-names"),
		.utf8 = report_input_utf8() };
	pager_begin();
	if (opt_flag(o, "json"))
		report_print_json(r, stdout);
	else
		report_print_text(r, stdout, &style);
	pager_end();
	return EXIT_YES;
}

/* All rows in a file, as many as asked for on a terminal. */
static int show_lists(const struct options *o, struct report *r, unsigned rows)
{
	const char *filters[FILTERS_MOST + 1];
	struct error err = { .text = "" };
	struct select_options s = { .only = opt_str(o, "only"),
		.sort = opt_str(o, "sort"),
		.columns = opt_str(o, "columns"),
		.filters = filters,
		.form = opt_flag(o, "csv")    ? SELECT_CSV
			: opt_flag(o, "json") ? SELECT_JSON
					      : SELECT_TEXT,
		.width = terminal_width(),
		.full_names = opt_flag(o, "full-names"),
		.colour = report_input_colour(),
		.meant = question_section };
	while (s.filter_count <= FILTERS_MOST &&
		(filters[s.filter_count] = opt_nth(o, "filter", (int)s.filter_count)))
		s.filter_count++;
	if (s.filter_count > FILTERS_MOST)
		return complain(EXIT_USAGE, "give at most %d --filter", FILTERS_MOST);
	s.rows_given = opt_nth(o, "top", 0);
	s.rows = s.form == SELECT_TEXT || opt_nth(o, "top", 0) ? rows : 0;
	pager_begin();
	const int e = report_select(r, &s, stdout, &err);
	pager_end();
	if (e)
		return complain(e == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s",
			*err.text ? err.text : strerror(-e));
	return EXIT_YES;
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	return (opt_str(o, "only") ? show_lists : show_whole)(o, r, rows);
}

int cmd_report(const struct options *o)
{
	const bool lists = opt_str(o, "sort") || opt_str(o, "columns") || opt_flag(o, "csv") ||
			   opt_nth(o, "filter", 0);
	if (lists && !opt_str(o, "only"))
		return complain(EXIT_USAGE,
			"--sort, --filter, --columns and --csv are of sections: name them with "
			"--only, as in --only kernels");
	if (opt_flag(o, "csv") && opt_flag(o, "json"))
		return complain(EXIT_USAGE, "choose --csv or --json");
	return report_input_show(o,
		opt_str(o, "only") ? report_select_facets(opt_str(o, "only")) : FACETS_ALL, show);
}
