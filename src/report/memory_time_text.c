/* `weir memory` for people, the parts about time: how long calls for memory took, and what was
 * reserved without being live when. */
#include "report/memory_print.h"
#include "report/memory_sections.h"
#include "section/view.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/table.h"

#define CLASSES_MOST 24u /* characters of a histogram */

/* Classes of times that a histogram shows: those that any function has, several to a character
 * where there are many. */
struct scale {
	unsigned first, each, cells;
};

static struct scale find_scale(const struct report *r)
{
	const struct memory_time *t = &r->memory_detail->time;
	unsigned first = TIME_CLASSES - 1, last = 0;
	for (size_t i = 0; i < t->calls.n; i++) {
		struct time_classes c;
		memory_time_classes(r, t->calls.v[i].call, &c);
		first = MIN(c.first, first);
		last = MAX(c.last, last);
	}
	if (last < first)
		return (struct scale){ .each = 1 };
	const unsigned all = last - first + 1, each = (all + CLASSES_MOST - 1) / CLASSES_MOST;
	return (struct scale){ first, each, (all + each - 1) / each };
}

static void cell_histogram(struct table *t, const struct report *r, const struct call_row *c,
	const struct scale *s, bool utf8)
{
	struct time_classes classes;
	uint64_t cell[CLASSES_MOST] = { 0 }, most = 0;
	char text[4 * CLASSES_MOST + 1] = "";
	memory_time_classes(r, c, &classes);
	for (unsigned i = s->first; i < TIME_CLASSES && i < s->first + s->cells * s->each; i++)
		cell[(i - s->first) / s->each] += classes.count[i];
	for (unsigned i = 0; i < s->cells; i++)
		most = MAX(cell[i], most);
	for (unsigned i = 0; i < s->cells; i++) {
		const size_t n = strlen(text);
		snprintf(text + n, sizeof text - n, "%s", table_bar(cell[i], most, utf8));
	}
	table_cell(t, "%s", text);
}

static void put_call(struct table *t, const struct row *row, const struct column *const *columns,
	const struct scale *s, bool utf8)
{
	const struct call_row *c = ((const struct memory_call_time *)row->at)->call;
	const bool waits = c->memory_call == MEMORY_CALL_WAITS;
	struct fn_name room;
	for (size_t i = 0; columns[i]->unit != UNIT_LIST; i++) {
		const struct value v = column_get(columns[i], row);
		section_put_cell(t, columns[i], &v, &(struct cell_style){ .full = true });
	}
	cell_histogram(t, row->r, c, s, utf8);
	table_cell(t, "%s%s", report_fn_name(row->r, c->id, &room),
		waits ? " (waits for the GPU)" : "");
}

static void put_scale(const struct text_page *p, const struct scale *s)
{
	struct number from, to, each;
	const unsigned last = s->first + s->cells * s->each;
	if (!s->cells)
		return;
	fprintf(p->out,
		"  %sHistogram: calls by time, from %s to %s, each column a factor of %s; the highest of a "
		"row is full.%s\n",
		p->dim, number_ns(&from, s->first ? 1ull << s->first : 0),
		number_ns(&to, last < 64 ? 1ull << last : UINT64_MAX),
		number_count(&each, 1ull << s->each), p->plain);
}

static void put_calls(const struct report *r, const struct text_page *p, bool utf8)
{
	static const char *const keys[] = { "total_ns", "share_of_run", "count", "p50_ns", "p90_ns",
		"p99_ns", "max_ns", "histogram", "name" };
	const struct section *section = &section_allocation_calls;
	enum { KEYS = sizeof keys / sizeof *keys };
	const struct column *columns[KEYS];
	const struct scale scale = find_scale(r);
	struct rows rows;
	for (size_t i = 0; i < KEYS; i++)
		columns[i] = section_column(section, keys[i], strlen(keys[i]));
	page_heading(p, "Time in calls that allocate and free");
	struct table t = view_table(columns, KEYS);
	if (!section_open(section, r, &rows))
		for (size_t i = 0; i < page_shown(p, rows.n); i++) {
			const struct row row = row_at(&rows, i);
			put_call(&t, &row, columns, &scale, utf8);
		}
	page_end_table(p, &t, rows.n);
	section_close(&rows);
	put_scale(p, &scale);
}

void memory_put_times(const struct report *r, const struct text_page *p, bool utf8)
{
	const struct memory_time *m = &r->memory_detail->time;
	const double share = memory_time_share(r, NULL);
	struct number busy;
	if (!m->calls.n)
		return;
	put_calls(r, p, utf8);
	if (!isnan(share))
		fprintf(p->out, "  for %s, %.2f %% of the run, some thread was in such a call\n",
			number_ns(&busy, trace_span_ns(r->trace, m->busy_ticks)), share * 100);
}

