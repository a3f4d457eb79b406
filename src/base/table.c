/* Tables of text: see table.h. */
#include "base/table.h"

#include <string.h>

#include "base/number.h"
#include "base/text.h"

static void put(struct table *t, const char *format, va_list values)
{
	char *text = xvasprintf(format, values);
	text_make_safe(text);
	*array_push(&t->cells) = text;
}

void table_cell(struct table *t, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	put(t, format, values);
	va_end(values);
}

void table_column(struct table *t, char align, const char *heading, int bytes)
{
	t->align[t->columns++] = align;
	table_cell(t, "%.*s", bytes, heading);
}

struct table table_of(const char *columns)
{
	struct table t = { .columns = 0 };
	for (size_t bytes; *columns; columns += bytes + (columns[bytes] == '|')) {
		bytes = strcspn(columns, "|");
		table_column(&t, *columns, columns + 1, (int)bytes - 1);
	}
	return t;
}

void table_cell_if(struct table *t, bool known, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	if (known)
		put(t, format, values);
	else
		table_none(t);
	va_end(values);
}

void table_cell_name(struct table *t, const char *name, size_t most)
{
	struct text_short n;
	table_cell(t, "%s", text_short(&n, name, most));
}

void table_count(struct table *t, uint64_t count)
{
	struct number n;
	table_cell(t, "%s", number_count(&n, count));
}

void table_bytes(struct table *t, uint64_t bytes)
{
	struct number n;
	table_cell(t, "%s", number_bytes(&n, bytes));
}

void table_ns_if(struct table *t, bool known, uint64_t ns)
{
	if (known)
		table_ns(t, ns);
	else
		table_none(t);
}

void table_ns(struct table *t, uint64_t ns)
{
	struct number n;
	table_cell(t, "%s", number_ns(&n, ns));
}

void table_percent(struct table *t, double percent)
{
	table_cell(t, "%.1f %%", percent);
}

void table_share(struct table *t, uint64_t part, uint64_t all)
{
	if (all)
		table_percent(t, (double)part * 100 / (double)all);
	else
		table_none(t);
}

void table_none(struct table *t)
{
	table_cell(t, "-");
}

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static size_t width_of(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void widths_of(const struct table *t, size_t columns, size_t *widths)
{
	for (size_t i = 0; i < t->cells.n; i++) {
		const size_t n = width_of(t->cells.v[i]);
		widths[i % columns] = MAX(n, widths[i % columns]);
	}
}

/* The bytes of the first `most` characters. */
static size_t first_bytes(const char *s, size_t most)
{
	size_t i = 0;
	for (; s[i]; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80 && !most--)
			break;
	return i;
}

/* Text that is longer than the rest of the table's width is cut. */
static void put_last(
	const struct table *t, const char *s, const size_t *widths, size_t columns, FILE *out)
{
	size_t used = 2;
	for (size_t i = 0; i + 1 < columns; i++)
		used += widths[i] + 2;
	const size_t room = t->width > used + TABLE_LAST_LEAST ? t->width - used : TABLE_LAST_LEAST;
	const size_t n = width_of(s), width = widths[columns - 1];
	if (t->align[columns - 1] == '>' && width > n)
		fprintf(out, "%*s", (int)(width - n), "");
	if (t->width && n > room)
		fprintf(out, "%.*s…\n", (int)first_bytes(s, room - 1), s);
	else
		fprintf(out, "%s\n", s);
}

static void put_cell(const char *s, char align, size_t width, FILE *out)
{
	const size_t n = width_of(s);
	const size_t pad = width > n ? width - n : 0;
	if (align == '>')
		fprintf(out, "%*s", (int)pad, "");
	fputs(s, out);
	fprintf(out, "%*s  ", align == '<' ? (int)pad : 0, "");
}

static void print(const struct table *t, FILE *out, const char *dim, const char *plain)
{
	const size_t columns = t->columns;
	size_t widths[TABLE_COLUMNS] = { 0 };
	if (!columns)
		return;
	widths_of(t, columns, widths);
	for (size_t i = 0; i < t->cells.n - t->cells.n % columns; i++) {
		const size_t c = i % columns;
		if (c == 0)
			fprintf(out, "%s  ", i == 0 ? dim : "");
		if (c < columns - 1)
			put_cell(t->cells.v[i], t->align[c], widths[c], out);
		else
			put_last(t, t->cells.v[i], widths, columns, out);
		if (i == columns - 1)
			fputs(plain, out);
	}
}

void table_fini(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->cells.n; i++)
		free(t->cells.v[i]);
	array_free(&t->cells);
}

void table_end(struct table *t, FILE *out, const char *dim, const char *plain, size_t more)
{
	struct number n;
	print(t, out, dim, plain);
	table_fini(t);
	if (more)
		fprintf(out, "  %s… and %s more (-n 0 shows all)%s\n", dim, number_count(&n, more),
			plain);
}

void table_print(struct table *t, FILE *out)
{
	table_end(t, out, "", "", 0);
}

struct text_page text_page_of(FILE *out, size_t rows, bool colour)
{
	return (struct text_page){ .out = out,
		.rows = rows,
		.bold = colour ? "\033[1m" : "",
		.dim = colour ? "\033[2m" : "",
		.red = colour ? "\033[31m" : "",
		.plain = colour ? "\033[0m" : "" };
}

void page_heading(const struct text_page *p, const char *text)
{
	fprintf(p->out, "\n%s%s%s\n", p->bold, text, p->plain);
}

size_t page_shown(const struct text_page *p, size_t rows)
{
	return p->rows && p->rows < rows ? p->rows : rows;
}

void page_end_table(const struct text_page *p, struct table *t, size_t rows)
{
	t->width = p->full_names ? 0 : p->width;
	table_end(t, p->out, p->dim, p->plain, rows - page_shown(p, rows));
}

const char *table_bar(uint64_t value, uint64_t most, bool utf8)
{
	static const char *const fine[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const plain[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };
	const unsigned level =
		value ? 1 + (unsigned)((double)value * 7 / (double)(most ? most : 1)) : 0;
	return (utf8 ? fine : plain)[level < 8 ? level : 8];
}
