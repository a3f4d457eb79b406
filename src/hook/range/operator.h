/*
 * PyTorch's NVTX observer (torch.autograd.profiler.emit_nvtx) writes messages of this form:
 *
 *	aten::mm, seq = 12, op_id = 3, sizes = [[8, 512], [512, 64]], input_op_ids = [(2,0), (0,-1)]
 *
 * The name and the sizes repeat and become strings of the trace. The numbers go into the range. The
 * observer reports no types, so the types of the surrounding module stand beside the sizes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "hook/range/range.h"

/* True, and *ret_range filled, when the message has PyTorch's form.  module: the number of the args
 * of the module around, 0 when there is none. */
bool operator_parse(const char *text, size_t bytes, uint32_t module, struct range_text *ret_range);

/* Whether a range of this name, of which no more is known, is an operator.  id: the name's number.
 */
bool operator_is(const char *name, size_t bytes, uint32_t id);

/* Told of each text that Python asks a number for: those of the form {"dtype":"float16"} are kept.
 */
void operator_set_args(uint32_t id, const char *text, size_t bytes);
void operator_forget(void); /* after a fork: numbers begin anew */
