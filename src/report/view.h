/*
 * A table of the text report: some columns of a section's rows, with their headings and units.
 * Internal to src/report.  One thread.
 */
#ifndef WEIR_REPORT_VIEW_H
#define WEIR_REPORT_VIEW_H

#include "report/section.h"

struct view {
	const struct section *section;
	const char *heading, *keys;
	bool (*has)(const void *row); /* which rows; NULL: all */
	int (*order)(
		const void *one, const void *two); /* of pointers to them; NULL: the section's */
};

/* How many rows it has, of which the page shows the first.  Without one nothing is printed. */
size_t view_put(const struct view *view, const struct report *r, const struct text_page *p);

#endif
