/* Counts calls by the call stacks that made them. */
#include "model/callers.h"

#include "stack/stacks.h"
#include "base/sort.h"

ORDERING(caller_order, struct caller_row, ORDER(b->ticks, a->ticks), ORDER(a->fn_id, b->fn_id),
	ORDER(a->stack, b->stack))

static void count(struct report *r, struct map *rows, const struct stack_sample *s)
{
	const uint32_t stack = r->stacks->rows.v[s->stack].like;
	struct caller_row *row = MAP_ROW(rows, MAP_KEY(stack, s->fn), &r->callers,
		(struct caller_row){ .stack = stack, .fn_id = s->fn });
	row->count++;
	row->errors += s->result != 0;
	row->ticks = sat_add(row->ticks, s->dur);
	row->most_ticks = s->dur > row->most_ticks ? s->dur : row->most_ticks;
}

int callers_fill(struct report *r)
{
	struct map rows = { 0 };
	r->stacks = xcalloc(1, sizeof *r->stacks);
	int e = stacks_load(r->trace, r->stacks, NULL);
	for (size_t i = 0; !e && i < r->stacks->samples.n; i++)
		count(r, &rows, &r->stacks->samples.v[i]);
	SORT(r->callers, caller_order);
	map_fini(&rows);
	return e;
}

void callers_fini(struct report *r)
{
	if (r->stacks)
		stacks_fini(r->stacks);
	free(r->stacks);
	array_free(&r->callers);
}
