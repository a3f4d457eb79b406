/* `weir memory` for people: the live set over time, what made its peak, and where it leaks. */
#include "hint/summary.h"
#include "report/memory_print.h"
#include "report/memory_sections.h"

#include <inttypes.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/table.h"
#include "base/text.h"
#include "report/analysis.h"
#include "section/view.h"

static bool any_used(const struct report *r)
{
	bool any = false;
	for (int k = 0; k < MEMORY_KINDS; k++)
		any = any || r->memory[k].allocs || r->memory[k].frees;
	return any;
}

bool memory_is_of_segments(const struct report *r)
{
	for (size_t i = 0; i < r->kernel_rows.n && !r->allocator_events; i++)
		if (strstr(r->kernel_rows.v[i].name, "at::native::"))
			return true;
	return false;
}

enum { USE_COLUMNS = 6 };

static void put_use(
	struct table *t, const struct row *row, const char *name, const struct memory_use *u)
{
	for (size_t i = 0; i < USE_COLUMNS; i++) {
		const struct column *c = &section_memory.columns[i];
		const struct value v = c->get(row, u);
		section_put_cell(t, c, &v, &(struct cell_style){ .full = true });
	}
	table_cell(t, "%s", name);
}

/* The first columns of the section, which are those of one kind of memory, and the kind. */
static struct table table_of_uses(void)
{
	static const struct column kind = { .key = "kind", .unit = UNIT_TEXT, .heading = "memory" };
	const struct column *columns[USE_COLUMNS + 1];
	for (size_t i = 0; i < USE_COLUMNS; i++)
		columns[i] = &section_memory.columns[i];
	columns[USE_COLUMNS] = &kind;
	return view_table(columns, USE_COLUMNS + 1);
}

/* sum: with all on the GPU, if that is of several kinds. */
static void put_uses(const struct report *r, const struct text_page *p, bool sum)
{
	const struct memory_use *all = r->memory;
	const struct row row = { .r = r, .at = r };
	struct number n;
	int kinds = 0;
	page_heading(p, "Memory");
	struct table t = table_of_uses();
	for (int k = 0; k < MEMORY_KINDS; k++) {
		if (!all[k].allocs && !all[k].frees)
			continue;
		put_use(&t, &row, k == MEMORY_HOST ? "host, pinned" : memory_kind_name[k], &all[k]);
		kinds += k != MEMORY_HOST;
	}
	if (sum && kinds > 1)
		put_use(&t, &row, "all on the GPU", &r->gpu_memory);
	page_end_table(p, &t, 0);
	if (r->memory_detail && r->memory_detail->before_bytes)
		fprintf(p->out,
			"  %s of what is allocated here were live on the GPU before the %s began.\n",
			number_bytes(&n, r->memory_detail->before_bytes),
			r->trace->parts.n ? "part" : "recording");
	if (memory_is_of_segments(r))
		fputs("  PyTorch's allocator takes segments from the driver, which these blocks are, and "
		      "keeps them.\n  Its own blocks in them are in traces of torch.profiler with "
		      "profile_memory=True.\n",
			p->out);
}

/* The most that was live in each column. */
static uint64_t find_columns(const struct memory_detail *d, uint64_t column[MEMORY_COLUMNS])
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < MEMORY_POINTS; i++) {
		uint64_t *to = &column[i * MEMORY_COLUMNS / MEMORY_POINTS];
		*to = MAX(d->points[i].most, *to);
		most = MAX(*to, most);
	}
	return most;
}

/* How many eighths of the line `line`, counted from below, are filled. */
static unsigned fill_of(uint64_t value, uint64_t most, unsigned line)
{
	expect(value <= most && line < MEMORY_LINES, "a column is no higher than the chart");
	const __uint128_t all = (__uint128_t)value * MEMORY_LINES * 8 + most - 1;
	const unsigned eighths = (unsigned)(all / most), below = line * 8;
	return eighths <= below ? 0 : eighths - below < 8 ? eighths - below : 8;
}

