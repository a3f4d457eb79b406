/*
 * Short names for the usual accesses to an _Atomic object.  The name or the last words say the
 * order, as atomic_load_explicit() and its like do, which the rest goes through.  An access without
 * an order is a mistake: tools/check-atomics.sh finds it.
 */
#pragma once

#include <stdatomic.h>

#define load_relaxed(at)         atomic_load_explicit(at, memory_order_relaxed)
#define load_acquire(at)         atomic_load_explicit(at, memory_order_acquire)
#define store_relaxed(at, value) atomic_store_explicit(at, value, memory_order_relaxed)
#define store_release(at, value) atomic_store_explicit(at, value, memory_order_release)
#define add_relaxed(at, value)   atomic_fetch_add_explicit(at, value, memory_order_relaxed)
#define sub_relaxed(at, value)   atomic_fetch_sub_explicit(at, value, memory_order_relaxed)

/* Puts a value in the place of *seen, and is true; or else stores in *seen what is there.  The
 * orders of both: acq_rel, acquire. */
#define replace_if(at, seen, value, done, failed)                                                  \
	atomic_compare_exchange_strong_explicit(                                                   \
		at, seen, value, memory_order_##done, memory_order_##failed)

/* A word that is still shared with its writer, in an object that is plain to its other readers: a
 * record of a trace, an entry of a table. */
#define shared(at) ((_Atomic __typeof__(*(at)) *)(at))

/* Only for what one thread alone writes: others may read it meanwhile. */
#define add_alone(at, value) store_relaxed(at, load_relaxed(at) + (value))
