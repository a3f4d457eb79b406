/*
 * The schema of a trace maps function ids to names, arguments and meaning. It is parsed from the
 * text in every trace (docs/reference/trace-format.md, "Schema"), so files of other versions decode
 * too.
 *
 * Host safe: no allocation or stdio. The caller's arena must outlive the schema. The text may be
 * anything, and bad lines are skipped and counted. After parsing any thread may read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* How a reader prints an argument: the kinds of api/types.tbl, and enumerations. */
enum arg_kind {
	ARG_PTR,
	ARG_INT,
	ARG_UINT,
	ARG_FLOAT,
	ARG_STR,
	ARG_DIM3,
	ARG_EXTENT,
	ARG_LOC,
	ARG_IPC,
	ARG_ENUM,
};

enum call_kind {
	CALL_PLAIN,
	CALL_STATUS,      /* the result tells the state of an earlier call */
	CALL_LAUNCH,      /* launch layout; counts as a launch */
	CALL_RTLAUNCH,    /* launch layout; the driver's call below it is counted */
	CALL_GRAPHLAUNCH, /* arguments: executable graph, stream */
	CALL_ALLOC,
	CALL_FREE,
	CALL_COPY,
	CALL_SET,
};

/* An allocator's events are no calls to CUDA: what a program's own allocator, PyTorch's say, gave
 * out and took back. */
enum call_api { API_DRIVER, API_RUNTIME, API_ALLOCATOR };

struct schema_arg {
	const char *type;
	const char *name;
	uint8_t kind;   /* enum arg_kind */
	uint8_t words;  /* in arg[]: 0, 1, 2 or 3 */
	uint8_t bytes;  /* of the C type; 0 unknown */
	bool out;       /* the value that the driver stored */
	bool derived;   /* computed when the call was recorded */
	uint16_t first; /* index of its first word in arg[] */
};

#define SCHEMA_FACTORS 4

struct schema_fn {
	const char *name;
	const char *class;
	const char *memory; /* alloc, free: kind of memory; copy: direction; never NULL */
	uint16_t id;
	uint8_t api;  /* enum call_api */
	uint8_t kind; /* enum call_kind */
	bool launch_layout;
	int8_t pointer;       /* index of the argument p=, or -1 */
	uint8_t factor_count; /* n=: the bytes are the product of these arguments … */
	uint8_t factor[SCHEMA_FACTORS];
	uint32_t scale; /* … and this constant */
	uint16_t arg_count;
	uint16_t arg_words; /* words before the strings */
	const struct schema_arg *args;
};

struct schema {
	const struct schema_fn *fns;
	uint32_t fn_count;
	uint32_t bad_lines;
	const uint32_t *by_id; /* index into fns plus 1; 0: no such function */
	uint32_t id_count;
};

/* How large an arena schema_parse() needs for this text. */
size_t schema_need(const char *text, size_t bytes);

/* 0, or -ENOMEM when the arena is too small (s is then an empty schema). */
int schema_parse(struct schema *s, struct arena *arena, const char *text, size_t bytes);

static inline const struct schema_fn *schema_find(const struct schema *s, uint32_t id)
{
	if (id >= s->id_count || !s->by_id[id])
		return NULL;
	return &s->fns[s->by_id[id] - 1];
}

/* As the schema has it; of a function that is not in it, the driver's. */
const char *schema_api_name(const struct schema_fn *fn);

/* Whether it is a call to CUDA. */
static inline bool schema_is_call(const struct schema *s, uint32_t id)
{
	const struct schema_fn *fn = schema_find(s, id);
	return !fn || fn->api != API_ALLOCATOR;
}

/* Whether it is a launch of the driver's, of a kernel or a graph; or a call of its that returns
 * when what was launched before is done: a copy that waits, a synchronization. */
bool schema_launches(const struct schema_fn *fn);
bool schema_waits(const struct schema_fn *fn);

/* The latter of any interface, the runtime's too. */
bool schema_blocks(const struct schema_fn *fn);

struct record;

/* Bytes that the call allocated, copied or set: the product of its factors.  False when an
 * argument lies beyond the record. */
bool schema_call_bytes(const struct schema_fn *fn, const struct record *r, uint64_t *ret_bytes);

/* The address or handle that the call allocated or freed. */
bool schema_call_pointer(const struct schema_fn *fn, const struct record *r, uint64_t *ret_pointer);

/* The tables of api/ as constant data, which api/lists.awk makes. */
extern const char schema_text[]; /* as docs/reference/trace-format.md describes it */
extern const unsigned schema_text_bytes;

struct enum_name {
	const char *type;
	int64_t value;
	const char *name;
};
extern const struct enum_name enum_names[]; /* sorted by type, then value */
extern const unsigned enum_names_count;
