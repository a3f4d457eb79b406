/* Prints chosen sections of a report: filters their rows, sorts them, and writes the columns. */
#include "report/select.h"

#include "base/bounded.h"
#include "base/expect.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/text.h"
#include "section/section.h"
#include "report/sections.h"
#include "section/view.h"
#include "report/select_filter.h"

#define WIDTH      200u /* where there is no terminal */
#define TEXT_LEAST 40u  /* characters of what is not the last column, a third of the width */

/* A row that is to be written, by its place among the section's rows. */
struct kept {
	size_t index, order;
	double number; /* of the column that is sorted by; NAN */
	char *text;    /* the same, where it is no number; or NULL */
};

struct selection {
	const struct select_options *o;
	const struct report *r;
	FILE *out;
	struct json json;
	struct error *err;
	struct select_filters filters;

	const struct section *section;
	struct rows rows;
	const struct column *columns[SECTION_COLUMNS];
	size_t column_count;
	const struct column *of_filter[SECTION_COLUMNS];
	const struct column *sort;
	ARRAY(struct kept) kept;
	size_t passed;                /* rows that pass the filters, shown or not */
	double sums[SECTION_COLUMNS]; /* over these; NAN: none has a value */
};

static void no_column(const struct selection *s, const char *key, size_t bytes)
{
	char text[4096] = ""; /* more than all columns of a section take */
	struct bounded names = BOUNDED(text);
	for (const struct column *c = s->section->columns; c->key; c++)
		if (!c->text_only && c->unit != UNIT_LIST)
			bounded_printf(&names, "%s%s", names.used ? ", " : "", c->key);
	bounded_end(&names);
	error_set(s->err, -EINVAL, "%s has no column %.*s: there are %s", s->section->name,
		(int)bytes, key, text);
}

/* NULL, with a sentence, when it has none that can be shown. */
static const struct column *find_column(const struct selection *s, const char *key, size_t bytes)
{
	const struct column *c = section_column(s->section, key, bytes);
	if (c && c->unit != UNIT_LIST)
		return c;
	no_column(s, key, bytes);
	return NULL;
}

static void add_column(struct selection *s, const struct column *c)
{
	if (expect(s->column_count < SECTION_COLUMNS, "there is room for all columns"))
		s->columns[s->column_count++] = c;
}

static int add_listed(struct selection *s, const char *keys)
{
	const size_t most = s->o->form == SELECT_TEXT ? TABLE_COLUMNS : SECTION_COLUMNS;
	while (*keys) {
		const size_t bytes = strcspn(keys, ",");
		const struct column *c = find_column(s, keys, bytes);
		if (!c)
			return -EINVAL;
		if (s->column_count == most)
			return error_set(s->err, -EINVAL, "give at most %zu --columns", most);
		add_column(s, c);
		keys += bytes + (keys[bytes] == ',');
	}
	return 0;
}

static void add_all(struct selection *s)
{
	for (const struct column *c = s->section->columns; c->key; c++)
		if (!c->text_only && c->unit != UNIT_LIST)
			add_column(s, c);
}

static int choose_columns(struct selection *s)
{
	const struct section *of = s->section;
	const char *shown = of->choose ? of->choose(s->r) : of->shown;
	s->column_count = 0;
	if (s->o->columns)
		return add_listed(s, s->o->columns);
	if (s->o->form == SELECT_TEXT && shown)
		return add_listed(s, shown);
	add_all(s);
	return 0;
}

static int find_filters(struct selection *s)
{
	int e = 0;
	for (size_t i = 0; i < s->filters.count && !e; i++) {
		const struct select_filter *f = &s->filters.v[i];
		s->of_filter[i] = find_column(s, f->key, strlen(f->key));
		e = s->of_filter[i] ? select_filter_check(f, s->of_filter[i], s->err) : -EINVAL;
	}
	return e;
}

static int find_sort(struct selection *s)
{
	const char *key = s->o->sort;
	s->sort = NULL;
	if (!key)
		return 0;
	key += *key == '-';
	s->sort = find_column(s, key, strlen(key));
	return s->sort ? 0 : -EINVAL;
}

static bool passes(const struct selection *s, const struct row *row)
{
	for (size_t i = 0; i < s->filters.count; i++) {
		const struct value v = column_get(s->of_filter[i], row);
		if (!select_filter_passes(&s->filters.v[i], &v))
			return false;
	}
	return true;
}

/* Numbers by size, the largest first, then texts, then what is not known. */
ORDERING(kept_order, struct kept, ORDER(isnan(a->number), isnan(b->number)),
	ORDER(b->number, a->number), ORDER(!a->text, !b->text),
	a->text ? strcmp(a->text, b->text) : 0, ORDER(a->order, b->order))

