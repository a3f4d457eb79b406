/*
 * Sections of a report, each with one table of columns. JSON, CSV, text, sorting, filters and
 * docs/reference/json-report.md come from that table. A new column is one row of it.
 *
 * A section is a list of rows, or an object, which is a section of one row. section_open() makes
 * the rows, struct row walks over them, and a column takes its value out of a row. Rows live until
 * section_close(), and a text until the next value is taken. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/table.h"
#include "model/demangle.h"
#include "model/facet.h"
#include "model/report.h"

/* The kind of a column's values.  Text shows them accordingly, and numbers on the right. */
enum unit {
	UNIT_COUNT,   /* 12,345 */
	UNIT_ID,      /* 12345: a number that names something */
	UNIT_ADDRESS, /* 0x7f0010000000 */
	UNIT_NS,
	UNIT_MOMENT, /* ns since the recording began; rows differ in digits that three don't show */
	UNIT_DATE,   /* ns since 1970 */
	UNIT_BYTES,
	UNIT_BYTES_PER_S,
	UNIT_FLOPS,
	UNIT_FLOPS_PER_S,
	UNIT_SHARE,  /* 0 to 1 */
	UNIT_CHANGE, /* in percent */
	UNIT_CHANCE, /* 0 to 1 */
	UNIT_REAL,
	UNIT_KHZ,
	UNIT_BOOL,
	UNIT_TEXT,
	UNIT_KERNEL, /* a kernel's name, which text shortens */
	UNIT_STACK,  /* frames in a line, which text shortens */
	UNIT_DIM3,
	UNIT_LIST /* in JSON only: rows of another section; or null in place of an object */
};

enum value_kind {
	VALUE_ABSENT, /* JSON leaves out the key */
	VALUE_NULL,   /* not known */
	VALUE_U64,
	VALUE_REAL,
	VALUE_BOOL,
	VALUE_TEXT,
	VALUE_DIM3,
	VALUE_LIST
};

struct value {
	enum value_kind kind;
	bool guess; /* text says so by a question mark */
	union {
		uint64_t u64;
		double real;
		bool yes;
		const char *text;
		const uint32_t *dim3;
		const void *list; /* structs of the column's inner section */
	};
	size_t n; /* bytes of the text, structs of the list */
};

static inline struct value value_null(void)
{
	return (struct value){ .kind = VALUE_NULL };
}

static inline struct value value_absent(void)
{
	return (struct value){ .kind = VALUE_ABSENT };
}

static inline struct value value_u64(uint64_t u64)
{
	return (struct value){ .kind = VALUE_U64, .u64 = u64 };
}

static inline struct value value_u64_if(bool known, uint64_t u64)
{
	return known ? value_u64(u64) : value_null();
}

/* Null when it is no number. */
static inline struct value value_real(double real)
{
	return real - real == 0 ? (struct value){ .kind = VALUE_REAL, .real = real } : value_null();
}

static inline struct value value_bool(bool yes)
{
	return (struct value){ .kind = VALUE_BOOL, .yes = yes };
}

static inline struct value value_dim3(const uint32_t *dim3)
{
	return (struct value){ .kind = VALUE_DIM3, .dim3 = dim3 };
}

/* A part of the whole, null where that is nothing. */
static inline struct value value_share(uint64_t part, uint64_t all)
{
	return all ? value_real((double)part / (double)all) : value_null();
}

struct value value_text(const char *text); /* or NULL */

#define ROW_TEXT 4096

struct row {
	const struct report *r;
	struct rows *rows;
	const void *at; /* the row's struct */
	size_t index;
	char *text; /* room of ROW_TEXT bytes for a value's text */
};

struct rows {
	const struct section *section;
	const struct report *r;
	const void *v;
	size_t n, each;
	int error;   /* of make(): 0 or -errno */
	bool absent; /* this recording lacks the section: JSON leaves it out */
	void *own;   /* what section_close() frees, unless the section has fini() */
	double all;  /* that shares are of, where make() knows it */
	struct demangled names;
	_Alignas(8) char text[ROW_TEXT];
};

