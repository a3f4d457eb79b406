/* See select.h. */
#include "report/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/expect.h"
#include "base/json.h"
#include "base/number.h"
#include "base/table.h"
#include "base/text.h"
#include "model/roofline.h"
#include "report/analysis.h"
#include "report/callers_print.h"
#include "report/sections.h"
#include "report/event_lists.h"
#include "report/fields.h"
#include "report/report_make.h"
#include "report/select_filter.h"

#include "base/banned.h"

#define COLUMNS_SHOWN 12u /* of a section whose usual columns nobody has named */
#define COLUMNS_MOST  64u
#define WIDTH         200u /* where there is no terminal */
#define TEXT_LEAST    40u  /* characters of what is not the last column, a third of the width */

/* What a terminal shows of a section. */
static const struct {
	const char *section, *columns;
} usual[] = {
	{ "kernels",
		"device_total_ns,share,count,device_mean_ns,device_p50_ns,device_min_ns,device_max_ns,"
		"device_stddev_ns,class,name" },
	{ "device_work", "device_total_ns,count,device_mean_ns,device_p50_ns,device_min_ns,"
			 "device_max_ns,device_stddev_ns,kind,name" },
	{ "calls", "total_ns,count,p50_ns,p99_ns,max_ns,errors,api,name" },
	{ "operators",
		"device_self_ns,share,device_total_ns,total_share,host_self_ns,host_total_ns,count,"
		"class,kind,"
		"name" },
	{ "threads", "pid,tid,calls,launches,timed_driver_calls,timed_driver_calls_ns,sync_calls,"
		     "sync_ns,allocated_bytes,name" },
	{ "processes", "pid,threads,calls,launches,timed_driver_calls_ns,sync_ns,device_total_ns,"
		       "allocated_bytes,executable" },
	{ "breakdown", "ns,share,name,what" },
	{ "critical_path", "ns,share,name,what" },
	{ "hints", "gain_pct,confidence,rule,title" },
};

struct kept {
	char *json;
	double number; /* of the column that is sorted by; NAN */
	char *text;    /* the same, where it is no number; or NULL */
	size_t order;
};

struct chosen {
	char key[sizeof((struct field *)0)->key];
};

struct selection {
	const struct select_options *o;
	const struct report *r;
	FILE *out;
	struct error *err;
	struct select_filters filters;
	char *json; /* of the report */

	char section[96];
	bool several;    /* sections are asked for, in another call each */
	uint64_t absent; /* bit i: the i-th name is of a section that the recording lacks */
	bool wanted, list;
	bool at_once;  /* rows are written as they come */
	bool filtered; /* there are rows that the filters keep out */
	ARRAY(struct kept) kept;
	size_t rows; /* that pass the filters */
	ARRAY(struct chosen) columns;
	struct fields fields;
	struct field_sums sums; /* of all rows that pass the filters, shown or not */
};

/* For a sentence that says what there is. */
struct names {
	char text[4096]; /* more than all sections, and all columns, take */
	size_t at;
};

static void add_name(struct names *n, const char *name)
{
	if (n->at < sizeof n->text - 60)
		n->at += (size_t)snprintf(
			n->text + n->at, sizeof n->text - n->at, "%s%s", n->at ? ", " : "", name);
}

/* ---- columns ---- */

static bool has_column(const struct selection *s, const char *key)
{
	for (size_t i = 0; i < s->columns.n; i++)
		if (!strcmp(s->columns.v[i].key, key))
			return true;
	return false;
}

static int add_column(struct selection *s, const char *key, size_t bytes)
{
	struct chosen *to = array_push(&s->columns);
	if (!to)
		return -ENOMEM;
	snprintf(to->key, sizeof to->key, "%.*s", (int)bytes, key);
	return 0;
}

static int add_columns_of_row(struct selection *s)
{
	int e = 0;
	for (size_t i = 0; i < s->fields.v.n && !e; i++) {
		const char *key = s->fields.v.v[i].key;
		if (!has_column(s, key) && s->columns.n < COLUMNS_MOST)
			e = add_column(s, key, strlen(key));
	}
	return e;
}

static const char *usual_columns(const struct selection *s)
{
	if (s->o->columns || s->o->form != SELECT_TEXT)
		return s->o->columns;
	if (!strcmp(s->section, "kernels") && !s->r->device_kernels)
		return "count,graph_count,host_total_ns,grid,block,shapes,name";
	for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
		if (!strcmp(usual[i].section, s->section))
			return usual[i].columns;
	return event_list_columns(s->section);
}

