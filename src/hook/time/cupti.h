/*
 * Takes device times from CUPTI's activity records: when each kernel, memcpy and memset ran, in
 * CLOCK_MONOTONIC. CUPTI is opened at run time, so the build needs nothing of it.
 *
 * Only activity records are requested, no callbacks. So CUPTI's one subscription stays free for
 * other clients, and a call costs only its record. CUPTI allocates and runs a thread of its own.
 * join.h finds the call of each activity later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/writer.h"

/* Waits for who learns just now; nobody does from then on.  False: it takes too long, or this
 * thread was interrupted at it. */
bool cupti_end_learning(void);

/* Before it starts: correlations are counted from CUPTI_CORRELATIONS on, since others stand in the
 * trace as well. */
void cupti_number_apart(void);

/* Collects nothing of what is launched from now on, or again; also before it was started. */
void cupti_pause(bool pause);

/* While it is paused: ends CUPTI for this process, since even a paused one makes each launch
 * more expensive; going on starts it anew.  Unfinished activities are not collected, so the GPU
 * should be idle.  False: it stays as it is, since another client has it or it can't be ended. */
bool cupti_leave(void);

/* Whether it was started. */
bool cupti_is_collecting(void);

/* Whether this kind of activity has to stay enabled for us. */
bool cupti_records(int kind);

/* Another client has come (cupti_shared.h): from now on its clock is used.  A CUptiResult. */
int cupti_share(void);

/* Before the clock changes: what has ended is dated by the old one. */
void cupti_flush(void);

/* The same where it is collecting. */
void cupti_hand_out(void);

/* The other client flushes: it gets what came back at exit. */
void cupti_hand_on_waiting(void);

/* Takes the rest of the buffers. */
void cupti_at_exit(void);

/* In the child of a fork: threads that held a lock are not there to release it. */
void cupti_forked(void);
