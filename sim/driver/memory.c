/*
 * Allocation, and questions about pointers.
 */
#include "driver/sim.h"
#include "driver/gpu_file.h"
#include "driver/graph.h"

#include <string.h>

enum { PITCH = 512, MANAGED_FLAGS = 7, HOST_FLAGS = 7, REGISTER_FLAGS = 15 };

static int alloc(size_t size, enum range_kind kind, unsigned flags, struct range **ret_range)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_forbids();
	if (r)
		return r;
	r = range_alloc(ctx, size, kind, NULL, ret_range);
	if (!r)
		(*ret_range)->flags = flags;
	return r;
}

int sim_cuMemAlloc_v2(unsigned long long *ret_address, size_t size)
{
	struct range *range;

	if (!ret_address)
		return CUDA_ERROR_INVALID_VALUE;
	int r = alloc(size, RANGE_DEVICE, 0, &range);
	if (!r)
		*ret_address = range->base;
	return r;
}

int sim_cuMemAllocManaged(unsigned long long *ret_address, size_t size, unsigned flags)
{
	struct range *range;

	if (!ret_address || (flags != 1 && flags != 2))
		return CUDA_ERROR_INVALID_VALUE;
	int r = alloc(size, RANGE_MANAGED, flags, &range);
	if (!r)
		*ret_address = range->base;
	return r;
}

int sim_cuMemAllocPitch_v2(unsigned long long *ret_address, size_t *ret_pitch, size_t width,
	size_t height, unsigned element)
{
	struct range *range;
	size_t pitch, size;

	if (!ret_address || !ret_pitch || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(width, PITCH - 1, &pitch))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pitch &= ~(size_t)(PITCH - 1);
	if (__builtin_mul_overflow(pitch, height, &size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	int r = alloc(size, RANGE_DEVICE, 0, &range);
	if (r)
		return r;
	*ret_address = range->base;
	*ret_pitch = pitch;
	return CUDA_SUCCESS;
}

static bool is_free_able(enum range_kind kind)
{
	return kind == RANGE_DEVICE || kind == RANGE_MANAGED || kind == RANGE_ASYNC;
}

/* Freeing waits for the device, as the driver's own does. */
int sim_cuMemFree_v2(unsigned long long address)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r || !address)
		return r;
	r = capture_forbids();
	if (r)
		return r;
	context_wait(ctx);
	struct range *range = range_find(address);
	if (!range || range->base != address || !is_free_able(range->kind))
		return CUDA_ERROR_INVALID_VALUE;
	range_remove(range);
	pool_count_out(range);
	range_free(range);
	pools_settle();
	return CUDA_SUCCESS;
}

int sim_cuMemHostAlloc(void **ret_address, size_t size, unsigned flags)
{
	struct range *range;

	if (!ret_address || flags & ~(unsigned)HOST_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	int r = alloc(size, RANGE_HOST, flags, &range);
	if (!r)
		*ret_address = (void *)range->base;
	return r;
}

int sim_cuMemAllocHost_v2(void **ret_address, size_t size)
{
	return sim_cuMemHostAlloc(ret_address, size, 0);
}

int sim_cuMemAllocHost(void **ret_address, unsigned size)
{
	return sim_cuMemHostAlloc(ret_address, size, 0);
}

int sim_cuMemFreeHost(void *address)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	context_wait(ctx);
	struct range *range = range_find((uint64_t)address);
	if (!range || range->base != (uint64_t)address || range->kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	range_remove(range);
	range_free(range);
	return CUDA_SUCCESS;
}

int sim_cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
	struct context *ctx;
	struct range *range;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!address || !size || flags & ~(unsigned)REGISTER_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if ((uint64_t)address + size < size)
		return CUDA_ERROR_INVALID_VALUE;
	struct range like = {
		.base = (uint64_t)address,
		.size = size,
		.kind = RANGE_REGISTERED,
		.flags = flags,
		.device = ctx->device,
		.ctx = ctx,
	};
	r = range_add(&like, &range);
	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : r;
}

int sim_cuMemHostRegister(void *address, size_t size, unsigned flags)
	SIM_ALIAS(sim_cuMemHostRegister_v2);

int sim_cuMemHostUnregister(void *address)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	context_wait(ctx);
	struct range *range = range_find((uint64_t)address);
	if (!range || range->base != (uint64_t)address || range->kind != RANGE_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	range_remove(range);
	range_free(range);
	return CUDA_SUCCESS;
}

