/*
 * Models that are kernels and a list of what to launch, by the CUDA driver alone.
 * docs/reference/engines.md has the keys of kernels.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/gpu_model.h"
#include "engine/kernel_list.h"

#define ARGUMENTS_MOST  64
#define BATCH_ROWS_MOST 1024
#define SHARED_PLAIN    49152 /* more dynamic shared memory a kernel must be allowed */
#define SHARED_LIMIT    8     /* the attribute that allows it */

/* Inputs, then outputs, then these. */
struct buffer {
	char *name;
	struct amount bytes;
	uint64_t at; /* of one whose size rows don't change */
};

struct argument {
	enum { ADDRESS, U32, U64, F32, F64 } kind;
	unsigned place;
	struct amount value; /* or what is added to the address */
	double real;
};

enum { BLOCK = 3, SHARED = 6, SIZES = 7 }; /* in `size`, whose first three are the grid */

struct step {
	enum { LAUNCH, COPY, FILL, LIBRARY } kind;
	void *function;
	struct amount size[SIZES]; /* grid, block, bytes of shared memory */
	struct argument argument[ARGUMENTS_MOST];
	unsigned arguments;
	unsigned from, to; /* places */
	struct amount bytes;
	unsigned char value;
	struct library_step library;
};

struct kernels {
	struct gpu_model gpu;
	int folder;
	void *module;                 /* NULL: there is no image */
	struct weir_kernels *library; /* NULL: no step needs it */
	ARRAY(struct buffer) buffer;
	ARRAY(struct step) step;
};

static struct kernels *kernels_of(struct gpu_model *m)
{
	return (struct kernels *)m; /* its first member */
}

/* The amount for the most rows.  A configuration that says nothing of rows gets them later. */
static uint64_t most_of(const struct kernels *k, const struct amount *a)
{
	return amount(a, k->gpu.max_rows ? k->gpu.max_rows : BATCH_ROWS_MOST);
}

/* Small enough that no sum of a few overflows. */
#define AMOUNT_MOST ((json_int_t)1 << 40)

int amount_read(const json_t *j, struct amount *ret)
{
	json_int_t each = 0, plus = 0, over = 1;
	if (json_is_integer(j))
		plus = json_integer_value(j);
	else if (json_unpack((json_t *)j, "{s?I, s?I, s?I !}", "rows", &each, "plus", &plus, "over",
			 &over))
		return -EINVAL;
	if (each < 0 || plus < 0 || over < 1 || each > AMOUNT_MOST || plus > AMOUNT_MOST ||
		over > AMOUNT_MOST)
		return -EINVAL;
	*ret = (struct amount){ (uint64_t)each, (uint64_t)plus, (uint64_t)over };
	return 0;
}

int kernel_list_find(const struct kernels *k, const char *name, unsigned *ret)
{
	const struct engine_model *m = &k->gpu.base;
	for (unsigned i = 0; i < m->ins + m->outs; i++) {
		const char *have = i < m->ins ? m->in[i].name : m->out[i - m->ins].name;
		*ret = i;
		if (strcmp(have, name) == 0)
			return 0;
	}
	for (unsigned i = 0; i < k->buffer.n; i++) {
		*ret = m->ins + m->outs + i;
		if (strcmp(k->buffer.v[i].name, name) == 0)
			return 0;
	}
	return -ENOENT;
}

static int read_argument(const struct kernels *k, const json_t *j, struct argument *a)
{
	static const char *const names[] = { "buffer", "u32", "u64", "f32", "f64" };
	*a = (struct argument){ .value.over = 1 };
	if (!json_is_object(j))
		return -EINVAL;
	const json_t *value = NULL, *offset = json_object_get(j, "offset");
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		const json_t *v = json_object_get(j, names[i]);
		if (v && value)
			return -EINVAL;
		if (v)
			a->kind = i;
		value = v ? v : value;
	}
	if (!value || json_object_size(j) != (offset ? 2 : 1) || (offset && a->kind != ADDRESS))
		return -EINVAL;
	if (a->kind == U32 || a->kind == U64) {
		const int e = amount_read(value, &a->value);
		return !e && a->kind == U32 && most_of(k, &a->value) > UINT32_MAX ? -ERANGE : e;
	}
	a->real = json_number_value(value);
	if (a->kind != ADDRESS)
		return json_is_number(value) ? 0 : -EINVAL;
	if (!json_is_string(value) || kernel_list_find(k, json_string_value(value), &a->place))
		return -ENOENT;
	return offset ? amount_read(offset, &a->value) : 0;
}

