/* See mutate.h. */
#include "mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/hash.h"
#include "trace/block.h"
#include "trace/columns.h"
#include "trace/activity.h"

struct dice {
	uint64_t state;
};

static uint64_t roll(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static size_t below(struct dice *d, size_t n)
{
	return n ? roll(d) % n : 0;
}

struct buffer {
	uint8_t *v;
	size_t n, most;
};

static void erase(struct buffer *b, size_t at, size_t n)
{
	memmove(b->v + at, b->v + at + n, b->n - at - n);
	b->n -= n;
}

static void insert(struct buffer *b, size_t at, const void *data, size_t n)
{
	uint8_t *copy = malloc(n + 1); /* data may be of b */
	if (!copy || n > b->most - b->n) {
		free(copy);
		return;
	}
	memcpy(copy, data, n);
	memmove(b->v + at + n, b->v + at, b->n - at);
	memcpy(b->v + at, copy, n);
	b->n += n;
	free(copy);
}

static const uint64_t edges[] = { 0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 0x7fff, 0x8000, 0xff01,
	0xff08, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffff,
	0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffffe, 0xffffffffffffffff,
	0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000000, 0x7f800000, 0x7fc00000 };
#define EDGES (sizeof edges / sizeof *edges)

static uint64_t other_value(struct dice *d, uint64_t was)
{
	switch (below(d, 6)) {
	case 0:
		return edges[below(d, EDGES)];
	case 1:
		return was + below(d, 33) - 16;
	case 2:
		return was ^ 1ull << below(d, 64);
	case 3:
		return ~was + 1;
	case 4:
		return was << below(d, 32);
	default:
		return roll(d) >> below(d, 64);
	}
}

/* A value of 1, 2, 4 or 8 bytes, where such a one may stand. */
static void change_value(struct dice *d, uint8_t *v, size_t n)
{
	const size_t width = 1u << below(d, 4), places = n / width;
	uint64_t value = 0;
	if (!places)
		return;
	uint8_t *at = v + below(d, places) * width;
	memcpy(&value, at, width);
	value = other_value(d, value);
	memcpy(at, &value, width);
}

/* Copies a value from elsewhere in the file: values that are meant for something. */
static void copy_value(struct dice *d, uint8_t *v, size_t n)
{
	const size_t width = 1u << below(d, 7), places = n / width;
	if (places)
		memmove(v + below(d, places) * width, v + below(d, places) * width, width);
}

static void change_bytes(struct dice *d, struct buffer *b)
{
	const size_t at = below(d, b->n), n = 1 + below(d, b->n - at < 64 ? b->n - at : 64);
	switch (b->n ? below(d, 8) : 9) {
	case 0:
		erase(b, at, n <= b->n - at ? n : b->n - at);
		break;
	case 1:
		insert(b, at, b->v + at, n <= b->n - at ? n : b->n - at);
		break;
	case 2:
		if (!below(d, 8))
			b->n = at;
		break;
	case 3:
		copy_value(d, b->v, b->n);
		break;
	default:
		change_value(d, b->v, b->n);
	}
}

static const char *const words[] = { "1e400", "-1e400", "-0", "0", "-1", "18446744073709551616",
	"18446744073709551615", "9223372036854775807", "-9223372036854775808", "4294967296",
	"1e-400", "0.1e18", "NaN", "Infinity", "null", "true", "{}", "[]", "\"\"", "\"0\"",
	"[[[[[[[[", "{\"a\":", "1.7976931348623157e308", "99999999999999999999999999999999999999",
	"\"\\u0000\"", "\"\\ud800\"", "\xff\xfe", "\"X\"", "\"B\"", "\"E\"", "\"s\"", "\"f\"",
	"\"kernel\"", ",", "", "\"", "\\", "\n", "1e15", "1e19", "0x10", "1.5", "-1.5" };
#define WORDS (sizeof words / sizeof *words)

static bool is_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || (c | 32) == 'e';
}

/* The token around a place: a number, or what stands between quotes, commas and brackets. */
static void token_at(const struct buffer *b, size_t at, size_t *ret_from, size_t *ret_to)
{
	const bool number = is_word(b->v[at]);
	size_t from = at, to = at + 1;
	while (from &&
		(number ? is_word(b->v[from - 1]) : !memchr("\",:[]{}\n", b->v[from - 1], 8)))
		from--;
	while (to < b->n && (number ? is_word(b->v[to]) : !memchr("\",:[]{}\n", b->v[to], 8)))
		to++;
	*ret_from = from;
	*ret_to = to;
}

/* From an opening bracket to where it is closed. */
static size_t end_of_object(const struct buffer *b, size_t at)
{
	int depth = 0;
	for (size_t i = at; i < b->n; i++) {
		depth += b->v[i] == '{' || b->v[i] == '[';
		depth -= b->v[i] == '}' || b->v[i] == ']';
		if (!depth)
			return i + 1;
	}
	return b->n;
}

