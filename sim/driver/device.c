/*
 * The devices: what they say about themselves, and how much of their memory is taken.
 * The numbers are those of an H200 as published; what the simulator cannot do is denied
 * in the attributes, so that a program which asks before it uses goes another way.
 */
#include "driver/sim.h"
#include "driver/gpu_file.h"

#include <stdio.h>
#include <string.h>

#define ATTR(name) CU_DEVICE_ATTRIBUTE_##name

struct device devices[16];

static const int attributes[] = {
	[ATTR(MAX_THREADS_PER_BLOCK)] = DEVICE_BLOCK_THREADS,
	[ATTR(MAX_BLOCK_DIM_X)] = 1024,
	[ATTR(MAX_BLOCK_DIM_Y)] = 1024,
	[ATTR(MAX_BLOCK_DIM_Z)] = 64,
	[ATTR(MAX_GRID_DIM_X)] = 2147483647,
	[ATTR(MAX_GRID_DIM_Y)] = 65535,
	[ATTR(MAX_GRID_DIM_Z)] = 65535,
	[ATTR(MAX_SHARED_MEMORY_PER_BLOCK)] = DEVICE_BLOCK_SHARED,
	[ATTR(TOTAL_CONSTANT_MEMORY)] = 65536,
	[ATTR(WARP_SIZE)] = 32,
	[ATTR(MAX_PITCH)] = 2147483647,
	[ATTR(MAX_REGISTERS_PER_BLOCK)] = 65536,
	[ATTR(CLOCK_RATE)] = 1980000,
	[ATTR(TEXTURE_ALIGNMENT)] = 512,
	[ATTR(GPU_OVERLAP)] = 1,
	[ATTR(MULTIPROCESSOR_COUNT)] = DEVICE_SMS,
	[ATTR(CAN_MAP_HOST_MEMORY)] = 1,
	[ATTR(MAXIMUM_TEXTURE1D_WIDTH)] = 131072,
	[ATTR(MAXIMUM_TEXTURE2D_WIDTH)] = 131072,
	[ATTR(MAXIMUM_TEXTURE2D_HEIGHT)] = 65536,
	[ATTR(MAXIMUM_TEXTURE3D_WIDTH)] = 16384,
	[ATTR(MAXIMUM_TEXTURE3D_HEIGHT)] = 16384,
	[ATTR(MAXIMUM_TEXTURE3D_DEPTH)] = 16384,
	[ATTR(MAXIMUM_TEXTURE2D_LAYERED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)] = 32768,
	[ATTR(MAXIMUM_TEXTURE2D_LAYERED_LAYERS)] = 2048,
	[ATTR(SURFACE_ALIGNMENT)] = 512,
	[ATTR(CONCURRENT_KERNELS)] = 1,
	[ATTR(ECC_ENABLED)] = 1,
	[ATTR(MEMORY_CLOCK_RATE)] = 3201000,
	[ATTR(GLOBAL_MEMORY_BUS_WIDTH)] = 6144,
	[ATTR(L2_CACHE_SIZE)] = 62914560,
	[ATTR(MAX_THREADS_PER_MULTIPROCESSOR)] = DEVICE_SM_THREADS,
	[ATTR(ASYNC_ENGINE_COUNT)] = 3,
	[ATTR(UNIFIED_ADDRESSING)] = 1,
	[ATTR(MAXIMUM_TEXTURE1D_LAYERED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_TEXTURE1D_LAYERED_LAYERS)] = 2048,
	[ATTR(CAN_TEX2D_GATHER)] = 1,
	[ATTR(MAXIMUM_TEXTURE2D_GATHER_WIDTH)] = 32768,
	[ATTR(MAXIMUM_TEXTURE2D_GATHER_HEIGHT)] = 32768,
	[ATTR(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)] = 8192,
	[ATTR(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)] = 8192,
	[ATTR(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)] = 32768,
	[ATTR(TEXTURE_PITCH_ALIGNMENT)] = 32,
	[ATTR(MAXIMUM_TEXTURECUBEMAP_WIDTH)] = 32768,
	[ATTR(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS)] = 2046,
	[ATTR(MAXIMUM_SURFACE1D_WIDTH)] = 32768,
	[ATTR(MAXIMUM_SURFACE2D_WIDTH)] = 131072,
	[ATTR(MAXIMUM_SURFACE2D_HEIGHT)] = 65536,
	[ATTR(MAXIMUM_SURFACE3D_WIDTH)] = 16384,
	[ATTR(MAXIMUM_SURFACE3D_HEIGHT)] = 16384,
	[ATTR(MAXIMUM_SURFACE3D_DEPTH)] = 16384,
	[ATTR(MAXIMUM_SURFACE1D_LAYERED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_SURFACE1D_LAYERED_LAYERS)] = 2048,
	[ATTR(MAXIMUM_SURFACE2D_LAYERED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_SURFACE2D_LAYERED_HEIGHT)] = 32768,
	[ATTR(MAXIMUM_SURFACE2D_LAYERED_LAYERS)] = 2048,
	[ATTR(MAXIMUM_SURFACECUBEMAP_WIDTH)] = 32768,
	[ATTR(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS)] = 2046,
	[ATTR(MAXIMUM_TEXTURE1D_LINEAR_WIDTH)] = 268435456,
	[ATTR(MAXIMUM_TEXTURE2D_LINEAR_WIDTH)] = 131072,
	[ATTR(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)] = 65000,
	[ATTR(MAXIMUM_TEXTURE2D_LINEAR_PITCH)] = 2097120,
	[ATTR(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)] = 32768,
	[ATTR(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)] = 32768,
	[ATTR(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)] = 32768,
	[ATTR(STREAM_PRIORITIES_SUPPORTED)] = 1,
	[ATTR(GLOBAL_L1_CACHE_SUPPORTED)] = 1,
	[ATTR(LOCAL_L1_CACHE_SUPPORTED)] = 1,
	[ATTR(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)] = DEVICE_SM_SHARED,
	[ATTR(MAX_REGISTERS_PER_MULTIPROCESSOR)] = DEVICE_SM_REGISTERS,
	[ATTR(MANAGED_MEMORY)] = 1,
	[ATTR(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)] = 2,
	[ATTR(CONCURRENT_MANAGED_ACCESS)] = 1,
	[ATTR(COMPUTE_PREEMPTION_SUPPORTED)] = 1,
	[ATTR(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)] = 1,
	[ATTR(COOPERATIVE_LAUNCH)] = 1,
	[ATTR(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)] = DEVICE_BLOCK_SHARED_OPTIN,
	[ATTR(HOST_REGISTER_SUPPORTED)] = 1,
	[ATTR(VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED)] = 1,
	[ATTR(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)] = 1,
	[ATTR(MAX_BLOCKS_PER_MULTIPROCESSOR)] = DEVICE_SM_BLOCKS,
	[ATTR(MAX_PERSISTING_L2_CACHE_SIZE)] = 39321600,
	[ATTR(MAX_ACCESS_POLICY_WINDOW_SIZE)] = 134213632,
	[ATTR(RESERVED_SHARED_MEMORY_PER_BLOCK)] = DEVICE_BLOCK_RESERVED,
	[ATTR(MEMORY_POOLS_SUPPORTED)] = 1,
	[ATTR(CLUSTER_LAUNCH)] = 1,
	[ATTR(MEM_SYNC_DOMAIN_COUNT)] = 4,
	[ATTR(NUMA_ID)] = -1,
	[ATTR(GPU_PCI_DEVICE_ID)] = 0,
	[ATTR(ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED)] = 0,
};

