/*
 * Kernels on part of the SMs: streams of a green context, made once for a number of SMs.  Only
 * under MPS does that leave the other SMs to other programs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hook/sched/costs.h"

/* Whether blocks that wait for each other would still all run: the grid exceeds what the device
 * holds at once anyway, or is resident as a whole on cap_sms. */
bool cap_is_safe(const struct cost *c, uint32_t sms, uint32_t cap_sms);

/* A stream of cap_sms SMs that goes on behind the program's own; NULL: it can't be had, the launch
 * goes where it was sent.  Between cap_enter() and cap_leave() the lane is this thread's. */
struct cap_lane *cap_enter(
	int device, uint32_t cap_sms, void *stream, int per_thread, void **ret_stream);

/* All that the program sends to its stream from now on comes behind the kernel. */
void cap_leave(struct cap_lane *lane, void *stream, int per_thread);

/* A context ends, which green contexts would keep alive; with_all: whatever runs there. */
void cap_leave_contexts(bool with_all);

void cap_forget(void);
