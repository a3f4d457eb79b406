/* The wrappers of the driver's functions that programs call often: wrapper_row.inc for rows of
 * api/cuda.tbl. */
#include "hook/core/wrapper.h"

#define WRAPPERS_ARE_RARE 0
#define ROW_TEMPLATE      "hook/wrapper_row.inc"
#include "hook_driver.h"
