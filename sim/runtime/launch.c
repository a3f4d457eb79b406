/*
 * Launches and questions about kernels.  The names with two underscores are what compiled
 * programs call: nvcc turns f<<<…>>>() into a pushed configuration and a call of a stub,
 * which pops it and launches.
 */
#include "rt.h"

struct launch_config { /* cudaLaunchConfig_t */
	struct dim3 grid, block;
	size_t shared;
	void *stream;
	struct cu_launch_attribute *attrs;
	unsigned attr_count;
};

struct func_attributes { /* cudaFuncAttributes */
	size_t shared, constant, local;
	int max_threads, registers, ptx_version, binary_version, cache_mode;
	int max_dynamic_shared, carveout;
	int cluster_must, cluster_width, cluster_height, cluster_depth, cluster_policy;
	int non_portable_cluster;
	int reserved[16];
};

enum { CONFIGS = 16 };

static _Thread_local struct {
	struct dim3 grid, block;
	size_t shared;
	void *stream;
} configs[CONFIGS];
static _Thread_local unsigned config_count;

RT_EXPORT unsigned __cudaPushCallConfiguration(
	struct dim3 grid, struct dim3 block, size_t shared, void *stream);
unsigned __cudaPushCallConfiguration(
	struct dim3 grid, struct dim3 block, size_t shared, void *stream)
{
	if (config_count == CONFIGS)
		return 1;
	configs[config_count].grid = grid;
	configs[config_count].block = block;
	configs[config_count].shared = shared;
	configs[config_count].stream = stream;
	config_count++;
	return 0;
}

RT_FUNCTION(__cudaPopCallConfiguration,
	(struct dim3 * grid, struct dim3 *block, size_t *shared, void *stream))
{
	if (!config_count)
		return rt_end(cudaErrorMissingConfiguration);
	config_count--;
	*grid = configs[config_count].grid;
	*block = configs[config_count].block;
	*shared = configs[config_count].shared;
	*(void **)stream = configs[config_count].stream;
	return 0;
}

static bool too_big(struct dim3 grid, struct dim3 block)
{
	uint64_t threads = (uint64_t)block.x * block.y * block.z;

	return !grid.x || !grid.y || !grid.z || !threads || threads > 1024 || block.z > 64 ||
	       grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535;
}

/* The runtime has a name of its own for a grid or block that cannot be. */
static int launch_error(int code, struct dim3 grid, struct dim3 block)
{
	return code == CUDA_ERROR_INVALID_VALUE && too_big(grid, block)
		       ? cudaErrorInvalidConfiguration
		       : code;
}

static int launch(const struct driver *d, void *kernel, struct dim3 grid, struct dim3 block,
	void **args, size_t shared, void *stream)
{
	int r = d->cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned)shared, stream, args, NULL);

	return launch_error(r, grid, block);
}

static int body___cudaLaunchKernel(const struct driver *d, void *kernel, struct dim3 grid,
	struct dim3 block, void **args, size_t shared, void *stream)
{
	return launch(d, kernel, grid, block, args, shared, stream);
}

RT_PAIR(__cudaLaunchKernel, _ptsz,
	(void *kernel, struct dim3 grid, struct dim3 block, void **args, size_t shared,
		void *stream),
	kernel, grid, block, args, shared, stream)

static int body_cudaLaunchKernel(const struct driver *d, const void *function, struct dim3 grid,
	struct dim3 block, void **args, size_t shared, void *stream)
{
	void *kernel;
	int r = rt_kernel(function, &kernel);

	return r ? r : launch(d, kernel, grid, block, args, shared, stream);
}

RT_PAIR(cudaLaunchKernel, _ptsz,
	(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t shared,
		void *stream),
	function, grid, block, args, shared, stream)

static int body_cudaLaunchCooperativeKernel(const struct driver *d, const void *function,
	struct dim3 grid, struct dim3 block, void **args, size_t shared, void *stream)
{
	void *kernel;
	int r = rt_kernel(function, &kernel);

	if (!r)
		r = d->cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
			block.z, (unsigned)shared, stream, args);
	return launch_error(r, grid, block);
}

RT_PAIR(cudaLaunchCooperativeKernel, _ptsz,
	(const void *function, struct dim3 grid, struct dim3 block, void **args, size_t shared,
		void *stream),
	function, grid, block, args, shared, stream)

static int body_cudaLaunchKernelExC(
	const struct driver *d, const struct launch_config *c, const void *function, void **args)
{
	void *kernel;

	if (!c)
		return cudaErrorInvalidConfiguration;
	int r = rt_kernel(function, &kernel);
	if (r)
		return r;
	struct cu_launch_config config = {
		.grid_x = c->grid.x,
		.grid_y = c->grid.y,
		.grid_z = c->grid.z,
		.block_x = c->block.x,
		.block_y = c->block.y,
		.block_z = c->block.z,
		.shared_bytes = (uint32_t)c->shared,
		.stream = c->stream,
		.attrs = c->attrs,
		.attr_count = c->attr_count,
	};
	r = d->cuLaunchKernelEx(&config, kernel, args, NULL);
	return launch_error(r, c->grid, c->block);
}

RT_PAIR(cudaLaunchKernelExC, _ptsz,
	(const struct launch_config *config, const void *function, void **args), config, function,
	args)

static int kernel_of(const void *function, void **ret_kernel)
{
	int r = rt_begin();

	if (!r && !ret_kernel)
		r = cudaErrorInvalidValue;
	return rt_end(r ? r : rt_kernel(function, ret_kernel));
}