/* Unknown values stay behind, whichever way round. */
static void turn_round(struct selection *s)
{
	struct kept *v = s->kept.v;
	size_t n = 0;
	while (n < s->kept.n && (!isnan(v[n].number) || v[n].text))
		n++;
	for (size_t i = 0; i < n / 2; i++) {
		const struct kept k = v[i];
		v[i] = v[n - 1 - i];
		v[n - 1 - i] = k;
	}
}

static void sort_kept(struct selection *s)
{
	SORT(s->kept, kept_order);
	if (*s->o->sort == '-')
		turn_round(s);
}

static void forget_behind(struct selection *s, size_t rows)
{
	for (size_t k = rows; k < s->kept.n; k++)
		free(s->kept.v[k].text);
	s->kept.n = rows < s->kept.n ? rows : s->kept.n;
}

#define KEPT_BEYOND 4096u /* rows that may wait for being sorted out */

static void keep_sorted(struct selection *s, const struct row *row)
{
	char room[ROW_TEXT];
	struct kept k = { .index = row->index, .order = s->passed, .number = NAN };
	const struct value v = column_get(s->sort, row);
	k.number = value_as_number(&v);
	if (isnan(k.number) && v.kind != VALUE_ABSENT && v.kind != VALUE_NULL)
		k.text = xstrdup(value_as_text(&v, room));
	*array_push(&s->kept) = k;
	if (s->o->rows && s->kept.n >= s->o->rows + KEPT_BEYOND) {
		sort_kept(s);
		forget_behind(s, s->o->rows);
	}
}

static void keep(struct selection *s, const struct row *row)
{
	if (s->sort)
		keep_sorted(s, row);
	else if (!s->o->rows || s->kept.n < s->o->rows)
		*array_push(&s->kept) = (struct kept){ .index = row->index };
}

static void add_sums(struct selection *s, const struct row *row)
{
	for (size_t i = 0; i < s->column_count; i++) {
		if (!s->columns[i]->sums)
			continue;
		const struct value v = column_get(s->columns[i], row);
		const double number = value_as_number(&v);
		if (!isnan(number))
			s->sums[i] = isnan(s->sums[i]) ? number : s->sums[i] + number;
	}
}

static void choose_rows(struct selection *s)
{
	s->passed = 0;
	for (size_t i = 0; i < SECTION_COLUMNS; i++)
		s->sums[i] = NAN;
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct row row = row_at(&s->rows, i);
		if (!passes(s, &row))
			continue;
		s->passed++;
		if (s->o->form == SELECT_TEXT)
			add_sums(s, &row);
		keep(s, &row);
	}
	if (s->sort)
		sort_kept(s);
	if (s->o->rows)
		forget_behind(s, s->o->rows);
}

static void write_csv_row(struct selection *s, const struct row *row)
{
	for (size_t i = 0; i < s->column_count; i++) {
		const struct value v = column_get(s->columns[i], row);
		if (i)
			putc(',', s->out);
		section_put_csv(s->out, &v);
	}
	putc('\n', s->out);
}

static void write_json_row(struct selection *s, const struct row *row, const char *name)
{
	json_begin_object(&s->json, name);
	if (s->o->columns)
		section_put_columns(&s->json, row, s->columns, s->column_count);
	else
		section_put_row(&s->json, row);
	json_end_object(&s->json);
}

static void write_row(struct selection *s, const struct row *row)
{
	if (s->o->form == SELECT_CSV)
		write_csv_row(s, row);
	else
		write_json_row(s, row, s->section->form == SECTION_LIST ? NULL : s->section->name);
}

static bool is_written_at_once(const struct selection *s)
{
	return s->o->form != SELECT_TEXT && !s->sort;
}

/* Rows in their own order need not be kept. */
static size_t write_at_once(struct selection *s)
{
	size_t written = 0;
	for (size_t i = 0; i < s->rows.n && (!s->o->rows || written < s->o->rows); i++) {
		const struct row row = row_at(&s->rows, i);
		if (!passes(s, &row))
			continue;
		write_row(s, &row);
		written++;
	}
	return written;
}

static size_t write_kept(struct selection *s)
{
	for (size_t k = 0; k < s->kept.n; k++) {
		const struct row row = row_at(&s->rows, s->kept.v[k].index);
		write_row(s, &row);
	}
	return s->kept.n;
}

