/*
 * Finding the driver, contexts on demand, and errors.
 */
#include "rt.h"
#include "sim_since.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

typedef int get_proc_fn(const char *, void **, int, unsigned long long, int *);

struct driver rt_legacy, rt_thread;

static get_proc_fn *get_proc;
static int load_error;
static atomic_uint generation = 1; /* counts device resets */

static _Thread_local struct {
	unsigned ready; /* the generation in which this thread got its context */
	int device;
	int last_error;
} thread;

int rt_driver_entry(
	const char *symbol, void **ret_address, int version, uint64_t flags, int *ret_status)
{
	return get_proc(symbol, ret_address, version, flags, ret_status);
}

static void find(const char *base, int since, uint64_t flags, void *ret_function)
{
	int status;
	void *address = NULL;

	get_proc(base, &address, since, flags, &status);
	*(void **)ret_function = address;
}

#define FIND_LEGACY(name) find(BASE_##name, SINCE_##name, LEGACY_STREAM, &rt_legacy.name);
#define FIND_THREAD(name)                                                                          \
	find(BASE_##name, SINCE_##name < 7000 ? 7000 : SINCE_##name, PER_THREAD_STREAM,            \
		&rt_thread.name);

static void load_functions(void)
{
	RT_DRIVER_FUNCTIONS(FIND_LEGACY)
	RT_DRIVER_FUNCTIONS(FIND_THREAD)
}

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *nothing = NULL, *itself = NULL;
	int status;

	load_error = cudaErrorInsufficientDriver;
	if (!library)
		return;
	*(void **)&get_proc = dlsym(library, "cuGetProcAddress_v2");
	if (!get_proc)
		return;
	get_proc("", &nothing, 0, 0, &status);
	if (get_proc("cuGetProcAddress", &itself, 12000, 0, &status) == 0 && itself)
		*(void **)&get_proc = itself;
	load_functions();
	load_error = rt_legacy.cuInit ? rt_legacy.cuInit(0) : cudaErrorInsufficientDriver;
}

int rt_begin_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return load_error;
}

static int take_context(int device)
{
	void *ctx;
	int r = rt_legacy.cuDevicePrimaryCtxRetain(&ctx, device);

	return r ? r : rt_legacy.cuCtxSetCurrent(ctx);
}

int rt_begin(void)
{
	unsigned now = atomic_load_explicit(&generation, memory_order_acquire);
	void *ctx = NULL;
	int r;

	if (thread.ready == now)
		return 0;
	r = rt_begin_driver();
	if (r)
		return r;
	/* A context that the program made itself is used as it is. */
	r = rt_legacy.cuCtxGetCurrent(&ctx);
	if (!r && (!ctx || thread.ready))
		r = take_context(thread.device);
	if (!r)
		thread.ready = now;
	return r;
}

void rt_forget_contexts(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_acq_rel);
}

int rt_thread_device(void)
{
	return thread.device;
}

void rt_set_thread_device(int device)
{
	thread.device = device;
}

int rt_end(int code)
{
	if (code && code != cudaErrorNotReady)
		thread.last_error = code;
	return code;
}

RT_FUNCTION(cudaGetLastError, (void))
{
	int code = thread.last_error;

	thread.last_error = 0;
	return code;
}

RT_FUNCTION(cudaPeekAtLastError, (void))
{
	return thread.last_error;
}

RT_FUNCTION(cudaDriverGetVersion, (int *ret_version))
{
	int r = rt_begin_driver();

	if (!ret_version)
		return rt_end(cudaErrorInvalidValue);
	*ret_version = 0;
	if (r == cudaErrorInsufficientDriver)
		return 0; /* no driver is version 0 */
	return rt_end(rt_legacy.cuDriverGetVersion(ret_version));
}

RT_FUNCTION(cudaRuntimeGetVersion, (int *ret_version))
{
	if (!ret_version)
		return rt_end(cudaErrorInvalidValue);
	*ret_version = RT_VERSION;
	return 0;
}

static int entry_point(
	const char *symbol, void **ret_function, unsigned version, uint64_t flags, int *ret_status)
{
	int status, r = rt_begin();

	if (r)
		return r;
	if (!symbol || !ret_function)
		return cudaErrorInvalidValue;
	return rt_driver_entry(
		symbol, ret_function, (int)version, flags, ret_status ? ret_status : &status);
}

RT_FUNCTION(cudaGetDriverEntryPointByVersion,
	(const char *symbol, void **f, unsigned version, unsigned long long flags, int *status))
{
	return rt_end(entry_point(symbol, f, version, flags, status));
}

RT_FUNCTION(cudaGetDriverEntryPointByVersion_ptsz,
	(const char *symbol, void **f, unsigned version, unsigned long long flags, int *status))
{
	return rt_end(entry_point(symbol, f, version, flags ? flags : PER_THREAD_STREAM, status));
}

RT_FUNCTION(cudaGetDriverEntryPoint,
	(const char *symbol, void **f, unsigned long long flags, int *status))
{
	return rt_end(entry_point(symbol, f, RT_VERSION, flags, status));
}

RT_FUNCTION(cudaGetDriverEntryPoint_ptsz,
	(const char *symbol, void **f, unsigned long long flags, int *status))
{
	return rt_end(
		entry_point(symbol, f, RT_VERSION, flags ? flags : PER_THREAD_STREAM, status));
}

/* The private tables between NVIDIA's libraries are theirs. */
RT_FUNCTION(cudaGetExportTable, (void **ret_table, const void *id))
{
	return rt_end(cudaErrorSymbolNotFound);
}
