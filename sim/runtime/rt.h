/*
 * A small CUDA runtime, for tests only: libcudart.so.13 and libcudart_static.a over the
 * public driver API.  It exists so that `<<<>>>` programs and plain C programs of the
 * runtime API run on the simulated driver; on a GPU, use NVIDIA's.
 *
 * The driver is opened with dlopen("libcuda.so.1"), and every function comes from
 * cuGetProcAddress, twice: as the legacy and as the per-thread default stream have it.
 * A runtime function with a stream is a body that takes one of these two tables, and two
 * exported symbols.  Any thread may call anything; a thread's device, its last error and
 * its launch configuration are its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cuda_types.h"
#include "sim_api.h"
#include "sim_enums.h"

#ifdef RT_STATIC
#define RT_EXPORT __attribute__((visibility("hidden")))
#else
#define RT_EXPORT __attribute__((visibility("default")))
#endif

enum { RT_VERSION = 13000 };

/* clang-format off */
#define RT_DRIVER_FUNCTIONS(X) \
	X(cuInit) X(cuDriverGetVersion) \
	X(cuDeviceGetCount) X(cuDeviceGetAttribute) X(cuDeviceGetName) \
	X(cuDeviceTotalMem_v2) X(cuDeviceGetUuid_v2) X(cuDeviceGetPCIBusId) \
	X(cuDeviceGetByPCIBusId) X(cuDeviceCanAccessPeer) X(cuDeviceGetP2PAttribute) \
	X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxReset_v2) \
	X(cuDevicePrimaryCtxSetFlags_v2) X(cuDevicePrimaryCtxGetState) \
	X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) X(cuDeviceSetMemPool) \
	X(cuCtxGetCurrent) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuCtxGetDevice) \
	X(cuCtxGetLimit) X(cuCtxSetLimit) X(cuCtxGetCacheConfig) X(cuCtxSetCacheConfig) \
	X(cuCtxGetStreamPriorityRange) X(cuCtxEnablePeerAccess) X(cuCtxDisablePeerAccess) \
	X(cuCtxResetPersistingL2Cache) \
	X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryUnload) X(cuLibraryGetKernel) \
	X(cuLibraryGetKernelCount) X(cuLibraryEnumerateKernels) X(cuLibraryGetGlobal) \
	X(cuLibraryGetManaged) X(cuKernelGetFunction) X(cuKernelGetName) \
	X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncSetCacheConfig) \
	X(cuFuncGetParamInfo) \
	X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocHost_v2) X(cuMemHostAlloc) \
	X(cuMemFreeHost) X(cuMemHostRegister_v2) X(cuMemHostUnregister) \
	X(cuMemHostGetDevicePointer_v2) X(cuMemHostGetFlags) X(cuMemAllocManaged) \
	X(cuMemAllocPitch_v2) X(cuMemAllocAsync) X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) \
	X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolTrimTo) X(cuMemPoolSetAttribute) \
	X(cuMemPoolGetAttribute) X(cuMemPoolSetAccess) \
	X(cuMemGetInfo_v2) X(cuPointerGetAttributes) X(cuMemPrefetchAsync_v2) \
	X(cuMemAdvise_v2) \
	X(cuMemcpy) X(cuMemcpyAsync) X(cuMemcpyHtoD_v2) X(cuMemcpyHtoDAsync_v2) \
	X(cuMemcpyDtoH_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoD_v2) \
	X(cuMemcpyDtoDAsync_v2) X(cuMemcpy2DUnaligned_v2) X(cuMemcpy2DAsync_v2) \
	X(cuMemcpy3D_v2) X(cuMemcpy3DAsync_v2) X(cuMemcpyPeer) X(cuMemcpyPeerAsync) \
	X(cuMemsetD8_v2) X(cuMemsetD8Async) X(cuMemsetD2D8_v2) X(cuMemsetD2D8Async) \
	X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) \
	X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) X(cuStreamAddCallback) \
	X(cuStreamGetFlags) X(cuStreamGetPriority) X(cuStreamGetId) X(cuStreamGetDevice) \
	X(cuLaunchHostFunc) X(cuStreamAttachMemAsync) \
	X(cuEventCreate) X(cuEventDestroy_v2) X(cuEventRecord) X(cuEventRecordWithFlags) \
	X(cuEventQuery) X(cuEventSynchronize) X(cuEventElapsedTime_v2) \
	X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	X(cuOccupancyAvailableDynamicSMemPerBlock) \
	X(cuStreamBeginCapture_v2) X(cuStreamBeginCaptureToGraph) X(cuStreamEndCapture) \
	X(cuStreamIsCapturing) X(cuStreamGetCaptureInfo_v3) \
	X(cuStreamUpdateCaptureDependencies_v2) X(cuThreadExchangeStreamCaptureMode) \
	X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphClone) X(cuGraphAddKernelNode_v2) \
	X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphAddHostNode) \
	X(cuGraphAddChildGraphNode) X(cuGraphAddEmptyNode) X(cuGraphAddEventRecordNode) \
	X(cuGraphAddEventWaitNode) X(cuGraphAddDependencies_v2) X(cuGraphGetNodes) \
	X(cuGraphGetRootNodes) X(cuGraphGetEdges_v2) X(cuGraphNodeGetType) \
	X(cuGraphDestroyNode) X(cuGraphChildGraphNodeGetGraph) X(cuGraphKernelNodeGetParams_v2) \
	X(cuGraphKernelNodeSetParams_v2) X(cuGraphExecKernelNodeSetParams_v2) \
	X(cuGraphInstantiateWithFlags) X(cuGraphExecUpdate_v2) X(cuGraphLaunch) \
	X(cuGraphUpload) X(cuGraphExecDestroy) X(cuGraphDebugDotPrint) \
	X(cuProfilerStart) X(cuProfilerStop)