static int read_amounts(const json_t *list, struct amount *to, unsigned n)
{
	if (!json_is_array(list) || json_array_size(list) != n)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		if (amount_read(json_array_get(list, i), &to[i]))
			return -EINVAL;
	return 0;
}

static int wrong(const struct kernels *k, const char *what, const char *key, const char *needs,
	struct error *err)
{
	return error_set(err, -EINVAL, "model %s: %s: %s %s", k->gpu.base.name, what, key, needs);
}

static int read_launch(
	struct kernels *k, const json_t *j, const char *what, struct step *s, struct error *err)
{
	const char *name;
	json_t *grid, *block, *arguments = NULL, *shared = NULL;
	json_error_t why;
	struct gpu *g = k->gpu.gpu;
	if (json_unpack_ex((json_t *)j, &why, 0, "{s:s, s:o, s:o, s?o, s?o !}", "kernel", &name,
		    "grid", &grid, "block", &block, "arguments", &arguments, "shared", &shared))
		return wrong(k, what, "a launch:", why.text, err);
	s->size[SHARED].over = 1;
	if (read_amounts(grid, s->size, 3) || read_amounts(block, s->size + BLOCK, 3) ||
		(shared && amount_read(shared, &s->size[SHARED])))
		return wrong(k, what, name, "needs three numbers as grid and as block", err);
	for (unsigned i = 0; i < SIZES; i++)
		if (most_of(k, &s->size[i]) > INT32_MAX)
			return wrong(
				k, what, name, "has a grid, block or shared of 2^31 or more", err);
		else if (i < SHARED && !amount(&s->size[i], 1))
			return wrong(k, what, name, "has a grid or block of 0", err);
	if (arguments && (!json_is_array(arguments) || json_array_size(arguments) > ARGUMENTS_MOST))
		return wrong(k, what, name, "has no list of at most 64 arguments", err);
	for (; s->arguments < json_array_size(arguments); s->arguments++)
		if (read_argument(
			    k, json_array_get(arguments, s->arguments), &s->argument[s->arguments]))
			return wrong(k, what, name,
				"has an argument that is no buffer of this model, and no u32, u64, f32 or "
				"f64 that fits",
				err);
	int e = !k->module || GPU_CALL(g, err, cuModuleGetFunction, &s->function, k->module, name);
	if (e)
		return wrong(k, what, name, "is no kernel of the image", err);
	if (most_of(k, &s->size[SHARED]) > SHARED_PLAIN)
		e = GPU_CALL(g, err, cuFuncSetAttribute, s->function, SHARED_LIMIT,
			(int)most_of(k, &s->size[SHARED]));
	return e;
}

static int read_library_step(
	struct kernels *k, const json_t *j, const char *what, struct step *s, struct error *err)
{
	struct error why = { 0 };
	s->kind = LIBRARY;
	const int e = library_step_read(k, j, &s->library, &why);
	return e ? wrong(k, what, json_object_iter_key(json_object_iter((json_t *)j)), why.text,
			   err)
		 : 0;
}

static int read_step(struct kernels *k, const json_t *j, const char *what, struct error *err)
{
	const char *from = NULL, *to;
	json_t *bytes = NULL;
	int value;
	struct step *s = array_push(&k->step);
	*s = (struct step){ .kind = LAUNCH, .bytes.over = 1 };
	if (json_object_get(j, "kernel"))
		return read_launch(k, j, what, s, err);
	if (library_step_is(j))
		return read_library_step(k, j, what, s, err);
	if (!json_unpack((json_t *)j, "{s:{s:s, s:s, s:o !} !}", "copy", "from", &from, "to", &to,
		    "bytes", &bytes))
		s->kind = COPY;
	else if (!json_unpack((json_t *)j, "{s:{s:s, s:i, s:o !} !}", "fill", "buffer", &to, "byte",
			 &value, "bytes", &bytes))
		s->kind = FILL;
	else
		return wrong(k, what, "a step",
			"is no kernel, copy or fill, and none of Weir's operations", err);
	if (s->kind == FILL && (value < 0 || value > UINT8_MAX))
		return wrong(k, what, "byte", "is a number from 0 to 255", err);
	s->value = s->kind == FILL ? (unsigned char)value : 0;
	if (amount_read(bytes, &s->bytes))
		return wrong(k, what, "bytes", "is no amount", err);
	if (kernel_list_find(k, to, &s->to) || (from && kernel_list_find(k, from, &s->from)))
		return wrong(k, what, "a copy or fill", "names no buffer of this model", err);
	return 0;
}

