/* Call stacks in SQLite: a row a frame of each stack, and which calls have it.  See
 * export_sqlite.h. */
#include "export/export_sqlite.h"

#include <string.h>

/* 0: not known. */
static int text_of(struct export *x, const char *text, uint32_t *ret_id)
{
	*ret_id = 0;
	return *text ? db_text_id(x, text, strlen(text), ret_id) : 0;
}

static int put_frame(struct export *x, uint32_t stack, uint32_t depth, const struct stack_frame *f)
{
	uint32_t function, module;
	int e = text_of(x, f->function, &function);
	if (!e)
		e = text_of(x, f->module, &module);
	if (e)
		return e;
	struct row row = db_row(x, STACKS);
	db_put_int(&row, stack + 1u);
	db_put_int(&row, depth);
	db_put_known(&row, function != 0, function);
	db_put_text(&row, *f->file ? f->file : NULL);
	db_put_known(&row, f->line != 0, f->line);
	db_put_known(&row, module != 0, module);
	db_put_text(&row, f->kind == CALLER_PYTHON ? "python" : "native");
	return db_put_row(x, &row);
}

int db_put_stacks(struct export *x)
{
	const struct stacks *s = &x->stacks;
	int e = 0;
	for (uint32_t i = 0; i < s->rows.n && !e; i++)
		for (uint32_t k = 0; k < s->rows.v[i].count && !e; k++)
			e = put_frame(x, i, k, stacks_frame(s, &s->rows.v[i], k));
	return e;
}

int db_put_call_stack(struct export *x, const struct export_call *c, uint64_t id)
{
	const uint32_t stack = export_stack_of(x, c);
	if (stack == STACK_NONE)
		return 0;
	struct row row = db_row(x, CALL_STACKS);
	db_put_int(&row, id);
	db_put_int(&row, stack + 1u);
	return db_put_row(x, &row);
}
