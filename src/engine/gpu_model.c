/* How each engine on a GPU runs a batch: bytes to pinned memory, to the device, the work or its
 * graph, and back.  One stream orders all of it. */
#include "engine/gpu_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

#define NON_BLOCKING    1 /* a stream that does not wait for the default one */
#define NO_TIMING_SLEEP 3 /* an event without a date, and whose waiters sleep */
#define PIN_ALIGN       ((size_t)64)
#define PINNED_MOST     ((size_t)256 << 20) /* of one kind of block */
#define STAGED_BATCHES  2
#define OWN_BATCHES     3 /* one that runs, and two whose answers are on their way */
#define STAGE_LEAST     ((size_t)32 << 10) /* a copy of its own costs the host as much */

/* The places of one run's bytes on the host. where its bytes are on the host. */
struct gpu_run {
	struct gpu_pinned *in, *out;
	void *packed[ENGINE_TENSORS]; /* outputs that were strided */
};

/* The model's name before what happened. */
static int of_model(const struct gpu_model *m, int e, struct error *err)
{
	if (!e || !err)
		return e;
	struct error why = *err;
	return error_set(err, e, "model %s: %s", m->base.name, why.text);
}

int gpu_model_init(struct gpu_model *m, const struct engine *e, const struct gpu_engine *ops,
	const struct engine_options *o, const struct engine_config *c, struct error *err)
{
	engine_model_init(&m->base, e, c);
	m->ops = ops;
	const char *graphs = parameter_find(c->parameter, c->parameters, "graphs");
	m->graphs = !graphs || strcmp(graphs, "0") != 0;
	m->max_rows = c->max_batch_size;
	m->buckets = c->buckets;
	if (c->buckets)
		memcpy(m->bucket, c->bucket, c->buckets * sizeof *m->bucket);
	int code = gpu_open(o->cuda, &m->gpu, err);
	code = code ? code
		    : GPU_CALL(m->gpu, err, cuStreamCreateWithPriority, &m->stream, NON_BLOCKING,
			      m->gpu->greatest_priority);
	code = code ? code : GPU_CALL(m->gpu, err, cuEventCreate, &m->done, NO_TIMING_SLEEP);
	code = code ? code : gpu_space_init(&m->space, m->gpu, m->stream, o->memory, err);
	return of_model(m, code, err);
}

int gpu_model_loaded(struct gpu_model *m, int e, struct engine_model **ret)
{
	if (!e && m->gpu)
		gpu_space_release(&m->space);
	if (e)
		m->base.engine->unload(&m->base);
	else
		*ret = &m->base;
	return e;
}

static void free_plan(struct gpu_model *m, struct gpu_plan *p)
{
	if (p->graph)
		m->gpu->cu.cuGraphExecDestroy(p->graph);
	if (m->ops->unplan)
		m->ops->unplan(m, p);
	for (unsigned i = 0; i < ENGINE_TENSORS; i++) {
		if (p->in[i].at)
			gpu_space_free(&m->space, NULL, p->in[i].at, p->in[i].bytes);
		if (p->out[i].at)
			gpu_space_free(&m->space, NULL, p->out[i].at, p->out[i].bytes);
	}
	free(p);
}

void gpu_model_fini(struct gpu_model *m)
{
	if (m->gpu) {
		/* Without the device nothing of this works, and all is forgotten with it. */
		(void)gpu_enter(m->gpu, NULL);
		if (m->stream)
			m->gpu->cu.cuStreamSynchronize(m->stream);
		gpu_space_own(&m->space);
		for (struct gpu_plan *p = m->plan, *next; p; p = next) {
			next = p->next;
			free_plan(m, p);
		}
		if (m->ops->close)
			m->ops->close(m);
		gpu_space_fini(&m->space);
		if (m->done)
			m->gpu->cu.cuEventDestroy_v2(m->done);
		if (m->stream)
			m->gpu->cu.cuStreamDestroy_v2(m->stream);
	}
	engine_model_fini(&m->base);
}

static uint32_t padded(const struct gpu_model *m, uint32_t rows)
{
	if (!m->base.has_rows)
		return rows;
	for (uint32_t i = 0; i < m->buckets; i++)
		if (m->bucket[i] >= rows)
			return m->bucket[i];
	uint32_t size = 1;
	while (size < rows && size <= UINT32_MAX / 2)
		size *= 2;
	if (size < rows)
		return rows;
	return m->max_rows && size > m->max_rows && rows <= m->max_rows ? m->max_rows : size;
}

