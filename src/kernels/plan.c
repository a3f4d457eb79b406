/* The library and its plans: what all operations share. */
#include "kernels/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/shared_library.h"
#include "kernels/cache.h"

static const struct library_symbol symbols[] = {
#define DRIVER_SYMBOL(name, parameters) { #name, offsetof(struct kernel_driver, name) },
	KERNEL_DRIVER_FUNCTIONS(DRIVER_SYMBOL)
};

_Thread_local struct error kernel_error;

const char *weir_kernels_error(void)
{
	return kernel_error.text;
}

uint32_t weir_kernels_version(void)
{
	return WEIR_KERNELS_VERSION;
}

int kernel_argument(const char *what)
{
	return error_set(&kernel_error, WEIR_KERNELS_ERROR_ARGUMENT, "%s", what);
}

int kernel_check(
	int (*get_name)(int, const char **), int code, const char *function, struct error *err)
{
	if (!code)
		return 0;
	const char *name = NULL;
	if (get_name(code, &name) || !name)
		name = "an unknown error";
	return error_set(err, WEIR_KERNELS_ERROR_DRIVER, "%s: %s (%d)", function, name, code);
}

static int find_device(struct weir_kernels *k, struct error *err)
{
	enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute */
	int device, sms, major, minor;
	char name[96];
	if (k->cu.cuCtxGetCurrent(&k->context) || !k->context)
		return error_set(err, WEIR_KERNELS_ERROR_NO_CONTEXT,
			"the thread has no current CUDA context: call cuCtxSetCurrent(), or a function of the "
			"CUDA runtime, first");
	int e = KERNEL_CALL(k, err, cuCtxGetDevice, &device);
	e = e ? e : KERNEL_CALL(k, err, cuDeviceGetName, name, sizeof name, device);
	e = e ? e : KERNEL_CALL(k, err, cuDeviceGetAttribute, &sms, MULTIPROCESSORS, device);
	e = e ? e : KERNEL_CALL(k, err, cuDeviceGetAttribute, &major, MAJOR, device);
	e = e ? e : KERNEL_CALL(k, err, cuDeviceGetAttribute, &minor, MINOR, device);
	if (!e)
		kernel_device_init(&k->device, name, (unsigned)(10 * major + minor), (unsigned)sms);
	return e;
}

/* By the handle and each plan. */
static void let_go(struct weir_kernels *k)
{
	if (atomic_fetch_sub_explicit(&k->holders, 1, memory_order_acq_rel) > 1)
		return;
	kernel_unload(k);
	pthread_mutex_destroy(&k->lock);
	free_all(k->cache, k);
}

int kernels_open(const struct weir_kernels_options *options, const char *driver,
	struct weir_kernels **ret, struct error *err)
{
	if (options && options->size != sizeof *options)
		return error_set(err, WEIR_KERNELS_ERROR_SIZE,
			"struct weir_kernels_options has %zu bytes, and this library knows %zu",
			options->size, sizeof *options);
	const char *cache = options ? options->cache : NULL;
	const char *nvrtc = options ? options->nvrtc : NULL;
	struct weir_kernels *k = xcalloc(1, sizeof *k);
	atomic_init(&k->holders, 1);
	pthread_mutex_init(&k->lock, NULL);
	if (library_load(driver, symbols, sizeof symbols / sizeof *symbols, &k->cu)) {
		pthread_mutex_destroy(&k->lock);
		free(k);
		return error_set(err, WEIR_KERNELS_ERROR_NO_DRIVER,
			"%s is missing, or older than CUDA 12.0", driver);
	}
	const int e = find_device(k, err);
	if (e) {
		let_go(k);
		return e;
	}
	if (!nvrtc || *nvrtc)
		k->nvrtc = nvrtc_open(nvrtc);
	if (!cache)
		k->cache = cache_folder();
	else if (*cache)
		k->cache = xstrdup(cache);
	*ret = k;
	return 0;
}

