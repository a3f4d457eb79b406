/* The ranges around moments, found in one look at all ranges.  See blame.h. */
#include "blame/blame.h"

#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "trace/activity.h"

/* Operators of PyTorch that do nothing but allocate, or allocate and fill: somebody needs that. */
static const char *const allocators[] = { "aten::empty", "aten::empty_like", "aten::empty_strided",
	"aten::empty_permuted", "aten::new_empty", "aten::new_empty_strided", "aten::zeros",
	"aten::zeros_like", "aten::new_zeros", "aten::ones", "aten::ones_like", "aten::new_ones",
	"aten::full", "aten::full_like", "aten::new_full", "aten::resize_", "aten::resize_as_",
	"aten::_resize_output_", "aten::scalar_tensor" };

/* Folders of libraries, and files without lines. */
static const char *const libraries[] = { "torch/", "site-packages/", "dist-packages/", "lib/python",
	"<built-in", "<frozen", "<string>", "nn.Module: " };

bool blame_allocates(const char *name)
{
	for (size_t i = 0; i < sizeof allocators / sizeof allocators[0]; i++)
		if (!strcmp(name, allocators[i]))
			return true;
	return false;
}

/* A function of Python stands as "train.py(12): step". */
static bool is_library(const char *line)
{
	for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
		if (strstr(line, libraries[i]))
			return true;
	return false;
}

const struct stack_frame *blame_line(const struct stacks *s, uint32_t stack)
{
	const struct stack_frame *first = NULL;
	const struct stack_row *row = s && stack < s->rows.n ? &s->rows.v[stack] : NULL;
	for (uint32_t i = 0; row && i < row->count; i++) {
		const struct stack_frame *f = stacks_frame(s, row, i);
		if (f->kind != CALLER_PYTHON)
			continue;
		if (!is_library(f->file))
			return f;
		first = first ? first : f;
	}
	return first;
}

enum part { OPERATOR, MODULE, LINE, PARTS };

/* The best answer so far: a range is further in if it began later, or as late and ended earlier. */
struct answer {
	uint64_t from, to;
	uint32_t name;
	bool second; /* it does for want of another: an allocator, a library's frame */
};

struct question {
	const struct blame *of;
	size_t index;
	struct answer best[PARTS];
};

struct finder {
	const struct meta *m;
	struct question *v; /* by process, thread and time */
	size_t n;
};

static int question_order(const void *one, const void *two)
{
	const struct blame *a = ((const struct question *)one)->of,
			   *b = ((const struct question *)two)->of;
	return ORDER(a->process, b->process) ?: ORDER(a->tid, b->tid) ?: ORDER(a->ticks, b->ticks);
}

static bool is_better(const struct answer *a, const struct answer *b)
{
	if (b->name == META_NONE || a->second != b->second)
		return b->name == META_NONE || !a->second;
	return a->from > b->from || (a->from == b->from && a->to <= b->to);
}

static enum part part_of(uint16_t kind)
{
	return kind == RANGE_OPERATOR ? OPERATOR
	       : kind == RANGE_PYTHON ? LINE
	       : range_nests(kind)    ? MODULE
				      : PARTS;
}

static void take_range(struct finder *f, uint32_t process, const struct range *g)
{
	const enum part part = part_of(g->kind);
	const struct question *v = f->v;
	const uint64_t end = range_end(g);
	size_t i = SEARCH(k, 0, f->n,
		v[k].of->process < process ||
			(v[k].of->process == process &&
				(v[k].of->tid < g->tid ||
					(v[k].of->tid == g->tid && v[k].of->ticks < g->ticks))));
	if (part == PARTS || i == f->n || v[i].of->process != process || v[i].of->tid != g->tid ||
		v[i].of->ticks >= end)
		return;
	struct answer a = {
		.from = g->ticks, .to = end, .name = meta_find_string(f->m, process, g->name)
	};
	if (a.name == META_NONE)
		return;
	const char *text = f->m->names.v[a.name].text;
	a.second = part == OPERATOR ? blame_allocates(text) : part == LINE && is_library(text);
	for (; i < f->n && v[i].of->process == process && v[i].of->tid == g->tid &&
		v[i].of->ticks < end;
		i++)
		if (is_better(&a, &v[i].best[part]))
			f->v[i].best[part] = a;
}

static int take_ranges(const struct trace *t, struct finder *f)
{
	struct cursor at = { .t = t };
	for (struct range g; trace_next_range(&at, &g);)
		take_range(f, at.ref->process, &g);
	return at.error;
}

int blame_find(const struct trace *t, const struct meta *m, struct blame *v, size_t n)
{
	static const struct answer none = { .name = META_NONE };
	struct finder f = { .m = m, .v = xcalloc(n + 1, sizeof *f.v), .n = n };
	for (size_t i = 0; i < n; i++)
		f.v[i] = (struct question){ &v[i], i, { none, none, none } };
	sort_records(f.v, n, sizeof *f.v, question_order);
	const int e = take_ranges(t, &f);
	for (size_t i = 0; i < n; i++) {
		struct blame *to = &v[f.v[i].index];
		to->operator= f.v[i].best[OPERATOR].name;
		to->module = f.v[i].best[MODULE].name;
		to->line = f.v[i].best[LINE].name;
	}
	free(f.v);
	return e;
}
