/*
 * Modules, libraries, functions and kernels.  A module belongs to a context; a library to
 * none, and becomes a module in each context that asks for its kernels' functions.
 */
#include "driver/sim.h"
#include "driver/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 30 };

/* The first struct to which an image pointer may point: struct __fatBinC_Wrapper_t. */
struct wrapper {
	uint32_t magic, version;
	const void *data;
	void *more;
};

static int parse_pointer(const void *pointer, struct image *ret_image)
{
	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	struct wrapper w;
	memcpy(&w.magic, pointer, sizeof w.magic);
	if (w.magic == IMAGE_WRAPPER_MAGIC) {
		memcpy(&w, pointer, sizeof w);
		if (!w.data)
			return CUDA_ERROR_INVALID_IMAGE;
		pointer = w.data;
	}
	size_t size = image_measure(pointer);
	if (!size)
		return CUDA_ERROR_INVALID_IMAGE;
	return image_parse(pointer, size, script.capability, ret_image);
}

static int parse_file(const char *path, struct image *ret_image)
{
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	FILE *f = fopen(path, "rbe");
	if (!f)
		return CUDA_ERROR_FILE_NOT_FOUND;
	int r = CUDA_ERROR_INVALID_IMAGE;
	uint8_t *data = NULL;
	long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
	if (size <= 0 || size > MAX_FILE || fseek(f, 0, SEEK_SET) != 0)
		goto close_file;
	data = malloc((size_t)size);
	if (data && fread(data, 1, (size_t)size, f) == (size_t)size)
		r = image_parse(data, (size_t)size, script.capability, ret_image);
	free(data);
close_file:
	fclose(f);
	return r;
}

static int place_global(struct context *ctx, const struct image_global *g, uint64_t *ret_address)
{
	struct range *range;
	int r = range_alloc(ctx, g->size, g->managed ? RANGE_MANAGED : RANGE_GLOBAL, NULL, &range);

	if (r)
		return r;
	if (g->initial)
		memcpy((void *)range->base, g->initial, g->size);
	*ret_address = range->base;
	return CUDA_SUCCESS;
}

static struct function *function_new(struct module *m, const struct image_kernel *k)
{
	struct function *f = obj_new(OBJ_FUNCTION, sizeof *f, m->obj.ctx);

	if (!f)
		return NULL;
	f->module = m;
	f->k = k;
	f->max_dynamic_shared = DEVICE_BLOCK_SHARED - k->shared_bytes;
	if (f->max_dynamic_shared < 0)
		f->max_dynamic_shared = 0;
	f->carveout = -1;
	return f;
}

static void leave_library(struct module *m)
{
	struct module **link = m->library ? &m->library->modules : NULL;

	while (link && *link && *link != m)
		link = &(*link)->sibling;
	if (link && *link)
		*link = m->sibling;
}

static void module_free(struct module *m)
{
	for (size_t i = 0; i < m->image.kernel_count && m->functions; i++)
		obj_free(m->functions[i]);
	for (size_t i = 0; i < m->image.global_count && m->global_address; i++) {
		struct range *range = range_find(m->global_address[i]);

		if (!range || range->base != m->global_address[i])
			continue;
		range_remove(range);
		range_free(range);
	}
	leave_library(m);
	free(m->functions);
	free(m->global_address);
	if (!m->library)
		image_fini(&m->image);
	obj_free(m);
}

void modules_free(struct context *ctx)
{
	struct module *m;

	while ((m = obj_any(OBJ_MODULE, ctx)) != NULL)
		module_free(m);
}

/* Takes the image over, unless it is a library's. */
static int module_new(struct context *ctx, struct image *image, struct library *library,
	struct module **ret_module)
{
	struct module *m = obj_new(OBJ_MODULE, sizeof *m, ctx);
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!m) {
		if (!library)
			image_fini(image);
		return r;
	}
	m->image = *image;
	m->library = library;
	m->functions = calloc(image->kernel_count + 1, sizeof *m->functions);
	m->global_address = calloc(image->global_count + 1, sizeof *m->global_address);
	if (!m->functions || !m->global_address)
		goto free_module;
	for (size_t i = 0; i < image->kernel_count; i++)
		if ((m->functions[i] = function_new(m, &m->image.kernels[i])) == NULL)
			goto free_module;
	for (size_t i = 0; i < image->global_count; i++) {
		r = place_global(ctx, &m->image.globals[i], &m->global_address[i]);
		if (r)
			goto free_module;
	}
	*ret_module = m;
	return CUDA_SUCCESS;
free_module:
	module_free(m);
	return r;
}

