/*
 * The gate: calls that put kernels on a device pass here first, those marked `gate` in
 * api/cuda.tbl, recorded or not, and also while a stream is captured.  A part of the library that
 * regulates them sets hook_hot.gate in its start(); there is one at a time.  It is told the
 * function alone; it may wait, bounded, and must leave errno alone.  What only CUPTI tells of
 * (inject.h) does not pass here.
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
