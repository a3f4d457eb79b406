/*
 * Graphs and captures of the runtime API.  Most calls are the driver's; parameters of
 * kernel and copy nodes are translated.
 */
#include "rt.h"

struct kernel_params {  /* cudaKernelNodeParams */
	void *function; /* host stub */
	struct dim3 grid, block;
	unsigned shared;
	void **params, **extra;
};

struct pitched { /* cudaPitchedPtr */
	void *address;
	size_t pitch, width, height;
};

struct copy_params { /* cudaMemcpy3DParms */
	void *src_array;
	size_t src_x, src_y, src_z;
	struct pitched src;
	void *dst_array;
	size_t dst_x, dst_y, dst_z;
	struct pitched dst;
	struct extent extent;
	int kind;
};

RT_PASS_PAIR(
	cudaStreamBeginCapture, cuStreamBeginCapture_v2, (void *stream, int mode), stream, mode)
RT_PASS_PAIR(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph,
	(void *stream, void *graph, void **deps, void *edges, size_t count, int mode), stream,
	graph, deps, edges, count, mode)
RT_PASS_PAIR(cudaStreamEndCapture, cuStreamEndCapture, (void *stream, void **graph), stream, graph)
RT_PASS_PAIR(
	cudaStreamIsCapturing, cuStreamIsCapturing, (void *stream, int *status), stream, status)
RT_PASS_PAIR(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3,
	(void *stream, int *status, unsigned long long *id, void **graph, void ***deps,
		void **edges, size_t *count),
	stream, status, id, graph, deps, edges, count)
RT_PASS_PAIR(cudaStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2,
	(void *stream, void **deps, void *edges, size_t count, unsigned flags), stream, deps, edges,
	count, flags)
RT_PASS(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode), mode)

RT_PASS(cudaGraphCreate, cuGraphCreate, (void **graph, unsigned flags), graph, flags)
RT_PASS(cudaGraphDestroy, cuGraphDestroy, (void *graph), graph)
RT_PASS(cudaGraphClone, cuGraphClone, (void **copy, void *graph), copy, graph)
RT_PASS(cudaGraphAddEmptyNode, cuGraphAddEmptyNode,
	(void **node, void *graph, void **deps, size_t count), node, graph, deps, count)
RT_PASS(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode,
	(void **node, void *graph, void **deps, size_t count, void *child), node, graph, deps,
	count, child)
RT_PASS(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode,
	(void **node, void *graph, void **deps, size_t count, void *event), node, graph, deps,
	count, event)
RT_PASS(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode,
	(void **node, void *graph, void **deps, size_t count, void *event), node, graph, deps,
	count, event)
RT_PASS(cudaGraphAddHostNode, cuGraphAddHostNode,
	(void **node, void *graph, void **deps, size_t count, const void *params), node, graph,
	deps, count, (void *)params)
RT_PASS(cudaGraphAddDependencies, cuGraphAddDependencies_v2,
	(void *graph, void **from, void **to, void *edges, size_t count), graph, from, to, edges,
	count)
RT_PASS(cudaGraphGetNodes, cuGraphGetNodes, (void *graph, void **nodes, size_t *count), graph,
	nodes, count)
RT_PASS(cudaGraphGetRootNodes, cuGraphGetRootNodes, (void *graph, void **nodes, size_t *count),
	graph, nodes, count)
RT_PASS(cudaGraphGetEdges, cuGraphGetEdges_v2,
	(void *graph, void **from, void **to, void *edges, size_t *count), graph, from, to, edges,
	count)
RT_PASS(cudaGraphNodeGetType, cuGraphNodeGetType, (void *node, int *type), node, type)
RT_PASS(cudaGraphDestroyNode, cuGraphDestroyNode, (void *node), node)
RT_PASS(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, (void *node, void **graph),
	node, graph)
RT_PASS(cudaGraphInstantiate, cuGraphInstantiateWithFlags,
	(void **exec, void *graph, unsigned long long flags), exec, graph, flags)
RT_PASS(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
	(void **exec, void *graph, unsigned long long flags), exec, graph, flags)
RT_PASS(cudaGraphExecUpdate, cuGraphExecUpdate_v2, (void *exec, void *graph, void *info), exec,
	graph, info)
RT_PASS(cudaGraphExecDestroy, cuGraphExecDestroy, (void *exec), exec)
RT_PASS_PAIR(cudaGraphLaunch, cuGraphLaunch, (void *exec, void *stream), exec, stream)
RT_PASS_PAIR(cudaGraphUpload, cuGraphUpload, (void *exec, void *stream), exec, stream)
RT_PASS(cudaGraphDebugDotPrint, cuGraphDebugDotPrint,
	(void *graph, const char *path, unsigned flags), graph, path, flags)

