/*
 * Records as columns, encoding 1 of the packed form (docs/reference/trace-format.md). Columns of
 * one kind of value lie together. Arguments are differences to the last record of the same
 * function, so repeating loops repeat in the bytes and zstd finds them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "event/format.h"

enum column { COL_FN, COL_WORDS, COL_RESULT, COL_AUX, COL_TIMES, COL_ARGS, COLUMNS };

/* The last record of each fn and words: where its arg[] is. */
struct last_args {
	uint32_t key;    /* fn << 16 | words; 0 free */
	uint32_t offset; /* of its arg[], in bytes from the first record */
};

struct last_table {
	struct last_args **slots; /* the caller keeps the memory between blocks */
	size_t *room;
	size_t used;
};

/* Empties the table, keeping its memory. */
void last_table_init(struct last_table *t, struct last_args **slots, size_t *room);

/* Bytes of the records that these columns make, or -EBADMSG. */
int64_t columns_joined_bytes(const uint8_t *columns, size_t bytes, uint32_t records);

/* Joins into out, which holds columns_joined_bytes().  0 or -EBADMSG. */
int columns_join(const uint8_t *columns, size_t bytes, uint32_t records, uint8_t *out,
	struct last_table *last);

/* Growing output of columns_split(): one buffer a column. */
struct column_out {
	uint8_t *data;
	size_t bytes, room;
};

struct splitter {
	struct column_out column[COLUMNS];
	uint32_t records;
	uint64_t last_end;
	struct last_args *slots;
	size_t slots_room;
	struct last_table last;
	const uint8_t *base; /* of the payload that records point into */
};

/* Starts a block whose records lie behind base. */
void splitter_begin(struct splitter *s, const uint8_t *base);
void splitter_add(struct splitter *s, const struct record *r);

/* Bytes of the six sections with their lengths, and the sections themselves. */
size_t splitter_bytes(const struct splitter *s);
void splitter_put(const struct splitter *s, uint8_t *out);
void splitter_fini(struct splitter *s);
