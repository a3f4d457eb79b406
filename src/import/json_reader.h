/*
 * Reads JSON token by token, plain or gzipped, in memory that does not grow with the file. It
 * forgives careless writers: extra commas, control characters, unknown escapes, NaN. An error ends
 * the reading, and everything before it stays.
 *
 * Internal to src/import. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/bounded.h"
#include "base/error.h"

#define JSON_DEPTH 512u /* containers in containers; deeper is an error */

enum json_token {
	JSON_END,   /* the value is complete */
	JSON_ERROR, /* `problem` says what; `truncated`: the file ended before its value did */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_KEY,    /* text */
	JSON_STRING, /* text */
	JSON_NUMBER, /* text, as it stands there; it may still be none */
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL, /* NaN and Infinity too */
};

struct json_reader {
	void *file; /* of zlib */
	uint8_t *window;
	size_t at, end;
	uint64_t before;  /* bytes of the file that were in windows before this one */
	uint64_t most;    /* that it may unpack to */
	ARRAY(char) text; /* of the last key, string or number; terminated */
	uint8_t state;
	uint32_t depth;
	uint8_t in_object[JSON_DEPTH]; /* by depth */
	bool compressed;
	bool truncated;
	char problem[160];
};

/* -errno with a sentence that names the file.  json_reader_close() takes it either way. */
int json_reader_open(struct json_reader *r, const char *path, struct error *err);
void json_reader_close(struct json_reader *r);

enum json_token json_next(struct json_reader *r);

/* The bytes read from the file, before decompression. */
uint64_t json_file_offset(const struct json_reader *r);

/* Begins the next element of the array that is open; false: there is none, or an error. */
bool json_element(struct json_reader *r, enum json_token *ret_first);

/* Passes over the rest of the value that `first` begins, if it is one. */
void json_skip(struct json_reader *r, enum json_token first);

/* Appends the value that `first` begins, without blanks. */
void json_copy_out(struct json_reader *r, enum json_token first, struct bounded *to);

/* The number times that, rounded; false when it is none or too large for the result. */
bool json_number(const char *text, unsigned times, int64_t *ret_value);