void memory_put_lines(const struct report *r, const struct text_page *p, bool utf8, uint64_t most,
	memory_glyph *glyph, const void *columns)
{
	const struct memory_detail *d = r->memory_detail;
	struct number n, from, to;
	for (unsigned line = MEMORY_LINES; line-- > 0;) {
		unsigned last = MEMORY_COLUMNS;
		while (last && *glyph(columns, last - 1, most, line, utf8) == ' ')
			last--;
		const char *top = number_bytes(&n, most);
		fprintf(p->out, "  %10s %s",
			line == MEMORY_LINES - 1 ? top
			: line                   ? ""
						 : "0",
			utf8 ? "│" : "|");
		for (unsigned i = 0; i < last; i++)
			fputs(glyph(columns, i, most, line, utf8), p->out);
		putc('\n', p->out);
	}
	number_ns(&from, trace_since_ns(r->trace, d->first_ticks));
	number_ns(&to, trace_since_ns(r->trace, d->last_ticks));
	fprintf(p->out, "  %10s  %-*s%s\n", "", (int)(MEMORY_COLUMNS - strlen(to.text)), from.text,
		to.text);
}

static const char *block(const void *columns, unsigned i, uint64_t most, unsigned line, bool utf8)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	const unsigned fill = fill_of(((const uint64_t *)columns)[i], most, line);
	return utf8 ? blocks[fill] : fill > 4 ? "#" : fill ? "." : " ";
}

static void put_chart(const struct report *r, const struct text_page *p, bool utf8)
{
	uint64_t column[MEMORY_COLUMNS] = { 0 };
	const uint64_t most = find_columns(r->memory_detail, column);
	if (!most)
		return;
	page_heading(p, "Live on the GPU over time");
	memory_put_lines(r, p, utf8, most, block, column);
}

static void put_allocations(const struct report *r, const struct text_page *p)
{
	static const struct section *const sections[] = { &section_memory_by_call,
		&section_memory_by_size, &section_memory_by_thread, &section_memory_by_operator };
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		view_put(&(struct view){ .section = sections[i] }, r, p);
}

static void put_peak(const struct report *r, const struct text_page *p)
{
	struct number bytes, at, blocks, rate, pairs;
	const struct memory_detail *d = r->memory_detail;
	uint64_t n = 0;
	if (!d->peak_live)
		return;
	for (size_t i = 0; i < d->classes.n; i++)
		n += d->classes.v[i].at_peak;
	fprintf(p->out, "\n  peak    %s at %s, in %s\n", number_bytes(&bytes, d->peak_live),
		number_ns(&at, trace_since_ns(r->trace, d->peak_ticks)),
		number_of(&blocks, n, "block"));
	const double seconds = (double)(r->wall_ns - r->off_ns) / 1e9;
	if (seconds > 0)
		number_bytes(
			&rate, sat_from((double)(r->gpu_memory.allocated_bytes - d->before_bytes) /
					seconds));
	else
		snprintf(rate.text, sizeof rate.text, "-");
	fprintf(p->out, "  churn   %s/s allocated; %s came and went", rate.text,
		number_of(&pairs, d->matched, "block"));
	if (r->launches)
		fprintf(p->out, ", %.3g a launch", (double)d->matched / (double)r->launches);
	putc('\n', p->out);
}

static void put_spaces(const struct report *r, const struct text_page *p)
{
	struct number n;
	if (!view_put(&(struct view){ .section = &section_memory_space }, r, p))
		return;
	fprintf(p->out,
		"  %sFragmented: 1 - largest extent / free.  Addresses are those that the program got: "
		"whether a free\n  extent is backed by memory, and what the driver adds to a block, is not "
		"known."
		"%s\n",
		p->dim, p->plain);
	if (r->memory_detail->nowhere_bytes)
		fprintf(p->out,
			"  %sWhat was allocated before the trace began, %s, has no address and is left "
			"out.%s\n",
			p->dim, number_bytes(&n, r->memory_detail->nowhere_bytes), p->plain);
}

