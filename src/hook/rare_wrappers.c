/*
 * The wrappers of the other functions: of copies, memory, contexts, modules, graphs that are built,
 * textures, and what other libraries share.  The driver takes about a microsecond and more for
 * each.  Queries are here when they fail.
 */
#include "hook/core/wrapper.h"

#define WRAPPERS_ARE_RARE 1
#define ROW_TEMPLATE      "hook/wrapper_row.inc"
#include "hook_driver.h"
#include "hook_runtime.h"
