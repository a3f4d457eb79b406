/*
 * Models that PyTorch's AOTInductor compiled.  Their shared object calls functions of libtorch.  If
 * Weir has all of them itself (torch_shim.h), the model runs without libtorch, and its memory is
 * the model's space, so that graphs work and memory can leave.  Otherwise libtorch is loaded, which
 * has memory of its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/shared_library.h"
#include "engine/gpu_model.h"
#include "engine/torch_package.h"
#include "engine/torch_shim.h"

#define DEVICE "cuda:0" /* the first of the process, as gpu_open() has it */

/* The model's own functions: all return 0, or another number. */
#define CONTAINER(X)                                                                               \
	X(CreateWithDevice, (void **ret, size_t models, const char *device, const char *kernels))  \
	X(Delete, (void *container))                                                               \
	X(GetNumInputs, (void *container, size_t *ret))                                            \
	X(GetNumOutputs, (void *container, size_t *ret))                                           \
	X(RunSingleThreaded, (void *container, torch_handle *in, size_t ins, torch_handle *out,    \
				     size_t outs, void *stream, void *proxy))
#define POINTER(name, parameters) int32_t(*name) parameters;
struct container {
	CONTAINER(POINTER)
};
struct torch_functions {
	TORCH_USED(POINTER)
};
#undef POINTER

struct torch_model {
	struct gpu_model gpu;
	struct torch_package package;
	struct torch_shim shim;
	bool alone;   /* it runs without libtorch */
	bool catches; /* exceptions of C++ */
	const struct torch_functions *torch;
	void *library, *made; /* the model's, and its container */
	struct container container;
};

static struct torch_model *torch_of(struct gpu_model *m)
{
	return (struct torch_model *)m;
}

static int32_t torch_type(enum dtype type)
{
	static const signed char numbers[DTYPES] = { -1, [DTYPE_BOOL] = 11, [DTYPE_UINT8] = 0,
		[DTYPE_UINT16] = 27, [DTYPE_UINT32] = 28, [DTYPE_UINT64] = 29, [DTYPE_INT8] = 1,
		[DTYPE_INT16] = 2, [DTYPE_INT32] = 3, [DTYPE_INT64] = 4, [DTYPE_FP16] = 5,
		[DTYPE_FP32] = 6, [DTYPE_FP64] = 7, [DTYPE_BYTES] = -1, [DTYPE_BF16] = 15 };
	return numbers[type];
}

static const char *type_name(int32_t type)
{
	for (unsigned i = 1; i < DTYPES; i++)
		if (torch_type(i) == type)
			return dtype_rows[i].name;
	return "that V2 has not";
}

static const struct torch_functions of_weir = {
#define OWN(name, parameters) .name = weir_torch_##name,
	TORCH_USED(OWN)
#undef OWN
};

/* Loads libtorch into the whole process for good, as models expect it. */
static int load_libtorch(const char *folder, const struct torch_functions **ret)
{
	static const char *const parts[] = { "libc10.so", "libtorch_cpu.so", "libc10_cuda.so",
		"libtorch_cuda.so", "libtorch.so" };
	static const char *const names[] = {
#define NAME(name, parameters) "aoti_torch_" #name,
		TORCH_USED(NAME)
#undef NAME
	};
	static struct torch_functions functions;
	void *library = NULL;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		char *path = folder ? xasprintf("%s/%s", folder, parts[i]) : xstrdup(parts[i]);
		library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
		free(path);
		if (!library)
			return -ENOENT;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *symbol = dlsym(RTLD_DEFAULT, names[i]);
		if (!symbol)
			return -ENOENT;
		memcpy((char *)&functions + i * sizeof symbol, &symbol, sizeof symbol);
	}
	*ret = &functions;
	return 0;
}

/* The functions that Weir lacks, as the end of a sentence; "": it has all. */
static int put_missing(struct torch_model *m, struct buf *to, struct error *err)
{
	struct torch_calls calls = { .name = { 0 } };
	unsigned n = 0;
	const int e = torch_object_calls(&m->package.object, &calls, err);
	m->catches = calls.catches;
	for (size_t i = 0; i < calls.name.n; i++) {
		char *own = xasprintf("weir%s", calls.name.v[i] + 4);
		if (!dlsym(RTLD_DEFAULT, own) && n++ < 4)
			buf_printf(to, "%s%s", n > 1 ? ", " : "", calls.name.v[i]);
		free(own);
	}
	if (n > 4)
		buf_printf(to, " and %u more", n - 4);
	array_free(&calls.name);
	return e;
}

