/*
 * ONNX Runtime on a GPU.  Its CUDA provider hands work to the model's stream, and has all its
 * memory from the model's space, so that it can leave and return.  Memory that a plan's runs
 * allocate and free stays that plan's, as a graph that is replayed would need it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gpu_model.h"
#include "engine/onnx_runtime.h"

#define PROVIDER  "libonnxruntime_providers_cuda.so"
#define OF_DEVICE 0  /* kind of allocator */
#define OPTIONS   32 /* of a provider */

struct cuda_model {
	struct gpu_model gpu;
	struct ort_session *session;
	struct ort_run_options *run_options;
	/* ONNX Runtime's blocks of the space, the newest last, and whose hole each will be: a
	 * plan's graph may read what a run of another plan frees. */
	ARRAY(struct block {
		uint64_t at;
		size_t bytes;
		struct gpu_holes *of;
	})
	block;
	struct cuda_model *next;
};

struct cuda_plan {
	struct ort_binding *binding;
	struct gpu_holes own;
	struct onnx_kept kept; /* for the graph */
};

/* ONNX Runtime's struct OrtAllocator up to version 22. */
struct ort_allocator {
	uint32_t version;
	void *(*alloc)(struct ort_allocator *a, size_t bytes);
	void (*free)(struct ort_allocator *a, void *at);
	const struct ort_memory *(*info)(const struct ort_allocator *a);
	void *(*reserve)(struct ort_allocator *a, size_t bytes);
};

static struct {
	pthread_mutex_t lock;
	struct ort_memory *memory; /* "on the device"; NULL: the allocator is not registered yet */
	struct cuda_model *models;
} cuda = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whose memory the calling thread allocates. */
static _Thread_local struct {
	struct cuda_model *model;
	struct gpu_holes *own;
} at_work;

static void *take(struct ort_allocator *a, size_t bytes)
{
	struct cuda_model *m = at_work.model;
	uint64_t at;
	if (!bytes || !m || gpu_space_alloc(&m->gpu.space, at_work.own, bytes, &at, NULL))
		return NULL;
	*array_push(&m->block) = (struct block){ at, bytes, at_work.own };
	return (void *)at;
}

static void give(struct ort_allocator *a, void *memory)
{
	const uint64_t at = (uint64_t)memory;
	pthread_mutex_lock(&cuda.lock);
	struct cuda_model *m = cuda.models;
	while (m && at - m->gpu.space.at >= m->gpu.space.reserved)
		m = m->next;
	pthread_mutex_unlock(&cuda.lock);
	for (size_t i = m ? m->block.n : 0; i--;) {
		if (m->block.v[i].at != at)
			continue;
		gpu_space_free(&m->gpu.space, m->block.v[i].of, at, m->block.v[i].bytes);
		memmove(&m->block.v[i], &m->block.v[i + 1],
			(--m->block.n - i) * sizeof *m->block.v);
		return;
	}
}

static const struct ort_memory *info(const struct ort_allocator *a)
{
	return cuda.memory;
}

static int register_allocator(const char *name, struct error *err)
{
	static struct ort_allocator ours = { 22, take, give, info, take };
	struct ort_memory *memory = NULL;
	int e = 0;
	pthread_mutex_lock(&cuda.lock);
	if (!cuda.memory) {
		e = ort_check(ort.CreateMemoryInfo("Cuda", OF_DEVICE, 0, 0, &memory), name,
			"memory of the GPU", err);
		cuda.memory = memory;
		e = e ? e
		      : ort_check(ort.RegisterAllocator(runtime.env, &ours), name,
				"memory of the GPU", err);
		if (e)
			cuda.memory = NULL;
	}
	pthread_mutex_unlock(&cuda.lock);
	return e;
}

/* Beside ONNX Runtime. */
static char *provider_path(void)
{
	const char *slash = strrchr(runtime.path, '/');
	return xasprintf(
		"%.*s%s", slash ? (int)(slash - runtime.path) + 1 : 0, runtime.path, PROVIDER);
}

