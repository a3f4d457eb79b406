/*
 * A model that PyTorch's AOTInductor compiled calls these of libtorch and the CUDA runtime, if all
 * its operators were compiled: tensors that are an address with sizes and strides, device memory,
 * and the current stream.  The names begin with "weir" where those of libtorch begin with "aoti"
 * and those of the runtime with "cuda" (torch_package.h), and the program exports them.
 *
 * A function works for the model that the calling thread has entered, and returns 0 or, after it
 * has left a sentence there, another number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "gpu/cuda_device.h"

/* Numbers of PyTorch. */
enum { TORCH_CPU = 0, TORCH_CUDA = 1 };

struct torch_storage;
struct torch_shim {
	struct gpu *gpu;
	struct gpu_space *space;
	void *stream;
	/* The compiler's function that throws std::runtime_error, as libtorch does where a check
	 * of the model fails; or NULL: the call goes on, and fails behind it. */
	void (*raise)(const char *why);
	ARRAY(struct torch_storage *) storage; /* of tensors that live */
	ARRAY(struct torch_block {
		uint64_t at;
		size_t bytes;
	})
	block;                 /* that the model allocated itself */
	struct gpu_holes *own; /* where memory comes from and returns to first; or NULL */
	struct error why;      /* of the first failure since it was entered; or "" */
};

/* The calling thread works for this model until torch_shim_leave(). */
void torch_shim_enter(struct torch_shim *s, struct gpu_holes *own);
void torch_shim_leave(void);
/* Memory of these holes that tensors still have returns to the space's own. */
void torch_shim_disown(struct torch_shim *s, const struct gpu_holes *own);
void torch_shim_fini(struct torch_shim *s);

typedef struct torch_tensor *torch_handle;

/* The functions that Weir itself calls, its own or libtorch's. */
#define TORCH_USED(X)                                                                              \
	X(create_tensor_from_blob, (void *data, int64_t dims, const int64_t *size,                 \
					   const int64_t *stride, int64_t offset, int32_t type,    \
					   int32_t device, int32_t index, torch_handle *ret))      \
	X(delete_tensor_object, (torch_handle t))                                                  \
	X(get_data_ptr, (torch_handle t, void **ret))                                              \
	X(get_dtype, (torch_handle t, int32_t * ret))                                              \
	X(get_dim, (torch_handle t, int64_t * ret))                                                \
	X(get_sizes, (torch_handle t, int64_t * *ret))                                             \
	X(get_strides, (torch_handle t, int64_t * *ret))

#define TORCH_DECLARE(name, parameters) int32_t weir_torch_##name parameters;
TORCH_USED(TORCH_DECLARE)
#undef TORCH_DECLARE
