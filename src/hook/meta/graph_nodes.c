/*
 * Writes the kernels of an executable graph and their shapes into the trace when the graph is
 * instantiated or changed. Everything here runs after a call of the program has returned from the
 * driver.
 */
#include "hook/meta/graph_nodes.h"

#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "base/sys.h"
#include "cuda_types.h"
#include "hook/core/hook_parts.h"
#include "hook/core/hook_table.h"
#include "hook/core/metadata.h"
#include "hook/core/pages.h"
#include "hook/core/process.h"
#include "hook/meta/kernels.h"

enum { NODE_KERNEL = 0, NODE_CHILD = 4 }; /* CUgraphNodeType */
#define NODES_A_RECORD 1024u

struct expansion {
	struct graph_node *nodes; /* own mapping */
	size_t count, room;
};

static void describe_kernel(struct graph_node *to, void *node)
{
	struct cu_kernel_node_params p;
	memset(&p, 0, sizeof p);
	const enum fn fn = real_at(FN_cuGraphKernelNodeGetParams_v2)
				   ? FN_cuGraphKernelNodeGetParams_v2
				   : FN_cuGraphKernelNodeGetParams;
	int (*ask)(void *, void *) = real_at(fn);
	if (!ask || ask(node, &p))
		return;
	to->function = (uintptr_t)(p.func ? p.func : p.kern);
	to->shared = p.shared_bytes;
	memcpy(to->grid, &p.grid_x, sizeof to->grid);
	memcpy(to->block, &p.block_x, sizeof to->block);
	kernel_describe(to->function);
}

static bool make_room(struct expansion *x, size_t more)
{
	if (x->count + more <= x->room)
		return true;
	const size_t room = (x->count + more) * 2;
	const size_t bytes = room * sizeof *x->nodes;
	const long at =
		x->nodes ? sys(mremap, x->nodes, x->room * sizeof *x->nodes, bytes, MREMAP_MAYMOVE)
			 : sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return false;
	x->nodes = (struct graph_node *)at;
	x->room = room;
	return true;
}

static void expand(struct expansion *x, void *graph, int depth);

static void expand_node(struct expansion *x, void *node, int depth)
{
	int type = -1;
	void *child = NULL;
	if (REAL(cuGraphNodeGetType)(node, &type) || !make_room(x, 1))
		return;
	if (type == NODE_CHILD && depth < 16 && real_at(FN_cuGraphChildGraphNodeGetGraph) &&
		!REAL(cuGraphChildGraphNodeGetGraph)(node, &child)) {
		expand(x, child, depth + 1);
		return;
	}
	struct graph_node *to = &x->nodes[x->count++];
	*to = (struct graph_node){ .type = (uint32_t)type, .node = (uintptr_t)node };
	if (type == NODE_KERNEL)
		describe_kernel(to, node);
}

static void expand(struct expansion *x, void *graph, int depth)
{
	size_t count = 0;
	int (*get)(void *, void **, size_t *) = real_at(FN_cuGraphGetNodes);
	if (!get || !real_at(FN_cuGraphNodeGetType) || get(graph, NULL, &count) || !count)
		return;
	const size_t bytes = count * sizeof(void *);
	const long at =
		sys(mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(at))
		return;
	void **nodes = (void **)at;
	if (!get(graph, nodes, &count))
		for (size_t i = 0; i < count; i++)
			expand_node(x, nodes[i], depth);
	sys(munmap, at, bytes);
}

static struct handles graphs OWN_PAGES;

static void write_graph(uint64_t exec, const struct expansion *x)
{
	for (size_t from = 0; from < x->count || !from; from += NODES_A_RECORD) {
		const size_t left = x->count - from;
		const uint32_t n = (uint32_t)(left < NODES_A_RECORD ? left : NODES_A_RECORD);
		struct record *r = meta_begin(META_GRAPH, 3, n * (uint32_t)sizeof *x->nodes);
		if (!r)
			break;
		r->aux = n;
		r->arg[0] = exec, r->arg[1] = x->count, r->arg[2] = from;
		if (n)
			memcpy(r->arg + 3, x->nodes + from, n * sizeof *x->nodes);
		record_commit(r, META_GRAPH);
	}
}

