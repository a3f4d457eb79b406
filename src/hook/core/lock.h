/*
 * The lock of the injected library: each lock in src/hook is a struct lock.
 *
 * No thread takes a lock from its holder. A killed process's locks end with it. A forked child
 * frees the locks of its other threads. A signal handler never gets a lock that its own thread
 * holds. Other threads wait for a few seconds at most. If one waits in vain, no thread waits again
 * until the holder returns the lock. A thread without the lock goes on. Its call reaches the
 * driver, and the library counts each call that it could not record or mark.
 *
 * A section that no handler may leave holds back signals first (own_calls.h).  No lock is held
 * across the program's own call of the driver.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "hook/core/process.h"
#include "record/sandbox.h"

#define LOCK_SPINS  1000u
#define LOCK_NAPS   40000u /* two seconds at least */
#define LOCK_NAP_NS 50000
#define LOCK_VAIN   1u /* in vain: who comes next does not wait */

struct lock {
	/* 0, or a variable of the holder's thread by address, with LOCK_VAIN.  Bare clones that
	 * share its thread-local storage count as the holder. */
	_Atomic uint64_t holder;
};

/* Whether its holder may never give it back: what it guards is not to be waited for. */
static inline bool lock_is_vain(const struct lock *l)
{
	return load_relaxed(&l->holder) & LOCK_VAIN;
}

/* Does not wait. */
static inline bool lock_try(struct lock *l)
{
	const uint64_t own = (uint64_t)(uintptr_t)&hook_self;
	uint64_t seen = load_relaxed(&l->holder);
	/* Acquire pairs with the release of lock_give(). */
	if (!seen)
		return replace_if(&l->holder, &seen, own, acquire, relaxed);
	if (seen == own)
		replace_if(&l->holder, &seen, own | LOCK_VAIN, relaxed, relaxed);
	return false;
}

/* Waits for LOCK_SPINS looks, and then for so many naps.  A program that has shut itself in
 * (see sandbox.h) makes no system call here. */
static inline bool lock_take(struct lock *l, uint32_t naps)
{
	const struct timespec nap = { 0, LOCK_NAP_NS };
	uint64_t first = 0; /* the holder when the naps began */
	for (uint32_t i = 0; i < LOCK_SPINS + naps; i++) {
		if (lock_try(l))
			return true;
		if (lock_is_vain(l) || (i >= LOCK_SPINS && sandbox_is_closed(NULL)))
			return false;
		if (i == LOCK_SPINS)
			first = load_relaxed(&l->holder);
		if (i < LOCK_SPINS)
			cpu_pause();
		else
			sys(nanosleep, &nap, NULL);
	}
	/* If another took it meanwhile, that one is alive. */
	if (first)
		replace_if(&l->holder, &first, first | LOCK_VAIN, relaxed, relaxed);
	return lock_try(l);
}

static inline void lock_give(struct lock *l)
{
	store_release(&l->holder, 0);
}

/* In a forked child: whether a thread that is not here held it, so that what it guards is to be
 * dropped.  It is free. */
static inline bool lock_forked(struct lock *l)
{
	const bool held = load_relaxed(&l->holder);
	if (held) /* else the page is not written to: a child would have to copy it */
		lock_give(l);
	return held;
}
