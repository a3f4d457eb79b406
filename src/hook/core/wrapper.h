/*
 * The inside of a wrapper. Generated wrappers call these functions, in this order:
 *
 *	gate_enter()                    rows marked gate: the scheduler may make the launch wait
 *	call_is_wanted()                no: the call is the driver's alone
 *	call_begin() or its like        the time
 *	the real call, with the caller's own arguments
 *	call_record() or its like       a record to be filled, or NULL
 *	call_commit() or its like
 *	call_left()
 *	after_NAME()                    rows marked after, whether or not it was wanted
 *
 * Everything is inlined. Rare cases are in wrapper.c.
 */
#pragma once

#include "base/atomic.h"
#include "cuda_types.h"
#include "hook/core/call.h"
#include "hook/core/captures.h"
#include "hook/core/gate.h"
#include "hook/core/hook_parts.h"
#include "hook/core/launch_shape.h"
#include "hook/core/timing.h"

#define TEXT_KEPT 504u

static inline uint64_t float_bits(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static inline uint32_t text_bytes(const char *s)
{
	return s ? (uint32_t)strnlen(s, TEXT_KEPT + 1) : 0;
}

/* Words for a text in a record: over-long ones are cut to TEXT_KEPT. */
static inline uint32_t text_words(uint32_t bytes)
{
	return ((bytes > TEXT_KEPT ? TEXT_KEPT : bytes) + 7) / 8;
}

char *text_put(struct record *r, char *at, const char *s, uint32_t bytes);

static inline uint64_t derive_copy2d_bytes(const struct cu_memcpy2d *c)
{
	return c ? c->width_bytes * c->height : 0;
}

static inline uint64_t derive_copy2d_v1_bytes(const struct cu_memcpy2d_v1 *c)
{
	return c ? (uint64_t)c->width_bytes * c->height : 0;
}

static inline uint64_t derive_copy3d_bytes(const struct cu_memcpy3d *c)
{
	return c ? c->width_bytes * c->height * c->depth : 0;
}

static inline uint64_t derive_copy3d_v1_bytes(const struct cu_memcpy3d_v1 *c)
{
	return c ? (uint64_t)c->width_bytes * c->height * c->depth : 0;
}

/* One call on its way, in the wrapper's frame and mostly in registers: nothing in it is set before
 * it is needed. */
struct call {
	enum fn fn;
	uint32_t want; /* CONTROL_ bits; 0: it is the driver's alone */
	int result;
	uint64_t begun, took; /* ticks; took: of launches */
	struct sample *timer; /* of launches; NULL: this one is not timed */
	uint32_t more;        /* words of the record besides those that all of its kind have */
};

INLINE bool call_is_wanted(struct call *c, enum fn fn, uint32_t bits)
{
	c->fn = fn;
	c->want = wanted(bits);
	return want_is_any(c->want);
}

/* For a call whose answer is there already. */
INLINE void call_is_answered(struct call *c, enum fn fn, uint32_t want, int result)
{
	c->fn = fn;
	c->want = want;
	c->result = result;
}

/* A query that is counted, not recorded, when it succeeds. */
INLINE bool query_is_counted(const struct call *c)
{
	if (!(c->want & CONTROL_QUERY_COUNT))
		return false;
	call_entered();
	return true;
}

/* For a query that was answered: false when it is to be recorded after all, as a failure is. */
INLINE bool query_count(const struct call *c)
{
	if (c->result && c->result != NOT_READY)
		return false;
	count_query(c->fn);
	call_left();
	return true;
}

/* The same in the function that the program calls: false when it is not counted yet. */
INLINE bool query_is_quick(enum fn fn, int answer)
{
	if (__builtin_expect(answer || !count_quickly(fn), 0))
		return false;
	call_left();
	return true;
}

INLINE void call_begin(struct call *c)
{
	c->begun = call_enter();
}

/* For calls that may wait. */
void call_begin_long(struct call *c);

/* For calls of the runtime, which calls the driver: what that looks at now and then is no part of
 * its time.
 */
INLINE void call_looks(struct call *c)
{
	const uint64_t due = load_relaxed(&hook_hot.look);
	if (__builtin_expect(c->begun > due - 1, 0)) /* 0: never */
		c->begun = hook_above.stack_look(c->begun);
}

INLINE struct record *call_record(const struct call *c, uint32_t words)
{
	return call_leave(c->fn, c->begun, c->result, c->want, words);
}

/*
 * The same for calls that may wait, for queries that fail and for calls that CUPTI tells of: beside
 * those a function call costs nothing, and inlined into a thousand wrappers this code took most of
 * the time of a build.
 */
struct record *call_record_apart(const struct call *c, uint32_t words);
void call_commit_apart(struct record *r, enum fn fn);

INLINE struct record *call_record_at(const struct call *c, uint32_t words, bool apart)
{
	return apart ? call_record_apart(c, words) : call_record(c, words);
}

INLINE void call_commit_at(struct record *r, enum fn fn, bool apart)
{
	if (apart)
		call_commit_apart(r, fn);
	else
		call_commit(r, fn);
}

/* Whether bytes, or what went into a graph, are to be counted. */
INLINE bool call_is_counted(const struct call *c)
{
	return c->want & CONTROL_COUNT && !c->result;
}

/* The following serves calls that are recorded and no more (plain_row.inc). */

/*
 * Begins a call and returns the real function. `blocks`: the call may wait. `caller`: an address in
 * the object that called the wrapper.
 */
void *plain_enter(struct call *c, enum fn fn, uint32_t bits, bool blocks, const void *caller);

/* Whether the call is to be recorded, once the driver has answered. */
bool plain_answered(struct call *c, bool blocks);

/* mark_captured() and call_left(), as functions. */
void plain_captured(struct record *r, void *stream, bool per_thread);
void plain_left(void);

static inline void launch_fill(struct record *r, const struct launch_shape *s)
{
	r->aux = s->shared;
	r->arg[LAUNCH_FUNCTION] = (uintptr_t)s->what;
	r->arg[LAUNCH_STREAM] = (uintptr_t)s->stream;
	r->arg[LAUNCH_GRID_XY] = s->grid[0] | (uint64_t)s->grid[1] << 32;
	r->arg[LAUNCH_GRID_Z_BLOCK_X] = s->grid[2] | (uint64_t)s->block[0] << 32;
	r->arg[LAUNCH_BLOCK_YZ] = s->block[1] | (uint64_t)s->block[2] << 32;
}

static inline uint32_t launch_extra(const struct cu_launch_config *c)
{
	return c && c->attr_count && c->attrs ? 1 : 0;
}

/* extended: launch_extra(), for which the record has room. */
void launch_fill_attributes(struct record *r, const struct cu_launch_config *c, uint32_t extended);

/* While any stream of the process is capturing, work may go into a graph instead. */
static inline bool is_captured(void *stream, bool per_thread)
{
	return __builtin_expect(load_relaxed(&hook_hot.captures) > 0, 0) &&
	       stream_is_capturing(stream, per_thread);
}

static inline void mark_captured(struct record *r, void *stream, bool per_thread)
{
	if (is_captured(stream, per_thread))
		r->flags |= RECORD_CAPTURED;
}

INLINE void launch_begin(struct call *c, const struct launch_shape *s)
{
	c->timer = timing_begin(c->fn, s);
	c->begun = call_enter();
}

/* Memcpys and memsets are timed only where the whole timeline is wanted; `blocks`: it may wait. */
INLINE void move_begin(struct call *c, const struct launch_shape *s, bool blocks)
{
	c->timer = NULL;
	if (__builtin_expect(load_relaxed(&timing_adapts), 0))
		c->timer = hook_above.timing_take(c->fn, s);
	c->begun = blocks ? call_enter_long(c->fn) : call_enter();
}

/* Words for what the kernel was given and will take, once the driver has taken it; 0 when nobody
 * asks. */
INLINE struct record *launch_record(struct call *c, struct launch_given *given,
	const struct launch_shape *s, void *params, void *extra, uint32_t words)
{
	const uint32_t control = process_control() & (CONTROL_ARGS | CONTROL_PREDICT);
	c->took = clock_now() - c->begun;
	c->more = __builtin_expect(!control, 1) || c->result
			  ? 0
			  : hook_above.given_read(control, s, params, extra, given);
	return call_leave_after(c->fn, c->begun, c->took, c->result, c->want, words + c->more);
}

/* at: where what the kernel was given begins.  That is apart from the call, whose address goes
 * nowhere: so the call is in registers. */
INLINE void launch_commit(
	const struct call *c, const struct launch_given *given, struct record *r, uint32_t at)
{
	if (c->more)
		hook_above.given_put(r, given, at);
	call_commit(r, c->fn);
}

/* The launch of a graph: a word more when its time is to be predicted. */
INLINE struct record *graph_record(struct call *c, uint32_t words)
{
	c->took = clock_now() - c->begun;
	c->more = !c->result && process_control() & CONTROL_PREDICT;
	return call_leave_after(c->fn, c->begun, c->took, c->result, c->want, words + c->more);
}

void graph_put_prediction(struct record *r);

INLINE void graph_commit(const struct call *c, struct record *r)
{
	if (c->more)
		graph_put_prediction(r);
	call_commit(r, c->fn);
}

/* direction: of memcpys. */
INLINE void launch_time(
	const struct call *c, const struct launch_shape *s, uint16_t kind, uint8_t direction)
{
	if (__builtin_expect(c->timer != NULL, 0))
		hook_above.timing_end(c->timer, s,
			&(struct timed_call){ .begun = c->begun,
				.took = c->took,
				.fn = c->fn,
				.result = c->result,
				.kind = kind,
				.direction = direction });
}

INLINE void move_time(
	struct call *c, const struct launch_shape *s, uint16_t kind, uint8_t direction)
{
	if (__builtin_expect(c->timer == NULL, 1))
		return;
	c->took = clock_now() - c->begun;
	launch_time(c, s, kind, direction);
}

/* cuX of a prefix, as FN_cuX: see wrapper_row.inc. */
#define ROW(prefix)         ROW_JOIN(prefix, ROW_NAME)
#define ROW_JOIN(one, two)  ROW_JOIN_(one, two)
#define ROW_JOIN_(one, two) one##two