static void change_object(struct dice *d, struct buffer *b, size_t at)
{
	while (at && b->v[at] != '{')
		at--;
	const size_t end = end_of_object(b, at);
	if (below(d, 2))
		erase(b, at, end - at);
	else if (end - at < b->most - b->n) {
		insert(b, at, b->v + at, end - at); /* twice, with a comma between */
		insert(b, end, ",", 1);
	}
}

static void nest(struct dice *d, struct buffer *b, size_t at)
{
	char deep[4096];
	const size_t n = 1 + below(d, sizeof deep);
	memset(deep, below(d, 2) ? '[' : 'A', n);
	insert(b, at, deep, n);
}

static void change_text(struct dice *d, struct buffer *b)
{
	size_t at = below(d, b->n), from, to;
	if (!b->n)
		return;
	for (int i = 0;
		i < 200 && at + 1 < b->n && below(d, 4) && !(b->v[at] >= '0' && b->v[at] <= '9');
		i++)
		at++;
	token_at(b, at, &from, &to);
	const char *const word = words[below(d, WORDS)];
	switch (below(d, 12)) {
	case 0:
		change_object(d, b, at);
		return;
	case 1:
		nest(d, b, from);
		return;
	case 2:
		change_bytes(d, b);
		return;
	case 3:
		b->n = below(d, 4) ? b->n : at;
		return;
	case 4: { /* another token of the text */
		size_t other, end;
		token_at(b, below(d, b->n), &other, &end);
		insert(b, from, b->v + other, end - other);
		return;
	}
	default:
		erase(b, from, to - from);
		insert(b, from, word, strlen(word));
	}
}

struct block {
	size_t at, bytes; /* with header and padding */
	struct block_header head;
};

static bool block_at(const struct buffer *b, size_t at, struct block *ret)
{
	if (at > b->n || b->n - at < sizeof ret->head)
		return false;
	memcpy(&ret->head, b->v + at, sizeof ret->head);
	ret->at = at;
	ret->bytes = sizeof ret->head + ((ret->head.bytes + 7ull) & ~7ull);
	return ret->head.magic == BLOCK_MAGIC && ret->bytes <= b->n - at;
}

static size_t blocks_begin(const struct buffer *b)
{
	uint32_t bytes;
	memcpy(&bytes, b->v + offsetof(struct trace_header, header_bytes), sizeof bytes);
	return bytes >= sizeof(struct trace_header) && bytes < b->n ? bytes
								    : sizeof(struct trace_header);
}

/* One of them by chance, those behind the first with more. */
static bool pick_block(struct dice *d, const struct buffer *b, struct block *ret)
{
	struct block one;
	size_t seen = 0;
	for (size_t at = blocks_begin(b); block_at(b, at, &one); at += one.bytes)
		if (!below(d, ++seen))
			*ret = one;
	return seen;
}

static void seal(struct block_header *h)
{
	const size_t skip = offsetof(struct block_header, bytes);
	h->check = hash_fnv32((const char *)h + skip, sizeof *h - skip);
}

static void replace(struct buffer *b, const struct block *was, struct block_header *head,
	const uint8_t *payload)
{
	static const uint8_t zeros[8];
	seal(head);
	erase(b, was->at, was->bytes);
	if (sizeof *head + head->bytes + 8 > b->most - b->n)
		return;
	insert(b, was->at, zeros, -head->bytes & 7);
	insert(b, was->at, payload, head->bytes);
	insert(b, was->at, head, sizeof *head);
}

#define PLAIN_MOST (4u << 20)

static uint8_t *inflate_block(const struct buffer *b, const struct block *k, size_t *ret_bytes)
{
	const uint8_t *packed = b->v + k->at + sizeof k->head;
	const unsigned long long n = ZSTD_getFrameContentSize(packed, k->head.bytes);
	uint8_t *out = n <= PLAIN_MOST ? malloc((size_t)n + 8) : NULL;
	if (!out || ZSTD_decompress(out, (size_t)n, packed, k->head.bytes) != n) {
		free(out);
		return NULL;
	}
	*ret_bytes = (size_t)n;
	return out;
}

/* The columns of a block as the records that they are; NULL when they are none. */
static uint8_t *join_block(
	const struct block *k, const uint8_t *raw, size_t bytes, size_t *ret_bytes)
{
	const size_t each = array_record_bytes(k->head.chunk.kind);
	struct last_args *slots = NULL;
	size_t room = 0;
	struct last_table last;
	uint8_t *out = NULL;
	if (k->head.encoding == ENCODING_WORDS && each && bytes == (size_t)k->head.records * each) {
		out = malloc(bytes + 8);
		if (out)
			words_join(raw, k->head.records, each, out);
		*ret_bytes = bytes;
	} else if (k->head.encoding == ENCODING_COLUMNS) {
		const int64_t n = columns_joined_bytes(raw, bytes, k->head.records);
		out = n >= 0 && n <= PLAIN_MOST ? malloc((size_t)n + 8) : NULL;
		last_table_init(&last, &slots, &room);
		if (out && columns_join(raw, bytes, k->head.records, out, &last)) {
			free(out);
			out = NULL;
		}
		*ret_bytes = n > 0 ? (size_t)n : 0;
		free(slots);
	}
	return out;
}

