/*
 * Writes messages in the wire format of Protocol Buffers: each field a varint of its number
 * and type, then its value.  A message inside a message has its length in front: four bytes
 * are left for it, and given back when the message turns out short.  One owner thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/expect.h"

#define PROTO_DEEP 8u /* messages in messages */

struct proto {
	ARRAY(uint8_t) bytes;
	uint32_t depth;
	size_t open[PROTO_DEEP]; /* where the messages that are open begin */
};

/* All that is closed goes to `out`. */
static inline void proto_write(struct proto *p, FILE *out)
{
	fwrite(p->bytes.v, 1, p->bytes.n, out);
	p->bytes.n = 0;
}

static inline void proto_raw(struct proto *p, const void *data, size_t n)
{
	array_reserve(&p->bytes, n);
	if (n)
		memcpy(p->bytes.v + p->bytes.n, data, n);
	p->bytes.n += n;
}

static inline void proto_varint(struct proto *p, uint64_t value)
{
	uint8_t b[10];
	size_t n = 0;
	for (; value >= 0x80; value >>= 7)
		b[n++] = (uint8_t)(value | 0x80);
	b[n++] = (uint8_t)value;
	proto_raw(p, b, n);
}

/* A field of type uint32, uint64, int64, bool or enum. */
static inline void proto_uint(struct proto *p, uint32_t field, uint64_t value)
{
	proto_varint(p, (uint64_t)field << 3);
	proto_varint(p, value);
}

static inline void proto_fixed64(struct proto *p, uint32_t field, uint64_t value)
{
	proto_varint(p, (uint64_t)field << 3 | 1);
	proto_raw(p, &value, sizeof value);
}

static inline void proto_double(struct proto *p, uint32_t field, double value)
{
	proto_varint(p, (uint64_t)field << 3 | 1);
	proto_raw(p, &value, sizeof value);
}

static inline void proto_bytes(struct proto *p, uint32_t field, const char *s, size_t n)
{
	proto_varint(p, (uint64_t)field << 3 | 2);
	proto_varint(p, n);
	proto_raw(p, s, n);
}

static inline void proto_str(struct proto *p, uint32_t field, const char *s)
{
	proto_bytes(p, field, s, strlen(s));
}

static inline void proto_open(struct proto *p, uint32_t field)
{
	proto_varint(p, (uint64_t)field << 3 | 2);
	proto_raw(p, "\x80\x80\x80\x00", 4);
	if (expect(p->depth < PROTO_DEEP, "messages have room for those inside"))
		p->open[p->depth++] = p->bytes.n;
}

/* The message that was opened last. */
static inline void proto_close(struct proto *p)
{
	const size_t begin = p->depth ? p->open[--p->depth] : 0;
	if (!expect(begin >= 4 && begin <= p->bytes.n && p->bytes.n - begin < 1u << 28,
		    "a message lies in what was written, and its length in four bytes"))
		return;
	const size_t n = p->bytes.n - begin;
	uint8_t *length = p->bytes.v + begin - 4;
	if (n < 0x80) {
		*length = (uint8_t)n;
		memmove(length + 1, length + 4, n);
		p->bytes.n -= 3;
		return;
	}
	for (int i = 0; i < 4; i++)
		length[i] = (uint8_t)((n >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
}

static inline void proto_close_all(struct proto *p)
{
	while (p->depth)
		proto_close(p);
}