static void write_data(struct selection *s)
{
	const bool list = s->o->form == SELECT_JSON && s->section->form == SECTION_LIST;
	for (size_t i = 0; i < s->column_count && s->o->form == SELECT_CSV; i++)
		fprintf(s->out, "%s%s", i ? "," : "", s->columns[i]->key);
	if (s->o->form == SELECT_CSV)
		putc('\n', s->out);
	if (list)
		json_begin_array(&s->json, s->section->name);
	const size_t written = is_written_at_once(s) ? write_at_once(s) : write_kept(s);
	if (list)
		json_end_array(&s->json);
	else if (!written && s->o->form == SELECT_JSON)
		json_put_null(&s->json, s->section->name);
}

static void put_cell(struct selection *s, struct table *t, const struct column *c,
	const struct row *row, bool last)
{
	const unsigned third = (s->o->width ? s->o->width : WIDTH) / 3;
	const struct cell_style style = { .full = s->o->full_names,
		.most = last                 ? 0
			: third > TEXT_LEAST ? third
					     : TEXT_LEAST };
	const struct value v = column_get(c, row);
	section_put_cell(t, c, &v, &style);
}

static bool has_value(struct selection *s, const struct column *c)
{
	for (size_t k = 0; k < s->kept.n; k++) {
		const struct row row = row_at(&s->rows, s->kept.v[k].index);
		const struct value v = column_get(c, &row);
		if (v.kind != VALUE_ABSENT && v.kind != VALUE_NULL)
			return true;
	}
	return false;
}

/* A column that says nothing in any row is left out, unless somebody asked for it. */
static void thin_columns(struct selection *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->column_count; i++) {
		if (!has_value(s, s->columns[i]))
			continue;
		s->sums[n] = s->sums[i];
		s->columns[n++] = s->columns[i];
	}
	s->column_count = n;
}

/* Below the rows, where several are and one of the columns adds up. */
static void put_sums(struct selection *s, struct table *t)
{
	const struct cell_style style = { .full = true };
	bool any = false;
	for (size_t i = 0; i < s->column_count; i++)
		any |= s->columns[i]->sums;
	for (size_t i = 0; i < s->column_count && any && s->passed > 1; i++) {
		const struct value v = value_real(s->sums[i]);
		if (s->columns[i]->sums)
			section_put_cell(t, s->columns[i], &v, &style);
		else
			table_cell(
				t, i == s->column_count - 1 ? "total of %zu rows" : "", s->passed);
	}
}

/* Writes a section that is no list: a line a column. */
static void write_object(struct selection *s, const struct text_page *p)
{
	const struct row row = row_at(&s->rows, 0);
	struct table t = table_of("<what|<value");
	for (size_t i = 0; i < s->column_count; i++) {
		const struct value v = column_get(s->columns[i], &row);
		if (v.kind == VALUE_ABSENT && !s->o->columns)
			continue;
		table_cell(&t, "%s", s->columns[i]->heading);
		put_cell(s, &t, s->columns[i], &row, true);
	}
	page_end_table(p, &t, 0);
}

static bool has_column(const struct selection *s, const char *key)
{
	bool has = !key;
	for (size_t i = 0; i < s->column_count; i++)
		has |= key && !strcmp(s->columns[i]->key, key);
	return has;
}

static void write_list(struct selection *s, const struct text_page *p)
{
	if (!s->o->columns)
		thin_columns(s);
	s->column_count = MIN(TABLE_COLUMNS, s->column_count);
	struct table t = view_table(s->columns, s->column_count);
	for (size_t k = 0; k < s->kept.n; k++) {
		const struct row row = row_at(&s->rows, s->kept.v[k].index);
		for (size_t i = 0; i < s->column_count; i++)
			put_cell(s, &t, s->columns[i], &row, i == s->column_count - 1);
	}
	put_sums(s, &t);
	page_end_table(p, &t, s->passed);
	if (s->section->below && has_column(s, s->section->below_with))
		s->section->below(s->r, s->out);
}

static void write_text(struct selection *s)
{
	struct text_page p = text_page_of(s->out, s->o->rows, s->o->colour);
	p.width = s->o->width ? s->o->width : WIDTH;
	p.full_names = s->o->full_names;
	page_heading(&p, s->section->heading);
	if (!s->passed) {
		const char *why = s->rows.n ? "no row passes --filter"
					    : section_why_empty(s->rows.r, s->section);
		fprintf(s->out, "  none%s%s\n", why ? ": " : "", why ? why : "");
		return;
	}
	(s->section->form == SECTION_LIST ? write_list : write_object)(s, &p);
	section_put_note(s->out, s->section->note, p.width);
}

/* Not before it is known that everything that is asked for is there. */
static void begin_document(struct selection *s)
{
	if (s->o->form == SELECT_JSON && !s->json.out)
		json_begin_document(&s->json, s->out);
}

static const char *why_absent(const struct selection *s)
{
	const char *why = section_why_empty(s->r, s->section);
	return why ? why : "the recording cannot be read again to say why";
}