/* *why says why not, where 0 is returned and there is no library. */
static int open_alone(struct torch_model *m, struct buf *why, struct error *err)
{
	const char *path;
	struct torch_package *p = &m->package;
	int e = put_missing(m, why, err);
	if (e || why->n)
		return e;
	struct buf before = { 0 };
	buf_put(&before, p->object.v, p->object.n);
	e = torch_object_rename(&p->object, err);
	e = e ? e : torch_package_write_object(p, "model.so", &path, err);
	m->library = e ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!e && !m->library)
		buf_printf(why, "what %s", dlerror());
	buf_free(&p->object);
	p->object = before;
	m->alone = m->library != NULL;
	m->torch = &of_weir;
	return e;
}

static int open_library(struct torch_model *m, const struct engine_options *o, struct error *err)
{
	const char *path;
	struct buf why = { 0 };
	int e = open_alone(m, &why, err);
	if (!e && !m->library) {
		if (load_libtorch(o->libtorch, &m->torch))
			e = error_set(err, -EIO,
				"it needs libtorch for %s, and libtorch can't be loaded (--libtorch names its folder): %s",
				buf_text(&why), dlerror());
		e = e ? e : torch_package_write_object(&m->package, "model-torch.so", &path, err);
		m->library = e ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!e && !m->library)
			e = error_set(err, -EIO, "%s", dlerror());
	}
	buf_free(&why, &m->package.object);
	return e;
}

static int find_functions(struct torch_model *m, struct error *err)
{
	static const char *const names[] = {
#define NAME(name, parameters) "AOTInductorModelContainer" #name,
		CONTAINER(NAME)
#undef NAME
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *symbol = dlsym(m->library, names[i]);
		if (!symbol)
			return error_set(err, -EINVAL, "its shared object exports no %s", names[i]);
		memcpy((char *)&m->container + i * sizeof symbol, &symbol, sizeof symbol);
	}
	/* std::__throw_runtime_error(char const *) of the C++ runtime that the model uses. */
	void *raise = !m->catches ? NULL : dlsym(m->library, "_ZSt21__throw_runtime_errorPKc");
	memcpy(&m->shim.raise, &raise, sizeof raise);
	return 0;
}

static void enter(struct torch_model *m, struct gpu_holes *own)
{
	m->shim.gpu = m->gpu.gpu;
	m->shim.space = &m->gpu.space;
	m->shim.stream = m->gpu.stream;
	torch_shim_enter(&m->shim, own);
}

/* The result of a call of the model's. */
static int leave(struct torch_model *m, int32_t failed, const char *what, struct error *err)
{
	torch_shim_leave();
	if (!failed && !*m->shim.why.text)
		return 0;
	return error_set(err, -EIO, "%s: %s", what,
		*m->shim.why.text ? m->shim.why.text : "the server's standard error says why");
}

static int make_inputs(struct torch_model *m, const struct gpu_plan *p, torch_handle *in)
{
	for (unsigned i = 0; i < m->gpu.base.ins; i++) {
		const struct gpu_tensor *t = &p->in[i];
		int64_t stride[SHAPE_DIMS], step = 1;
		for (unsigned d = t->shape.n; d-- > 0; step *= t->shape.dims[d])
			stride[d] = step;
		if (!m->torch->create_tensor_from_blob((void *)t->at, t->shape.n, t->shape.dims,
			    stride, 0, torch_type(t->type), TORCH_CUDA, 0, &in[i]))
			continue;
		while (i-- > 0)
			m->torch->delete_tensor_object(in[i]);
		return 1;
	}
	return 0;
}

static int wrong_output(const struct tensor_spec *spec, const char *what, struct error *err)
{
	return error_set(err, -EIO, "output %s has %s", spec->name, what);
}

