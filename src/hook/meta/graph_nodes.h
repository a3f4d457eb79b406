/* Writes the contents of executable graphs into the trace. */
#ifndef WEIR_HOOK_META_GRAPH_NODES_H
#define WEIR_HOOK_META_GRAPH_NODES_H

#include <stdbool.h>

/* Whether the program has made any. */
bool graph_nodes_any(void);

void graph_nodes_forget(void); /* after a fork: the child's trace starts empty */

#endif
