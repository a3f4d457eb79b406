/*
 * Costs of operators (cost.h), which come again and again with the same arguments: each combination
 * of name and arguments is worked out once.  Zeroed memory is an empty table; one owner.
 */
#ifndef WEIR_MODEL_COST_TABLE_H
#define WEIR_MODEL_COST_TABLE_H

#include "base/array.h"
#include "base/map.h"
#include "model/cost.h"

#define COST_NONE UINT32_MAX

struct cost_table {
	struct map map;
	ARRAY(struct cost) v;
};

/* Where the cost is, or COST_NONE when it is not known.  The texts are those of the trace's names,
 * or NULL, and told apart by where they are.  0 or -ENOMEM. */
int cost_table_find(struct cost_table *t, const char *name, const char *args, uint32_t *ret_cost);
void cost_table_fini(struct cost_table *t);

#endif
