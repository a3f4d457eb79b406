/*
 * The wire format of protobuf: fields one after another, each a tag (number and form) and a value.
 * Every length is checked against the bytes that are there. Groups, which proto3 lacks, are
 * refused. Host byte order is little-endian, as everywhere here.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/slice.h"

enum pb_form { PB_VARINT, PB_64, PB_BYTES, PB_GROUP, PB_GROUP_END, PB_32 };

struct pb_field {
	uint32_t number;
	enum pb_form form;
	uint64_t value;     /* the number, or how many bytes */
	struct slice bytes; /* of PB_BYTES, else at is NULL */
};

/* Takes a varint of 1 to 10 bytes off s. */
static inline int pb_varint(struct slice *s, uint64_t *ret)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < 10 && i < s->n; i++) {
		const unsigned char c = (unsigned char)s->at[i];
		value |= (uint64_t)(c & 127) << (7 * i);
		if (c < 128) {
			s->at += i + 1;
			s->n -= i + 1;
			*ret = value;
			return 0;
		}
	}
	return -EINVAL;
}

static inline int pb_fixed(struct slice *s, size_t bytes, uint64_t *ret)
{
	if (s->n < bytes)
		return -EINVAL;
	*ret = 0;
	memcpy(ret, s->at, bytes);
	s->at += bytes;
	s->n -= bytes;
	return 0;
}

/* Takes a value of the form off s. */
static inline int pb_value(struct slice *s, enum pb_form form, uint64_t *ret)
{
	switch (form) {
	case PB_VARINT:
		return pb_varint(s, ret);
	case PB_64:
		return pb_fixed(s, 8, ret);
	case PB_32:
		return pb_fixed(s, 4, ret);
	default:
		return -EINVAL;
	}
}

/* Takes the next field off s: 1; 0: the message ends; -EINVAL: the bytes are no message. */
static inline int pb_next(struct slice *s, struct pb_field *ret)
{
	uint64_t tag;
	if (!s->n)
		return 0;
	if (pb_varint(s, &tag) || tag > UINT32_MAX || tag < 8)
		return -EINVAL;
	*ret = (struct pb_field){ .number = (uint32_t)tag >> 3, .form = tag & 7 };
	if (ret->form != PB_BYTES)
		return pb_value(s, ret->form, &ret->value) ? -EINVAL : 1;
	if (pb_varint(s, &ret->value) || ret->value > s->n)
		return -EINVAL;
	ret->bytes = (struct slice){ s->at, (size_t)ret->value };
	s->at += ret->value;
	s->n -= ret->value;
	return 1;
}

static inline size_t pb_varint_bytes(uint64_t value)
{
	return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

/* Writes where there is room, and returns where the next goes. */
static inline char *pb_write_varint(char *at, uint64_t value)
{
	for (; value > 127; value >>= 7)
		*at++ = (char)(value | 128);
	*at++ = (char)value;
	return at;
}

static inline void pb_put_varint(struct buf *b, uint64_t value)
{
	char *at = buf_more(b, 10);
	b->n += (size_t)(pb_write_varint(at, value) - at);
}

static inline void pb_put_tag(struct buf *b, uint32_t number, enum pb_form form)
{
	pb_put_varint(b, (uint64_t)number << 3 | form);
}

static inline void pb_put_number(struct buf *b, uint32_t number, uint64_t value)
{
	pb_put_tag(b, number, PB_VARINT);
	pb_put_varint(b, value);
}

static inline void pb_put_bytes(struct buf *b, uint32_t number, struct slice s)
{
	pb_put_tag(b, number, PB_BYTES);
	pb_put_varint(b, s.n);
	buf_put_slice(b, s);
}

/* Begins a field whose length is not known yet, and returns what pb_end() takes. */
static inline size_t pb_begin(struct buf *b, uint32_t number)
{
	pb_put_tag(b, number, PB_BYTES);
	return b->n;
}

/* Puts the length before what was written since pb_begin(). It includes `more` bytes to come. */
static inline void pb_end(struct buf *b, size_t begin, size_t more)
{
	const size_t n = b->n - begin, head = pb_varint_bytes(n + more);
	buf_more(b, head);
	memmove(b->v + begin + head, b->v + begin, n);
	pb_write_varint(b->v + begin, n + more);
	b->n += head;
}
