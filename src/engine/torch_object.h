/*
 * The shared object of a model that PyTorch's AOTInductor compiled.  It calls functions of libtorch
 * and of the CUDA runtime.  Weir has the few that models without other operators need, under names
 * of its own, so that libtorch can be in the same process: this renames them in the object.
 *
 * The object is an ELF file of 64 bits in memory.  Failures are -EINVAL and a sentence.
 */
#pragma once

#include <stdbool.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/error.h"

/* The object's calls of libtorch and the CUDA runtime, in the object's memory. */
struct torch_calls {
	ARRAY(const char *) name;
	bool catches; /* it has C++ in it, and may catch exceptions */
};

int torch_object_calls(const struct buf *object, struct torch_calls *ret, struct error *err);
/* Each of these functions gets "weir" for its first four letters, the object no longer asks the
 * loader for libtorch, and it shares no symbol with another model. */
int torch_object_rename(struct buf *object, struct error *err);
