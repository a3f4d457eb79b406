/* Making a report of a trace (model/report.h), and printing it.  One owner thread. */
#ifndef WEIR_REPORT_REPORT_MAKE_H
#define WEIR_REPORT_REPORT_MAKE_H

#include "model/report.h"

/* 0 or -errno.  threads: how many to use, 0 for as many as there are processors.  trace and
 * decoder must outlive the report; decoder's schema is the trace's. */
int report_make(const struct trace *trace, const struct decoder *decoder, unsigned threads,
	struct report **ret_report, struct error *err);
void report_free(struct report *r);

/* Prints; rows: at most so many a table, 0 for all. */
void report_print_text(const struct report *r, FILE *out, unsigned rows, bool colour);
void report_print_json(const struct report *r, FILE *out);

#endif
