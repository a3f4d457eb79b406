/* A pull parser for JSON: see json_reader.h. */
#include "import/json_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/digit.h"
#include "base/expect.h"
#include "base/text.h"
#include "base/unpack.h"

#define WINDOW      (256u << 10)
#define STRING_MOST (256u << 10) /* of one string; what is beyond is read and dropped */

/* The tokens that may come next. */
enum state { WANT_VALUE, WANT_VALUE_OR_END, WANT_KEY_OR_END, WANT_COMMA_OR_END, WANT_NOTHING };

static enum json_token problem(struct json_reader *r, const char *what)
{
	if (!*r->problem)
		snprintf(r->problem, sizeof r->problem, "%s at byte %" PRIu64, what,
			r->before + r->at);
	r->state = WANT_NOTHING;
	return JSON_ERROR;
}

static bool fill(struct json_reader *r)
{
	if (*r->problem)
		return false;
	r->before += r->end;
	r->at = r->end = 0;
	if (r->compressed && r->before > r->most) {
		problem(r, "it unpacks to more than a file of its size may hold,");
		return false;
	}
	const int n = gzread(r->file, r->window, WINDOW);
	if (n > 0) {
		r->end = (size_t)n;
		return true;
	}
	int code = Z_OK;
	gzerror(r->file, &code);
	r->truncated = n == 0 || code == Z_BUF_ERROR;
	if (!r->truncated)
		problem(r, "the compressed data is damaged");
	return false;
}

/* The next byte that is no blank, not taken; -1 at the end. */
static int peek(struct json_reader *r)
{
	for (;;) {
		while (r->at < r->end) {
			const uint8_t c = r->window[r->at];
			if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
				return c;
			r->at++;
		}
		if (!fill(r))
			return -1;
	}
}

static int take(struct json_reader *r)
{
	if (r->at == r->end && !fill(r))
		return -1;
	return r->window[r->at++];
}

static enum json_token ended(struct json_reader *r)
{
	return problem(r, "the file ends in the middle of a value");
}

static void keep(struct json_reader *r, const void *bytes, size_t n)
{
	if (r->text.n + n > STRING_MOST)
		n = r->text.n < STRING_MOST ? STRING_MOST - r->text.n : 0;
	array_reserve(&r->text, n + 1);
	expect(r->text.n + n <= STRING_MOST, "a string is no longer than is kept");
	memcpy(r->text.v + r->text.n, bytes, n);
	r->text.n += n;
	r->text.v[r->text.n] = '\0';
}

static void keep_character(struct json_reader *r, uint32_t c)
{
	char b[4];
	keep(r, b, utf8_put(b, c));
}

/* Four digits; fewer are kept as what they are worth. */
static uint32_t take_hex(struct json_reader *r)
{
	uint32_t value = 0;
	for (int i = 0; i < 4; i++) {
		if (r->at == r->end && !fill(r))
			break;
		const int digit = hex_digit((char)r->window[r->at]);
		if (digit < 0)
			break;
		value = value << 4 | (uint32_t)digit;
		r->at++;
	}
	return value;
}

#define HIGH_SURROGATE(c) ((c) >= 0xd800 && (c) < 0xdc00)
#define LOW_SURROGATE(c)  ((c) >= 0xdc00 && (c) < 0xe000)
#define REPLACEMENT       0xfffdu

static void take_unicode(struct json_reader *r)
{
	uint32_t c = take_hex(r);
	while (HIGH_SURROGATE(c)) {
		if (r->at + 1 >= r->end || r->window[r->at] != '\\' || r->window[r->at + 1] != 'u')
			break; /* a pair that the window cuts is lost, one in 256 Ki */
		r->at += 2;
		const uint32_t low = take_hex(r);
		if (LOW_SURROGATE(low)) {
			keep_character(r, 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff)));
			return;
		}
		keep_character(r, REPLACEMENT);
		c = low;
	}
	const bool alone = HIGH_SURROGATE(c) || LOW_SURROGATE(c) || !c;
	keep_character(r, alone ? REPLACEMENT : c);
}

static bool take_escape(struct json_reader *r)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const int c = take(r);
	if (c < 0)
		return false;
	const char *at = memchr(from, c, sizeof from - 1);
	const char byte = at ? to[at - from] : (char)c;
	if (c == 'u')
		take_unicode(r);
	else
		keep(r, &byte, 1);
	return true;
}

