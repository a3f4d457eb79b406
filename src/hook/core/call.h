/*
 * One intercepted call: whether it is wanted, its record, and its counters.
 *
 * A wrapper (wrapper.h) asks wanted() and jumps to the driver if the answer is no. Otherwise it
 * notes the time, makes the real call, reserves a record, fills it and commits it. Nothing here
 * allocates, locks, prints or touches errno. A signal handler may run between any two lines and
 * make calls of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/cpu.h"
#include "base/tsan.h"
#include "record/writer.h"
#include "fn_ids.h"
#include "hook/core/hook_table.h"
#include "hook/core/process.h"

#define INLINE    static inline __attribute__((always_inline))
#define NOT_READY 600 /* CUDA_ERROR_NOT_READY: an answer, not a failure */

/* The real function, found on first use; never NULL (see resolve.h). */
INLINE void *real_of(enum fn fn)
{
	void *real = real_at(fn);
	if (__builtin_expect(!real, 0))
		return resolve(fn, __builtin_return_address(0));
	return real;
}

INLINE uint32_t wanted(uint32_t bits)
{
	return process_control() & (bits | CONTROL_COUNT);
}

/* Whether that is more than that its stack be kept, if the call is. */
INLINE bool want_is_any(uint32_t want)
{
	return want & ~CONTROL_STACKS;
}

/*
 * Asks for the lines that the record will be written to, while the driver works: they were
 * last in the cache of whoever drained them.  A prefetch never faults, whatever pos is.
 */
INLINE void prepare_record(void)
{
	cpu_prefetch(hook_self.pos);
}

/*
 * Every call that is to be recorded or counted is counted here as well, when it is entered and when
 * it is left, apart from all that records: what is recorded, counted and declared lost must add up
 * to it.  A call that is left by longjmp() is entered and never left.
 */
INLINE void call_entered(void)
{
	struct thread_account *a = hook_self.account;
	cpu_add(a ? &a->entered : &hook_self.early, 1);
}

/* A thread that still has no account has lost the call, and said so. */
INLINE void call_left(void)
{
	struct thread_account *a = hook_self.account;
	if (__builtin_expect(a != NULL, 1)) {
		cpu_add(&a->returned, 1);
		tsan_did(a); /* claim() in record/lane.c acquires */
	}
}

INLINE uint64_t call_enter(void)
{
	call_entered();
	prepare_record();
	return clock_now();
}

/*
 * The same for calls that may take long or never return: leaves word in the trace of what
 * the thread is in.  The account is mapped for good; a chunk may go while a handler runs.
 */
INLINE uint64_t call_enter_long(enum fn fn)
{
	const uint64_t now = call_enter();
	struct thread_account *a = hook_self.account;
	if (__builtin_expect(a != NULL, 1)) {
		a->inflight_ticks = now;
		store_release(shared(&a->inflight_fn), (uint32_t)fn); /* read by find_inflight() */
	}
	return now;
}

INLINE void call_returned(void)
{
	struct thread_account *a = hook_self.account;
	if (__builtin_expect(a != NULL, 1))
		store_relaxed(shared(&a->inflight_fn), 0);
}

#define LONG_TICKS (1u << 23) /* a few milliseconds */

/* The slow case: a failed call, a process that has not started, no room, a call to count or a stack
 * to keep. */
struct record *call_leave_slowly(
	enum fn fn, uint64_t begun, uint64_t ticks, int result, uint32_t want, uint32_t words);

/*
 * After the real call, which took `ticks`: a record with its head filled and room for the rest,
 * or NULL when this call leaves none (only counters are wanted, or there is no room).
 */
INLINE struct record *call_leave_after(
	enum fn fn, uint64_t begun, uint64_t ticks, int result, uint32_t want, uint32_t words)
{
	char *const pos = hook_self.pos;
	char *const end = hook_self.end; /* after pos: see writer_reserve */
	const bool plain = !result && !(want & (CONTROL_COUNT | CONTROL_STACKS)) &&
			   process_is_started() && ticks < LONG_TICKS &&
			   end - pos >= (long)words * 8;
	if (__builtin_expect(!plain || !writer_take(&hook_self, pos, words), 0))
		return call_leave_slowly(fn, begun, ticks, result, want, words);
	struct record *r = (struct record *)pos;
	const uint64_t unfinished = ticks | (uint64_t)words << 48; /* dur, fn 0, words */
	r->ticks = begun;
	memcpy(&r->dur, &unfinished, sizeof unfinished);
	memset(&r->aux, 0, 8); /* result and flags as well */
	return r;
}

INLINE struct record *call_leave(
	enum fn fn, uint64_t begun, int result, uint32_t want, uint32_t words)
{
	return call_leave_after(fn, begun, clock_now() - begun, result, want, words);
}

/* Listeners get a committed record. */
void call_publish(const struct record *r);

INLINE void call_commit(struct record *r, enum fn fn)
{
	record_commit(r, (uint16_t)fn);
	if (__builtin_expect(load_relaxed(&hook_hot.listen), 0))
		call_publish(r);
	writer_unmark(&hook_self);
}

/* Counts a query that has succeeded; made at the first one, the counters may find no room. */
void count_query(enum fn fn);

INLINE bool counts_only(uint32_t want)
{
	return (want & (CONTROL_QUERY_COUNT | CONTROL_COUNT)) == CONTROL_QUERY_COUNT;
}

/* False when this thread has no counters yet. */
INLINE bool count_quickly(enum fn fn)
{
	struct counter *const c = hook_self.counters;
	if (__builtin_expect(!c, 0))
		return false;
	cpu_add(&c[fn].count, 1);
	return true;
}

void count_bytes(enum fn fn, uint64_t bytes);

/* The driver's answer behind a pointer, as a word; 0 if there is none. */
static inline uint64_t answer_u64(int result, const void *p)
{
	return result || !p ? 0 : *(const uint64_t *)p;
}

static inline uint64_t answer_u32(int result, const void *p)
{
	return result || !p ? 0 : *(const uint32_t *)p;
}

static inline uint64_t answer_i32(int result, const void *p)
{
	return result || !p ? 0 : (uint64_t)(int64_t) * (const int32_t *)p;
}
