/*
 * Writes JSON to a stream. Containers open and close, values go between them, and the key is NULL
 * in an array. Bytes that are not UTF-8 become U+FFFD, so the output is always JSON.
 *
 * Errors show in ferror() of the stream. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth;
	bool pretty; /* containers on lines of their own down to pretty_depth */
	int pretty_depth;
	bool filled[16]; /* a value stands before, by depth */
};

void json_init(struct json *j, FILE *out);
void json_init_line(struct json *j, FILE *out); /* all in one line */

/* Version of the commands' JSON: a higher one may have fewer keys, or a key of another meaning.
 * Keys that are added leave it as it is. */
#define JSON_SCHEMA_VERSION 1

/* Begins an object that says so. */
void json_begin_document(struct json *j, FILE *out);
void json_begin_compact(struct json *j, FILE *out); /* the same without blanks and lines */

void json_begin_object(struct json *j, const char *key);
void json_begin_array(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_end_document(struct json *j); /* the outermost object, and the line */
void json_end_array(struct json *j);

void json_str(struct json *j, const char *key, const char *value);
void json_strn(struct json *j, const char *key, const char *value, size_t bytes);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
/* Six digits; null when it is no number. */
void json_put_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_put_null(struct json *j, const char *key);
void json_hex(struct json *j, const char *key, uint64_t value); /* text: "0x7f00" */
void json_dim3(struct json *j, const char *key, const uint32_t v[3]);
void json_u64_or_null(struct json *j, const char *key, bool there, uint64_t value);
void json_str_or_null(struct json *j, const char *key, const char *value); /* or NULL */

/* The string alone, quoted and escaped. */
void json_quote(FILE *out, const char *s, size_t bytes);
