/*
 * The analysed time: see hint_facts.h.  Programs begin with what they do once: weights are
 * copied, code is compiled, memory is filled.  The kernel that takes most time marks where the rest
 * is: from its first launch to its last.  When less than half of all that kernels do is there, all
 * counts.
 */
#include "hint/hint_facts.h"

#include <string.h>

#include "model/tally.h"

#include "base/expect.h"

#include "base/banned.h"

#define LAUNCHES_LEAST 4u

static void count_kernels(struct hint_facts *f)
{
	for (size_t i = 0; i < f->kernels.n; i++)
		f->kernels.v[i].count = f->kernels.v[i].graph_count = f->kernels.v[i].total_ns = 0;
	for (size_t i = 0; i < f->activities.n; i++) {
		const struct hint_activity *w = &f->activities.v[i];
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

/* What kernels did between two activities. */
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

/* How long it is until the first of them, and from the end of the last. */
static void measure_ends(struct hint_facts *f, size_t from, size_t to)
{
	const uint64_t start = f->report->trace->header.start.mono_ns;
	const uint64_t end = start + f->report->wall_ns, first = f->activities.v[from].start_ns;
	uint64_t last = first;
	for (size_t i = from; i < to; i++)
		last = f->activities.v[i].end_ns > last ? f->activities.v[i].end_ns : last;
	f->before.ns = first > start ? first - start : 0;
	f->after.ns = end > last ? end - last : 0;
}

void facts_window(struct hint_facts *f)
{
	count_kernels(f);
	const uint32_t kernel = main_kernel(f);
	size_t from = 0, to = f->activities.n;
	if (kernel == HINT_NONE)
		return;
	while (from < to && f->activities.v[from].kernel != kernel)
		from++;
	while (from < to && f->activities.v[to - 1].kernel != kernel)
		to--;
	if (!expect(to - from >= LAUNCHES_LEAST, "the kernel that takes most time ran that often"))
		return;
	f->before = sum_kernels(f, 0, from);
	f->after = sum_kernels(f, to, f->activities.n);
	if (sum_kernels(f, from, to).kernels_ns < f->before.kernels_ns + f->after.kernels_ns) {
		f->before = f->after = (struct hint_outside){ 0 };
		return;
	}
	measure_ends(f, from, to);
	memmove(f->activities.v, f->activities.v + from, (to - from) * sizeof *f->activities.v);
	f->activities.n = to - from;
	count_kernels(f);
}
