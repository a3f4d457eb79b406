/*
 * Under a quota (weir run --memory) the calls marked `memory` in api/cuda.tbl are answered here.
 * memory_NAME() asks the quota first (src/share/quota.h), then the driver. Beyond the quota it
 * answers as the driver does when its memory is exhausted.
 *
 * Any thread may call, with any context. A call that cannot be counted goes to the driver.
 */
#pragma once

#include "hook/core/process.h"

/* The part of the library (hook_parts.h). */
void memory_start(void);
void memory_forget(void);