/* Behind the opening quote.  False when the file ends. */
static bool take_string(struct json_reader *r)
{
	r->text.n = 0;
	keep(r, "", 0);
	for (;;) {
		if (r->at == r->end && !fill(r))
			return false;
		const uint8_t *begin = r->window + r->at;
		const size_t left = r->end - r->at;
		const uint8_t *quote = memchr(begin, '"', left);
		const size_t span = quote ? (size_t)(quote - begin) : left;
		const uint8_t *escape = memchr(begin, '\\', span);
		const size_t plain = escape ? (size_t)(escape - begin) : span;
		r->at += plain;
		keep(r, begin, plain);
		if (escape) {
			r->at++;
			if (!take_escape(r))
				return false;
		} else if (quote) {
			r->at++;
			return true;
		}
	}
}

static bool in_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
	       c == '+' || c == '.';
}

/* A number, true, false, null, NaN, Infinity: a run of letters, digits and signs. */
static enum json_token take_word(struct json_reader *r)
{
	r->text.n = 0;
	keep(r, "", 0);
	while (r->at < r->end || fill(r)) {
		const size_t begin = r->at;
		while (r->at < r->end && in_word(r->window[r->at]))
			r->at++;
		keep(r, r->window + begin, r->at - begin);
		if (r->at < r->end)
			break;
	}
	if (r->truncated && r->depth)
		return ended(r); /* who knows how many digits are missing */
	const char *w = r->text.v;
	if (!strcmp(w, "true"))
		return JSON_TRUE;
	if (!strcmp(w, "false"))
		return JSON_FALSE;
	if (!strcmp(w, "null") || strstr(w, "NaN") || strstr(w, "nan") || strstr(w, "Inf") ||
		strstr(w, "inf"))
		return JSON_NULL;
	if ((*w >= '0' && *w <= '9') || *w == '-' || *w == '+' || *w == '.')
		return JSON_NUMBER;
	return problem(r, *w ? "there is a word that is no value" : "there is no value");
}

static enum json_token begin_container(struct json_reader *r, bool object)
{
	if (r->depth == JSON_DEPTH)
		return problem(r, "values are nested too deep");
	r->at++;
	r->in_object[r->depth++] = object;
	r->state = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
	return object ? JSON_OBJECT : JSON_ARRAY;
}

static void value_ended(struct json_reader *r)
{
	r->state = r->depth ? WANT_COMMA_OR_END : WANT_NOTHING;
}

