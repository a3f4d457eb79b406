/*
 * Records without a preload: the driver loads this library because CUDA_INJECTION64_PATH names it.
 * CUPTI then reports driver calls, at about 100 ns a call more than a wrapper costs. Runtime calls,
 * cuInit and everything before it are not seen.
 */
#ifndef WEIR_HOOK_CORE_INJECT_H
#define WEIR_HOOK_CORE_INJECT_H

#include <stdint.h>

#include "fn_ids.h"

/* Records a call of which CUPTI has told: its arguments in a structure, its begin, its result. */
typedef void injected_fn(const void *params, uint64_t begun, int result, uint32_t want);
extern injected_fn *const injected_calls[FN_DRIVER_END];

#endif
