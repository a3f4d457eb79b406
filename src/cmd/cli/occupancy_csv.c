/*
 * Appends the occupancy to each line of a CSV file.  Fields are read from a copy of the line, so
 * that all that stood in it is written back byte for byte.
 */
#include "cmd/cli/occupancy_csv.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bounded.h"
#include "base/check.h"
#include "base/csv.h"
#include "base/digit.h"
#include "base/xmalloc.h"
#include "cmd/cli/command.h"
#include "predict/occupancy.h"

#define COMPLAINTS 10 /* about rows, until the rest is only counted */

enum column { CC, THREADS, REGS, SMEM_STATIC, SMEM_DYNAMIC, COLUMNS };

static const char *const names[COLUMNS] = { "cc", "threads_per_block", "regs_per_thread",
	"smem_static_bytes", "smem_dynamic_bytes" };

struct table_of_launches {
	FILE *out;
	struct csv_row row;
	int fields;        /* that the header has; 0: it has not come */
	int role[COLUMNS]; /* the field of each column that is needed, or -1 */
	uint64_t line, bad;
};

/* The line apart from what ends it. */
struct line {
	const char *text;
	size_t bytes;
	const char *ending;
};

const char *occupancy_device_list(void)
{
	static char text[160];
	struct bounded b = BOUNDED(text);
	for (size_t i = 0; i < occupancy_device_count; i++)
		bounded_printf(&b, "%s%u.%u", i ? ", " : "", occupancy_devices[i].major,
			occupancy_devices[i].minor);
	return bounded_end(&b);
}

__attribute__((format(printf, 2, 3))) static bool complain_of(
	struct table_of_launches *t, const char *format, ...)
{
	char text[320];
	va_list ap;
	if (++t->bad > COMPLAINTS)
		return false;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	complain(EXIT_USAGE, "line %llu: %s", (unsigned long long)t->line, text);
	return false;
}

/* A whole number, 256 or 256.0 as spreadsheets have it.  A number larger than any limit stops at
 * the largest. */
static bool take_count(const char *text, uint32_t *ret_value)
{
	char *end;
	const unsigned long long value = strtoull(text, &end, 10);
	if (*end == '.')
		end += 1 + strspn(end + 1, "0");
	*ret_value = (uint32_t)MIN(value, UINT32_MAX);
	return is_digit(*text) && !*end;
}

static bool read_row(struct table_of_launches *t, const struct occupancy_device **ret_d,
	struct occupancy_launch *ret_l)
{
	uint32_t *const into[COLUMNS] = { NULL, &ret_l->threads, &ret_l->regs,
		&ret_l->smem_static_bytes, &ret_l->smem_dynamic_bytes };
	char *const *field = t->row.field;
	if (t->row.n != t->fields)
		return complain_of(
			t, "there are %d fields, but the header has %d", t->row.n, t->fields);
	const char *cc = field[t->role[CC]];
	*ret_d = occupancy_device_named(cc, strlen(cc));
	if (!*ret_d)
		return complain_of(
			t, "cc is '%.36s'. The known ones are %s", cc, occupancy_device_list());
	for (int c = THREADS; c < COLUMNS; c++)
		if (!take_count(field[t->role[c]], into[c]))
			return complain_of(t, "%s is '%.36s', not a whole number", names[c],
				field[t->role[c]]);
	return true;
}

/* A bad row comes back with nothing in the new columns, which stay where they are as far as that
 * can be had. */
static void answer_row(struct table_of_launches *t, const struct line *line, const char *wrong)
{
	struct occupancy_launch l = { 0 };
	const struct occupancy_device *d = NULL;
	if (wrong ? complain_of(t, "%s", wrong) : read_row(t, &d, &l)) {
		const struct occupancy o = occupancy_of(d, &l);
		fprintf(t->out, ",%u,%.6g,%s%s", o.blocks, (double)o.warps / d->warps_per_sm,
			occupancy_word(&o), line->ending);
		return;
	}
	for (int n = wrong ? t->fields : t->row.n; n < t->fields; n++)
		putc(',', t->out);
	fprintf(t->out, ",,,%s", line->ending);
}

static int read_header(struct table_of_launches *t, const struct line *line, const char *wrong)
{
	if (wrong)
		return complain(EXIT_USAGE, "the header: %s", wrong);
	t->fields = t->row.n;
	for (int c = 0; c < COLUMNS; c++) {
		t->role[c] = -1;
		for (int i = 0; i < t->fields; i++) {
			if (strcasecmp(names[c], t->row.field[i]))
				continue;
			if (t->role[c] >= 0)
				return complain(
					EXIT_USAGE, "the column %s is there twice", names[c]);
			t->role[c] = i;
		}
		if (t->role[c] < 0)
			return complain(EXIT_USAGE,
				"the header has no column '%s'. It needs cc, threads_per_block, "
				"regs_per_thread, smem_static_bytes and smem_dynamic_bytes",
				names[c]);
	}
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
	int code = 0;
	char *copy = xstrndup(line->text, line->bytes);
	const char *wrong = csv_split(copy, &t->row);
	t->line++;
	const bool blank = !wrong && t->row.n == 1 && !*t->row.field[0];
	if (blank || t->fields)
		fwrite(line->text, 1, line->bytes, t->out);
	if (blank)
		fputs(line->ending, t->out);
	else if (t->fields)
		answer_row(t, line, wrong);
	else
		code = read_header(t, line, wrong);
	free(copy);
	return code;
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
	struct table_of_launches t = { .out = out };
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