static void change_payload(struct dice *d, uint16_t kind, struct buffer *plain)
{
	for (size_t times = 1 + below(d, 4); times; times--) {
		if (kind == CHUNK_SCHEMA)
			change_text(d, plain);
		else if (below(d, 16))
			below(d, 4) ? change_value(d, plain->v, plain->n)
				    : copy_value(d, plain->v, plain->n);
		else
			change_bytes(d, plain);
	}
}

static void pack_plain(struct buffer *b, const struct block *k, uint8_t *plain, size_t bytes)
{
	const struct chunk_ref ref = { .head = k->head.chunk };
	const struct chunk_buf buf = { .ref = &ref, .payload = plain, .bytes = bytes };
	struct block_maker m;
	block_maker_init(&m, 1);
	if (!block_make(&m, &ref.head, &buf))
		replace(b, k, &m.header, m.packed);
	block_maker_fini(&m);
}

static void pack_raw(struct buffer *b, const struct block *k, const uint8_t *raw, size_t bytes)
{
	struct block_header head = k->head;
	const size_t room = ZSTD_compressBound(bytes);
	uint8_t *packed = malloc(room);
	const size_t n = packed ? ZSTD_compress(packed, room, raw, bytes, 1) : 0;
	head.bytes = (uint32_t)n;
	head.raw_bytes = (uint32_t)bytes;
	if (packed && !ZSTD_isError(n))
		replace(b, k, &head, packed);
	free(packed);
}

/* Changes the content of a block: values of its records, or the columns as they lie. */
static void change_content(struct dice *d, struct buffer *b, const struct block *k)
{
	size_t bytes, plain_bytes = 0;
	uint8_t *raw = inflate_block(b, k, &bytes);
	uint8_t *plain = raw && below(d, 4) ? join_block(k, raw, bytes, &plain_bytes) : NULL;
	struct buffer p = plain ? (struct buffer){ plain, plain_bytes, plain_bytes }
				: (struct buffer){ raw, bytes, bytes };
	if (raw)
		change_payload(d, k->head.chunk.kind, &p);
	if (plain)
		pack_plain(b, k, plain, p.n);
	else if (raw)
		pack_raw(b, k, raw, p.n);
	free(plain);
	free(raw);
}

static void change_packed(struct dice *d, struct buffer *b)
{
	struct block k, other;
	if (!pick_block(d, b, &k))
		return;
	switch (below(d, 16)) {
	case 0:
		erase(b, k.at, k.bytes);
		break;
	case 1: /* once more, in front of another */
		if (pick_block(d, b, &other))
			insert(b, other.at, b->v + k.at, k.bytes);
		break;
	case 2:
	case 3: {
		const size_t skip = offsetof(struct block_header, raw_bytes);
		change_value(d, (uint8_t *)&k.head + skip, sizeof k.head - skip);
		seal(&k.head);
		memcpy(b->v + k.at, &k.head, sizeof k.head);
		break;
	}
	case 4:
		change_value(d, b->v, sizeof(struct trace_header));
		break;
	default:
		change_content(d, b, &k);
	}
}

static void change_raw(struct dice *d, struct buffer *b)
{
	const size_t chunks = b->n / TRACE_GRAIN;
	if (chunks < 2 || !below(d, 8)) {
		change_value(d, b->v, sizeof(struct trace_header));
		return;
	}
	uint8_t *chunk = b->v + (1 + below(d, chunks - 1)) * TRACE_GRAIN;
	struct chunk_header head;
	memcpy(&head, chunk, sizeof head);
	const size_t used = head.used && head.used < TRACE_GRAIN - CHUNK_PAYLOAD
				    ? head.used
				    : TRACE_GRAIN - CHUNK_PAYLOAD;
	struct buffer payload = { chunk + CHUNK_PAYLOAD, used, used };
	if (head.magic == CHUNK_MAGIC && !below(d, 4))
		change_value(d, chunk + 4, sizeof head - 4);
	else if (head.magic == CHUNK_MAGIC)
		change_payload(d, head.kind, &payload);
	else
		change_value(d, chunk, TRACE_GRAIN);
}

static bool is_text(const struct buffer *b)
{
	const size_t n = b->n < 512 ? b->n : 512;
	size_t odd = 0;
	for (size_t i = 0; i < n; i++)
		odd += b->v[i] < 9 || b->v[i] == 127;
	return odd * 8 < n;
}

size_t mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	struct dice d = { seed };
	struct buffer b = { data, size, most };
	const bool trace = size > sizeof(struct trace_header) && !memcmp(data, TRACE_MAGIC, 8);
	uint32_t form = 0;
	if (trace)
		memcpy(&form, data + offsetof(struct trace_header, form), sizeof form);
	for (size_t times = 1 + below(&d, 5); times; times--) {
		if (trace && below(&d, 32))
			form == TRACE_PACKED ? change_packed(&d, &b) : change_raw(&d, &b);
		else if (!trace && is_text(&b))
			change_text(&d, &b);
		else
			change_bytes(&d, &b);
	}
	return b.n;
}