static int translate(const struct kernel_params *p, struct cu_kernel_node_params *ret)
{
	if (!p)
		return cudaErrorInvalidValue;
	*ret = (struct cu_kernel_node_params){
		.grid_x = p->grid.x,
		.grid_y = p->grid.y,
		.grid_z = p->grid.z,
		.block_x = p->block.x,
		.block_y = p->block.y,
		.block_z = p->block.z,
		.shared_bytes = p->shared,
		.params = p->params,
		.extra = p->extra,
	};
	return rt_kernel(p->function, &ret->kern);
}

RT_FUNCTION(cudaGraphAddKernelNode,
	(void **node, void *graph, void **deps, size_t count, const struct kernel_params *params))
{
	struct cu_kernel_node_params p;
	int r = rt_begin();

	if (!r)
		r = translate(params, &p);
	return rt_end(r ? r : rt_legacy.cuGraphAddKernelNode_v2(node, graph, deps, count, &p));
}

RT_FUNCTION(cudaGraphKernelNodeSetParams, (void *node, const struct kernel_params *params))
{
	struct cu_kernel_node_params p;
	int r = rt_begin();

	if (!r)
		r = translate(params, &p);
	return rt_end(r ? r : rt_legacy.cuGraphKernelNodeSetParams_v2(node, &p));
}

RT_FUNCTION(cudaGraphExecKernelNodeSetParams,
	(void *exec, void *node, const struct kernel_params *params))
{
	struct cu_kernel_node_params p;
	int r = rt_begin();

	if (!r)
		r = translate(params, &p);
	return rt_end(r ? r : rt_legacy.cuGraphExecKernelNodeSetParams_v2(exec, node, &p));
}

static void *current_context(void)
{
	void *ctx = NULL;

	rt_legacy.cuCtxGetCurrent(&ctx);
	return ctx;
}

RT_PASS(cudaGraphAddMemsetNode, cuGraphAddMemsetNode,
	(void **node, void *graph, void **deps, size_t count, const void *params), node, graph,
	deps, count, (void *)params, current_context())

static int type_of(const void *array, int kind, bool host)
{
	if (array)
		return CU_MEMORYTYPE_ARRAY;
	if (kind == 4)
		return CU_MEMORYTYPE_UNIFIED;
	return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static struct cu_memcpy3d translate_copy(const struct copy_params *p)
{
	return (struct cu_memcpy3d){
		.src_x = p->src_x,
		.src_y = p->src_y,
		.src_z = p->src_z,
		.src_type = type_of(p->src_array, p->kind, p->kind < 2),
		.src_host = p->src.address,
		.src_device = (uint64_t)p->src.address,
		.src_array = p->src_array,
		.src_pitch = p->src.pitch,
		.src_height = p->src.height,
		.dst_x = p->dst_x,
		.dst_y = p->dst_y,
		.dst_z = p->dst_z,
		.dst_type = type_of(p->dst_array, p->kind, p->kind == 0 || p->kind == 2),
		.dst_host = p->dst.address,
		.dst_device = (uint64_t)p->dst.address,
		.dst_array = p->dst_array,
		.dst_pitch = p->dst.pitch,
		.dst_height = p->dst.height,
		.width_bytes = p->extent.width,
		.height = p->extent.height,
		.depth = p->extent.depth,
	};
}

static int add_copy(
	void **node, void *graph, void **deps, size_t count, const struct copy_params *p)
{
	struct cu_memcpy3d copy = translate_copy(p);

	return rt_legacy.cuGraphAddMemcpyNode(node, graph, deps, count, &copy, current_context());
}

RT_FUNCTION(cudaGraphAddMemcpyNode,
	(void **node, void *graph, void **deps, size_t count, const struct copy_params *params))
{
	int r = rt_begin();

	if (!r && !params)
		r = cudaErrorInvalidValue;
	return rt_end(r ? r : add_copy(node, graph, deps, count, params));
}

RT_FUNCTION(cudaGraphAddMemcpyNode1D, (void **node, void *graph, void **deps, size_t count,
					      void *dst, const void *src, size_t size, int kind))
{
	struct copy_params p = {
		.src = { (void *)src, size, size, 1 },
		.dst = { dst, size, size, 1 },
		.extent = { size, 1, 1 },
		.kind = kind,
	};
	int r = rt_begin();

	return rt_end(r ? r : add_copy(node, graph, deps, count, &p));
}

static int body_cudaMemcpy3DAsync(
	const struct driver *d, const struct copy_params *params, void *stream)
{
	if (!params)
		return cudaErrorInvalidValue;
	struct cu_memcpy3d p = translate_copy(params);
	return d->cuMemcpy3DAsync_v2(&p, stream);
}

static int body_cudaMemcpy3D(const struct driver *d, const struct copy_params *params)
{
	if (!params)
		return cudaErrorInvalidValue;
	struct cu_memcpy3d p = translate_copy(params);
	return d->cuMemcpy3D_v2(&p);
}

RT_PAIR(cudaMemcpy3DAsync, _ptsz, (const struct copy_params *params, void *stream), params, stream)
RT_PAIR(cudaMemcpy3D, _ptds, (const struct copy_params *params), params)