static struct shape padded_shape(
	const struct gpu_model *m, const struct engine_input *in, uint32_t rows)
{
	struct shape s = in->shape;
	if (m->base.has_rows && s.n)
		s.dims[0] = rows;
	return s;
}

static bool fits(const struct gpu_model *m, const struct gpu_plan *p, const struct engine_run *r,
	uint32_t rows)
{
	for (unsigned i = 0; i < m->base.ins; i++) {
		const struct shape s = padded_shape(m, &r->in[i], rows);
		if (!shape_equal(&s, &p->in[i].shape))
			return false;
	}
	return true;
}

static int make_plan(struct gpu_model *m, const struct engine_run *r, uint32_t rows,
	struct gpu_plan **ret, struct error *err)
{
	struct gpu_plan *p = xcalloc(1, sizeof *p);
	int e = 0;
	p->rows = rows;
	for (unsigned i = 0; i < m->base.ins && !e; i++) {
		struct gpu_tensor *t = &p->in[i];
		uint64_t bytes = 0;
		t->type = m->base.in[i].type;
		t->shape = padded_shape(m, &r->in[i], rows);
		if (t->type == DTYPE_BYTES || shape_bytes(&t->shape, t->type, &bytes))
			e = error_set(err, -EINVAL, "input %s has no form that a GPU takes",
				m->base.in[i].name);
		t->bytes = bytes;
		e = e ? e : gpu_space_alloc(&m->space, NULL, t->bytes, &t->at, err);
		/* Rows that no request fills are run too. */
		if (!e && t->bytes)
			e = GPU_CALL(m->gpu, err, cuMemsetD8Async, t->at, 0, t->bytes, m->stream);
	}
	e = e ? e : m->ops->plan(m, p, err);
	if (e)
		free_plan(m, p);
	else
		*ret = p;
	return e;
}

int gpu_plan_outputs(struct gpu_model *m, struct gpu_plan *p, struct error *err)
{
	int e = 0;
	for (unsigned i = 0; i < m->base.ins && !m->base.has_rows; i++)
		if (m->base.in[i].shape.n && m->base.in[i].shape.dims[0] < 0)
			return error_set(err, -EINVAL,
				"input %s has rows, and max_batch_size is 0: say 1 or more",
				m->base.in[i].name);
	for (unsigned i = 0; i < m->base.outs && !e; i++) {
		struct gpu_tensor *t = &p->out[i];
		uint64_t bytes = 0;
		t->type = m->base.out[i].type;
		t->shape = m->base.out[i].shape;
		if (t->shape.n && t->shape.dims[0] < 0)
			t->shape.dims[0] = p->rows;
		if (t->type == DTYPE_BYTES || shape_bytes(&t->shape, t->type, &bytes))
			return error_set(err, -EINVAL, "output %s has no form that a GPU gives",
				m->base.out[i].name);
		t->bytes = bytes;
		e = gpu_space_alloc(&m->space, NULL, t->bytes, &t->at, err);
	}
	return e;
}

/* Drops the plan that ran longest ago. */
static bool drop_last_plan(struct gpu_model *m)
{
	struct gpu_plan **at = &m->plan;
	if (!*at)
		return false;
	while ((*at)->next)
		at = &(*at)->next;
	free_plan(m, *at);
	*at = NULL;
	return true;
}

/* The one for these shapes, as the first of the list. */
static int find_plan(
	struct gpu_model *m, const struct engine_run *r, struct gpu_plan **ret, struct error *err)
{
	const uint32_t rows = padded(m, engine_rows(&m->base, r));
	struct gpu_plan **at = &m->plan, *p;
	unsigned n = 1;
	while (*at && !fits(m, *at, r, rows) && n++ < GPU_PLANS)
		at = &(*at)->next;
	p = *at;
	if (p)
		*at = p->next;
	if (p && !fits(m, p, r, rows)) {
		free_plan(m, p);
		p = NULL;
	}
	int e = p ? 0 : make_plan(m, r, rows, &p, err);
	while (e == -ENOMEM && drop_last_plan(m))
		e = make_plan(m, r, rows, &p, err);
	if (e)
		return e;
	p->next = m->plan;
	*ret = m->plan = p;
	return 0;
}

