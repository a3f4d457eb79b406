/*
 * Devices of the runtime API, and the names of errors.
 */
#include "rt.h"
#include "rt_errors.h"

#include <string.h>

struct device_properties { /* cudaDeviceProp */
	char name[256];
	char uuid[16];
	char luid[8];
	unsigned luid_mask;
	size_t total_memory, shared_per_block;
	int registers_per_block, warp_size;
	size_t pitch;
	int threads_per_block, block[3], grid[3];
	size_t constant;
	int major, minor;
	size_t texture_align, texture_pitch_align;
	int sms, integrated, can_map_host;
	int texture_sizes[34]; /* texture and surface limits: not simulated, zero */
	size_t surface_align;
	int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines;
	int unified_addressing, bus_width, l2_bytes, persisting_l2_bytes, threads_per_sm;
	int priorities, global_l1, local_l1;
	size_t shared_per_sm;
	int registers_per_sm, managed, multi_gpu, multi_gpu_group, native_atomics;
	int pageable, concurrent_managed, preemption, registered_pointer, cooperative;
	size_t shared_optin;
	int pageable_host_tables, direct_managed, blocks_per_sm, access_window;
	size_t shared_reserved;
	int host_register, sparse_array, read_only_register, timeline_semaphore, pools, rdma;
	unsigned rdma_flush;
	int rdma_order;
	unsigned pool_handles;
	int deferred_array, ipc_event, cluster, unified_functions, numa_config, numa_id, mps;
	int host_numa;
	unsigned pci_id, pci_subsystem;
	int host_numa_ipc;
	int reserved[56];
};

/* Which attribute fills which field; fields of size_t are filled by hand. */
static const struct {
	int attribute;
	size_t offset;
} int_fields[] = {
#define FIELD(name, field)                                                                         \
	{                                                                                          \
		CU_DEVICE_ATTRIBUTE_##name, offsetof(struct device_properties, field)              \
	}
	FIELD(MAX_REGISTERS_PER_BLOCK, registers_per_block),
	FIELD(WARP_SIZE, warp_size),
	FIELD(MAX_THREADS_PER_BLOCK, threads_per_block),
	FIELD(MAX_BLOCK_DIM_X, block[0]),
	FIELD(MAX_BLOCK_DIM_Y, block[1]),
	FIELD(MAX_BLOCK_DIM_Z, block[2]),
	FIELD(MAX_GRID_DIM_X, grid[0]),
	FIELD(MAX_GRID_DIM_Y, grid[1]),
	FIELD(MAX_GRID_DIM_Z, grid[2]),
	FIELD(COMPUTE_CAPABILITY_MAJOR, major),
	FIELD(COMPUTE_CAPABILITY_MINOR, minor),
	FIELD(MULTIPROCESSOR_COUNT, sms),
	FIELD(INTEGRATED, integrated),
	FIELD(CAN_MAP_HOST_MEMORY, can_map_host),
	FIELD(CONCURRENT_KERNELS, concurrent_kernels),
	FIELD(ECC_ENABLED, ecc),
	FIELD(PCI_BUS_ID, pci_bus),
	FIELD(ASYNC_ENGINE_COUNT, async_engines),
	FIELD(UNIFIED_ADDRESSING, unified_addressing),
	FIELD(GLOBAL_MEMORY_BUS_WIDTH, bus_width),
	FIELD(L2_CACHE_SIZE, l2_bytes),
	FIELD(MAX_PERSISTING_L2_CACHE_SIZE, persisting_l2_bytes),
	FIELD(MAX_THREADS_PER_MULTIPROCESSOR, threads_per_sm),
	FIELD(STREAM_PRIORITIES_SUPPORTED, priorities),
	FIELD(GLOBAL_L1_CACHE_SUPPORTED, global_l1),
	FIELD(LOCAL_L1_CACHE_SUPPORTED, local_l1),
	FIELD(MAX_REGISTERS_PER_MULTIPROCESSOR, registers_per_sm),
	FIELD(MANAGED_MEMORY, managed),
	FIELD(CONCURRENT_MANAGED_ACCESS, concurrent_managed),
	FIELD(COMPUTE_PREEMPTION_SUPPORTED, preemption),
	FIELD(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, registered_pointer),
	FIELD(COOPERATIVE_LAUNCH, cooperative),
	FIELD(MAX_BLOCKS_PER_MULTIPROCESSOR, blocks_per_sm),
	FIELD(MAX_ACCESS_POLICY_WINDOW_SIZE, access_window),
	FIELD(HOST_REGISTER_SUPPORTED, host_register),
	FIELD(MEMORY_POOLS_SUPPORTED, pools),
	FIELD(CLUSTER_LAUNCH, cluster),
	FIELD(NUMA_ID, numa_id),
#undef FIELD
};

static int attribute(int name, int device)
{
	int value = 0;

	rt_legacy.cuDeviceGetAttribute(&value, name, device);
	return value;
}

static size_t size_attribute(int name, int device)
{
	return (size_t)attribute(name, device);
}

static void fill_sizes(struct device_properties *p, int device)
{
	p->shared_per_block =
		size_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
	p->pitch = size_attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device);
	p->constant = size_attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
	p->texture_align = size_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device);
	p->texture_pitch_align =
		size_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, device);
	p->surface_align = size_attribute(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, device);
	p->shared_per_sm =
		size_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
	p->shared_optin =
		size_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
	p->shared_reserved =
		size_attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, device);
}

