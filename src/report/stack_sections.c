/* Sections of call stacks: how many there are, calls by stack, and the frames of one. */
#include "report/memory_sections.h"

#include "base/expect.h"
#include "stack/stacks.h"

#define LINE_FRAMES 8u /* of a stack in a line */

static const void *frame(const struct row *row)
{
	return &row->r->stacks->frames.v[*(const uint32_t *)row->at];
}

static struct value get_filled(const struct row *row, const void *of)
{
	const char *text = *(const char *const *)of;
	return value_text(*text ? text : NULL);
}

GETTER(get_language, struct stack_frame, f,
	value_text(f->kind == CALLER_PYTHON ? "python" : "native"))

static const struct column frame_columns[] = {
	{ "function", UNIT_TEXT, "function", "demangled; empty: not known", .find = frame,
		MEMBER(struct stack_frame, function) },
	{ "file", UNIT_TEXT, "file", "of the source", .get = get_filled, .find = frame,
		AT(struct stack_frame, file) },
	{ "line", UNIT_ID, "line", "of the source", .get = get_nonzero_u32, .find = frame,
		AT(struct stack_frame, line) },
	{ "module", UNIT_TEXT, "module", "program or library; null: Python", .get = get_filled,
		.find = frame, AT(struct stack_frame, module) },
	{ "language", UNIT_TEXT, "language", "`native` or `python`", .get = get_language,
		.find = frame },
	{ 0 },
};

const struct section section_frames = {
	.name = "call_stacks.rows[].frames",
	.facets = FACET(STACKS),
	.columns = frame_columns,
	.each = sizeof(uint32_t),
};

struct value get_frames(const struct row *row, const void *of)
{
	const struct stacks *s = row->r->stacks;
	const uint32_t stack = *(const uint32_t *)of;
	if (!s || stack == STACK_NONE || !expect(stack < s->rows.n, "a stack is one of all"))
		return value_null();
	const struct stack_row *at = &s->rows.v[stack];
	return (struct value){ .kind = VALUE_LIST, .list = s->pool.v + at->first, .n = at->count };
}

struct value get_called_by(const struct row *row, const void *of)
{
	const struct stacks *s = row->r->stacks;
	const uint32_t stack = *(const uint32_t *)of;
	if (!s || stack == STACK_NONE || !expect(stack < s->rows.n, "a stack is one of all"))
		return value_null();
	stacks_row_text(s, stack, LINE_FRAMES, row->text, 512);
	return value_text(row->text);
}

static struct value get_end(const struct row *row, const void *of)
{
	const uint32_t stack = *(const uint32_t *)of;
	const enum stack_end end = row->r->stacks->rows.v[stack].end;
	return value_text(end == STACK_WHOLE ? "whole" : end == STACK_CUT ? "cut" : "unknown");
}

GETTER(get_caller_function, uint16_t, it, function_name(row, *it))

static struct value get_caller_mean(const struct row *row, const void *of)
{
	const struct caller_row *c = of;
	expect(c->count, "a row has a call");
	return value_u64(trace_span_ns(row->r->trace, c->ticks / c->count));
}

static const struct column caller_columns[] = {
	{ "name", UNIT_TEXT, "call", "the function that was called", .get = get_caller_function,
		AT(struct caller_row, fn_id) },
	{ "count", UNIT_COUNT, "calls", "calls", MEMBER(struct caller_row, count), .sums = true },
	{ "errors", UNIT_COUNT, "errors", "failing ones of them", MEMBER(struct caller_row, errors),
		.sums = true },
	{ "total_ns", UNIT_NS, "total", "time in the calls", .get = get_span,
		AT(struct caller_row, ticks), .sums = true },
	{ "mean_ns", UNIT_NS, "mean", "of one of them", .get = get_caller_mean, .text_only = true },
	{ "max_ns", UNIT_NS, "max", "in one of them", .get = get_span,
		AT(struct caller_row, most_ticks) },
	{ "end", UNIT_TEXT, "end", "`whole`, `cut` or `unknown`, as of `call_stacks`",
		.get = get_end, AT(struct caller_row, stack) },
	STACK(NULL, offsetof(struct caller_row, stack)),
	{ 0 },
};

static void make_callers(struct rows *rows)
{
	rows->absent = !rows->r->stacks->samples.n && !rows->r->stacks->lost;
}

const struct section section_callers = {
	.name = "call_stacks.rows",
	.heading = "Calls by call stack",
	.about = "Calls by their stack, those that took longest first.",
	.of = OF_STACKS,
	.facets = FACET(STACKS),
	.columns = caller_columns,
	ROWS_OF(callers),
	.make = make_callers,
	.nested = true,
	.shown = "count,errors,total_ns,max_ns,end,called_by,name",
	.note = "--full-names prints names in full.  Lines are known of Python, and of code that was built with -g.",
};

GETTER(get_callers, void, of,
	(struct value){ .kind = VALUE_LIST, .list = row->r->callers.v, .n = row->r->callers.n })
GETTER(get_samples, void, of, value_u64(row->r->stacks->samples.n))

static const struct column stacks_columns[] = {
	{ "count", UNIT_COUNT, "calls", "calls whose stack was kept", .get = get_samples },
	{ "lost", UNIT_COUNT, "lost", "stacks that found no room in the trace",
		MEMBER(struct stacks, lost) },
	{ "cut", UNIT_COUNT, "cut", "stacks of which more was there than was kept",
		MEMBER(struct stacks, cut) },
	{ "unknown", UNIT_COUNT, "unknown", "stacks that end at code whose caller can't be found",
		MEMBER(struct stacks, unknown) },
	{ "not_unwound", UNIT_COUNT, "not unwound",
		"stacks of which only Python's frames are here, for want of libdw",
		MEMBER(struct stacks, waiting) },
	{ "rows", UNIT_LIST, "rows", "calls by stack, by total time", .get = get_callers,
		.inner = &section_callers },
	{ 0 },
};

static void make_stacks(struct rows *rows)
{
	const struct stacks *s = rows->r->stacks;
	rows->v = s;
	rows->absent = !s->samples.n && !s->lost;
}

const struct section section_call_stacks = {
	.name = "call_stacks",
	.heading = "Call stacks",
	.about = "Recordings with call stacks have it (`weir record --stacks`).",
	.form = SECTION_OBJECT,
	.of = OF_STACKS,
	.facets = FACET(STACKS),
	.columns = stacks_columns,
	.make = make_stacks,
	.note = "--only call_stacks.rows has the stacks, to sort and to filter.",
};
