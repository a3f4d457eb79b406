/*
 * Weights of a flame graph of samples. A stack's weight is its timed time multiplied by the
 * kernel's launches and divided by its samples.
 */
#include "flame/flame.h"

#include <string.h>

#include "base/check.h"
#include "base/expect.h"
#include "model/report.h"

/* How many launches one that was timed stands for. */
static double factor_of(const struct report *r, const char *name)
{
	array_each(const struct activity_row, w, r->activities) {
		const bool launched = w->kind == GPU_KERNEL || w->kind == GPU_GRAPH;
		if (launched && w->hist.count && !strcmp(w->name, name))
			return (double)w->launched / (double)w->hist.count;
	}
	return (double)r->sampled;
}

void flame_estimate(struct flame *f, const struct report *r)
{
	if (!f->by_device || !r->sampled)
		return;
	f->sampled = r->sampled;
	double *factor = xcalloc(f->names.n + 1, sizeof *factor); /* 0: not asked for yet */
	array_each(struct flame_node, n, f->nodes) {
		n->total_ns = 0;
		if (n->kind != FRAME_KERNEL)
			continue;
		expect(n->name < f->names.n, "the name of a frame is one of all");
		double once = factor[n->name];
		if (once <= 0)
			once = factor_of(r, f->names.v[n->name]);
		factor[n->name] = once;
		n->self_ns = sat_from((double)n->self_ns * once + 0.5);
		n->count = sat_from((double)n->count * once + 0.5);
	}
	free(factor);
	flame_finish(f);
}