enum { ATTRIBUTES = sizeof attributes / sizeof attributes[0] };

bool device_exists(int ordinal)
{
	return ordinal >= 0 && ordinal < script.devices;
}

int device_attribute(int attribute)
{
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
		return script.capability / 10;
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
		return script.capability % 10;
	return attributes[attribute];
}

static int reserve(int ordinal, size_t bytes)
{
	struct device *d = &devices[ordinal];

	if (bytes > script.memory_bytes || d->used_bytes > script.memory_bytes - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (gpu_shared() && !gpu_set_memory(ordinal, d->used_bytes + bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->used_bytes += bytes;
	return CUDA_SUCCESS;
}

int device_reserve(int ordinal, size_t bytes)
{
	int r = reserve(ordinal, bytes);

	return r && pools_release(ordinal) ? reserve(ordinal, bytes) : r;
}

void device_give_back(int ordinal, size_t bytes)
{
	struct device *d = &devices[ordinal];

	if (gpu_shared())
		gpu_set_memory(ordinal, d->used_bytes - bytes);
	d->used_bytes -= bytes;
}

int sim_cuDeviceGetCount(int *ret_count)
{
	if (!ret_count)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_count = script.devices;
	return CUDA_SUCCESS;
}

int sim_cuDeviceGet(int *ret_device, int ordinal)
{
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = ordinal;
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetName(char *name, int size, int device)
{
	if (!name || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)size, "%s", script.name);
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetAttribute(int *ret_value, int attribute, int device)
{
	if (!ret_value || attribute <= 0 || attribute >= ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_value = device_attribute(attribute);
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*ret_value = device + 1;
	return CUDA_SUCCESS;
}

int sim_cuDeviceComputeCapability(int *ret_major, int *ret_minor, int device)
{
	if (!ret_major || !ret_minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_major = script.capability / 10;
	*ret_minor = script.capability % 10;
	return CUDA_SUCCESS;
}

int sim_cuDeviceTotalMem_v2(size_t *ret_bytes, int device)
{
	if (!ret_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_bytes = script.memory_bytes;
	return CUDA_SUCCESS;
}

/* One byte after another of a fixed pattern; the last is a number. */
int sim_cuDeviceGetUuid_v2(void *uuid, int device)
{
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid, "weir simulated", 15);
	((char *)uuid)[15] = (char)(script.uuid + device);
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetUuid(void *uuid, int device) SIM_ALIAS(sim_cuDeviceGetUuid_v2);

int sim_cuDeviceGetPCIBusId(char *text, int size, int device)
{
	if (!text || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetByPCIBusId(int *ret_device, const char *text)
{
	unsigned domain, bus, slot;

	if (!ret_device || !text)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 || domain || slot)
		return CUDA_ERROR_INVALID_VALUE;
	if (bus < 1 || !device_exists((int)bus - 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = (int)bus - 1;
	return CUDA_SUCCESS;
}

struct device_properties { /* CUdevprop */
	int block_threads, block[3], grid[3], shared, constant, warp, pitch, registers, clock,
		align;
};

int sim_cuDeviceGetProperties(void *properties, int device)
{
	if (!properties)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*(struct device_properties *)properties = (struct device_properties){
		.block_threads = DEVICE_BLOCK_THREADS,
		.block = { 1024, 1024, 64 },
		.grid = { 2147483647, 65535, 65535 },
		.shared = DEVICE_BLOCK_SHARED,
		.constant = 65536,
		.warp = 32,
		.pitch = 2147483647,
		.registers = 65536,
		.clock = 1980000,
		.align = 512,
	};
	return CUDA_SUCCESS;
}

int sim_cuDeviceCanAccessPeer(int *ret_can, int device, int peer)
{
	if (!ret_can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device) || !device_exists(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_can = device != peer;
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetP2PAttribute(int *ret_value, int attribute, int device, int peer)
{
	if (!ret_value || attribute < 1 || attribute > 5)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device) || !device_exists(peer) || device == peer)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetExecAffinitySupport(int *ret_value, int type, int device)
{
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_value = 0;
	return CUDA_SUCCESS;
}

int sim_cuDeviceGetTexture1DLinearMaxWidth(
	size_t *ret_width, int format, unsigned channels, int device)
{
	if (!ret_width || channels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_width = 268435456;
	return CUDA_SUCCESS;
}
