/* Call stacks in SQLite: a row a frame of each stack, and which calls have it.  See
 * export_sqlite.h. */
#include "export/export_sqlite.h"

static void put_frame(struct export *x, uint32_t stack, uint32_t depth, const struct stack_frame *f)
{
	const uint32_t function = db_id(x, f->function), module = db_id(x, f->module);
	struct row row = db_row(x, STACKS);
	db_put_int(&row, stack + 1u);
	db_put_int(&row, depth);
	db_put_known(&row, function != 0, function);
	db_put_text(&row, *f->file ? f->file : NULL);
	db_put_known(&row, f->line != 0, f->line);
	db_put_known(&row, module != 0, module);
	db_put_text(&row, f->kind == CALLER_PYTHON ? "python" : "native");
	db_put_row(x, &row);
}

void db_put_stacks(struct export *x)
{
	const struct stacks *s = &x->stacks;
	for (uint32_t i = 0; i < s->rows.n; i++)
		for (uint32_t k = 0; k < s->rows.v[i].count; k++)
			put_frame(x, i, k, stacks_frame(s, &s->rows.v[i], k));
}

void db_put_call_stack(struct export *x, const struct export_call *c, uint64_t id)
{
	const uint32_t stack = export_stack_of(x, c);
	if (stack == STACK_NONE)
		return;
	struct row row = db_row(x, CALL_STACKS);
	db_put_int(&row, id);
	db_put_int(&row, stack + 1u);
	db_put_row(x, &row);
}
