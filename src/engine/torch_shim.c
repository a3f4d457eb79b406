/* The functions are declared by PyTorch's shim.h and NVIDIA's cuda_runtime_api.h; nothing here is
 * declared anew but what Weir itself calls. */
#include "engine/torch_shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define PUBLIC    __attribute__((visibility("default")))
#define DIMS_MOST 64

/* Memory of a tensor and of its views. */
struct torch_storage {
	struct torch_shim *shim; /* whose space it is of; NULL: host memory of its own */
	struct gpu_holes *of;
	void *at;
	size_t bytes;
	unsigned tensors;
};

struct torch_tensor {
	struct torch_storage *storage; /* NULL: the memory is somebody else's */
	char *base;                    /* of the storage */
	size_t bytes;                  /* of the storage */
	int64_t offset;                /* in elements */
	int32_t type, device, index;
	int64_t dims, *stride;
	int64_t size[]; /* and the strides behind them */
};

static _Thread_local struct torch_shim *now;

void torch_shim_enter(struct torch_shim *s, struct gpu_holes *own)
{
	s->own = own;
	s->why.text[0] = 0;
	now = s;
}

void torch_shim_leave(void)
{
	now = NULL;
}

void torch_shim_disown(struct torch_shim *s, const struct gpu_holes *own)
{
	for (size_t i = 0; i < s->storage.n; i++)
		if (s->storage.v[i]->of == own)
			s->storage.v[i]->of = NULL;
}

void torch_shim_fini(struct torch_shim *s)
{
	array_free(&s->storage);
	array_free(&s->block);
}

static int32_t failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int32_t failed(const char *format, ...)
{
	if (!now || *now->why.text)
		return 1;
	va_list list;
	va_start(list, format);
	vsnprintf(now->why.text, sizeof now->why.text, format, list);
	va_end(list);
	return 1;
}

