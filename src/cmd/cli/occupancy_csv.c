/*
 * Rows of launches, answered one line at a time: see occupancy_csv.h.  A line is looked at where
 * it lies and written back byte by byte, so whatever else it carries comes out unharmed.
 */
#include "base/bounded.h"
#include "cmd/cli/occupancy_csv.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/cli/command.h"
#include "predict/occupancy.h"

#define COMPLAINTS 10 /* about rows, until the rest is only counted */

enum column { CC, THREADS, REGS, SMEM_STATIC, SMEM_DYNAMIC, COLUMNS };

static const char *const names[COLUMNS] = { "cc", "threads_per_block", "regs_per_thread",
	"smem_static_bytes", "smem_dynamic_bytes" };

struct slice {
	const char *s;
	size_t n;
};

struct table_of_launches {
	FILE *out;
	size_t fields;     /* that the header has */
	int role[COLUMNS]; /* the field, from 0, of each column that is needed */
	uint64_t line, bad;
	const struct occupancy_device *device; /* of the last row, by this name: */
	char name[16];
	size_t name_bytes;
};

/* The line apart from what ends it. */
struct line {
	const char *text;
	size_t bytes;
	const char *ending;
};

const char *occupancy_fraction(unsigned active, unsigned most)
{
	static char texts[65][65][24];
	char *text = texts[most][active];
	for (int digits = 1; !*text || strtod(text, NULL) != (double)active / most; digits++)
		snprintf(text, sizeof texts[0][0], "%.*g", digits, (double)active / most);
	return text;
}

const char *occupancy_device_list(void)
{
	static char text[160];
	struct bounded b = BOUNDED(text);
	for (size_t i = 0; i < occupancy_device_count; i++)
		bounded_printf(&b, "%s%u.%u", i ? ", " : "", occupancy_devices[i].major,
			occupancy_devices[i].minor);
	return bounded_end(&b);
}

static struct slice trimmed(const char *from, const char *end)
{
	while (from < end && (*from == ' ' || *from == '\t'))
		from++;
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct slice){ from, (size_t)(end - from) };
}

/* The closing quote of a field whose text starts at `at`; a doubled one stands for itself.  NULL
 * when there is none. */
static const char *closing_quote(const char *at, const char *end)
{
	while ((at = memchr(at, '"', (size_t)(end - at)))) {
		if (at + 1 == end || at[1] != '"')
			return at;
		at += 2;
	}
	return NULL;
}

/* The field at *at, without its quotes; *at goes behind its comma, or to NULL after the last.
 * Returns what is wrong with it, or NULL. */
static const char *take_field(const char **at, const char *end, struct slice *ret_field)
{
	const char *from = *at, *comma;
	while (from < end && *from == ' ')
		from++;
	if (from < end && *from == '"') {
		const char *quote = closing_quote(from + 1, end);
		if (!quote)
			return "a quote is not closed on its line";
		*ret_field = trimmed(from + 1, quote);
		for (from = quote + 1; from < end && (*from == ' ' || *from == '\t');)
			from++;
		if (from < end && *from != ',')
			return "a comma should follow a closing quote";
		comma = from;
	} else {
		for (comma = from; comma < end && *comma != ',';)
			comma++;
		*ret_field = trimmed(from, comma);
	}
	*at = comma < end ? comma + 1 : NULL;
	return NULL;
}

/* The text of a cell, fit to be shown. */
static const char *shown(struct slice s, char text[static 40])
{
	const size_t n = s.n < 36 ? s.n : 36;
	for (size_t i = 0; i < n; i++)
		text[i] = s.s[i];
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 32 || text[i] == 127)
			text[i] = '?';
	snprintf(text + n, 40 - n, "%s", n < s.n ? "..." : "");
	return text;
}

__attribute__((format(printf, 2, 3))) static void complain_of(
	struct table_of_launches *t, const char *format, ...)
{
	char text[320];
	va_list ap;
	if (++t->bad > COMPLAINTS)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	complain(EXIT_USAGE, "line %llu: %s", (unsigned long long)t->line, text);
}

/* A whole number, 256 or 256.0 as spreadsheets have it.  A number larger than any limit stops at
 * the largest. */
static bool take_count(struct slice s, uint32_t *ret_value)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < s.n && s.s[i] >= '0' && s.s[i] <= '9'; i++) {
		value = value * 10 + (uint64_t)(s.s[i] - '0');
		if (value > UINT32_MAX)
			value = UINT32_MAX;
	}
	const size_t digits = i;
	if (i && i < s.n && s.s[i] == '.')
		for (i++; i < s.n && s.s[i] == '0';)
			i++;
	*ret_value = (uint32_t)value;
	return digits && i == s.n;
}

/* Splits a row and keeps the fields that have a role; the number of fields, or -1 after
 * complaining. */
static int64_t split(struct table_of_launches *t, const struct line *line, struct slice *fields)
{
	const char *at = line->text, *end = at + line->bytes;
	int64_t n = 0;
	while (at) {
		struct slice field;
		const char *wrong = take_field(&at, end, &field);
		if (wrong) {
			complain_of(t, "%s", wrong);
			return -1;
		}
		for (int c = 0; c < COLUMNS; c++)
			if (t->role[c] == n)
				fields[c] = field;
		n++;
	}
	return n;
}

