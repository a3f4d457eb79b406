/*
 * A table of text as wide as its content. Add cells row by row, with long text in the last column,
 * which is not padded. Control characters become '?' (text.h), so names from a trace cannot drive a
 * terminal. One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/array.h"

#define TABLE_COLUMNS 24

struct table {
	char align[TABLE_COLUMNS]; /* '<' or '>' a column */
	size_t columns;
	ARRAY(char *) cells;
	size_t width; /* the last column ends there, with '…' where more follows; 0: anywhere */
};

/* columns: "<name|>calls": how each is aligned, and its heading. */
struct table table_of(const char *columns);

/* One more, of a table without cells: so many bytes of the heading. */
void table_column(struct table *t, char align, const char *heading, int bytes);
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As table_cell() and table_ns(), or table_none() where the value is not known. */
void table_cell_if(struct table *t, bool known, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void table_ns_if(struct table *t, bool known, uint64_t ns);

/* Width left for the last column on a narrow terminal. */
#define TABLE_LAST_LEAST 24

/* The first characters of a longer name, and '…': a name may have many KB. */
void table_cell_name(struct table *t, const char *name, size_t most);

/* Numbers as people read them (number.h), a share of a whole, which is absent without one, and what
 * is absent. */
void table_count(struct table *t, uint64_t count);
void table_bytes(struct table *t, uint64_t bytes);
void table_ns(struct table *t, uint64_t ns);
void table_percent(struct table *t, double percent);
void table_share(struct table *t, uint64_t part, uint64_t all);
void table_none(struct table *t);

/* One character, as high as the value's share of the most there is; utf8: the terminal knows block
 * characters. */
const char *table_bar(uint64_t value, uint64_t most, bool utf8);

/* Prints heading and rows, indented, and frees it. */
void table_print(struct table *t, FILE *out);
void table_fini(struct table *t);

/* The same: `dim` and `plain` surround the heading, and behind it stands that there are `more`
 * rows, if there are. */
void table_end(struct table *t, FILE *out, const char *dim, const char *plain, size_t more);

/* A page of several tables, each with a heading. */
struct text_page {
	FILE *out;
	size_t rows;                          /* at most so many a table; 0: all */
	size_t width;                         /* of the terminal; 0: there is none */
	bool full_names;                      /* names of kernels are not cut */
	bool utf8;                            /* block characters are known there */
	const char *bold, *dim, *red, *plain; /* what switches them on, and all off, or "" */
};

struct text_page text_page_of(FILE *out, size_t rows, bool colour);
void page_heading(const struct text_page *p, const char *text);

/* How many of so many rows the page shows. */
size_t page_shown(const struct text_page *p, size_t rows);

/* Prints the table, of which so many rows exist, and frees it. */
void page_end_table(const struct text_page *p, struct table *t, size_t rows);
