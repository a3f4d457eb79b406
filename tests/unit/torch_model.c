/*
 * A model as PyTorch's AOTInductor compiles one: the functions of its container, which call those
 * of libtorch, the CUDA runtime and the driver.  Y is X + 0, and W the first rows of a weight.  The
 * file "does" in the folder of kernels says what else it does.  With NEEDS_LIBTORCH it calls a
 * function that Weir has not.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

typedef struct torch_tensor *tensor;

int32_t aoti_torch_device_type_cuda(void);
int32_t aoti_torch_dtype_float32(void);
int32_t aoti_torch_dtype_float16(void);
int32_t aoti_torch_get_data_ptr(tensor t, void **ret);
int32_t aoti_torch_get_sizes(tensor t, int64_t **ret);
int32_t aoti_torch_delete_tensor_object(tensor t);
int32_t aoti_torch_new_tensor_handle(tensor t, tensor *ret);
#ifdef NEEDS_LIBTORCH
int32_t aoti_torch_cuda_addmm_out(tensor t);
#else
int32_t aoti_torch_empty_strided(int64_t dims, const int64_t *size, const int64_t *stride,
	int32_t type, int32_t device, int32_t index, tensor *ret);
int32_t aoti_torch_create_tensor_from_blob_v2(void *data, int64_t dims, const int64_t *size,
	const int64_t *stride, int64_t offset, int32_t type, int32_t device, int32_t index,
	tensor *ret, int32_t layout, const uint8_t *metadata, int64_t bytes);
int32_t aoti_torch__reinterpret_tensor(tensor t, int64_t dims, const int64_t *size,
	const int64_t *stride, int64_t offset, tensor *ret);
int32_t aoti_torch_create_cuda_stream_guard(void *stream, int32_t index, void **ret);
int32_t aoti_torch_delete_cuda_stream_guard(void *guard);
void aoti_torch_check(
	_Bool holds, const char *function, const char *file, uint32_t line, const char *text);
int cudaSetDevice(int index);
int cudaMalloc(void **ret, size_t bytes);
int cudaFree(void *at);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cuModuleLoad(void **ret, const char *path);
int cuModuleGetFunction(void **ret, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream,
	void **arguments, void **extra);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
#endif

struct container {
	char does[20];
	void *blob;
	tensor weight;
	void *kernel;
};

/* A symbol that the loader makes one for all objects, as those of a C++ runtime in a model. */
__asm__(".pushsection .data\n"
	".globl one_for_all\n"
	".type one_for_all, %gnu_unique_object\n"
	".size one_for_all, 4\n"
	".balign 4\n"
	"one_for_all: .long 0\n"
	".popsection\n");
extern int one_for_all;

static int is(const struct container *c, const char *what)
{
	return strcmp(c->does, what) == 0;
}

static void read_text(const char *folder, char *to, size_t n)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/does", folder);
	FILE *f = fopen(path, "r");
	if (f) {
		to[fread(to, 1, n - 1, f)] = 0;
		fclose(f);
	}
}

#ifdef NEEDS_LIBTORCH
static int load(struct container *c, const char *folder)
{
	(void)c;
	(void)folder;
	return 0;
}
#else
static int load(struct container *c, const char *folder)
{
	static const float weight[] = { 10, 20, 30, 40, 50, 60, 70, 80 };
	const int64_t size[] = { 4, 2 }, stride[] = { 2, 1 };
	char path[4096];
	void *module;
	snprintf(path, sizeof path, "%s/add.ptx", folder);
	const size_t bytes = is(c, "too-large") ? (size_t)1 << 50 : sizeof weight;
	return cudaSetDevice(0) || cudaMalloc(&c->blob, bytes) ||
	       cudaMemcpy(c->blob, weight, sizeof weight, 1) ||
	       aoti_torch_create_tensor_from_blob_v2(c->blob, 2, size, stride, 0,
		       aoti_torch_dtype_float32(), aoti_torch_device_type_cuda(), 0, &c->weight, 0,
		       NULL, 0) ||
	       cuModuleLoad(&module, path) || cuModuleGetFunction(&c->kernel, module, "add");
}
#endif

