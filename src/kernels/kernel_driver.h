/*
 * The functions of the CUDA driver that the kernel library calls, found by dlsym() in the running
 * process: the context is the caller's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda_types.h"

#define KERNEL_DRIVER_FUNCTIONS(X)                                                                 \
	X(cuGetErrorName, (int code, const char **ret))                                            \
	X(cuCtxGetCurrent, (void **ret))                                                           \
	X(cuCtxPushCurrent_v2, (void *context))                                                    \
	X(cuCtxPopCurrent_v2, (void **ret))                                                        \
	X(cuCtxGetDevice, (int *ret))                                                              \
	X(cuDeviceGetName, (char *to, int bytes, int device))                                      \
	X(cuDeviceGetAttribute, (int *ret, int attribute, int device))                             \
	X(cuModuleLoadData, (void **ret, const void *image))                                       \
	X(cuModuleUnload, (void *module))                                                          \
	X(cuModuleGetFunction, (void **ret, void *module, const char *name))                       \
	X(cuFuncSetAttribute, (void *function, int attribute, int value))                          \
	X(cuOccupancyMaxActiveClusters,                                                            \
		(int *ret, void *function, const struct cu_launch_config *config))                 \
	X(cuTensorMapEncodeTiled,                                                                  \
		(void *ret, int type, uint32_t rank, const void *at, const uint64_t *sizes,        \
			const uint64_t *pitches, const uint32_t *box, const uint32_t *steps,       \
			int interleave, int swizzle, int promotion, int fill))                     \
	X(cuTensorMapEncodeIm2col,                                                                 \
		(void *ret, int type, uint32_t rank, const void *at, const uint64_t *sizes,        \
			const uint64_t *pitches, const int *first, const int *last,                \
			uint32_t channels, uint32_t pixels, const uint32_t *steps, int interleave, \
			int swizzle, int promotion, int fill))                                     \
	X(cuLaunchKernelEx, (const struct cu_launch_config *config, void *function,                \
				    void **arguments, void **extra))

struct kernel_driver {
#define KERNEL_DRIVER_POINTER(name, parameters) int(*name) parameters;
	KERNEL_DRIVER_FUNCTIONS(KERNEL_DRIVER_POINTER)
#undef KERNEL_DRIVER_POINTER
};