static void put_vmm(const struct report *r, const struct text_page *p)
{
	const struct memory_vmm *v = &r->memory_detail->vmm;
	if (v->reserved.most || v->mapped.most || v->backed.most || v->segments.most)
		view_put_object(&(struct view){ .section = &section_memory_details }, r, p);
}

#define MARK_NAME 100u

static void put_mark(const struct text_page *p, const struct memory_growth *g)
{
	const char *kernel = g->kernel ? text_kernel(g->kernel) : "an unknown kernel";
	struct text_short name;
	struct number n;
	if (g->mark == MARK_KERNEL)
		text_put_safe(p->out, text_short(&name, kernel, MARK_NAME));
	else
		fputs(number_bytes(&n, g->size), p->out);
}

/* "launch of f", "7 launches of f", "2 allocations of 1 KiB". */
static void put_period(const struct text_page *p, const struct memory_growth *g)
{
	const bool kernel = g->mark == MARK_KERNEL;
	const uint64_t marks = g->period ? g->period : g->stride;
	struct number n;
	if (marks > 1)
		fprintf(p->out, "%s ", number_count(&n, marks));
	fputs(kernel ? "launch" : "allocation", p->out);
	fputs(marks == 1 ? " of " : kernel ? "es of " : "s of ", p->out);
	put_mark(p, g);
	if (g->threads > 1)
		fprintf(p->out, " by one of %zu threads", g->threads);
}

#define GROWTH_UNCLEAR 0.5 /* as often down as up, or nearly */
#define GROWTH_CLEAR   0.8

void memory_put_growth(const struct report *r, const struct text_page *p)
{
	FILE *out = p->out;
	const struct memory_growth *g = &r->memory_detail->growth;
	struct number n;
	if (g->periods < GROWTH_PERIODS)
		return;
	const double bytes = g->bytes_a_period;
	const bool unclear = g->confidence < GROWTH_UNCLEAR;
	if (bytes > -1 && bytes < 1) {
		fputs("  growth  none: as much is live after each ", out);
		put_period(p, g);
		putc('\n', out);
		return;
	}
	fprintf(out, "  growth  %s%s%s each ", unclear ? "no clear trend: " : "",
		bytes < 0 ? "-" : "", number_bytes(&n, (uint64_t)(bytes < 0 ? -bytes : bytes)));
	put_period(p, g);
	fprintf(out, "\n          over %s %s, %sconfidence %.2f of 1%s\n",
		number_count(&n, g->periods),
		g->period ? "repetitions" : "of them, without a period",
		unclear ? "up and down, " : "", g->confidence,
		bytes > 0 && g->confidence >= GROWTH_CLEAR ? ": memory leaks, or is kept on purpose"
							   : "");
}

/* Why weir memory says nothing of growth. */
static void put_growth_unknown(const struct report *r, const struct text_page *p)
{
	const struct memory_growth *g = &r->memory_detail->growth;
	struct number n;
	if (g->periods >= GROWTH_PERIODS || !r->gpu_memory.allocs)
		return;
	fputs("  growth  not known: ", p->out);
	if (r->gpu_memory.counted) {
		fputs("allocations were only counted\n", p->out);
		return;
	}
	if (g->mark == MARK_NONE) {
		fputs("no kernel was launched, and no size allocated, 12 times or more, to count iterations by\n",
			p->out);
		return;
	}
	fprintf(p->out, "%s %s of ", number_count(&n, g->marks),
		g->mark == MARK_KERNEL ? "launches" : "allocations");
	put_mark(p, g);
	fprintf(p->out, ", by which iterations are counted, are fewer than %u iterations\n",
		GROWTH_PERIODS);
}

