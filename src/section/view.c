/* Prints some columns of a section's rows as a table of the text report. */
#include "section/view.h"

#include <limits.h>

#include "base/expect.h"

#define NAME_CUT 110 /* characters of a name where there is no terminal */

struct picked {
	const void **v;
	size_t n;
};

static void pick(const struct view *view, struct rows *rows, struct picked *to)
{
	to->v = xcalloc(rows->n + 1, sizeof *to->v);
	for (size_t i = 0; i < rows->n; i++) {
		const struct row row = row_at(rows, i);
		if (!view->has || view->has(&row))
			to->v[to->n++] = row.at;
	}
	if (view->order && to->n)
		qsort(to->v, to->n, sizeof *to->v, view->order);
}

static size_t find_columns(const struct view *view, const struct column **columns)
{
	size_t n = 0;
	for (const char *key = view->keys ? view->keys : view->section->shown; *key;) {
		const size_t bytes = strcspn(key, ",");
		columns[n] = section_column(view->section, key, bytes);
		if (expect(columns[n] && n < TABLE_COLUMNS, "a view has columns of its section"))
			n++;
		key += bytes + (key[bytes] == ',');
	}
	return n;
}

struct table view_table(const struct column *const *columns, size_t n)
{
	struct table t = { .columns = 0 };
	for (size_t i = 0; i < n; i++)
		table_column(&t, unit_is_number(columns[i]->unit) ? '>' : '<', columns[i]->heading,
			INT_MAX);
	return t;
}

static void put_table(const struct view *view, struct rows *rows, const struct picked *picked,
	const struct text_page *p)
{
	const struct column *columns[TABLE_COLUMNS + 1];
	const size_t n = find_columns(view, columns);
	fprintf(p->out, "\n%s%s%s%s\n", p->bold, view->wrong ? p->red : "",
		view->heading ? view->heading : view->section->heading, p->plain);
	struct table t = view_table(columns, n);
	for (size_t k = 0; k < page_shown(p, picked->n); k++) {
		const size_t index =
			(size_t)((const char *)picked->v[k] - (const char *)rows->v) / rows->each;
		const struct row row = row_at(rows, index);
		for (size_t i = 0; i < n; i++) {
			const bool cut = view->most && columns[i]->unit == UNIT_KERNEL;
			const struct cell_style style = { .full = p->full_names,
				.most = cut        ? view->most
					: p->width ? 0
						   : NAME_CUT };
			const struct value v = column_get(columns[i], &row);
			section_put_cell(&t, columns[i], &v, &style);
		}
	}
	page_end_table(p, &t, picked->n);
}

void view_put_object(const struct view *view, const struct report *r, const struct text_page *p)
{
	const struct column *columns[TABLE_COLUMNS + 1];
	const size_t n = find_columns(view, columns);
	struct rows rows;
	page_heading(p, view->heading ? view->heading : view->section->heading);
	struct table t = table_of("<what|<value");
	if (!section_open(view->section, r, &rows))
		for (size_t i = 0; i < n; i++) {
			const struct row row = row_at(&rows, 0);
			const struct value v = column_get(columns[i], &row);
			table_cell(&t, "%s", columns[i]->heading);
			section_put_cell(&t, columns[i], &v, &(struct cell_style){ .full = true });
		}
	section_close(&rows);
	page_end_table(p, &t, 0);
}

size_t view_put_rows(const struct view *view, struct rows *rows, const struct text_page *p)
{
	struct picked picked = { 0 };
	pick(view, rows, &picked);
	if (picked.n)
		put_table(view, rows, &picked, p);
	free(picked.v);
	return picked.n;
}

size_t view_put(const struct view *view, const struct report *r, const struct text_page *p)
{
	struct rows rows;
	const size_t n = section_open(view->section, r, &rows) ? 0 : view_put_rows(view, &rows, p);
	section_close(&rows);
	return n;
}
