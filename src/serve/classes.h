/*
 * The classification extension: instead of an output's values the largest of them, each as the
 * text "value:index" or "value:index:label".  Also what walks elements of BYTES.  Pure.
 */
#pragma once

#include <stdbool.h>

#include "tensor/tensor.h"

/* Bytes of so many elements of BYTES, which have been checked. */
size_t bytes_skip(const void *data, uint64_t elements);

/* Replaces the tensor by its classes, whose text is in `memory`.  -EINVAL: its values have no
 * order. */
int classes_put(struct tensor *t, bool batched, uint32_t classes, char *const *labels,
	size_t nlabels, struct buf *memory, struct error *err);
