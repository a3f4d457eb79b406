/*
 * Graphs of plans.  A graph is kept while its replay gives what the same work gives when it is
 * handed to the stream: after it is captured, and again when all plans of the warm-up have run.
 * What a library keeps from one run to the next may have changed by then.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "engine/gpu_model.h"

#include "base/banned.h"

#define RELAXED 2 /* a capture during which the thread may call anything */

/* Of the largest number of an output.  Kernels that add in any order differ by less. */
#define SMALL_DIFFERENCE 1e-3
#define HALF_DIFFERENCE  2e-2

/* All outputs of the plan, behind each other. */
static int read_outputs(
	struct gpu_model *m, const struct gpu_plan *p, struct gpu_pinned **ret, struct error *err)
{
	size_t all = 0;
	for (unsigned i = 0; i < m->base.outs; i++)
		all += p->out[i].bytes;
	int e = gpu_pinned_take(m->gpu, all, ret, err);
	char *to = e ? NULL : (*ret)->data;
	for (unsigned i = 0; i < m->base.outs && !e; i++) {
		if (p->out[i].bytes)
			e = GPU_CALL(m->gpu, err, cuMemcpyDtoHAsync_v2, to, p->out[i].at,
				p->out[i].bytes, m->stream);
		to += p->out[i].bytes;
	}
	return e ? e : GPU_CALL(m->gpu, err, cuStreamSynchronize, m->stream);
}

static bool close_enough(enum dtype type, const char *a, const char *b, size_t bytes)
{
	double largest = 0, difference = 0;
	if (memcmp(a, b, bytes) == 0)
		return true;
	for (size_t i = 0, each = dtype_rows[type].bytes; i + each <= bytes; i += each) {
		const double x = dtype_float(type, a + i), y = dtype_float(type, b + i);
		if (memcmp(a + i, b + i, each) && !isfinite(x - y))
			return false; /* other numbers than floats too */
		largest = fmax(largest, isfinite(x) ? fabs(x) : 0);
		difference = fmax(difference, isfinite(x - y) ? fabs(x - y) : 0);
	}
	return difference <= largest * (type == DTYPE_FP16 || type == DTYPE_BF16
						       ? HALF_DIFFERENCE
						       : SMALL_DIFFERENCE);
}

static bool same_outputs(
	const struct gpu_model *m, const struct gpu_plan *p, const char *a, const char *b)
{
	for (unsigned i = 0; i < m->base.outs; i++) {
		const size_t bytes = p->out[i].bytes;
		if (!close_enough(p->out[i].type, a, b, bytes))
			return false;
		a += bytes;
		b += bytes;
	}
	return true;
}

/* What is asked for later says why there is none. */
static void drop(struct gpu_model *m, struct gpu_plan *p, const char *why)
{
	if (p->graph)
		m->gpu->cu.cuGraphExecDestroy(p->graph);
	p->graph = NULL;
	m->graphs = false;
	char *none = NULL, *text = xstrdup(why);
	if (!atomic_compare_exchange_strong_explicit(
		    &m->base.no_graphs, &none, text, memory_order_release, memory_order_relaxed))
		free(text);
}

static int capture(struct gpu_model *m, struct gpu_plan *p, struct error *err)
{
	struct gpu *g = m->gpu;
	void *graph = NULL;
	int e = GPU_CALL(g, err, cuStreamBeginCapture_v2, m->stream, RELAXED);
	if (e)
		return e;
	e = m->ops->enqueue(m, p, err);
	const int ended = g->cu.cuStreamEndCapture(m->stream, &graph);
	e = e ? e : gpu_check(g, ended, "cuStreamEndCapture", err);
	e = e ? e : GPU_CALL(g, err, cuGraphInstantiateWithFlags, &p->graph, graph, 0);
	if (graph)
		g->cu.cuGraphDestroy(graph);
	return e;
}

/* Replays the graph on the inputs that gave `launched`. */
static int check(struct gpu_model *m, struct gpu_plan *p, const struct gpu_pinned *launched,
	struct error *err)
{
	struct gpu_pinned *replayed = NULL;
	int e = GPU_CALL(m->gpu, err, cuGraphLaunch, p->graph, m->stream);
	e = e ? e : read_outputs(m, p, &replayed, err);
	if (!e && !same_outputs(m, p, launched->data, replayed->data))
		e = error_set(err, -EIO,
			"the graph of %u rows gave other answers than the launches that it holds",
			p->rows);
	gpu_pinned_give(m->gpu, replayed);
	return e;
}

void gpu_graph_make(struct gpu_model *m, struct gpu_plan *p)
{
	struct gpu_pinned *launched = NULL;
	struct error why;
	int e = read_outputs(m, p, &launched, &why);
	e = e ? e : capture(m, p, &why);
	e = e ? e : check(m, p, launched, &why);
	gpu_pinned_give(m->gpu, launched);
	if (e)
		drop(m, p, why.text);
}

/* All work is launched before the first graph is replayed: each has the most to fear then. */
static int check_all(struct gpu_model *m, struct gpu_pinned **launched, struct error *err)
{
	struct gpu_plan *p;
	unsigned n = 0;
	int e = 0;
	for (p = m->plan; p && !e; p = p->next, n++) {
		e = m->ops->enqueue(m, p, err);
		e = e ? e : read_outputs(m, p, &launched[n], err);
	}
	n = 0;
	for (p = m->plan; p && !e; p = p->next, n++)
		e = p->graph ? check(m, p, launched[n], err) : 0;
	return e;
}

static void settle_graphs(struct gpu_model *m)
{
	struct gpu_pinned *launched[GPU_PLANS] = { NULL };
	struct error why;
	if (check_all(m, launched, &why))
		for (struct gpu_plan *p = m->plan; p; p = p->next)
			drop(m, p, why.text);
	for (unsigned i = 0; i < GPU_PLANS; i++)
		gpu_pinned_give(m->gpu, launched[i]);
}

int gpu_model_settle(struct engine_model *base, struct error *err)
{
	struct gpu_model *m = (struct gpu_model *)base;
	uint64_t ns;
	int e = gpu_enter(m->gpu, err);
	e = e ? e : gpu_space_hold(&m->space, &ns, err);
	if (e)
		return e;
	if (m->graphs)
		settle_graphs(m);
	e = gpu_space_settle(&m->space, err);
	gpu_space_release(&m->space);
	return e;
}
