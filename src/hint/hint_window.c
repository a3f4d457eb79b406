/*
 * Chooses the analysed time. Programs first do things once: they copy weights, compile code and
 * fill memory. The kernel with the most time marks the rest, from its first launch to its last.
 *
 * If less than half of the kernel time is there, everything counts. If the recording has steps, the
 * window is the whole steps with launches of that kernel, without warm-up.
 */
#include "hint/hint_facts.h"

#include "base/expect.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/tally.h"
#include "trace/steps.h"

#define LAUNCHES_LEAST 4u

static void count_kernels(struct hint_facts *f)
{
	for (size_t i = 0; i < f->kernels.n; i++)
		f->kernels.v[i].count = f->kernels.v[i].graph_count = f->kernels.v[i].total_ns = 0;
	array_each(const struct hint_activity, w, f->activities) {
		if (w->kernel == HINT_NONE)
			continue;
		if (!expect(w->kernel < f->kernels.n, "the kernel of an activity is one of all"))
			continue;
		struct hint_kernel *k = &f->kernels.v[w->kernel];
		k->count++;
		k->graph_count += w->in_graph;
		k->total_ns = sat_add(k->total_ns, w->end_ns - w->start_ns);
	}
}

static uint32_t main_kernel(const struct hint_facts *f)
{
	uint32_t best = HINT_NONE;
	for (uint32_t i = 0; i < f->kernels.n; i++) {
		const struct hint_kernel *k = &f->kernels.v[i];
		if (k->count >= LAUNCHES_LEAST &&
			(best == HINT_NONE || k->total_ns > f->kernels.v[best].total_ns))
			best = i;
	}
	return best;
}

/* Sums the kernels between two activities. */
static struct hint_outside sum_kernels(const struct hint_facts *f, size_t from, size_t to)
{
	struct hint_outside sum = { 0 };
	for (size_t i = from; i < to; i++) {
		const struct hint_activity *w = &f->activities.v[i];
		if (w->kernel == HINT_NONE)
			continue;
		sum.kernels++;
		sum.kernels_ns = sat_add(sum.kernels_ns, w->end_ns - w->start_ns);
	}
	return sum;
}

/* When an activity was asked for, as far as that is known. */
static uint64_t asked_ns(const struct hint_facts *f, const struct hint_activity *w)
{
	return w->call == HINT_NONE ? w->start_ns : f->calls.v[w->call].begin_ns;
}

struct range_of { /* of activities, of steps */
	size_t from, to;
};

/* The step in which that was, or the one before it; 0 for what was before all. */
static size_t step_at(const struct trace *t, const struct steps *s, uint64_t ns)
{
	const size_t behind = SEARCH(i, 0, s->v.n, trace_ns(t, s->v.v[i].from) <= ns);
	return behind ? behind - 1 : 0;
}

/* The steps from the first launch of the main kernel to its last. */
static struct range_of steps_of(
	const struct hint_facts *f, const struct steps *s, const struct range_of *w)
{
	const struct trace *t = f->report->trace;
	const uint64_t first = asked_ns(f, &f->activities.v[w->from]),
		       last = asked_ns(f, &f->activities.v[w->to - 1]);
	return (struct range_of){ step_at(t, s, first), step_at(t, s, last) + 1 };
}

/* The steps that may count: how long each takes, how many activities it has, and room to sort.
 */
struct measured {
	uint64_t *length, *count, *room;
	size_t n;
};

static bool most_are_usual(const uint64_t *v, size_t n, uint64_t *room)
{
	size_t usual = 0;
	memcpy(room, v, n * sizeof *room);
	qsort(room, n, sizeof *room, order_u64);
	for (size_t i = 0; i < n; i++)
		usual += step_is_usual(v[i], room[n / 2]);
	return 3 * usual >= 2 * n;
}

/* From when the step before had ended on the devices until this one has: the host may be far ahead.
 */
static void measure_steps(const struct hint_facts *f, const struct steps *s,
	const struct range_of *kept, struct measured *m)
{
	const struct trace *t = f->report->trace;
	uint64_t before = trace_ns(t, s->v.v[kept->from].from);
	array_each(const struct hint_activity, w, f->activities) {
		const size_t step = step_at(t, s, asked_ns(f, w));
		if (step < kept->from) {
			before = MAX(w->end_ns, before);
		} else if (step < kept->to) {
			uint64_t *end = &m->length[step - kept->from];
			*end = MAX(w->end_ns, *end);
			m->count[step - kept->from]++;
		}
	}
	for (size_t i = 0; i < m->n; i++) {
		const uint64_t end = MAX(m->length[i], before);
		m->length[i] = end - before;
		before = end;
	}
}

/* If waits alone tell steps apart, the steps must do about as much: a loop that waits in two places
 * has two kinds. */
static size_t warm_up_of(const struct measured *m, enum steps_found found, bool *ret_alike)
{
	const bool waits = found == STEPS_WAITS || found == STEPS_KERNELS;
	const size_t by_length = steps_unusual(m->length, m->n, m->room),
		     by_count = waits ? steps_unusual(m->count, m->n, m->room) : 0;
	const size_t warm = MAX(by_length, by_count);
	*ret_alike = !waits || (most_are_usual(m->length + warm, m->n - warm, m->room) &&
				       most_are_usual(m->count + warm, m->n - warm, m->room));
	return warm;
}

