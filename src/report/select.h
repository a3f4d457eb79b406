/*
 * Prints chosen sections of a report, filtered, sorted and with chosen columns, as text, CSV or
 * JSON. Sections and columns have the names of `weir report --json` (section.h).
 *
 * A list may have a row an event. Rows in their own order are written at once, and sorted ones are
 * kept by their place. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "model/report.h"

enum select_form { SELECT_TEXT, SELECT_CSV, SELECT_JSON };

struct select_options {
	const char *only;    /* sections, with commas between */
	const char *sort;    /* a column, "-" before it turns it round; or NULL */
	const char *columns; /* with commas between; NULL: the usual ones */
	const char *const *filters;
	size_t filter_count; /* all must hold */
	enum select_form form;
	size_t rows;     /* a section, at most; 0: all */
	bool rows_given; /* by who asks: else a series is shown whole, of which the first rows say
			    little */
	size_t width;    /* of the terminal, 0: there is none */
	bool full_names, colour;
	/* The section that a word means which is none; NULL: nobody knows. */
	bool (*meant)(const char *word, char ret_name[40]);
};

/* The facets of the sections that are named, with commas between. */
uint32_t report_select_facets(const char *only);

/* 0, -EINVAL with a sentence when something is asked for that is not there, or -errno. */
int report_select(
	const struct report *r, const struct select_options *o, FILE *out, struct error *err);
