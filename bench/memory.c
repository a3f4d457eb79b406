/*
 * The costs of the driver's calls about memory, as medians of some rounds in nanoseconds: an
 * allocation with its free, and the parts of mapping a handle.  The prices of `weir memory
 * --replay` (src/allocator/prices.c) are such numbers.  Then how much of the device small
 * allocations take, which says in what pages the driver has it.  Under weir run --pool the first
 * two are the pool's.
 *
 *	bench-memory
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_types.h"

#define MIB    ((size_t)1 << 20)
#define ROUNDS 64

typedef unsigned long long address;

#define CALLS(X)                                                                                   \
	X(cuInit, (unsigned))                                                                      \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                \
	X(cuCtxSetCurrent, (void *))                                                               \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                   \
	X(cuMemAlloc_v2, (address *, size_t))                                                      \
	X(cuMemFree_v2, (address))                                                                 \
	X(cuMemAllocAsync, (address *, size_t, void *))                                            \
	X(cuMemFreeAsync, (address, void *))                                                       \
	X(cuStreamCreate, (void **, unsigned))                                                     \
	X(cuMemAddressReserve, (address *, size_t, size_t, address, unsigned long long))           \
	X(cuMemAddressFree, (address, size_t))                                                     \
	X(cuMemCreate,                                                                             \
		(address *, size_t, const struct cu_mem_allocation_prop *, unsigned long long))    \
	X(cuMemMap, (address, size_t, size_t, address, unsigned long long))                        \
	X(cuMemSetAccess, (address, size_t, const struct cu_mem_access_desc *, size_t))            \
	X(cuMemUnmap, (address, size_t))                                                           \
	X(cuMemRelease, (address))

#define DECLARE(name, parameters) static int(*name) parameters;
CALLS(DECLARE)

#define OK(call)                                                                                   \
	do {                                                                                       \
		const int code_ = (call);                                                          \
		if (code_) {                                                                       \
			fprintf(stderr, "bench-memory: %s: error %d\n", #call, code_);             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
	if (!driver) {
		fprintf(stderr, "bench-memory: no driver: %s\n", dlerror());
		exit(77);
	}
#define RESOLVE(name, parameters) *(void **)&name = dlsym(driver, #name);
	CALLS(RESOLVE)
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double v[ROUNDS])
{
	qsort(v, ROUNDS, sizeof *v, ascending);
	return v[ROUNDS / 2];
}

static void allocate(size_t size)
{
	double took[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		address a;
		const double start = now_ns();
		OK(cuMemAlloc_v2(&a, size));
		OK(cuMemFree_v2(a));
		took[i] = now_ns() - start;
	}
	printf("  %8zu KiB  %10.0f\n", size >> 10, median(took));
}

/* In the order of a stream: so many at once that the clock costs nothing. */
static void allocate_ordered(size_t size)
{
	enum { PAIRS = 1000 };
	double took[ROUNDS];
	void *stream;
	OK(cuStreamCreate(&stream, 1));
	for (int i = 0; i < ROUNDS; i++) {
		const double start = now_ns();
		for (int k = 0; k < PAIRS; k++) {
			address a;
			OK(cuMemAllocAsync(&a, size, stream));
			OK(cuMemFreeAsync(a, stream));
		}
		took[i] = (now_ns() - start) / PAIRS;
	}
	printf("  %8zu KiB  %10.0f\n", size >> 10, median(took));
}

#define TIMED(call, to)                                                                            \
	do {                                                                                       \
		const double start_ = now_ns();                                                    \
		OK(call);                                                                          \
		(to) = now_ns() - start_;                                                          \
	} while (0)

/* Beside a handle that stays, as a pool has many. */
static void map(size_t size)
{
	static double create[ROUNDS], mapped[ROUNDS], access[ROUNDS], unmap[ROUNDS],
		release[ROUNDS];
	const struct cu_mem_allocation_prop prop = { .type = 1, .location = { 1, 0 } };
	const struct cu_mem_access_desc desc = { .location = { 1, 0 }, .flags = 3 };
	address range, handle;
	OK(cuMemAddressReserve(&range, size * ROUNDS, 0, 0, 0));
	for (int i = 0; i < ROUNDS; i++) {
		const address at = range + (address)i * size;
		TIMED(cuMemCreate(&handle, size, &prop, 0), create[i]);
		TIMED(cuMemMap(at, size, 0, handle, 0), mapped[i]);
		TIMED(cuMemSetAccess(at, size, &desc, 1), access[i]);
		TIMED(cuMemUnmap(at, size), unmap[i]);
		TIMED(cuMemRelease(handle), release[i]);
	}
	OK(cuMemAddressFree(range, size * ROUNDS));
	printf("  %8zu MiB  %10.0f %10.0f %14.0f %10.0f %12.0f\n", size / MIB, median(create),
		median(mapped), median(access), median(unmap), median(release));
}

static size_t free_bytes(void)
{
	size_t left, total;
	OK(cuMemGetInfo_v2(&left, &total));
	return left;
}

static void reserve(size_t size, int count)
{
	address *v = calloc((size_t)count, sizeof *v);
	const size_t before = free_bytes();
	for (int i = 0; v && i < count; i++)
		OK(cuMemAlloc_v2(&v[i], size));
	const size_t held = before - free_bytes();
	for (int i = 0; v && i < count; i++)
		OK(cuMemFree_v2(v[i]));
	printf("  %4d of %8zu bytes: %6.1f MiB, and %.1f MiB after their frees\n", count, size,
		(double)held / (double)MIB, ((double)before - (double)free_bytes()) / (double)MIB);
	free(v);
}

int main(void)
{
	static const size_t sizes[] = { MIB / 2, MIB, 2 * MIB, 8 * MIB, 20 * MIB, 64 * MIB,
		256 * MIB },
			    handles[] = { 2 * MIB, 8 * MIB, 20 * MIB, 32 * MIB, 64 * MIB };
	load();
	puts("cuMemAlloc and cuMemFree together, ns:");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		allocate(sizes[i]);
	puts("cuMemAllocAsync and cuMemFreeAsync together, ns:");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		allocate_ordered(sizes[i]);
	puts("a handle, ns:    cuMemCreate   cuMemMap cuMemSetAccess cuMemUnmap cuMemRelease");
	for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
		map(handles[i]);
	puts("what allocations take of the device:");
	reserve(512, 1);
	reserve(512, 4096);
	reserve(MIB, 2);
	reserve(MIB + 512, 8);
	reserve(2 * MIB + 512, 8);
	return 0;
}
