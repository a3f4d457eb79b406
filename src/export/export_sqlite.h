/*
 * The declarations that the files of the SQLite exporter share. export_sqlite.c writes rows,
 * sqlite_nest.c nests calls and ranges, and sqlite_stacks.c writes call stacks. sqlite_nsight.c
 * makes the tables of Nsight Systems.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"
#include "export/export.h"

#define NESTING "('operator','annotation','nvtx')" /* range_nests() */

enum table {
	STRINGS,
	META,
	PROCESSES,
	THREADS,
	DEVICES,
	CALLS,
	KERNELS,
	MEMORY,
	COPIES,
	WORK,
	RANGES,
	CALL_RANGES,
	KERNEL_NAMES,
	STACKS,
	CALL_STACKS,
	TABLES
};

/* Statements that insert nothing. */
enum statement { INHERIT, INHERIT_EARLIER, ADOPT, STATEMENTS };

extern const char *const db_statements[STATEMENTS];

/* A chunk of calls, with its first, the call that began first. */
struct call_chunk {
	const struct chunk_ref *chunk;
	uint64_t first_id, last_id;
	uint64_t begin_ns, end_ns; /* of the first: CLOCK_MONOTONIC */
	bool runtime;              /* the first is a call of the runtime */
};

struct database {
	sqlite3 *db;
	sqlite3_stmt *insert[TABLES];
	sqlite3_stmt *statement[STATEMENTS];
	struct map strings; /* by kind and number: StringIds.id */
	struct map texts;   /* by text: the same */
	struct map named;   /* ids of kernel_names */
	uint32_t string_count;
	uint64_t calls, ranges;
	ARRAY(struct call_chunk) chunks;
	uint64_t outer_id; /* the last call of the runtime in the chunk at hand; 0: none */
	uint64_t outer_end_ns;
};

struct row {
	sqlite3_stmt *s;
	int column;
};

/* These do nothing once x->failed is set, and set it with SQLite's words when they fail.
 *
 * The row of a table that values are put into, one by one; a text must live until db_put_row(). */
struct row db_row(struct export *x, enum table table);
void db_put_int(struct row *r, uint64_t value);
void db_put_row(struct export *x, struct row *r);

/* Null where it is not known. */
void db_put_known(struct row *r, bool known, uint64_t value);
void db_put_text(struct row *r, const char *text);

/* The number of a text in StringIds; 0 for a text without a letter. */
uint32_t db_id(struct export *x, const char *text);

/* A statement with whole numbers. */
void db_run(struct export *x, sqlite3_stmt *s, const uint64_t *values, int count);

sqlite3_stmt *db_prepare(struct export *x, const char *sql); /* NULL: it failed */
void db_complain(struct export *x, int rc);

/* The call of the runtime that made this one, which gets the number id; 0: none in its chunk. */
void db_place_call(struct export *x, const struct export_call *c, uint64_t id, uint64_t *ret_outer);

/* Its activities' number goes to the call that the program made. */
void db_inherit(struct export *x, const struct export_call *c, uint64_t outer);

/* Once all is there: what is around each call and each range. */
void db_nest(struct export *x);

/* The stacks of the trace, each frame a row; and that of a call, if it has one. */
void db_put_stacks(struct export *x);
void db_put_call_stack(struct export *x, const struct export_call *c, uint64_t id);

/* SQL that makes them once Weir's own tables are full; sqlite3_free() it.  runtime, driver: the
 * numbers of those two texts in StringIds. */
char *nsight_sql(uint32_t runtime, uint32_t driver);

/* The name of a kernel alone, of "void ns::name<…>(…)": neither what it returns, nor namespaces,
 * nor arguments of any kind.  A part of the text. */
const char *nsight_short_name(const char *demangled, size_t *ret_bytes);
