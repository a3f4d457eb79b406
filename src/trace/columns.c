/* Columns: see columns.h. */
#include "trace/columns.h"

#include <string.h>

#include "base/expect.h"
#include "base/hash.h"
#include "trace/trace.h"

#define VARINT_BYTES 10u /* of 64 bits in groups of 7 */

void last_table_init(struct last_table *t, struct last_args **slots, size_t *room)
{
	if (!*slots) {
		*slots = xmalloc(256 * sizeof **slots);
		*room = 256;
	}
	memset(*slots, 0, *room * sizeof **slots);
	*t = (struct last_table){ .slots = slots, .room = room };
}

static struct last_args *probe(struct last_args *slots, size_t room, uint32_t key)
{
	size_t i = hash_mix(key) & (room - 1);
	while (slots[i].key && slots[i].key != key)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static void grow(struct last_table *t)
{
	const size_t room = *t->room * 2;
	struct last_args *bigger = xcalloc(room, sizeof *bigger);
	for (size_t i = 0; i < *t->room; i++)
		if ((*t->slots)[i].key)
			*probe(bigger, room, (*t->slots)[i].key) = (*t->slots)[i];
	free(*t->slots);
	*t->slots = bigger;
	*t->room = room;
	expect((room & (room - 1)) == 0 && t->used < room, "a table has room for one more");
}

/* The slot of a key, its key set; `offset` is UINT32_MAX when new. */
static struct last_args *last_table_get(struct last_table *t, uint32_t key)
{
	struct last_args *s = probe(*t->slots, *t->room, key);
	if (s->key)
		return s;
	if (t->used * 2 >= *t->room) {
		grow(t);
		s = probe(*t->slots, *t->room, key);
	}
	t->used++;
	expect(t->used < *t->room, "a table has a slot that is free");
	*s = (struct last_args){ .key = key, .offset = UINT32_MAX };
	return s;
}

struct bytes {
	const uint8_t *at;
	const uint8_t *end;
};

static inline bool get_varint(struct bytes *b, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && b->at < b->end; shift += 7) {
		const uint8_t byte = *b->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static inline uint64_t unzigzag(uint64_t z)
{
	return (z >> 1) ^ -(z & 1);
}

static inline uint64_t zigzag(uint64_t difference)
{
	return (difference << 1) ^ -(difference >> 63);
}

/* Finds the six sections and checks that the fixed ones are as long as `records` asks. */
static int sections(const uint8_t *columns, size_t bytes, uint32_t records, struct bytes *ret)
{
	static const uint8_t each[COLUMNS] = {
		[COL_FN] = 2, [COL_WORDS] = 2, [COL_RESULT] = 4, [COL_AUX] = 4
	};
	for (int c = 0; c < COLUMNS; c++) {
		uint32_t length;
		if (bytes < sizeof length)
			return -EBADMSG;
		memcpy(&length, columns, sizeof length);
		columns += sizeof length;
		bytes -= sizeof length;
		if (length > bytes || (each[c] && length != (uint64_t)records * each[c]))
			return -EBADMSG;
		ret[c] = (struct bytes){ columns, columns + length };
		columns += length;
		bytes -= length;
	}
	return 0;
}

static uint16_t get16(const uint8_t *at)
{
	uint16_t v;
	memcpy(&v, at, sizeof v);
	return v;
}

int64_t columns_joined_bytes(const uint8_t *columns, size_t bytes, uint32_t records)
{
	struct bytes s[COLUMNS];
	uint64_t words = 0;
	if (sections(columns, bytes, records, s))
		return -EBADMSG;
	for (uint32_t i = 0; i < records; i++) {
		const uint16_t w = get16(s[COL_WORDS].at + 2 * (size_t)i);
		if (w < RECORD_WORDS)
			return -EBADMSG;
		words += w;
	}
	/* Each argument takes at least a byte, so the columns bound what they make. */
	if (words - (uint64_t)records * RECORD_WORDS > (uint64_t)(s[COL_ARGS].end - s[COL_ARGS].at))
		return -EBADMSG;
	return words * 8 > CHUNK_LIMIT ? -EBADMSG : (int64_t)(words * 8);
}

static bool join_times(struct bytes *times, uint64_t *end, struct record *r)
{
	uint64_t difference, dur;
	if (!get_varint(times, &difference) || !get_varint(times, &dur) || dur > UINT32_MAX)
		return false;
	*end += unzigzag(difference);
	r->dur = (uint32_t)dur;
	r->ticks = *end - record_dur(r);
	return true;
}

static bool join_args(
	struct bytes *args, struct record *r, const uint8_t *base, struct last_args *l)
{
	const uint64_t *before =
		l->offset == UINT32_MAX ? NULL : (const uint64_t *)(base + l->offset);
	for (unsigned i = 0; i < r->words - RECORD_WORDS; i++) {
		uint64_t z;
		if (!get_varint(args, &z))
			return false;
		r->arg[i] = unzigzag(z) + (before ? before[i] : 0);
	}
	l->offset = (uint32_t)((const uint8_t *)r->arg - base);
	return true;
}

static void join_fixed(struct bytes *s, uint32_t i, struct record *r)
{
	r->fn = get16(s[COL_FN].at + 2 * (size_t)i);
	r->words = get16(s[COL_WORDS].at + 2 * (size_t)i);
	r->result = get16(s[COL_RESULT].at + 4 * (size_t)i);
	r->flags = get16(s[COL_RESULT].at + 4 * (size_t)i + 2);
	memcpy(&r->aux, s[COL_AUX].at + 4 * (size_t)i, 4);
}

int columns_join(const uint8_t *columns, size_t bytes, uint32_t records, uint8_t *out,
	struct last_table *last)
{
	struct bytes s[COLUMNS];
	const uint8_t *base = out;
	uint64_t end = 0;
	if (sections(columns, bytes, records, s))
		return -EBADMSG;
	for (uint32_t i = 0; i < records; i++) {
		struct record *r = (struct record *)out;
		join_fixed(s, i, r);
		if (!r->fn || !join_times(&s[COL_TIMES], &end, r))
			return -EBADMSG;
		struct last_args *l = last_table_get(last, (uint32_t)r->fn << 16 | r->words);
		if (!join_args(&s[COL_ARGS], r, base, l))
			return -EBADMSG;
		out += r->words * sizeof(uint64_t);
	}
	expect_slow(out - base == columns_joined_bytes(columns, bytes, records),
		"records are as long as was said");
	return 0;
}

static void column_room(struct column_out *c, size_t more)
{
	array_reserve_((void **)&c->data, &c->room, c->bytes, more, 1);
}

static void put_raw(struct column_out *c, const void *data, size_t bytes)
{
	memcpy(c->data + c->bytes, data, bytes);
	c->bytes += bytes;
}

static void put_varint(struct column_out *c, uint64_t value)
{
	while (value >= 0x80) {
		c->data[c->bytes++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	c->data[c->bytes++] = (uint8_t)value;
}

void splitter_begin(struct splitter *s, const uint8_t *base)
{
	for (int c = 0; c < COLUMNS; c++)
		s->column[c].bytes = 0;
	s->records = 0;
	s->last_end = 0;
	s->base = base;
	last_table_init(&s->last, &s->slots, &s->slots_room);
}

static void room_for(struct splitter *s, const struct record *r)
{
	const size_t args = (size_t)(r->words - RECORD_WORDS) * VARINT_BYTES;
	for (int c = COL_FN; c < COL_TIMES; c++)
		column_room(&s->column[c], 4);
	column_room(&s->column[COL_TIMES], 2 * VARINT_BYTES);
	column_room(&s->column[COL_ARGS], args);
}

static void split_args(struct splitter *s, const struct record *r, struct last_args *l)
{
	const uint64_t *before =
		l->offset == UINT32_MAX ? NULL : (const uint64_t *)(s->base + l->offset);
	for (unsigned i = 0; i < r->words - RECORD_WORDS; i++)
		put_varint(&s->column[COL_ARGS], zigzag(r->arg[i] - (before ? before[i] : 0)));
	l->offset = (uint32_t)((const uint8_t *)r->arg - s->base);
	expect_slow(s->column[COL_ARGS].bytes <= s->column[COL_ARGS].room,
		"a record's arguments have room");
}

void splitter_add(struct splitter *s, const struct record *r)
{
	struct last_args *l = last_table_get(&s->last, (uint32_t)r->fn << 16 | r->words);
	room_for(s, r);
	put_raw(&s->column[COL_FN], &r->fn, 2);
	put_raw(&s->column[COL_WORDS], &r->words, 2);
	put_raw(&s->column[COL_RESULT], &r->result, 2);
	put_raw(&s->column[COL_RESULT], &r->flags, 2);
	put_raw(&s->column[COL_AUX], &r->aux, 4);
	put_varint(&s->column[COL_TIMES], zigzag(record_end(r) - s->last_end));
	put_varint(&s->column[COL_TIMES], r->dur);
	s->last_end = record_end(r);
	split_args(s, r, l);
	s->records++;
}

size_t splitter_bytes(const struct splitter *s)
{
	size_t bytes = 0;
	for (int c = 0; c < COLUMNS; c++)
		bytes += sizeof(uint32_t) + s->column[c].bytes;
	return bytes;
}

void splitter_put(const struct splitter *s, uint8_t *out)
{
	const uint8_t *const end = out + splitter_bytes(s);
	expect(s->column[COL_FN].bytes == 2 * (size_t)s->records &&
			s->column[COL_AUX].bytes == 4 * (size_t)s->records,
		"each record is in each column");
	for (int c = 0; c < COLUMNS; c++) {
		const uint32_t length = (uint32_t)s->column[c].bytes;
		memcpy(out, &length, sizeof length);
		if (length)
			memcpy(out + sizeof length, s->column[c].data, length);
		out += sizeof length + length;
	}
	expect(out == end, "columns are as long as was said");
}

void splitter_fini(struct splitter *s)
{
	if (!s)
		return;
	for (int c = 0; c < COLUMNS; c++)
		free(s->column[c].data);
	free(s->slots);
	*s = (struct splitter){ 0 };
}
