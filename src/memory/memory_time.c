/*
 * Measures the time of calls that allocate or free, and the part of the run in which some thread
 * was in one. That part is the union of their times, because threads overlap and runtime calls
 * contain driver calls.
 */
#include "memory/memory.h"

#include "base/expect.h"
#include "base/sort.h"

ORDERING(span_order, struct call_span, ORDER(a->start_ticks, b->start_ticks),
	ORDER(a->end_ticks, b->end_ticks))

/* The union of those of one function, or of all; they are sorted. */
static uint64_t covered(const struct call_span *v, size_t n, const struct call_row *of)
{
	uint64_t sum = 0, until = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t from = MAX(v[i].start_ticks, until);
		if (v[i].end_ticks <= from || (of && v[i].fn_id != of->id))
			continue;
		sum += v[i].end_ticks - from;
		until = v[i].end_ticks;
	}
	return sum;
}

static void find_busy(struct memory_time *t, const struct memory_list *lists, unsigned count)
{
	size_t n = 0, at = 0;
	for (unsigned i = 0; i < count; i++)
		n += lists[i].span_count;
	struct call_span *all = xcalloc(n + 1, sizeof *all);
	for (unsigned i = 0; i < count; i++) {
		if (lists[i].span_count)
			memcpy(all + at, lists[i].spans, lists[i].span_count * sizeof *all);
		at += lists[i].span_count;
	}
	qsort(all, n, sizeof *all, span_order);
	t->busy_ticks = covered(all, n, NULL);
	for (size_t i = 0; i < t->calls.n; i++)
		t->calls.v[i].busy_ticks = covered(all, n, t->calls.v[i].call);
	free(all);
}

void memory_time_fill(struct report *r, const struct memory_list *lists, unsigned count)
{
	struct memory_time *t = &r->memory_detail->time;
	array_each(const struct call_row, c, r->call_rows) {
		if (!c->memory_call)
			continue;
		*array_push(&t->calls) = (struct memory_call_time){ .call = c };
		t->count = sat_add(t->count, c->count);
		t->timed += c->timed;
	}
	find_busy(t, lists, count);
}

double memory_time_share(const struct report *r, const struct memory_call_time *row)
{
	const struct memory_time *t = &r->memory_detail->time;
	const uint64_t busy = row ? row->busy_ticks : t->busy_ticks;
	if (row ? row->call->timed < row->call->count : t->timed < t->count)
		return NAN;
	/* Clocks that differ a little must not make more of a call that took all of the run. */
	return r->wall_ns ? fmin((double)trace_span_ns(r->trace, busy) / (double)r->wall_ns, 1)
			  : NAN;
}

void memory_time_classes(
	const struct report *r, const struct call_row *c, struct time_classes *ret_classes)
{
	uint64_t value, times, sum = 0;
	unsigned at = 0;
	*ret_classes = (struct time_classes){ .first = TIME_CLASSES - 1 };
	while (hist_next(&c->hist, &at, &value, &times)) {
		const uint64_t ns = trace_span_ns(r->trace, value);
		const unsigned class = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;
		ret_classes->count[class] += times;
		ret_classes->first = MIN(class, ret_classes->first);
		ret_classes->last = MAX(class, ret_classes->last);
		sum += times;
	}
	expect(sum == c->hist.count, "the histogram has each call that was timed");
}