bool onnx_cuda_is_there(const struct engine_options *o)
{
	struct gpu *g;
	char *path = provider_path();
	const bool there = access(path, R_OK) == 0;
	free(path);
	return there && gpu_open(o->cuda, &g, NULL) == 0;
}

struct settings {
	const char *key[OPTIONS + 1], *value[OPTIONS + 1]; /* and a default */
	size_t n;
};

static int read_settings(
	struct settings *s, const struct engine_accelerator *a, const char *name, struct error *err)
{
	for (unsigned i = 0; i < a->parameters; i++) {
		if (s->n == OPTIONS)
			return error_set(err, -EINVAL,
				"model %s: accelerator %s has more than %d parameters", name,
				a->name, OPTIONS);
		s->key[s->n] = a->parameter[i].key;
		s->value[s->n++] = a->parameter[i].value;
	}
	return 0;
}

/* A value in the configuration goes first. */
static void set_default(struct settings *s, const char *key, const char *value)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->key[i], key) == 0)
			return;
	s->key[s->n] = key;
	s->value[s->n++] = value;
}

static int append_tensorrt(struct ort_options *options, const struct engine_accelerator *a,
	const char *name, struct error *err)
{
	const char *what = "the TensorRT provider of ONNX Runtime";
	struct settings s = { .n = 0 };
	struct ort_tensorrt *own = NULL;
	int e = read_settings(&s, a, name, err);
	e = e ? e : ort_check(ort.CreateTensorRTProviderOptions(&own), name, what, err);
	if (!e && s.n)
		e = ort_check(ort.UpdateTensorRTProviderOptions(own, s.key, s.value, s.n), name,
			what, err);
	e = e ? e
	      : ort_check(ort.SessionOptionsAppendExecutionProvider_TensorRT_V2(options, own), name,
			what, err);
	if (own)
		ort.ReleaseTensorRTProviderOptions(own);
	return e;
}

static int append_cuda(struct ort_options *options, struct settings *s, void *stream,
	const char *name, struct error *err)
{
	const char *what = "the CUDA provider of ONNX Runtime";
	struct ort_cuda *own = NULL;
	int e = ort_check(ort.CreateCUDAProviderOptions(&own), name, what, err);
	if (!e && s->n)
		e = ort_check(ort.UpdateCUDAProviderOptions(own, s->key, s->value, s->n), name,
			what, err);
	/* As text it would be taken and not used. */
	e = e ? e
	      : ort_check(
			ort.UpdateCUDAProviderOptionsWithValue(own, "user_compute_stream", stream),
			name, what, err);
	e = e ? e
	      : ort_check(ort.SessionOptionsAppendExecutionProvider_CUDA_V2(options, own), name,
			what, err);
	if (own)
		ort.ReleaseCUDAProviderOptions(own);
	if (!e) {
		char *path = provider_path();
		onnx_copies_watch(path);
		free(path);
	}
	return e;
}

/* Appends the providers that the configuration names before CUDA, which runs the rest. */
static int append_all(
	struct ort_options *options, const struct engine_config *c, void *stream, struct error *err)
{
	struct settings cuda_settings = { .n = 0 };
	int e = 0;
	for (unsigned i = 0; i < c->accelerators && !e; i++) {
		const struct engine_accelerator *a = &c->accelerator[i];
		if (strcmp(a->name, "tensorrt") == 0)
			e = append_tensorrt(options, a, c->name, err);
		else if (strcmp(a->name, "cuda") == 0)
			e = read_settings(&cuda_settings, a, c->name, err);
		else
			e = error_set(err, -EINVAL,
				"model %s: there is no accelerator '%s' on a GPU, only tensorrt and cuda",
				c->name, a->name);
	}
	/* Otherwise it sums squares of half precision in half precision. */
	set_default(&cuda_settings, "enable_skip_layer_norm_strict_mode", "1");
	return e ? e : append_cuda(options, &cuda_settings, stream, c->name, err);
}

static struct cuda_model *cuda_of(struct gpu_model *m)
{
	return (struct cuda_model *)m;
}