static void write_absent(struct selection *s)
{
	const struct text_page p = text_page_of(s->out, s->o->rows, s->o->colour);
	begin_document(s);
	if (s->o->form == SELECT_JSON)
		return json_put_null(&s->json, s->section->name);
	page_heading(&p, s->section->heading);
	fprintf(s->out, "  none: %s\n", why_absent(s));
}

static int write_section(struct selection *s)
{
	int e = find_filters(s);
	if (!e)
		e = find_sort(s);
	if (!e)
		e = choose_columns(s);
	if (!e && !is_written_at_once(s))
		choose_rows(s);
	if (!e)
		begin_document(s);
	if (!e && s->o->form == SELECT_TEXT)
		write_text(s);
	else if (!e)
		write_data(s);
	forget_behind(s, 0);
	return e ? e : ferror(s->out) ? -EIO : 0;
}

static int select_section(struct selection *s, const struct section *section, bool alone)
{
	s->section = section;
	int e = section_open(section, s->r, &s->rows);
	const bool absent = s->rows.absent || (section->form != SECTION_LIST && !s->rows.n);
	if (!e && absent && alone)
		e = error_set(s->err, -EINVAL, "this recording has no section %s: %s",
			section->name, why_absent(s));
	else if (!e && absent)
		write_absent(s);
	else if (!e)
		e = write_section(s);
	section_close(&s->rows);
	return e;
}

static int no_section(struct selection *s, const char *word, size_t bytes)
{
	char text[4096], given[40], name[40];
	struct bounded names = BOUNDED(text);
	for (size_t i = 0; section_at(i); i++) {
		const char *there = section_at(i)->name;
		if (section_find(there, strlen(there)) == section_at(i))
			bounded_printf(&names, "%s%s", names.used ? ", " : "", there);
	}
	bounded_end(&names);
	snprintf(given, sizeof given, "%.*s", (int)bytes, word);
	if (bytes < sizeof given && ((s->o->meant && s->o->meant(given, name)) ||
					    text_name_with(text, given, name, sizeof name)))
		return error_set(s->err, -EINVAL,
			"there is no section %s. Did you mean %s? There are %s", given, name, text);
	return error_set(
		s->err, -EINVAL, "there is no section %.*s: there are %s", (int)bytes, word, text);
}

/* All that are named are looked up first: what is not there is a mistake. */
static int each_section(struct selection *s, bool selects)
{
	const bool alone = !strchr(s->o->only, ',');
	int e = 0;
	for (const char *word = s->o->only; word && !e;) {
		const size_t bytes = strcspn(word, ",");
		const struct section *section = section_find(word, bytes);
		if (!section)
			e = no_section(s, word, bytes);
		else if (selects)
			e = select_section(s, section, alone);
		word = word[bytes] ? word + bytes + 1 : NULL;
	}
	return e;
}

/* A reader must not take the list for one of the whole recording. */
static void say_part(const struct selection *s)
{
	const struct trace_cut_text *c = &s->r->trace->part;
	struct number part, whole;
	if (s->r->trace->cut)
		fprintf(s->out,
			"\nThis is a part of the recording, %s of %s%s%s.  Times count from its begin, at %.6f s of the recording%s.\n",
			number_ns(&part, c->part_ns), number_ns(&whole, c->whole_ns),
			*c->how ? "; " : "", c->how, (double)c->from_ns / 1e9,
			s->r->trace->parts.n > 1 ? ", without what is between its parts" : "");
}

uint32_t report_select_facets(const char *only)
{
	uint32_t facets = 0;
	while (only) {
		const size_t bytes = strcspn(only, ",");
		const struct section *section = section_find(only, bytes);
		facets |= section ? section_facets(section) : 0;
		only = only[bytes] ? only + bytes + 1 : NULL;
	}
	return facets;
}

int report_select(
	const struct report *r, const struct select_options *o, FILE *out, struct error *err)
{
	struct select_options options = *o;
	struct selection s = { .o = &options, .r = r, .out = out, .err = err };
	const struct section *first = section_find(o->only, strcspn(o->only, ","));
	if (!o->rows_given && first && first->series)
		options.rows = 0;
	int e = select_filters_parse(&s.filters, o->filters, o->filter_count, err);
	if (!e && o->form == SELECT_CSV && strchr(o->only, ','))
		e = error_set(err, -EINVAL, "CSV is one table: name one section with --only");
	if (!e)
		e = each_section(&s, false);
	if (!e)
		e = each_section(&s, true);
	if (!e && o->form == SELECT_TEXT)
		say_part(&s);
	if (!e && o->form == SELECT_JSON)
		json_end_object(&s.json);
	array_free(&s.kept);
	select_filters_free(&s.filters);
	return e;
}