static int load(void **ret_module, int (*parse)(const void *, struct image *), const void *source)
{
	struct context *ctx;
	struct image image;
	struct module *m;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_forbids();
	if (!r)
		r = parse(source, &image);
	if (!r)
		r = module_new(ctx, &image, NULL, &m);
	if (!r)
		*ret_module = m;
	return r;
}

static int parse_path(const void *path, struct image *ret_image)
{
	return parse_file(path, ret_image);
}

int sim_cuModuleLoadData(void **ret_module, void *data)
{
	return load(ret_module, parse_pointer, data);
}

int sim_cuModuleLoadDataEx(
	void **ret_module, void *data, unsigned count, int *options, void **values)
{
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	return load(ret_module, parse_pointer, data);
}

int sim_cuModuleLoadFatBinary(void **ret_module, void *data)
{
	return load(ret_module, parse_pointer, data);
}

int sim_cuModuleLoad(void **ret_module, const char *path)
{
	return load(ret_module, parse_path, path);
}

int sim_cuModuleUnload(void *handle)
{
	struct module *m = obj_find(handle, OBJ_MODULE);
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!m || m->library)
		return CUDA_ERROR_INVALID_HANDLE;
	context_wait(m->obj.ctx);
	m = obj_find(handle, OBJ_MODULE); /* the wait gave others a chance to unload it */
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	module_free(m);
	return CUDA_SUCCESS;
}