/* A file of the version's folder. */
static int read_file(struct kernels *k, const char *name, struct buf *ret, struct error *err)
{
	const char *model = k->gpu.base.name;
	if (!*name || strchr(name, '/'))
		return error_set(err, -EINVAL,
			"model %s: '%s' is no name of a file in its version's folder", model, name);
	const int fd = openat(k->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "model %s: %s: %s", model, name, strerror(errno));
	const int e = engine_read(fd, name, ret, err);
	close(fd);
	return e;
}

static int fill_buffer(struct kernels *k, struct buffer *b, const char *file, struct error *err)
{
	struct gpu_model *m = &k->gpu;
	struct buf data = { 0 };
	const size_t bytes = amount(&b->bytes, 0);
	int e = gpu_space_alloc(&m->space, NULL, bytes, &b->at, err);
	if (e || !file)
		return e;
	e = read_file(k, file, &data, err);
	if (!e && data.n != bytes)
		e = error_set(err, -EINVAL, "model %s: %s has %zu bytes, and buffer %s takes %zu",
			m->base.name, file, data.n, b->name, bytes);
	e = e ? e : GPU_CALL(m->gpu, err, cuMemcpyHtoDAsync_v2, b->at, data.v, data.n, m->stream);
	e = e ? e : GPU_CALL(m->gpu, err, cuStreamSynchronize, m->stream);
	m->base.bytes += data.n;
	buf_free(&data);
	return e;
}

static int read_buffer(struct kernels *k, const json_t *j, const char *what, struct error *err)
{
	const char *name, *file = NULL;
	json_t *bytes;
	json_error_t why;
	unsigned place;
	struct amount size;
	if (json_unpack_ex((json_t *)j, &why, 0, "{s:s, s:o, s?s !}", "name", &name, "bytes",
		    &bytes, "file", &file))
		return wrong(k, what, "a buffer:", why.text, err);
	if (amount_read(bytes, &size) || (file && size.each))
		return wrong(k, what, name, "needs bytes, and with a file of a number alone", err);
	if (!kernel_list_find(k, name, &place))
		return wrong(k, what, name, "is there twice", err);
	struct buffer *b = array_push(&k->buffer);
	*b = (struct buffer){ xstrdup(name), size, 0 };
	return size.each ? 0 : fill_buffer(k, b, file, err);
}

static int read_each(struct kernels *k, const json_t *list, const char *what,
	int (*read)(struct kernels *, const json_t *, const char *, struct error *),
	struct error *err)
{
	if (list && !json_is_array(list))
		return wrong(k, what, "buffers and launches", "are lists", err);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const int e = read(k, json_array_get(list, i), what, err);
		if (e)
			return e;
	}
	return 0;
}

/* Rows may vary, and nothing else. */
static int check_specs(const struct kernels *k, const struct tensor_spec *spec, unsigned n,
	const char *what, struct error *err)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned d = 1; d < spec[i].shape.n; d++)
			if (spec[i].shape.dims[d] < 0)
				return wrong(k, what, spec[i].name,
					"varies in another dimension than the first, the rows",
					err);
	return 0;
}

/* Launches name tensors without saying whether they go in or out. */
static int check_names(const struct kernels *k, const char *what, struct error *err)
{
	const struct engine_model *m = &k->gpu.base;
	for (unsigned i = 0; i < m->ins + m->outs; i++) {
		const char *name = i < m->ins ? m->in[i].name : m->out[i - m->ins].name;
		unsigned first;
		if (!kernel_list_find(k, name, &first) && first != i)
			return wrong(k, what, name, "is there twice", err);
	}
	return 0;
}

static int read_model(struct kernels *k, const json_t *root, const char *path, struct error *err)
{
	const char *image = NULL;
	json_t *in, *out, *buffers = NULL, *launches;
	json_error_t why;
	struct engine_model *m = &k->gpu.base;
	struct buf code = { 0 };
	if (json_unpack_ex((json_t *)root, &why, 0, "{s?s, s:o, s:o, s?o, s:o !}", "image", &image,
		    "inputs", &in, "outputs", &out, "buffers", &buffers, "launches", &launches))
		return error_set(err, -EINVAL, "model %s: %s: %s", m->name, path, why.text);
	int e = engine_read_specs(m, in, out, err);
	e = e ? e : check_specs(k, m->in, m->ins, path, err);
	e = e ? e : check_specs(k, m->out, m->outs, path, err);
	e = e ? e : check_names(k, path, err);
	e = e || !image ? e : read_file(k, image, &code, err);
	if (!e && image) {
		buf_text(&code); /* PTX ends with a NUL */
		e = GPU_CALL(k->gpu.gpu, err, cuModuleLoadData, &k->module, code.v);
		e = e ? wrong(k, path, image, "is no image that this GPU can run", err) : 0;
	}
	buf_free(&code);
	e = e ? e : read_each(k, buffers, path, read_buffer, err);
	return e ? e : read_each(k, launches, path, read_step, err);
}