static int no_column(const struct selection *s, const char *key, size_t bytes)
{
	struct names names = { .at = 0 };
	for (size_t i = 0; i < s->columns.n; i++)
		add_name(&names, s->columns.v[i].key);
	return error_set(s->err, -EINVAL, "%s has no column %.*s: there are %s", s->section,
		(int)bytes, key, names.text);
}

/* Those of all rows are there; leaves those that are wanted. */
static int choose_columns(struct selection *s)
{
	const char *list = usual_columns(s), *word;
	size_t bytes;
	ARRAY(struct chosen) all = { s->columns.v, s->columns.n, s->columns.room };
	if (!list || !all.n)
		return 0;
	for (size_t i = 0; (word = fields_nth(list, i, &bytes)); i++) {
		char key[sizeof s->columns.v->key];
		snprintf(key, sizeof key, "%.*s", (int)bytes, word);
		if (!has_column(s, key) && s->o->columns)
			return no_column(s, word, bytes);
	}
	memset(&s->columns, 0, sizeof s->columns);
	int e = 0;
	for (size_t i = 0; (word = fields_nth(list, i, &bytes)) && !e; i++)
		for (size_t k = 0; k < all.n && !e; k++)
			if (!strncmp(all.v[k].key, word, bytes) && !all.v[k].key[bytes])
				e = add_column(s, word, bytes);
	array_free(&all);
	return e;
}

/* What a kept row has in a column. */
static enum field_kind kept_kind(struct selection *s, size_t row, const char *key)
{
	const struct field *f =
		fields_of(&s->fields, s->kept.v[row].json) ? NULL : fields_find(&s->fields, key);
	return f ? f->kind : FIELD_NULL;
}

/* Bit i: a row that is shown has a value in column i. */
static uint64_t columns_with_values(struct selection *s)
{
	const size_t shown = s->o->rows && s->o->rows < s->kept.n ? s->o->rows : s->kept.n;
	uint64_t seen = 0;
	for (size_t k = 0; k < shown; k++) {
		if (fields_of(&s->fields, s->kept.v[k].json))
			return UINT64_MAX;
		for (size_t i = 0; i < s->columns.n; i++) {
			const struct field *f = fields_find(&s->fields, s->columns.v[i].key);
			seen |= (uint64_t)(f && f->kind != FIELD_NULL) << i;
		}
	}
	return seen;
}

static void name_last(struct selection *s)
{
	size_t i = 0;
	while (i < s->columns.n && strcmp(s->columns.v[i].key, "name") != 0)
		i++;
	if (i == s->columns.n)
		return;
	const struct chosen name = s->columns.v[i];
	memmove(s->columns.v + i, s->columns.v + i + 1, (s->columns.n - i - 1) * sizeof name);
	s->columns.v[s->columns.n - 1] = name;
}

/* Of a terminal's list what says nothing goes; of one without usual columns those that are too
 * many, and the name is last. */
static void thin_columns(struct selection *s)
{
	const uint64_t seen = columns_with_values(s);
	const bool chosen = usual_columns(s) != NULL;
	size_t n = 0;
	static_assert(COLUMNS_MOST <= 64, "a bit a column");
	for (size_t i = 0; i < s->columns.n; i++)
		if (seen >> i & 1 && (chosen || n < COLUMNS_SHOWN))
			s->columns.v[n++] = s->columns.v[i];
	s->columns.n = n;
	if (!chosen)
		name_last(s);
}

/* ---- CSV and JSON ---- */

static int write_csv_cell(struct selection *s, const char *key)
{
	const struct field *f = fields_find(&s->fields, key);
	if (!f || f->kind == FIELD_NULL)
		return 0;
	if (f->kind == FIELD_NUMBER || f->kind == FIELD_WORD) {
		fwrite(f->raw, 1, f->bytes, s->out);
		return 0;
	}
	char *text = field_text(f);
	if (!text)
		return -ENOMEM;
	text_put_csv(s->out, text);
	free(text);
	return 0;
}

static int write_csv_row(struct selection *s)
{
	int e = 0;
	for (size_t i = 0; i < s->columns.n && !e; i++) {
		if (i)
			putc(',', s->out);
		e = write_csv_cell(s, s->columns.v[i].key);
	}
	putc('\n', s->out);
	return e;
}

static void write_csv_heading(struct selection *s)
{
	for (size_t i = 0; i < s->columns.n; i++)
		fprintf(s->out, "%s%s", i ? "," : "", s->columns.v[i].key);
	putc('\n', s->out);
}

