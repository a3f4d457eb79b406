/*
 * The scheduler inside a program (docs/arbiter-protocol.md). It joins the shared file at the first
 * launch and publishes a latency program's requests. It makes a best-effort program's launches wait
 * or use fewer SMs (src/share/rule.h).
 *
 * Any thread may call, and a signal handler between any two lines. Nothing uses the heap, and the
 * one lock (marks.c) is only tried. If a launch cannot be looked up, marked or joined, it passes.
 */
#pragma once

#include "base/atomic.h"
#include "hook/core/process.h"
#include "hook/core/gate.h"
#include "hook/sched/streams.h"
#include "share/rule.h"
#include "share/segment.h"

extern _Atomic uint32_t sched_generation; /* goes up when what is remembered may be gone */

void sched_launch(struct gated *g, const struct launch_shape *l);
void sched_joined(const struct gated *g);
void sched_passed(const struct gated *g, int result);

void sched_settling(struct settling *s, int what, void *event, void *stream, bool per_thread);
void sched_settled(const struct settling *s, int result);

struct member;

/* The program says that it is inside of a request on that device, or that one has ended: then it is
 * outside, when none is left (requests.h). */
void sched_enter_request(struct member *m);
void sched_leave_request(struct member *m);

/* One that it said took so long. */
void sched_tell_request(struct member *m, uint64_t took_ns);
void sched_functions_end(void);
void sched_driver_begins(void);

/* The part of the library (hook_parts.h). */
void sched_start(void);
void sched_forget(void);
void sched_at_exit(void);