/* Files name one device again and again, so the last one is remembered. */
static const struct occupancy_device *read_device(struct table_of_launches *t, struct slice text)
{
	char show[40];
	if (t->device && t->name_bytes == text.n && !memcmp(t->name, text.s, text.n))
		return t->device;
	t->device = occupancy_device_named(text.s, text.n);
	if (!t->device) {
		complain_of(t, "cc is '%s'. The known ones are %s", shown(text, show),
			occupancy_device_list());
		return NULL;
	}
	assert(text.n <= sizeof t->name); /* no device is called by a longer one */
	t->name_bytes = text.n;
	memcpy(t->name, text.s, text.n);
	return t->device;
}

static bool read_launch(
	struct table_of_launches *t, const struct slice *fields, struct occupancy_launch *ret_l)
{
	uint32_t *const into[COLUMNS] = { NULL, &ret_l->threads, &ret_l->regs,
		&ret_l->smem_static_bytes, &ret_l->smem_dynamic_bytes };
	char text[40];
	for (int c = THREADS; c < COLUMNS; c++)
		if (!take_count(fields[c], into[c])) {
			complain_of(t, "%s is '%s', not a whole number", names[c],
				shown(fields[c], text));
			return false;
		}
	return true;
}

static void write_row(struct table_of_launches *t, const struct line *line,
	const struct occupancy_device *d, const struct occupancy_launch *l)
{
	const struct occupancy o = occupancy_of(d, l);
	fwrite(line->text, 1, line->bytes, t->out);
	fprintf(t->out, ",%u,%s,%s%s", o.blocks, occupancy_fraction(o.warps, d->warps_per_sm),
		occupancy_word(&o), line->ending);
}

/* A bad row comes back with nothing in the new columns, which stay where they are as far as that
 * can be had. */
static void write_bad_row(struct table_of_launches *t, const struct line *line, int64_t fields)
{
	fwrite(line->text, 1, line->bytes, t->out);
	for (; fields >= 0 && fields < (int64_t)t->fields; fields++)
		putc(',', t->out);
	fprintf(t->out, ",,,%s", line->ending);
}

static void answer_row(struct table_of_launches *t, const struct line *line)
{
	struct slice fields[COLUMNS];
	struct occupancy_launch l = { 0 };
	const struct occupancy_device *d = NULL;
	const int64_t n = split(t, line, fields);
	if (n >= 0 && n != (int64_t)t->fields)
		complain_of(t, "there are %lld fields, but the header has %zu", (long long)n,
			t->fields);
	else if (n >= 0)
		d = read_device(t, fields[CC]);
	if (d && read_launch(t, fields, &l))
		write_row(t, line, d, &l);
	else
		write_bad_row(t, line, n);
}

static bool take_role(struct table_of_launches *t, struct slice field)
{
	for (int c = 0; c < COLUMNS; c++) {
		if (strlen(names[c]) != field.n || strncasecmp(names[c], field.s, field.n))
			continue;
		if (t->role[c] >= 0) {
			complain(EXIT_USAGE, "the column %s is there twice", names[c]);
			return false;
		}
		t->role[c] = (int)t->fields;
	}
	return true;
}

static int read_header(struct table_of_launches *t, const struct line *line)
{
	const char *at = line->text, *end = at + line->bytes;
	if (line->bytes >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		at += 3;
	for (; at; t->fields++) {
		struct slice field;
		const char *wrong = take_field(&at, end, &field);
		if (wrong)
			return complain(EXIT_USAGE, "the header: %s", wrong);
		if (!take_role(t, field))
			return EXIT_USAGE;
	}
	for (int c = 0; c < COLUMNS; c++)
		if (t->role[c] < 0)
			return complain(EXIT_USAGE,
				"the header has no column '%s'. It needs cc, threads_per_block, "
				"regs_per_thread, smem_static_bytes and smem_dynamic_bytes",
				names[c]);
	fwrite(line->text, 1, line->bytes, t->out);
	fprintf(t->out, ",blocks_per_sm,occupancy,limiter%s", line->ending);
	return 0;
}

static struct line line_of(const char *text, size_t bytes)
{
	struct line line = { text, bytes, "\n" };
	if (line.bytes && text[line.bytes - 1] == '\n')
		line.bytes--;
	if (line.bytes && text[line.bytes - 1] == '\r') {
		line.bytes--;
		line.ending = "\r\n";
	}
	return line;
}

static int answer_line(struct table_of_launches *t, const struct line *line)
{
	t->line++;
	if (!trimmed(line->text, line->text + line->bytes).n) {
		fwrite(line->text, 1, line->bytes, t->out);
		fputs(line->ending, t->out);
		return 0;
	}
	if (!t->fields)
		return read_header(t, line);
	answer_row(t, line);
	return 0;
}

static int finish(const struct table_of_launches *t, int code)
{
	if (code)
		return code;
	if (!t->fields)
		return complain(
			EXIT_USAGE, "there is nothing on standard input, not even a header");
	if (t->bad > COMPLAINTS)
		complain(EXIT_USAGE, "%llu rows more could not be read",
			(unsigned long long)(t->bad - COMPLAINTS));
	return t->bad ? EXIT_USAGE : 0;
}

int occupancy_csv(FILE *in, FILE *out)
{
	struct table_of_launches t = { .out = out, .role = { -1, -1, -1, -1, -1 } };
	char *text = NULL;
	size_t room = 0;
	ssize_t bytes;
	int code = 0;
	while (!code && (bytes = getline(&text, &room, in)) >= 0) {
		const struct line line = line_of(text, (size_t)bytes);
		code = answer_line(&t, &line);
	}
	if (!code && ferror(in))
		code = complain(EXIT_USAGE, "standard input could not be read");
	free(text);
	return finish(&t, code);
}
