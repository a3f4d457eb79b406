/*
 * A runtime with the interface of ONNX Runtime, as far as its use of a GPU goes, for the simulated
 * driver.  A model is a line of text: the number of its elements' type and how many a row has.  Y
 * is X, by way of a block that each run takes from the registered allocator and gives back, and W
 * is what the session has as weights.  The parameter `driver` of the CUDA provider is the file of
 * the driver, `fail` makes a call fail, and `host` says how the weights come by way of the host.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "ort_functions.h"

#define VERSION 22
#define WEIGHTS 16 /* bytes */
#define MARK    0x5a

struct ort_status {
	char text[200];
};
struct ort_allocator {
	uint32_t version;
	void *(*alloc)(struct ort_allocator *a, size_t bytes);
	void (*free)(struct ort_allocator *a, void *at);
	const struct ort_memory *(*info)(const struct ort_allocator *a);
	void *(*reserve)(struct ort_allocator *a, size_t bytes);
};
struct ort_options {
	bool tensorrt;
	int level;
	struct ort_cuda *cuda;
};
struct ort_cuda {
	char driver[400], fail[40], host[40];
	void *stream, *provider;
	int level;       /* that the session is to have; -1: any */
	unsigned strict; /* so often it was said how half precision is summed */
};
struct ort_tensor {
	int type;
	size_t dims;
	int64_t dim[2];
};
struct ort_value {
	struct ort_tensor tensor;
	void *data;
	bool owned; /* by the allocator */
};
struct ort_session {
	struct ort_tensor in, out[2];
	struct ort_cuda cuda;
	bool on_gpu;
	void *weights;
};
struct ort_binding {
	struct ort_session *session;
	struct ort_value in, out[2];
	bool own[2]; /* outputs that a run has to find memory for */
};

static struct ort_allocator *registered;
static int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
static int (*copy_in)(uint64_t to, const void *from, size_t bytes, void *stream);
static int (*provider_copy)(uint64_t to, const void *from, size_t bytes, void *stream);
static int (*call)(void *stream, void (*function)(void *), void *data);
static int (*fill)(uint64_t to, unsigned char value, size_t bytes, void *stream);
static char made; /* what is made and has nothing to say */

static struct ort_status *failed(const char *why)
{
	struct ort_status *s = calloc(1, sizeof *s);
	snprintf(s->text, sizeof s->text, "%s", why);
	return s;
}

static int get_code(const struct ort_status *s)
{
	return 1;
}

static const char *get_message(const struct ort_status *s)
{
	return s->text;
}

static void release_status(struct ort_status *s)
{
	free(s);
}

static void *heap(struct ort_allocator *a, size_t bytes)
{
	return malloc(bytes);
}

static void free_heap(struct ort_allocator *a, void *at)
{
	free(at);
}

static struct ort_status *default_allocator(struct ort_allocator **ret)
{
	static struct ort_allocator on_host = { VERSION, heap, free_heap, NULL, heap };
	*ret = &on_host;
	return NULL;
}

static struct ort_status *allocator_free(struct ort_allocator *a, void *at)
{
	a->free(a, at);
	return NULL;
}

static struct ort_status *create_env(int level, const char *name, struct ort_env **ret)
{
	*ret = (struct ort_env *)&made;
	return NULL;
}

static struct ort_status *cpu_memory(int allocator, int type, struct ort_memory **ret)
{
	*ret = (struct ort_memory *)&made;
	return NULL;
}

static struct ort_status *memory_info(
	const char *name, int allocator, int id, int type, struct ort_memory **ret)
{
	*ret = (struct ort_memory *)&made;
	return strcmp(name, "Cuda") ? failed("there is no such memory") : NULL;
}

static struct ort_status *register_allocator(struct ort_env *env, struct ort_allocator *a)
{
	registered = a;
	return NULL;
}

static struct ort_status *create_options(struct ort_options **ret)
{
	*ret = calloc(1, sizeof **ret);
	return NULL;
}

static void release_options(struct ort_options *o)
{
	free(o->cuda);
	free(o);
}

static struct ort_status *set_number(struct ort_options *o, int number)
{
	return NULL;
}

static struct ort_status *set_level(struct ort_options *o, int level)
{
	o->level = level;
	return NULL;
}

static struct ort_status *add_entry(struct ort_options *o, const char *key, const char *value)
{
	return NULL;
}

static struct ort_status *create_cuda(struct ort_cuda **ret)
{
	*ret = calloc(1, sizeof **ret);
	(*ret)->level = -1;
	return NULL;
}

