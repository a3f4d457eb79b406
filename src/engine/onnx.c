/*
 * ONNX Runtime on the CPU, loaded when the first model needs it.  Its functions come by slot from
 * api/ort.tbl, so Weir is built without its headers and runs with each version from 1.22 on.
 *
 * A run gives ONNX Runtime the caller's memory where an input is one aligned piece, and a gathered
 * copy elsewhere.  Outputs are ONNX Runtime's own values until engine_run_end().  Strings have
 * another form there and are converted both ways.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library_path.h"
#include "base/shared_library.h"
#include "engine/model_base.h"
#include "ort_functions.h"

#include "base/banned.h"

#define LIBRARY        "libonnxruntime.so.1"
#define API_VERSION    22 /* the oldest whose table has all of ort.tbl */
#define LOG_FATAL      4  /* what fails comes back as a status, in words */
#define OPTIMISE_ALL   99
#define TYPE_TENSOR    1
#define INVALID        2 /* error code: an argument */
#define ARENA          1 /* allocator of the memory that inputs lie in, and */
#define MEMORY_DEFAULT 0 /* its type */

struct ort_base {
	const void *const *(*get_api)(uint32_t version);
	const char *(*version)(void);
};

/* Of the process: loaded once, never unloaded. */
static struct {
	pthread_mutex_t lock;
	bool ready;
	const char *version;
	char path[PATH_MAX]; /* of the library, as the loader found it */
	struct ort_env *env;
	struct ort_memory *memory;
	struct ort_allocator *allocator;
} runtime = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct ort_functions ort; /* filled when runtime is ready */

struct onnx_model {
	struct engine_model base;
	struct ort_session *session;
	struct buf gathered[ENGINE_TENSORS];
};

/* What one run's outputs lie in. */
struct onnx_run {
	struct ort_value *value[ENGINE_TENSORS];
	struct buf text[ENGINE_TENSORS];
	unsigned n;
};