PUBLIC int32_t AOTInductorModelContainerCreateWithDevice(
	void **ret, size_t models, const char *device, const char *kernels)
{
	struct container *c = calloc(1, sizeof *c);
	if (models != 1 || strcmp(device, "cuda:0") != 0 || one_for_all++)
		return 1;
	read_text(kernels, c->does, sizeof c->does);
	*ret = c;
	return load(c, kernels);
}

PUBLIC int32_t AOTInductorModelContainerDelete(void *container)
{
	struct container *c = container;
#ifndef NEEDS_LIBTORCH
	if (c->weight)
		aoti_torch_delete_tensor_object(c->weight);
	if (c->blob && cudaFree(c->blob))
		abort();
#endif
	free(c);
	return 0;
}

PUBLIC int32_t AOTInductorModelContainerGetNumInputs(void *container, size_t *ret)
{
	(void)container;
	*ret = 1;
	return 0;
}

PUBLIC int32_t AOTInductorModelContainerGetNumOutputs(void *container, size_t *ret)
{
	(void)container;
#ifdef NEEDS_LIBTORCH
	*ret = 1;
#else
	*ret = 2;
#endif
	return 0;
}

#ifdef NEEDS_LIBTORCH
static int run(struct container *c, tensor in, tensor *out, void *stream)
{
	(void)stream;
	return is(c, "fail") || aoti_torch_cuda_addmm_out(in) ||
	       aoti_torch_new_tensor_handle(in, out);
}
#else
/* A copy on the device; the kernel of the simulated driver computes nothing. */
static int add(const struct container *c, tensor from, tensor to, size_t bytes, void *stream)
{
	void *a, *b;
	if (aoti_torch_get_data_ptr(from, &a) || aoti_torch_get_data_ptr(to, &b))
		return 1;
	return cuLaunchKernel(
		       c->kernel, 1, 1, 1, 32, 1, 1, 0, stream, (void *[]){ &a, &b }, NULL) ||
	       cuMemcpyDtoDAsync_v2((uint64_t)b, (uint64_t)a, bytes, stream);
}

static int run(struct container *c, tensor in, tensor *out, void *stream)
{
	tensor temporary;
	int64_t *size, stride[] = { 2, 1 }, turned[] = { 1, 4 }, shape[] = { 0, 2 };
	int32_t device = aoti_torch_device_type_cuda(), type = aoti_torch_dtype_float32();
	if (is(c, "fail") || aoti_torch_get_sizes(in, &size))
		return 1;
	aoti_torch_check(!is(c, "check"), "run", "model.c", 1, "rows are even");
	shape[0] = is(c, "wrong-shape") ? size[0] + 1 : size[0];
	const size_t bytes = (size_t)size[0] * 8;
	if (aoti_torch_empty_strided(2, shape, stride, type, device, 0, &temporary) ||
		add(c, in, temporary, bytes, stream))
		return 1;
	turned[1] = shape[0];
	if (is(c, "strided") &&
		aoti_torch__reinterpret_tensor(temporary, 2, shape, turned, 0, &out[0]))
		return 1;
	if (!is(c, "strided") && (aoti_torch_empty_strided(2, shape, stride,
					  is(c, "wrong-type") ? aoti_torch_dtype_float16() : type,
					  device, 0, &out[0]) ||
					 add(c, temporary, out[0], bytes, stream)))
		return 1;
	return aoti_torch_delete_tensor_object(temporary) ||
	       aoti_torch__reinterpret_tensor(c->weight, 2, shape, stride, 0, &out[1]);
}
#endif

#ifdef OLD
#define AOTInductorModelContainerRunSingleThreaded AOTInductorModelContainerRun
#endif
PUBLIC int32_t AOTInductorModelContainerRunSingleThreaded(void *container, tensor *in, size_t ins,
	tensor *out, size_t outs, void *stream, void *proxy)
{
	(void)ins;
	(void)outs;
	(void)proxy;
#ifdef NEEDS_LIBTORCH
	const int e = run(container, in[0], out, stream);
#else
	void *guard;
	if (aoti_torch_create_cuda_stream_guard(stream, 0, &guard))
		return 1;
	const int e = run(container, in[0], out, stream);
	aoti_torch_delete_cuda_stream_guard(guard);
#endif
	aoti_torch_delete_tensor_object(in[0]);
	return e;
}
