/*
 * Nodes of the graph API: from parameters to operations, and back.
 */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

#define NODE(kind) CU_GRAPH_NODE_TYPE_##kind

/* Adds a node after checking graph and dependencies. */
static int add(void **ret_node, void *graph_handle, void **deps, size_t count, const struct op *op)
{
	struct graph *g = obj_find(graph_handle, OBJ_GRAPH);

	if (!ret_node || !g || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct node *n = obj_find(deps[i], OBJ_NODE);

		if (!n || n->graph != g)
			return CUDA_ERROR_INVALID_VALUE;
	}
	struct node *n = graph_add(g, op, (struct node *const *)deps, count);
	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_node = n;
	return CUDA_SUCCESS;
}

/* The operations that parameters mean.  The parameters that op_kernel() keeps are the caller's to
 * free. */

int op_kernel(const struct cu_kernel_node_params *p, bool v2, struct op *ret_op)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	void *handle = p->func ? p->func : v2 ? p->kern : NULL;
	*ret_op = (struct op){
		.kind = NODE(KERNEL),
		.launch = { .grid = { p->grid_x, p->grid_y, p->grid_z },
			.block = { p->block_x, p->block_y, p->block_z },
			.shared = p->shared_bytes },
		.kernel_handle = (uint64_t)handle,
	};
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	int r = function_get(handle, &ret_op->launch.function);
	if (!r)
		r = launch_check(&ret_op->launch);
	if (!r)
		r = launch_params_check(ret_op->launch.function, p->params, p->extra);
	return r ? r : op_keep_params(ret_op, p->params, p->extra);
}

int op_memcpy(const struct cu_memcpy3d *p, struct op *ret_op)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_op = (struct op){ .kind = NODE(MEMCPY), .copy = *p };
	return region_from_copy3d(p, &ret_op->region);
}

int op_memset(const struct cu_memset_node_params *p, struct op *ret_op)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_op = (struct op){
		.kind = NODE(MEMSET),
		.fill = { p->dst, p->pitch, p->width, p->height, p->value, p->element_bytes },
	};
	return fill_check(&ret_op->fill);
}