/* 0, or the status in words. */
static int check(struct ort_status *status, const char *name, const char *what, struct error *err)
{
	if (!status)
		return 0;
	const int e = ort.GetErrorCode(status) == INVALID ? -EINVAL : -EIO;
	char text[sizeof err->text];
	snprintf(text, sizeof text, "%s", ort.GetErrorMessage(status));
	for (char *c = text; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	ort.ReleaseStatus(status);
	return error_set(err, e, "model %s: %s: %s", name, what, text);
}

static int open_library(const char *asked, struct ort_base const **ret, struct error *err)
{
	const struct ort_base *(*get_base)(void) = NULL;
	const struct library_symbol symbol = { "OrtGetApiBase", 0 };
	char beside[PATH_MAX] = "";
	const int found = library_path(LIBRARY, beside, sizeof beside);
	const char *file = asked ? asked : found == 0 ? beside : LIBRARY;
	const int e = library_load(file, &symbol, 1, &get_base);
	if (e == -ENOSYS)
		return error_set(err, -EIO, "%s is not ONNX Runtime", file);
	if (e && (asked || found == 0))
		return error_set(err, -EIO, "ONNX Runtime can't be loaded: %s", dlerror());
	if (e)
		return error_set(err, -EIO,
			"ONNX Runtime is not installed: there is no %s, and the loader finds no %s. "
			"`make onnxruntime` fetches it, and --onnxruntime names another file",
			beside, LIBRARY);
	const struct ort_base *base = get_base();
	unsigned major = 0, minor = 0;
	if (sscanf(base->version(), "%u.%u", &major, &minor) != 2 || major < 1 ||
		(major == 1 && minor < API_VERSION))
		return error_set(err, -EIO,
			"%s is ONNX Runtime %s, and Weir needs 1.%d or a newer one", file,
			base->version(), API_VERSION);
	*ret = base;
	return 0;
}

static int open_locked(const struct engine_options *o, struct error *err)
{
	const struct ort_base *base;
	int e = open_library(o->onnxruntime, &base, err);
	if (e)
		return e;
	const void *const *slots = base->get_api(API_VERSION);
	if (!slots)
		return error_set(err, -EIO, "ONNX Runtime %s has no interface of version %d",
			base->version(), API_VERSION);
	ort_fill(&ort, slots);
	const char *none = "of any", *what = "ONNX Runtime does not start";
	e = runtime.env ? 0
			: check(ort.CreateEnv(LOG_FATAL, "weir", &runtime.env), none, what, err);
	e = e ? e : check(ort.GetAllocatorWithDefaultOptions(&runtime.allocator), none, what, err);
	e = e ? e
	      : check(ort.CreateCpuMemoryInfo(ARENA, MEMORY_DEFAULT, &runtime.memory), none, what,
			err);
	if (e)
		return e;
	Dl_info from;
	runtime.version = base->version();
	if (dladdr((const void *)base, &from) && from.dli_fname)
		snprintf(runtime.path, sizeof runtime.path, "%s", from.dli_fname);
	runtime.ready = true;
	return 0;
}

static int open_runtime(const struct engine_options *o, struct error *err)
{
	pthread_mutex_lock(&runtime.lock);
	const int e = runtime.ready ? 0 : open_locked(o, err);
	pthread_mutex_unlock(&runtime.lock);
	return e;
}

static void put_version(const struct engine_options *o, struct buf *b)
{
	struct error err;
	if (open_runtime(o, &err))
		buf_put_text(b, err.text);
	else
		buf_printf(b, "ONNX Runtime %s, %s", runtime.version, runtime.path);
}

static unsigned processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static int set_option(struct ort_options *options, const struct engine_parameter *p,
	const char *name, struct error *err)
{
	const bool intra = strcmp(p->key, "intra_op_thread_count") == 0;
	char what[120];
	snprintf(what, sizeof what, "parameter %.80s", p->key);
	if (strncmp(p->key, "session.", 8) == 0)
		return check(ort.AddSessionConfigEntry(options, p->key, p->value), name, what, err);
	if (!intra && strcmp(p->key, "inter_op_thread_count") != 0)
		return 0; /* of somebody else */
	char *end;
	const long threads = strtol(p->value, &end, 10);
	if (!*p->value || *end || threads < 0 || threads > 1024)
		return error_set(err, -EINVAL, "model %s: %s is '%s' and not a number of threads",
			name, what, p->value);
	return check((intra ? ort.SetIntraOpNumThreads : ort.SetInterOpNumThreads)(
			     options, (int)threads),
		name, what, err);
}

/* The folder is where weights lie that are not in the file itself. */
static int set_options(struct ort_options *options, const struct engine_options *o,
	const struct engine_config *c, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = xstrndup(slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
	const char *what = "a session's options";
	const int threads = (int)(o->threads ? o->threads : processors());
	int e = check(ort.SetIntraOpNumThreads(options, threads), c->name, what, err);
	e = e ? e : check(ort.SetInterOpNumThreads(options, 1), c->name, what, err);
	e = e ? e
	      : check(ort.SetSessionGraphOptimizationLevel(options, OPTIMISE_ALL), c->name, what,
			err);
	e = e ? e
	      : check(ort.AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"),
			c->name, what, err);
	e = e ? e
	      : check(ort.AddSessionConfigEntry(options,
			      "session.model_external_initializers_file_folder_path", folder),
			c->name, what, err);
	for (unsigned i = 0; i < c->parameters && !e; i++)
		e = set_option(options, &c->parameter[i], c->name, err);
	free(folder);
	return e;
}

/* The shape of a tensor, or of a type of tensors. */
static int read_shape(const struct ort_tensor *tensor, struct shape *ret, const char *name,
	const char *what, struct error *err)
{
	size_t n = 0;
	int e = check(ort.GetDimensionsCount(tensor, &n), name, what, err);
	if (!e && n > SHAPE_DIMS)
		e = error_set(err, -EINVAL, "model %s: %s has %zu dimensions, and Weir knows %d",
			name, what, n, SHAPE_DIMS);
	e = e ? e : check(ort.GetDimensions(tensor, ret->dims, n), name, what, err);
	ret->n = e ? 0 : (unsigned)n;
	return e;
}

static int read_type(
	const struct ort_type *type, struct tensor_spec *spec, const char *name, struct error *err)
{
	int onnx_type = 0;
	const struct ort_tensor *tensor = NULL;
	int e = check(ort.CastTypeInfoToTensorInfo(type, &tensor), name, spec->name, err);
	if (!e && !tensor)
		return error_set(err, -EINVAL,
			"model %s: %s is not a tensor, and requests have no other form", name,
			spec->name);
	e = e ? e : check(ort.GetTensorElementType(tensor, &onnx_type), name, spec->name, err);
	spec->type = dtype_of_onnx(onnx_type);
	if (!e && spec->type == DTYPE_NONE)
		return error_set(err, -EINVAL,
			"model %s: %s has elements of ONNX's type %d, which requests have not",
			name, spec->name, onnx_type);
	return e ? e : read_shape(tensor, &spec->shape, name, spec->name, err);
}

/* One of the three lists of a session. */
struct list {
	struct ort_status *(*count)(const struct ort_session *, size_t *);
	struct ort_status *(*name)(
		const struct ort_session *, size_t, struct ort_allocator *, char **);
	struct ort_status *(*type)(const struct ort_session *, size_t, struct ort_type **);
};

static int read_list(struct onnx_model *m, const struct list *list, bool optional,
	struct tensor_spec *spec, unsigned *n, struct error *err)
{
	const char *name = m->base.name, *what = "the list of its tensors";
	size_t count = 0;
	int e = check(list->count(m->session, &count), name, what, err);
	/* Files of old tools have all weights in this list, and nobody would send those. */
	if (!e && optional && count > ENGINE_TENSORS - *n)
		return 0;
	if (!e && count > ENGINE_TENSORS)
		return error_set(err, -EINVAL,
			"model %s: it has %zu inputs or outputs, more than %d", name, count,
			ENGINE_TENSORS);
	for (size_t i = 0; i < count && !e; i++) {
		struct tensor_spec *s = &spec[(*n)++];
		struct ort_type *type = NULL;
		char *of_ort = NULL;
		s->optional = optional;
		e = check(list->name(m->session, i, runtime.allocator, &of_ort), name, what, err);
		if (e)
			return e;
		s->name = xstrdup(of_ort);
		e = check(ort.AllocatorFree(runtime.allocator, of_ort), name, what, err);
		e = e ? e : check(list->type(m->session, i, &type), name, s->name, err);
		e = e ? e : read_type(type, s, name, err);
		ort.ReleaseTypeInfo(type);
	}
	return e;
}

static int read_tensors(struct onnx_model *m, struct error *err)
{
	const struct list in = { ort.SessionGetInputCount, ort.SessionGetInputName,
		ort.SessionGetInputTypeInfo };
	const struct list optional = { ort.SessionGetOverridableInitializerCount,
		ort.SessionGetOverridableInitializerName,
		ort.SessionGetOverridableInitializerTypeInfo };
	const struct list out = { ort.SessionGetOutputCount, ort.SessionGetOutputName,
		ort.SessionGetOutputTypeInfo };
	int e = read_list(m, &in, false, m->base.in, &m->base.ins, err);
	e = e ? e : read_list(m, &optional, true, m->base.in, &m->base.ins, err);
	return e ? e : read_list(m, &out, false, m->base.out, &m->base.outs, err);
}

static void unload(struct engine_model *base)
{
	struct onnx_model *m = (struct onnx_model *)base;
	if (m->session)
		ort.ReleaseSession(m->session);
	for (unsigned i = 0; i < ENGINE_TENSORS; i++)
		buf_free(&m->gathered[i]);
	engine_model_fini(base);
	free(m);
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err)
{
	struct buf file = { 0 };
	int e = open_runtime(o, err);
	e = e ? e : engine_read(fd, path, &file, err);
	if (e)
		return e;
	struct onnx_model *m = xcalloc(1, sizeof *m);
	engine_model_init(&m->base, &engine_onnx, c);
	m->base.bytes = file.n;
	struct ort_options *options = NULL;
	e = check(ort.CreateSessionOptions(&options), c->name, "a session's options", err);
	e = e ? e : set_options(options, o, c, path, err);
	e = e ? e
	      : check(ort.CreateSessionFromArray(runtime.env, file.v, file.n, options, &m->session),
			c->name, path, err);
	buf_free(&file);
	if (options)
		ort.ReleaseSessionOptions(options);
	e = e ? e : read_tensors(m, err);
	if (e)
		unload(&m->base);
	else
		*ret = &m->base;
	return e;
}

/* Elements of BYTES, in pieces, as strings. */
static int fill_strings(const struct tensor_spec *spec, const struct engine_input *in,
	struct ort_value *value, const char *name, struct error *err)
{
	uint64_t want = 0;
	size_t n = 0;
	shape_elements(&in->shape, &want);
	for (unsigned p = 0; p < in->pieces; p++) {
		const char *at = in->piece[p].data, *end = at + in->piece[p].bytes;
		for (uint32_t length; at < end; at += length, n++) {
			if (n == want || end - at < (ptrdiff_t)sizeof length)
				goto wrong;
			memcpy(&length, at, sizeof length);
			at += sizeof length;
			if (length > (size_t)(end - at))
				goto wrong;
			char *text = NULL;
			const int e = check(
				ort.GetResizedStringTensorElementBuffer(value, n, length, &text),
				name, spec->name, err);
			if (e)
				return e;
			if (length)
				memcpy(text, at, length);
		}
	}
	if (n == want)
		return 0;
wrong:
	return error_set(err, -EINVAL,
		"model %s: the bytes of input %s are not %llu elements with a length before each",
		name, spec->name, (unsigned long long)want);
}

/* Where all rows of an input lie behind each other, as their type must. */
static void *gather(struct buf *b, const struct engine_input *in)
{
	static char nothing[16];
	const size_t each = dtype_rows[in->type].bytes;
	if (in->pieces == 1 && in->piece->bytes && (uintptr_t)in->piece->data % each == 0)
		return (void *)in->piece->data; /* which ONNX Runtime only reads */
	b->n = 0;
	for (unsigned i = 0; i < in->pieces; i++)
		buf_put(b, in->piece[i].data, in->piece[i].bytes);
	return b->n ? b->v : nothing;
}

static int bind_input(struct onnx_model *m, unsigned i, const struct engine_input *in,
	struct ort_value **ret, struct error *err)
{
	const struct tensor_spec *spec = &m->base.in[i];
	const char *name = m->base.name;
	const int type = dtype_rows[in->type].onnx;
	uint64_t bytes = 0;
	if (in->type == DTYPE_BYTES) {
		const int e = check(ort.CreateTensorAsOrtValue(runtime.allocator, in->shape.dims,
					    in->shape.n, type, ret),
			name, spec->name, err);
		return e ? e : fill_strings(spec, in, *ret, name, err);
	}
	shape_bytes(&in->shape, in->type, &bytes);
	return check(ort.CreateTensorWithDataAsOrtValue(runtime.memory, gather(&m->gathered[i], in),
			     bytes, in->shape.dims, in->shape.n, type, ret),
		name, spec->name, err);
}

static int read_strings(struct ort_value *value, struct engine_output *out, size_t n, struct buf *b,
	const char *name, const char *what, struct error *err)
{
	size_t bytes = 0;
	int e = check(ort.GetStringTensorDataLength(value, &bytes), name, what, err);
	if (e)
		return e;
	char *text = xmalloc(bytes + 1);
	size_t *offset = xcalloc(n + 1, sizeof *offset);
	if (n)
		e = check(
			ort.GetStringTensorContent(value, text, bytes, offset, n), name, what, err);
	offset[n] = bytes;
	for (size_t i = 0; i < n && !e; i++) {
		const uint32_t length = (uint32_t)(offset[i + 1] - offset[i]);
		buf_put(b, &length, sizeof length);
		buf_put(b, text + offset[i], length);
	}
	free(offset);
	free(text);
	out->data = b->v;
	out->bytes = b->n;
	return e;
}

static int read_output(struct ort_value *value, const struct tensor_spec *spec,
	struct engine_output *out, struct buf *b, const char *name, struct error *err)
{
	struct ort_tensor *tensor = NULL;
	uint64_t n = 0;
	void *data = NULL;
	int e = check(ort.GetTensorTypeAndShape(value, &tensor), name, spec->name, err);
	if (e)
		return e;
	e = read_shape(tensor, &out->shape, name, spec->name, err);
	ort.ReleaseTensorTypeAndShapeInfo(tensor);
	e = e ? e : shape_elements(&out->shape, &n);
	if (e)
		return e;
	out->type = spec->type;
	if (spec->type == DTYPE_BYTES)
		return read_strings(value, out, n, b, name, spec->name, err);
	e = check(ort.GetTensorMutableData(value, &data), name, spec->name, err);
	out->data = data;
	out->bytes = n * dtype_rows[spec->type].bytes;
	return e;
}

static void end(struct engine_model *m, struct engine_run *run)
{
	struct onnx_run *own = run->own;
	for (unsigned i = 0; i < own->n; i++) {
		if (own->value[i])
			ort.ReleaseValue(own->value[i]);
		buf_free(&own->text[i]);
	}
	free(own);
	run->own = NULL;
}

static int run_bound(struct onnx_model *m, struct engine_run *run, const char *const *in_name,
	struct ort_value *const *in, unsigned ins, struct error *err)
{
	struct onnx_run *own = xcalloc(1, sizeof *own);
	const char *out_name[ENGINE_TENSORS];
	for (unsigned i = 0; i < m->base.outs; i++)
		if (run->out[i].wanted)
			out_name[own->n++] = m->base.out[i].name;
	int e = check(ort.Run(m->session, NULL, in_name, (const struct ort_value *const *)in, ins,
			      out_name, own->n, own->value),
		m->base.name, "the run failed", err);
	for (unsigned i = 0, k = 0; i < m->base.outs && !e; i++) {
		if (!run->out[i].wanted)
			continue;
		e = read_output(own->value[k], &m->base.out[i], &run->out[i], &own->text[k],
			m->base.name, err);
		k++;
	}
	run->own = own;
	if (e)
		end(&m->base, run);
	return e;
}

static int run(struct engine_model *base, struct engine_run *r, struct error *err)
{
	struct onnx_model *m = (struct onnx_model *)base;
	const char *in_name[ENGINE_TENSORS];
	struct ort_value *in[ENGINE_TENSORS];
	unsigned ins = 0;
	int e = 0;
	for (unsigned i = 0; i < base->ins && !e; i++) {
		if (!r->in[i].given)
			continue;
		in[ins] = NULL;
		in_name[ins] = base->in[i].name;
		e = bind_input(m, i, &r->in[i], &in[ins], err);
		ins++;
	}
	e = e ? e : run_bound(m, r, in_name, in, ins, err);
	while (ins--)
		if (in[ins])
			ort.ReleaseValue(in[ins]);
	return e;
}

const struct engine engine_onnx = {
	.name = "onnx",
	.platforms = " onnxruntime onnxruntime_onnx ",
	.file = "model.onnx",
	.put_version = put_version,
	.load = load,
	.run = run,
	.end = end,
	.unload = unload,
};
