/* The list of engines, and what is checked before any of them runs. */
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "engine/model_base.h"

#include "gpu/cuda_device.h"

const struct engine *const engines[] = {
	&engine_onnx,
	&engine_torch,
#ifdef WEIR_JANSSON
	&engine_kernels,
	&engine_shared,
	&engine_synthetic,
#endif
	NULL,
};

const struct engine *engine_find(const char *platform, struct error *err)
{
	char word[80];
	snprintf(word, sizeof word, " %s ", platform);
	char have[200] = "";
	for (const struct engine *const *e = engines; *e; e++) {
		if (!strchr(platform, ' ') && strstr((*e)->platforms, word))
			return *e;
		const size_t n = strlen(have);
		snprintf(have + n, sizeof have - n, "%s", (*e)->platforms + (n > 0));
	}
	error_set(err, -EINVAL, "there is no engine for '%s', only for:%.*s", platform,
		(int)strlen(have) - 1, have);
	return NULL;
}

const char *engine_backend(const struct engine *e, char to[static ENGINE_BACKEND])
{
	const char *first = e->platforms + 1;
	snprintf(to, ENGINE_BACKEND, "%.*s", (int)strcspn(first, " "), first);
	return to;
}

bool engine_put_versions(const struct engine_options *o, struct buf *b)
{
	bool all = true;
	for (const struct engine *const *e = engines; *e; e++) {
		buf_put_text(b, e == engines ? "" : "; ");
		all &= (*e)->put_version(o, b);
	}
	return all;
}

int engine_read(int fd, const char *path, struct buf *ret, struct error *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "%s is not a file", path);
	struct buf b = { 0 };
	buf_more(&b, (size_t)st.st_size + 1);
	for (ssize_t n; (n = pread(fd, b.v + b.n, b.room - b.n, (off_t)b.n)) != 0;) {
		if (n < 0) {
			const int e = -errno;
			buf_free(&b);
			return error_set(err, e, "%s: %s", path, strerror(-e));
		}
		b.n += (size_t)n;
		buf_more(&b, 1);
	}
	*ret = b;
	return 0;
}

void engine_model_init(
	struct engine_model *m, const struct engine *e, const struct engine_config *c)
{
	m->engine = e;
	m->name = xstrdup(c->name);
	m->has_rows = c->max_batch_size > 0;
	m->in = xcalloc(2 * ENGINE_TENSORS, sizeof *m->in);
	m->out = m->in + ENGINE_TENSORS;
}

void engine_model_fini(struct engine_model *m)
{
	for (unsigned i = 0; i < 2 * ENGINE_TENSORS; i++)
		free(m->in[i].name);
	free_all(m->in, load_relaxed(&m->no_graphs), m->name);
}

uint32_t engine_rows(const struct engine_model *m, const struct engine_run *r)
{
	for (unsigned i = 0; m->has_rows && i < m->ins; i++)
		if (r->in[i].given && r->in[i].shape.n)
			return (uint32_t)r->in[i].shape.dims[0];
	return 1;
}

int engine_load(const struct engine *e, const struct engine_options *o,
	const struct engine_config *c, int fd, const char *path, struct engine_model **ret,
	struct error *err)
{
	return e->load(o, c, fd, path, ret, err);
}

static int wrong_shape(const struct engine_model *m, const struct tensor_spec *spec,
	const struct shape *given, struct error *err)
{
	struct buf b = { 0 };
	shape_put(&b, given);
	buf_put_text(&b, " and not ");
	shape_put(&b, &spec->shape);
	error_set(err, -EINVAL, "model %s: input %s has the shape %s", m->name, spec->name,
		buf_text(&b));
	buf_free(&b);
	return -EINVAL;
}

static int check_input(const struct engine_model *m, const struct tensor_spec *spec,
	const struct engine_input *in, struct error *err)
{
	if (!in->given)
		return spec->optional ? 0
				      : error_set(err, -EINVAL, "model %s: input %s is missing",
						m->name, spec->name);
	if (in->type != spec->type)
		return error_set(err, -EINVAL, "model %s: input %s has the type %s and not %s",
			m->name, spec->name, dtype_rows[in->type].name,
			dtype_rows[spec->type].name);
	uint64_t elements;
	if (!shape_fits(&in->shape, &spec->shape) || shape_elements(&in->shape, &elements))
		return wrong_shape(m, spec, &in->shape, err);
	uint64_t want = 0, bytes = 0;
	for (unsigned i = 0; i < in->pieces; i++)
		bytes += in->piece[i].bytes;
	if (in->type == DTYPE_BYTES) /* whoever reads the elements counts them */
		return 0;
	if (shape_bytes(&in->shape, in->type, &want) || want != bytes)
		return error_set(err, -EINVAL, "model %s: input %s has %llu bytes and not %llu",
			m->name, spec->name, (unsigned long long)bytes, (unsigned long long)want);
	return 0;
}

int engine_run(struct engine_model *m, struct engine_run *run, struct error *err)
{
	for (unsigned i = 0; i < m->ins; i++) {
		const int e = check_input(m, &m->in[i], &run->in[i], err);
		if (e)
			return e;
	}
	for (unsigned i = 0; i < m->outs; i++)
		run->out[i].data = NULL;
	run->replayed = false;
	run->returned_ns = 0;
	return m->engine->run(m, run, err);
}

int engine_settle(struct engine_model *m, struct error *err)
{
	return m->engine->settle ? m->engine->settle(m, err) : 0;
}

struct engine_memory engine_memory(const struct engine_model *m)
{
	struct engine_memory memory = { 0 };
	if (m->engine->memory)
		m->engine->memory(m, &memory);
	return memory;
}

bool engine_stage(struct engine_model *m, const void *data, size_t bytes, struct engine_staged *ret)
{
	return m->engine->stage && m->engine->stage(m, data, bytes, ret);
}

void engine_unstage(struct engine_model *m, struct engine_staged *s)
{
	if (s->data)
		m->engine->unstage(m, s);
	*s = (struct engine_staged){ 0 };
}

unsigned engine_memory_moves(void)
{
	return gpu_moves();
}

void engine_trim(void)
{
	struct gpu *g = gpu_opened();
	if (g)
		gpu_pinned_trim(g);
}

void engine_run_end(struct engine_model *m, struct engine_run *run)
{
	m->engine->end(m, run);
}

void engine_unload(struct engine_model *m)
{
	if (m)
		m->engine->unload(m);
}