static void write_json_row(struct selection *s, const char *json)
{
	const char *before = "";
	if (!s->o->columns) {
		fputs(json, s->out);
		return;
	}
	putc('{', s->out);
	for (size_t i = 0; i < s->columns.n; i++) {
		const struct field *f = fields_find(&s->fields, s->columns.v[i].key);
		fprintf(s->out, "%s\"%s\": %.*s", before, s->columns.v[i].key,
			f ? (int)f->bytes : 4, f ? f->raw : "null");
		before = ", ";
	}
	putc('}', s->out);
}

static void begin_json_section(struct selection *s)
{
	fprintf(s->out, ",\n\t\"%s\": %s", s->section, s->list ? "[" : "");
}

/* ---- text ---- */

static unsigned text_shown(const struct selection *s)
{
	const unsigned third = (s->o->width ? s->o->width : WIDTH) / 3;
	return third > TEXT_LEAST ? third : TEXT_LEAST;
}

/* A class by the kernel's name alone. */
static bool is_guess(const struct selection *s)
{
	const struct field *basis = fields_find(&s->fields, "class_basis");
	return basis && basis->bytes == 6 && !memcmp(basis->raw, "\"name\"", 6);
}

static int put_cell(struct selection *s, struct table *t, const char *key, bool last)
{
	const struct field *f = fields_find(&s->fields, key);
	if (!f || f->kind == FIELD_NULL) {
		table_none(t);
		return 0;
	}
	if (f->kind == FIELD_NUMBER) {
		field_put_number(t, f);
		return 0;
	}
	char *text = field_text(f);
	if (!text)
		return -ENOMEM;
	const bool shorter = !s->o->full_names && section_names_kernels(s->section, key);
	const char *shown = shorter ? text_kernel(text) : text;
	if (!strcmp(key, "class") && is_guess(s))
		table_cell(t, "%s?", shown);
	else if (!strcmp(key, "called_by") && !s->o->full_names)
		callers_cell_line(t, text);
	else if (s->o->full_names || last)
		table_cell(t, "%s", shown);
	else
		table_cell_name(t, shown, text_shown(s));
	free(text);
	return 0;
}

/* Below the rows, where several are and one of the columns adds up. */
static void put_sums(struct selection *s, struct table *t)
{
	const char *sums = section_sums(s->section);
	bool any = false;
	for (size_t i = 0; i < s->columns.n; i++)
		any |= fields_place(sums, s->columns.v[i].key) >= 0;
	for (size_t i = 0; i < s->columns.n && any && s->rows > 1; i++)
		if (!field_sums_put(&s->sums, sums, s->columns.v[i].key, t))
			table_cell(t, i == s->columns.n - 1 ? "total of %zu rows" : "", s->rows);
}

/* '>' for a column whose first value is a number. */
static char align_of(struct selection *s, const char *key)
{
	enum field_kind kind = FIELD_NULL;
	for (size_t k = 0; k < s->kept.n && kind == FIELD_NULL; k++)
		kind = kept_kind(s, k, key);
	return kind == FIELD_NUMBER ? '>' : '<';
}

/* What is no list: a line a column. */
static int write_object(struct selection *s, const struct text_page *p)
{
	static const char *const headings[] = { "key", "value" };
	struct table t;
	int e = fields_of(&s->fields, s->kept.v[0].json);
	table_init(&t, "<<", headings);
	for (size_t i = 0; i < s->columns.n && !e; i++) {
		table_cell(&t, "%s", s->columns.v[i].key);
		e = put_cell(s, &t, s->columns.v[i].key, true);
	}
	page_end_table(p, &t, 0);
	section_put_note(s->out, section_note(s->section), p->width);
	return e;
}

static int write_list(struct selection *s, const struct text_page *p)
{
	char align[TABLE_COLUMNS + 1] = "";
	const char *headings[TABLE_COLUMNS];
	struct table t;
	int e = 0;
	if (s->columns.n > TABLE_COLUMNS)
		s->columns.n = TABLE_COLUMNS;
	for (size_t i = 0; i < s->columns.n; i++) {
		align[i] = align_of(s, s->columns.v[i].key);
		headings[i] = s->columns.v[i].key;
	}
	table_init(&t, align, headings);
	for (size_t k = 0; k < page_shown(p, s->kept.n) && !e; k++) {
		e = fields_of(&s->fields, s->kept.v[k].json);
		for (size_t i = 0; i < s->columns.n && !e; i++)
			e = put_cell(s, &t, s->columns.v[i].key, i == s->columns.n - 1);
	}
	put_sums(s, &t);
	page_end_table(p, &t, s->rows);
	if (!strcmp(s->section, "kernels") && has_column(s, "flops"))
		roofline_put_sum(s->out, s->r);
	if (!strcmp(s->section, "operators") && has_column(s, "flops"))
		roofline_put_unknown(s->out, s->r);
	if (!strcmp(s->section, "critical_path"))
		analysis_put_slack(s->r, s->out);
	section_put_note(s->out, section_note(s->section), p->width);
	return e;
}

