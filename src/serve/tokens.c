/*
 * A rate is one number, the time at which its bucket is full again if nobody asks. A request moves
 * that time by what it costs, unless it then lay more than a second ahead.
 */
#include "serve/tokens.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/array.h"
#include "base/check.h"

#define SECOND_NS  1000000000u
#define WORD_BYTES 1024

struct rate {
	uint64_t each_ns; /* 0: no limit */
	_Atomic uint64_t full_ns;
};

struct token {
	char *word;
	size_t bytes;
	struct rate requests, rows;
};

struct tokens {
	ARRAY(struct token) all;
};

static bool read_rate(struct slice of, const char *name, struct rate *ret)
{
	const size_t n = strlen(name);
	uint64_t rate;
	if (of.n <= n || memcmp(of.at, name, n) != 0 ||
		!slice_u64((struct slice){ of.at + n, of.n - n }, &rate) || rate < 1 ||
		rate > TOKEN_RATE_MOST || ret->each_ns)
		return false;
	ret->each_ns = SECOND_NS / rate;
	return true;
}

/* Up to the next blank; an empty one is at the end. */
static struct slice next_word(const char **at)
{
	*at += strspn(*at, " \t\r\n");
	const struct slice s = { *at, strcspn(*at, " \t\r\n") };
	*at += s.n;
	return s;
}

static bool read_line(const char *line, struct token *t)
{
	const struct slice word = next_word(&line);
	*t = (struct token){ .word = xstrndup(word.at, word.n), .bytes = word.n };
	for (struct slice s; (s = next_word(&line)).n;)
		if (!read_rate(s, "requests=", &t->requests) && !read_rate(s, "rows=", &t->rows))
			return false;
	return word.n < WORD_BYTES;
}

static int read_file(struct tokens *t, const char *path, FILE *in, struct error *err)
{
	char *line = NULL;
	size_t room = 0;
	int e = 0;
	for (unsigned number = 1; !e && getline(&line, &room, in) > 0; number++)
		if (line[strspn(line, " \t\r\n")] && !read_line(line, array_push(&t->all)))
			e = error_set(err, -EINVAL,
				"--token=%s: line %u is no word of up to %d bytes, with requests=N and "
				"rows=N from 1 to %d behind it",
				path, number, WORD_BYTES - 1, TOKEN_RATE_MOST);
	free(line);
	if (!e && !t->all.n)
		e = error_set(err, -EINVAL, "--token=%s: it is empty, or it can't be read", path);
	return e;
}

int tokens_open(const char *path, struct tokens **ret, struct error *err)
{
	FILE *in = fopen(path, "re");
	if (!in)
		return error_set(err, -EINVAL, "--token=%s: %s", path, strerror(errno));
	struct tokens *t = xcalloc(1, sizeof *t);
	const int e = read_file(t, path, in, err);
	fclose(in);
	if (e)
		tokens_free(t);
	else
		*ret = t;
	return e;
}

void tokens_free(struct tokens *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->all.n; i++)
		free(t->all.v[i].word);
	array_free(&t->all);
	free(t);
}

static bool is_equal(const struct token *t, struct slice word)
{
	unsigned differ = word.n != t->bytes;
	for (size_t i = 0; i < t->bytes && i < word.n; i++)
		differ |= (unsigned)(word.at[i] ^ t->word[i]);
	return !differ;
}

struct token *tokens_find(struct tokens *t, struct slice said)
{
	static const char scheme[] = "Bearer ";
	struct token *found = NULL;
	if (said.n < sizeof scheme - 1 ||
		!slice_is_nocase((struct slice){ said.at, sizeof scheme - 1 }, scheme))
		return NULL;
	const struct slice word = { said.at + sizeof scheme - 1, said.n - (sizeof scheme - 1) };
	for (size_t i = 0; i < t->all.n; i++)
		if (is_equal(&t->all.v[i], word))
			found = &t->all.v[i];
	return found;
}

static bool take(struct rate *r, uint64_t cost, uint64_t now, uint64_t *ret_retry_ns)
{
	uint64_t full = load_relaxed(&r->full_ns), from;
	do {
		from = MAX(full, now);
		const uint64_t ahead = from - now + MIN(cost, SECOND_NS);
		if (ahead > SECOND_NS) {
			*ret_retry_ns = ahead - SECOND_NS;
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&r->full_ns, &full, from + cost, memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool token_take(struct token *t, uint32_t rows, uint64_t now_ns, uint64_t *ret_retry_ns)
{
	if (!take(&t->requests, t->requests.each_ns, now_ns, ret_retry_ns))
		return false;
	if (take(&t->rows, rows * t->rows.each_ns, now_ns, ret_retry_ns))
		return true;
	/* It does not run, and so it is no request. */
	sub_relaxed(&t->requests.full_ns, t->requests.each_ns);
	return false;
}
