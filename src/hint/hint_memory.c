/* Rules about copies, and about memory that is never freed or in pieces. */
#include "hint_rules.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/number.h"
#include "base/text.h"
#include "base/xmalloc.h"
#include "memory/memory.h"
#include "trace/activity.h"

#define PAGED_LEAST_BYTES (64u << 10) /* a copy below is staged without much loss */

struct copied {
	uint64_t count, bytes, alone_ns, total_ns;
};

static bool is_paged(const struct hint_activity *w, uint8_t what)
{
	return w->what == what &&
	       (w->from == MEMORY_KIND_PAGEABLE || w->to == MEMORY_KIND_PAGEABLE);
}

static struct copied sum_paged(const struct hint_facts *f, uint8_t what)
{
	struct copied c = { 0 };
	array_each(const struct hint_activity, w, f->activities) {
		if (w->kind != GPU_MEMCPY || !is_paged(w, what) || w->bytes < PAGED_LEAST_BYTES)
			continue;
		c.count++;
		c.bytes += w->bytes;
		c.alone_ns += w->alone_ns;
		c.total_ns += w->end_ns - w->start_ns;
	}
	return c;
}

/* Bytes a nanosecond of pinned copies: the best in this trace, else what the device's bus gives
 * (PCIe 3 to 5, sixteen lanes, measured rates). */
static double pinned_rate(const struct hint_facts *f, uint8_t what)
{
	double best = 0;
	array_each(const struct hint_activity, w, f->activities) {
		const uint64_t ns = w->end_ns - w->start_ns;
		if (w->kind != GPU_MEMCPY || w->what != what || w->bytes < 1u << 20 || !ns ||
			(w->from != MEMORY_KIND_PINNED && w->to != MEMORY_KIND_PINNED))
			continue;
		best = fmax(best, (double)w->bytes / (double)ns);
	}
	const struct hint_device *d = f->devices.n ? &f->devices.v[0] : NULL;
	const unsigned major = d && d->limits ? d->limits->major : 8;
	return best > 0 ? best : major >= 9 ? 55 : major == 8 ? 24 : 12;
}

/* All idle gaps of that cause, if there are copies in one direction only. */
static uint64_t staging_ns(const struct hint_facts *f, uint8_t what)
{
	const uint8_t other = what == COPY_HTOD ? COPY_DTOH : COPY_HTOD;
	return sum_paged(f, other).count ? 0 : f->idle_gaps[GAP_COPY].ns;
}

static void paged(
	const struct hint_facts *f, uint8_t what, const struct hint_rule *rule, struct hints *to)
{
	const struct copied c = sum_paged(f, what);
	struct number bytes, rate, fast;
	if (!c.count || !c.total_ns)
		return;
	const double pinned = pinned_rate(f, what), ideal = (double)c.bytes / pinned;
	const double saved = (double)c.alone_ns + (double)staging_ns(f, what) - ideal;
	if (saved < 0.2 * (double)c.alone_ns)
		return;
	const double now = (double)c.bytes * 1e9 / (double)c.total_ns;
	hint_add(to, rule, facts_share(f, saved), 0.8,
		xasprintf("%llu copies %s, %s", (unsigned long long)c.count,
			copy_direction_name(what), number_bytes(&bytes, c.bytes)),
		xasprintf("memory that is not pinned is copied at %s/s. Pinned memory would take "
			  "%.0f %% of that time (%s/s)",
			number_bytes(&rate, hint_u64(now)), 100 * ideal / (double)c.total_ns,
			number_bytes(&fast, hint_u64(pinned * 1e9))));
}

HINT_RULE(pageable)
{
	paged(f, COPY_HTOD, rule, to);
	paged(f, COPY_DTOH, rule, to);
}

#define COPIES_LEAST 10u

struct loop_copies { /* copies that stand between kernels and cover nothing */
	struct copied sum;
	uint64_t same; /* from the same address as the one before */
	uint64_t last_from;
	bool after_kernel;
};

static void add_copy(
	const struct hint_facts *f, const struct hint_activity *w, struct loop_copies *l)
{
	const uint64_t from = w->call == HINT_NONE ? 0 : f->calls.v[w->call].from;
	if (!l->after_kernel)
		return;
	l->after_kernel = false;
	l->sum.count++;
	l->sum.bytes += w->bytes;
	l->sum.alone_ns += w->alone_ns;
	l->same += from && from == l->last_from;
	l->last_from = from;
}

static struct loop_copies sum_loop(const struct hint_facts *f, uint8_t what)
{
	struct loop_copies l = { 0 };
	array_each(const struct hint_activity, w, f->activities) {
		if (w->kind == GPU_KERNEL)
			l.after_kernel = true;
		else if (w->kind == GPU_MEMCPY && w->what == what &&
			 w->from != MEMORY_KIND_PAGEABLE && w->to != MEMORY_KIND_PAGEABLE)
			add_copy(f, w, &l);
	}
	return l;
}

