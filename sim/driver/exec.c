/*
 * Executable graphs: instantiation, launch, update.  In a launch every node starts when
 * the nodes before it are done, so branches run beside each other in time.
 */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BASE = 4096 };

/* The fences that one node waits for: those of its dependencies, or the launch's own. */
static struct fence *submit_node(struct node *n, struct fence *const *base, size_t base_count)
{
	struct fence **deps = calloc(n->dep_count + base_count + 1, sizeof *deps);
	const struct op nothing = { .kind = CU_GRAPH_NODE_TYPE_EMPTY };
	struct fence *fence;
	size_t count = 0;

	if (!deps)
		return NULL;
	for (size_t i = 0; i < n->dep_count; i++)
		deps[count++] = n->deps[i]->fence;
	for (size_t i = 0; i < base_count && !n->dep_count; i++)
		deps[count++] = base[i];
	if (n->op.kind == CU_GRAPH_NODE_TYPE_WAIT_EVENT && n->enabled && n->op.event->fence)
		deps[count++] = n->op.event->fence;
	if (n->op.kind == CU_GRAPH_NODE_TYPE_GRAPH)
		fence = graph_submit(n->op.child, deps, count);
	else
		fence = op_submit(n->enabled ? &n->op : &nothing, deps, count);
	if (fence && n->op.kind == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		event_set_fence(n->op.event, fence);
	free(deps);
	return fence;
}

/* One fence behind all nodes; drops theirs. */
static struct fence *join(
	struct node **order, size_t count, struct fence *const *base, size_t base_count)
{
	struct fence **all = calloc(count + base_count + 1, sizeof *all);
	struct work nothing = { 0 };
	struct fence *fence = NULL;
	size_t n = 0;

	for (size_t i = 0; all && i < count; i++)
		all[n++] = order[i]->fence;
	for (size_t i = 0; all && i < base_count && !count; i++)
		all[n++] = base[i];
	if (all)
		fence = timeline_submit(&nothing, all, n);
	for (size_t i = 0; i < count; i++) {
		fence_unref(order[i]->fence);
		order[i]->fence = NULL;
	}
	free(all);
	return fence;
}

static struct fence *submit_order(
	struct node **order, size_t count, struct fence *const *base, size_t base_count)
{
	for (size_t i = 0; i < count; i++)
		order[i]->fence = submit_node(order[i], base, base_count);
	return join(order, count, base, base_count);
}

struct fence *graph_submit(struct graph *graph, struct fence *const *deps, size_t dep_count)
{
	struct node **order = graph_order(graph);

