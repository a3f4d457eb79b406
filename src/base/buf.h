/*
 * Bytes that grow.  Zeroed memory is an empty one, and buf_free() makes it so again.  `n` may be
 * set back, which keeps the memory for what comes next.  One owner thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/slice.h"

struct buf {
	char *v;
	size_t n, room;
};

/* Room for so many bytes behind the end; the caller adds to n what it writes there. */
static inline char *buf_more(struct buf *b, size_t bytes)
{
	array_reserve(b, bytes);
	return b->n ? b->v + b->n : b->v; /* v may be NULL */
}

static inline void buf_put(struct buf *b, const void *bytes, size_t n)
{
	if (n)
		memcpy(buf_more(b, n), bytes, n);
	b->n += n;
}

/* So many zeros. */
static inline void buf_fill(struct buf *b, size_t n)
{
	if (n)
		memset(buf_more(b, n), 0, n);
	b->n += n;
}

static inline void buf_put_slice(struct buf *b, struct slice s)
{
	buf_put(b, s.at, s.n);
}

static inline void buf_put_text(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

static inline struct slice buf_slice(const struct buf *b)
{
	return (struct slice){ b->v, b->n };
}

void buf_u64(struct buf *b, uint64_t value); /* decimal */
void buf_i64(struct buf *b, int64_t value);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Behind the end, not counted: what is there may be read as a string. */
const char *buf_text(struct buf *b);
#define buf_free(...) array_free(__VA_ARGS__)