static void loop_copies(
	const struct hint_facts *f, uint8_t what, const struct hint_rule *rule, struct hints *to)
{
	const struct loop_copies l = sum_loop(f, what);
	const double gain = facts_share(f, (double)l.sum.alone_ns);
	struct number bytes, time;
	if (l.sum.count < COPIES_LEAST || gain < 0.1)
		return;
	expect(l.same <= l.sum.count, "copies of the same memory are part of all");
	const bool same = l.same * 10 >= l.sum.count * 8;
	hint_add(to, rule, gain, same ? 0.7 : 0.5,
		xasprintf("%llu copies %s between kernels, %s", (unsigned long long)l.sum.count,
			copy_direction_name(what),
			l.sum.bytes ? number_bytes(&bytes, l.sum.bytes) : "of unknown size"),
		xasprintf("nothing else runs meanwhile, for %s (%.0f %% of the analysed time)%s",
			number_ns(&time, l.sum.alone_ns), 100 * gain,
			same ? ". They copy the same host memory again and again" : ""));
}

HINT_RULE(copies)
{
	loop_copies(f, COPY_HTOD, rule, to);
	loop_copies(f, COPY_DTOH, rule, to);
}

#define GROWTH_SURE   0.9
#define EXTENTS_LEAST 0.2 /* free bytes, of those that are live */
#define PIECES_LEAST  0.8

/* The row of which each iteration leaves something, and most in all: what is large may be there
 * from the beginning.  NULL: there is none. */
static const struct memory_row *growing(const struct memory_rows *rows, uint64_t periods)
{
	const struct memory_row *most = NULL;
	array_each(const struct memory_row, row, *rows)
		if (row->live >= periods / 2 && (!most || row->live_bytes > most->live_bytes))
			most = row;
	return most;
}

HINT_RULE(leak)
{
	const struct memory_detail *d = f->report->memory_detail;
	struct number a, b;
	/* Counted by allocations, whatever is built up once would be growth. */
	if (!d || d->growth.mark != MARK_KERNEL || d->growth.periods < GROWTH_PERIODS ||
		d->growth.bytes_a_period < 1 || d->growth.confidence < GROWTH_SURE)
		return;
	const struct memory_growth *g = &d->growth;
	const double grown = g->bytes_a_period * (double)g->periods;
	if (grown < 0.01 * (double)f->report->gpu_memory.peak_bytes)
		return;
	struct fn_name room;
	struct text_short name;
	const struct report *r = f->report;
	char who[512];
	const struct memory_row *call = growing(&d->calls, g->periods),
				*stack = growing(&d->callers, g->periods);
	hint_add(to, rule, NAN, g->confidence,
		xasprintf("memory on the GPU, allocated by %s%s",
			call ? report_fn_name(r, (uint32_t)call->key, &room) : "several calls",
			stack ? facts_stack(r, (uint32_t)stack->key, who, sizeof who) : ""),
		xasprintf("%s more are live after each iteration (over %llu iterations, "
			  "counted by launches of %s). At the end %s were live",
			number_bytes(&a, hint_u64(g->bytes_a_period)),
			(unsigned long long)g->periods,
			g->kernel ? text_short(&name, text_kernel(g->kernel), 80) : "a kernel",
			number_bytes(&b, f->report->gpu_memory.live_bytes)));
}

HINT_RULE(fragmentation)
{
	const struct memory_detail *d = f->report->memory_detail;
	/* At the peak: what has pieces afterwards, when there is room, keeps nobody out. */
	const struct memory_space *s = d ? &d->at_peak[MEMORY_DEVICE] : NULL;
	double share = 0;
	struct number a, b, c;
	if (!s || !s->used || !fragmentation_of(&s->pages, &share) || share < PIECES_LEAST)
		return;
	if ((double)s->pages.free_bytes < EXTENTS_LEAST * (double)s->live_bytes ||
		s->pages.free_bytes < 16u << 20)
		return;
	/* Blocks whose place no trace says may lie in what seems free. */
	if (2 * d->nowhere_bytes > s->pages.free_bytes)
		return;
	/* Free extents that nobody made by freeing are the rest of the driver's pages. */
	const struct memory_use *u = &f->report->memory[MEMORY_DEVICE];
	expect(share <= 1 && s->pages.largest_bytes <= s->pages.free_bytes,
		"one free extent is part of all");
	if (u->allocated_bytes - u->live_bytes < s->pages.free_bytes / 2)
		return;
	hint_add(to, rule, NAN, 0.6, xasprintf("memory on the GPU, at its peak"),
		xasprintf("%s are free between %s that are live, in %llu free extents, the largest "
			  "of %s (fragmentation %.2f)",
			number_bytes(&a, s->pages.free_bytes), number_bytes(&b, s->live_bytes),
			(unsigned long long)s->pages.count,
			number_bytes(&c, s->pages.largest_bytes), share));
}
