/*
 * Graphs of plans.  A graph is kept while its replay gives what the same work gives when it is
 * handed to the stream: after it is captured, and again when all plans of the warm-up have run.
 * A library's memory between runs may have changed by then.  Clients' inputs are not
 * launched again to compare: a library may take half a second for that when the shapes change.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "engine/gpu_model.h"

#define RELAXED 2 /* a capture during which the thread may call anything */

enum { HOST = 1, UNIFIED = 4 }; /* types of memory */
enum { NODE_COPY = 1, NODE_HOST = 3, NODE_GRAPH = 4, NODE_CONDITIONAL = 13 };
#define MEMORY_TYPE 2 /* attribute of an address */

/* Shares of the largest number of an output.  Kernels that add in any order differ by less. */
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
	/* After a failure too: the caller gives the memory back. */
	const int ended = GPU_CALL(m->gpu, e ? NULL : err, cuStreamSynchronize, m->stream);
	return e ? e : ended;
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

/* A later request for a graph says why there is none. */
static void drop(struct gpu_model *m, struct gpu_plan *p, const char *why)
{
	if (p->graph)
		m->gpu->cu.cuGraphExecDestroy(p->graph);
	p->graph = NULL;
	m->graphs = false;
	char *none = NULL, *text = xstrdup(why);
	if (!replace_if(&m->base.no_graphs, &none, text, release, relaxed))
		free(text);
}

static void drop_all(struct gpu_model *m, const char *why)
{
	for (struct gpu_plan *p = m->plan; p; p = p->next)
		drop(m, p, why);
}

/* Memory on the device stays. */
static bool stays(struct gpu_model *m, const struct gpu_plan *p, int type, const void *at,
	uint64_t address, size_t bytes)
{
	int kind;
	if (type == UNIFIED &&
		(m->gpu->cu.cuPointerGetAttribute(&kind, MEMORY_TYPE, address) || kind == HOST)) {
		type = HOST;
		at = (const void *)(uintptr_t)address;
	}
	return type != HOST || m->ops->keeps(p, at, bytes);
}

static int check_node(struct gpu_model *m, const struct gpu_plan *p, void *node, struct error *err)
{
	struct cu_memcpy3d c;
	int type;
	int e = GPU_CALL(m->gpu, err, cuGraphNodeGetType, node, &type);
	if (!e && (type == NODE_HOST || type == NODE_GRAPH || type == NODE_CONDITIONAL))
		return error_set(err, -ENOTSUP,
			"its work calls a function of the host, or is several graphs");
	if (e || type != NODE_COPY)
		return e;
	e = GPU_CALL(m->gpu, err, cuGraphMemcpyNodeGetParams, node, &c);
	if (e || (stays(m, p, c.src_type, c.src_host, c.src_device, c.width_bytes) &&
			 stays(m, p, c.dst_type, c.dst_host, c.dst_device, c.width_bytes)))
		return e;
	return error_set(err, -ENOTSUP,
		"its work copies to or from memory of the host that may be gone at the next run");
}

/* A replay reads from the host what the captured run left there. */
static int check_nodes(
	struct gpu_model *m, const struct gpu_plan *p, void *graph, struct error *err)
{
	size_t n = 0;
	if (!m->ops->keeps)
		return 0;
	int e = GPU_CALL(m->gpu, err, cuGraphGetNodes, graph, NULL, &n);
	if (e)
		return e;
	void **node = xcalloc(n + 1, sizeof *node);
	e = GPU_CALL(m->gpu, err, cuGraphGetNodes, graph, node, &n);
	for (size_t i = 0; i < n && !e; i++)
		e = check_node(m, p, node[i], err);
	free(node);
	return e;
}

static int capture(struct gpu_model *m, struct gpu_plan *p, struct error *err)
{
	struct gpu *g = m->gpu;
	void *graph = NULL;
	int e = GPU_CALL(g, err, cuStreamBeginCapture_v2, m->stream, RELAXED);
	if (e)
		return e;
	p->captures = true;
	e = m->ops->enqueue(m, p, err);
	p->captures = false;
	const int ended = g->cu.cuStreamEndCapture(m->stream, &graph);
	e = e ? e : gpu_check(g, ended, "cuStreamEndCapture", err);
	e = e ? e : check_nodes(m, p, graph, err);
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
		drop_all(m, why.text);
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
	gpu_model_pin(m);
	e = gpu_space_settle(&m->space, err);
	gpu_space_release(&m->space);
	return e;
}
