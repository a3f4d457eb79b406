/*
 * The scheduler's half inside a program: docs/arbiter-protocol.md.  Joins the shared file with the
 * first launch on a device; publishes requests of a latency program; has launches of a best-effort
 * one wait, or go to fewer SMs, by src/share/rule.h.
 *
 * Any thread, also a signal handler between any two lines.  No heap; the one lock (marks.c) is only
 * ever tried.  Fails open: what can't be looked up, marked or joined passes.
 */
#ifndef WEIR_HOOK_SCHED_H
#define WEIR_HOOK_SCHED_H

#include "hook/sched/gated.h"

void sched_kernel(struct gated *g, const struct sched_launch *l);
void sched_other(struct gated *g, const struct sched_launch *l);
void sched_joined(const struct gated *g);
void sched_passed(const struct gated *g, int result);

void sched_settling(
	struct settling *s, enum settles what, void *event, void *stream, int per_thread);
void sched_settled(const struct settling *s);

struct member;

/* The program says that it is inside of a request on that device, or that one has ended: then it is
 * outside, when none is left (requests.h). */
void sched_enter_request(struct member *m);
void sched_leave_request(struct member *m);

/* The part of the library (process.h). */
void sched_start(void);
void sched_forget(void);
void sched_at_exit(void);

#endif
