/* Opens the device, and tells what the driver answers. */
#include "gpu/cuda_device.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/shared_library.h"
#include "base/xmalloc.h"

static const struct library_symbol symbols[] = {
#define GPU_SYMBOL(name, parameters) { #name, offsetof(struct gpu_driver, name) },
	GPU_FUNCTIONS(GPU_SYMBOL)
};

static struct {
	pthread_mutex_t lock;
	struct gpu *gpu;
} opened = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* After these every call of the context fails, those of other threads too: the driver's manual says
 * so of each. */
static bool is_last(int code)
{
	return code == 214 || code == 220 || code == 700 || code == 702 || code == 709 ||
	       code == 710 || (code >= 714 && code <= 719);
}

int gpu_check(struct gpu *g, int code, const char *function, struct error *err)
{
	if (code == GPU_OK)
		return 0;
	const char *name = NULL;
	if (g->cu.cuGetErrorName(code, &name) || !name)
		name = "an unknown error";
	if (is_last(code))
		store_relaxed(&g->lost, code);
	return error_set(
		err, code == GPU_NO_MEMORY ? -ENOMEM : -EIO, "%s: %s (%d)", function, name, code);
}

int gpu_enter(struct gpu *g, struct error *err)
{
	return GPU_CALL(g, err, cuCtxSetCurrent, g->context);
}

static int open_device(struct gpu *g, struct error *err)
{
	int e = GPU_CALL(g, err, cuInit, 0);
	e = e ? e : GPU_CALL(g, err, cuDeviceGet, &g->device, 0);
	e = e ? e : GPU_CALL(g, err, cuDeviceGetName, g->name, sizeof g->name, g->device);
	e = e ? e : GPU_CALL(g, err, cuDeviceTotalMem_v2, &g->bytes, g->device);
	e = e ? e : GPU_CALL(g, err, cuDevicePrimaryCtxRetain, &g->context, g->device);
	e = e ? e : gpu_enter(g, err);
	return e ? e
		 : GPU_CALL(g, err, cuCtxGetStreamPriorityRange, &g->least_priority,
			   &g->greatest_priority);
}

static int open_locked(const char *library, struct error *err)
{
	struct gpu *g = xcalloc(1, sizeof *g);
	const char *file = library ? library : GPU_LIBRARY;
	const int found = library_load(file, symbols, sizeof symbols / sizeof *symbols, &g->cu);
	int e = 0;
	if (found == -ENOSYS)
		e = error_set(err, -EIO, "%s is no CUDA driver, or one before 11.4", file);
	else if (found)
		e = error_set(err, -EIO, "there is no CUDA driver: %s", dlerror());
	pthread_mutex_init(&g->lock, NULL);
	gpu_budget_init(&g->budget);
	e = e ? e : open_device(g, err);
	if (e)
		free(g);
	else
		opened.gpu = g;
	return e;
}

int gpu_open(const char *library, struct gpu **ret, struct error *err)
{
	pthread_mutex_lock(&opened.lock);
	int e = opened.gpu ? gpu_enter(opened.gpu, err) : open_locked(library, err);
	*ret = opened.gpu;
	pthread_mutex_unlock(&opened.lock);
	return e;
}

struct gpu *gpu_opened(void)
{
	pthread_mutex_lock(&opened.lock);
	struct gpu *g = opened.gpu;
	pthread_mutex_unlock(&opened.lock);
	return g;
}