static enum json_token end_container(struct json_reader *r, bool object)
{
	if (!r->depth || r->in_object[r->depth - 1] != object)
		return problem(r, "brackets do not match");
	expect(r->depth <= JSON_DEPTH && r->at <= r->end, "what is read is in the window");
	r->at++;
	r->depth--;
	value_ended(r);
	return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static enum json_token take_value(struct json_reader *r, int c)
{
	if (c == '{' || c == '[')
		return begin_container(r, c == '{');
	enum json_token t = JSON_STRING;
	if (c == '"') {
		r->at++;
		if (!take_string(r))
			return ended(r);
	} else {
		t = take_word(r);
	}
	if (t != JSON_ERROR)
		value_ended(r);
	return t;
}

static enum json_token take_key(struct json_reader *r, int c)
{
	if (c != '"')
		return problem(r, "a key is missing");
	r->at++;
	if (!take_string(r))
		return ended(r);
	c = peek(r);
	if (c < 0)
		return ended(r);
	if (c != ':')
		return problem(r, "a colon is missing");
	r->at++;
	r->state = WANT_VALUE;
	return JSON_KEY;
}

enum json_token json_next(struct json_reader *r)
{
	if (r->state == WANT_NOTHING)
		return *r->problem ? JSON_ERROR : JSON_END;
	int c = peek(r);
	if (c == ',' && r->state == WANT_COMMA_OR_END) {
		r->at++;
		r->state = r->in_object[r->depth - 1] ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
		c = peek(r);
	} else if (c >= 0 && r->state == WANT_COMMA_OR_END && c != '}' && c != ']') {
		return problem(r, "a comma is missing");
	}
	if (c < 0)
		return ended(r);
	if ((c == '}' || c == ']') && r->state != WANT_VALUE)
		return end_container(r, c == '}');
	return r->state == WANT_KEY_OR_END ? take_key(r, c) : take_value(r, c);
}

bool json_element(struct json_reader *r, enum json_token *ret_first)
{
	*ret_first = json_next(r);
	return *ret_first > JSON_ERROR && *ret_first != JSON_ARRAY_END;
}

void json_skip(struct json_reader *r, enum json_token first)
{
	if ((first != JSON_OBJECT && first != JSON_ARRAY) ||
		!expect(r->depth, "a value that has begun is open"))
		return;
	const uint32_t outside = r->depth - 1;
	while (r->depth > outside && json_next(r) != JSON_ERROR)
		;
}

static void copy_string(struct bounded *to, const struct json_reader *r)
{
	bounded_char(to, '"');
	for (size_t i = 0; i < r->text.n && !to->cut; i++) {
		const char c = r->text.v[i];
		if (c == '"' || c == '\\')
			bounded_char(to, '\\');
		if ((uint8_t)c < ' ')
			bounded_printf(to, "\\u%04x", c);
		else
			bounded_char(to, c);
	}
	bounded_char(to, '"');
}

static void copy_token(struct bounded *to, const struct json_reader *r, enum json_token t)
{
	static const char *const words[] = {
		[JSON_OBJECT] = "{",
		[JSON_OBJECT_END] = "}",
		[JSON_ARRAY] = "[",
		[JSON_ARRAY_END] = "]",
		[JSON_TRUE] = "true",
		[JSON_FALSE] = "false",
		[JSON_NULL] = "null",
	};
	if (t == JSON_KEY || t == JSON_STRING)
		copy_string(to, r);
	else
		bounded_put(to, t == JSON_NUMBER ? r->text.v : words[t]);
	if (t == JSON_KEY)
		bounded_char(to, ':');
}

static bool begins(enum json_token t)
{
	return t != JSON_OBJECT_END && t != JSON_ARRAY_END;
}

void json_copy_out(struct json_reader *r, enum json_token first, struct bounded *to)
{
	const bool container = first == JSON_OBJECT || first == JSON_ARRAY;
	const uint32_t outside = container ? r->depth - 1 : r->depth;
	enum json_token t = first, last = JSON_OBJECT;
	while (t != JSON_ERROR && t != JSON_END) {
		if (begins(t) && last != JSON_OBJECT && last != JSON_ARRAY && last != JSON_KEY)
			bounded_char(to, ',');
		if (!to->cut)
			copy_token(to, r, t);
		if (r->depth == outside && t != JSON_KEY)
			break;
		last = t;
		t = json_next(r);
	}
}

bool json_number(const char *text, unsigned times, int64_t *ret_value)
{
	char *end;
	if (!*text || text[strspn(text, "0123456789+-.eE")])
		return false;
	/* Its 64 bits or more hold nanoseconds since 1970. */
	const long double value = roundl(strtold(text, &end) * times);
	if (*end || !(fabsl(value) <= (long double)INT64_MAX))
		return false;
	*ret_value = (int64_t)value;
	return true;
}

int json_reader_open(struct json_reader *r, const char *path, struct error *err)
{
	struct stat st;
	*r = (struct json_reader){ .state = WANT_VALUE };
	r->most = unpack_most(stat(path, &st) ? 0 : (uint64_t)st.st_size);
	r->window = xmalloc(WINDOW);
	errno = 0;
	r->file = gzopen(path, "rbe");
	if (!r->file && errno)
		return error_set(err, -errno, "%s can't be read: %s", path, strerror(errno));
	xcheck(r->file);
	gzbuffer(r->file, WINDOW);
	r->compressed = !gzdirect(r->file);
	return 0;
}

void json_reader_close(struct json_reader *r)
{
	if (r->file)
		gzclose_r(r->file);
	free(r->window);
	array_free(&r->text);
	r->file = NULL;
	r->window = NULL;
}

uint64_t json_file_offset(const struct json_reader *r)
{
	const z_off_t at = gzoffset(r->file);
	return at > 0 ? (uint64_t)at : 0;
}