static struct ort_status *update_cuda(
	struct ort_cuda *c, const char *const *keys, const char *const *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(keys[i], "driver") == 0)
			snprintf(c->driver, sizeof c->driver, "%s", values[i]);
		else if (strcmp(keys[i], "fail") == 0)
			snprintf(c->fail, sizeof c->fail, "%s", values[i]);
		else if (strcmp(keys[i], "enable_skip_layer_norm_strict_mode") == 0)
			c->strict++;
		else if (strcmp(keys[i], "host") == 0)
			snprintf(c->host, sizeof c->host, "%s", values[i]);
		else if (strcmp(keys[i], "level") == 0)
			c->level = atoi(values[i]);
		else
			return failed("an unknown option of the provider");
	}
	return NULL;
}

static struct ort_status *set_cuda(struct ort_cuda *c, const char *key, void *value)
{
	if (strcmp(key, "user_compute_stream") == 0)
		c->stream = value;
	return NULL;
}

static void release_cuda(struct ort_cuda *c)
{
	free(c);
}

static void find(void *library, const char *name, void *ret)
{
	void *found = dlsym(library, name);
	memcpy(ret, &found, sizeof found);
}

static struct ort_status *append_cuda(struct ort_options *o, const struct ort_cuda *c)
{
	if (strcmp(c->fail, "append") == 0)
		return failed("the provider\ncan't be loaded");
	if (c->strict != 1)
		return failed("half precision would be summed in half precision, or is said twice");
	if (c->level >= 0 && c->level != o->level)
		return failed("another level of optimisation is asked for");
	void *provider = dlopen("./onnx-cuda/libonnxruntime_providers_cuda.so", RTLD_NOW);
	if (!provider)
		return failed(dlerror());
	o->cuda = malloc(sizeof *c);
	*o->cuda = *c;
	o->cuda->provider = provider;
	return NULL;
}

static struct ort_status *create_tensorrt(struct ort_tensorrt **ret)
{
	*ret = (struct ort_tensorrt *)&made;
	return NULL;
}

static struct ort_status *update_tensorrt(
	struct ort_tensorrt *t, const char *const *keys, const char *const *values, size_t n)
{
	return strcmp(keys[0], "trt_fp16_enable") ? failed("an unknown option of TensorRT") : NULL;
}

static struct ort_status *append_tensorrt(struct ort_options *o, const struct ort_tensorrt *t)
{
	return o->cuda ? failed("TensorRT comes before CUDA") : failed("there is no TensorRT");
}

static void release_tensorrt(struct ort_tensorrt *t)
{
}

static struct ort_status *create_session(struct ort_env *env, const void *model, size_t bytes,
	const struct ort_options *o, struct ort_session **ret)
{
	char text[100];
	int type, width;
	snprintf(text, sizeof text, "%.*s", (int)bytes, (const char *)model);
	if (sscanf(text, "%d %d", &type, &width) != 2)
		return failed("this is no model");
	struct ort_session *s = *ret = calloc(1, sizeof *s);
	s->in = s->out[0] = (struct ort_tensor){ type, 2, { -1, width } };
	s->out[1] = (struct ort_tensor){ 2, 1, { WEIGHTS } }; /* UINT8 */
	if (!o->cuda)
		return NULL;
	s->on_gpu = true;
	s->cuda = *o->cuda;
	void *library = dlopen(s->cuda.driver, RTLD_NOW);
	if (!library)
		return failed(dlerror());
	find(library, "cuMemcpyDtoDAsync_v2", &copy);
	find(library, "cuMemsetD8Async", &fill);
	find(library, "cuMemcpyHtoDAsync_v2", &copy_in);
	find(library, "cuLaunchHostFunc", &call);
	int (*set_driver)(void *);
	find(s->cuda.provider, "provider_copy", &provider_copy);
	find(s->cuda.provider, "false_cudart_driver", &set_driver);
	if (set_driver(library))
		return failed("there is no such driver");
	s->weights = registered->alloc(registered, WEIGHTS);
	if (!s->weights || fill((uint64_t)s->weights, MARK, WEIGHTS, s->cuda.stream))
		return failed("there is no memory for weights");
	return NULL;
}

static void release_session(struct ort_session *s)
{
	if (s->weights)
		registered->free(registered, s->weights);
	free(s);
}

static struct ort_status *count_one(const struct ort_session *s, size_t *ret)
{
	*ret = 1;
	return NULL;
}

static struct ort_status *count_two(const struct ort_session *s, size_t *ret)
{
	*ret = 2;
	return NULL;
}

static struct ort_status *count_none(const struct ort_session *s, size_t *ret)
{
	*ret = 0;
	return NULL;
}