static int launch(struct gpu_model *m, struct gpu_plan *p, bool *ret_replayed, struct error *err)
{
	*ret_replayed = p->graph;
	return *ret_replayed ? GPU_CALL(m->gpu, err, cuGraphLaunch, p->graph, m->stream)
			     : m->ops->enqueue(m, p, err);
}

static size_t aligned(size_t bytes)
{
	return (bytes + PIN_ALIGN - 1) & -PIN_ALIGN;
}

/* The device reads staged pieces where they are, and others, as many as follow each other, from a
 * copy. */
static int copy_in(struct gpu_model *m, struct gpu_plan *p, const struct engine_run *r,
	struct gpu_run *own, struct error *err)
{
	size_t all = 0;
	for (unsigned i = 0; i < m->base.ins; i++)
		for (unsigned k = 0; k < r->in[i].pieces; k++)
			all += r->in[i].piece[k].staged ? 0 : aligned(r->in[i].piece[k].bytes);
	int e = gpu_pinned_take(m->gpu, all, &own->in, err);
	char *to = e ? NULL : own->in->data;
	for (unsigned i = 0; i < m->base.ins && !e; i++) {
		const struct engine_input *in = &r->in[i];
		uint64_t at = p->in[i].at;
		for (unsigned k = 0; k < in->pieces && !e;) {
			const void *from = in->piece[k].staged ? in->piece[k].data : to;
			size_t bytes = 0;
			if (in->piece[k].staged)
				bytes = in->piece[k++].bytes;
			else
				while (k < in->pieces && !in->piece[k].staged) {
					to = mempcpy(to, in->piece[k].data, in->piece[k].bytes);
					bytes += in->piece[k++].bytes;
				}
			if (bytes)
				e = GPU_CALL(m->gpu, err, cuMemcpyHtoDAsync_v2, at, from, bytes,
					m->stream);
			at += bytes;
		}
		if (to)
			to = own->in->data + aligned((size_t)(to - (char *)own->in->data));
	}
	return e;
}

static int copy_out(struct gpu_model *m, const struct gpu_plan *p, struct engine_run *r,
	uint32_t rows, struct gpu_run *own, struct error *err)
{
	size_t all = 0;
	for (unsigned i = 0; i < m->base.outs; i++)
		all += r->out[i].wanted ? aligned(p->out[i].bytes) : 0;
	int e = gpu_pinned_take(m->gpu, all, &own->out, err);
	char *to = e ? NULL : own->out->data;
	for (unsigned i = 0; i < m->base.outs && !e; i++) {
		struct engine_output *out = &r->out[i];
		const struct gpu_tensor *t = &p->out[i];
		if (!out->wanted)
			continue;
		out->type = t->type;
		out->shape = t->shape;
		out->bytes = t->bytes;
		out->data = to;
		if (m->base.has_rows && t->shape.n && t->shape.dims[0] == p->rows) {
			out->shape.dims[0] = rows;
			if (!t->strided)
				out->bytes = t->bytes / p->rows * rows;
		}
		if (out->bytes)
			e = GPU_CALL(m->gpu, err, cuMemcpyDtoHAsync_v2, to, t->at, out->bytes,
				m->stream);
		to += aligned(t->bytes);
	}
	return e;
}

/* The elements of dimension d and behind, without gaps.  Returns behind the last one. */
static char *pack(
	const struct gpu_tensor *t, const struct shape *s, unsigned d, const char *from, char *to)
{
	const size_t each = dtype_rows[t->type].bytes;
	if (d == s->n)
		return mempcpy(to, from, each);
	for (int64_t i = 0; i < s->dims[d]; i++)
		to = pack(t, s, d + 1, from + (size_t)(i * t->stride[d]) * each, to);
	return to;
}

static void pack_strided(
	struct gpu_model *m, const struct gpu_plan *p, struct engine_run *r, struct gpu_run *own)
{
	for (unsigned i = 0; i < m->base.outs; i++) {
		struct engine_output *out = &r->out[i];
		uint64_t bytes;
		if (!out->wanted || !p->out[i].strided ||
			shape_bytes(&out->shape, out->type, &bytes))
			continue;
		own->packed[i] = xmalloc(bytes + 1);
		pack(&p->out[i], &out->shape, 0, out->data, own->packed[i]);
		out->data = own->packed[i];
		out->bytes = bytes;
	}
}

