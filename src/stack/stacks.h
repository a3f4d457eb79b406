/*
 * The call stacks of calls that were recorded with `--stacks`.
 *
 * The injected library keeps a piece of each stack (CHUNK_STACKS). This module unwinds it with
 * elfutils' libdw, loaded when needed, and puts Python's frames where its interpreter ran them.
 * `weir record` does that once at the end. The trace then holds each stack once, as frames with
 * names and lines (CHUNK_CALLERS). A trace with pieces is unwound when it is read.
 *
 * One owner thread. Sharing for reading is safe once it is loaded.
 */
#pragma once

#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "trace/trace.h"

struct stack_frame {
	const char *function; /* demangled; "" when it is not known */
	const char *module;   /* the file's name without its directory; Python: "" */
	const char *file;     /* of the source; "" when it is not known */
	uint32_t line;        /* 0: not known */
	enum caller_kind kind;
};

struct stack_row {
	size_t first; /* into pool; the innermost frame comes first */
	uint32_t count;
	enum stack_end end;
	uint32_t like; /* the first row with the same frames of the program: see stacks_pick() */
};

#define STACK_NONE UINT32_MAX

struct stack_sample { /* of a call */
	uint64_t ticks, dur;
	uint32_t process; /* as in chunk_ref */
	uint32_t tid;
	uint32_t stack; /* into rows */
	uint16_t fn, result;
};

struct stacks {
	ARRAY(struct stack_frame) frames;
	ARRAY(uint32_t) pool; /* into frames */
	ARRAY(struct stack_row) rows;
	ARRAY(struct stack_sample) samples; /* by process, thread and time */
	uint64_t lost;                      /* found no room when they were recorded */
	uint64_t damaged;                   /* chunks that could not be read */
	uint64_t cut, unknown;              /* samples whose row says so */
	uint64_t waiting;  /* samples that could not be unwound here: only Python's frames are there
			      … */
	char without[160]; /* … for want of this; "" */
	struct map frame_map, row_map;
	ARRAY(char *) texts;
	struct map text_map;
};

/* All call stacks of a trace; none is no error.  0 or -errno; stacks_fini() takes it either way. */
int stacks_load(const struct trace *t, struct stacks *s, struct error *err);
void stacks_fini(struct stacks *s);

/* The stack of the call in which this thread was at `ticks`, its begin or its end, or STACK_NONE;
 * the first of those that are alike but for frames between the program and CUDA. */
uint32_t stacks_find(const struct stacks *s, uint32_t process, uint32_t tid, uint64_t ticks);

/* The stack of the first call that this thread began between two times, or STACK_NONE: a call of
 * the runtime leaves its own to that of the driver's below. */
uint32_t stacks_find_within(
	const struct stacks *s, uint32_t process, uint32_t tid, uint64_t from, uint64_t to);

/* The stack of the very call that this thread made then, of this function, or STACK_NONE. */
uint32_t stacks_of_call(
	const struct stacks *s, uint32_t process, uint32_t tid, uint64_t ticks, uint16_t fn);

static inline const struct stack_frame *stacks_frame(
	const struct stacks *s, const struct stack_row *row, uint32_t i)
{
	return &s->frames.v[s->pool.v[row->first + i]];
}

/*
 * A frame as a line of text: "function (file:line)", "function (module)".  A frame is of interest
 * to the program's author when it is not of a library of CUDA's.
 */
void stacks_frame_text(const struct stack_frame *f, char *to, size_t size);

/* The frames that are of interest, innermost first, of at most `most`; the first of them is also
 * what stands for the whole in one line.  If a line of Python would be cut off, C's frames in the
 * middle are left out.  Without a frame of interest, picks all. */
uint32_t stacks_pick(
	const struct stacks *s, uint32_t row, const struct stack_frame **to, uint32_t most);

/* "stack": [...], a text for each frame. */
void stacks_put_json(struct json *j, const struct stack_frame *const *frames, uint32_t n);

/* "inner (file:1) < outer (file:2) < …" of so many frames at most. */
void stacks_row_text(const struct stacks *s, uint32_t row, uint32_t frames, char *to, size_t size);

/*
 * For pack.h: unwinds what the trace has of pieces and gives put() chunks of what came of it.  0,
 * -errno, or -ENOSYS: they can't be unwound here and should stay as they are.
 */
int stacks_pack(const struct trace *t,
	int (*put)(
		void *context, const struct chunk_header *head, const void *payload, size_t bytes),
	void *context);

/* The following is for this module alone. */

/* Puts samples in their order. */
void stacks_sort(struct stacks *s);

/* Fills in `like`. */
void stacks_compare(struct stacks *s);

/* The number of a text, of a frame, of a stack. */
const char *stacks_text(struct stacks *s, const char *text, size_t bytes);
uint32_t stacks_add_frame(struct stacks *s, const struct stack_frame *f);
uint32_t stacks_add_row(
	struct stacks *s, const uint32_t *frames, uint32_t count, enum stack_end end);
