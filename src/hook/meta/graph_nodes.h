/* Writes the contents of executable graphs into the trace. */
#pragma once

#include <stdbool.h>

/* Whether the program has made any. */
bool graph_nodes_any(void);

void graph_nodes_forget(void); /* after a fork: the child's trace starts empty */
