/* See cost_table.h. */
#include "model/cost_table.h"

#include <errno.h>

#include "base/banned.h"

#define NOT_KNOWN (UINT32_MAX - 1) /* MAP_NONE is what was not asked yet */

int cost_table_find(struct cost_table *t, const char *name, const char *args, uint32_t *ret_cost)
{
	uint32_t *index = map_get(&t->map, MAP_KEY((uintptr_t)name, (uintptr_t)args));
	struct cost cost;
	if (!index)
		return -ENOMEM;
	if (*index == MAP_NONE) {
		const bool known = name && args && cost_of(name, args, &cost);
		struct cost *new = known ? array_push(&t->v) : NULL;
		if (known && !new)
			return -ENOMEM;
		*index = known ? (uint32_t)(t->v.n - 1) : NOT_KNOWN;
		if (new)
			*new = cost;
	}
	*ret_cost = *index == NOT_KNOWN ? COST_NONE : *index;
	return 0;
}

void cost_table_fini(struct cost_table *t)
{
	map_fini(&t->map);
	array_free(&t->v);
}