/* Reads the place of the output, and how its elements follow each other. */
static int read_output(struct torch_model *m, const struct gpu_plan *p, torch_handle from,
	const struct tensor_spec *spec, struct gpu_tensor *t, struct error *err)
{
	int64_t dims = -1, *size = NULL, *stride = NULL, step = 1, last = 0;
	int32_t type = -1;
	void *at = NULL;
	uint64_t bytes;
	const struct torch_functions *f = m->torch;
	if (!from || f->get_dim(from, &dims) || f->get_sizes(from, &size) ||
		f->get_strides(from, &stride) || f->get_dtype(from, &type) ||
		f->get_data_ptr(from, &at))
		return wrong_output(spec, "no tensor", err);
	if (type != torch_type(spec->type))
		return error_set(err, -EIO, "output %s has the type %s and not %s", spec->name,
			type_name(type), dtype_rows[spec->type].name);
	struct shape s = { .n = dims < 0 || dims > SHAPE_DIMS ? 0 : (unsigned)dims };
	memcpy(s.dims, size, s.n * sizeof *size);
	if (dims != s.n || !shape_fits(&s, &spec->shape) || shape_bytes(&s, spec->type, &bytes) ||
		(m->gpu.base.has_rows && s.n && s.dims[0] != p->rows))
		return wrong_output(spec, "another shape than config.pbtxt says", err);
	*t = (struct gpu_tensor){ .shape = s, .type = spec->type, .at = (uint64_t)at };
	for (unsigned d = s.n; d-- > 0 && bytes; step *= s.dims[d]) {
		t->strided |= s.dims[d] != 1 && stride[d] != step;
		t->stride[d] = stride[d];
		last += (s.dims[d] - 1) * stride[d];
	}
	t->bytes = t->strided ? (size_t)(last + 1) * dtype_rows[t->type].bytes : bytes;
	return 0;
}

/* From the model's own memory to that of the plan, which stays. */
static int take_output(
	struct torch_model *m, struct gpu_plan *p, unsigned i, torch_handle from, struct error *err)
{
	struct gpu_tensor got, *t = &p->out[i];
	const struct tensor_spec *spec = &m->gpu.base.out[i];
	int e = read_output(m, p, from, spec, &got, err);
	const uint64_t at = got.at;
	if (!e && !t->at) {
		e = gpu_space_alloc(&m->gpu.space, NULL, got.bytes, &got.at, err);
		if (!e)
			*t = got;
	}
	if (!e && (!shape_equal(&got.shape, &t->shape) || got.bytes != t->bytes))
		e = wrong_output(spec, "a shape that depends on the values of the inputs", err);
	if (!e && t->bytes)
		e = GPU_CALL(
			m->gpu.gpu, err, cuMemcpyDtoDAsync_v2, t->at, at, t->bytes, m->gpu.stream);
	return e;
}

static int enqueue(struct gpu_model *g, struct gpu_plan *p, struct error *err)
{
	struct torch_model *m = torch_of(g);
	torch_handle in[ENGINE_TENSORS] = { NULL }, out[ENGINE_TENSORS] = { NULL };
	enter(m, p->own);
	const int32_t failed =
		make_inputs(m, p, in) || m->container.RunSingleThreaded(m->made, in, g->base.ins,
						 out, g->base.outs, g->stream, NULL);
	int e = leave(m, failed, "the run failed", err);
	for (unsigned i = 0; i < g->base.outs && !e; i++)
		e = take_output(m, p, i, out[i], err);
	for (unsigned i = 0; i < g->base.outs; i++)
		if (out[i])
			m->torch->delete_tensor_object(out[i]);
	return e;
}

static int plan(struct gpu_model *g, struct gpu_plan *p, struct error *err)
{
	p->own = xcalloc(1, sizeof(struct gpu_holes));
	return 0;
}

static void unplan(struct gpu_model *g, struct gpu_plan *p)
{
	struct gpu_holes *own = p->own;
	if (!own)
		return;
	torch_shim_disown(&torch_of(g)->shim, own);
	gpu_space_share(&g->space, own);
	free(own);
}

