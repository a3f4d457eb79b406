/*
 * What is written down besides the calls themselves: kernels' names, graphs' contents, which
 * streams are capturing.  The generated wrappers of functions marked ! in api/cuda.tbl call
 * their note_…() after the real call, with its result and arguments, also while recording is
 * off: names must be there when it is switched on.
 *
 * Notes ask the driver only questions that change nothing, through the real functions.
 */
#ifndef WEIR_HOOK_META_METADATA_H
#define WEIR_HOOK_META_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/format.h"

bool stream_is_capturing(void *stream, int per_thread);

/* Whether the handle's name is in the trace: as far as is remembered, which has room for some
 * tens of thousands. */
bool kernel_is_known(uint64_t handle);

/* Asks the driver for the kernel's name and writes it down. */
void note_kernel(uint64_t handle);

/* Asks the driver for the attributes of a function or kernel that has been launched, and writes
 * them down.  Fills value[] by enum kernel_attribute; bit i of the result: value[i] is known. */
uint32_t note_attributes(uint64_t handle, uint32_t value[ATTRIBUTES]);

/* The kernel's name as the driver tells it, or NULL. */
const char *ask_name(uint64_t handle);

void note_forget(void); /* after a fork: the child's trace starts empty */

/* A meta record of `count` words and a text. */
void note_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes);

/* Whether a text may be written that will not be asked for again; false is counted. */
bool note_has_room(void);

void note_cuInit(int result, unsigned flags);
void note_cuGetProcAddress(
	int result, const char *symbol, void *pfn, int version, unsigned long long flags);
void note_cuGetProcAddress_v2(int result, const char *symbol, void *pfn, int version,
	unsigned long long flags, void *status);
void note_cuModuleGetFunction(int result, void *function, void *module, const char *name);
void note_cuLibraryGetKernel(int result, void *kernel, void *library, const char *name);
void note_cuKernelGetFunction(int result, void *function, void *kernel);
void note_cuModuleEnumerateFunctions(int result, void *functions, unsigned count, void *module);
void note_cuLibraryEnumerateKernels(int result, void *kernels, unsigned count, void *library);
void note_cuGraphInstantiate(int result, void *exec, void *graph, void *node, void *log, size_t n);
void note_cuGraphInstantiateWithFlags(
	int result, void *exec, void *graph, unsigned long long flags);
void note_cuGraphInstantiateWithParams(int result, void *exec, void *graph, void *params);
void note_cuGraphExecUpdate(int result, void *exec, void *graph, void *node, void *update);
void note_cuGraphExecUpdate_v2(int result, void *exec, void *graph, void *info);
void note_cuGraphExecKernelNodeSetParams(int result, void *exec, void *node, const void *params);
void note_cuGraphExecKernelNodeSetParams_v2(int result, void *exec, void *node, const void *params);
void note_cuGraphNodeSetEnabled(int result, void *exec, void *node, unsigned enabled);
void note_cuStreamBeginCapture(int result, void *stream);
void note_cuStreamBeginCapture_v2(int result, void *stream, int mode);
void note_cuStreamBeginCaptureToGraph(int result, void *stream, void *graph, void *dependencies,
	void *data, size_t count, int mode);
void note_cuStreamEndCapture(int result, void *stream, void *graph);

void note_cuCtxDestroy(int result, void *context);
void note_cuDevicePrimaryCtxReset(int result, int device);
void note_cuDevicePrimaryCtxRelease(int result, int device);

/* Versions that differ only in what is passed to the driver. */
#define note_cuCtxDestroy_v2              note_cuCtxDestroy
#define note_cuCtxDetach                  note_cuCtxDestroy
#define note_cuDevicePrimaryCtxReset_v2   note_cuDevicePrimaryCtxReset
#define note_cuDevicePrimaryCtxRelease_v2 note_cuDevicePrimaryCtxRelease
#define note_cuGraphInstantiate_v2        note_cuGraphInstantiate

#endif
