/*
 * What the guest knows about the process it is in: its orders, the trace it writes to, and
 * each thread's writer.  Set up before the first recorded call returns; survives fork.
 *
 * The orders come in the environment variable WEIR, read once when the library is loaded:
 *
 *	WEIR=[level=LEVEL,][flight=BYTES,][gpu,][args,]record:FILE	keep every call in FILE
 *	     `gpu=sample:N,` in place of `gpu,` times one launch in N with events (sample.h)
 *	WEIR=[level=LEVEL,]trace:FILE			append a line a call to FILE
 *
 * `predict,` predict how long kernels will run; `history=FILE,`, `warm=FILE,`, `model=FILE,`
 * and `models=DIRECTORY,` say what from (forecast.h).
 *
 * `join,` in front: FILE is one that weir record has made; do not make another when it is gone.
 * Without WEIR the library does nothing but pass calls on.
 */
#ifndef WEIR_HOOK_PROCESS_H
#define WEIR_HOOK_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/writer.h"
#include "hook/hook_table.h"

extern struct recorder hook_recorder;
extern __thread struct writer hook_self __attribute__((tls_model("initial-exec")));
extern __thread struct writer hook_ranges __attribute__((tls_model("initial-exec")));

/*
 * What every wrapper looks at, in one cache line: after the driver has worked for
 * microseconds, each line of ours may have to be fetched again.
 *
 * Zeros are a process that has not started.  The line lies in a page that a forked child finds full
 * of zeros, however it was forked: a bare clone() runs no handlers.  So it begins anew by itself.
 */
struct hot_line {
	ptrdiff_t control; /* from hook_idle to the word that says what to record: of the mapped
			    * trace, or of this library */
	uint32_t tsc;      /* whether the clock is the processor's counter, which may be read */
	uint32_t state;    /* enum process_state */
	int32_t captures;  /* how many streams of this process are capturing */
	uint32_t text;     /* WEIR=trace: each call becomes a line */
} __attribute__((aligned(64)));
#define HOOK_PAGE 4096
union hook_hot_page {
	struct hot_line hot;
	char page[HOOK_PAGE];
} __attribute__((aligned(HOOK_PAGE)));
extern union hook_hot_page hook_hot_page __attribute__((visibility("hidden")));
#define hook_hot hook_hot_page.hot

/* The control word of a process that has not started. */
extern uint32_t hook_idle __attribute__((visibility("hidden")));

/* The control word now. */
static inline uint32_t process_control(void)
{
	const char *at = (const char *)&hook_idle + hook_hot.control;
	return __atomic_load_n((const uint32_t *)at, __ATOMIC_RELAXED);
}

enum process_state { PROCESS_NEW, PROCESS_STARTING, PROCESS_READY };

static inline bool process_is_started(void)
{
	return __atomic_load_n(&hook_hot.state, __ATOMIC_ACQUIRE) == PROCESS_READY;
}

uint64_t clock_monotonic(void); /* nanoseconds */

/* Ticks of the trace's clock, where that is not the processor's counter or nobody knows yet whether
 * that may be read.  0: it may not, and nothing is recorded. */
uint64_t clock_slowly(void);

/* Opens the trace, once a process.  Called with the first sign of CUDA, never before. */
void process_start(void);

/* Prints a committed record as a line of the text trace (text.c). */
void text_print(const struct record *r);

/* Whether device times were asked for, and there is a trace to put them into. */
bool process_wants_gpu(void);

/* One launch in how many is to be timed with events; 0: all work, by CUPTI. */
uint32_t process_sample_rate(void);

/* Whether there are orders to keep calls in a file, and so ranges. */
bool process_keeps_ranges(void);

/* Whether what the devices are is worth a question: for their times, or for what kernels get. */
bool process_wants_devices(void);

/* Whether times are to be predicted, and from what. */
struct forecast_orders;
bool process_wants_forecast(struct forecast_orders *ret_orders);

/* A sentence for whoever reads the trace. */
void process_note(const char *text);

#endif
