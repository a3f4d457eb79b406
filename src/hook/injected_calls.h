/* The functions that record driver calls that CUPTI reports (core/inject.c). */
#pragma once

#include "fn_ids.h"
#include "hook/core/hook_parts.h"

extern injected_fn *const injected_calls[FN_DRIVER_END];
