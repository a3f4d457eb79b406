/*
 * Calls marked `gate` in api/cuda.tbl pass the gate before they put work on a device, recorded or
 * not. Calls marked `settles` tell it when work is done.
 *
 * While nobody shares, the gate is one look at a word that each wrapper reads
 * anyway. sched/sched.h describes the regulation behind that word. The gate may wait for a bounded
 * time and leaves errno alone. Calls that only CUPTI reports (inject.h) do not pass it.
 */
#ifndef WEIR_HOOK_CORE_GATE_H
#define WEIR_HOOK_CORE_GATE_H

#include "base/atomic.h"
#include "cuda_types.h"
#include "hook/core/process.h"
#include "hook/sched/sched.h"

static inline bool gate_is_open(void)
{
	return __builtin_expect(!load_relaxed(&hook_hot.gate), 1);
}

/* One call on its way, in the wrapper's frame: where it goes, and that nothing is to be done behind
 * it. */
static inline void gate_begin(struct gated *g, void *stream)
{
	g->entered = false;
	g->work = NULL;
	g->lane = NULL;
	g->stream = stream;
}

static inline void gate_kernel(struct gated *g, const void *function, void *stream, int per_thread,
	uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
	uint32_t shared, bool plain)
{
	gate_begin(g, stream);
	if (gate_is_open() ||
		sched_counts_only(g, stream, per_thread, (uint64_t)gx * gy * gz, function))
		return;
	sched_kernel(g, &(struct sched_launch){ .what = function,
				.stream = stream,
				.per_thread = per_thread,
				.grid = { gx, gy, gz },
				.block = { bx, by, bz },
				.shared = shared,
				.plain = plain });
}

/* Where the stream of the configuration is replaced, ret_copy is passed on in its place. */
static inline const struct cu_launch_config *gate_config(struct gated *g, const void *function,
	const struct cu_launch_config *c, int per_thread, struct cu_launch_config *ret_copy)
{
	gate_begin(g, NULL);
	if (gate_is_open() || !c)
		return c;
	gate_kernel(g, function, c->stream, per_thread, c->grid_x, c->grid_y, c->grid_z, c->block_x,
		c->block_y, c->block_z, c->shared_bytes, !(c->attrs && c->attr_count));
	if (g->stream == c->stream)
		return c;
	*ret_copy = *c;
	ret_copy->stream = g->stream;
	return ret_copy;
}

/* A graph, a copy, or what else has no shape; bytes: of copies. */
static inline void gate_other(
	struct gated *g, const void *what, void *stream, int per_thread, uint64_t bytes)
{
	gate_begin(g, stream);
	if (!gate_is_open() && !sched_counts_only(g, stream, per_thread, 0, what))
		sched_other(g, &(struct sched_launch){ .what = what,
				       .stream = stream,
				       .per_thread = per_thread,
				       .bytes = bytes });
}

/* The driver has answered: what was sent to another stream is joined to its own. */
static inline void gate_returned(const struct gated *g)
{
	if (__builtin_expect(g->lane != NULL, 0))
		sched_joined(g);
}

/* And what else is to be done. */
static inline void gate_passed(struct gated *g, int result)
{
	if (__builtin_expect(g->entered || (result && g->work), 0))
		sched_passed(g, result);
}

/* Before a call that returns when work is done; with both, the event is recorded there. */
static inline void gate_settling(
	struct settling *s, enum settles what, void *event, void *stream, int per_thread)
{
	s->what = SETTLES_NOTHING;
	if (!gate_is_open())
		sched_settling(s, what, event, stream, per_thread);
}

static inline void gate_settled(const struct settling *s, int result)
{
	if (__builtin_expect(s->what != SETTLES_NOTHING, 0) && !result)
		sched_settled(s);
}

/* Before cuInit(): the driver may be another than it was. */
static inline void gate_driver_begins(void)
{
	if (!gate_is_open())
		sched_driver_begins();
}

/* Handles of kernels may be given out anew. */
static inline void gate_module_ends(void)
{
	if (!gate_is_open())
		sched_module_ends();
}

#endif
