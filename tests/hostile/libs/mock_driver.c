/*
 * A libcuda.so.1 that does nothing and locks nothing, for the programs that call the driver where
 * only Weir's own code may be in the way: in signal handlers, after longjmp(), from malloc().
 *
 * hostile_hook is called inside cuCtxSynchronize(), which is where a test does its mischief.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void (*hostile_hook)(void);

static int context, module, function;
static _Thread_local void *current;
static uint64_t next_address = 0x700000000000;

#define CALL(name, ...)                                                                            \
	int name(__VA_ARGS__);                                                                     \
	EXPORT int name(__VA_ARGS__)

CALL(cuInit, unsigned flags)
{
	return flags ? 1 : 0;
}

CALL(cuDriverGetVersion, int *version)
{
	*version = 13000;
	return 0;
}

CALL(cuDeviceGetCount, int *count)
{
	*count = 1;
	return 0;
}

CALL(cuDeviceGet, int *device, int ordinal)
{
	if (ordinal)
		return 101;
	*device = 0;
	return 0;
}

CALL(cuDevicePrimaryCtxRetain, void **ret, int device)
{
	*ret = &context;
	return 0;
}

CALL(cuCtxSetCurrent, void *c)
{
	current = c;
	return 0;
}

CALL(cuCtxGetCurrent, void **ret)
{
	*ret = current;
	return 0;
}

CALL(cuCtxSynchronize, void)
{
	if (hostile_hook)
		hostile_hook();
	return 0;
}

CALL(cuModuleLoadData, void **ret, const void *image)
{
	*ret = &module;
	return 0;
}

CALL(cuModuleGetFunction, void **ret, void *m, const char *name)
{
	*ret = &function;
	return 0;
}

CALL(cuFuncGetName, const char **name, void *f)
{
	*name = "nothing";
	return 0;
}

CALL(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
	if (!bytes)
		return 1;
	*address = __atomic_fetch_add(&next_address, (bytes + 511) & ~511ull, __ATOMIC_RELAXED);
	return 0;
}

CALL(cuMemFree_v2, uint64_t address)
{
	return 0;
}

CALL(cuMemGetInfo_v2, size_t *free_bytes, size_t *total)
{
	if (free_bytes)
		*free_bytes = 1 << 20;
	if (total)
		*total = 2 << 20;
	return 0;
}

CALL(cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
	return f == &function && gx && gy && gz && bx && by && bz ? 0 : 1;
}

EXPORT int cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status);

#define ROW(name)                                                                                  \
	{                                                                                          \
#name, (void *)name                                                                \
	}
static const struct {
	const char *name;
	void *address;
} rows[] = {
	ROW(cuInit),
	ROW(cuDriverGetVersion),
	ROW(cuDeviceGetCount),
	ROW(cuDeviceGet),
	ROW(cuDevicePrimaryCtxRetain),
	ROW(cuCtxSetCurrent),
	ROW(cuCtxGetCurrent),
	ROW(cuCtxSynchronize),
	ROW(cuModuleLoadData),
	ROW(cuModuleGetFunction),
	ROW(cuFuncGetName),
	ROW(cuLaunchKernel),
	{ "cuMemAlloc", (void *)cuMemAlloc_v2 },
	{ "cuMemFree", (void *)cuMemFree_v2 },
	{ "cuMemGetInfo", (void *)cuMemGetInfo_v2 },
	{ "cuGetProcAddress", (void *)cuGetProcAddress_v2 },
};

EXPORT int cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name))
			continue;
		*ret = rows[i].address;
		if (status)
			*status = 0;
		return 0;
	}
	if (status)
		*status = 1;
	return 500;
}
