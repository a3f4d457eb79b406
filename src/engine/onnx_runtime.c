/* Loads ONNX Runtime, makes sessions, and reads the tensors that they take and give. */
#include "engine/onnx_runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared_library.h"

#define LIBRARY          "libonnxruntime.so.1"
#define API_VERSION      22 /* the oldest whose table has all of ort.tbl */
#define LOG_FATAL        4  /* what fails comes back as a status, in words */
#define OPTIMISE_NOTHING 0
#define OPTIMISE_BASIC   1
#define OPTIMISE_MORE    2
#define OPTIMISE_ALL     99
#define INVALID          2 /* error code: an argument */
#define ARENA            1 /* allocator of the memory that inputs lie in, and */
#define MEMORY_DEFAULT   0 /* its type */

struct ort_base {
	const void *const *(*get_api)(uint32_t version);
	const char *(*version)(void);
};

struct onnx_runtime runtime = { .lock = PTHREAD_MUTEX_INITIALIZER };
struct ort_functions ort;

int ort_check(struct ort_status *status, const char *name, const char *what, struct error *err)
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
	e = runtime.env
		    ? 0
		    : ort_check(ort.CreateEnv(LOG_FATAL, "weir", &runtime.env), none, what, err);
	e = e ? e
	      : ort_check(ort.GetAllocatorWithDefaultOptions(&runtime.allocator), none, what, err);
	e = e ? e
	      : ort_check(ort.CreateCpuMemoryInfo(ARENA, MEMORY_DEFAULT, &runtime.memory), none,
			what, err);
	if (e)
		return e;
	Dl_info from;
	runtime.version = base->version();
	if (dladdr((const void *)base, &from) && from.dli_fname)
		snprintf(runtime.path, sizeof runtime.path, "%s", from.dli_fname);
	runtime.ready = true;
	return 0;
}

int onnx_open(const struct engine_options *o, struct error *err)
{
	pthread_mutex_lock(&runtime.lock);
	const int e = runtime.ready ? 0 : open_locked(o, err);
	pthread_mutex_unlock(&runtime.lock);
	return e;
}

bool onnx_put_version(const struct engine_options *o, struct buf *b)
{
	struct error err;
	const bool runs = !onnx_open(o, &err);
	if (runs)
		buf_printf(b, "ONNX Runtime %s, %s", runtime.version, runtime.path);
	else
		buf_put_text(b, err.text);
	return runs;
}

static unsigned processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

static int set_option(
	struct ort_options *options, const struct parameter *p, const char *name, struct error *err)
{
	const bool intra = strcmp(p->key, "intra_op_thread_count") == 0;
	char what[120];
	snprintf(what, sizeof what, "parameter %.80s", p->key);
	if (strncmp(p->key, "session.", 8) == 0)
		return ort_check(
			ort.AddSessionConfigEntry(options, p->key, p->value), name, what, err);
	if (!intra && strcmp(p->key, "inter_op_thread_count") != 0)
		return 0; /* of somebody else */
	char *end;
	const long threads = strtol(p->value, &end, 10);
	if (!*p->value || *end || threads < 0 || threads > 1024)
		return error_set(err, -EINVAL, "model %s: %s is '%s' and not a number of threads",
			name, what, p->value);
	return ort_check((intra ? ort.SetIntraOpNumThreads : ort.SetInterOpNumThreads)(
				 options, (int)threads),
		name, what, err);
}

/* As Triton reads optimization.graph.level. */
static int level_of(int graph_level)
{
	switch (graph_level) {
	case -1:
		return OPTIMISE_BASIC;
	case 1:
		return OPTIMISE_MORE;
	case 2:
		return OPTIMISE_NOTHING;
	default:
		return OPTIMISE_ALL;
	}
}

/* The folder is where weights lie that are not in the file itself. */
static int set_options(struct ort_options *options, const struct engine_options *o,
	const struct engine_config *c, const char *folder, struct error *err)
{
	static const char *const entry[][2] = {
		{ "session.intra_op.allow_spinning", "0" },
		{ "session.model_external_initializers_file_folder_path", NULL },
	};
	const char *what = "a session's options";
	const int threads = (int)(o->threads ? o->threads : processors());
	int e = ort_check(ort.SetIntraOpNumThreads(options, threads), c->name, what, err);
	e = e ? e : ort_check(ort.SetInterOpNumThreads(options, 1), c->name, what, err);
	e = e ? e
	      : ort_check(ort.SetSessionGraphOptimizationLevel(options, level_of(c->graph_level)),
			c->name, what, err);
	for (size_t i = 0; i < sizeof entry / sizeof *entry && !e; i++)
		e = ort_check(ort.AddSessionConfigEntry(
				      options, entry[i][0], entry[i][1] ? entry[i][1] : folder),
			c->name, what, err);
	for (unsigned i = 0; i < c->parameters && !e; i++)
		e = set_option(options, &c->parameter[i], c->name, err);
	return e;
}

