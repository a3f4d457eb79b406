/* The wrappers of the driver's functions: wrapper_row.inc for each row of api/cuda.tbl. */
#include "hook/core/wrapper.h"

#define ROW_TEMPLATE "hook/wrapper_row.inc"
#include "hook_driver.h"
