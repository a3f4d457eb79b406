/*
 * Uses device memory as the training of a model does: 64 MiB of weights stay, and each step has
 * 320 MiB more, which it gives back to the allocator.  That one keeps them for the next step, so
 * that the program holds 384 MiB all the time, also while it prepares the next batch.
 *
 *	steps [COUNT]	so many steps (300: about 3 s), or with -1 until it is killed
 *
 * Built without a toolkit, as vecadd.c.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { POOL_KEEPS = 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */ };

static const size_t weight_bytes = 64u << 20, step_bytes = 320u << 20;

typedef uint64_t device_pointer;

/* X(name here, exported symbol, parameters) */
#define DRIVER(X)                                                                                  \
	X(init, "cuInit", (unsigned flags))                                                        \
	X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                \
	X(context_set, "cuCtxSetCurrent", (void *context))                                         \
	X(pool_of, "cuDeviceGetDefaultMemPool", (void **pool, int device))                         \
	X(pool_set, "cuMemPoolSetAttribute", (void *pool, int attribute, void *value))             \
	X(alloc, "cuMemAlloc_v2", (device_pointer * p, size_t bytes))                              \
	X(alloc_async, "cuMemAllocAsync", (device_pointer * p, size_t bytes, void *stream))        \
	X(free_async, "cuMemFreeAsync", (device_pointer p, void *stream))                          \
	X(fill, "cuMemsetD8Async",                                                                 \
		(device_pointer p, unsigned char value, size_t bytes, void *stream))               \
	X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                        \
	X(stream_wait, "cuStreamSynchronize", (void *stream))                                      \
	X(error_name, "cuGetErrorName", (int code, const char **name))

#define DECLARE(name, symbol, parameters) static int(*name) parameters;
DRIVER(DECLARE)

static void check(int code, const char *what)
{
	const char *name = "unknown error";
	if (code == 0)
		return;
	if (error_name)
		error_name(code, &name);
	fprintf(stderr, "steps: %s: %s\n", what, name);
	exit(1);
}
#define CHECK(call) check(call, #call)

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "steps: %s\n", dlerror());
		exit(1);
	}
#define RESOLVE(name, symbol, parameters)                                                          \
	*(void **)&name = dlsym(library, symbol);                                                  \
	if (!name) {                                                                               \
		fprintf(stderr, "steps: the driver has no %s\n", symbol);                          \
		exit(1);                                                                           \
	}
	DRIVER(RESOLVE)
}

static void take_step(void *stream)
{
	device_pointer p;
	CHECK(alloc_async(&p, step_bytes, stream));
	CHECK(fill(p, 0, 1 << 20, stream));
	CHECK(free_async(p, stream));
	CHECK(stream_wait(stream));
}

static void prepare_batch(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

int main(int argc, char **argv)
{
	const long count = argc > 1 ? atol(argv[1]) : 300;
	uint64_t keep_all = UINT64_MAX;
	device_pointer weights;
	void *context, *pool, *stream;
	open_driver();
	CHECK(init(0));
	CHECK(context_retain(&context, 0));
	CHECK(context_set(context));
	CHECK(pool_of(&pool, 0));
	CHECK(pool_set(pool, POOL_KEEPS, &keep_all));
	CHECK(stream_create(&stream, 1));
	CHECK(alloc(&weights, weight_bytes));
	for (long i = 0; i != count; i++) {
		take_step(stream);
		if (i == 0) {
			puts("the first step is done");
			fflush(stdout);
		}
		prepare_batch();
	}
	printf("%ld steps are done\n", count);
	return 0;
}
