/* A libtorch with what one model needs (WHOLE), or a library without anything.  Its tensors are
 * where their maker says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

#ifdef WHOLE
struct torch_tensor {
	void *data;
	int64_t dims, size[8], stride[8];
	int32_t type;
};

PUBLIC int32_t aoti_torch_create_tensor_from_blob(void *data, int64_t dims, const int64_t *size,
	const int64_t *stride, int64_t offset, int32_t type, int32_t device, int32_t index,
	struct torch_tensor **ret)
{
	struct torch_tensor *t = calloc(1, sizeof *t);
	(void)offset;
	(void)index;
	t->data = data;
	t->dims = dims;
	t->type = type;
	memcpy(t->size, size, (size_t)dims * sizeof *size);
	memcpy(t->stride, stride, (size_t)dims * sizeof *stride);
	*ret = t;
	return device != 1;
}

PUBLIC int32_t aoti_torch_new_tensor_handle(struct torch_tensor *t, struct torch_tensor **ret)
{
	*ret = malloc(sizeof **ret);
	**ret = *t;
	return 0;
}

PUBLIC int32_t aoti_torch_delete_tensor_object(struct torch_tensor *t)
{
	free(t);
	return 0;
}

PUBLIC int32_t aoti_torch_cuda_addmm_out(struct torch_tensor *t)
{
	return t->type != 6;
}

#define SAYS(name, what, value)                                                                    \
	PUBLIC int32_t aoti_torch_##name(struct torch_tensor *t, what *ret)                        \
	{                                                                                          \
		*ret = value;                                                                      \
		return 0;                                                                          \
	}
SAYS(get_data_ptr, void *, t->data)
SAYS(get_dtype, int32_t, t->type)
SAYS(get_dim, int64_t, t->dims)
SAYS(get_sizes, int64_t *, t->size)
SAYS(get_strides, int64_t *, t->stride)
#else
static const char without_anything __attribute__((used));
#endif
