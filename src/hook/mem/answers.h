/*
 * Under a quota (weir run --memory) the calls marked `memory` in api/cuda.tbl are answered here.
 * memory_NAME() asks the quota first (src/share/quota.h), then the driver. Beyond the quota it
 * answers as the driver does when its memory is exhausted.
 *
 * Any thread may call, with any context. A call that cannot be counted goes to the driver.
 */
#ifndef WEIR_HOOK_MEM_ANSWERS_H
#define WEIR_HOOK_MEM_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hook/core/process.h"

/* Whether the driver answers for itself. */
static inline bool memory_is_plain(void)
{
	return __builtin_expect(!load_relaxed(&hook_hot.memory), 1);
}

/* The part of the library (process.h). */
void memory_start(void);
void memory_forget(void);

/* blocks.c */
int memory_cuMemAlloc(void *address, unsigned int bytes);
int memory_cuMemAlloc_v2(void *address, size_t bytes);
int memory_cuMemAllocManaged(void *address, size_t bytes, unsigned int flags);
int memory_cuMemAllocPitch(
	void *address, void *pitch, unsigned int width, unsigned int height, unsigned int element);
int memory_cuMemAllocPitch_v2(
	void *address, void *pitch, size_t width, size_t height, unsigned int element);
int memory_cuMemFree(unsigned int address);
int memory_cuMemFree_v2(unsigned long long address);
int memory_cuArrayCreate(void *array, void *descriptor);
int memory_cuArrayCreate_v2(void *array, void *descriptor);
int memory_cuArray3DCreate(void *array, void *descriptor);
int memory_cuArray3DCreate_v2(void *array, void *descriptor);
int memory_cuMipmappedArrayCreate(void *array, void *descriptor, unsigned int levels);
int memory_cuArrayDestroy(void *array);
int memory_cuMipmappedArrayDestroy(void *array);
int memory_cuImportExternalMemory(void *memory, void *descriptor);
int memory_cuDestroyExternalMemory(void *memory);

/* pools.c */
int memory_cuMemAllocAsync(void *address, size_t bytes, void *stream);
int memory_cuMemAllocAsync_ptsz(void *address, size_t bytes, void *stream);
int memory_cuMemAllocFromPoolAsync(void *address, size_t bytes, void *pool, void *stream);
int memory_cuMemAllocFromPoolAsync_ptsz(void *address, size_t bytes, void *pool, void *stream);
int memory_cuMemFreeAsync(unsigned long long address, void *stream);
int memory_cuMemFreeAsync_ptsz(unsigned long long address, void *stream);
int memory_cuMemPoolTrimTo(void *pool, size_t keep);
int memory_cuMemPoolDestroy(void *pool);
int memory_cuDeviceSetMemPool(int device, void *pool);
int memory_cuMemPoolGetAttribute(void *pool, int what, void *value);
int memory_cuMemPoolSetAccess(void *pool, void *map, size_t count);
int memory_cuGraphAddMemAllocNode(void *node, void *graph, void *on, size_t count, void *params);
int memory_cuGraphAddNode(void *node, void *graph, void *on, size_t count, void *params);
int memory_cuGraphAddNode_v2(
	void *node, void *graph, void *on, void *edges, size_t count, void *params);
int memory_cuGraphLaunch(void *graph, void *stream);
int memory_cuGraphLaunch_ptsz(void *graph, void *stream);
int memory_cuDeviceGraphMemTrim(int device);

/* physical.c */
int memory_cuMemCreate(void *handle, size_t bytes, void *properties, unsigned long long flags);
int memory_cuMemRelease(unsigned long long handle);
int memory_cuMemRetainAllocationHandle(void *handle, void *address);
int memory_cuMemMap(unsigned long long address, size_t bytes, size_t at, unsigned long long handle,
	unsigned long long flags);
int memory_cuMemUnmap(unsigned long long address, size_t bytes);

int memory_cuMemExportToShareableHandle(
	void *shareable, unsigned long long handle, int type, unsigned long long flags);
int memory_cuMemImportFromShareableHandle(void *handle, void *shareable, int type);

/* limits.c */
int memory_cuCtxSetLimit(int limit, size_t value);

/* info.c */
int memory_cuMemGetInfo(void *free, void *total);
int memory_cuMemGetInfo_v2(void *free, void *total);
int memory_cuDeviceTotalMem(void *bytes, int device);
int memory_cuDeviceTotalMem_v2(void *bytes, int device);
int memory_cuMemGetAddressRange_v2(void *base, void *bytes, unsigned long long address);
int memory_cuPointerGetAttribute(void *data, int attribute, unsigned long long address);
int memory_cuPointerGetAttributes(
	unsigned int count, void *attributes, void *data, unsigned long long address);
int memory_cuIpcGetMemHandle(void *handle, unsigned long long address);
int memory_cuCtxEnablePeerAccess(void *peer, unsigned int flags);
int memory_cuStreamDestroy(void *stream);
int memory_cuStreamDestroy_v2(void *stream);
int memory_cuCtxDestroy(void *context);
int memory_cuCtxDestroy_v2(void *context);
int memory_cuCtxDetach(void *context);
int memory_cuDevicePrimaryCtxRelease(int device);
int memory_cuDevicePrimaryCtxRelease_v2(int device);
int memory_cuDevicePrimaryCtxReset(int device);
int memory_cuDevicePrimaryCtxReset_v2(int device);

#endif