int sim_cuModuleGetLoadingMode(int *ret_mode)
{
	if (!ret_mode)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

static int find_kernel(struct image *image, const char *name, size_t *ret_index)
{
	struct image_kernel *k = image_find_kernel(image, name, strlen(name));

	if (!k)
		return CUDA_ERROR_NOT_FOUND;
	*ret_index = (size_t)(k - image->kernels);
	return CUDA_SUCCESS;
}

int sim_cuModuleGetFunction(void **ret_function, void *handle, const char *name)
{
	struct module *m = obj_find(handle, OBJ_MODULE);
	size_t i;

	if (!ret_function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	int r = find_kernel(&m->image, name, &i);
	if (!r)
		*ret_function = m->functions[i];
	return r;
}

int sim_cuModuleGetFunctionCount(unsigned *ret_count, void *handle)
{
	struct module *m = obj_find(handle, OBJ_MODULE);

	if (!m || !ret_count)
		return m ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*ret_count = (unsigned)m->image.kernel_count;
	return CUDA_SUCCESS;
}

int sim_cuModuleEnumerateFunctions(void **functions, unsigned count, void *handle)
{
	struct module *m = obj_find(handle, OBJ_MODULE);

	if (!m || !functions)
		return m ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < m->image.kernel_count && i < count; i++)
		functions[i] = m->functions[i];
	return CUDA_SUCCESS;
}

static int module_global(
	struct module *m, const char *name, unsigned long long *ret_address, size_t *ret_size)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < m->image.global_count; i++) {
		if (strcmp(m->image.globals[i].name, name) != 0)
			continue;
		if (ret_address)
			*ret_address = m->global_address[i];
		if (ret_size)
			*ret_size = m->image.globals[i].size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

int sim_cuModuleGetGlobal_v2(
	unsigned long long *ret_address, size_t *ret_size, void *handle, const char *name)
{
	struct module *m = obj_find(handle, OBJ_MODULE);

	return m ? module_global(m, name, ret_address, ret_size) : CUDA_ERROR_INVALID_HANDLE;
}

/* Libraries. */

static void library_free(struct library *lib)
{
	while (lib->modules)
		module_free(lib->modules);
	for (size_t i = 0; i < lib->image.kernel_count && lib->kernels; i++)
		obj_free(lib->kernels[i]);
	free(lib->kernels);
	image_fini(&lib->image);
	obj_free(lib);
}

static struct kernel *kernel_new(struct library *lib, size_t index)
{
	struct kernel *k = obj_new(OBJ_KERNEL, sizeof *k, NULL);

	if (!k)
		return NULL;
	k->library = lib;
	k->index = index;
	k->k = &lib->image.kernels[index];
	k->max_dynamic_shared = -1;
	return k;
}

static int library_new(struct image *image, void **ret_library)
{
	struct library *lib = obj_new(OBJ_LIBRARY, sizeof *lib, NULL);

	if (!lib) {
		image_fini(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	lib->image = *image;
	lib->kernels = calloc(image->kernel_count + 1, sizeof *lib->kernels);
	for (size_t i = 0; lib->kernels && i < image->kernel_count; i++)
		if ((lib->kernels[i] = kernel_new(lib, i)) == NULL)
			goto free_library;
	if (!lib->kernels)
		goto free_library;
	*ret_library = lib;
	return CUDA_SUCCESS;
free_library:
	library_free(lib);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_cuLibraryLoadData(void **ret_library, void *data, int *jit, void **jit_values,
	unsigned jit_count, int *options, void **values, unsigned count)
{
	struct image image;

	if (!ret_library || (jit_count && !jit) || (count && !options))
		return CUDA_ERROR_INVALID_VALUE;
	int r = parse_pointer(data, &image);
	return r ? r : library_new(&image, ret_library);
}

int sim_cuLibraryLoadFromFile(void **ret_library, const char *path, int *jit, void **jit_values,
	unsigned jit_count, int *options, void **values, unsigned count)
{
	struct image image;

	if (!ret_library || (jit_count && !jit) || (count && !options))
		return CUDA_ERROR_INVALID_VALUE;
	int r = parse_file(path, &image);
	return r ? r : library_new(&image, ret_library);
}

int sim_cuLibraryUnload(void *handle)
{
	struct library *lib = obj_find(handle, OBJ_LIBRARY);

	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	for (struct module *m = lib->modules; m; m = m->sibling)
		context_wait(m->obj.ctx);
	lib = obj_find(handle, OBJ_LIBRARY);
	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	library_free(lib);
	return CUDA_SUCCESS;
}

int sim_cuLibraryGetKernel(void **ret_kernel, void *handle, const char *name)
{
	struct library *lib = obj_find(handle, OBJ_LIBRARY);
	size_t i;

	if (!ret_kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	int r = find_kernel(&lib->image, name, &i);
	if (!r)
		*ret_kernel = lib->kernels[i];
	return r;
}

int sim_cuLibraryGetKernelCount(unsigned *ret_count, void *handle)
{
	struct library *lib = obj_find(handle, OBJ_LIBRARY);

	if (!lib || !ret_count)
		return lib ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*ret_count = (unsigned)lib->image.kernel_count;
	return CUDA_SUCCESS;
}

int sim_cuLibraryEnumerateKernels(void **kernels, unsigned count, void *handle)
{
	struct library *lib = obj_find(handle, OBJ_LIBRARY);

	if (!lib || !kernels)
		return lib ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < lib->image.kernel_count && i < count; i++)
		kernels[i] = lib->kernels[i];
	return CUDA_SUCCESS;
}

/* The library's module in the current context, made now if need be. */
static int library_module(struct library *lib, struct module **ret_module)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	for (struct module *m = lib->modules; m; m = m->sibling) {
		if (m->obj.ctx != ctx)
			continue;
		*ret_module = m;
		return CUDA_SUCCESS;
	}
	r = module_new(ctx, &lib->image, lib, ret_module);
	if (r)
		return r;
	(*ret_module)->sibling = lib->modules;
	lib->modules = *ret_module;
	return CUDA_SUCCESS;
}

int sim_cuLibraryGetModule(void **ret_module, void *handle)
{
	struct library *lib = obj_find(handle, OBJ_LIBRARY);
	struct module *m;

	if (!lib || !ret_module)
		return lib ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	int r = library_module(lib, &m);
	if (!r)
		*ret_module = m;
	return r;
}

int sim_cuLibraryGetGlobal(
	unsigned long long *ret_address, size_t *ret_size, void *handle, const char *name)
{
	struct library *lib = obj_find(handle, OBJ_LIBRARY);
	struct module *m;

	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	int r = library_module(lib, &m);
	return r ? r : module_global(m, name, ret_address, ret_size);
}

int sim_cuLibraryGetManaged(
	unsigned long long *ret_address, size_t *ret_size, void *handle, const char *name)
{
	return sim_cuLibraryGetGlobal(ret_address, ret_size, handle, name);
}

/* Kernels and functions. */

static int kernel_function(struct kernel *kernel, struct function **ret_function)
{
	struct module *m;
	int r = library_module(kernel->library, &m);

	if (r)
		return r;
	*ret_function = m->functions[kernel->index];
	if (kernel->max_dynamic_shared >= 0)
		(*ret_function)->max_dynamic_shared = kernel->max_dynamic_shared;
	return CUDA_SUCCESS;
}

int function_get(void *handle, struct function **ret_function)
{
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	struct kernel *kernel = obj_find(handle, OBJ_KERNEL);
	if (kernel)
		return kernel_function(kernel, ret_function);
	*ret_function = obj_find(handle, OBJ_FUNCTION);
	return *ret_function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int sim_cuKernelGetFunction(void **ret_function, void *handle)
{
	struct kernel *kernel = obj_find(handle, OBJ_KERNEL);
	struct function *f;

	if (!kernel || !ret_function)
		return kernel ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	int r = kernel_function(kernel, &f);
	if (!r)
		*ret_function = f;
	return r;
}

int sim_cuKernelGetLibrary(void **ret_library, void *handle)
{
	struct kernel *kernel = obj_find(handle, OBJ_KERNEL);

	if (!kernel || !ret_library)
		return kernel ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*ret_library = kernel->library;
	return CUDA_SUCCESS;
}

int sim_cuFuncGetModule(void **ret_module, void *handle)
{
	struct function *f = obj_find(handle, OBJ_FUNCTION);

	if (!f || !ret_module)
		return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*ret_module = f->module;
	return CUDA_SUCCESS;
}

/* The image's description of a kernel or a function, or NULL. */
static const struct image_kernel *described(void *handle)
{
	struct kernel *kernel = obj_find(handle, OBJ_KERNEL);
	struct function *f = obj_find(handle, OBJ_FUNCTION);

	return kernel ? kernel->k : f ? f->k : NULL;
}

int sim_cuFuncGetName(char **ret_name, void *handle)
{
	const struct image_kernel *k = described(handle);

	if (!k || !ret_name)
		return k ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	*ret_name = k->name;
	return CUDA_SUCCESS;
}

int sim_cuKernelGetName(char **ret_name, void *handle) SIM_ALIAS(sim_cuFuncGetName);

int sim_cuFuncGetParamInfo(void *handle, size_t index, size_t *ret_offset, size_t *ret_size)
{
	const struct image_kernel *k = described(handle);

	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret_offset || index >= k->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = k->params[index].offset;
	if (ret_size)
		*ret_size = k->params[index].size;
	return CUDA_SUCCESS;
}

int sim_cuKernelGetParamInfo(void *handle, size_t index, size_t *ret_offset, size_t *ret_size)
	SIM_ALIAS(sim_cuFuncGetParamInfo);

static int attribute_of(const struct image_kernel *k, int attribute, int *ret_value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret_value = k->max_threads;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*ret_value = k->shared_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*ret_value = k->const_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*ret_value = k->local_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret_value = k->registers;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*ret_value = k->ptx_version;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret_value = k->binary_version;
		return CUDA_SUCCESS;
	}
	if (attribute < 0 || attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_value = 0;
	return CUDA_SUCCESS;
}

int sim_cuFuncGetAttribute(int *ret_value, int attribute, void *handle)
{
	struct function *f;
	int r = function_get(handle, &f);

	if (r)
		return r;
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret_value = f->max_dynamic_shared;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*ret_value = f->carveout;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*ret_value = f->non_portable_cluster;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*ret_value = f->cluster_policy;
		return CUDA_SUCCESS;
	}
	return attribute_of(f->k, attribute, ret_value);
}

int sim_cuFuncSetAttribute(void *handle, int attribute, int value)
{
	struct function *f;
	int r = function_get(handle, &f);

	if (r)
		return r;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value + f->k->shared_bytes > DEVICE_BLOCK_SHARED_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		f->max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		f->carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		f->non_portable_cluster = value != 0;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		f->cluster_policy = value;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

int sim_cuKernelGetAttribute(int *ret_value, int attribute, void *handle, int device)
{
	struct kernel *kernel = obj_find(handle, OBJ_KERNEL);

	if (!kernel || !ret_value)
		return kernel ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		*ret_value = kernel->max_dynamic_shared >= 0
				     ? kernel->max_dynamic_shared
				     : DEVICE_BLOCK_SHARED - kernel->k->shared_bytes;
		return CUDA_SUCCESS;
	}
	return attribute_of(kernel->k, attribute, ret_value);
}

int sim_cuKernelSetAttribute(int attribute, int value, void *handle, int device)
{
	struct kernel *kernel = obj_find(handle, OBJ_KERNEL);

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
		return attribute > 7 && attribute < 16 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (value < 0 || value + kernel->k->shared_bytes > DEVICE_BLOCK_SHARED_OPTIN)
		return CUDA_ERROR_INVALID_VALUE;
	kernel->max_dynamic_shared = value;
	return CUDA_SUCCESS;
}

static int any_function(void *handle)
{
	struct function *f;

	return function_get(handle, &f);
}

int sim_cuFuncSetCacheConfig(void *handle, int config)
{
	return any_function(handle);
}

int sim_cuFuncSetSharedMemConfig(void *handle, int config)
{
	return any_function(handle);
}

int sim_cuKernelSetCacheConfig(void *handle, int config, int device)
{
	return obj_find(handle, OBJ_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int sim_cuFuncLoad(void *handle)
{
	return any_function(handle);
}

int sim_cuFuncIsLoaded(int *ret_state, void *handle)
{
	if (!obj_find(handle, OBJ_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret_state)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}