/* This engine's members of a plan. */
struct own {
	uint64_t *buffer;        /* those whose size rows change */
	struct weir_plan **plan; /* of each step; NULL where it needs none */
};

static uint64_t address(
	const struct kernels *k, const struct gpu_plan *p, unsigned place, uint64_t *ret_bytes)
{
	const struct engine_model *m = &k->gpu.base;
	if (place < m->ins + m->outs) {
		const struct gpu_tensor *t =
			place < m->ins ? &p->in[place] : &p->out[place - m->ins];
		*ret_bytes = t->bytes;
		return t->at;
	}
	const struct buffer *b = &k->buffer.v[place - m->ins - m->outs];
	const struct own *own = p->own;
	*ret_bytes = amount(&b->bytes, p->rows);
	return b->at ? b->at : own->buffer[place - m->ins - m->outs];
}

static int check_copy(
	const struct kernels *k, const struct gpu_plan *p, const struct step *s, struct error *err)
{
	uint64_t have, other = UINT64_MAX;
	const uint64_t bytes = amount(&s->bytes, p->rows);
	address(k, p, s->to, &have);
	if (s->kind == COPY)
		address(k, p, s->from, &other);
	if (s->kind == LAUNCH || (bytes <= have && bytes <= other))
		return 0;
	return error_set(err, -EINVAL,
		"a copy or fill of %" PRIu64 " bytes is longer than its buffer", bytes);
}

/* The addresses of a step's tensors, and how much each holds. */
static void find_tensors(const struct kernels *k, const struct gpu_plan *p,
	const struct library_step *s, uint64_t *ret_at, uint64_t *ret_bytes)
{
	for (unsigned i = 0; i < LIBRARY_TENSORS; i++)
		if (s->place[i] != LIBRARY_NONE)
			ret_at[i] = address(k, p, s->place[i], &ret_bytes[i]);
}

static int plan_step(const struct kernels *k, const struct gpu_plan *p, const struct step *s,
	struct weir_plan **ret, struct error *err)
{
	uint64_t at[LIBRARY_TENSORS], bytes[LIBRARY_TENSORS];
	if (s->kind != LIBRARY)
		return check_copy(k, p, s, err);
	find_tensors(k, p, &s->library, at, bytes);
	return library_step_plan(&s->library, k->library, p->rows, bytes, ret, err);
}

static int plan(struct gpu_model *m, struct gpu_plan *p, struct error *err)
{
	struct kernels *k = kernels_of(m);
	struct own *own = p->own = xcalloc(1, sizeof *own);
	own->buffer = xcalloc(k->buffer.n + 1, sizeof *own->buffer);
	own->plan = xcalloc(k->step.n + 1, sizeof *own->plan);
	int e = gpu_plan_outputs(m, p, err);
	for (size_t i = 0; i < k->buffer.n && !e; i++)
		if (!k->buffer.v[i].at)
			e = gpu_space_alloc(&m->space, NULL, amount(&k->buffer.v[i].bytes, p->rows),
				&own->buffer[i], err);
	for (size_t i = 0; i < k->step.n && !e; i++)
		e = plan_step(k, p, &k->step.v[i], &own->plan[i], err);
	return e;
}

static void unplan(struct gpu_model *m, struct gpu_plan *p)
{
	struct kernels *k = kernels_of(m);
	struct own *own = p->own;
	if (!own)
		return;
	for (size_t i = 0; i < k->buffer.n; i++)
		if (own->buffer[i])
			gpu_space_free(&m->space, NULL, own->buffer[i],
				amount(&k->buffer.v[i].bytes, p->rows));
	for (size_t i = 0; i < k->step.n; i++)
		weir_plan_close(own->plan[i]);
	free_all(own->buffer, own->plan, own);
}

union word {
	uint64_t u64;
	uint32_t u32;
	float f32;
	double f64;
};