static _Atomic bool any;

bool graph_nodes_any(void)
{
	return load_relaxed(&any);
}

/* Most updates change parameters alone, and are nothing new. */
static void record_graph(uint64_t exec, void *graph)
{
	store_relaxed(&any, true);
	if (!hook_recorder.header)
		return;
	struct expansion x = { 0 };
	expand(&x, graph, 0);
	if (load_relaxed(&hook_recorder.header->control) & CONTROL_PREDICT)
		hook_above.graph_made(exec, x.nodes, x.count);
	if (handles_remember(&graphs, exec, hash_bytes(x.nodes, x.count * sizeof *x.nodes)))
		write_graph(exec, &x);
	if (x.nodes)
		sys(munmap, x.nodes, x.room * sizeof *x.nodes);
}

void after_cuGraphInstantiate(int result, void *exec, void *graph, void *node, void *log, size_t n)
{
	if (!result && exec)
		record_graph(*(const uint64_t *)exec, graph);
}

void after_cuGraphInstantiateWithFlags(
	int result, void *exec, void *graph, unsigned long long flags)
{
	after_cuGraphInstantiate(result, exec, graph, NULL, NULL, 0);
}

void after_cuGraphInstantiateWithParams(int result, void *exec, void *graph, void *params)
{
	after_cuGraphInstantiate(result, exec, graph, NULL, NULL, 0);
}

void after_cuGraphExecUpdate(int result, void *exec, void *graph, void *node, void *update)
{
	if (!result)
		record_graph((uintptr_t)exec, graph);
}

void after_cuGraphExecUpdate_v2(int result, void *exec, void *graph, void *info)
{
	after_cuGraphExecUpdate(result, exec, graph, NULL, NULL);
}

static void record_node(void *exec, const struct graph_node *node)
{
	handles_remember(
		&graphs, (uintptr_t)exec, 0); /* not what it was when it was instantiated */
	hook_above.graph_made((uintptr_t)exec, NULL, 0);
	struct record *r = meta_begin(META_NODE, 1, sizeof *node);
	if (!r)
		return;
	r->aux = 1;
	r->arg[0] = (uintptr_t)exec;
	memcpy(r->arg + 1, node, sizeof *node);
	record_commit(r, META_NODE);
}

static void record_params(
	void *exec, void *node, const struct cu_kernel_node_params *p, void *function)
{
	struct graph_node to = {
		.type = NODE_KERNEL, .shared = p->shared_bytes, .node = (uintptr_t)node
	};
	to.function = (uintptr_t)function;
	memcpy(to.grid, &p->grid_x, sizeof to.grid);
	memcpy(to.block, &p->block_x, sizeof to.block);
	kernel_describe(to.function);
	record_node(exec, &to);
}

void after_cuGraphExecKernelNodeSetParams(int result, void *exec, void *node, void *params)
{
	const struct cu_kernel_node_params *p = params; /* version 1 ends before kern */
	if (!result && p)
		record_params(exec, node, p, p->func);
}

void after_cuGraphExecKernelNodeSetParams_v2(int result, void *exec, void *node, void *params)
{
	const struct cu_kernel_node_params *p = params;
	if (!result && p)
		record_params(exec, node, p, p->func ? p->func : p->kern);
}

void after_cuGraphNodeSetEnabled(int result, void *exec, void *node, unsigned enabled)
{
	if (result)
		return;
	struct graph_node to = { .type = NODE_KERNEL, .node = (uintptr_t)node };
	int type = NODE_KERNEL;
	if (real_at(FN_cuGraphNodeGetType) && !REAL(cuGraphNodeGetType)(node, &type))
		to.type = (uint32_t)type;
	if (type == NODE_KERNEL)
		describe_kernel(&to, node);
	to.type |= enabled ? 0 : 1u << 31;
	record_node(exec, &to);
}

void graph_nodes_forget(void)
{
	DROP(graphs);
}