static int write_text(struct selection *s)
{
	struct text_page p = text_page_of(s->out, s->o->rows, s->o->colour);
	p.width = s->o->width ? s->o->width : WIDTH;
	p.full_names = s->o->full_names;
	page_heading(&p, s->section);
	if (s->kept.n)
		return (s->list ? write_list : write_object)(s, &p);
	const char *why =
		s->filtered ? "no row passes --filter" : section_why_empty(s->r, s->section);
	fprintf(s->out, "  none%s%s\n", why ? ": " : "", why ? why : "");
	return 0;
}

/* ---- rows ---- */

/* Numbers by size, the largest first, then texts, then what is not known. */
static int kept_order(const void *one, const void *two)
{
	const struct kept *a = one, *b = two;
	if (isnan(a->number) != isnan(b->number))
		return isnan(a->number) ? 1 : -1;
	if (!isnan(a->number) && a->number != b->number)
		return a->number > b->number ? -1 : 1;
	if (!a->text != !b->text)
		return a->text ? -1 : 1;
	const int texts = a->text ? strcmp(a->text, b->text) : 0;
	return texts ? texts : a->order < b->order ? -1 : a->order > b->order;
}

static bool is_known(const struct kept *k)
{
	return !isnan(k->number) || k->text;
}

/* What is not known stays behind, whichever way round. */
static void turn_round(struct selection *s)
{
	size_t n = 0;
	while (n < s->kept.n && is_known(&s->kept.v[n]))
		n++;
	for (size_t i = 0; i < n / 2; i++) {
		const struct kept k = s->kept.v[i];
		s->kept.v[i] = s->kept.v[n - 1 - i];
		s->kept.v[n - 1 - i] = k;
	}
}

static void sort_kept(struct selection *s)
{
	if (s->kept.n)
		qsort(s->kept.v, s->kept.n, sizeof *s->kept.v, kept_order);
	if (*s->o->sort == '-')
		turn_round(s);
}

static void forget_behind(struct selection *s, size_t rows)
{
	for (size_t k = rows; k < s->kept.n; k++) {
		free(s->kept.v[k].json);
		free(s->kept.v[k].text);
	}
	s->kept.n = rows < s->kept.n ? rows : s->kept.n;
}

#define KEPT_BEYOND 4096u /* rows that may wait for being sorted out */

/* Of a list with a row an event that is sorted only the first are kept. */
static void prune(struct selection *s)
{
	if (!s->o->sort || !s->o->rows || s->kept.n < s->o->rows + KEPT_BEYOND)
		return;
	sort_kept(s);
	forget_behind(s, s->o->rows);
}

static int keep(struct selection *s, const char *json, size_t bytes)
{
	struct kept k = { .json = strndup(json, bytes), .number = NAN, .order = s->rows };
	if (s->o->sort) {
		const char *key = s->o->sort + (*s->o->sort == '-');
		const struct field *f = fields_find(&s->fields, key);
		k.number = field_number(f);
		k.text = f && f->kind != FIELD_NUMBER && f->kind != FIELD_NULL ? field_text(f)
									       : NULL;
	}
	struct kept *to = k.json ? array_push(&s->kept) : NULL;
	if (!to) {
		free(k.json);
		free(k.text);
		return -ENOMEM;
	}
	*to = k;
	prune(s);
	return 0;
}

static int check_filters(struct selection *s)
{
	for (size_t i = 0; i < s->filters.count && s->columns.n; i++)
		if (!has_column(s, s->filters.v[i].key))
			return no_column(s, s->filters.v[i].key, strlen(s->filters.v[i].key));
	return 0;
}

/* Of rows that are written as they come the first brings the columns. */
static int learn_columns(struct selection *s)
{
	int e = add_columns_of_row(s);
	if (!e)
		e = check_filters(s);
	if (!e)
		e = choose_columns(s);
	if (!e && s->o->form == SELECT_CSV)
		write_csv_heading(s);
	return e;
}