static int run(struct cuda_model *m, struct cuda_plan *p, struct error *err)
{
	at_work.model = m;
	at_work.own = &p->own;
	const int e = ort_check(ort.RunWithBinding(m->session, m->run_options, p->binding),
		m->gpu.base.name, "the run failed", err);
	at_work.model = NULL;
	return e;
}

static int bind(struct cuda_plan *p, const struct tensor_spec *spec, const struct gpu_tensor *t,
	bool input, const char *name, struct error *err)
{
	struct ort_value *value = NULL;
	int e = ort_check(ort.CreateTensorWithDataAsOrtValue(cuda.memory, (void *)t->at, t->bytes,
				  t->shape.dims, t->shape.n, dtype_rows[t->type].onnx, &value),
		name, spec->name, err);
	e = e ? e
	      : ort_check((input ? ort.BindInput : ort.BindOutput)(p->binding, spec->name, value),
			name, spec->name, err);
	if (value)
		ort.ReleaseValue(value);
	return e;
}

/* Memory for an output like the one that ONNX Runtime made. */
static int place_output(struct cuda_model *m, struct gpu_tensor *t, const struct tensor_spec *spec,
	struct ort_value *value, struct error *err)
{
	const char *name = m->gpu.base.name;
	struct ort_tensor *tensor = NULL;
	uint64_t bytes = 0;
	int e = ort_check(ort.GetTensorTypeAndShape(value, &tensor), name, spec->name, err);
	e = e ? e : onnx_read_shape(tensor, &t->shape, name, spec->name, err);
	if (tensor)
		ort.ReleaseTensorTypeAndShapeInfo(tensor);
	if (e)
		return e;
	t->type = spec->type;
	if (shape_bytes(&t->shape, t->type, &bytes))
		return error_set(
			err, -EINVAL, "model %s: output %s is too large", name, spec->name);
	t->bytes = bytes;
	return gpu_space_alloc(&m->gpu.space, NULL, bytes, &t->at, err);
}

/* Runs once with memory that ONNX Runtime finds itself, which tells the shapes. */
static int plan_outputs(struct cuda_model *m, struct gpu_plan *p, struct error *err)
{
	struct cuda_plan *own = p->own;
	const struct engine_model *base = &m->gpu.base;
	struct ort_value **value = NULL;
	size_t n = 0;
	int e = 0;
	for (unsigned i = 0; i < base->outs && !e; i++)
		e = ort_check(ort.BindOutputToDevice(own->binding, base->out[i].name, cuda.memory),
			base->name, base->out[i].name, err);
	e = e ? e : run(m, own, err);
	e = e ? e
	      : ort_check(ort.GetBoundOutputValues(own->binding, runtime.allocator, &value, &n),
			base->name, "its outputs", err);
	for (unsigned i = 0; i < n && i < base->outs && !e; i++)
		e = place_output(m, &p->out[i], &base->out[i], value[i], err);
	for (unsigned i = 0; i < base->outs && !e; i++)
		e = bind(own, &base->out[i], &p->out[i], false, base->name, err);
	for (size_t i = 0; i < n; i++)
		ort.ReleaseValue(value[i]);
	if (value)
		(void)ort_check(ort.AllocatorFree(runtime.allocator, value), base->name, "", NULL);
	return e;
}

static int plan(struct gpu_model *g, struct gpu_plan *p, struct error *err)
{
	struct cuda_model *m = cuda_of(g);
	struct cuda_plan *own = p->own = xcalloc(1, sizeof *own);
	int e = ort_check(ort.CreateIoBinding(m->session, &own->binding), g->base.name,
		"a binding of its tensors", err);
	for (unsigned i = 0; i < g->base.ins && !e; i++)
		e = bind(own, &g->base.in[i], &p->in[i], true, g->base.name, err);
	return e ? e : plan_outputs(m, p, err);
}

static int enqueue(struct gpu_model *g, struct gpu_plan *p, struct error *err)
{
	struct cuda_plan *own = p->own;
	onnx_copies_keep(p->captures ? &own->kept : NULL);
	const int e = run(cuda_of(g), own, err);
	onnx_copies_keep(NULL);
	return e;
}