	if (!order)
		return NULL;
	struct fence *fence = submit_order(order, graph->count, deps, dep_count);
	free(order);
	return fence;
}

static uint32_t exec_count;

static int instantiate(void **ret_exec, void *handle, uint64_t flags)
{
	struct graph *g = obj_find(handle, OBJ_GRAPH);
	struct context *ctx;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!g || !ret_exec || flags & ~(uint64_t)15)
		return CUDA_ERROR_INVALID_VALUE;
	struct node **order = graph_order(g);
	if (!order)
		return CUDA_ERROR_INVALID_VALUE; /* a circle */
	free(order);
	struct exec *e = obj_new(OBJ_EXEC, sizeof *e, NULL);
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = flags;
	e->id = ++exec_count;
	e->graph = graph_clone(g);
	if (e->graph)
		e->order = graph_order(e->graph);
	if (!e->order) {
		if (e->graph)
			graph_free(e->graph);
		obj_free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->graph->inner = true;
	*ret_exec = e;
	return CUDA_SUCCESS;
}

int sim_cuGraphInstantiateWithFlags(void **ret_exec, void *graph, unsigned long long flags)
{
	return instantiate(ret_exec, graph, flags);
}

int sim_cuGraphInstantiate_v2(
	void **ret_exec, void *graph, void **ret_error, char *log, size_t log_size)
{
	if (ret_error)
		*ret_error = NULL;
	if (log && log_size)
		*log = '\0';
	return instantiate(ret_exec, graph, 0);
}

int sim_cuGraphInstantiate(void **ret_exec, void *graph, void **ret_error, char *log, size_t size)
	SIM_ALIAS(sim_cuGraphInstantiate_v2);

int sim_cuGraphInstantiateWithParams(void **ret_exec, void *graph, void *params)
{
	struct cu_graph_instantiate_params *p = params;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	int r = instantiate(ret_exec, graph, p->flags);
	p->error_node = NULL;
	p->result = r ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return r;
}

static struct exec *exec_find(void *handle)
{
	return obj_find(handle, OBJ_EXEC);
}

int sim_cuGraphExecDestroy(void *handle)
{
	struct exec *e = exec_find(handle);

	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	fence_unref(e->last);
	free(e->order);
	graph_free(e->graph);
	obj_free(e);
	return CUDA_SUCCESS;
}

int sim_cuGraphExecGetFlags(void *handle, unsigned long long *ret_flags)
{
	struct exec *e = exec_find(handle);

	if (!e || !ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = e->flags;
	return CUDA_SUCCESS;
}

int sim_cuGraphUpload(void *handle, void *stream)
{
	struct stream *s;
	int r = stream_get(stream, &s);

	if (r)
		return r;
	return exec_find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuGraphLaunch(void *handle, void *stream)
{
	struct fence *base[MAX_BASE + 1];
	struct exec *e = exec_find(handle);
	struct stream *s;
	int r = stream_get(stream, &s);

	if (r)
		return r;
	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	r = capture_forbids_legacy(s);
	if (r)
		return r;
	if (s->capture) {
		struct op op = { .kind = CU_GRAPH_NODE_TYPE_GRAPH, .child = e->graph };
		return capture_add(s, &op);
	}
	r = graph_check(e->graph);
	if (r)
		return r;
	size_t count = stream_deps(s, base, MAX_BASE);
	if (e->last)
		base[count++] = e->last;
	observe_scope(s, e->id);
	struct fence *fence = submit_order(e->order, e->graph->count, base, count);
	observe_scope(NULL, 0);
	if (!fence)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fence_unref(e->last);
	e->last = fence_ref(fence);
	stream_set_last(s, fence);
	timeline_throttle();
	return CUDA_SUCCESS;
}

/* The node of an executable graph that was made from a node of the given kind. */
static int exec_node(void *exec, void *node, int kind, struct node **ret_node)
{
	struct exec *e = exec_find(exec);
	struct node *n = obj_find(node, OBJ_NODE);

	if (!e || !n || n->op.kind != kind)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_node = graph_copy_of(e->graph, n);
	return *ret_node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int set_kernel(void *exec, void *node, void *params, bool v2)
{
	struct node *n;
	struct op op;
	int r = exec_node(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, &n);

	if (!r)
		r = op_kernel(params, v2, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphExecKernelNodeSetParams(void *exec, void *node, void *params)
{
	return set_kernel(exec, node, params, false);
}

int sim_cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, void *params)
{
	return set_kernel(exec, node, params, true);
}

int sim_cuGraphExecMemcpyNodeSetParams(void *exec, void *node, void *params, void *ctx)
{
	struct node *n;
	struct op op;
	int r = exec_node(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, &n);

	if (!r)
		r = op_memcpy(params, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphExecMemsetNodeSetParams(void *exec, void *node, void *params, void *ctx)
{
	struct node *n;
	struct op op;
	int r = exec_node(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, &n);

	if (!r)
		r = op_memset(params, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphExecHostNodeSetParams(void *exec, void *node, void *params)
{
	struct node *n;
	struct op op;
	int r = exec_node(exec, node, CU_GRAPH_NODE_TYPE_HOST, &n);

	if (!r)
		r = op_host(params, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphExecChildGraphNodeSetParams(void *exec, void *node, void *child)
{
	struct node *n;
	struct op op;
	int r = exec_node(exec, node, CU_GRAPH_NODE_TYPE_GRAPH, &n);

	if (!r)
		r = op_child(child, &op);
	return r ? r : node_replace(n, &op, false);
}

static int set_event(void *exec, void *node, int kind, void *event)
{
	struct node *n;
	struct op op;
	int r = exec_node(exec, node, kind, &n);

	if (!r)
		r = op_event(kind, event, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphExecEventRecordNodeSetEvent(void *exec, void *node, void *event)
{
	return set_event(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

int sim_cuGraphExecEventWaitNodeSetEvent(void *exec, void *node, void *event)
{
	return set_event(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

int sim_cuGraphExecNodeSetParams(void *exec, void *node, void *params)
{
	struct cu_graph_node_params *p = params;
	struct node *n;
	struct op op;

	if (!p || p->type >= CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	int r = exec_node(exec, node, p->type, &n);
	if (!r)
		r = op_any(p, &op);
	return r ? r : node_replace(n, &op, op.kind != CU_GRAPH_NODE_TYPE_GRAPH);
}

static int switchable(void *exec, void *node, struct node **ret_node)
{
	struct node *n = obj_find(node, OBJ_NODE);

	if (!n || n->op.kind > CU_GRAPH_NODE_TYPE_MEMSET)
		return CUDA_ERROR_INVALID_VALUE;
	return exec_node(exec, node, n->op.kind, ret_node);
}

int sim_cuGraphNodeSetEnabled(void *exec, void *node, unsigned enabled)
{
	struct node *n;
	int r = switchable(exec, node, &n);

	if (!r)
		n->enabled = enabled != 0;
	return r;
}

int sim_cuGraphNodeGetEnabled(void *exec, void *node, unsigned *ret_enabled)
{
	struct node *n;
	int r = switchable(exec, node, &n);

	if (!r && !ret_enabled)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret_enabled = n->enabled;
	return r;
}

/* Updates: the same shape, node by node in the order of creation. */

static size_t index_of(const struct graph *g, const struct node *wanted)
{
	size_t i = 0;

	for (const struct node *n = g->first; n && n != wanted; n = n->next)
		i++;
	return i;
}

static bool same_deps(
	const struct graph *a, const struct node *x, const struct graph *b, const struct node *y)
{
	if (x->dep_count != y->dep_count)
		return false;
	for (size_t i = 0; i < x->dep_count; i++)
		if (index_of(a, x->deps[i]) != index_of(b, y->deps[i]))
			return false;
	return true;
}

static int compare(const struct graph *now, const struct graph *wanted, void **ret_node)
{
	const struct node *x = now->first, *y = wanted->first;

	*ret_node = NULL;
	for (; x && y; x = x->next, y = y->next) {
		*ret_node = (void *)y;
		if (x->op.kind != y->op.kind)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (!same_deps(now, x, wanted, y))
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	}
	*ret_node = (void *)y;
	return x || y ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static int update(void *exec, void *graph, int *ret_result, void **ret_node)
{
	struct exec *e = exec_find(exec);
	struct graph *g = obj_find(graph, OBJ_GRAPH);

	if (!e || !g)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_result = compare(e->graph, g, ret_node);
	if (*ret_result)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	struct node *n = e->graph->first;
	for (struct node *o = g->first; o; o = o->next, n = n->next)
		if (node_replace(n, &o->op, false))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

int sim_cuGraphExecUpdate_v2(void *exec, void *graph, void *info)
{
	struct cu_graph_update_info *p = info;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	p->error_node = NULL;
	p->error_from_node = NULL;
	p->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	return update(exec, graph, &p->result, &p->error_node);
}

int sim_cuGraphExecUpdate(void *exec, void *graph, void **ret_node, int *ret_result)
{
	void *node = NULL;
	int result = CU_GRAPH_EXEC_UPDATE_ERROR;
	int r = update(exec, graph, &result, &node);

	if (ret_node)
		*ret_node = node;
	if (ret_result)
		*ret_result = result;
	return r;
}

int sim_cuDeviceGraphMemTrim(int device)
{
	return device_exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

int sim_cuDeviceGetGraphMemAttribute(int device, int attribute, void *ret_value)
{
	if (!device_exists(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ret_value || attribute < 0 || attribute > 3)
		return CUDA_ERROR_INVALID_VALUE;
	*(uint64_t *)ret_value = ranges_of_graphs(device);
	return CUDA_SUCCESS;
}