RT_FUNCTION(__cudaGetKernel, (void **ret_kernel, const void *function))
{
	return kernel_of(function, ret_kernel);
}

RT_FUNCTION(cudaGetKernel, (void **ret_kernel, const void *function))
{
	return kernel_of(function, ret_kernel);
}

RT_FUNCTION(cudaGetFuncBySymbol, (void **ret_function, const void *symbol))
{
	void *kernel;
	int r = kernel_of(symbol, &kernel);

	if (!r && !ret_function)
		r = cudaErrorInvalidValue;
	return rt_end(r ? r : rt_legacy.cuKernelGetFunction(ret_function, kernel));
}

static int function_of(const void *symbol, void **ret_function)
{
	void *kernel;
	int r = kernel_of(symbol, &kernel);

	return r ? r : rt_legacy.cuKernelGetFunction(ret_function, kernel);
}

RT_FUNCTION(cudaFuncGetAttributes, (struct func_attributes * ret, const void *function))
{
	void *f;
	int value[16] = { 0 };
	int r = function_of(function, &f);

	if (!r && !ret)
		r = cudaErrorInvalidValue;
	for (int i = 0; !r && i <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE; i++)
		r = rt_legacy.cuFuncGetAttribute(&value[i], i, f);
	if (r)
		return rt_end(r);
	*ret = (struct func_attributes){
		.max_threads = value[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
		.shared = (size_t)value[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
		.constant = (size_t)value[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
		.local = (size_t)value[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
		.registers = value[CU_FUNC_ATTRIBUTE_NUM_REGS],
		.ptx_version = value[CU_FUNC_ATTRIBUTE_PTX_VERSION],
		.binary_version = value[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
		.cache_mode = value[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA],
		.max_dynamic_shared = value[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
		.carveout = value[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT],
		.non_portable_cluster = value[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED],
		.cluster_policy = value[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE],
	};
	return 0;
}

/* cudaFuncAttribute has the numbers of CUfunction_attribute. */
RT_FUNCTION(cudaFuncSetAttribute, (const void *function, int attribute, int value))
{
	void *f;
	int r = function_of(function, &f);

	return rt_end(r ? r : rt_legacy.cuFuncSetAttribute(f, attribute, value));
}

RT_FUNCTION(cudaFuncSetCacheConfig, (const void *function, int config))
{
	void *f;
	int r = function_of(function, &f);

	return rt_end(r ? r : rt_legacy.cuFuncSetCacheConfig(f, config));
}

RT_FUNCTION(cudaFuncGetName, (const char **ret_name, const void *function))
{
	void *kernel;
	int r = kernel_of(function, &kernel);

	return rt_end(r ? r : rt_legacy.cuKernelGetName((char **)ret_name, kernel));
}

RT_FUNCTION(cudaFuncGetParamInfo,
	(const void *function, size_t index, size_t *ret_offset, size_t *ret_size))
{
	void *f;
	int r = function_of(function, &f);

	return rt_end(r ? r : rt_legacy.cuFuncGetParamInfo(f, index, ret_offset, ret_size));
}

RT_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *ret_blocks, const void *function, int threads, size_t shared, unsigned flags))
{
	void *f;
	int r = function_of(function, &f);

	return rt_end(r ? r
			: rt_legacy.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
				  ret_blocks, f, threads, shared, flags));
}

RT_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *ret_blocks, const void *function, int threads, size_t shared))
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		ret_blocks, function, threads, shared, 0);
}

RT_FUNCTION(cudaOccupancyAvailableDynamicSMemPerBlock,
	(size_t * ret_bytes, const void *function, int blocks, int threads))
{
	void *f;
	int r = function_of(function, &f);

	return rt_end(r ? r
			: rt_legacy.cuOccupancyAvailableDynamicSMemPerBlock(
				  ret_bytes, f, blocks, threads));
}

RT_PASS(cudaLibraryLoadData, cuLibraryLoadData,
	(void **library, const void *code, int *jit, void **jit_values, unsigned jit_count,
		int *options, void **values, unsigned count),
	library, (void *)code, jit, jit_values, jit_count, options, values, count)
RT_PASS(cudaLibraryLoadFromFile, cuLibraryLoadFromFile,
	(void **library, const char *path, int *jit, void **jit_values, unsigned jit_count,
		int *options, void **values, unsigned count),
	library, path, jit, jit_values, jit_count, options, values, count)
RT_PASS(cudaLibraryUnload, cuLibraryUnload, (void *library), library)
RT_PASS(cudaLibraryGetKernel, cuLibraryGetKernel, (void **kernel, void *library, const char *name),
	kernel, library, name)
RT_PASS(cudaLibraryGetKernelCount, cuLibraryGetKernelCount, (unsigned *count, void *library), count,
	library)
RT_PASS(cudaLibraryEnumerateKernels, cuLibraryEnumerateKernels,
	(void **kernels, unsigned count, void *library), kernels, count, library)
RT_PASS(cudaLibraryGetGlobal, cuLibraryGetGlobal,
	(void **address, size_t *size, void *library, const char *name),
	(unsigned long long *)address, size, library, name)
RT_PASS(cudaLibraryGetManaged, cuLibraryGetManaged,
	(void **address, size_t *size, void *library, const char *name),
	(unsigned long long *)address, size, library, name)
