/*
 * Device times from CUPTI's activity records: when each kernel, memcpy and memset ran, in the time
 * of CLOCK_MONOTONIC.  Opened at run time; nothing of CUPTI is needed to build.
 *
 * Only activity records are asked for, no callbacks of calls, so that no other client of CUPTI
 * is kept out of its one subscription and a call costs what the record costs.  CUPTI allocates
 * and has a thread of its own: that is the price of asking for device times.  Which call asked
 * for a GPU activity is found out afterwards (join.h).
 */
#ifndef WEIR_HOOK_TIME_CUPTI_H
#define WEIR_HOOK_TIME_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include "record/writer.h"

/* Who learns from what ran: each kernel with its name as CUPTI tells it, and NULL at the end of a
 * buffer, when the answer is whether something in it was new: the next one is then to come soon.
 * Called by one thread at a time; allocates nothing.  Set before cupti_start(). */
extern bool (*cupti_learner)(const struct gpu_activity *w, const char *name);

/* Waits for who learns just now; nobody does from then on.  False: it takes too long, or this
 * thread was interrupted at it. */
bool cupti_end_learning(void);

/*
 * Starts collecting into r's trace.  Once a process, after cuInit has succeeded.  `strings`
 * writes a text as a string record and returns its id.  Returns NULL, or a sentence that says
 * why there will be no device times.
 */
const char *cupti_start(struct recorder *r, uint32_t (*strings)(const char *text, uint64_t bytes));

/* Whether it was started. */
bool cupti_is_collecting(void);

/* Whether this kind of activity has to stay enabled for us. */
bool cupti_records(int kind);

/* Another client has come (share.h): from now on its clock is used.  A CUptiResult. */
int cupti_share(void);

/* Before the clock changes: what has ended is dated by the old one. */
void cupti_flush(void);

/* The other client flushes: it gets what came back at exit. */
void cupti_hand_on_waiting(void);

/* In the child of a fork: threads that held a lock are not there to release it. */
void cupti_forked(void);

#endif
