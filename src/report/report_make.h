/* Making a report of a trace (model/report.h), and printing it.  One owner thread. */
#pragma once

#include "model/facet.h"
#include "model/report.h"

/* With those facets, and what they need.  0 or -errno.  threads: how many to use, 0 for as many as
 * there are processors.  trace must outlive the report. */
int report_make(const struct trace *trace, unsigned threads, uint32_t facets,
	struct report **ret_report, struct error *err);
void report_free(struct report *r);

/* The same trace once more, with a row of operators for each shape that one was given. */
int report_make_by_shape(const struct report *r, struct report **ret_report, struct error *err);

/* The same trace once more, with all idle gaps, by time. */
int report_make_with_gaps(const struct report *r, struct report **ret_report, struct error *err);

/* Prints; rows: at most so many a table, 0 for all; width: of the terminal, 0: there is none. */
struct report_style {
	unsigned rows;
	size_t width;
	bool colour, full_names, utf8;
};
void report_print_text(const struct report *r, FILE *out, const struct report_style *style);
void report_print_json(const struct report *r, FILE *out, bool compact); /* compact: for a page */
void hints_print_json(const struct report *r, FILE *out);                /* r->hints are there */