int op_host(const struct cu_host_node_params *p, struct op *ret_op)
{
	if (!p || !p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_op = (struct op){
		.kind = NODE(HOST),
		.host = (void (*)(void *))p->fn,
		.user = p->user_data,
	};
	return CUDA_SUCCESS;
}

int op_event(int kind, void *handle, struct op *ret_op)
{
	struct event *e = obj_find(handle, OBJ_EVENT);

	*ret_op = (struct op){ .kind = kind, .event = e };
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* op->child is only borrowed: adding the node clones it. */
int op_child(void *handle, struct op *ret_op)
{
	struct graph *child = obj_find(handle, OBJ_GRAPH);

	*ret_op = (struct op){ .kind = NODE(GRAPH), .child = child };
	return child ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Memory of an allocation node exists from here on, at an address that never changes. */
static int op_alloc(struct cu_mem_alloc_node_params *p, struct op *ret_op)
{
	struct context *ctx;
	struct range *range;
	int r = context_get(&ctx);

	if (r)
		return r;
	if (!p || !p->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	r = range_alloc(ctx, p->bytes, RANGE_ASYNC, NULL, &range);
	if (r)
		return r;
	range->of_graph = true;
	p->address = range->base;
	*ret_op = (struct op){
		.kind = NODE(MEM_ALLOC),
		.address = range->base,
		.bytes = p->bytes,
	};
	return CUDA_SUCCESS;
}

static int op_free(uint64_t address, struct op *ret_op)
{
	struct range *range = range_find(address);

	*ret_op = (struct op){ .kind = NODE(MEM_FREE), .address = address };
	if (!range || range->kind != RANGE_ASYNC || range->base != address)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

int sim_cuGraphAddKernelNode_v2(
	void **ret_node, void *graph, void **deps, size_t count, void *params)
{
	struct op op;
	int r = op_kernel(params, true, &op);

	if (r)
		return r;
	r = add(ret_node, graph, deps, count, &op);
	op_fini(&op);
	return r;
}

int sim_cuGraphAddKernelNode(void **ret_node, void *graph, void **deps, size_t count, void *params)
{
	struct op op;
	int r = op_kernel(params, false, &op);

	if (r)
		return r;
	r = add(ret_node, graph, deps, count, &op);
	op_fini(&op);
	return r;
}

int sim_cuGraphAddMemcpyNode(
	void **ret_node, void *graph, void **deps, size_t count, void *params, void *ctx)
{
	struct op op;
	int r = op_memcpy(params, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddMemsetNode(
	void **ret_node, void *graph, void **deps, size_t count, void *params, void *ctx)
{
	struct op op;
	int r = op_memset(params, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddHostNode(void **ret_node, void *graph, void **deps, size_t count, void *params)
{
	struct op op;
	int r = op_host(params, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddChildGraphNode(
	void **ret_node, void *graph, void **deps, size_t count, void *child)
{
	struct op op;
	int r = op_child(child, &op);

	if (!r && child == graph)
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddEmptyNode(void **ret_node, void *graph, void **deps, size_t count)
{
	struct op op = { .kind = NODE(EMPTY) };

	return add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddEventRecordNode(
	void **ret_node, void *graph, void **deps, size_t count, void *event)
{
	struct op op;
	int r = op_event(NODE(EVENT_RECORD), event, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddEventWaitNode(
	void **ret_node, void *graph, void **deps, size_t count, void *event)
{
	struct op op;
	int r = op_event(NODE(WAIT_EVENT), event, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddMemAllocNode(
	void **ret_node, void *graph, void **deps, size_t count, void *params)
{
	struct op op;
	int r = op_alloc(params, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

int sim_cuGraphAddMemFreeNode(
	void **ret_node, void *graph, void **deps, size_t count, unsigned long long address)
{
	struct op op;
	int r = op_free(address, &op);

	return r ? r : add(ret_node, graph, deps, count, &op);
}

/* Parameters of any kind, as cuGraphAddNode() has them. */
int op_any(struct cu_graph_node_params *p, struct op *ret_op)
{
	switch (p->type) {
	case NODE(KERNEL):
		return op_kernel(&p->u.kernel, true, ret_op);
	case NODE(MEMCPY):
		return op_memcpy(&p->u.copy.copy, ret_op);
	case NODE(MEMSET):
		return op_memset(&p->u.set, ret_op);
	case NODE(HOST):
		return op_host(&p->u.host, ret_op);
	case NODE(GRAPH):
		return op_child(p->u.graph.graph, ret_op);
	case NODE(EMPTY):
		*ret_op = (struct op){ .kind = NODE(EMPTY) };
		return CUDA_SUCCESS;
	case NODE(WAIT_EVENT):
	case NODE(EVENT_RECORD):
		return op_event(p->type, p->u.event, ret_op);
	case NODE(MEM_ALLOC):
		return op_alloc(&p->u.alloc, ret_op);
	case NODE(MEM_FREE):
		return op_free(p->u.address, ret_op);
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

int sim_cuGraphAddNode_v2(
	void **ret_node, void *graph, void **deps, void *edges, size_t count, void *params)
{
	struct op op;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	int r = op_any(params, &op);
	if (r)
		return r;
	r = add(ret_node, graph, deps, count, &op);
	if (op.kind == NODE(KERNEL))
		op_fini(&op);
	return r;
}

int sim_cuGraphAddNode(void **ret_node, void *graph, void **deps, size_t count, void *params)
{
	return sim_cuGraphAddNode_v2(ret_node, graph, deps, NULL, count, params);
}

/* A node of a kind, or the answer why it is none. */
static int node_get(void *handle, int kind, struct node **ret_node)
{
	*ret_node = obj_find(handle, OBJ_NODE);
	return *ret_node && (*ret_node)->op.kind == kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Gives a node a new operation, taking it over when `owned`. */
int node_replace(struct node *n, struct op *op, bool owned)
{
	struct op copy = *op;

	if (!owned && op_clone(op, &copy))
		return CUDA_ERROR_OUT_OF_MEMORY;
	op_fini(&n->op);
	n->op = copy;
	return CUDA_SUCCESS;
}

static int kernel_params(void *handle, struct node **ret_node, void *params)
{
	int r = node_get(handle, NODE(KERNEL), ret_node);

	if (!r && !params)
		return CUDA_ERROR_INVALID_VALUE;
	return r ? r : op_check(&(*ret_node)->op);
}

/* The common members of _v1 and _v2. */
static void fill_kernel_params(const struct op *op, struct cu_kernel_node_params *p)
{
	const struct launch *l = &op->launch;

	p->func = l->function;
	p->grid_x = l->grid[0];
	p->grid_y = l->grid[1];
	p->grid_z = l->grid[2];
	p->block_x = l->block[0];
	p->block_y = l->block[1];
	p->block_z = l->block[2];
	p->shared_bytes = l->shared;
	p->params = op->params;
	p->extra = NULL;
}

int sim_cuGraphKernelNodeGetParams(void *handle, void *params)
{
	struct node *n;
	int r = kernel_params(handle, &n, params);

	if (!r)
		fill_kernel_params(&n->op, params);
	return r;
}

int sim_cuGraphKernelNodeGetParams_v2(void *handle, void *params)
{
	struct cu_kernel_node_params *p = params;
	struct node *n;
	int r = kernel_params(handle, &n, params);

	if (r)
		return r;
	fill_kernel_params(&n->op, p);
	p->kern = obj_find((void *)n->op.kernel_handle, OBJ_KERNEL);
	if (p->kern)
		p->func = NULL;
	p->ctx = n->op.launch.function->obj.ctx;
	return CUDA_SUCCESS;
}

static int set_kernel(void *handle, void *params, bool v2)
{
	struct op op;
	struct node *n;
	int r = node_get(handle, NODE(KERNEL), &n);

	if (!r)
		r = op_kernel(params, v2, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphKernelNodeSetParams(void *handle, void *params)
{
	return set_kernel(handle, params, false);
}

int sim_cuGraphKernelNodeSetParams_v2(void *handle, void *params)
{
	return set_kernel(handle, params, true);
}

int sim_cuGraphMemcpyNodeGetParams(void *handle, void *params)
{
	struct node *n;
	int r = node_get(handle, NODE(MEMCPY), &n);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*(struct cu_memcpy3d *)params = n->op.copy;
	return r;
}

int sim_cuGraphMemcpyNodeSetParams(void *handle, void *params)
{
	struct op op;
	struct node *n;
	int r = node_get(handle, NODE(MEMCPY), &n);

	if (!r)
		r = op_memcpy(params, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphMemsetNodeGetParams(void *handle, void *params)
{
	struct node *n;
	int r = node_get(handle, NODE(MEMSET), &n);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	const struct fill *f = &n->op.fill;
	struct cu_memset_node_params all = { f->address, f->pitch, f->value, f->element, f->width,
		f->height, NULL };
	memcpy(params, &all, offsetof(struct cu_memset_node_params, ctx));
	return CUDA_SUCCESS;
}

int sim_cuGraphMemsetNodeSetParams(void *handle, void *params)
{
	struct op op;
	struct node *n;
	int r = node_get(handle, NODE(MEMSET), &n);

	if (!r)
		r = op_memset(params, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphHostNodeGetParams(void *handle, void *params)
{
	struct cu_host_node_params *p = params;
	struct node *n;
	int r = node_get(handle, NODE(HOST), &n);

	if (!r && !p)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	p->fn = (void *)n->op.host;
	p->user_data = n->op.user;
	return CUDA_SUCCESS;
}

int sim_cuGraphHostNodeSetParams(void *handle, void *params)
{
	struct op op;
	struct node *n;
	int r = node_get(handle, NODE(HOST), &n);

	if (!r)
		r = op_host(params, &op);
	return r ? r : node_replace(n, &op, true);
}

static int get_event(void *handle, int kind, void **ret_event)
{
	struct node *n;
	int r = node_get(handle, kind, &n);

	if (!r && !ret_event)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret_event = n->op.event;
	return r;
}

static int set_event(void *handle, int kind, void *event)
{
	struct op op;
	struct node *n;
	int r = node_get(handle, kind, &n);

	if (!r)
		r = op_event(kind, event, &op);
	return r ? r : node_replace(n, &op, true);
}

int sim_cuGraphEventRecordNodeGetEvent(void *handle, void **ret_event)
{
	return get_event(handle, NODE(EVENT_RECORD), ret_event);
}

int sim_cuGraphEventRecordNodeSetEvent(void *handle, void *event)
{
	return set_event(handle, NODE(EVENT_RECORD), event);
}

int sim_cuGraphEventWaitNodeGetEvent(void *handle, void **ret_event)
{
	return get_event(handle, NODE(WAIT_EVENT), ret_event);
}

int sim_cuGraphEventWaitNodeSetEvent(void *handle, void *event)
{
	return set_event(handle, NODE(WAIT_EVENT), event);
}

int sim_cuGraphChildGraphNodeGetGraph(void *handle, void **ret_graph)
{
	struct node *n;
	int r = node_get(handle, NODE(GRAPH), &n);

	if (!r && !ret_graph)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret_graph = n->op.child;
	return r;
}

int sim_cuGraphMemAllocNodeGetParams(void *handle, void *params)
{
	struct cu_mem_alloc_node_params *p = params;
	struct node *n;
	int r = node_get(handle, NODE(MEM_ALLOC), &n);

	if (!r && !p)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*p = (struct cu_mem_alloc_node_params){
			.pool = { .type = 1, .location = { 1, 0 } },
			.bytes = n->op.bytes,
			.address = n->op.address,
		};
	return r;
}

int sim_cuGraphMemFreeNodeGetParams(void *handle, unsigned long long *ret_address)
{
	struct node *n;
	int r = node_get(handle, NODE(MEM_FREE), &n);

	if (!r && !ret_address)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret_address = n->op.address;
	return r;
}

int sim_cuGraphNodeSetParams(void *handle, void *params)
{
	struct cu_graph_node_params *p = params;
	struct op op;
	struct node *n;

	if (!p || p->type == NODE(MEM_ALLOC) || p->type == NODE(MEM_FREE))
		return CUDA_ERROR_INVALID_VALUE;
	int r = node_get(handle, p->type, &n);
	if (!r)
		r = op_any(p, &op);
	return r ? r : node_replace(n, &op, op.kind != NODE(GRAPH));
}

/* Attributes of kernel nodes are accepted and not kept. */
int sim_cuGraphKernelNodeSetAttribute(void *handle, int attribute, void *value)
{
	struct node *n;
	int r = node_get(handle, NODE(KERNEL), &n);

	return !r && !value ? CUDA_ERROR_INVALID_VALUE : r;
}

int sim_cuGraphKernelNodeGetAttribute(void *handle, int attribute, void *ret_value)
{
	struct node *n;
	int r = node_get(handle, NODE(KERNEL), &n);

	if (!r && !ret_value)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		memset(ret_value, 0, 64);
	if (!r && attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		*(int *)ret_value = n->op.launch.cooperative;
	return r;
}

int sim_cuGraphKernelNodeCopyAttributes(void *to, void *from)
{
	struct node *n;
	int r = node_get(to, NODE(KERNEL), &n);

	return r ? r : node_get(from, NODE(KERNEL), &n);
}