struct instant {
	uint64_t reserved, live;
};

/* Each column its moment in which most was reserved and not live. */
static uint64_t find_columns(const struct memory_detail *d, struct instant column[MEMORY_COLUMNS])
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < MEMORY_POINTS; i++) {
		const struct memory_point *q = &d->points[i];
		struct instant *to = &column[i * MEMORY_COLUMNS / MEMORY_POINTS];
		if (!q->reserved_known || (to->reserved && q->unused <= to->reserved - to->live))
			continue;
		*to = (struct instant){ q->reserved, q->reserved - q->unused };
		most = MAX(q->reserved, most);
	}
	return most;
}

/* A character of the line stands for what lies above its middle. */
static const char *area(const void *columns, unsigned i, uint64_t most, unsigned line, bool utf8)
{
	const struct instant *c = (const struct instant *)columns + i;
	const __uint128_t middle = (__uint128_t)most * (2 * line + 1);
	if ((__uint128_t)c->live * 2 * MEMORY_LINES >= middle)
		return utf8 ? "█" : "#";
	if ((__uint128_t)c->reserved * 2 * MEMORY_LINES >= middle)
		return utf8 ? "░" : "-";
	return " ";
}

static void put_area(const struct report *r, const struct text_page *p, bool utf8)
{
	struct instant column[MEMORY_COLUMNS] = { 0 };
	memory_put_lines(r, p, utf8, find_columns(r->memory_detail, column), area, column);
	fprintf(p->out, "  %10s  %s live, %s reserved and not live\n", "", utf8 ? "█" : "#",
		utf8 ? "░" : "-");
}

static const char *const meaning[] = {
	[RESERVED_ALLOCATOR] = "Reserved is what the allocator said that it had from the driver.",
	[RESERVED_SEGMENTS] = "Reserved are the segments that the allocator had from the driver.",
	[RESERVED_PAGES] = "Reserved are pages of 2 MiB in which a block lies: they can't be given "
			   "back.  What the\n  driver or an allocator keeps besides is not known.",
};

static void put_worst(const struct report *r, const struct text_page *p)
{
	const struct memory_unused *u = &r->memory_detail->unused;
	const uint64_t unused = u->worst_reserved - u->worst_live;
	struct number a, b, at, blocks;
	fprintf(p->out, "\n  peak    %s reserved at %s, of which %s were live\n",
		number_bytes(&a, u->reserved_peak),
		number_ns(&at, trace_since_ns(r->trace, u->peak_ticks)),
		number_bytes(&b, u->peak_live));
	fprintf(p->out, "  worst   %s of %s reserved were not live (%.1f %%) at %s; %s %s live\n",
		number_bytes(&a, unused), number_bytes(&b, u->worst_reserved),
		(double)unused * 100 / (double)u->worst_reserved,
		number_ns(&at, trace_since_ns(r->trace, u->worst_ticks)),
		number_count(&blocks, u->worst_blocks.n),
		u->worst_blocks.n == 1 ? "block was" : "blocks were");
	fprintf(p->out, "  mean    %.1f %% of what was reserved was not live, over the time\n",
		u->unused_area * 100 / u->reserved_area);
	if (u->unknown_ticks)
		fprintf(p->out, "  unknown for %s of it\n",
			number_ns(&a, trace_span_ns(r->trace, u->unknown_ticks)));
	fprintf(p->out, "  %s%s%s\n", p->dim, meaning[u->source], p->plain);
	if (u->source == RESERVED_PAGES && memory_is_of_segments(r))
		fputs("  Live are whole segments of PyTorch's allocator: what it keeps in them unused is "
		      "not in this\n  recording, but in traces of torch.profiler with "
		      "profile_memory=True, which weir memory reads.\n",
			p->out);
}

#define BLOCKS_FEW 5u

void memory_put_unused(const struct report *r, const struct text_page *p, bool utf8)
{
	const struct memory_unused *u = &r->memory_detail->unused;
	struct text_page few = *p;
	if (!u->known || !u->reserved_peak)
		return;
	page_heading(p, "Reserved and not live over time");
	if (u->worst_reserved == u->worst_live) {
		fputs("  nothing: all that was reserved was live\n", p->out);
		return;
	}
	put_area(r, p, utf8);
	put_worst(r, p);
	const struct view view = { .section = &section_memory_worst,
		.heading = "Live at the worst moment",
		.keys = memory_block_keys(r) };
	few.rows = !p->rows || p->rows > BLOCKS_FEW ? BLOCKS_FEW : p->rows;
	view_put(&view, r, p->rows ? &few : p);
}