/* Bytes of an element of PyTorch's type, or 0. */
static unsigned torch_type_bytes(int32_t type)
{
	static const unsigned char bytes[] = { 1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
		2, [21] = 1, 2, 1, 1, 1, 1, 2, 4, 8 };
	return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

#define NUMBER(name, value)                                                                        \
	PUBLIC int32_t weir_torch_##name(void)                                                     \
	{                                                                                          \
		return value;                                                                      \
	}
NUMBER(dtype_uint8, 0)
NUMBER(dtype_int8, 1)
NUMBER(dtype_int16, 2)
NUMBER(dtype_int32, 3)
NUMBER(dtype_int64, 4)
NUMBER(dtype_float16, 5)
NUMBER(dtype_float32, 6)
NUMBER(dtype_float64, 7)
NUMBER(dtype_complex32, 8)
NUMBER(dtype_complex64, 9)
NUMBER(dtype_complex128, 10)
NUMBER(dtype_bool, 11)
NUMBER(dtype_bfloat16, 15)
NUMBER(dtype_float8_e5m2, 23)
NUMBER(dtype_float8_e4m3fn, 24)
NUMBER(dtype_uint16, 27)
NUMBER(dtype_uint32, 28)
NUMBER(dtype_uint64, 29)
NUMBER(device_type_cpu, TORCH_CPU)
NUMBER(device_type_cuda, TORCH_CUDA)
NUMBER(layout_strided, 0)
NUMBER(memory_format_contiguous_format, 0)

PUBLIC size_t weir_torch_dtype_element_size(int32_t type)
{
	return torch_type_bytes(type);
}

static void free_storage(struct torch_storage *s)
{
	struct torch_shim *shim = s->shim;
	if (!shim)
		free(s->at);
	for (size_t i = 0; shim && i < shim->storage.n; i++) {
		if (shim->storage.v[i] != s)
			continue;
		shim->storage.v[i] = shim->storage.v[--shim->storage.n];
		gpu_space_free(shim->space, s->of, (uint64_t)s->at, s->bytes);
		break;
	}
	free(s);
}

static int new_storage(size_t bytes, int32_t device, struct torch_storage **ret)
{
	uint64_t at;
	if (device != TORCH_CPU && device != TORCH_CUDA)
		return failed("a tensor is for a device of kind %d", device);
	if (device == TORCH_CPU) {
		void *memory = malloc(bytes + 1);
		if (!memory)
			return failed("%zu bytes of memory are not there", bytes);
		*ret = xmalloc(sizeof **ret);
		**ret = (struct torch_storage){ .at = memory, .bytes = bytes };
		return 0;
	}
	if (!now)
		return 1;
	struct error why;
	if (gpu_space_alloc(now->space, now->own, bytes, &at, &why))
		return failed("%s", why.text);
	*ret = xmalloc(sizeof **ret);
	**ret = (struct torch_storage){ now, now->own, (void *)at, bytes, 0 };
	*array_push(&now->storage) = *ret;
	return 0;
}

static bool has_no_element(int64_t dims, const int64_t *size)
{
	for (int64_t i = 0; i < dims; i++)
		if (!size[i])
			return true;
	return false;
}

/* From the first to behind the last element, in bytes. */
static int span(int64_t dims, const int64_t *size, const int64_t *stride, int32_t type, size_t *ret)
{
	size_t last = 0;
	const size_t each = torch_type_bytes(type);
	if (!each || dims < 0 || dims > DIMS_MOST)
		return failed("a tensor has type %d and %lld dimensions", type, (long long)dims);
	for (int64_t i = 0; i < dims; i++) {
		size_t more;
		if (size[i] < 0 || stride[i] < 0)
			return failed("a tensor has a negative size or stride");
		if (size[i] &&
			(__builtin_mul_overflow((size_t)size[i] - 1, (size_t)stride[i], &more) ||
				__builtin_add_overflow(last, more, &last)))
			return failed("a tensor is too large");
	}
	if (has_no_element(dims, size))
		*ret = 0;
	else if (__builtin_mul_overflow(last + 1, each, ret))
		return failed("a tensor is too large");
	return 0;
}

/* A further one of this memory. */
static torch_handle tensor(struct torch_storage *storage, char *base, size_t bytes, int64_t dims,
	const int64_t *size, const int64_t *stride, int64_t offset)
{
	torch_handle t = xmalloc(sizeof *t + 2 * (size_t)dims * sizeof *t->size);
	*t = (struct torch_tensor){ .storage = storage,
		.base = base,
		.bytes = bytes,
		.offset = offset,
		.dims = dims,
		.stride = t->size + dims };
	if (dims) {
		memcpy(t->size, size, (size_t)dims * sizeof *size);
		memcpy(t->stride, stride, (size_t)dims * sizeof *stride);
	}
	if (storage)
		storage->tensors++;
	return t;
}

static torch_handle view(torch_handle of, int64_t dims, const int64_t *size, const int64_t *stride,
	int64_t offset, int32_t type)
{
	torch_handle t = tensor(of->storage, of->base, of->bytes, dims, size, stride, offset);
	t->type = type;
	t->device = of->device;
	t->index = of->index;
	return t;
}

static char *data_of(torch_handle t)
{
	return t->base + t->offset * (int64_t)torch_type_bytes(t->type);
}

PUBLIC int32_t weir_torch_empty_strided(int64_t dims, const int64_t *size, const int64_t *stride,
	int32_t type, int32_t device, int32_t index, torch_handle *ret)
{
	size_t bytes;
	struct torch_storage *s;
	if (span(dims, size, stride, type, &bytes) || new_storage(bytes, device, &s))
		return 1;
	*ret = tensor(s, s->at, bytes, dims, size, stride, 0);
	(*ret)->type = type;
	(*ret)->device = device;
	(*ret)->index = index;
	return 0;
}

/* The driver copies from memory that is not pinned too. */
PUBLIC int32_t weir_torch_empty_strided_pinned(int64_t dims, const int64_t *size,
	const int64_t *stride, int32_t type, int32_t device, int32_t index, torch_handle *ret)
{
	return device == TORCH_CPU
		       ? weir_torch_empty_strided(dims, size, stride, type, device, index, ret)
		       : failed("pinned memory is for a device of kind %d", device);
}

PUBLIC int32_t weir_torch_create_tensor_from_blob(void *data, int64_t dims, const int64_t *size,
	const int64_t *stride, int64_t offset, int32_t type, int32_t device, int32_t index,
	torch_handle *ret)
{
	size_t bytes;
	if (span(dims, size, stride, type, &bytes))
		return 1;
	*ret = tensor(NULL, data, bytes + (size_t)offset * torch_type_bytes(type), dims, size,
		stride, offset);
	(*ret)->type = type;
	(*ret)->device = device;
	(*ret)->index = index;
	return 0;
}

PUBLIC int32_t weir_torch_create_tensor_from_blob_v2(void *data, int64_t dims, const int64_t *size,
	const int64_t *stride, int64_t offset, int32_t type, int32_t device, int32_t index,
	torch_handle *ret, int32_t layout, const uint8_t *metadata, int64_t metadata_bytes)
{
	if (layout || metadata_bytes)
		return failed("a weight has the layout %d", layout);
	return weir_torch_create_tensor_from_blob(
		data, dims, size, stride, offset, type, device, index, ret);
}

PUBLIC int32_t weir_torch__reinterpret_tensor(torch_handle t, int64_t dims, const int64_t *size,
	const int64_t *stride, int64_t offset, torch_handle *ret)
{
	*ret = view(t, dims, size, stride, offset, t->type);
	return 0;
}

PUBLIC int32_t weir_torch__alloc_from_pool(torch_handle t, int64_t offset_bytes, int32_t type,
	int64_t dims, const int64_t *size, const int64_t *stride, torch_handle *ret)
{
	const int64_t each = torch_type_bytes(type);
	if (!each || offset_bytes % each)
		return failed("a tensor of type %d is at byte %lld of a pool", type,
			(long long)offset_bytes);
	*ret = view(t, dims, size, stride, offset_bytes / each, type);
	return 0;
}

PUBLIC int32_t weir_torch_delete_tensor_object(torch_handle t)
{
	if (t && t->storage && --t->storage->tensors == 0)
		free_storage(t->storage);
	free(t);
	return 0;
}

#define SAYS(name, type, value)                                                                    \
	PUBLIC int32_t weir_torch_##name(torch_handle t, type *ret)                                \
	{                                                                                          \
		*ret = value;                                                                      \
		return 0;                                                                          \
	}
SAYS(new_tensor_handle, torch_handle, view(t, t->dims, t->size, t->stride, t->offset, t->type))
SAYS(assign_tensors_out, torch_handle, view(t, t->dims, t->size, t->stride, t->offset, t->type))
SAYS(get_data_ptr, void *, data_of(t))
SAYS(get_mutable_data_ptr, void *, data_of(t))
SAYS(get_const_data_ptr, const void *, data_of(t))
SAYS(get_storage_size, int64_t, (int64_t)t->bytes)
SAYS(get_dim, int64_t, t->dims)
SAYS(get_sizes, int64_t *, t->size)
SAYS(get_strides, int64_t *, t->stride)
SAYS(get_dtype, int32_t, t->type)
SAYS(get_device_type, int32_t, t->device)
SAYS(get_device_index, int32_t, t->index)
SAYS(get_storage_offset, int64_t, t->offset)
SAYS(get_layout, int32_t, t->dims < 0) /* always strided, which is 0 */
SAYS(is_defined, bool, t != NULL)

static int64_t elements(torch_handle t)
{
	int64_t n = 1;
	for (int64_t i = 0; i < t->dims; i++)
		n *= t->size[i];
	return n;
}
SAYS(get_numel, int64_t, elements(t))

static bool is_contiguous(torch_handle t)
{
	int64_t step = 1;
	for (int64_t i = t->dims; i-- > 0 && elements(t);) {
		if (t->size[i] != 1 && t->stride[i] != step)
			return false;
		step *= t->size[i];
	}
	return true;
}
SAYS(is_contiguous, bool, is_contiguous(t))

#define SAYS_AT(name, value)                                                                       \
	PUBLIC int32_t weir_torch_##name(torch_handle t, int64_t i, int64_t *ret)                  \
	{                                                                                          \
		i += i < 0 ? t->dims : 0;                                                          \
		if (i < 0 || i >= t->dims)                                                         \
			return failed("a tensor has no dimension %lld", (long long)i);             \
		*ret = value;                                                                      \
		return 0;                                                                          \
	}
SAYS_AT(get_size, t->size[i])
SAYS_AT(get_stride, t->stride[i])

static int32_t copy(torch_handle to, torch_handle from, size_t bytes)
{
	const struct gpu_driver *cu = &now->gpu->cu;
	const uint64_t to_at = (uint64_t)data_of(to), from_at = (uint64_t)data_of(from);
	struct error why;
	int e = 0;
	if (!bytes)
		return 0;
	if (to->device == TORCH_CPU && from->device == TORCH_CPU)
		memcpy(data_of(to), data_of(from), bytes);
	else if (to->device == TORCH_CPU)
		e = cu->cuMemcpyDtoHAsync_v2(data_of(to), from_at, bytes, now->stream);
	else if (from->device == TORCH_CPU)
		e = cu->cuMemcpyHtoDAsync_v2(to_at, data_of(from), bytes, now->stream);
	else
		e = cu->cuMemcpyDtoDAsync_v2(to_at, from_at, bytes, now->stream);
	if (!e && to->device != from->device) /* the host's side may change at once */
		e = cu->cuStreamSynchronize(now->stream);
	return gpu_check(now->gpu, e, "a copy", &why) ? failed("%s", why.text) : 0;
}

/* 0: each element of the span belongs to the tensor. */
static int dense_span(torch_handle t, size_t *ret)
{
	if (span(t->dims, t->size, t->stride, t->type, ret))
		return 1;
	return *ret != (size_t)elements(t) * torch_type_bytes(t->type);
}

static bool alike(torch_handle a, torch_handle b)
{
	if (a->type != b->type || a->dims != b->dims)
		return false;
	for (int64_t i = 0; i < a->dims; i++)
		if (a->size[i] != b->size[i] || (a->size[i] > 1 && a->stride[i] != b->stride[i]))
			return false;
	return true;
}

PUBLIC int32_t weir_torch_copy_(torch_handle to, torch_handle from, int32_t non_blocking)
{
	size_t bytes;
	if (!now || !alike(to, from) || dense_span(to, &bytes))
		return failed("a copy changes the type or the strides of a tensor");
	return copy(to, from, bytes);
}

PUBLIC int32_t weir_torch_clone_preserve_strides(torch_handle t, torch_handle *ret)
{
	size_t bytes;
	if (!now || span(t->dims, t->size, t->stride, t->type, &bytes) ||
		weir_torch_empty_strided(
			t->dims, t->size, t->stride, t->type, t->device, t->index, ret))
		return 1;
	const int32_t e = copy(*ret, t, bytes);
	if (e)
		weir_torch_delete_tensor_object(*ret);
	return e;
}

/* PyTorch keeps the strides of a dense tensor. */
PUBLIC int32_t weir_torch_clone(torch_handle t, torch_handle *ret)
{
	size_t bytes;
	if (dense_span(t, &bytes))
		return failed("a tensor with gaps is to be copied without them");
	return weir_torch_clone_preserve_strides(t, ret);
}

PUBLIC int32_t weir_torch_zero_(torch_handle t)
{
	size_t bytes;
	struct error why;
	if (!now || dense_span(t, &bytes))
		return failed("a tensor with gaps is to be zero");
	if (t->device == TORCH_CPU)
		memset(data_of(t), 0, bytes);
	else if (bytes && GPU_CALL(now->gpu, &why, cuMemsetD8Async, (uint64_t)data_of(t), 0, bytes,
				  now->stream))
		return failed("%s", why.text);
	return 0;
}

/* A guard is the stream before it. */
PUBLIC int32_t weir_torch_create_cuda_stream_guard(void *stream, int32_t index, void **ret)
{
	if (!now)
		return 1;
	*ret = now->stream;
	now->stream = stream;
	return 0;
}

PUBLIC int32_t weir_torch_delete_cuda_stream_guard(void *guard)
{
	if (now)
		now->stream = guard;
	return 0;
}

PUBLIC int32_t weir_torch_get_current_cuda_stream(int32_t index, void **ret)
{
	*ret = now ? now->stream : NULL;
	return !now;
}

/* There is one device. */
static int32_t only_device(int32_t index)
{
	return index > 0 ? failed("the model is for the device %d", index) : 0;
}

PUBLIC int32_t weir_torch_get_current_device_index(int32_t *ret)
{
	*ret = 0;
	return 0;
}

#define GUARD(name)                                                                                \
	PUBLIC int32_t weir_torch_create_##name(int32_t index, void **ret)                         \
	{                                                                                          \
		*ret = NULL;                                                                       \
		return only_device(index);                                                         \
	}                                                                                          \
	PUBLIC int32_t weir_torch_delete_##name(void *guard)                                       \
	{                                                                                          \
		return 0;                                                                          \
	}                                                                                          \
	PUBLIC int32_t weir_torch_##name##_set_index(void *guard, int32_t index)                   \
	{                                                                                          \
		return only_device(index);                                                         \
	}
GUARD(device_guard)
GUARD(cuda_guard)

PUBLIC bool weir_torch_grad_mode_is_enabled(void)
{
	return false;
}

PUBLIC void weir_torch_grad_mode_set_enabled(bool enabled)
{
}

PUBLIC void weir_torch_check(
	bool holds, const char *function, const char *file, uint32_t line, const char *text)
{
	if (holds)
		return;
	failed("a check of the model failed: %s", text);
	if (now && now->raise)
		now->raise(text);
}

PUBLIC void weir_torch_warn(const char *function, const char *file, uint32_t line, const char *text)
{
}

/* The CUDA runtime's numbers of errors are the driver's. */
enum { NO_DEVICE = 100, INVALID_VALUE = 1, NO_MEMORY = 2 };
enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE };

PUBLIC int weirGetDevice(int *ret)
{
	*ret = 0;
	return 0;
}

PUBLIC int weirSetDevice(int index)
{
	return index ? NO_DEVICE : 0;
}

PUBLIC int weirGetLastError(void)
{
	return 0;
}

PUBLIC const char *weirGetErrorString(int code)
{
	const char *name = NULL;
	if (!code)
		return "no error";
	return now && !now->gpu->cu.cuGetErrorName(code, &name) && name ? name : "an error";
}

PUBLIC int weirMalloc(void **ret, size_t bytes)
{
	uint64_t at;
	struct error why;
	if (!now)
		return NO_DEVICE;
	if (gpu_space_alloc(now->space, NULL, bytes, &at, &why)) {
		failed("%s", why.text);
		return NO_MEMORY;
	}
	*array_push(&now->block) = (struct torch_block){ at, bytes };
	*ret = (void *)at;
	return 0;
}

PUBLIC int weirFree(void *at)
{
	for (size_t i = 0; now && i < now->block.n; i++) {
		const struct torch_block b = now->block.v[i];
		if (b.at != (uint64_t)at)
			continue;
		now->block.v[i] = now->block.v[--now->block.n];
		gpu_space_free(now->space, NULL, b.at, b.bytes);
		return 0;
	}
	return at ? INVALID_VALUE : 0;
}