/* For make(): rows that live elsewhere, and an array of their own. */
void rows_take(struct rows *rows, const void *v, size_t n, size_t each);
void rows_own(struct rows *rows, void *v, size_t n, size_t each);

/* A make() whose rows are the array `v` of a struct of their own, which an expression of `rows` and
 * `own` fills: 0 or -errno.  fini() frees it. */
#define MAKER(name, type, ...)                                                                     \
	static void name(struct rows *rows)                                                        \
	{                                                                                          \
		type *own = rows->own = xcalloc(1, sizeof *own);                                   \
		rows->error = __VA_ARGS__;                                                         \
		rows_take(rows, own->v.v, own->v.n, sizeof *own->v.v);                             \
	}

/* Nanoseconds since the recording began, of a time of CLOCK_MONOTONIC; a name of the trace, and a
 * string of a process of it, demangled. */
uint64_t rows_since(const struct rows *rows, uint64_t ns);
const char *rows_name(struct rows *rows, uint32_t name);
const char *rows_string(struct rows *rows, uint32_t process, uint32_t id);

static inline struct row row_at(struct rows *rows, size_t i)
{
	return (struct row){ .r = rows->r,
		.rows = rows,
		.at = (const char *)rows->v + i * rows->each,
		.index = i,
		.text = rows->text };
}

/* The value of a column, made of what the column is `of`. */
typedef struct value column_getter(const struct row *row, const void *of);

/* For find(): the row's struct, or NULL if recording was off. */
const void *row_recorded(const struct row *row);

struct column {
	const char *key; /* with dots: of an object in the row's */
	enum unit unit;
	const char *heading, *meaning;
	column_getter *get;
	/* `of` is what this finds for the row, else the row's struct, … */
	const void *(*find)(const struct row *row);
	uint32_t offset;             /* … plus this */
	bool sums;                   /* the sum over all rows means something */
	bool text_only;              /* no key of JSON */
	bool absent;                 /* where find() has nothing the key is left out, not null */
	const struct section *inner; /* UNIT_LIST: of the list; without get() it makes its rows */
};

struct value column_get(const struct column *c, const struct row *row);

/* Of plain members of the row's struct, and of what is often made of one. */
column_getter get_u64, get_u32, get_u16, get_bool;
column_getter get_text;                     /* const char *, or NULL */
column_getter get_real;                     /* double, NAN: not known */
column_getter get_chars;                    /* char[] */
column_getter get_dim3;                     /* uint32_t[3] */
column_getter get_nonzero, get_nonzero_u32; /* 0: not known */
column_getter get_span, get_since;          /* uint64_t ticks, as ns and as a moment */
column_getter get_since_start;              /* uint64_t of CLOCK_MONOTONIC, as a moment */
column_getter get_pid;                      /* uint32_t index of a process */
column_getter get_function;                 /* uint32_t id of a function */
struct value function_name(const struct row *row, uint32_t id);

#define AT(type, member) .offset = offsetof(type, member)

/* A plain member, with the getter of its type. */
#define MEMBER(type, member)                                                                       \
	.get = _Generic(&((type *)0)->member,                                                      \
		uint64_t *: get_u64,                                                               \
		uint32_t *: get_u32,                                                               \
		uint16_t *: get_u16,                                                               \
		bool *: get_bool,                                                                  \
		double *: get_real,                                                                \
		uint32_t(*)[3]: get_dim3,                                                          \
		const char **: get_text,                                                           \
		char **: get_text),                                                                \
	AT(type, member)

/* A getter that is one expression of the struct that the column is `of`, here named `it`. */
#define SHARED_GETTER(name, type, it, ...)                                                         \
	struct value name(const struct row *row, const void *any)                                  \
	{                                                                                          \
		const type *it = any;                                                              \
		(void)it;                                                                          \
		return __VA_ARGS__;                                                                \
	}
