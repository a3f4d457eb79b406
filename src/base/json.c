/* JSON output: see json.h. */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/digit.h"
#include "base/text.h"

void json_init(struct json *j, FILE *out)
{
	*j = (struct json){ .out = out, .pretty = true, .pretty_depth = 2 };
}

void json_init_line(struct json *j, FILE *out)
{
	*j = (struct json){ .out = out, .pretty_depth = -1 };
}

static size_t plain_run(const unsigned char *s, size_t bytes)
{
	size_t i = 0;
	while (i < bytes && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
		i++;
	return i;
}

static size_t quote_one(FILE *out, const unsigned char *s, size_t left)
{
	const size_t n = s[0] >= 0x80 ? utf8_length(s, left) : 0;
	bool safe;
	if (n && text_next((const char *)s, left, &safe) && !safe) /* of two bytes, or three */
		fprintf(out, "\\u%04x",
			n == 2 ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
			       : (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu));
	else if (n)
		fwrite(s, 1, n, out);
	else if (s[0] >= 0x80)
		fputs("\\ufffd", out);
	else if (s[0] == '"' || s[0] == '\\')
		fprintf(out, "\\%c", s[0]);
	else if (s[0] == '\n')
		fputs("\\n", out);
	else
		fprintf(out, "\\u%04x", s[0]);
	return n ? n : 1;
}

void json_quote(FILE *out, const char *string, size_t bytes)
{
	const unsigned char *s = (const unsigned char *)string;
	putc('"', out);
	while (bytes) {
		size_t n = plain_run(s, bytes);
		if (n)
			fwrite(s, 1, n, out);
		else
			n = quote_one(out, s, bytes);
		s += n;
		bytes -= n;
	}
	putc('"', out);
}

static void new_line(struct json *j)
{
	if (!j->pretty || j->depth > j->pretty_depth)
		return;
	putc('\n', j->out);
	for (int i = 0; i < j->depth; i++)
		putc('\t', j->out);
}

static void before_value(struct json *j, const char *key)
{
	if (j->depth) {
		if (j->filled[j->depth])
			fputs(j->pretty && j->depth > j->pretty_depth ? ", " : ",", j->out);
		j->filled[j->depth] = true;
		new_line(j);
	}
	if (key) {
		json_quote(j->out, key, strlen(key));
		fputs(j->pretty ? ": " : ":", j->out);
	}
}

static void container(struct json *j, const char *key, char c)
{
	before_value(j, key);
	putc(c, j->out);
	assert(j->depth + 1 < 16);
	j->filled[++j->depth] = false;
}

static void end(struct json *j, char c)
{
	assert(j->depth > 0);
	const bool filled = j->filled[j->depth];
	const bool broken = j->depth <= j->pretty_depth;
	j->depth--;
	if (filled && broken)
		new_line(j);
	putc(c, j->out);
	if (j->depth == 0 && j->pretty)
		putc('\n', j->out);
}

void json_begin_object(struct json *j, const char *key)
{
	container(j, key, '{');
}

void json_begin_array(struct json *j, const char *key)
{
	container(j, key, '[');
}

static void begin_document(struct json *j, FILE *out, bool pretty)
{
	json_init(j, out);
	j->pretty = pretty;
	json_begin_object(j, NULL);
	json_u64(j, "schema_version", JSON_SCHEMA_VERSION);
}

void json_begin_document(struct json *j, FILE *out)
{
	begin_document(j, out, true);
}

void json_begin_compact(struct json *j, FILE *out)
{
	begin_document(j, out, false);
}

void json_end_object(struct json *j)
{
	end(j, '}');
}

void json_end_document(struct json *j)
{
	json_end_object(j);
	if (!j->pretty) /* which ends its line by itself */
		putc('\n', j->out);
}

void json_end_array(struct json *j)
{
	end(j, ']');
}

void json_strn(struct json *j, const char *key, const char *value, size_t bytes)
{
	before_value(j, key);
	json_quote(j->out, value, bytes);
}

void json_str(struct json *j, const char *key, const char *value)
{
	json_strn(j, key, value, strlen(value));
}

/* By hand: exporters write a number a hundred million times. */
static void put_digits(FILE *out, uint64_t value, bool negative)
{
	char text[24], *p = digits_before(text + sizeof text, value, 10);
	if (negative)
		*--p = '-';
	fwrite(p, 1, (size_t)(text + sizeof text - p), out);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	before_value(j, key);
	put_digits(j->out, value, false);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	before_value(j, key);
	put_digits(j->out, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void json_put_real(struct json *j, const char *key, double value)
{
	before_value(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.6g", value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	before_value(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_put_null(struct json *j, const char *key)
{
	before_value(j, key);
	fputs("null", j->out);
}

void json_u64_or_null(struct json *j, const char *key, bool there, uint64_t value)
{
	if (there)
		json_u64(j, key, value);
	else
		json_put_null(j, key);
}

void json_str_or_null(struct json *j, const char *key, const char *value)
{
	if (value)
		json_str(j, key, value);
	else
		json_put_null(j, key);
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "0x%" PRIx64, value);
	json_str(j, key, text);
}

void json_dim3(struct json *j, const char *key, const uint32_t v[3])
{
	json_begin_array(j, key);
	for (int i = 0; i < 3; i++)
		json_u64(j, NULL, v[i]);
	json_end_array(j);
}
