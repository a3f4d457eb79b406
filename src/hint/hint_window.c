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

static uint64_t kernels_ns(const struct hint_facts *f, size_t from, size_t to)
{
	uint64_t ns = 0;
	for (size_t i = from; i < to; i++)
		if (f->activities.v[i].kernel != HINT_NONE)
			ns = sat_add(ns, f->activities.v[i].end_ns - f->activities.v[i].start_ns);
	return ns;
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
	if (kernels_ns(f, from, to) < kernels_ns(f, 0, f->activities.n) / 2)
		return;
	memmove(f->activities.v, f->activities.v + from, (to - from) * sizeof *f->activities.v);
	f->activities.n = to - from;
	count_kernels(f);
}
