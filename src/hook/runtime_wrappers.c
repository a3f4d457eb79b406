/* The wrappers of the runtime's functions: wrapper_row.inc for each row of api/cudart.tbl. */
#include "hook/core/wrapper.h"

#define ROW_TEMPLATE "hook/wrapper_row.inc"
#include "hook_runtime.h"