int onnx_options(const struct engine_options *o, const struct engine_config *c, const char *path,
	struct ort_options **ret, struct error *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = xstrndup(slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
	int e = ort_check(ort.CreateSessionOptions(ret), c->name, "a session's options", err);
	if (!e) {
		e = set_options(*ret, o, c, folder, err);
		if (e)
			ort.ReleaseSessionOptions(*ret);
	}
	free(folder);
	return e;
}

int onnx_read_shape(const struct ort_tensor *tensor, struct shape *ret, const char *name,
	const char *what, struct error *err)
{
	size_t n = 0;
	int e = ort_check(ort.GetDimensionsCount(tensor, &n), name, what, err);
	if (!e && n > SHAPE_DIMS)
		e = error_set(err, -EINVAL, "model %s: %s has %zu dimensions, and Weir knows %d",
			name, what, n, SHAPE_DIMS);
	e = e ? e : ort_check(ort.GetDimensions(tensor, ret->dims, n), name, what, err);
	ret->n = e ? 0 : (unsigned)n;
	return e;
}

static int read_type(
	const struct ort_type *type, struct tensor_spec *spec, const char *name, struct error *err)
{
	int onnx_type = 0;
	const struct ort_tensor *tensor = NULL;
	int e = ort_check(ort.CastTypeInfoToTensorInfo(type, &tensor), name, spec->name, err);
	if (!e && !tensor)
		return error_set(err, -EINVAL,
			"model %s: %s is not a tensor, and requests have no other form", name,
			spec->name);
	e = e ? e : ort_check(ort.GetTensorElementType(tensor, &onnx_type), name, spec->name, err);
	spec->type = dtype_of_onnx(onnx_type);
	if (!e && spec->type == DTYPE_NONE)
		return error_set(err, -EINVAL,
			"model %s: %s has elements of ONNX's type %d, which requests have not",
			name, spec->name, onnx_type);
	return e ? e : onnx_read_shape(tensor, &spec->shape, name, spec->name, err);
}

/* One of the three lists of a session. */
struct list {
	struct ort_status *(*count)(const struct ort_session *, size_t *);
	struct ort_status *(*name)(
		const struct ort_session *, size_t, struct ort_allocator *, char **);
	struct ort_status *(*type)(const struct ort_session *, size_t, struct ort_type **);
};

static int read_list(struct engine_model *m, struct ort_session *session, const struct list *list,
	bool optional, struct tensor_spec *spec, unsigned *n, struct error *err)
{
	const char *name = m->name, *what = "the list of its tensors";
	size_t count = 0;
	int e = ort_check(list->count(session, &count), name, what, err);
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
		e = ort_check(list->name(session, i, runtime.allocator, &of_ort), name, what, err);
		if (e)
			return e;
		s->name = xstrdup(of_ort);
		e = ort_check(ort.AllocatorFree(runtime.allocator, of_ort), name, what, err);
		e = e ? e : ort_check(list->type(session, i, &type), name, s->name, err);
		e = e ? e : read_type(type, s, name, err);
		ort.ReleaseTypeInfo(type);
	}
	return e;
}

static int read_tensors(
	struct engine_model *m, struct ort_session *session, bool optionals, struct error *err)
{
	const struct list in = { ort.SessionGetInputCount, ort.SessionGetInputName,
		ort.SessionGetInputTypeInfo };
	const struct list optional = { ort.SessionGetOverridableInitializerCount,
		ort.SessionGetOverridableInitializerName,
		ort.SessionGetOverridableInitializerTypeInfo };
	const struct list out = { ort.SessionGetOutputCount, ort.SessionGetOutputName,
		ort.SessionGetOutputTypeInfo };
	int e = read_list(m, session, &in, false, m->in, &m->ins, err);
	if (!e && optionals)
		e = read_list(m, session, &optional, true, m->in, &m->ins, err);
	return e ? e : read_list(m, session, &out, false, m->out, &m->outs, err);
}

int onnx_session(struct engine_model *m, const struct buf *file, const char *path,
	const struct ort_options *options, bool optional, struct ort_session **ret,
	struct error *err)
{
	int e = ort_check(ort.CreateSessionFromArray(runtime.env, file->v, file->n, options, ret),
		m->name, path, err);
	return e ? e : read_tensors(m, *ret, optional, err);
}