static bool keeps(const struct gpu_plan *p, const void *at, size_t bytes)
{
	const struct cuda_plan *own = p->own;
	return onnx_copies_are_kept(&own->kept, at, bytes);
}

static void unplan(struct gpu_model *g, struct gpu_plan *p)
{
	struct cuda_plan *own = p->own;
	if (!own)
		return;
	if (own->binding)
		ort.ReleaseIoBinding(own->binding);
	struct cuda_model *m = cuda_of(g);
	for (size_t i = 0; i < m->block.n; i++)
		if (m->block.v[i].of == &own->own)
			m->block.v[i].of = NULL;
	gpu_space_share(&g->space, &own->own);
	onnx_copies_free(&own->kept);
	free(own);
}

static void close_session(struct gpu_model *g)
{
	struct cuda_model *m = cuda_of(g);
	if (m->session)
		ort.ReleaseSession(m->session);
	if (m->run_options)
		ort.ReleaseRunOptions(m->run_options);
}

static const struct gpu_engine ops = { plan, enqueue, unplan, close_session, keeps };

static void unload(struct engine_model *base)
{
	struct cuda_model *m = (struct cuda_model *)base;
	/* Its session gives memory back while it is found here. */
	gpu_model_fini(&m->gpu);
	pthread_mutex_lock(&cuda.lock);
	for (struct cuda_model **at = &cuda.models; *at; at = &(*at)->next) {
		if (*at != m)
			continue;
		*at = m->next;
		break;
	}
	pthread_mutex_unlock(&cuda.lock);
	array_free(&m->block);
	free(m);
}

static const struct engine engine_onnx_cuda = {
	.name = "onnx on CUDA",
	.platforms = "",
	.pads = true,
	GPU_MODEL_CALLS,
	.unload = unload,
};

static int make_session(struct cuda_model *m, const struct engine_options *o,
	const struct engine_config *c, const struct buf *file, const char *path, struct error *err)
{
	const char *what = "a session's options";
	struct ort_options *options;
	int e = onnx_options(o, c, path, &options, err);
	if (e)
		return e;
	e = append_all(options, c, m->gpu.stream, err);
	e = e ? e
	      : ort_check(ort.AddSessionConfigEntry(options, "session.use_env_allocators", "1"),
			c->name, what, err);
	at_work.model = m;
	at_work.own = NULL;
	e = e ? e : onnx_session(&m->gpu.base, file, path, options, false, &m->session, err);
	at_work.model = NULL;
	ort.ReleaseSessionOptions(options);
	e = e ? e : ort_check(ort.CreateRunOptions(&m->run_options), c->name, what, err);
	/* The stream's order is what everything waits for. */
	return e ? e
		 : ort_check(ort.AddRunConfigEntry(m->run_options,
				     "disable_synchronize_execution_providers", "1"),
			   c->name, what, err);
}

static int check_types(const struct engine_model *m, struct error *err)
{
	for (unsigned i = 0; i < m->ins + m->outs; i++) {
		const struct tensor_spec *s = i < m->ins ? &m->in[i] : &m->out[i - m->ins];
		if (s->type == DTYPE_BYTES)
			return error_set(err, -EINVAL,
				"model %s: %s has strings, which no GPU takes. An instance_group of kind KIND_CPU runs it",
				m->name, s->name);
	}
	return 0;
}

int onnx_cuda_load(const struct engine_options *o, const struct engine_config *c,
	const struct buf *file, const char *path, struct engine_model **ret, struct error *err)
{
	struct cuda_model *m = xcalloc(1, sizeof *m);
	int e = gpu_model_init(&m->gpu, &engine_onnx_cuda, &ops, o, c, err);
	pthread_mutex_lock(&cuda.lock);
	m->next = cuda.models;
	cuda.models = m;
	pthread_mutex_unlock(&cuda.lock);
	e = e ? e : register_allocator(c->name, err);
	e = e ? e : make_session(m, o, c, file, path, err);
	e = e ? e : check_types(&m->gpu.base, err);
	m->gpu.base.bytes = m->gpu.space.used;
	return gpu_model_loaded(&m->gpu, e, ret);
}
