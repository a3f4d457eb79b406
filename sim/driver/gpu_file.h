/*
 * A device that processes share: those whose WEIR_SIM names the same file, gpu=FILE, map it and
 * find in it each device's law (src/law/law.h), the memory that each process has taken, and a lock.
 * The first process makes it; a file that no living process uses begins anew.
 *
 * Nobody runs the device: whoever has the lock first moves the law to the present, which is
 * CLOCK_MONOTONIC since the file began, times the speed.  Functions may be called under the driver
 * lock.
 *
 * A process that dies leaves its entry with its pid and start time, and who next waits, starts, or
 * needs memory takes its work and its memory off the device.  One that dies while it has the lock
 * may leave half a change: the laws begin anew, and each process hands over again what had not
 * ended.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "law/law.h"

/* Finds or makes the file; false, and a sentence on stderr, where that can't be. */
bool gpu_attach(void);
/* Whether there is such a device. */
bool gpu_shared(void);

/* The device's time; the CLOCK_MONOTONIC of one of its dates; and how long an interval is said to
 * be. */
uint64_t gpu_now_ns(void);
uint64_t gpu_host_ns(uint64_t ns);
uint64_t gpu_told_ns(uint64_t interval_ns);

/* 0, -EAGAIN: later; -ESTALE: see gpu_pop(). */
int gpu_submit(int device, struct law_work *work, uint64_t *ret_id);
/*
 * The kernels that have ended by now, at most max of them.  -ESTALE, once: all that was handed over
 * is lost and no id means anything any more.
 */
int gpu_pop(struct law_done *ret_done, size_t max, size_t *ret_count);
/* The CLOCK_MONOTONIC at which something of this process may end, or at which to look again at the
 * latest. */
uint64_t gpu_wake_ns(void);

/* This process has that many bytes now; false where all processes together would have too many. */
bool gpu_set_memory(int device, uint64_t bytes);
uint64_t gpu_free_memory(int device);
