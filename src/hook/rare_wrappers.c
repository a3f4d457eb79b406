/*
 * The wrappers of the other functions: of contexts, modules, graphs that are built, textures, and
 * what other libraries share.  The driver takes microseconds and more for each.
 */
#include "hook/core/wrapper.h"

#define WRAPPERS_ARE_RARE 1
#define ROW_TEMPLATE      "hook/wrapper_row.inc"
#include "hook_driver.h"
#include "hook_runtime.h"
