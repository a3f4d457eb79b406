/* weir report FILE: says what a recorded program asked of the GPU. */
#include "report/report_make.h"
#include "cmd/cli/command.h"
#include "cmd/cli/pager.h"
#include "cmd/cli/report_input.h"
#include "cmd/cli/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hint/hint.h"
#include "model/request_times.h"
#include "report/sections.h"
#include "report/select.h"

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
		report_print_json(r, stdout, false);
	else
		report_print_text(r, stdout, &style);
	pager_end();
	return EXIT_YES;
}

#define REQUEST_SECTIONS "request,request_behind,request_gpu_trace,request_beside"

/* The sections to show: NULL, the whole report. */
static const char *sections_of(const struct options *o)
{
	const char *only = opt_str(o, "only");
	return only || !opt_str(o, "request") ? only : REQUEST_SECTIONS;
}

/* All rows in a file, as many as asked for on a terminal. */
static int show_lists(const struct options *o, struct report *r, unsigned rows)
{
	const char *filters[FILTERS_MOST + 1];
	struct error err = { .text = "" };
	struct select_options s = { .only = sections_of(o),
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

static int find_request(const struct options *o, struct report *r)
{
	uint64_t id = 0;
	const char *text = opt_str(o, "request");
	const struct requests *all = r->requests;
	const int code = take_number(o, "request", 0, UINT64_MAX, &id);
	if (code || !text)
		return code;
	for (size_t i = 0; i < all->v.n; i++) {
		if (all->v.v[i].q.id != id)
			continue;
		if (r->request != REQUEST_NONE)
			return complain(EXIT_USAGE,
				"several servers of the recording have a request %s", text);
		r->request = (uint32_t)i;
	}
	if (r->request != REQUEST_NONE)
		return EXIT_YES;
	return complain(EXIT_USAGE,
		all->v.n
			? "the recording has no request %s. `weir report --only requests` lists those that it has"
			: "the recording has no request %s, nor any other. `weir serve -o FILE` records them",
		text);
}

static int show(const struct options *o, struct report *r, unsigned rows)
{
	const int code = find_request(o, r);
	if (code)
		return code;
	return (sections_of(o) ? show_lists : show_whole)(o, r, rows);
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
	const char *only = sections_of(o);
	const uint32_t of_request = opt_str(o, "request") ? FACET(REQUESTS) : 0;
	return report_input_show(
		o, only ? report_select_facets(only) | of_request : FACETS_ALL, show);
}
