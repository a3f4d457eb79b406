/*
 * A libcuda.so.1 that does nothing and locks nothing, for the programs that call the driver where
 * only Weir's own code may be in the way: in signal handlers, after longjmp(), from malloc().
 *
 * With KNOWS_PARAMETERS it is a driver that tells how the parameters of its one function lie, and
 * reads them: an image is then the list of their sizes ("8,8,4"; at most 9),
 * and a launch that gives less fails.
 *
 * hostile_hook is called inside cuCtxSynchronize(), which is where a test does its mischief.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void (*hostile_hook)(void);

static int context, module, function;
/* There from the start of a thread: nothing is allocated for it inside a call. */
static _Thread_local void *current __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t next_address = 0x700000000000;

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

CALL(cuDeviceGetUuid_v2, void *uuid, int device)
{
	memset(uuid, 7, 16);
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

static size_t sizes[9], offsets[9], params;

/* Any other image is one of a function without parameters. */
static void read_image(const char *image)
{
	size_t offset = 0;

	params = 0;
	while (*image >= '1' && *image <= '9' && params < 9) {
		char *end;
		sizes[params] = strtoul(image, &end, 10);
		offsets[params] = offset;
		offset += (sizes[params++] + 7) & ~7ul;
		image = *end == ',' ? end + 1 : end;
	}
}

CALL(cuModuleLoadData, void **ret, const void *image)
{
	read_image(image);
	*ret = &module;
	return 0;
}

CALL(cuModuleUnload, void *m)
{
	params = 0;
	return m == &module ? 0 : 1;
}

/* Reads every byte, as a driver does. */
static unsigned read_bytes(const void *from, size_t bytes)
{
	const volatile unsigned char *p = from;
	unsigned sum = 0;

	while (bytes--)
		sum += *p++;
	return sum;
}

static int take_buffer(void **extra)
{
	const char *buffer = NULL;
	size_t bytes = 0;

	for (; *extra; extra += 2)
		if (*extra == (void *)1)
			buffer = extra[1];
		else
			bytes = *(size_t *)extra[1];
	for (size_t i = 0; i < params; i++) {
		if (!buffer || offsets[i] + sizes[i] > bytes)
			return 1;
		read_bytes(buffer + offsets[i], sizes[i]);
	}
	return 0;
}

static int take_params(void **from, void **extra)
{
	if (from && extra)
		return 1;
	if (!from)
		return params ? extra ? take_buffer(extra) : 1 : 0;
	for (size_t i = 0; i < params; i++)
		read_bytes(from[i], sizes[i]);
	return 0;
}

#ifdef KNOWS_PARAMETERS
CALL(cuFuncGetParamInfo, void *f, size_t i, size_t *offset, size_t *bytes)
{
	if (f != &function)
		return 400;
	if (i >= params)
		return 1;
	*offset = offsets[i];
	*bytes = sizes[i];
	return 0;
}

CALL(cuFuncGetAttribute, int *value, int attribute, void *f)
{
	if (f != &function)
		return 400;
	*value = attribute;
	return attribute == 5 ? 1 : 0;
}
#endif

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
	*address = atomic_fetch_add_explicit(
		&next_address, (bytes + 511) & ~511ull, memory_order_relaxed);
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
	const int wrong = f != &function || !gx || !gy || !gz || !bx || !by || !bz;
	return wrong ? 1 : take_params(parameters, extra);
}

/* The shape stands in words: x, y, z of the grid, then of the block. */
CALL(cuLaunchKernelEx, const unsigned *config, void *f, void **parameters, void **extra)
{
	for (int i = 0; config && i < 6; i++)
		if (!config[i])
			return 1;
	return !config || f != &function ? 1 : take_params(parameters, extra);
}

/* Events, for a hook that records its own: they are through at once. */

CALL(cuEventCreate, void **ret, unsigned flags)
{
	static char events[4096];
	static _Atomic unsigned made;
	*ret = &events[made++ % sizeof events];
	return 0;
}

CALL(cuEventRecord, void *event, void *stream)
{
	return !event;
}

CALL(cuEventRecord_ptsz, void *event, void *stream)
{
	return !event;
}

CALL(cuEventQuery, void *event)
{
	return !event;
}

CALL(cuEventElapsedTime, float *ms, void *start, void *stop)
{
	*ms = 0.001f;
	return !start || !stop;
}

CALL(cuCtxGetDevice, int *device)
{
	*device = 0;
	return 0;
}

CALL(cuCtxPushCurrent_v2, void *c)
{
	return !c;
}

CALL(cuCtxPopCurrent_v2, void **ret)
{
	*ret = current;
	return 0;
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
	ROW(cuModuleUnload),
	ROW(cuModuleGetFunction),
	ROW(cuFuncGetName),
	ROW(cuLaunchKernel),
	{ "cuDeviceGetUuid", (void *)cuDeviceGetUuid_v2 },
	{ "cuMemAlloc", (void *)cuMemAlloc_v2 },
	{ "cuMemFree", (void *)cuMemFree_v2 },
	{ "cuMemGetInfo", (void *)cuMemGetInfo_v2 },
	{ "cuGetProcAddress", (void *)cuGetProcAddress_v2 },
};

EXPORT int cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
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
