/*
 * A table of the text report: some columns of a section's rows, with their headings and units.
 * Internal to src/report.  One thread.
 */
#pragma once

#include "section/section.h"

struct view {
	const struct section *section;
	const char *heading, *keys;         /* NULL: the section's, and those that it shows */
	bool (*has)(const struct row *row); /* which rows; NULL: all */
	bool wrong;                         /* its heading is red */
	size_t most;                        /* characters of a kernel; 0: as the page has room */
	int (*order)(
		const void *one, const void *two); /* of pointers to them; NULL: the section's */
};

/* A table of these columns. */
struct table view_table(const struct column *const *columns, size_t n);

/* The keys' columns of an object, a line each. */
void view_put_object(const struct view *view, const struct report *r, const struct text_page *p);

/* How many rows it has, of which the page shows the first.  Without one nothing is printed. */
size_t view_put(const struct view *view, const struct report *r, const struct text_page *p);
size_t view_put_rows(const struct view *view, struct rows *rows, const struct text_page *p);