static void close_container(struct gpu_model *g)
{
	struct torch_model *m = torch_of(g);
	if (!m->made)
		return;
	enter(m, NULL);
	m->container.Delete(m->made);
	torch_shim_leave();
}

static const struct gpu_engine ops = {
	.plan = plan, .enqueue = enqueue, .unplan = unplan, .close = close_container
};

static bool put_version(const struct engine_options *o, struct buf *b)
{
	buf_put_text(b, o->torch || o->libtorch ? "PyTorch AOTInductor"
						: "PyTorch AOTInductor (by --torch)");
	return true;
}

static void unload(struct engine_model *base)
{
	struct torch_model *m = (struct torch_model *)base;
	gpu_model_fini(&m->gpu);
	if (m->library)
		dlclose(m->library);
	torch_shim_fini(&m->shim);
	torch_package_close(&m->package);
	free(m);
}

static void take_specs(
	const struct tensor_spec *from, unsigned n, struct tensor_spec *to, unsigned *ret_n)
{
	for (; *ret_n < n; ++*ret_n) {
		to[*ret_n] = from[*ret_n];
		to[*ret_n].name = xstrdup(from[*ret_n].name);
	}
}

/* The file does not say the tensors, so the configuration has to. */
static int check_specs(struct torch_model *m, const struct engine_config *c, struct error *err)
{
	struct engine_model *base = &m->gpu.base;
	size_t ins = 0, outs = 0;
	if (m->container.GetNumInputs(m->made, &ins) || m->container.GetNumOutputs(m->made, &outs))
		return error_set(err, -EIO, "it does not say how many tensors it takes");
	if (ins != c->ins || outs != c->outs)
		return error_set(err, -EINVAL,
			"it takes %zu tensors and gives %zu, and config.pbtxt names %u and %u", ins,
			outs, c->ins, c->outs);
	take_specs(c->in, c->ins, base->in, &base->ins);
	take_specs(c->out, c->outs, base->out, &base->outs);
	for (unsigned i = 0; i < base->ins + base->outs; i++) {
		const struct tensor_spec *s =
			i < base->ins ? &base->in[i] : &base->out[i - base->ins];
		if (torch_type(s->type) < 0 || s->optional)
			return error_set(
				err, -EINVAL, "%s has a type that PyTorch has not", s->name);
	}
	return 0;
}

static int load_model(struct torch_model *m, const struct engine_options *o,
	const struct engine_config *c, int fd, const char *path, struct error *err)
{
	struct buf file = { 0 };
	int e = engine_read(fd, path, &file, err);
	if (e)
		return e;
	e = torch_package_open(&m->package, &file, path, err);
	buf_free(&file);
	e = e ? e : open_library(m, o, err);
	e = e ? e : find_functions(m, err);
	if (e)
		return e;
	enter(m, NULL);
	const int32_t failed =
		m->container.CreateWithDevice(&m->made, 1, DEVICE, m->package.kernels);
	e = leave(m, failed, "it can't be loaded", err);
	m->gpu.base.bytes = m->gpu.space.used;
	return e ? e : check_specs(m, c, err);
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err)
{
	struct error why;
	if (!o->torch && !o->libtorch)
		return error_set(err, -EINVAL,
			"model %s: it is code, which weir serve runs with --torch alone", c->name);
	struct torch_model *m = xcalloc(1, sizeof *m);
	int e = gpu_model_init(&m->gpu, &engine_torch, &ops, o, c, err);
	if (!e && (e = load_model(m, o, c, fd, path, &why)))
		error_set(err, e, "model %s: %s: %s", c->name, path, why.text);
	if (!e && !m->alone) {
		/* Its memory is libtorch's, which may be another's when a graph is replayed. */
		m->gpu.graphs = false;
		store_release(&m->gpu.base.no_graphs,
			xstrdup("no graphs are made of models that need libtorch"));
	}
	return gpu_model_loaded(&m->gpu, e, ret);
}

const struct engine engine_torch = {
	.name = "torch",
	.platforms = " pytorch torch_aoti ",
	.file = "model.pt2",
	.code = true,
	.pads = true,
	.put_version = put_version,
	.load = load,
	GPU_MODEL_CALLS,
	.unload = unload,
};
