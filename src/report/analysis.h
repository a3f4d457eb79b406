/*
 * Prints the parts of a report that explain wall time: where it went, the queue, the critical path,
 * idle gaps, or samples. Nothing is printed for a trace without device times. Internal to
 * src/report.
 */
#pragma once

#include "base/table.h"
#include "memory/memory.h"
#include "model/report.h"
#include "stack/stacks.h"

void analysis_put_text(const struct report *r, const struct text_page *p);

/* How well GPU activities and calls fit together: only when they had to be joined. */
void analysis_put_join(const struct report *r, const struct text_page *p);

/* The facts that a trace of samples can tell of devices as a whole. */
void analysis_put_sampling(const struct report *r, const struct text_page *p);

/* The next activity: a kernel's name; "memset 4 B in aten::bmm". */
struct gap_text {
	char text[256];
};
const char *analysis_began(const struct report *r, const struct idle_gap *p, struct gap_text *room);

/* The line of Python that is to blame, or NULL. */
const char *analysis_line(const struct report *r, const struct idle_gap *p, struct gap_text *room);

/* "  slack  a faster host saves at most …", where that is less than the path's host takes. */
void analysis_put_slack(const struct report *r, FILE *out);

struct text_page;

/* The report's section: calls by stack. */
void callers_put_text(const struct report *r, const struct text_page *p);

/* The same of allocations. */
void callers_put_memory(const struct report *r, const struct text_page *p);
