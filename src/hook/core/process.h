/*
 * The process into which the library is loaded: its state, the calls that it wants, its trace, and
 * each thread's writers. It is set up before the first recorded call returns, and it survives fork.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/monotonic.h"
#include "base/atomic.h"
#include "base/cpu.h"
#include "fn_ids.h"
#include "record/writer.h"

extern struct recorder hook_recorder;
extern __thread struct writer hook_self __attribute__((tls_model("initial-exec")));
extern __thread struct writer hook_ranges __attribute__((tls_model("initial-exec")));
extern __thread struct writer hook_stacks __attribute__((tls_model("initial-exec")));

/*
 * Every wrapper reads this one cache line: after the driver has worked for microseconds, each line
 * of ours may have to be fetched again.
 *
 * Zeros are a process that has not started.  The line lies in a page that a forked child finds full
 * of zeros, however it was forked: a bare clone() runs no handlers.  So it begins anew by itself.
 */
struct hot_line {
	_Atomic ptrdiff_t
		control; /* by control_by() and process_control().  From hook_idle to the word that
			  * says what to record: of the mapped trace, or of this library */
	_Atomic uint32_t tsc;     /* the clock is the processor's counter, which may be read */
	_Atomic uint32_t state;   /* enum process_state: process_start(), process_is_started() */
	_Atomic int32_t captures; /* how many streams of this process are capturing */
	_Atomic uint32_t listen;  /* enum listen: who gets the calls that are kept */
	_Atomic uint32_t gate;    /* launches are regulated (gate.h) */
	_Atomic uint32_t memory;  /* and memory (mem/answers.h) */
	_Atomic uint64_t
		look; /* ticks: when to look again what is mapped (stack/stack.h); 0: never */
} __attribute__((aligned(64)));
enum listen {
	LISTEN_CAPTURE = 1, /* what decides which part of the run is recorded (capture.h) */
	LISTEN_CLOSED = 2,  /* nothing is recorded now, though calls may be looked at */
};

union hook_hot_page {
	struct hot_line hot;
	char page[CPU_PAGE_MOST];
} __attribute__((aligned(CPU_PAGE_MOST)));
extern union hook_hot_page hook_hot_page __attribute__((visibility("hidden")));
#define hook_hot hook_hot_page.hot

/* The control word of a process that has not started. */
extern _Atomic uint32_t hook_idle __attribute__((visibility("hidden")));

/* The control word now. */
static inline uint32_t process_control(void)
{
	/* Acquire pairs with the release of control_by(): who goes by a trace's word sees the clock
	 * of that trace. */
	const char *at = (const char *)&hook_idle + load_acquire(&hook_hot.control);
	return load_relaxed((const _Atomic uint32_t *)at);
}

enum process_state { PROCESS_NEW, PROCESS_STARTING, PROCESS_READY };

static inline bool process_is_started(void)
{
	return load_acquire(&hook_hot.state) == PROCESS_READY;
}

/* Whether the driver answers for itself what is marked `memory` in api/cuda.tbl. */
static inline bool memory_is_plain(void)
{
	return __builtin_expect(!load_relaxed(&hook_hot.memory), 1);
}

/* Ticks of the trace's clock, where that is not the processor's counter or nobody knows yet whether
 * that may be read.  0: it may not, and nothing is recorded. */
uint64_t clock_slowly(void);

static inline uint64_t clock_now(void)
{
	return __builtin_expect(load_relaxed(&hook_hot.tsc), 1) ? cpu_ticks() : clock_slowly();
}

/* Whether calls are looked at and nothing of them is kept. */
static inline bool capture_is_closed(void)
{
	return load_relaxed(&hook_hot.listen) & LISTEN_CLOSED;
}

/* Opens the trace, once a process.  Called with the first sign of CUDA, never before. */
void process_start(void);

/* Calls go by this word in place of the trace's, NULL: by the trace's. */
void process_divert(const _Atomic uint32_t *word);

/* Has at_exit() of the parts called, also in forked children: once, when the driver is there and
 * CUPTI is loaded, so that it comes before what they have registered to end themselves. */
void process_at_exit(void);