static int launch(
	struct kernels *k, const struct gpu_plan *p, const struct step *s, struct error *err)
{
	union word word[ARGUMENTS_MOST];
	void *at[ARGUMENTS_MOST];
	unsigned size[SIZES];
	uint64_t bytes;
	for (unsigned i = 0; i < s->arguments; i++) {
		const struct argument *a = &s->argument[i];
		const uint64_t value = amount(&a->value, p->rows);
		at[i] = &word[i];
		if (a->kind == ADDRESS)
			word[i].u64 = address(k, p, a->place, &bytes) + value;
		else if (a->kind == U32)
			word[i].u32 = (uint32_t)value;
		else if (a->kind == U64)
			word[i].u64 = value;
		else if (a->kind == F32)
			word[i].f32 = (float)a->real;
		else
			word[i].f64 = a->real;
	}
	for (unsigned i = 0; i < SIZES; i++)
		size[i] = (unsigned)amount(&s->size[i], p->rows);
	return GPU_CALL(k->gpu.gpu, err, cuLaunchKernel, s->function, size[0], size[1], size[2],
		size[BLOCK], size[BLOCK + 1], size[BLOCK + 2], size[SHARED], k->gpu.stream, at,
		NULL);
}

static int run_library(struct kernels *k, const struct gpu_plan *p, size_t i, struct error *err)
{
	const struct library_step *s = &k->step.v[i].library;
	const struct own *own = p->own;
	uint64_t at[LIBRARY_TENSORS], bytes[LIBRARY_TENSORS];
	find_tensors(k, p, s, at, bytes);
	return library_step_run(s, own->plan[i], at, k->gpu.stream, err);
}

static int enqueue(struct gpu_model *m, struct gpu_plan *p, struct error *err)
{
	struct kernels *k = kernels_of(m);
	int e = 0;
	for (size_t i = 0; i < k->step.n && !e; i++) {
		const struct step *s = &k->step.v[i];
		uint64_t have;
		const uint64_t bytes = amount(&s->bytes, p->rows);
		if (s->kind == LAUNCH)
			e = launch(k, p, s, err);
		else if (s->kind == LIBRARY)
			e = run_library(k, p, i, err);
		else if (s->kind == COPY && bytes)
			e = GPU_CALL(m->gpu, err, cuMemcpyDtoDAsync_v2, address(k, p, s->to, &have),
				address(k, p, s->from, &have), bytes, m->stream);
		else if (bytes)
			e = GPU_CALL(m->gpu, err, cuMemsetD8Async, address(k, p, s->to, &have),
				s->value, bytes, m->stream);
	}
	return e;
}

static const struct gpu_engine ops = { .plan = plan, .enqueue = enqueue, .unplan = unplan };

static void unload(struct engine_model *m)
{
	struct kernels *k = (struct kernels *)m;
	struct gpu *g = k->gpu.gpu;
	gpu_model_fini(&k->gpu);
	weir_kernels_close(k->library);
	if (k->module)
		g->cu.cuModuleUnload(k->module);
	for (size_t i = 0; i < k->buffer.n; i++)
		free(k->buffer.v[i].name);
	array_free(&k->buffer, &k->step);
	if (k->folder >= 0)
		close(k->folder);
	free(k);
}

/* If a step needs it. */
static int open_library(struct kernels *k, const char *driver, struct error *err)
{
	struct error why;
	int e = 0;
	for (size_t i = 0; i < k->step.n && !k->library && !e; i++)
		if (k->step.v[i].kind == LIBRARY)
			e = library_open(driver, &k->library, &why);
	return e ? error_set(err, e, "model %s: %s", k->gpu.base.name, why.text) : 0;
}

static int load(const struct engine_options *o, const struct engine_config *c, int fd,
	const char *path, struct engine_model **ret, struct error *err)
{
	json_t *root;
	int e = engine_read_json(fd, path, c->name, &root, err);
	if (e)
		return e;
	struct kernels *k = xcalloc(1, sizeof *k);
	const char *slash = strrchr(path, '/');
	char *folder = xstrndup(slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
	k->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	e = gpu_model_init(&k->gpu, &engine_kernels, &ops, o, c, err);
	if (!e && k->folder < 0)
		e = error_set(err, -errno, "model %s: %s: %s", c->name, path, strerror(errno));
	e = e ? e : read_model(k, root, path, err);
	e = e ? e : open_library(k, o->cuda, err);
	json_decref(root);
	return gpu_model_loaded(&k->gpu, e, ret);
}

static bool put_version(const struct engine_options *o, struct buf *b)
{
	struct gpu *g;
	int version = 0;
	const bool runs = !gpu_open(o->cuda, &g, NULL) && !g->cu.cuDriverGetVersion(&version);
	if (runs)
		buf_printf(
			b, "CUDA driver %d.%d on %s", version / 1000, version % 1000 / 10, g->name);
	else
		buf_put_text(b, "no CUDA driver");
	return runs;
}

const struct engine engine_kernels = {
	.name = "kernels",
	.platforms = " kernels ",
	.file = "kernels.json",
	.pads = true,
	.put_version = put_version,
	.load = load,
	GPU_MODEL_CALLS,
	.unload = unload,
};