/* While the space is held. */
static int run_held(
	struct gpu_model *m, struct engine_run *r, struct gpu_run *own, struct error *err)
{
	struct gpu_plan *p;
	int e = find_plan(m, r, &p, err);
	e = e ? e : copy_in(m, p, r, own, err);
	e = e ? e : launch(m, p, &r->replayed, err);
	e = e ? e : copy_out(m, p, r, engine_rows(&m->base, r), own, err);
	e = e ? e : GPU_CALL(m->gpu, err, cuEventRecord, m->done, m->stream);
	e = e ? e : GPU_CALL(m->gpu, err, cuEventSynchronize, m->done);
	if (!e && ++p->runs == 2 && m->graphs)
		gpu_graph_make(m, p);
	if (e) /* copies may be under way */
		m->gpu->cu.cuStreamSynchronize(m->stream);
	else
		pack_strided(m, p, r, own);
	return e;
}

static int run(struct gpu_model *m, struct engine_run *r, struct gpu_run *own, struct error *err)
{
	for (unsigned i = 0; i < m->base.ins; i++)
		if (!r->in[i].given)
			return error_set(err, -EINVAL, "input %s is missing", m->base.in[i].name);
	const int lost = load_relaxed(&m->gpu->lost);
	if (lost)
		return error_set(
			err, -EIO, "the GPU is lost since an error (%d) of an earlier run", lost);
	int e = gpu_enter(m->gpu, err);
	e = e ? e : gpu_space_hold(&m->space, &r->returned_ns, err);
	if (e)
		return e;
	e = run_held(m, r, own, err);
	gpu_space_release(&m->space);
	return e;
}

void gpu_model_end(struct engine_model *base, struct engine_run *r)
{
	struct gpu_model *m = (struct gpu_model *)base;
	struct gpu_run *own = r->own;
	gpu_pinned_give(m->gpu, own->in);
	gpu_pinned_give(m->gpu, own->out);
	for (unsigned i = 0; i < m->base.outs; i++)
		free(own->packed[i]);
	free(own);
	r->own = NULL;
}

int gpu_model_run(struct engine_model *base, struct engine_run *r, struct error *err)
{
	struct gpu_model *m = (struct gpu_model *)base;
	r->own = xcalloc(1, sizeof(struct gpu_run));
	const int e = run(m, r, r->own, err);
	if (e)
		gpu_model_end(base, r);
	return of_model(m, e, err);
}

/* What can't be pinned now is taken, or refused, when a client needs it. */
static void fill(struct gpu *g, size_t bytes, unsigned n)
{
	if (bytes && bytes <= PINNED_MOST / n)
		gpu_pinned_fill(g, bytes, n, NULL);
}

void gpu_model_pin(struct gpu_model *m)
{
	const struct gpu_plan *most = m->plan;
	size_t in = 0, out = 0;
	for (const struct gpu_plan *p = m->plan; p; p = p->next)
		most = p->rows > most->rows ? p : most;
	for (unsigned i = 0; most && i < m->base.ins; i++) {
		const size_t row = most->in[i].bytes / most->rows;
		in += aligned(most->in[i].bytes);
		if (row >= STAGE_LEAST)
			fill(m->gpu, row, STAGED_BATCHES * most->rows);
	}
	for (unsigned i = 0; most && i < m->base.outs; i++)
		out += aligned(most->out[i].bytes);
	fill(m->gpu, in, OWN_BATCHES);
	fill(m->gpu, out, OWN_BATCHES);
}

bool gpu_model_stage(
	struct engine_model *base, const void *data, size_t bytes, struct engine_staged *ret)
{
	struct gpu_model *m = (struct gpu_model *)base;
	struct gpu_pinned *p = bytes < STAGE_LEAST ? NULL : gpu_pinned_spare(m->gpu, bytes);
	if (!p)
		return false;
	memcpy(p->data, data, bytes);
	*ret = (struct engine_staged){ p->data, p };
	return true;
}

void gpu_model_unstage(struct engine_model *base, struct engine_staged *s)
{
	gpu_pinned_give(((struct gpu_model *)base)->gpu, s->own);
}

void gpu_model_memory(const struct engine_model *base, struct engine_memory *ret)
{
	const struct gpu_model *m = (const struct gpu_model *)base;
	ret->away_ns = load_relaxed(&m->space.away_ns);
	ret->there = load_relaxed(&m->space.there);
}
