/* See fields.h. */
#include "report/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/expect.h"
#include "base/number.h"

#include "base/banned.h"

static const char *blanks(const char *s)
{
	return s + strspn(s, " \t\n,:");
}

static const char *behind_string(const char *s)
{
	for (s++; *s && *s != '"'; s++)
		s += *s == '\\' && s[1];
	return *s ? s + 1 : s;
}

/* Behind a value. */
static const char *behind(const char *s)
{
	unsigned depth = 0;
	do {
		s = blanks(s);
		if (*s == '{' || *s == '[')
			depth++, s++;
		else if (*s == '}' || *s == ']')
			depth--, s++;
		else if (*s == '"')
			s = behind_string(s);
		else
			s += strcspn(s, " \t\n,:]}");
	} while (*s && depth);
	return s;
}

static bool is_container(const char *s)
{
	return *s == '{' || *s == '[';
}

static enum field_kind kind_of(const char *s)
{
	switch (*s) {
	case '"':
		return FIELD_TEXT;
	case '[':
		return FIELD_LIST;
	case 'n':
		return FIELD_NULL;
	case 't':
	case 'f':
		return FIELD_WORD;
	default:
		return FIELD_NUMBER;
	}
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void put_key(struct field *f, const char *prefix, const char *key, size_t bytes)
{
	const size_t most = sizeof f->key - 1, before = least(strlen(prefix), most),
		     n = least(bytes, most - before);
	memcpy(f->key, prefix, before);
	memcpy(f->key + before, key, n);
	f->key[before + n] = '\0';
}

/* s: at the brace. */
static int add_fields(struct fields *f, const char *s, const char *prefix)
{
	int e = 0;
	for (s = blanks(s + 1); *s == '"' && !e; s = blanks(behind(s))) {
		const char *end = behind_string(s);
		struct field new;
		put_key(&new, prefix, s + 1, (size_t)(end - s) - 2);
		s = blanks(end);
		new.raw = s;
		new.bytes = (size_t)(behind(s) - s);
		new.kind = kind_of(s);
		if (*s == '{') {
			char inner[sizeof new.key + 1];
			snprintf(inner, sizeof inner, "%s.", new.key);
			e = add_fields(f, s, inner);
		} else if (new.kind != FIELD_LIST || !is_container(blanks(s + 1))) {
			struct field *to = array_push(&f->v);
			if (!to)
				return -ENOMEM;
			*to = new;
		}
	}
	return e;
}

/* A row that is nothing but a text, as warnings are: one field. */
static int add_text(struct fields *f, const char *json)
{
	struct field *to = array_push(&f->v);
	if (!to)
		return -ENOMEM;
	*to = (struct field){ .key = "text",
		.kind = FIELD_TEXT,
		.raw = json,
		.bytes = (size_t)(behind_string(json) - json) };
	return 0;
}

int fields_of(struct fields *f, const char *json)
{
	f->v.n = 0;
	expect(*json == '{' || *json == '"', "a row is an object or a text");
	return *json == '"' ? add_text(f, json) : add_fields(f, json, "");
}

const struct field *fields_find(const struct fields *f, const char *key)
{
	for (size_t i = 0; i < f->v.n; i++)
		if (!strcmp(f->v.v[i].key, key))
			return &f->v.v[i];
	return NULL;
}

double field_number(const struct field *f)
{
	return f && f->kind == FIELD_NUMBER ? strtod(f->raw, NULL) : NAN;
}

/* ---- texts ---- */

/* A character of two or three bytes that json_quote() escaped. */
static char *put_code(char *to, const char *hex)
{
	char digits[5] = { hex[0], hex[1], hex[2], hex[3], 0 };
	const unsigned long c = strtoul(digits, NULL, 16);
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* s: at the quote.  Returns where the text ends in `to`. */
static char *unquote(char *to, const char *s, const char **ret_behind)
{
	for (s++; *s && *s != '"'; s++) {
		if (*s != '\\') {
			*to++ = *s;
		} else if (*++s == 'u') {
			to = put_code(to, s + 1);
			s += 4;
		} else {
			*to++ = *s == 'n' ? '\n' : *s;
		}
	}
	*ret_behind = *s ? s + 1 : s;
	return to;
}

char *field_text(const struct field *f)
{
	char *text = malloc(f->bytes + 1), *to = text;
	const char *s = f->raw, *const end = f->raw + f->bytes;
	if (!text || f->kind == FIELD_NULL)
		s = end;
	while (s < end) {
		if (*s == '"')
			to = unquote(to, s, &s);
		else if (*s == '[' || *s == ']' || *s == ' ')
			s++;
		else
			*to++ = *s++;
	}
	if (to)
		*to = '\0';
	return text;
}

/* ---- sections ---- */

/* s: at the bracket. */
static int read_list(const char *s, const char *name, const struct section_reader *to)
{
	int e = to->section(to->context, name, true);
	for (s = blanks(s + 1); (*s == '{' || *s == '"') && !e; s = blanks(behind(s)))
		e = to->row(to->context, s, (size_t)(behind(s) - s));
	return e;
}

static int read_inner(const char *s, const char *name, const struct section_reader *to)
{
	int e = 0;
	for (s = blanks(s + 1); *s == '"' && !e; s = blanks(behind(s))) {
		const char *end = behind_string(s);
		char inner[96];
		snprintf(inner, sizeof inner, "%s.%.*s", name, (int)(end - s) - 2, s + 1);
		s = blanks(end);
		if (*s == '[' && *blanks(s + 1) == '{')
			e = read_list(s, inner, to);
	}
	return e;
}

static int read_object(const char *s, const char *name, const struct section_reader *to)
{
	int e = to->section(to->context, name, false);
	if (!e)
		e = to->row(to->context, s, (size_t)(behind(s) - s));
	return e ? e : read_inner(s, name, to);
}

int sections_read(const char *json, const struct section_reader *to)
{
	int e = 0;
	for (const char *s = blanks(blanks(json) + 1); *s == '"' && !e; s = blanks(behind(s))) {
		const char *end = behind_string(s);
		char name[64];
		snprintf(name, sizeof name, "%.*s", (int)(end - s) - 2, s + 1);
		s = blanks(end);
		if (*s == '{')
			e = read_object(s, name, to);
		else if (*s == '[')
			e = read_list(s, name, to);
	}
	return e;
}

/* ---- lists of keys ---- */

const char *fields_nth(const char *list, size_t n, size_t *ret_bytes)
{
	while (list && n--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
	*ret_bytes = list ? strcspn(list, ",") : 0;
	return list;
}

int fields_place(const char *list, const char *key)
{
	size_t bytes;
	const char *at;
	for (int i = 0; (at = fields_nth(list, (size_t)i, &bytes)); i++)
		if (bytes == strlen(key) && !memcmp(at, key, bytes))
			return i;
	return -1;
}

/* ---- for people ---- */

static bool ends_in(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

/* A time of the calendar, in UTC; 0: not known. */
static void put_date(struct table *t, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / 1000000000u);
	struct tm parts;
	char text[40];
	if (ns && gmtime_r(&seconds, &parts) &&
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
		table_cell(t, "%s", text);
	else
		table_none(t);
}

static bool is_share(const char *key)
{
	return ends_in(key, "share") || ends_in(key, "share_of_run") ||
	       ends_in(key, "share_of_busy") || ends_in(key, "occupancy");
}

/* Since the recording began: rows differ in digits that three would not show. */
static bool is_moment(const char *key)
{
	return ends_in(key, "start_ns") || ends_in(key, "first_ns") || ends_in(key, "last_ns");
}

/* "155 GFLOP", "27.3 TFLOP/s" */
static void put_flops(struct table *t, double flops, const char *behind)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
	size_t i = 0;
	for (; flops >= 999.5 && i + 1 < sizeof units / sizeof units[0]; i++)
		flops /= 1000;
	table_cell(t, "%.3g %sFLOP%s", flops, units[i], behind);
}

void field_put_number(struct table *t, const struct field *f)
{
	struct number n;
	const bool whole =
		!memchr(f->raw, '.', f->bytes) && !memchr(f->raw, 'e', f->bytes) && *f->raw != '-';
	const uint64_t value = whole ? strtoull(f->raw, NULL, 10) : 0;
	const double real = strtod(f->raw, NULL);
	if (is_share(f->key))
		table_percent(t, real * 100);
	else if (ends_in(f->key, "flops"))
		put_flops(t, real, "");
	else if (ends_in(f->key, "flops_per_second") || strstr(f->key, "flops_per_second."))
		put_flops(t, real, "/s");
	else if (ends_in(f->key, "bytes_per_second") && real >= 0)
		table_cell(t, "%s/s", number_bytes(&n, sat_from(real)));
	else if (!whole)
		table_cell(t, fabs(real) < 1000 ? "%.3g" : "%.0f", real);
	else if (ends_in(f->key, "_realtime_ns"))
		put_date(t, value);
	else if (is_moment(f->key))
		table_cell(t, "%.6f s", (double)value / 1e9);
	else if (ends_in(f->key, "_ns") || !strcmp(f->key, "ns"))
		table_cell(t, "%s", number_ns(&n, value));
	else if (ends_in(f->key, "bytes"))
		table_cell(t, "%s", number_bytes(&n, value));
	else
		table_cell(t, "%" PRIu64, value);
}

/* ---- sums ---- */

void field_sums_add(struct field_sums *s, const char *list, const struct fields *row)
{
	for (size_t i = 0; *list && i < row->v.n; i++) {
		const struct field *f = &row->v.v[i];
		const int at = f->kind == FIELD_NUMBER ? fields_place(list, f->key) : -1;
		if (at < 0 || !expect(at < FIELD_SUMS, "there is room for all sums"))
			continue;
		s->v[at] += field_number(f);
		s->known |= 1u << at;
	}
}

bool field_sums_put(const struct field_sums *s, const char *list, const char *key, struct table *t)
{
	const int at = fields_place(list, key);
	struct field sum = { .kind = FIELD_NUMBER };
	char text[400];
	if (at < 0 || at >= FIELD_SUMS)
		return false;
	if (!(s->known >> at & 1)) {
		table_none(t);
		return true;
	}
	snprintf(sum.key, sizeof sum.key, "%s", key);
	snprintf(text, sizeof text, is_share(key) ? "%.6f" : "%.0f", s->v[at]);
	sum.raw = text;
	sum.bytes = strlen(text);
	field_put_number(t, &sum);
	return true;
}
