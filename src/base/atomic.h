/*
 * Short names for the four usual accesses to an _Atomic object.  The name says the order, as
 * atomic_load_explicit() and its like do, which the rest goes through.  An access without an order
 * is a mistake: tools/check-atomics.sh finds it.
 */
#pragma once

#include <stdatomic.h>

#define load_relaxed(at)         atomic_load_explicit(at, memory_order_relaxed)
#define load_acquire(at)         atomic_load_explicit(at, memory_order_acquire)
#define store_relaxed(at, value) atomic_store_explicit(at, value, memory_order_relaxed)
#define store_release(at, value) atomic_store_explicit(at, value, memory_order_release)

/* A word that is still shared with its writer, in an object that is plain to its other readers: a
 * record of a trace, an entry of a table. */
#define shared(at) ((_Atomic __typeof__(*(at)) *)(at))

/* Only for what one thread alone writes: others may read it meanwhile. */
#define add_alone(at, value) store_relaxed(at, load_relaxed(at) + (value))
