/*
 * Models of engines that others wrote: include/weir/engine.h, a shared object.  engine.json names
 * the engine, and only the folder of engines is searched for it, so that who may put models into
 * the repository does not choose what code runs.
 */
#include <assert.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/shared_library.h"
#include "engine/gpu_model.h"
#include "include/weir/engine.h"

#define NAME_MOST    64
#define OUTPUT_BYTES ((uint64_t)1 << 32) /* of one output: more is taken for a fault */

#define WEIR_BYTES DTYPE_BYTES /* which engines do not get */
#define SAME_NUMBER(name, config, bytes, onnx)                                                     \
	static_assert((int)DTYPE_##name == (int)WEIR_##name, "DataType of config.pbtxt");
DTYPE_LIST(SAME_NUMBER)
#undef SAME_NUMBER
#undef WEIR_BYTES
static_assert(ENGINE_TENSORS == WEIR_ENGINE_TENSORS && SHAPE_DIMS == WEIR_ENGINE_DIMS,
	"as much as Weir has");

struct shared {
	struct gpu_model gpu; /* of a model in host memory only its base is used */
	const struct weir_engine *engine;
	void *own;
	bool loaded;
};

static struct shared *shared_of(struct engine_model *m)
{
	return (struct shared *)m; /* its first member's first */
}

/* The engine's sentence, as one line. */
static int failed(const char *model, const char *what, char *said, struct error *err)
{
	said[WEIR_ENGINE_ERROR - 1] = 0;
	for (char *c = said; *c; c++)
		*c = iscntrl((unsigned char)*c) ? ' ' : *c;
	return error_set(err, -EIO, "model %s: %s", model, *said ? said : what);
}

static int check_name(const char *model, const char *name, struct error *err)
{
	const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
	if (n && !name[n] && n <= NAME_MOST)
		return 0;
	return error_set(err, -EINVAL,
		"model %s: engine is '%s', and not 1 to %d small letters, digits, _ and -", model,
		name, NAME_MOST);
}

static int find_library(const struct engine_options *o, const char *model, const char *name,
	char path[static PATH_MAX], struct error *err)
{
	char file[NAME_MOST + 20];
	snprintf(file, sizeof file, "engines/%s.so", name);
	int e;
	if (!o->engines)
		e = library_path(file, path, PATH_MAX);
	else if (snprintf(path, PATH_MAX, "%s/%s.so", o->engines, name) >= PATH_MAX)
		e = -ENAMETOOLONG;
	else
		e = access(path, R_OK) ? -errno : 0;
	return e ? error_set(err, -EIO, "model %s: engine %s is not there: %s: %s", model, name,
			   path, strerror(-e))
		 : 0;
}

static int open_library(const struct engine_options *o, const char *model, const char *name,
	const struct weir_engine **ret, struct error *err)
{
	const struct weir_engine *(*get)(void) = NULL;
	const struct library_symbol symbol = { "weir_engine", 0 };
	char path[PATH_MAX] = "";
	int e = find_library(o, model, name, path, err);
	if (e)
		return e;
	e = library_load(path, &symbol, 1, &get);
	if (e == -ENOSYS)
		return error_set(err, -EIO, "model %s: %s is no engine: it exports no weir_engine",
			model, path);
	if (e)
		return error_set(
			err, -EIO, "model %s: %s can't be loaded: %s", model, path, dlerror());
	const struct weir_engine *engine = get();
	if (!engine || engine->version != WEIR_ENGINE_VERSION)
		return error_set(err, -EIO,
			"model %s: %s was built for version %u of weir/engine.h, and Weir has %u",
			model, path, engine ? engine->version : 0, WEIR_ENGINE_VERSION);
	if (!engine->load || !engine->unload || !engine->run == !engine->enqueue)
		return error_set(err, -EIO,
			"model %s: %s needs load, unload, and either run or enqueue", model, path);
	*ret = engine;
	return 0;
}

struct load_call {
	struct weir_load pub;
	struct gpu_space *space;
	const char *cuda;
};

static uint64_t device_memory(struct weir_load *pub, uint64_t bytes)
{
	struct load_call *call = (struct load_call *)pub;
	uint64_t at;
	return gpu_space_alloc(call->space, NULL, bytes, &at, NULL) ? 0 : at;
}

static void *driver_function(struct weir_load *pub, const char *name)
{
	const struct load_call *call = (const struct load_call *)pub;
	const struct library_symbol symbol = { name, 0 };
	const char *file = call->cuda ? call->cuda : GPU_LIBRARY;
	void *function;
	return library_load(file, &symbol, 1, &function) ? NULL : function;
}

static int take_spec(struct shared *s, const struct weir_tensor_spec *from, struct tensor_spec *to)
{
	const bool fixed = s->engine->enqueue != NULL;
	if (!from->name || !*from->name || strlen(from->name) >= TENSOR_NAME ||
		from->type == DTYPE_NONE || from->type >= DTYPES || from->type == DTYPE_BYTES ||
		from->dims > WEIR_ENGINE_DIMS || from->optional > !fixed)
		return -EINVAL;
	for (uint32_t i = 0; i < from->dims; i++)
		if (from->dim[i] < -1)
			return -EINVAL;
	to->name = xstrdup(from->name);
	to->type = from->type;
	to->optional = from->optional;
	to->shape.n = from->dims;
	memcpy(to->shape.dims, from->dim, from->dims * sizeof *from->dim);
	return 0;
}

static int take_specs(struct shared *s, const struct weir_tensor_spec *from, uint32_t n,
	struct tensor_spec *to, unsigned *ret_n, const char *what, struct error *err)
{
	const char *model = s->gpu.base.name;
	if (n == 0 || n > WEIR_ENGINE_TENSORS)
		return error_set(err, -EIO, "model %s: the engine gives %u %ss, and not 1 to %d",
			model, n, what, WEIR_ENGINE_TENSORS);
	for (; *ret_n < n; ++*ret_n)
		if (take_spec(s, &from[*ret_n], &to[*ret_n]))
			return error_set(err, -EIO,
				"model %s: the engine gives number %u of the %ss no valid name, "
				"type or shape",
				model, *ret_n + 1, what);
	return 0;
}

static int load_model(struct shared *s, struct load_call *call, struct error *err)
{
	struct engine_model *m = &s->gpu.base;
	struct weir_load *l = &call->pub;
	if (s->engine->load(l))
		return failed(m->name, "the engine can't load it", l->error, err);
	s->own = l->own;
	s->loaded = true;
	m->bytes = l->weight_bytes;
	const int e = take_specs(s, l->in, l->ins, m->in, &m->ins, "input", err);
	return e ? e : take_specs(s, l->out, l->outs, m->out, &m->outs, "output", err);
}

static void unload(struct engine_model *m)
{
	struct shared *s = shared_of(m);
	gpu_model_fini(&s->gpu); /* which takes one without a GPU too */
	if (s->loaded)
		s->engine->unload(s->own);
	free(s);
}

struct run_call {
	struct weir_run pub;
	const struct engine_model *model;
	struct engine_run *run;
	struct weir_tensor in[WEIR_ENGINE_TENSORS];
	void *copied[WEIR_ENGINE_TENSORS];
};

static void *no_output(struct weir_run *pub, const char *why, const char *name)
{
	snprintf(pub->error, sizeof pub->error, "output %.100s %s", name, why);
	return NULL;
}

static void *output(struct weir_run *pub, uint32_t k, uint32_t dims, const int64_t *dim)
{
	struct run_call *call = (struct run_call *)pub;
	const struct engine_model *m = call->model;
	if (k >= m->outs) {
		snprintf(pub->error, sizeof pub->error, "there is no output %u", k);
		return NULL;
	}
	const struct tensor_spec *spec = &m->out[k];
	struct engine_output *out = &call->run->out[k];
	struct shape shape = { .n = dims };
	uint64_t bytes;
	if (out->data)
		return no_output(pub, "is there twice", spec->name);
	if (dims > SHAPE_DIMS)
		return no_output(pub, "has too many dimensions", spec->name);
	memcpy(shape.dims, dim, dims * sizeof *dim);
	if (!shape_fits(&shape, &spec->shape) || (m->has_rows && dims && dim[0] != pub->rows))
		return no_output(pub, "has another shape than the model says", spec->name);
	if (shape_bytes(&shape, spec->type, &bytes) || bytes > OUTPUT_BYTES)
		return no_output(pub, "is too large", spec->name);
	out->type = spec->type;
	out->shape = shape;
	out->bytes = bytes;
	out->data = malloc(bytes + 1);
	return out->data ? (void *)out->data : no_output(pub, "finds no memory", spec->name);
}

/* One piece whose address suits its type stays where it is. */
static void give_input(struct run_call *call, unsigned i)
{
	const struct engine_input *in = &call->run->in[i];
	struct weir_tensor *t = &call->in[i];
	if (!in->given)
		return;
	t->dims = in->shape.n;
	memcpy(t->dim, in->shape.dims, in->shape.n * sizeof *t->dim);
	for (unsigned k = 0; k < in->pieces; k++)
		t->bytes += in->piece[k].bytes;
	t->data = in->pieces == 1 ? (void *)in->piece->data : NULL;
	if (t->data && (uintptr_t)t->data % dtype_rows[in->type].bytes == 0)
		return;
	char *to = call->copied[i] = t->data = xmalloc(t->bytes + 1);
	for (unsigned k = 0; k < in->pieces; k++)
		if (in->piece[k].bytes)
			to = mempcpy(to, in->piece[k].data, in->piece[k].bytes);
}

static void end(struct engine_model *m, struct engine_run *r)
{
	for (unsigned i = 0; i < m->outs; i++) {
		free((void *)r->out[i].data);
		r->out[i].data = NULL;
	}
}

static int run(struct engine_model *m, struct engine_run *r, struct error *err)
{
	const struct shared *s = shared_of(m);
	struct run_call call = { .model = m, .run = r };
	struct weir_run *pub = &call.pub;
	int e = 0;
	pub->rows = engine_rows(m, r);
	pub->in = call.in;
	pub->output = output;
	for (unsigned i = 0; i < m->ins; i++)
		give_input(&call, i);
	if (s->engine->run(s->own, pub))
		e = failed(m->name, "the engine can't run it", pub->error, err);
	for (unsigned i = 0; i < m->outs && !e; i++)
		if (!r->out[i].data)
			e = error_set(err, -EIO, "model %s: the engine gave no output %s", m->name,
				m->out[i].name);
	for (unsigned i = 0; i < m->ins; i++)
		free(call.copied[i]);
	if (e)
		end(m, r);
	return e;
}

static void give_tensors(const struct gpu_tensor *from, struct weir_tensor *to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		to[i] = (struct weir_tensor){ (void *)(uintptr_t)from[i].at, from[i].bytes,
			from[i].shape.n, { 0 } };
		memcpy(to[i].dim, from[i].shape.dims, from[i].shape.n * sizeof *to[i].dim);
	}
}