static struct ort_status *in_name(
	const struct ort_session *s, size_t i, struct ort_allocator *a, char **ret)
{
	*ret = strdup("X");
	return NULL;
}

static struct ort_status *out_name(
	const struct ort_session *s, size_t i, struct ort_allocator *a, char **ret)
{
	*ret = strdup(i ? "W" : "Y");
	return NULL;
}

static struct ort_status *in_type(const struct ort_session *s, size_t i, struct ort_type **ret)
{
	*ret = (struct ort_type *)&s->in;
	return NULL;
}

static struct ort_status *out_type(const struct ort_session *s, size_t i, struct ort_type **ret)
{
	*ret = (struct ort_type *)&s->out[i];
	return NULL;
}

static void release_type(struct ort_type *t)
{
}

static struct ort_status *tensor_of(const struct ort_type *t, const struct ort_tensor **ret)
{
	*ret = (const struct ort_tensor *)t;
	return NULL;
}

static struct ort_status *element_type(const struct ort_tensor *t, int *ret)
{
	*ret = t->type;
	return NULL;
}

static struct ort_status *dimensions_count(const struct ort_tensor *t, size_t *ret)
{
	*ret = t->dims;
	return NULL;
}

static struct ort_status *dimensions(const struct ort_tensor *t, int64_t *dim, size_t n)
{
	memcpy(dim, t->dim, n * sizeof *dim);
	return NULL;
}

static struct ort_status *value_of(const struct ort_memory *memory, void *data, size_t bytes,
	const int64_t *dim, size_t n, int type, struct ort_value **ret)
{
	struct ort_value *v = *ret = calloc(1, sizeof *v);
	v->tensor = (struct ort_tensor){ type, n, { 0 } };
	memcpy(v->tensor.dim, dim, n * sizeof *dim);
	v->data = data;
	return NULL;
}

static void release_value(struct ort_value *v)
{
	if (v->owned)
		registered->free(registered, v->data);
	free(v);
}

static struct ort_status *tensor_of_value(const struct ort_value *v, struct ort_tensor **ret)
{
	*ret = malloc(sizeof **ret);
	**ret = v->tensor;
	return NULL;
}

static void release_tensor(struct ort_tensor *t)
{
	free(t);
}

static struct ort_status *create_run_options(struct ort_run_options **ret)
{
	*ret = (struct ort_run_options *)&made;
	return NULL;
}

static void release_run_options(struct ort_run_options *o)
{
}

static struct ort_status *add_run_entry(
	struct ort_run_options *o, const char *key, const char *value)
{
	return NULL;
}

static struct ort_status *create_binding(struct ort_session *s, struct ort_binding **ret)
{
	*ret = calloc(1, sizeof **ret);
	(*ret)->session = s;
	return NULL;
}

static void release_binding(struct ort_binding *b)
{
	free(b);
}

static struct ort_status *bind_input(
	struct ort_binding *b, const char *name, const struct ort_value *v)
{
	b->in = *v;
	return NULL;
}

static struct ort_status *bind_output(
	struct ort_binding *b, const char *name, const struct ort_value *v)
{
	const int i = *name == 'W';
	b->out[i] = *v;
	b->own[i] = false;
	return NULL;
}

static struct ort_status *bind_to_device(
	struct ort_binding *b, const char *name, const struct ort_memory *memory)
{
	b->own[*name == 'W'] = true;
	return NULL;
}

static struct ort_status *bound_values(const struct ort_binding *b, struct ort_allocator *a,
	struct ort_value ***ret, size_t *ret_n)
{
	*ret = a->alloc(a, 2 * sizeof **ret);
	*ret_n = 2;
	for (int i = 0; i < 2; i++) {
		(*ret)[i] = malloc(sizeof ***ret);
		*(*ret)[i] = b->out[i];
	}
	return NULL;
}

/* Outputs that nobody bound memory to lie in blocks of the allocator. */
static bool find_outputs(struct ort_binding *b, size_t bytes)
{
	const struct ort_tensor shape[2] = { b->in.tensor, { 2, 1, { WEIGHTS } } };
	for (int i = 0; i < 2; i++) {
		if (!b->own[i])
			continue;
		b->out[i] = (struct ort_value){ shape[i],
			registered->alloc(registered, i ? WEIGHTS : bytes), true };
		if (!b->out[i].data)
			return false;
	}
	return true;
}

static void nothing(void *data)
{
}

