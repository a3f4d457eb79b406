/*
 * The planted problems share this: the driver's functions without a toolkit, kernels whose cost is
 * known, and a clock around the part that matters.
 *
 *	int main(int argc, char **argv)
 *	{
 *		problem_open(argc, argv);	// fixed: --fixed was given, run the healthy twin
 *		…
 *		problem_begin();
 *		…				// the part that matters
 *		problem_end();			// waits for the device, prints "hot N us"
 *	}
 *
 * Nothing returns errors: whatever fails is named on stderr and ends the program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t device_pointer;

/* X(name here, exported symbol, parameters) */
#define DRIVER(X)                                                                                  \
	X(init, "cuInit", (unsigned flags))                                                        \
	X(device_get, "cuDeviceGet", (int *device, int ordinal))                                   \
	X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))       \
	X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                \
	X(context_set, "cuCtxSetCurrent", (void *context))                                         \
	X(context_wait, "cuCtxSynchronize", (void))                                                \
	X(module_load, "cuModuleLoadData", (void **module, const void *image))                     \
	X(get_function, "cuModuleGetFunction", (void **function, void *module, const char *name))  \
	X(set_function, "cuFuncSetAttribute", (void *function, int attribute, int value))          \
	X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                \
		(int *blocks, void *function, int threads, size_t dynamic_bytes))                  \
	X(alloc, "cuMemAlloc_v2", (device_pointer * p, size_t bytes))                              \
	X(release, "cuMemFree_v2", (device_pointer p))                                             \
	X(alloc_host, "cuMemAllocHost_v2", (void **p, size_t bytes))                               \
	X(fill, "cuMemsetD8_v2", (device_pointer p, unsigned char value, size_t bytes))            \
	X(copy_in, "cuMemcpyHtoDAsync_v2",                                                         \
		(device_pointer to, const void *from, size_t bytes, void *stream))                 \
	X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                        \
	X(stream_wait, "cuStreamSynchronize", (void *stream))                                      \
	X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))                      \
	X(capture_end, "cuStreamEndCapture", (void *stream, void **graph))                         \
	X(graph_instantiate, "cuGraphInstantiateWithFlags",                                        \
		(void **exec, void *graph, unsigned long long flags))                              \
	X(graph_launch, "cuGraphLaunch", (void *exec, void *stream))                               \
	X(error_name, "cuGetErrorName", (int code, const char **name))                             \
	X(launch_kernel, "cuLaunchKernel",                                                         \
		(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,  \
			unsigned bz, unsigned shared_bytes, void *stream, void **parameters,       \
			void **extra))

#define DECLARE(name, symbol, parameters) extern int(*name) parameters;
DRIVER(DECLARE)
#undef DECLARE

void problem_check(int code, const char *what);
#define CHECK(call) problem_check(call, #call)

#define STREAM_NON_BLOCKING 1u /* does not wait for the default stream */

extern bool fixed; /* --fixed: the twin */

/* Opens the driver and device 0, and makes a stream of its own. */
void problem_open(int argc, char **argv);
extern void *stream;

/* Multiprocessors of the device. */
unsigned problem_multiprocessors(void);

/* Blocks of the kernel that all multiprocessors hold at a time. */
unsigned problem_resident(void *kernel, unsigned threads, unsigned shared_bytes);

/* A kernel of the names below. */
void *problem_kernel(const char *name);

/*
 * multiply_add	`rounds` times 8 dependent multiplications and additions a thread: bound by
 *		their latency when few warps run, by the units when many do
 * chase	`rounds` loads a warp, each from where the one before says: bound by latency
 * chase_24, chase_44, chase_76
 *		the same with so many more registers in use
 * chase_register, chase_constant
 *		the same behind a barrier with its number in a register, or a constant
 * scale, add, square, negate, halve, shift, clamp, mix
 *		one operation on each of `count` numbers
 * all_eight	these one after the other on each of `count` numbers
 */
void problem_compute(void *kernel, unsigned grid, unsigned block, unsigned rounds, void *on);
void problem_chase(
	void *kernel, unsigned grid, unsigned block, unsigned shared_bytes, unsigned rounds);
void problem_pointwise(void *kernel, device_pointer data, unsigned count);

/* Around the part that matters.  Before it everything has run once, by problem_begin()'s caller. */
void problem_begin(void);
void problem_end(void);

/* Keeps the processor busy for so long. */
void problem_think(unsigned us);