static int enqueue(struct gpu_model *g, struct gpu_plan *p, struct error *err)
{
	const struct shared *s = (const struct shared *)g;
	const struct engine_model *m = &g->base;
	struct weir_tensor in[WEIR_ENGINE_TENSORS], out[WEIR_ENGINE_TENSORS];
	struct weir_run pub = { .rows = p->rows, .in = in, .out = out, .stream = g->stream };
	give_tensors(p->in, in, m->ins);
	give_tensors(p->out, out, m->outs);
	if (!s->engine->enqueue(s->own, &pub))
		return 0;
	pub.error[sizeof pub.error - 1] = 0;
	return error_set(err, -EIO, "%s", *pub.error ? pub.error : "the engine can't run it");
}

static const struct gpu_engine ops = { .plan = gpu_plan_outputs, .enqueue = enqueue };

static bool put_version(const struct engine_options *o, struct buf *b)
{
	buf_printf(b, "weir/engine.h %d", WEIR_ENGINE_VERSION);
	return true;
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err);

/* The engine of models on the GPU.  Its models have another struct engine than the one that loads
 * them, because each has one form alone. */
static const struct engine on_gpu = {
	.name = "engine",
	.pads = true,
	GPU_MODEL_CALLS,
	.unload = unload,
};

const struct engine engine_shared = {
	.name = "engine",
	.platforms = " engine ",
	.file = "engine.json",
	.put_version = put_version,
	.load = load,
	.run = run,
	.end = end,
	.unload = unload,
};

