/*
 * The graph API apart from node parameters: whole graphs, edges, questions, user objects.
 */
#include "driver/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct user { /* CUuserObject */
	struct obj obj;
	unsigned refs;
	void (*destroy)(void *);
	void *arg;
};

static struct graph *graph_find(void *handle)
{
	return obj_find(handle, OBJ_GRAPH);
}

int sim_cuGraphCreate(void **ret_graph, unsigned flags)
{
	if (!ret_graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_graph = graph_new();
	return *ret_graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_cuGraphDestroy(void *handle)
{
	struct graph *g = graph_find(handle);

	if (!g || g->inner || g->capturing)
		return CUDA_ERROR_INVALID_VALUE;
	graph_free(g);
	return CUDA_SUCCESS;
}

int sim_cuGraphClone(void **ret_clone, void *handle)
{
	struct graph *g = graph_find(handle);

	if (!g || !ret_clone)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_clone = graph_clone(g);
	return *ret_clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sim_cuGraphNodeFindInClone(void **ret_node, void *original, void *clone)
{
	struct graph *g = graph_find(clone);
	struct node *n = obj_find(original, OBJ_NODE);

	if (!g || !n || !ret_node || g->origin != n->graph->number)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_node = graph_copy_of(g, n);
	return *ret_node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int sim_cuGraphDestroyNode(void *handle)
{
	struct node *n = obj_find(handle, OBJ_NODE);

	if (!n || n->graph->capturing)
		return CUDA_ERROR_INVALID_VALUE;
	graph_remove(n);
	return CUDA_SUCCESS;
}

int sim_cuGraphNodeGetType(void *handle, int *ret_type)
{
	struct node *n = obj_find(handle, OBJ_NODE);

	if (!n || !ret_type)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_type = n->op.kind;
	return CUDA_SUCCESS;
}

/*
 * Lists are answered in CUDA's way: with no array, *count is how many there are; with one,
 * as many as fit are written, NULL behind them, and *count is how many were.
 */
struct list {
	void **out, **out2;
	size_t room, count;
};

static void list_add(struct list *l, void *a, void *b)
{
	if (l->out && l->count < l->room)
		l->out[l->count] = a;
	if (l->out2 && l->count < l->room)
		l->out2[l->count] = b;
	l->count++;
}

static void list_end(const struct list *l, size_t *count)
{
	for (size_t i = l->count; l->out && i < l->room; i++)
		l->out[i] = NULL;
	for (size_t i = l->count; l->out2 && i < l->room; i++)
		l->out2[i] = NULL;
	*count = l->out && l->count > l->room ? l->room : l->count;
}

int sim_cuGraphGetNodes(void *handle, void **nodes, size_t *count)
{
	struct graph *g = graph_find(handle);

	if (!g || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = { .out = nodes, .room = *count };
	for (struct node *n = g->first; n; n = n->next)
		list_add(&l, n, NULL);
	list_end(&l, count);
	return CUDA_SUCCESS;
}

int sim_cuGraphGetRootNodes(void *handle, void **nodes, size_t *count)
{
	struct graph *g = graph_find(handle);

	if (!g || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = { .out = nodes, .room = *count };
	for (struct node *n = g->first; n; n = n->next)
		if (!n->dep_count)
			list_add(&l, n, NULL);
	list_end(&l, count);
	return CUDA_SUCCESS;
}

static void no_edge_data(void *edges, size_t count)
{
	if (edges)
		memset(edges, 0, count * sizeof(struct cu_graph_edge));
}

int sim_cuGraphGetEdges_v2(void *handle, void **from, void **to, void *edges, size_t *count)
{
	struct graph *g = graph_find(handle);

	if (!g || !count || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = { .out = from, .out2 = to, .room = *count };
	for (struct node *n = g->first; n; n = n->next)
		for (size_t i = 0; i < n->dep_count; i++)
			list_add(&l, n->deps[i], n);
	list_end(&l, count);
	if (from)
		no_edge_data(edges, *count);
	return CUDA_SUCCESS;
}

int sim_cuGraphGetEdges(void *handle, void **from, void **to, size_t *count)
{
	return sim_cuGraphGetEdges_v2(handle, from, to, NULL, count);
}

int sim_cuGraphNodeGetDependencies_v2(void *handle, void **deps, void *edges, size_t *count)
{
	struct node *n = obj_find(handle, OBJ_NODE);

	if (!n || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = { .out = deps, .room = *count };
	for (size_t i = 0; i < n->dep_count; i++)
		list_add(&l, n->deps[i], NULL);
	list_end(&l, count);
	if (deps)
		no_edge_data(edges, *count);
	return CUDA_SUCCESS;
}

int sim_cuGraphNodeGetDependencies(void *handle, void **deps, size_t *count)
{
	return sim_cuGraphNodeGetDependencies_v2(handle, deps, NULL, count);
}

static bool depends(const struct node *n, const struct node *dep)
{
	for (size_t i = 0; i < n->dep_count; i++)
		if (n->deps[i] == dep)
			return true;
	return false;
}

int sim_cuGraphNodeGetDependentNodes_v2(void *handle, void **nodes, void *edges, size_t *count)
{
	struct node *n = obj_find(handle, OBJ_NODE);

	if (!n || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list l = { .out = nodes, .room = *count };
	for (struct node *m = n->graph->first; m; m = m->next)
		if (depends(m, n))
			list_add(&l, m, NULL);
	list_end(&l, count);
	if (nodes)
		no_edge_data(edges, *count);
	return CUDA_SUCCESS;
}

int sim_cuGraphNodeGetDependentNodes(void *handle, void **nodes, size_t *count)
{
	return sim_cuGraphNodeGetDependentNodes_v2(handle, nodes, NULL, count);
}

static bool edges_ok(const struct graph *g, void **from, void **to, size_t count, bool exist)
{
	for (size_t i = 0; i < count; i++) {
		struct node *a = obj_find(from[i], OBJ_NODE), *b = obj_find(to[i], OBJ_NODE);

		if (!a || !b || a == b || a->graph != g || b->graph != g || depends(b, a) != exist)
			return false;
	}
	return true;
}

int sim_cuGraphAddDependencies_v2(void *handle, void **from, void **to, void *edges, size_t count)
{
	struct graph *g = graph_find(handle);

	if (!g || (count && (!from || !to)) || !edges_ok(g, from, to, count, false))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct node *n = to[i];
		struct node **more = reallocarray(n->deps, n->dep_count + 1, sizeof *more);

		if (!more)
			return CUDA_ERROR_OUT_OF_MEMORY;
		n->deps = more;
		n->deps[n->dep_count++] = from[i];
	}
	return CUDA_SUCCESS;
}

int sim_cuGraphAddDependencies(void *handle, void **from, void **to, size_t count)
{
	return sim_cuGraphAddDependencies_v2(handle, from, to, NULL, count);
}

int sim_cuGraphRemoveDependencies_v2(
	void *handle, void **from, void **to, void *edges, size_t count)
{
	struct graph *g = graph_find(handle);

	if (!g || (count && (!from || !to)) || !edges_ok(g, from, to, count, true))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct node *n = to[i];
		size_t kept = 0;

		for (size_t j = 0; j < n->dep_count; j++)
			if (n->deps[j] != from[i])
				n->deps[kept++] = n->deps[j];
		n->dep_count = kept;
	}
	return CUDA_SUCCESS;
}

int sim_cuGraphRemoveDependencies(void *handle, void **from, void **to, size_t count)
{
	return sim_cuGraphRemoveDependencies_v2(handle, from, to, NULL, count);
}

static const char *kind_name(int kind)
{
	static const char *const names[] = { "KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY",
		"WAIT_EVENT", "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC",
		"MEM_FREE" };

	return kind >= 0 && kind < 12 ? names[kind] : "OTHER";
}

int sim_cuGraphDebugDotPrint(void *handle, const char *path, unsigned flags)
{
	struct graph *g = graph_find(handle);

	if (!g || !path)
		return CUDA_ERROR_INVALID_VALUE;
	FILE *f = fopen(path, "we");
	if (!f)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(f, "digraph dot {\n");
	for (const struct node *n = g->first; n; n = n->next) {
		struct function *k = obj_find(n->op.launch.function, OBJ_FUNCTION);

		fprintf(f, "\t\"n%llu\" [label=\"%s%s%s\"];\n", (unsigned long long)n->number,
			kind_name(n->op.kind), k ? " " : "", k ? k->k->name : "");
		for (size_t i = 0; i < n->dep_count; i++)
			fprintf(f, "\t\"n%llu\" -> \"n%llu\";\n",
				(unsigned long long)n->deps[i]->number,
				(unsigned long long)n->number);
	}
	fprintf(f, "}\n");
	return fclose(f) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* User objects: a destructor that runs, as a host function, when nobody is left. */

void user_release(struct user *user, unsigned count)
{
	user->refs -= count;
	if (user->refs)
		return;
	struct work work = { .host = user->destroy, .arg = user->arg };
	fence_unref(timeline_submit(&work, NULL, 0));
	obj_free(user);
}

bool graph_keep(struct graph *graph, struct user *user, unsigned count)
{
	struct keep *k = calloc(1, sizeof *k);

	if (!k)
		return false;
	*k = (struct keep){ .next = graph->keeps, .user = user, .count = count };
	graph->keeps = k;
	user->refs += count;
	return true;
}

int sim_cuUserObjectCreate(void **ret_user, void *arg, void *destroy, unsigned refs, unsigned flags)
{
	if (!ret_user || !destroy || !refs || flags != 1)
		return CUDA_ERROR_INVALID_VALUE;
	struct user *u = obj_new(OBJ_USER, sizeof *u, NULL);
	if (!u)
		return CUDA_ERROR_OUT_OF_MEMORY;
	u->refs = refs;
	u->destroy = (void (*)(void *))destroy;
	u->arg = arg;
	*ret_user = u;
	return CUDA_SUCCESS;
}

int sim_cuUserObjectRetain(void *handle, unsigned count)
{
	struct user *u = obj_find(handle, OBJ_USER);

	if (!u || !count)
		return CUDA_ERROR_INVALID_VALUE;
	u->refs += count;
	return CUDA_SUCCESS;
}

int sim_cuUserObjectRelease(void *handle, unsigned count)
{
	struct user *u = obj_find(handle, OBJ_USER);

	if (!u || !count || count > u->refs)
		return CUDA_ERROR_INVALID_VALUE;
	user_release(u, count);
	return CUDA_SUCCESS;
}

/* Flag 1 moves the caller's references to the graph. */
int sim_cuGraphRetainUserObject(void *handle, void *user, unsigned count, unsigned flags)
{
	struct graph *g = graph_find(handle);
	struct user *u = obj_find(user, OBJ_USER);

	if (!g || !u || !count || flags > 1 || (flags && count > u->refs))
		return CUDA_ERROR_INVALID_VALUE;
	if (!graph_keep(g, u, count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (flags)
		u->refs -= count;
	return CUDA_SUCCESS;
}

int sim_cuGraphReleaseUserObject(void *handle, void *user, unsigned count)
{
	struct graph *g = graph_find(handle);

	if (!g || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct keep **link = &g->keeps; *link; link = &(*link)->next) {
		struct keep *k = *link;

		if (k->user != user || k->count < count)
			continue;
		k->count -= count;
		user_release(user, count);
		if (!k->count) {
			*link = k->next;
			free(k);
		}
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