int weir_kernels_open(const struct weir_kernels_options *options, struct weir_kernels **ret_kernels)
{
	return ret_kernels ? kernels_open(options, "libcuda.so.1", ret_kernels, &kernel_error)
			   : kernel_argument("ret_kernels is NULL");
}

void weir_kernels_close(struct weir_kernels *kernels)
{
	if (kernels)
		let_go(kernels);
}

int kernel_prepare(struct weir_kernels *k, const char *name, struct buf *program, struct launch *l,
	const char **ret_from, struct error *err)
{
	enum { MAX_DYNAMIC_SHARED = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
	int e = kernel_load(k, name, buf_text(program), &l->function, ret_from, err);
	if (!e && l->shared_bytes)
		e = KERNEL_CALL(k, err, cuFuncSetAttribute, l->function, MAX_DYNAMIC_SHARED,
			(int)l->shared_bytes);
	if (e)
		l->function = NULL;
	return e;
}

int kernel_count_clusters(const struct weir_kernels *k, const char *name, const struct launch *l,
	unsigned *ret, struct error *err)
{
	struct cu_launch_attribute cluster = { .id = 4, .u.cluster = { l->cluster, 1, 1 } };
	const struct cu_launch_config config = { k->device.sms / l->cluster * l->cluster, 1, 1,
		l->block, 1, 1, l->shared_bytes, NULL, &cluster, 1 };
	int n = 0;
	const int e = KERNEL_CALL(k, err, cuOccupancyMaxActiveClusters, &n, l->function, &config);
	if (!e && n < 1)
		return error_set(err, WEIR_KERNELS_ERROR_UNSUPPORTED, "%s fits on no SM", name);
	*ret = (unsigned)n;
	return e;
}

void plan_describe(struct weir_plan *p, const char *name, const char *from,
	const struct launch *launch, double predicted_ns, const char *why)
{
	char predicted[64] = "no prediction";
	if (predicted_ns)
		snprintf(predicted, sizeof predicted, "predicted %.1f us", predicted_ns / 1e3);
	snprintf(p->text, sizeof p->text, "%s (%s), grid %u, block %u, cluster %u, %s%s%.180s",
		name, from, launch->grid, launch->block, launch->cluster, predicted,
		*why ? ": " : "", why);
	p->predicted_ns = predicted_ns;
	snprintf(p->name, sizeof p->name, "%s", name);
}

void plan_finish(struct weir_plan *p, struct weir_kernels *k)
{
	p->kernels = k;
	add_relaxed(&k->holders, 1);
}

size_t weir_plan_workspace(const struct weir_plan *plan)
{
	return plan->workspace_bytes;
}

const char *weir_plan_text(const struct weir_plan *plan)
{
	return plan->text;
}

double weir_plan_predicted_ns(const struct weir_plan *plan)
{
	return plan->predicted_ns;
}

void weir_plan_close(struct weir_plan *plan)
{
	if (plan)
		let_go(plan->kernels);
	free(plan);
}

int kernel_launch(const struct weir_kernels *k, const struct launch *l, void *args, void *stream)
{
	enum {
		CLUSTER_DIMENSION = 4,
		PROGRAMMATIC_STREAM_SERIALIZATION = 6
	}; /* CUlaunchAttributeID */
	struct cu_launch_attribute attrs[2] = { 0 };
	struct cu_launch_config config = { l->grid, 1, 1, l->block, 1, 1, l->shared_bytes, stream,
		attrs, 0 };
	if (l->cluster > 1)
		attrs[config.attr_count++] = (struct cu_launch_attribute){ .id = CLUSTER_DIMENSION,
			.u.cluster = { l->cluster, 1, 1 } };
	if (l->ahead)
		attrs[config.attr_count++] =
			(struct cu_launch_attribute){ .id = PROGRAMMATIC_STREAM_SERIALIZATION,
				.u.value = 1 };
	void *arguments[] = { args };
	if (!l->function)
		return kernel_argument("a pointer is no multiple of 16 bytes, and the plan was "
				       "made for pointers that are (aligned)");
	return KERNEL_CALL(
		k, &kernel_error, cuLaunchKernelEx, &config, l->function, arguments, NULL);
}