static int begin(struct shared *s, struct load_call *call, const struct engine_options *o,
	const struct engine_config *c, struct error *err)
{
	if (!s->engine->enqueue) {
		engine_model_init(&s->gpu.base, &engine_shared, c);
		return 0;
	}
	const int e = gpu_model_init(&s->gpu, &on_gpu, &ops, o, c, err);
	call->space = &s->gpu.space;
	call->cuda = o->cuda;
	call->pub.stream = s->gpu.stream;
	call->pub.device_memory = device_memory;
	call->pub.driver_function = driver_function;
	return e;
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err)
{
	json_t *root;
	const char *name;
	const struct weir_engine *engine;
	struct buf text = { 0 };
	int e = engine_read_json(fd, path, c->name, &root, err);
	if (e)
		return e;
	if (json_unpack(root, "{s:s}", "engine", &name))
		e = error_set(err, -EINVAL, "model %s: %s needs the key engine", c->name, path);
	e = e ? e : check_name(c->name, name, err);
	e = e ? e : open_library(o, c->name, name, &engine, err);
	json_decref(root);
	e = e ? e : engine_read(fd, path, &text, err);
	if (e)
		return e;
	const char *slash = strrchr(path, '/');
	char *folder =
		xstrndup(slash ? path : ".", slash && slash > path ? (size_t)(slash - path) : 1);
	struct shared *s = xcalloc(1, sizeof *s);
	struct load_call *call = xcalloc(1, sizeof *call);
	s->engine = engine;
	call->pub.model = c->name;
	call->pub.text = buf_text(&text);
	call->pub.folder = folder;
	call->pub.max_batch_size = c->max_batch_size;
	e = begin(s, call, o, c, err);
	e = e ? e : load_model(s, call, err);
	free_all(call, folder);
	buf_free(&text);
	return gpu_model_loaded(&s->gpu, e, ret);
}
