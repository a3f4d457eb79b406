/*
 * The fields of a row of the report's JSON, so that lists can be sorted, filtered and printed by
 * JSON's own names: what is listed is what `weir report --json` says, read back.  The text is this
 * program's own.  One thread.
 */
#ifndef WEIR_REPORT_FIELDS_H
#define WEIR_REPORT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/table.h"

enum field_kind { FIELD_NULL, FIELD_NUMBER, FIELD_TEXT, FIELD_WORD, FIELD_LIST };

struct field {
	char key[48]; /* of nested objects with dots: device.peak_bytes */
	enum field_kind kind;
	const char *raw; /* as it stands in the JSON */
	size_t bytes;
};

struct fields {
	ARRAY(struct field) v;
};

/* The fields of an object, which begins at `json`; lists of containers are left out.  A string has
 * one, `text`.  0 or -ENOMEM.
 * What was in f is gone; its memory is used again. */
int fields_of(struct fields *f, const char *json);
const struct field *fields_find(const struct fields *f, const char *key);

/* A number's value, or NAN. */
double field_number(const struct field *f);

/* The n-th of a list of keys with commas between, or NULL; and where in it one is, or -1. */
const char *fields_nth(const char *list, size_t n, size_t *ret_bytes);
int fields_place(const char *list, const char *key);

/* As a cell for people: times, bytes, shares and dates by what the key ends in. */
void field_put_number(struct table *t, const struct field *f);

/* Sums of the columns that such a list names; one that it doesn't has no cell: false. */
#define FIELD_SUMS 8
struct field_sums {
	double v[FIELD_SUMS];
	uint32_t known; /* bit i: a row has a value of the i-th */
};
void field_sums_add(struct field_sums *s, const char *list, const struct fields *row);
bool field_sums_put(const struct field_sums *s, const char *list, const char *key, struct table *t);

/* Without quotes and escapes, a list with commas between; "" for null.  free() it; NULL without
 * memory. */
char *field_text(const struct field *f);

/* Calls `row` for each object or string of the sections of a report: rows of lists, and objects,
 * which are sections of one row.  `section` comes first.  Stops when one returns not 0, and returns
 * that. */
struct section_reader {
	int (*section)(void *context, const char *name, bool list);
	int (*row)(void *context, const char *json, size_t bytes);
	void *context;
};
int sections_read(const char *json, const struct section_reader *to);

#endif
