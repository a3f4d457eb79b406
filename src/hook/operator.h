/*
 * What PyTorch's own NVTX observer (torch.autograd.profiler.emit_nvtx) puts into a message:
 *
 *	aten::mm, seq = 12, op_id = 3, sizes = [[8, 512], [512, 64]], input_op_ids = [(2,0), (0,-1)]
 *
 * Every message is different, and what stays the same of it is its name and the sizes: those
 * become strings of the trace, the numbers go into the range.
 */
#ifndef WEIR_HOOK_OPERATOR_H
#define WEIR_HOOK_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "hook/range.h"

/* True, and *ret_range filled, when the message has PyTorch's form. */
bool operator_parse(const char *text, size_t bytes, struct range_text *ret_range);

#endif
