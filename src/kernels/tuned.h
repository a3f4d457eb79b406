/* Which kernel was measured to be the fastest for a shape: in the cache, by device and description.
 */
#pragma once

#include "kernels/plan.h"

enum { TUNED_NAME = 80 };

/* false: nobody has measured this shape on such a device. */
bool tuned_get(const struct weir_kernels *k, const char *what, char ret_name[TUNED_NAME]);
void tuned_put(const struct weir_kernels *k, const char *what, const char *name);

/* All that a plan's description says, but which choice it takes. */
void rows_describe(const struct weir_rows *what, struct buf *ret);
void gemm_describe(const struct weir_gemm *what, struct buf *ret);
void conv_describe(const struct weir_conv *what, struct buf *ret);