#define GETTER(...) static SHARED_GETTER(__VA_ARGS__)

/* A find() that is one expression of the row's struct, here named `it`. */
#define FINDER(name, type, it, ...)                                                                \
	static const void *name(const struct row *row)                                             \
	{                                                                                          \
		const type *it = row->at;                                                          \
		(void)it;                                                                          \
		return __VA_ARGS__;                                                                \
	}

/* The contents of a section, and so what it takes to have it. */
enum made_of {
	OF_CALLS,
	OF_LAUNCHES,
	OF_FAILURES,
	OF_EVENTS,
	OF_WAITS,
	OF_COPIES,
	OF_GPU,
	OF_NCCL,
	OF_RANGES,
	OF_CROSSING,
	OF_RANGE_KERNELS,
	OF_OPERATORS,
	OF_STEPS,
	OF_ALLOCATIONS,
	OF_IDLE,
	OF_NVML,
	OF_PREDICTION,
	OF_STACKS,
	OF_REQUESTS,
	OF_REQUEST,
	OF_REQUEST_WORK,
	OF_WARNINGS,
	OF_HINTS
};

enum section_form {
	SECTION_LIST,
	SECTION_OBJECT,
	SECTION_MEMBERS, /* of the object around it: it has no name of its own in JSON */
	SECTION_KEYED    /* an object with a member for each row, whose key its first column says */
};

#define SECTION_COLUMNS 64

struct section {
	const char *name, *heading;
	const char *about; /* above its columns in the reference */
	enum section_form form;
	enum made_of of;
	uint32_t facets; /* that it is made of; those of its inner sections come on top */
	const struct column *columns; /* up to one without a key */
	/* The rows: an ARRAY() of struct report, or of what a pointer of it points to, … */
	uint16_t pointer, each;
	uint32_t array;
	/* … or what this makes of the report. */
	void (*make)(struct rows *rows);
	void (*fini)(struct rows *rows);
	const char *shown; /* keys of the columns that text has, in their order; NULL: all */
	const char *(*choose)(const struct report *r); /* the same, by what was recorded */
	bool nested;      /* a list inside another section's object, which has it in JSON */
	bool texts;       /* a row in JSON is the text of its one column */
	bool asked;       /* only made when somebody asks for it */
	bool series;      /* text shows all rows: the first say little */
	const char *note; /* below its table */
	/* … and what depends on the recording, where text has that column, or NULL: always. */
	void (*below)(const struct report *r, FILE *out);
	const char *below_with;
};

#define ROWS_OF(member)                                                                            \
	.array = offsetof(struct report, member), .each = sizeof *((struct report *)0)->member.v

/* All facets that it takes to print the section. */
uint32_t section_facets(const struct section *s);

/* 0 or -errno; section_close() either way. */
int section_open(const struct section *s, const struct report *r, struct rows *ret_rows);
void section_close(struct rows *rows);

const struct column *section_column(const struct section *s, const char *key, size_t bytes);

/* A row as JSON: all its columns, or those that are given, into the object that is open. */
void section_put_row(struct json *j, const struct row *row);
void section_put_columns(
	struct json *j, const struct row *row, const struct column *const *columns, size_t n);

/* The whole section under its name.  0 or -errno. */
int section_put_json(struct json *j, const struct section *s, const struct report *r);

/* A cell for people, and one of CSV.  full: names are not shortened. */
struct cell_style {
	bool full;
	size_t most; /* characters of a text; 0: all */
};
void section_put_cell(struct table *t, const struct column *c, const struct value *v,
	const struct cell_style *style);
void section_put_csv(FILE *out, const struct value *v);
bool unit_is_number(enum unit unit);

/* As text, as filters and sorting see it, into room for ROW_TEXT bytes or where it lies. */
const char *value_as_text(const struct value *v, char *room);
/* A number, or NAN. */
double value_as_number(const struct value *v);