static int write_at_once(struct selection *s, const char *json, size_t bytes)
{
	if (s->o->rows && s->rows > s->o->rows)
		return 0;
	if (s->o->form == SELECT_CSV)
		return write_csv_row(s);
	fprintf(s->out, "%s\n\t\t", s->rows > 1 ? "," : "");
	if (s->o->columns)
		write_json_row(s, json);
	else
		fwrite(json, 1, bytes, s->out);
	return ferror(s->out) ? -EIO : 0;
}

static int take_row(void *context, const char *json, size_t bytes)
{
	struct selection *s = context;
	if (!s->wanted)
		return 0;
	const bool as_it_is = s->at_once && s->o->form == SELECT_JSON && s->columns.n &&
			      !s->o->columns && !s->filters.count;
	int e = as_it_is ? 0 : fields_of(&s->fields, json);
	if (!e)
		e = select_filters_check(&s->filters, &s->fields, s->err);
	const bool passes = !e && select_filters_pass(&s->filters, &s->fields);
	if (!e && !s->at_once)
		e = add_columns_of_row(s);
	else if (!e && !s->columns.n)
		e = learn_columns(s);
	s->filtered |= !passes;
	if (e || !passes)
		return e;
	s->rows++;
	if (s->at_once)
		return write_at_once(s, json, bytes);
	if (s->o->form == SELECT_TEXT)
		field_sums_add(&s->sums, section_sums(s->section), &s->fields);
	const bool enough = !s->o->sort && s->o->rows && s->kept.n >= s->o->rows;
	return enough ? 0 : keep(s, json, bytes);
}

static int sort_rows(struct selection *s)
{
	const char *key = s->o->sort;
	if (!key || !s->columns.n)
		return 0;
	key += *key == '-';
	if (!has_column(s, key))
		return no_column(s, key, strlen(key));
	sort_kept(s);
	return 0;
}

/* ---- sections ---- */

static int write_rows(struct selection *s)
{
	const size_t shown = s->o->rows && s->o->rows < s->kept.n ? s->o->rows : s->kept.n;
	int e = 0;
	if (s->o->form == SELECT_TEXT)
		return write_text(s);
	if (s->o->form == SELECT_CSV)
		write_csv_heading(s);
	for (size_t k = 0; k < shown && !e; k++) {
		e = fields_of(&s->fields, s->kept.v[k].json);
		if (!e && s->o->form == SELECT_CSV) {
			e = write_csv_row(s);
		} else if (!e) {
			if (s->list)
				fprintf(s->out, "%s\n\t\t", k ? "," : "");
			write_json_row(s, s->kept.v[k].json);
		}
	}
	return e;
}

static void forget_rows(struct selection *s)
{
	forget_behind(s, 0);
	s->columns.n = s->rows = 0;
	s->filtered = false;
	s->sums = (struct field_sums){ 0 };
}

static int end_section(struct selection *s)
{
	int e = 0;
	if (!s->wanted)
		return 0;
	if (!s->at_once) {
		e = check_filters(s);
		if (!e)
			e = sort_rows(s);
		if (!e)
			e = choose_columns(s);
		if (!e && s->o->form == SELECT_TEXT && s->list && !s->o->columns)
			thin_columns(s);
		if (!e && s->o->form == SELECT_JSON)
			begin_json_section(s);
		if (!e)
			e = write_rows(s);
	}
	if (!e && s->o->form == SELECT_JSON && (s->list || !s->rows))
		fputs(s->list ? s->rows ? "\n\t]" : "]" : "null", s->out);
	forget_rows(s);
	s->wanted = false;
	return e;
}

/* For people a section comes with the lists that are in it. */
static bool is_wanted(const struct selection *s, const char *name)
{
	char of[sizeof s->section];
	if (fields_place(s->o->only, name) >= 0)
		return true;
	snprintf(of, sizeof of, "%.*s", (int)strcspn(name, "."), name);
	return s->o->form == SELECT_TEXT && fields_place(s->o->only, of) >= 0;
}

static int begin_section(void *context, const char *name, bool list)
{
	struct selection *s = context;
	const int e = end_section(s);
	if (e || !is_wanted(s, name))
		return e;
	s->wanted = true;
	s->list = list;
	snprintf(s->section, sizeof s->section, "%s", name);
	if (s->at_once && s->o->form == SELECT_JSON)
		begin_json_section(s);
	return 0;
}

