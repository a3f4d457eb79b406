/* Gets a kernel into the driver: from memory, the cache, NVRTC, or the PTX that is built in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "kernels/cache.h"
#include "kernels/plan.h"
#include "kernels/sources.h"

static void put_arch(const struct weir_kernels *k, char *to, size_t size)
{
	snprintf(to, size, "sm_%u%s", k->device.cc, k->device.cc >= 90 ? "a" : "");
}

/* A module with the kernel in it.  *ret_module is NULL where the image has none of that name. */
static int load_image(const struct weir_kernels *k, const char *image, const char *name,
	void **ret_module, void **ret_function, struct error *err)
{
	void *module;
	int e = KERNEL_CALL(k, err, cuModuleLoadData, &module, image);
	if (e)
		return e;
	e = KERNEL_CALL(k, err, cuModuleGetFunction, ret_function, module, name);
	if (e)
		k->cu.cuModuleUnload(module);
	else
		*ret_module = module;
	return e;
}

static char *key_of(const struct weir_kernels *k, const char *arch, const char *text)
{
	return xasprintf("weir kernels\n%s\nNVRTC %s\nsources %016" PRIx64 "\n%s", arch,
		nvrtc_version(k->nvrtc), nvrtc_sources(), text);
}

static int load_compiled(
	const struct weir_kernels *k, const char *text, struct loaded *l, struct error *err)
{
	char arch[16];
	struct buf image = { 0 };
	if (!k->nvrtc)
		return error_set(err, WEIR_KERNELS_ERROR_COMPILER,
			"%s needs NVRTC (libnvrtc.so.13), which is not here", l->name);
	put_arch(k, arch, sizeof arch);
	char *key = key_of(k, arch, text);
	int e = WEIR_KERNELS_ERROR_COMPILER;
	if (k->cache && cache_get(k->cache, key, &image)) {
		l->from = "cache";
		e = load_image(k, image.v, l->name, &l->module, &l->function, err);
	}
	if (e) {
		l->from = "NVRTC";
		e = nvrtc_compile(k->nvrtc, text, arch, &image, err);
		e = e ? e : load_image(k, image.v, l->name, &l->module, &l->function, err);
		if (!e && k->cache)
			cache_put(k->cache, key, &image);
	}
	free(key);
	buf_free(&image);
	return e;
}

/* Under the lock. */
static int load(struct weir_kernels *k, const char *text, struct loaded *l, struct error *err)
{
	char entry[128];
	int e = load_compiled(k, text, l, err);
	if (!e)
		return 0;
	snprintf(entry, sizeof entry, ".entry %s(", l->name);
	if (!strstr(kernel_builtin, entry))
		return e;
	l->from = "built in";
	return load_image(k, kernel_builtin, l->name, &l->module, &l->function, err);
}

int kernel_load(struct weir_kernels *k, const char *name, const char *text, void **ret_function,
	const char **ret_from, struct error *err)
{
	int e = 0;
	struct loaded fresh = { .name = xstrdup(name) }, *l = NULL;
	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < k->loaded.n && !l; i++)
		if (strcmp(k->loaded.v[i].name, name) == 0)
			l = &k->loaded.v[i];
	if (!l) {
		e = load(k, text, &fresh, err);
		if (!e) {
			l = array_push(&k->loaded);
			*l = fresh;
			fresh.name = NULL;
		}
	}
	if (!e) {
		*ret_function = l->function;
		*ret_from = l->from;
	}
	pthread_mutex_unlock(&k->lock);
	free(fresh.name);
	return e;
}

void kernel_unload(struct weir_kernels *k)
{
	void *popped;
	const bool entered = !k->cu.cuCtxPushCurrent_v2(k->context); /* it may be gone */
	for (size_t i = 0; i < k->loaded.n; i++) {
		if (entered)
			k->cu.cuModuleUnload(k->loaded.v[i].module);
		free(k->loaded.v[i].name);
	}
	if (entered)
		k->cu.cuCtxPopCurrent_v2(&popped);
	array_free(&k->loaded);
}