static void drop_warm_up(
	const struct hint_facts *f, const struct steps *s, struct range_of *kept, bool *ret_alike)
{
	const size_t n = kept->to - kept->from;
	uint64_t *v = xcalloc(3 * n, sizeof *v);
	struct measured m = { .length = v, .count = v + n, .room = v + 2 * n, .n = n };
	measure_steps(f, s, kept, &m);
	kept->from += warm_up_of(&m, s->found, ret_alike);
	free(v);
}

/* The activities from the first that was asked for in the steps to the last. */
static struct range_of activities_of(
	const struct hint_facts *f, const struct steps *s, const struct range_of *kept)
{
	const struct trace *t = f->report->trace;
	const uint64_t from_ns = trace_ns(t, s->v.v[kept->from].from);
	uint64_t to_ns = 0;
	struct range_of r = { 0, f->activities.n };
	for (size_t i = kept->from; i < kept->to; i++)
		to_ns = MAX(s->v.v[i].to, to_ns);
	to_ns = trace_ns(t, to_ns);
	while (r.from < r.to && (asked_ns(f, &f->activities.v[r.from]) < from_ns ||
					asked_ns(f, &f->activities.v[r.from]) >= to_ns))
		r.from++;
	while (r.from < r.to && (asked_ns(f, &f->activities.v[r.to - 1]) < from_ns ||
					asked_ns(f, &f->activities.v[r.to - 1]) >= to_ns))
		r.to--;
	return r;
}

static void put_steps(
	struct hint_window *to, const struct steps *s, const struct range_of *kept, bool alike)
{
	*to = (struct hint_window){ .first = UINT64_MAX, .alike = alike };
	for (size_t i = kept->from; i < kept->to; i++) {
		const uint64_t number = s->v.v[i].number;
		to->first = number < to->first ? number : to->first;
		to->last = number > to->last ? number : to->last;
	}
	/* Processes that take the same step are at one. */
	to->steps = to->last - to->first < kept->to - kept->from ? to->last - to->first + 1
								 : kept->to - kept->from;
}

/* Makes of the launches of the main kernel whole steps, if there are any. */
static int widen_to_steps(struct hint_facts *f, struct range_of *w)
{
	struct steps s;
	int e = steps_load(f->report->trace, &f->report->meta, NULL, &s);
	if (!e && s.v.n > 1) {
		struct range_of kept = steps_of(f, &s, w);
		bool alike;
		drop_warm_up(f, &s, &kept, &alike);
		const struct range_of whole = activities_of(f, &s, &kept);
		if (whole.to - whole.from >= LAUNCHES_LEAST) {
			*w = whole;
			put_steps(&f->window, &s, &kept, alike);
		}
	}
	steps_fini(&s);
	return e;
}

static uint64_t last_end(const struct hint_facts *f, size_t from, size_t to)
{
	uint64_t last = 0;
	for (size_t i = from; i < to; i++)
		last = MAX(f->activities.v[i].end_ns, last);
	return last;
}

/* A step begins when the one before has ended. */
static void measure(struct hint_facts *f, const struct range_of *w)
{
	const uint64_t start = f->report->trace->header.start.mono_ns;
	const uint64_t end = start + f->report->wall_ns, first = f->activities.v[w->from].start_ns,
		       before = f->window.steps ? last_end(f, 0, w->from) : 0,
		       last = last_end(f, w->from, w->to);
	f->window.from_ns = before && before < first ? before : first;
	f->window.ns = last - f->window.from_ns;
	f->before = sum_kernels(f, 0, w->from);
	f->after = sum_kernels(f, w->to, f->activities.n);
	f->before.ns = f->window.from_ns > start ? f->window.from_ns - start : 0;
	f->after.ns = end > last ? end - last : 0;
}

static struct range_of launches_of(const struct hint_facts *f, uint32_t kernel)
{
	struct range_of w = { 0, f->activities.n };
	while (w.from < w.to && f->activities.v[w.from].kernel != kernel)
		w.from++;
	while (w.from < w.to && f->activities.v[w.to - 1].kernel != kernel)
		w.to--;
	return w;
}

/* Whether more than that is outside. */
static bool is_less_than_half(const struct hint_facts *f, const struct range_of *w)
{
	return sum_kernels(f, w->from, w->to).kernels_ns <
	       sum_kernels(f, 0, w->from).kernels_ns +
		       sum_kernels(f, w->to, f->activities.n).kernels_ns;
}

static int choose(struct hint_facts *f, uint32_t kernel, struct range_of *w)
{
	*w = launches_of(f, kernel);
	if (!expect(w->to - w->from >= LAUNCHES_LEAST,
		    "the kernel that takes most time ran that often"))
		return 0;
	if (is_less_than_half(f, w)) {
		*w = (struct range_of){ 0, f->activities.n };
		return 0;
	}
	f->window.kernel = f->kernels.v[kernel].name;
	return widen_to_steps(f, w);
}

int facts_window(struct hint_facts *f)
{
	count_kernels(f);
	const uint32_t kernel = main_kernel(f);
	struct range_of w = { 0, f->activities.n };
	const int e = kernel == HINT_NONE ? 0 : choose(f, kernel, &w);
	if (e || !f->activities.n)
		return e;
	measure(f, &w);
	memmove(f->activities.v, f->activities.v + w.from,
		(w.to - w.from) * sizeof *f->activities.v);
	f->activities.n = w.to - w.from;
	count_kernels(f);
	return 0;
}
