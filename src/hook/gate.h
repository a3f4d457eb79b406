/*
 * The gate: calls that put kernels on a device pass here first, those marked `gate` in
 * api/cuda.tbl.  A part of the library that regulates them sets the function in its start(); it may
 * wait, bounded, and must leave errno alone.
 */
#ifndef WEIR_HOOK_GATE_H
#define WEIR_HOOK_GATE_H

#include "fn_ids.h"
#include "hook/process.h"

static inline bool gate_is_open(void)
{
	return __builtin_expect(!__atomic_load_n(&hook_hot.gate, __ATOMIC_RELAXED), 1);
}

static inline void gate_enter(enum fn fn)
{
	gate_fn *gate = __atomic_load_n(&hook_hot.gate, __ATOMIC_RELAXED);
	if (__builtin_expect(gate != NULL, 0))
		gate((uint32_t)fn);
}

#endif
