/*
 * The functions of the CUDA driver that Weir itself calls, found by dlsym(), so that Weir starts
 * where there is no driver, and a recorder that is loaded before sees them.
 */
#pragma once

#include "cuda_types.h"

#define GPU_FUNCTIONS(X)                                                                           \
	X(cuInit, (unsigned flags))                                                                \
	X(cuDriverGetVersion, (int *ret))                                                          \
	X(cuGetErrorName, (int code, const char **ret))                                            \
	X(cuDeviceGet, (int *ret, int number))                                                     \
	X(cuDeviceGetName, (char *to, int bytes, int device))                                      \
	X(cuDeviceTotalMem_v2, (size_t * ret, int device))                                         \
	X(cuDevicePrimaryCtxRetain, (void **ret, int device))                                      \
	X(cuDevicePrimaryCtxRelease_v2, (int device))                                              \
	X(cuCtxSetCurrent, (void *context))                                                        \
	X(cuCtxGetStreamPriorityRange, (int *ret_least, int *ret_greatest))                        \
	X(cuModuleLoadData, (void **ret, const void *image))                                       \
	X(cuModuleUnload, (void *module))                                                          \
	X(cuModuleGetFunction, (void **ret, void *module, const char *name))                       \
	X(cuFuncSetAttribute, (void *function, int attribute, int value))                          \
	X(cuStreamCreateWithPriority, (void **ret, unsigned flags, int priority))                  \
	X(cuStreamDestroy_v2, (void *stream))                                                      \
	X(cuStreamSynchronize, (void *stream))                                                     \
	X(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                          \
	X(cuEventCreate, (void **ret, unsigned flags))                                             \
	X(cuEventDestroy_v2, (void *event))                                                        \
	X(cuEventRecord, (void *event, void *stream))                                              \
	X(cuEventQuery, (void *event))                                                             \
	X(cuEventSynchronize, (void *event))                                                       \
	X(cuMemHostAlloc, (void **ret, size_t bytes, unsigned flags))                              \
	X(cuMemFreeHost, (void *at))                                                               \
	X(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))       \
	X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))             \
	X(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))          \
	X(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t bytes, void *stream))         \
	X(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,      \
				  unsigned block_x, unsigned block_y, unsigned block_z,            \
				  unsigned shared, void *stream, void **arguments, void **extra))  \
	X(cuStreamBeginCapture_v2, (void *stream, int mode))                                       \
	X(cuStreamEndCapture, (void *stream, void **ret))                                          \
	X(cuGraphInstantiateWithFlags, (void **ret, void *graph, uint64_t flags))                  \
	X(cuGraphGetNodes, (void *graph, void **nodes, size_t *count))                             \
	X(cuGraphNodeGetType, (void *node, int *ret))                                              \
	X(cuGraphMemcpyNodeGetParams, (void *node, struct cu_memcpy3d *ret))                       \
	X(cuPointerGetAttribute, (void *ret, int attribute, uint64_t address))                     \
	X(cuGraphLaunch, (void *exec, void *stream))                                               \
	X(cuGraphExecDestroy, (void *exec))                                                        \
	X(cuGraphDestroy, (void *graph))                                                           \
	X(cuMemGetAllocationGranularity,                                                           \
		(size_t * ret, const struct cu_mem_allocation_prop *prop, int option))             \
	X(cuMemAddressReserve,                                                                     \
		(uint64_t * ret, size_t bytes, size_t align, uint64_t hint, uint64_t flags))       \
	X(cuMemAddressFree, (uint64_t at, size_t bytes))                                           \
	X(cuMemCreate, (uint64_t * ret, size_t bytes, const struct cu_mem_allocation_prop *prop,   \
			       uint64_t flags))                                                    \
	X(cuMemRelease, (uint64_t handle))                                                         \
	X(cuMemMap, (uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags))   \
	X(cuMemUnmap, (uint64_t at, size_t bytes))                                                 \
	X(cuMemSetAccess,                                                                          \
		(uint64_t at, size_t bytes, const struct cu_mem_access_desc *list, size_t n))

/* The driver's answers, as far as Weir tells them apart. */
enum {
	GPU_OK = 0,
	GPU_NO_MEMORY = 2,
	GPU_NOT_READY = 600,
};

struct gpu_driver {
#define GPU_POINTER(name, parameters) int(*name) parameters;
	GPU_FUNCTIONS(GPU_POINTER)
#undef GPU_POINTER
};
