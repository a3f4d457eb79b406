/*
 * Reads protobuf's text format into a tree (config_reader.h). The grammar is that of protobuf's
 * language specification for text format, without extensions, which ModelConfig does not have.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/digit.h"
#include "base/text.h"

#include "store/config_reader.h"

static void skip(struct config_reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '#') {
			const char *line_end = memchr(r->at, '\n', (size_t)(r->end - r->at));
			r->at = line_end ? line_end : r->end;
			if (!line_end)
				return;
		}
		if (*r->at == '\n')
			r->line++;
		else if (*r->at != ' ' && (*r->at < '\t' || *r->at > '\r'))
			return;
	}
}

/* The next character that means something; 0: the end. */
static char peek(struct config_reader *r)
{
	skip(r);
	return r->at < r->end ? *r->at : '\0';
}

static bool take(struct config_reader *r, char c)
{
	const bool is = peek(r) == c && r->at < r->end;
	r->at += is;
	return is;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static struct slice take_word(struct config_reader *r)
{
	const char *from = r->at;
	while (r->at < r->end && (is_letter(*r->at) || (r->at > from && is_digit(*r->at))))
		r->at++;
	return (struct slice){ from, (size_t)(r->at - from) };
}

static int fail_here(struct config_reader *r, const char *wanted)
{
	const char c = peek(r);
	if (r->at == r->end)
		return config_fail(r, r->line, "the text ends where %s was expected", wanted);
	return config_fail(r, r->line, "%s was expected, not %c", wanted, c);
}

/* The number of up to `most` digits of the base, of which there is one. */
static bool take_digits(struct config_reader *r, unsigned base, unsigned most, uint64_t *ret)
{
	uint64_t n = 0;
	unsigned i = 0;
	for (; i < most && r->at < r->end && (unsigned)hex_digit(*r->at) < base; i++)
		if (__builtin_mul_overflow(n, base, &n) ||
			__builtin_add_overflow(n, (unsigned)hex_digit(*r->at++), &n))
			return false;
	*ret = n;
	return i;
}

static bool take_escape(struct config_reader *r, struct buf *b)
{
	static const char from[] = "abfnrtv?\\'\"", to[] = "\a\b\f\n\r\t\v?\\'\"";
	if (r->at == r->end)
		return false;
	const char c = *r->at;
	const char *simple = c ? strchr(from, c) : NULL;
	uint64_t n = 0, low = 0;
	if (simple) {
		r->at++;
		buf_put(b, &to[simple - from], 1);
		return true;
	}
	const bool octal = is_digit(c);
	r->at += !octal;
	if (octal ? !take_digits(r, 8, 3, &n) || n > 255
		  : (c == 'x' || c == 'X') && !take_digits(r, 16, 2, &n))
		return false;
	if (octal || c == 'x' || c == 'X') {
		buf_put(b, &(char){ (char)n }, 1);
		return true;
	}
	const char *digits = r->at;
	const unsigned want = c == 'u' ? 4 : c == 'U' ? 8 : 0;
	if (!want || !take_digits(r, 16, want, &n) || r->at - digits != want)
		return false;
	/* The two halves of a pair of UTF-16. */
	if (n >= 0xd800 && n < 0xdc00 && r->end - r->at > 6 && r->at[0] == '\\' &&
		r->at[1] == 'u') {
		r->at += 2;
		if (!take_digits(r, 16, 4, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		n = 0x10000 + ((n - 0xd800) << 10) + (low - 0xdc00);
	}
	if (n > 0x10ffff || (n >= 0xd800 && n < 0xe000))
		return false;
	char point[4];
	buf_put(b, point, utf8_put(point, (uint32_t)n));
	return true;
}

/* One string, and those that stand directly behind it. */
static json_t *take_string(struct config_reader *r, const struct config_field *f)
{
	struct buf b = { 0 };
	json_t *v = NULL;
	for (char quote = peek(r); quote == '"' || quote == '\''; quote = peek(r)) {
		r->at++;
		while (r->at < r->end && *r->at != quote && *r->at != '\n') {
			const char *from = r->at++;
			if (*from != '\\') {
				buf_put(&b, from, 1);
			} else if (!take_escape(r, &b)) {
				config_fail(r, r->line,
					"the string of %s has an escape that does "
					"not exist",
					f->name);
				goto out;
			}
		}
		if (r->at == r->end || *r->at != quote) {
			config_fail(r, r->line, "the string of %s has no closing %c in its line",
				f->name, quote);
			goto out;
		}
		r->at++;
	}
	v = config_string(r, f, b.v ? b.v : "", b.n);
out:
	buf_free(&b);
	return v;
}

static json_t *take_real(struct config_reader *r, const struct config_field *f, struct slice text)
{
	char copy[64], *end = copy;
	if (f->kind == KIND_DOUBLE && text.n < sizeof copy) {
		memcpy(copy, text.at, text.n);
		copy[text.n] = '\0';
		const double value = strtod(copy, &end);
		end += end > copy && (*end == 'f' || *end == 'F');
		if (end == copy + text.n && isfinite(value))
			return json_real(value);
	}
	config_fail(r, r->line, "%s takes %s, not %.*s", f->name,
		f->kind == KIND_DOUBLE ? "a number" : "a whole number",
		(int)(text.n < 60 ? text.n : 60), text.at);
	return NULL;
}

static json_t *take_number(struct config_reader *r, const struct config_field *f, bool negative)
{
	const char *from = r->at;
	const bool hex = r->end - from > 2 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X');
	const bool octal = !hex && r->end - from > 1 && from[0] == '0' && is_digit(from[1]);
	uint64_t n = 0;
	r->at += hex ? 2 : 0;
	const bool whole = take_digits(r, hex ? 16 : octal ? 8 : 10, 64, &n);
	const char *behind = r->at;
	while (r->at < r->end &&
		(is_digit(*r->at) || is_letter(*r->at) || *r->at == '.' ||
			((*r->at == '-' || *r->at == '+') && (r->at[-1] | 0x20) == 'e' && !hex)))
		r->at++;
	if (whole && behind == r->at)
		return config_whole(r, f, negative, n);
	json_t *v = take_real(r, f, (struct slice){ from, (size_t)(r->at - from) });
	if (v && negative)
		json_real_set(v, -json_real_value(v));
	return v;
}

static json_t *take_scalar(struct config_reader *r, const struct config_field *f)
{
	const char c = peek(r);
	if (c == '"' || c == '\'')
		return take_string(r, f);
	if (is_letter(c))
		return config_word(r, f, take_word(r));
	const bool negative = take(r, '-');
	const char first = peek(r);
	if (is_digit(first) || first == '.')
		return take_number(r, f, negative);
	fail_here(r, "a value");
	return NULL;
}

static json_t *take_message(struct config_reader *r, const struct config_field *f)
{
	const bool brace = take(r, '{');
	if (!f->message || (!brace && !take(r, '<'))) {
		fail_here(r, "{");
		return NULL;
	}
	json_t *v = json_object();
	if (!config_read_text(r, f->message, brace ? '}' : '>', v))
		return v;
	json_decref(v);
	return NULL;
}

static json_t *take_value(struct config_reader *r, const struct config_field *f)
{
	return f->kind == KIND_MESSAGE ? take_message(r, f) : take_scalar(r, f);
}

/* An entry of a map is a message with the fields key and value, either of which may be missing. */
static int take_entry(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree)
{
	struct config_field pair[] = { { .name = "key", .kind = KIND_STRING, .use = USE_KEPT }, *f,
		{ .name = NULL } };
	if (f->label == LABEL_LEVELS)
		pair[0].kind = KIND_UINT32;
	pair[1].name = "value";
	pair[1].label = LABEL_ONE;
	pair[1].use = USE_KEPT;
	const struct config_message entry = { f->name, pair, 0 };
	const struct config_field as_message = { .name = f->name, .message = &entry };
	const unsigned line = r->line;
	json_t *v = take_message(r, &as_message);
	if (!v)
		return -EINVAL;
	const json_t *key = json_object_get(v, "key");
	json_t *value = json_object_get(v, "value");
	char number[24];
	snprintf(number, sizeof number, "%lld", (long long)json_integer_value(key));
	const char *text = f->label == LABEL_LEVELS ? number : json_string_value(key);
	const unsigned end = r->line;
	r->line = line;
	const int e = config_add(r, m, f, tree, text ? text : "",
		value ? json_incref(value) : config_default(&pair[1]));
	r->line = end;
	json_decref(v);
	return e;
}

static int take_element(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree)
{
	if (f->kind == KIND_MESSAGE && f->use == USE_REFUSED)
		return config_add(r, m, f, tree, NULL, json_object());
	if (f->label == LABEL_MAP || f->label == LABEL_LEVELS)
		return take_entry(r, m, f, tree);
	const unsigned line = r->line;
	json_t *v = take_value(r, f);
	if (!v)
		return -EINVAL;
	const unsigned end = r->line;
	r->line = line;
	const int e = config_add(r, m, f, tree, NULL, v);
	r->line = end;
	return e;
}

static int take_list(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree)
{
	if (f->label == LABEL_ONE || f->label == LABEL_ONEOF)
		return config_fail(r, r->line, "%s takes one value, not a list", f->name);
	if (take(r, ']'))
		return 0;
	for (;;) {
		skip(r);
		const int e = take_element(r, m, f, tree);
		if (e || take(r, ']'))
			return e;
		if (!take(r, ','))
			return fail_here(r, ", or ]");
	}
}

static int take_field(struct config_reader *r, const struct config_message *m, json_t *tree)
{
	const struct config_field *f = NULL;
	const struct slice name = take_word(r);
	if (!name.n)
		return fail_here(r, "the name of a field");
	int e = config_find_field(r, m, name, &f);
	if (e)
		return e;
	const bool is_map = f->label == LABEL_MAP || f->label == LABEL_LEVELS;
	if (!take(r, ':') && f->kind != KIND_MESSAGE && !is_map)
		return fail_here(r, "a colon");
	e = take(r, '[') ? take_list(r, m, f, tree) : take_element(r, m, f, tree);
	if (!e && !take(r, ','))
		take(r, ';');
	return e;
}

int config_read_text(
	struct config_reader *r, const struct config_message *m, char close, json_t *tree)
{
	const unsigned line = r->line;
	for (;;) {
		const char c = peek(r);
		if (r->at == r->end && close)
			return config_fail(r, line, "%s has no closing %c", m->name, close);
		if (r->at == r->end || (c == close && take(r, c)))
			return 0;
		const int e = take_field(r, m, tree);
		if (e)
			return e;
	}
}

int config_read_value(struct config_reader *r, const struct config_message *m,
	const struct config_field *f, json_t *tree)
{
	do {
		json_t *v = take_value(r, f);
		const int e = v ? config_add(r, m, f, tree, NULL, v) : -EINVAL;
		if (e)
			return e;
	} while (f->label == LABEL_MANY && take(r, ','));
	skip(r);
	return r->at == r->end ? 0 : fail_here(r, "the end of the value");
}
