/* The kernels of an executable graph as it was at some time: for reconstruct.c. */
#pragma once

#include "trace/meta.h"

struct graph_nodes {
	ARRAY(struct graph_node) v; /* those that are enabled, in the order of the trace */
};

/* `step` is of meta_find_graph(). */
void graph_nodes_of(const struct meta *m, uint32_t step, struct graph_nodes *ret_nodes);