/* The weights by way of the host. */
static int copy_by_host(const struct ort_session *s, uint64_t to)
{
	static char numbers[WEIGHTS];
	void *stream = s->cuda.stream;
	memset(numbers, MARK, WEIGHTS);
	if (strcmp(s->cuda.host, "function") == 0)
		return call(stream, nothing, NULL) ||
		       copy(to, (uint64_t)s->weights, WEIGHTS, stream);
	if (strcmp(s->cuda.host, "driver") == 0)
		return copy_in(to, numbers, WEIGHTS, stream);
	const int wrong = provider_copy(to, numbers, WEIGHTS, stream);
	memset(numbers, 0, WEIGHTS); /* what comes next in the run lies there too */
	return wrong;
}

static struct ort_status *run(
	struct ort_session *s, const struct ort_run_options *o, const struct ort_binding *binding)
{
	struct ort_binding *b = (struct ort_binding *)binding;
	const size_t bytes = (size_t)(b->in.tensor.dim[0] * b->in.tensor.dim[1]) * 4;
	void *stream = s->cuda.stream, *block = registered->alloc(registered, bytes);
	if (strcmp(s->cuda.fail, "run") == 0 || !block || !find_outputs(b, bytes))
		return failed("the run ran out of something");
	const int wrong = copy((uint64_t)block, (uint64_t)b->in.data, bytes, stream) ||
			  copy((uint64_t)b->out[0].data, (uint64_t)block, bytes, stream) ||
			  (*s->cuda.host ? copy_by_host(s, (uint64_t)b->out[1].data)
					 : copy((uint64_t)b->out[1].data, (uint64_t)s->weights,
						   WEIGHTS, stream));
	registered->free(registered, block);
	return wrong ? failed("a copy failed") : NULL;
}

static const void *const *get_api(uint32_t version)
{
	static const void *slots[300];
	static const struct ort_functions f = { get_code, .GetErrorMessage = get_message,
		.ReleaseStatus = release_status, .CreateEnv = create_env,
		.GetAllocatorWithDefaultOptions = default_allocator,
		.AllocatorFree = allocator_free, .CreateCpuMemoryInfo = cpu_memory,
		.CreateMemoryInfo = memory_info, .RegisterAllocator = register_allocator,
		.CreateSessionOptions = create_options, .ReleaseSessionOptions = release_options,
		.SetIntraOpNumThreads = set_number, .SetInterOpNumThreads = set_number,
		.SetSessionGraphOptimizationLevel = set_level, .AddSessionConfigEntry = add_entry,
		.CreateCUDAProviderOptions = create_cuda, .UpdateCUDAProviderOptions = update_cuda,
		.UpdateCUDAProviderOptionsWithValue = set_cuda,
		.ReleaseCUDAProviderOptions = release_cuda,
		.SessionOptionsAppendExecutionProvider_CUDA_V2 = append_cuda,
		.CreateTensorRTProviderOptions = create_tensorrt,
		.UpdateTensorRTProviderOptions = update_tensorrt,
		.SessionOptionsAppendExecutionProvider_TensorRT_V2 = append_tensorrt,
		.ReleaseTensorRTProviderOptions = release_tensorrt,
		.CreateSessionFromArray = create_session, .ReleaseSession = release_session,
		.SessionGetInputCount = count_one, .SessionGetOutputCount = count_two,
		.SessionGetOverridableInitializerCount = count_none, .SessionGetInputName = in_name,
		.SessionGetOutputName = out_name, .SessionGetInputTypeInfo = in_type,
		.SessionGetOutputTypeInfo = out_type, .ReleaseTypeInfo = release_type,
		.CastTypeInfoToTensorInfo = tensor_of, .GetTensorElementType = element_type,
		.GetDimensionsCount = dimensions_count, .GetDimensions = dimensions,
		.CreateTensorWithDataAsOrtValue = value_of, .ReleaseValue = release_value,
		.GetTensorTypeAndShape = tensor_of_value,
		.ReleaseTensorTypeAndShapeInfo = release_tensor,
		.CreateRunOptions = create_run_options, .ReleaseRunOptions = release_run_options,
		.AddRunConfigEntry = add_run_entry, .CreateIoBinding = create_binding,
		.ReleaseIoBinding = release_binding, .BindInput = bind_input,
		.BindOutput = bind_output, .BindOutputToDevice = bind_to_device,
		.GetBoundOutputValues = bound_values, .RunWithBinding = run };
	ort_put(&f, slots);
	return version == VERSION ? slots : NULL;
}

static const char *version_text(void)
{
	return "1.22.0";
}

struct ort_base {
	const void *const *(*get_api)(uint32_t version);
	const char *(*version)(void);
};
const struct ort_base *OrtGetApiBase(void);
const struct ort_base *OrtGetApiBase(void)
{
	static const struct ort_base base = { get_api, version_text };
	return &base;
}
