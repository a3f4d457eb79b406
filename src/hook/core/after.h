/*
 * The wrapper of a function marked `after` in api/cuda.tbl calls after_NAME() once the driver has
 * answered. It does so even while recording is off, because names must be there when recording is
 * switched on. Each after_NAME() is defined in the file whose data it writes.
 */
#ifndef WEIR_HOOK_CORE_AFTER_H
#define WEIR_HOOK_CORE_AFTER_H

#include <stddef.h>

void after_cuInit(int result, unsigned flags);
void after_cuGetProcAddress(
	int result, const char *symbol, void *pfn, int version, unsigned long long flags);
void after_cuGetProcAddress_v2(int result, const char *symbol, void *pfn, int version,
	unsigned long long flags, void *status);
void after_cuModuleGetFunction(int result, void *function, void *module, const char *name);
void after_cuLibraryGetKernel(int result, void *kernel, void *library, const char *name);
void after_cuKernelGetFunction(int result, void *function, void *kernel);
void after_cuModuleEnumerateFunctions(int result, void *functions, unsigned count, void *module);
void after_cuLibraryEnumerateKernels(int result, void *kernels, unsigned count, void *library);
void after_cuGraphInstantiate(int result, void *exec, void *graph, void *node, void *log, size_t n);
void after_cuGraphInstantiateWithFlags(
	int result, void *exec, void *graph, unsigned long long flags);
void after_cuGraphInstantiateWithParams(int result, void *exec, void *graph, void *params);
void after_cuGraphExecUpdate(int result, void *exec, void *graph, void *node, void *update);
void after_cuGraphExecUpdate_v2(int result, void *exec, void *graph, void *info);
void after_cuGraphExecKernelNodeSetParams(int result, void *exec, void *node, const void *params);
void after_cuGraphExecKernelNodeSetParams_v2(
	int result, void *exec, void *node, const void *params);
void after_cuGraphNodeSetEnabled(int result, void *exec, void *node, unsigned enabled);
void after_cuStreamBeginCapture(int result, void *stream);
void after_cuStreamBeginCapture_v2(int result, void *stream, int mode);
void after_cuStreamBeginCaptureToGraph(int result, void *stream, void *graph, void *dependencies,
	void *data, size_t count, int mode);
void after_cuStreamEndCapture(int result, void *stream, void *graph);

void after_cuProfilerStart(int result);
void after_cuProfilerStop(int result);

void after_cuCtxDestroy(int result, void *context);
void after_cuDevicePrimaryCtxReset(int result, int device);
void after_cuDevicePrimaryCtxRelease(int result, int device);

/* Versions that differ only in what is passed to the driver. */
#define after_cuCtxDestroy_v2              after_cuCtxDestroy
#define after_cuCtxDetach                  after_cuCtxDestroy
#define after_cuDevicePrimaryCtxReset_v2   after_cuDevicePrimaryCtxReset
#define after_cuDevicePrimaryCtxRelease_v2 after_cuDevicePrimaryCtxRelease
#define after_cuGraphInstantiate_v2        after_cuGraphInstantiate

#endif
