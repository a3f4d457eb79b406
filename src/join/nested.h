/*
 * Nested ranges: the innermost of a thread at a moment, and the range in which each GPU activity
 * was launched.
 *
 * An array's elements begin with a struct nested, and the rest is their owner's. Functions take the
 * array and the size of its elements, and macros fill that in for an ARRAY.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "join/links.h"
#include "trace/activity.h"
#include "trace/meta.h"

#define NESTED_NONE UINT32_MAX

struct nested {
	uint64_t ticks, end; /* [ticks, end) */
	uint64_t external;   /* the number by which activities may name it; 0: none */
	uint32_t process, tid;
	uint32_t parent; /* the one around it, once nested() has run; or NESTED_NONE */
	bool named;      /* by the program itself */
};

static inline struct nested nested_of(const struct range *g, uint32_t process)
{
	return (struct nested){ .ticks = g->ticks,
		.end = range_end(g),
		.external = g->valid & RANGE_HAS_EXTERNAL ? g->external : 0,
		.process = process,
		.tid = g->tid,
		.parent = NESTED_NONE,
		.named = g->kind != RANGE_OPERATOR };
}

/* Puts them in order: by process, thread and begin, those around before those inside; and gives
 * each its parent.  One that took no time and was given before a longer one of the same tick lies
 * before it, not inside.  There must be fewer than NESTED_NONE. */
void nested(void *v, size_t n, size_t each);

/* The innermost of the thread's that had begun by then and had not ended; or NESTED_NONE.  *hint is
 * where the last one was, 0 at first: whoever asks in the order of time finds it beside that. */
uint32_t nested_at(const void *v, size_t n, size_t each, uint32_t process, uint32_t tid,
	uint64_t ticks, size_t *hint);

/* Numbers of ranges, in order. */
struct external {
	uint64_t id;
	uint32_t process, index;
};
struct externals {
	ARRAY(struct external) v;
};

void externals_make(const void *v, size_t n, size_t each, struct externals *ret_externals);

/* The first range of a process with that number; or NESTED_NONE. */
uint32_t externals_find(const struct externals *x, uint32_t process, uint64_t id);

/*
 * A thread works for another: autograd's launches the backward pass while the thread that asked for
 * it waits, inside of the ranges that the program named there.  While one thread of a process alone
 * is inside of such ranges, what others begin in none of their own belongs to those.  Ranges of a
 * thread that lie within another's, as those of a communication library's, are a part of those:
 * what is begun there belongs to both.
 */
struct alone { /* times at which one thread alone is inside of named ranges; by process and time */
	uint64_t from, to;
	uint32_t process, tid;
};
struct alones {
	ARRAY(struct alone) v;
	size_t hint; /* of nested_at() */
};

/* After nested(). */
void alones_make(const void *v, size_t n, size_t each, struct alones *ret_alones);

/* The innermost named range of the thread that alone is inside of some at that moment; or
 * NESTED_NONE. */
uint32_t alones_at(
	struct alones *a, const void *v, size_t n, size_t each, uint32_t process, uint64_t ticks);

/* From that range outwards, the first that is named; or NESTED_NONE. */
uint32_t nested_named(const void *v, size_t each, uint32_t at);

/* The same for an ARRAY. */
#define NESTED(array) nested((array).v, (array).n, sizeof(*(array).v))
#define NESTED_AT(array, process, tid, ticks, hint)                                                \
	nested_at((array).v, (array).n, sizeof(*(array).v), process, tid, ticks, hint)
#define NESTED_NAMED(array, at) nested_named((array).v, sizeof(*(array).v), at)
#define ALONES_MAKE(array, ret) alones_make((array).v, (array).n, sizeof(*(array).v), ret)
#define ALONES_AT(a, array, process, ticks)                                                        \
	alones_at(a, (array).v, (array).n, sizeof(*(array).v), process, ticks)
#define EXTERNALS_MAKE(array, ret) externals_make((array).v, (array).n, sizeof(*(array).v), ret)

/*
 * The ranges of a trace that nest.  A GPU activity belongs to those that were open, on its thread,
 * when its call began: to an operator, and to a range that the program itself names (NVTX push and
 * pop, annotations, modules), which may be another thread's (struct alone).  One whose call is not
 * known belongs to the range that it names.  One owner thread.
 */
#define OWNER_NONE NESTED_NONE

struct owner {
	struct nested at;
	uint32_t name; /* into meta.names; META_NONE: it has none */
	uint16_t kind; /* enum range_kind: those that nest */
	bool library;  /* an operator that is a call of cuBLAS or cuDNN */
};

struct owners {
	ARRAY(struct owner) v; /* as nested() puts them */
	struct externals externals;
	struct alones alones;
	size_t hint; /* where the last answer was */
};

/* 0 or -errno; damaged chunks are passed over.  owners_fini() either way. */
int owners_load(const struct trace *t, const struct meta *m, struct owners *ret_owners);
void owners_fini(struct owners *o);

/* The innermost range that an activity belongs to; `link`: that of its call, or NULL.  Or
 * OWNER_NONE. */
uint32_t owners_of(struct owners *o, uint32_t process, const struct gpu_activity *w,
	const struct call_link *link);

/* From that range outwards: the operator; or OWNER_NONE.  A library's call is an operator where
 * there is no other around it. */
uint32_t owners_operator(const struct owners *o, uint32_t at);

/* The innermost that the program names, on that thread; or OWNER_NONE. */
uint32_t owners_named(const struct owners *o, uint32_t at);

/* That of the thread for which this one worked then; or OWNER_NONE.  `link`: that of the call, or
 * NULL. */
uint32_t owners_waiting(struct owners *o, uint32_t at, const struct call_link *link);

/* The name of a range among meta.names; META_NONE for OWNER_NONE. */
uint32_t owners_name(const struct owners *o, uint32_t at);

/* Whether the name of an operator is a library's. */
bool owner_is_library(uint16_t kind, const char *name);