PUBLIC int32_t weir_torch_cuda_caching_allocator_raw_alloc(uint64_t bytes, void **ret)
{
	return weirMalloc(ret, bytes);
}

PUBLIC int32_t weir_torch_cuda_caching_allocator_raw_delete(void *at)
{
	return weirFree(at);
}

PUBLIC int weirMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	if (!now)
		return NO_DEVICE;
	const struct gpu_driver *cu = &now->gpu->cu;
	const uint64_t from_at = (uint64_t)from;
	if (!bytes)
		return 0;
	switch (kind) {
	case HOST_TO_HOST:
		memcpy(to, from, bytes);
		return 0;
	case HOST_TO_DEVICE:
		return cu->cuMemcpyHtoDAsync_v2((uint64_t)to, from, bytes, stream);
	case DEVICE_TO_HOST:
		return cu->cuMemcpyDtoHAsync_v2(to, from_at, bytes, stream);
	case DEVICE_TO_DEVICE:
		return cu->cuMemcpyDtoDAsync_v2((uint64_t)to, from_at, bytes, stream);
	default:
		return INVALID_VALUE;
	}
}

/* What the driver does in the same words. */
#define PASSED_ON(name, parameters, call)                                                          \
	PUBLIC int weir##name parameters                                                           \
	{                                                                                          \
		return now ? now->gpu->cu.call : NO_DEVICE;                                        \
	}
PASSED_ON(StreamSynchronize, (void *stream), cuStreamSynchronize(stream))
PASSED_ON(StreamDestroy, (void *stream), cuStreamDestroy_v2(stream))
PASSED_ON(StreamCreateWithFlags, (void **ret, unsigned flags),
	cuStreamCreateWithPriority(ret, flags, 0))
PASSED_ON(EventCreate, (void **ret), cuEventCreate(ret, 0))
PASSED_ON(EventCreateWithFlags, (void **ret, unsigned flags), cuEventCreate(ret, flags))
PASSED_ON(EventDestroy, (void *event), cuEventDestroy_v2(event))
PASSED_ON(EventQuery, (void *event), cuEventQuery(event))
PASSED_ON(EventSynchronize, (void *event), cuEventSynchronize(event))
PASSED_ON(EventRecord, (void *event, void *stream), cuEventRecord(event, stream))

PUBLIC int weirMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	const int e = now ? weirMemcpyAsync(to, from, bytes, kind, now->stream) : NO_DEVICE;
	return e ? e : weirStreamSynchronize(now->stream);
}
