/* The functions that record driver calls that CUPTI reports (core/inject.c). */
#ifndef WEIR_HOOK_INJECTED_CALLS_H
#define WEIR_HOOK_INJECTED_CALLS_H

#include "fn_ids.h"
#include "hook/core/hook_parts.h"

extern injected_fn *const injected_calls[FN_DRIVER_END];

#endif
