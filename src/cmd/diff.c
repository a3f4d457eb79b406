/* weir diff A B, or A... -- B...: compares recordings and judges fail conditions. */
#include "cmd/cli/command.h"
#include "cmd/cli/input.h"
#include "cmd/cli/pager.h"
#include "cmd/cli/part_options.h"
#include "cmd/cli/report_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/diff.h"
#include "diff/fail_condition.h"
#include "report/report_make.h"

#define CONDITIONS_MOST 64

struct conditions {
	struct fail_condition v[CONDITIONS_MOST];
	size_t n;
};

static int parse_threshold(const char *text, double *ret_pct)
{
	char *end;
	const double pct = strtod(text, &end);
	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(pct >= 0) || !isfinite(pct))
		return complain(EXIT_USAGE, "--threshold wants a percentage, not %s", text);
	*ret_pct = pct;
	return 0;
}

static int parse_conditions(const struct options *o, struct conditions *g)
{
	const char *text;
	struct error err;
	for (int i = 0; (text = opt_nth(o, "fail-on", i)); i++) {
		if (g->n == CONDITIONS_MOST)
			return complain(
				EXIT_USAGE, "there are more than %d --fail-on", CONDITIONS_MOST);
		if (condition_parse(text, &g->v[g->n++], &err))
			return complain(EXIT_USAGE, "--fail-on %s", err.text);
	}
	return 0;
}

static int add_report(
	struct diff *d, enum diff_side_id side, const char *file, const struct trace *t)
{
	struct report *r;
	struct error err;
	if (report_make(t, 0, FACETS_BUT_HINTS, &r, &err))
		return complain(EXIT_ENVIRONMENT, "%s: %s", file, err.text);
	const int e = diff_add(d, side, file, r);
	report_free(r);
	return e ? complain(EXIT_ENVIRONMENT, "%s can't be compared: %s", file, strerror(-e)) : 0;
}

static int add_file(
	const struct options *o, struct diff *d, enum diff_side_id side, const char *file)
{
	struct trace *t;
	int code = input_open_file(file, &t);
	if (code)
		return code;
	code = part_options_cut(o, t, file);
	code = code ? code : add_report(d, side, file, t);
	trace_close(t);
	return code;
}

/* How many of the arguments are A's; 0 when that cannot be told. */
static int count_a(const struct options *o)
{
	const int n = opt_argc(o), split = opt_split(o);
	if (split >= 0)
		return split < n ? split : 0;
	return n == 2 ? 1 : 0;
}

static int judge(struct diff *d, const struct conditions *g)
{
	int code = EXIT_YES;
	diff_finish(d);
	for (size_t i = 0; i < g->n; i++) {
		struct judgement *judged = array_push(&d->judged);
		condition_judge(&g->v[i], d, judged);
		if (judged->failed && code == EXIT_YES)
			code = EXIT_NO;
		if (judged->undecided)
			code = complain(EXIT_USAGE,
				"'%s' can't be judged: A and B have no work in common",
				g->v[i].text);
	}
	return code;
}

static int compare(
	const struct options *o, struct diff *d, const struct conditions *g, unsigned rows)
{
	const int a = count_a(o);
	int code = 0;
	for (int i = 0; i < opt_argc(o) && !code; i++)
		code = add_file(o, d, i < a ? DIFF_A : DIFF_B, opt_argv(o)[i]);
	if (code)
		return code;
	code = judge(d, g);
	const bool colour = report_input_colour();
	pager_begin();
	if (opt_flag(o, "json"))
		diff_print_json(d, stdout);
	else
		diff_print_text(d, stdout, rows, colour);
	pager_end();
	return code;
}

static bool asks_for_help(const struct options *o)
{
	const char *text;
	for (int i = 0; (text = opt_nth(o, "fail-on", i)); i++)
		if (!strcmp(text, "help"))
			return true;
	return false;
}

int cmd_diff(const struct options *o)
{
	if (asks_for_help(o)) {
		condition_print_help(stdout);
		return EXIT_YES;
	}
	struct conditions *g = xcalloc(1, sizeof *g);
	struct diff *d = NULL;
	unsigned rows = 0;
	double threshold = 0;
	int code = report_input_rows(o, &rows);
	if (!code)
		code = parse_threshold(opt_str(o, "threshold"), &threshold);
	if (!code)
		code = parse_conditions(o, g);
	if (!code && !count_a(o))
		code = complain(EXIT_USAGE,
			"name two recordings, weir diff A B, or the runs of both "
			"sides, weir diff A... -- B...");
	if (!code) {
		diff_new(&d, threshold);
		code = compare(o, d, g, rows);
	}
	diff_free(d);
	free(g);
	return code;
}