const char *memory_block_keys(const struct report *r)
{
	return r->memory_detail->stacks ? "bytes,address,at_ns,kind,name,called_by"
					: "bytes,address,at_ns,kind,name";
}

static void put_live(const struct report *r, const struct text_page *p)
{
	const struct view view = { .section = &section_memory_live,
		.heading = r->memory_detail->leaks_known ? "Largest blocks never freed"
							 : "Largest blocks whose free was not seen",
		.keys = memory_block_keys(r) };
	view_put(&view, r, p);
}

#define LIVE_FEW 5 /* the rest is what weir memory is for, or -n 0 */

void memory_put_short(const struct report *r, const struct text_page *p)
{
	const struct memory_detail *d = r->memory_detail;
	struct text_page few = *p;
	double share;
	if (!any_used(r))
		return;
	put_uses(r, p, false);
	put_peak(r, p);
	if (fragmentation_of(&d->at_peak[MEMORY_DEVICE].pages, &share))
		fprintf(p->out,
			"  free    %.1f %% of the free memory between blocks is outside of the largest free extent\n",
			share * 100);
	memory_put_growth(r, p);
	if (d->peak_live)
		fputs("  weir memory FILE shows more\n", p->out);
	few.rows = MIN(p->rows, LIVE_FEW);
	put_live(r, &few);
}

static void put_refusal(const struct report *r, const struct text_page *p, const char *which,
	const struct refusal *x)
{
	struct number at, asked, used, contexts;
	fprintf(p->out, "  %-7s  %s at %s, when %s were in use and %s of contexts\n", which,
		number_bytes(&asked, x->asked), number_ns(&at, trace_since_ns(r->trace, x->ticks)),
		number_bytes(&used, x->used), number_bytes(&contexts, x->contexts));
	for (uint32_t i = 0; i < x->holders; i++) {
		fprintf(p->out, "           %s had process %" PRIu32 ", ",
			number_bytes(&used, x->holder[i].bytes), x->holder[i].pid);
		text_put_safe(p->out, x->holder[i].program);
		putc('\n', p->out);
	}
}

static void put_refused(const struct report *r, const struct text_page *p)
{
	struct number quota, count, peak;
	struct refusals refused;
	memory_refusals(r, &refused);
	if (!refused.count)
		return;
	page_heading(p, "Refused by the quota");
	fprintf(p->out, "  %s refused; of a quota of %s, %s were live here at most\n",
		number_count(&count, refused.count), number_bytes(&quota, refused.first.quota),
		number_bytes(&peak, r->memory_detail->peak_live));
	put_refusal(r, p, "first", &refused.first);
	if (refused.count > 1)
		put_refusal(r, p, "largest", &refused.largest);
}

void memory_print_text(const struct report *r, FILE *out, unsigned rows, bool colour, bool utf8)
{
	const struct text_page p = text_page_of(out, rows, colour);
	const struct memory_vmm *v = &r->memory_detail->vmm;
	struct summary summary;
	if (!any_used(r) && !v->reserves && !v->segments.most) {
		fprintf(out, "No allocations were recorded.%s\n",
			r->operators.n ? "  In traces of torch.profiler they are with "
					 "profile_memory=True."
				       : "");
		put_refused(r, &p);
		return;
	}
	summary_make_memory(r, &summary);
	summary_put_text(&summary, out);
	for (size_t i = 0; i < r->warnings.n; i++) {
		fputs("warning: ", out);
		text_put_safe(out, r->warnings.v[i]);
		putc('\n', out);
	}
	put_uses(r, &p, true);
	put_chart(r, &p, utf8);
	put_peak(r, &p);
	put_refused(r, &p);
	memory_put_growth(r, &p);
	put_growth_unknown(r, &p);
	memory_put_unused(r, &p, utf8);
	memory_put_times(r, &p, utf8);
	put_allocations(r, &p);
	callers_put_memory(r, &p);
	put_spaces(r, &p);
	put_vmm(r, &p);
	put_live(r, &p);
}
