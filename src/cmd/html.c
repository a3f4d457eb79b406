/*
 * weir html makes one page for a browser from a recording, or from two side by side. Several files
 * are one recording, as the ranks of a parallel program. Two files are two recordings if one ended
 * before the other began.
 */
#include "cmd/cli/command.h"
#include "cmd/cli/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/output.h"
#include "cmd/cli/part_options.h"
#include "cmd/cli/values.h"
#include "diff/diff.h"
#include "page/html.h"
#include "trace/merge.h"

#define ITEMS_LEAST   1000u
#define ITEMS_MOST    5000000u
#define FINE_MOST     100000000u
#define THRESHOLD_PCT 3.0 /* as weir diff has it */

struct job {
	struct trace *trace[DIFF_SIDES]; /* the second: NULL, or compared with the first */
	const char *name[DIFF_SIDES];
	struct html page[DIFF_SIDES];
	struct diff *diff;
	struct html_sizes most;
};

/* When it was recorded, by the time of day. */
static void span_of(const struct trace *t, uint64_t *ret_from, uint64_t *ret_until)
{
	*ret_from = t->header.start.real_ns;
	*ret_until = *ret_from + trace_since_ns(t, t->last_ticks);
}

static bool ran_at_once(const struct trace *a, const struct trace *b)
{
	uint64_t from[DIFF_SIDES], until[DIFF_SIDES];
	span_of(a, &from[DIFF_A], &until[DIFF_A]);
	span_of(b, &from[DIFF_B], &until[DIFF_B]);
	return from[DIFF_A] < until[DIFF_B] && from[DIFF_B] < until[DIFF_A];
}

static int join(const struct options *o, struct job *j)
{
	struct error err;
	if (trace_take_in(j->trace[DIFF_A], j->trace[DIFF_B], j->name[DIFF_B], &err))
		return complain(EXIT_USAGE, "%s", err.text);
	j->trace[DIFF_B] = NULL;
	return part_options_cut(o, j->trace[DIFF_A], j->name[DIFF_A]);
}

static int open_two(const struct options *o, struct job *j)
{
	int code = 0;
	for (int side = 0; side < DIFF_SIDES && !code; side++) {
		j->name[side] = opt_argv(o)[side];
		code = input_open_file(j->name[side], &j->trace[side]);
	}
	if (code)
		return code;
	if (!strcmp(j->name[DIFF_A], j->name[DIFF_B]) ||
		ran_at_once(j->trace[DIFF_A], j->trace[DIFF_B]))
		return join(o, j);
	for (int side = 0; side < DIFF_SIDES && !code; side++)
		code = part_options_cut(o, j->trace[side], j->name[side]);
	return code;
}

static int open_all(const struct options *o, struct job *j)
{
	const int n = input_files(o).count, split = opt_split(o);
	char *const *files = input_files(o).v;
	if (split < 0 && n == 2)
		return open_two(o, j);
	const int first = split > 0 && split < n ? split : n;
	j->name[DIFF_A] = files[0];
	int code = input_open_files(o, files, first, &j->trace[DIFF_A]);
	if (code || first == n)
		return code;
	j->name[DIFF_B] = files[first];
	return input_open_files(o, files + first, n - first, &j->trace[DIFF_B]);
}

static int make_page(struct job *j, int side)
{
	const struct trace *t = j->trace[side];
	struct error err = { .text = "" };
	return html_make(&j->page[side], t, &j->most, &err)
		       ? complain(EXIT_ENVIRONMENT, "%s: %s", j->name[side], err.text)
		       : 0;
}

static int compare(struct job *j)
{
	diff_new(&j->diff, THRESHOLD_PCT);
	int e = 0;
	for (int side = 0; side < DIFF_SIDES && !e; side++)
		e = diff_add(j->diff, (enum diff_side_id)side, j->name[side], j->page[side].report);
	if (!e)
		diff_finish(j->diff);
	if (e)
		return complain(
			EXIT_ENVIRONMENT, "the recordings can't be compared: %s", strerror(-e));
	j->page[DIFF_A].other = &j->page[DIFF_B];
	j->page[DIFF_A].diff = j->diff;
	return 0;
}

static int put_page(void *context, FILE *out)
{
	return html_put(context, out);
}

static int write_page(const struct options *o, struct job *j)
{
	const char *path = output_path(o);
	int code = make_page(j, DIFF_A);
	if (!code && j->trace[DIFF_B])
		code = make_page(j, DIFF_B);
	if (!code && j->trace[DIFF_B])
		code = compare(j);
	const int e = code ? 0 : output_write(path, put_page, &j->page[DIFF_A]);
	return e ? complain(EXIT_ENVIRONMENT, "%s can't be written: %s",
			   path ? path : "standard output", strerror(-e))
		 : code;
}

int cmd_html(const struct options *o)
{
	struct job j = { 0 };
	int code = take_number(o, "items", ITEMS_LEAST, ITEMS_MOST, &j.most.items);
	code = code ? code : take_number(o, "detail", 0, FINE_MOST, &j.most.fine);
	if (code)
		return code;
	if (!output_path(o) && isatty(STDOUT_FILENO) == 1)
		return complain(
			EXIT_USAGE, "a page is no text for a terminal: name a file with -o");
	code = open_all(o, &j);
	code = code ? code : write_page(o, &j);
	diff_free(j.diff);
	for (int side = 0; side < DIFF_SIDES; side++) {
		html_fini(&j.page[side]);
		if (j.trace[side])
			trace_close(j.trace[side]);
	}
	return code;
}
