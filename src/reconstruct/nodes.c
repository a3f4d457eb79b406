/* Finds the kernels of an executable graph at some time. */
#include "reconstruct/nodes.h"

#define DISABLED 0x80000000u

static void put(struct graph_nodes *g, const struct graph_node *n)
{
	*array_push(&g->v) = *n;
}

static void update(struct graph_nodes *g, const struct graph_node *n)
{
	for (size_t i = 0; i < g->v.n; i++)
		if (g->v.v[i].node == n->node) {
			g->v.v[i] = *n;
			return;
		}
	put(g, n);
}

static void leave_out_disabled(struct graph_nodes *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->v.n; i++)
		if (!(g->v.v[i].type & DISABLED))
			g->v.v[n++] = g->v.v[i];
	g->v.n = n;
}

void graph_nodes_of(const struct meta *m, uint32_t step, struct graph_nodes *ret_nodes)
{
	uint32_t first = step;
	ret_nodes->v.n = 0;
	while (first && m->steps.v[first].kind != STEP_NEW &&
		m->steps.v[first - 1].exec == m->steps.v[step].exec)
		first--;
	for (uint32_t s = first; s <= step; s++) {
		const struct graph_step *g = &m->steps.v[s];
		for (uint32_t i = 0; i < g->node_count; i++) {
			const struct graph_node *n = &m->nodes.v[g->first_node + i];
			if (g->kind == STEP_UPDATE)
				update(ret_nodes, n);
			else
				put(ret_nodes, n);
		}
	}
	leave_out_disabled(ret_nodes);
}