RT_FUNCTION(cudaGetDeviceProperties, (struct device_properties * ret, int device))
{
	int r = rt_begin_driver();

	if (!r && !ret)
		r = cudaErrorInvalidValue;
	if (r)
		return rt_end(r);
	memset(ret, 0, sizeof *ret);
	r = rt_legacy.cuDeviceGetName(ret->name, sizeof ret->name, device);
	if (r)
		return rt_end(r);
	rt_legacy.cuDeviceGetUuid_v2(ret->uuid, device);
	rt_legacy.cuDeviceTotalMem_v2(&ret->total_memory, device);
	for (size_t i = 0; i < sizeof int_fields / sizeof int_fields[0]; i++)
		*(int *)((char *)ret + int_fields[i].offset) =
			attribute(int_fields[i].attribute, device);
	fill_sizes(ret, device);
	return 0;
}

RT_FUNCTION(cudaGetDeviceCount, (int *ret_count))
{
	int r = rt_begin_driver();

	if (ret_count)
		*ret_count = 0;
	return rt_end(r ? r : rt_legacy.cuDeviceGetCount(ret_count));
}

RT_FUNCTION(cudaGetDevice, (int *ret_device))
{
	int r = rt_begin_driver();

	if (!r && !ret_device)
		r = cudaErrorInvalidValue;
	if (!r)
		*ret_device = rt_thread_device();
	return rt_end(r);
}

RT_FUNCTION(cudaSetDevice, (int device))
{
	void *ctx;
	int r = rt_begin_driver();

	if (!r)
		r = rt_legacy.cuDevicePrimaryCtxRetain(&ctx, device);
	if (r)
		return rt_end(r);
	rt_set_thread_device(device);
	r = rt_begin();
	return rt_end(r ? r : rt_legacy.cuCtxSetCurrent(ctx));
}

RT_FUNCTION(cudaInitDevice, (int device, unsigned device_flags, unsigned flags))
{
	void *ctx;
	int r = rt_begin_driver();

	return rt_end(r ? r : rt_legacy.cuDevicePrimaryCtxRetain(&ctx, device));
}

RT_FUNCTION(cudaDeviceReset, (void))
{
	int r = rt_begin();

	if (!r)
		r = rt_legacy.cuDevicePrimaryCtxReset_v2(rt_thread_device());
	rt_forget_contexts();
	return rt_end(r);
}

RT_FUNCTION(cudaSetDeviceFlags, (unsigned flags))
{
	int r = rt_begin_driver();

	return rt_end(r ? r : rt_legacy.cuDevicePrimaryCtxSetFlags_v2(rt_thread_device(), flags));
}

RT_FUNCTION(cudaGetDeviceFlags, (unsigned *ret_flags))
{
	int active, r = rt_begin_driver();

	return rt_end(
		r ? r
		  : rt_legacy.cuDevicePrimaryCtxGetState(rt_thread_device(), ret_flags, &active));
}

RT_FUNCTION(cudaDeviceGetAttribute, (int *ret_value, int name, int device))
{
	int r = rt_begin_driver();

	return rt_end(r ? r : rt_legacy.cuDeviceGetAttribute(ret_value, name, device));
}

static void *peer_context(int device)
{
	void *ctx = NULL;

	rt_legacy.cuDevicePrimaryCtxRetain(&ctx, device);
	return ctx;
}

RT_PASS(cudaDeviceSynchronize, cuCtxSynchronize, (void))
RT_PASS(cudaDeviceGetLimit, cuCtxGetLimit, (size_t * value, int limit), value, limit)
RT_PASS(cudaDeviceSetLimit, cuCtxSetLimit, (int limit, size_t value), limit, value)
RT_PASS(cudaDeviceGetCacheConfig, cuCtxGetCacheConfig, (int *config), config)
RT_PASS(cudaDeviceSetCacheConfig, cuCtxSetCacheConfig, (int config), config)
RT_PASS(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int *least, int *greatest),
	least, greatest)
RT_PASS(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *text, int size, int device), text, size,
	device)
RT_PASS(cudaDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, (int *device, const char *text), device,
	text)
RT_PASS(cudaDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int *can, int device, int peer), can,
	device, peer)
RT_PASS(cudaDeviceGetP2PAttribute, cuDeviceGetP2PAttribute,
	(int *value, int name, int device, int peer), value, name, device, peer)
RT_PASS(cudaDeviceEnablePeerAccess, cuCtxEnablePeerAccess, (int peer, unsigned flags),
	peer_context(peer), flags)
RT_PASS(cudaDeviceDisablePeerAccess, cuCtxDisablePeerAccess, (int peer), peer_context(peer))
RT_PASS(cudaCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, (void))
RT_PASS(cudaProfilerStart, cuProfilerStart, (void))
RT_PASS(cudaProfilerStop, cuProfilerStop, (void))

RT_EXPORT const char *cudaGetErrorName(int code);
const char *cudaGetErrorName(int code)
{
	const char *name = rt_error_name(code);

	return name ? name : "unrecognized error code";
}

RT_EXPORT const char *cudaGetErrorString(int code);
const char *cudaGetErrorString(int code)
{
	const char *text = rt_error_text(code);

	return text ? text : "unrecognized error code";
}