/* ---- the whole ---- */

static int print_report(struct selection *s)
{
	size_t bytes;
	FILE *out = open_memstream(&s->json, &bytes);
	if (!out)
		return -ENOMEM;
	report_print_json(s->r, out);
	const int failed = ferror(out);
	return fclose(out) || failed ? -ENOMEM : 0;
}

static int read_events(struct selection *s, const struct section_reader *to)
{
	int e = end_section(s);
	s->at_once = !s->o->sort && s->o->form != SELECT_TEXT;
	for (size_t i = 0; event_list_name(i) && !e; i++)
		if (fields_place(s->o->only, event_list_name(i)) >= 0)
			e = event_list_read(s->r, i, to);
	return e ? e : end_section(s);
}

static int name_section(void *context, const char *name, bool list)
{
	add_name(context, name);
	return 0;
}

static int pass_over(void *context, const char *json, size_t bytes)
{
	return 0;
}

/* Of several sections one that this recording lacks is empty, for a reason. */
static void write_absent(struct selection *s)
{
	const struct text_page p = text_page_of(s->out, s->o->rows, s->o->colour);
	const char *word;
	size_t bytes;
	for (size_t i = 0; (word = fields_nth(s->o->only, i, &bytes)); i++) {
		if (!(s->absent >> i & 1))
			continue;
		snprintf(s->section, sizeof s->section, "%.*s", (int)bytes, word);
		if (s->o->form == SELECT_JSON) {
			fprintf(s->out, ",\n\t\"%s\": null", s->section);
			continue;
		}
		page_heading(&p, s->section);
		fprintf(s->out, "  none: %s\n", section_why_empty(s->r, s->section));
	}
}

/* Whether it is the i-th of several that is known, and not here. */
static bool is_absent(const struct selection *s, size_t i, const char *word, size_t bytes)
{
	char name[40];
	if (!s->several || bytes >= sizeof name)
		return false;
	snprintf(name, sizeof name, "%.*s", (int)bytes, word);
	return section_why_empty(s->r, name) != NULL;
}

static int no_section(struct selection *s, const char *word, size_t bytes, const char *names)
{
	char given[40], name[40];
	const int length = (int)bytes;

	snprintf(given, sizeof given, "%.*s", length, word);
	const char *why = section_why_empty(s->r, given);
	if (why)
		return error_set(
			s->err, -EINVAL, "this recording has no section %s: %s", given, why);
	if (bytes < sizeof given && ((s->o->meant && s->o->meant(given, name)) ||
					    text_name_with(names, given, name, sizeof name)))
		return error_set(s->err, -EINVAL,
			"there is no section %s; did you mean %s? There are %s", given, name,
			names);
	return error_set(
		s->err, -EINVAL, "there is no section %.*s: there are %s", length, word, names);
}

/* Before anything is written: what is not there is a mistake. */
static int check_sections(struct selection *s)
{
	struct names names = { .at = 0 };
	const struct section_reader to = { name_section, pass_over, &names };
	int e = sections_read(s->json, &to);
	for (size_t i = 0; event_list_name(i); i++)
		add_name(&names, event_list_name(i));
	const char *word;
	size_t bytes;
	for (size_t i = 0; (word = fields_nth(s->o->only, i, &bytes)) && !e; i++) {
		const char *at = names.text;
		while (at && (strncmp(at, word, bytes) != 0 || (at[bytes] && at[bytes] != ',')))
			at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL;
		if (!at && is_absent(s, i, word, bytes))
			s->absent |= (uint64_t)1 << i;
		else if (!bytes || !at)
			e = no_section(s, word, bytes, names.text);
	}
	return e;
}

int report_select_parsed(const struct report *r, const struct select_options *o, FILE *out,
	struct error *err, bool several, bool checks_only)
{
	struct selection s = { .o = o, .r = r, .out = out, .err = err, .several = several };
	const struct section_reader to = { begin_section, take_row, &s };
	int e = select_filters_parse(&s.filters, o->filters, o->filter_count, err);
	if (!e)
		e = print_report(&s);
	if (!e)
		e = check_sections(&s);
	if (!e && !checks_only)
		e = sections_read(s.json, &to);
	if (!e && !checks_only)
		e = read_events(&s, &to);
	if (!e && !checks_only)
		write_absent(&s);
	forget_rows(&s);
	array_free(&s.kept);
	array_free(&s.columns);
	array_free(&s.fields.v);
	select_filters_free(&s.filters);
	free(s.json);
	return e;
}
