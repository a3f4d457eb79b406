/* The records of calls that CUPTI reports: injected_row.inc for each row of api/cuda.tbl. */
#include "hook/injected_calls.h"

#include "hook/core/wrapper.h"

#define ROW_TEMPLATE "hook/injected_row.inc"
#include "hook_driver.h"

#undef ROW_TEMPLATE
#define ROW_TEMPLATE "hook/injected_entry.inc"
injected_fn *const injected_calls[FN_DRIVER_END] = {
#include "hook_driver.h"
};
