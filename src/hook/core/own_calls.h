/*
 * Brackets driver calls of the library's own in the middle of a program's call. Signals are
 * blocked, since a handler might never return. The thread's capture mode changes meanwhile, so
 * another thread's capture is not disturbed.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/sys.h"
#include "hook/core/hook_table.h"
#include "record/sandbox.h"

#define RELAXED 2 /* CUstreamCaptureMode */

struct held_signals {
	uint64_t mask;
	bool is_blocked;
};

static inline void signals_hold(struct held_signals *h)
{
	const uint64_t all = ~0ull;
	h->is_blocked = !sandbox_is_closed(NULL);
	if (h->is_blocked)
		sys(rt_sigprocmask, SIG_BLOCK, &all, &h->mask, 8);
}

static inline void signals_release(const struct held_signals *h)
{
	if (h->is_blocked)
		sys(rt_sigprocmask, SIG_SETMASK, &h->mask, NULL, 8);
}

/* NULL: there is none, or the driver can't be asked. */
static inline void *current_context(void)
{
	void *context = NULL;
	return real_at(FN_cuCtxGetCurrent) && !REAL(cuCtxGetCurrent)(&context) ? context : NULL;
}

struct own_calls {
	struct held_signals signals;
	int mode;
};

/*
 * Another thread may begin a capture at any time that forbids everybody what is no work of a
 * stream.  Not to a thread that says it means it.
 */
static inline void own_calls_exchange(int *mode)
{
	if (real_at(FN_cuThreadExchangeStreamCaptureMode))
		REAL(cuThreadExchangeStreamCaptureMode)(mode);
}

static inline void own_calls_begin(struct own_calls *o)
{
	o->mode = RELAXED;
	signals_hold(&o->signals);
	own_calls_exchange(&o->mode);
}

static inline void own_calls_end(struct own_calls *o)
{
	own_calls_exchange(&o->mode);
	signals_release(&o->signals);
}
