/*
 * Graphs as structures: nodes, edges, copies, and the questions about them.
 */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_number = 1;

struct graph *graph_new(void)
{
	struct graph *g = obj_new(OBJ_GRAPH, sizeof *g, NULL);

	if (!g)
		return NULL;
	g->tail = &g->first;
	g->number = next_number++;
	g->origin = g->number;
	return g;
}

static void node_free(struct node *n)
{
	op_fini(&n->op);
	free(n->deps);
	obj_free(n);
}

void graph_free(struct graph *graph)
{
	for (struct node *n = graph->first, *next; n; n = next) {
		next = n->next;
		node_free(n);
	}
	for (struct keep *k = graph->keeps, *next; k; k = next) {
		next = k->next;
		user_release(k->user, k->count);
		free(k);
	}
	obj_free(graph);
}

static struct node **copy_nodes(struct node *const *nodes, size_t count)
{
	struct node **copy = calloc(count + 1, sizeof *copy);

	if (copy && count)
		memcpy(copy, nodes, count * sizeof *copy);
	return copy;
}

struct node *graph_add(
	struct graph *graph, const struct op *op, struct node *const *deps, size_t dep_count)
{
	struct node *n = obj_new(OBJ_NODE, sizeof *n, NULL);

	if (!n)
		return NULL;
	n->deps = copy_nodes(deps, dep_count);
	if (!n->deps || op_clone(op, &n->op)) {
		node_free(n);
		return NULL;
	}
	n->dep_count = dep_count;
	n->graph = graph;
	n->enabled = true;
	n->number = next_number++;
	n->origin = n->number;
	*graph->tail = n;
	graph->tail = &n->next;
	graph->count++;
	return n;
}

struct node *graph_copy_of(const struct graph *copy, const struct node *original)
{
	for (struct node *n = copy->first; n; n = n->next)
		if (n->origin == original->number)
			return n;
	return NULL;
}

static bool clone_edges(const struct graph *from, struct graph *to)
{
	struct node *n = to->first;

	for (const struct node *o = from->first; o; o = o->next, n = n->next) {
		free(n->deps);
		n->deps = calloc(o->dep_count + 1, sizeof *n->deps);
		if (!n->deps)
			return false;
		for (size_t i = 0; i < o->dep_count; i++)
			n->deps[n->dep_count++] = graph_copy_of(to, o->deps[i]);
	}
	return true;
}

struct graph *graph_clone(const struct graph *graph)
{
	struct graph *copy = graph_new();

	if (!copy)
		return NULL;
	copy->origin = graph->number;
	for (const struct keep *k = graph->keeps; k; k = k->next)
		if (!graph_keep(copy, k->user, k->count))
			goto free_copy;
	for (const struct node *o = graph->first; o; o = o->next) {
		struct node *n = graph_add(copy, &o->op, NULL, 0);
		if (!n)
			goto free_copy;
		n->origin = o->number;
		n->enabled = o->enabled;
	}
	if (clone_edges(graph, copy))
		return copy;
free_copy:
	graph_free(copy);
	return NULL;
}

static void drop_dep(struct node *n, const struct node *dep)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->dep_count; i++)
		if (n->deps[i] != dep)
			n->deps[kept++] = n->deps[i];
	n->dep_count = kept;
}

void graph_remove(struct node *node)
{
	struct graph *g = node->graph;
	struct node **link = &g->first;

	for (struct node *n = g->first; n; n = n->next)
		drop_dep(n, node);
	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	if (!*link)
		g->tail = link;
	g->count--;
	node_free(node);
}

int graph_check(struct graph *graph)
{
	for (struct node *n = graph->first; n; n = n->next) {
		int r = n->enabled ? op_check(&n->op) : CUDA_SUCCESS;
		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}

static bool deps_marked(const struct node *n)
{
	for (size_t i = 0; i < n->dep_count; i++)
		if (!n->deps[i]->mark)
			return false;
	return true;
}

struct node **graph_order(const struct graph *graph)
{
	struct node **order = calloc(graph->count + 1, sizeof *order);
	size_t placed = 0, before;

	for (struct node *n = graph->first; n; n = n->next)
		n->mark = false;
	do {
		before = placed;
		for (struct node *n = graph->first; order && n; n = n->next) {
			if (n->mark || !deps_marked(n))
				continue;
			n->mark = true;
			order[placed++] = n;
		}
	} while (placed > before);
	if (placed == graph->count)
		return order;
	free(order);
	return NULL;
}

static bool walk_back(struct node *at, const struct node *wanted)
{
	if (at == wanted)
		return true;
	if (at->mark)
		return false;
	at->mark = true;
	for (size_t i = 0; i < at->dep_count; i++)
		if (walk_back(at->deps[i], wanted))
			return true;
	return false;
}

/* Whether `to` comes, directly or not, behind `from`, or is it. */
bool node_reaches(const struct graph *graph, const struct node *from, const struct node *to)
{
	for (struct node *n = graph->first; n; n = n->next)
		n->mark = false;
	return walk_back((struct node *)to, from);
}
