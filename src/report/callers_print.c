/* Prints call stacks as text and as arrays of frames in JSON. */
#include "report/analysis.h"
#include "report/sections.h"
#include "section/view.h"

#include <inttypes.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/text.h"

#define BLOCK_FRAMES 8u /* of one that is printed below each other */
#define BLOCKS       5u

/* For code that was built without them neither the symbols nor the unwinder know lines. */
static bool has_lines(const struct stacks *s)
{
	for (size_t i = 0; i < s->rows.n; i++)
		for (uint32_t k = 0; k < s->rows.v[i].count; k++)
			if (stacks_frame(s, &s->rows.v[i], k)->line)
				return true;
	return false;
}

void callers_put_text(const struct report *r, const struct text_page *p)
{
	static const struct view view = { .section = &section_callers,
		.heading = "Calls by call stack",
		.keys = "count,total_ns,mean_ns,max_ns,name,called_by" };
	if (!view_put(&view, r, p))
		return;
	if (!has_lines(r->stacks))
		fputs("  No frame has a file and a line: build the program with -g for those.\n",
			p->out);
}

static void put_block(const struct text_page *p, const struct stacks *s, uint32_t stack)
{
	const struct stack_frame *f[BLOCK_FRAMES];
	char text[512];
	const uint32_t n = stacks_pick(s, stack, f, BLOCK_FRAMES);
	for (uint32_t i = 0; i < n; i++) {
		stacks_frame_text(f[i], text, sizeof text);
		fputs("      ", p->out);
		text_put_safe(p->out, text);
		putc('\n', p->out);
	}
	if (!n)
		fputs("      (not known)\n", p->out);
}

static int peak_order(const void *one, const void *two, void *rows)
{
	const struct memory_row *v = rows, *a = v + *(const size_t *)one,
				*b = v + *(const size_t *)two;
	return ORDER(b->at_peak_bytes, a->at_peak_bytes) ?: ORDER(a, b);
}

static void put_memory_row(const struct text_page *p, const struct memory_detail *d,
	const struct memory_row *row, uint64_t bytes, uint64_t count)
{
	struct number a, b;
	fprintf(p->out, "  %s in %s block%s\n", number_bytes(&a, bytes), number_count(&b, count),
		count == 1 ? "" : "s");
	put_block(p, d->stacks, (uint32_t)row->key);
}

static void put_more(const struct text_page *p, size_t shown, size_t all)
{
	if (all > shown)
		fprintf(p->out, "  %s… %zu more%s\n", p->dim, all - shown, p->plain);
}

/* A list that looks whole must not leave blocks out unsaid. */
static void put_without(const struct text_page *p, uint64_t bytes, uint64_t count)
{
	struct number a, b;
	if (count)
		fprintf(p->out, "  %s in %s block%s without a call stack\n",
			number_bytes(&a, bytes), number_count(&b, count), count == 1 ? "" : "s");
}

static size_t blocks_shown(const struct text_page *p, size_t n)
{
	const size_t most = !p->rows ? n : p->rows < BLOCKS ? p->rows : BLOCKS;
	return MIN(n, most);
}

static void put_live(const struct text_page *p, const struct memory_detail *d)
{
	uint64_t bytes = 0, count = 0;
	size_t n = 0;
	while (n < d->callers.n && d->callers.v[n].live)
		n++;
	if (!n)
		return;
	page_heading(p, d->leaks_known ? "Never freed, by call stack"
				       : "Not seen to be freed, by call stack");
	for (size_t i = 0; i < blocks_shown(p, n); i++)
		put_memory_row(
			p, d, &d->callers.v[i], d->callers.v[i].live_bytes, d->callers.v[i].live);
	put_more(p, blocks_shown(p, n), n);
	for (size_t i = 0; i < d->calls.n; i++) {
		bytes += d->calls.v[i].live_bytes;
		count += d->calls.v[i].live;
	}
	for (size_t i = 0; i < d->callers.n; i++) {
		bytes -= d->callers.v[i].live_bytes;
		count -= d->callers.v[i].live;
	}
	put_without(p, bytes, count);
}

static void put_peak(const struct text_page *p, const struct memory_detail *d)
{
	size_t *order = xmalloc((d->callers.n + 1) * sizeof *order), n = 0;
	uint64_t bytes = 0, count = 0;
	for (size_t i = 0; i < d->callers.n; i++)
		if (d->callers.v[i].at_peak)
			order[n++] = i;
	if (n) {
		qsort_r(order, n, sizeof *order, peak_order, d->callers.v);
		page_heading(p, "Live at the peak, by call stack");
	}
	for (size_t i = 0; i < blocks_shown(p, n); i++) {
		const struct memory_row *row = &d->callers.v[order[i]];
		put_memory_row(p, d, row, row->at_peak_bytes, row->at_peak);
	}
	put_more(p, blocks_shown(p, n), n);
	for (size_t i = 0; i < d->calls.n; i++) {
		bytes += d->calls.v[i].at_peak_bytes;
		count += d->calls.v[i].at_peak;
	}
	for (size_t i = 0; i < d->callers.n; i++) {
		bytes -= d->callers.v[i].at_peak_bytes;
		count -= d->callers.v[i].at_peak;
	}
	if (n)
		put_without(p, bytes, count);
	free(order);
}

void callers_put_memory(const struct report *r, const struct text_page *p)
{
	const struct memory_detail *d = r->memory_detail;
	if (!d->stacks)
		return;
	put_live(p, d);
	put_peak(p, d);
}