/* clang-format on */

#define RT_FIELD(name) __typeof__(&sim_##name) name;

struct driver {
	RT_DRIVER_FUNCTIONS(RT_FIELD)
};

extern struct driver rt_legacy, rt_thread;

/*
 * Makes sure that the driver is there and this thread has a context.  0, or the cudaError
 * for the caller to end with.
 */
int rt_begin(void);
/* The driver alone, without a context. */
int rt_begin_driver(void);
/* Remembers an error as the thread's last one, and answers it. */
int rt_end(int code);
/* After a device reset: threads must take their contexts anew. */
void rt_forget_contexts(void);
int rt_thread_device(void);
void rt_set_thread_device(int device);
/* cuGetProcAddress_v2 as the driver itself hands it out. */
int rt_driver_entry(
	const char *symbol, void **ret_address, int version, uint64_t flags, int *ret_status);

/* The CUkernel behind a host function, or what is wrong. */
int rt_kernel(const void *host, void **ret_kernel);
int rt_symbol(const void *host, uint64_t *ret_address, size_t *ret_size);

/* Defines an exported function together with its prototype. */
#define RT_FUNCTION(name, params)                                                                  \
	RT_EXPORT int name params;                                                                 \
	int name params

/* A runtime function that is one driver function. */
#define RT_PASS(name, function, params, ...)                                                       \
	RT_FUNCTION(name, params)                                                                  \
	{                                                                                          \
		int r = rt_begin();                                                                \
		if (!r && !rt_legacy.function)                                                     \
			r = cudaErrorCallRequiresNewerDriver;                                      \
		return rt_end(r ? r : rt_legacy.function(__VA_ARGS__));                            \
	}

/* body_NAME(driver, …) exported twice: NAME, and NAME_ptsz or _ptds. */
#define RT_PAIR(name, suffix, params, ...)                                                         \
	RT_FUNCTION(name, params)                                                                  \
	{                                                                                          \
		int r = rt_begin();                                                                \
		return rt_end(r ? r : body_##name(&rt_legacy, __VA_ARGS__));                       \
	}                                                                                          \
	RT_FUNCTION(name##suffix, params)                                                          \
	{                                                                                          \
		int r = rt_begin();                                                                \
		return rt_end(r ? r : body_##name(&rt_thread, __VA_ARGS__));                       \
	}

/* The same where the body is one driver function. */
#define RT_PASS_PAIR(name, function, params, ...)                                                  \
	RT_FUNCTION(name, params)                                                                  \
	{                                                                                          \
		int r = rt_begin();                                                                \
		if (!r && !rt_legacy.function)                                                     \
			r = cudaErrorCallRequiresNewerDriver;                                      \
		return rt_end(r ? r : rt_legacy.function(__VA_ARGS__));                            \
	}                                                                                          \
	RT_FUNCTION(name##_ptsz, params)                                                           \
	{                                                                                          \
		int r = rt_begin();                                                                \
		if (!r && !rt_thread.function)                                                     \
			r = cudaErrorCallRequiresNewerDriver;                                      \
		return rt_end(r ? r : rt_thread.function(__VA_ARGS__));                            \
	}
