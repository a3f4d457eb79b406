/* Makes text from a trace safe and fits it to a width. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

/* RFC 3629, table of section 4. */
size_t utf8_length(const unsigned char *s, size_t left)
{
	static const struct {
		unsigned char first, last, low, high;
		size_t bytes;
	} rows[] = {
		{ 0x00, 0x7f, 0x00, 0xff, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
		if (s[0] < rows[r].first || s[0] > rows[r].last)
			continue;
		if (left < rows[r].bytes)
			return 0;
		if (rows[r].bytes > 1 && (s[1] < rows[r].low || s[1] > rows[r].high))
			return 0;
		for (size_t i = 2; i < rows[r].bytes; i++)
			if ((s[i] & 0xc0) != 0x80)
				return 0;
		return rows[r].bytes;
	}
	return 0;
}

/* U+2028 to U+202E, and U+2066 to U+2069: ends of lines, and directions. */
static bool is_mark(const unsigned char *s)
{
	return s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
				       (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

size_t text_next(const char *text, size_t left, bool *ret_safe)
{
	const unsigned char *s = (const unsigned char *)text;
	const size_t n = utf8_length(s, left);
	*ret_safe = n == 1   ? *s >= 0x20 && *s != 0x7f
		    : n == 2 ? s[0] != 0xc2 || s[1] >= 0xa0
		    : n == 3 ? !is_mark(s)
			     : n != 0;
	return n + !n;
}

void text_put_safe(FILE *out, const char *s)
{
	text_put_safe_bytes(out, s, strlen(s));
}

void text_put_safe_bytes(FILE *out, const char *s, size_t bytes)
{
	bool safe;
	for (size_t left = bytes, n; left; s += n, left -= n) {
		for (n = 0; n < left && s[n] >= 0x20 && s[n] < 0x7f; n++)
			; /* what nearly all texts are, at once */
		if (n) {
			fwrite(s, 1, n, out);
			continue;
		}
		n = text_next(s, left, &safe);
		if (safe)
			fwrite(s, 1, n, out);
		else
			putc('?', out);
	}
}

void text_make_safe(char *s)
{
	char *to = s;
	bool safe;
	for (size_t left = strlen(s), n; left; s += n, left -= n) {
		n = text_next(s, left, &safe);
		if (safe)
			memmove(to, s, n);
		else
			*to = '?';
		to += safe ? n : 1;
	}
	*to = '\0';
}

const char *text_kernel(const char *name)
{
	static const char *const common[] = {
		"at::native::", "(anonymous namespace)::", "<unnamed>::"
	};
	const char *at = name + (strncmp(name, "void ", 5) ? 0 : 5);
	for (size_t i = 0; i < sizeof common / sizeof common[0];) {
		const size_t bytes = strlen(common[i]);
		const bool found = !strncmp(at, common[i], bytes);
		at += found ? bytes : 0;
		i = found ? 0 : i + 1;
	}
	return *at ? at : name;
}

const char *text_short(struct text_short *t, const char *name, size_t most)
{
	const size_t bytes = strlen(name);
	size_t at = 0;
	bool safe;
	assert(most <= TEXT_MOST);
	for (; at < bytes && most; most--)
		at += text_next(name + at, bytes - at, &safe);
	memcpy(t->text, name, at);
	t->text[at] = '\0';
	if (at < bytes)
		memcpy(t->text + at, "…", sizeof("…"));
	return t->text;
}

void text_put_csv(FILE *out, const char *s)
{
	putc('"', out);
	if (*s && strchr("=+-@\t\r", *s))
		putc('\'', out);
	for (const char *quote; (quote = strchr(s, '"')); s = quote + 1) {
		text_put_safe_bytes(out, s, (size_t)(quote - s));
		fputs("\"\"", out);
	}
	text_put_safe(out, s);
	putc('"', out);
}

unsigned text_distance(const char *a, const char *b, unsigned limit)
{
	unsigned row[33];
	const size_t m = strlen(a), n = strlen(b);
	if (m > 32 || n > 32)
		return limit;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; i <= m; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n] < limit ? row[n] : limit;
}

bool text_name_with(const char *names, const char *word, char *ret_name, size_t size)
{
	const char *at = *word ? strstr(names, word) : NULL;
	while (at && at > names && at[-1] != ' ')
		at--;
	if (at)
		snprintf(ret_name, size, "%.*s", (int)strcspn(at, ","), at);
	return at;
}