static bool is_host(const struct range *range)
{
	return range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED;
}

int sim_cuMemHostGetDevicePointer_v2(unsigned long long *ret_address, void *host, unsigned flags)
{
	struct range *range = range_find((uint64_t)host);

	if (!ret_address || flags || !range || !is_host(range))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = (uint64_t)host;
	return CUDA_SUCCESS;
}

int sim_cuMemHostGetFlags(unsigned *ret_flags, void *host)
{
	struct range *range = range_find((uint64_t)host);

	if (!ret_flags || !range || range->kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = range->flags;
	return CUDA_SUCCESS;
}

int sim_cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_free || !ret_total)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_free = gpu_shared() ? gpu_free_memory(ctx->device)
				 : script.memory_bytes - devices[ctx->device].used_bytes;
	*ret_total = script.memory_bytes;
	return CUDA_SUCCESS;
}

int sim_cuMemGetAddressRange_v2(
	unsigned long long *ret_base, size_t *ret_size, unsigned long long address)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	struct range *range = range_find(address);
	if (!range)
		return CUDA_ERROR_NOT_FOUND;
	if (ret_base)
		*ret_base = range->base;
	if (ret_size)
		*ret_size = range->size;
	return CUDA_SUCCESS;
}

static int memory_type(const struct range *range)
{
	return is_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/* How many bytes an attribute writes; 0 where it is unknown here. */
static size_t attribute_size(int attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return 8;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return 4;
	}
	return 0;
}

static uint64_t attribute_value(int attribute, const struct range *range, uint64_t address)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return range->kind == RANGE_ASYNC || range->kind == RANGE_MAPPED
			       ? 0
			       : (uint64_t)range->ctx;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return address;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return is_host(range) || range->kind == RANGE_MANAGED ? address : 0;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return range->id;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return range->base;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return range->size;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return (uint64_t)range->pool;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return (uint64_t)memory_type(range);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		return (uint64_t)range->sync_memops;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		return range->kind == RANGE_MANAGED;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return (uint64_t)range->device;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return 1;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	}
	return 0;
}

int sim_cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
	struct context *ctx;
	size_t size = attribute_size(attribute);
	int r = context_get(&ctx);

	if (r)
		return r;
	struct range *range = range_find(address);
	if (!data || !range || !size)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t value = attribute_value(attribute, range, address);
	if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !value)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &value, size); /* little endian: the low bytes come first */
	return CUDA_SUCCESS;
}

/* An unknown pointer is no error here: its attributes are zero, its device is -2. */
int sim_cuPointerGetAttributes(
	unsigned count, int *attributes, void **data, unsigned long long address)
{
	struct context *ctx;
	struct range *range = range_find(address);
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!count || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		size_t size = attribute_size(attributes[i]);
		if (!size || !data[i])
			return CUDA_ERROR_INVALID_VALUE;
		uint64_t value = range ? attribute_value(attributes[i], range, address) : 0;
		if (!range && attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			value = (uint32_t)-2;
		memcpy(data[i], &value, size);
	}
	return CUDA_SUCCESS;
}

int sim_cuPointerSetAttribute(void *value, int attribute, unsigned long long address)
{
	struct range *range = range_find(address);

	if (!value || !range || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	range->sync_memops = *(const int *)value != 0;
	return CUDA_SUCCESS;
}

static int managed(uint64_t address, size_t size)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	struct range *range = range_of(address, size);
	return range && range->kind == RANGE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuMemAdvise(unsigned long long address, size_t size, int advice, int device)
{
	return managed(address, size);
}

int sim_cuMemAdvise_v2(
	unsigned long long address, size_t size, int advice, unsigned long long location)
{
	return managed(address, size);
}

int sim_cuMemPrefetchAsync(unsigned long long address, size_t size, int device, void *stream)
{
	struct stream *s;
	int r = stream_get(stream, &s);

	return r ? r : managed(address, size);
}

int sim_cuMemPrefetchAsync_v2(unsigned long long address, size_t size, unsigned long long location,
	unsigned flags, void *stream)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : sim_cuMemPrefetchAsync(address, size, 0, stream);
}

int sim_cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	struct context *ctx;

	return context_get(&ctx);
}
