/*
 * A few driver calls of the library's own, in the middle of one of the program's: no signal handler
 * of the program comes between them, which might never return, and what another thread captures is
 * not disturbed.  The thread's capture mode is changed meanwhile, so that nobody may see it.
 */
#ifndef WEIR_HOOK_SCHED_OWN_CALLS_H
#define WEIR_HOOK_SCHED_OWN_CALLS_H

#include <signal.h>
#include <stdbool.h>

#include "base/sys.h"
#include "hook/hook_table.h"
#include "record/sandbox.h"

#define RELAXED 2 /* CUstreamCaptureMode */

struct own_calls {
	uint64_t mask;
	int mode;
	bool is_blocked;
};

/*
 * Another thread may begin a capture at any time that forbids everybody what is no work of a
 * stream.  Not to a thread that says it means it.
 */
static inline void own_calls_exchange(int *mode)
{
	if (hook_real[FN_cuThreadExchangeStreamCaptureMode])
		REAL(cuThreadExchangeStreamCaptureMode, int *)(mode);
}

static inline void own_calls_begin(struct own_calls *o)
{
	const uint64_t all = ~0ull;
	*o = (struct own_calls){ .mode = RELAXED, .is_blocked = !sandbox_is_closed(NULL) };
	if (o->is_blocked)
		sys(rt_sigprocmask, SIG_BLOCK, &all, &o->mask, 8);
	own_calls_exchange(&o->mode);
}

static inline void own_calls_end(struct own_calls *o)
{
	own_calls_exchange(&o->mode);
	if (o->is_blocked)
		sys(rt_sigprocmask, SIG_SETMASK, &o->mask, NULL, 8);
}

#endif
