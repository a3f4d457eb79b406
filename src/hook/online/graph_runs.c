/* Remembers the kernels of executable graphs and assembles one launch from the kernels that ran. */
#include "hook/online/graph_runs.h"

#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "hook/core/pages.h"
#include "hook/core/slots.h"

#define SLOTS  1024u
#define WINDOW 8u
#define RUNS   64u

static struct {
	_Atomic uint64_t exec[SLOTS], signature[SLOTS];
} graphs OWN_PAGES;
static const struct slots slots = { graphs.exec, SLOTS, WINDOW, memory_order_acquire,
	memory_order_acq_rel };

static struct graph_run runs[RUNS];
static uint32_t next_run;

uint64_t graphs_signature(uint64_t sum)
{
	return sum ? hash_mix(~sum) | 1 : 0;
}

/* In a full window the first graph is given up. */
static uint32_t make_slot(uint64_t exec)
{
	const uint32_t first = (uint32_t)hash_mix(exec);
	bool new;
	const uint32_t at = slots_claim(slots, first, exec, &new);
	if (at != SLOTS_NONE)
		return at;
	store_release(&graphs.signature[first % SLOTS], 0);
	store_release(&graphs.exec[first % SLOTS], exec);
	return first % SLOTS;
}

static uint32_t find_slot(uint64_t exec)
{
	return slots_find(slots, (uint32_t)hash_mix(exec), exec);
}

void graphs_set(uint64_t exec, uint64_t signature)
{
	const uint32_t at = signature ? make_slot(exec) : find_slot(exec);
	if (at != SLOTS_NONE)
		store_release(&graphs.signature[at], signature);
}

uint64_t graphs_find(uint64_t exec)
{
	const uint32_t at = find_slot(exec);
	return at != SLOTS_NONE ? load_acquire(&graphs.signature[at]) : 0;
}

static struct graph_run *run_of(uint64_t correlation)
{
	for (uint32_t i = 0; i < RUNS; i++)
		if (runs[i].correlation == correlation)
			return &runs[i];
	struct graph_run *oldest = &runs[next_run++ % RUNS];
	*oldest = (struct graph_run){ .correlation = correlation, .from_ns = UINT64_MAX };
	return oldest;
}

void graphs_add(const struct gpu_activity *w, uint64_t signature)
{
	if (!(w->valid & GPU_HAS_CORRELATION) || !w->correlation)
		return;
	struct graph_run *r = run_of(w->correlation);
	r->from_ns = w->start_ns < r->from_ns ? w->start_ns : r->from_ns;
	r->to_ns = w->end_ns > r->to_ns ? w->end_ns : r->to_ns;
	r->sum += signature;
	r->device = w->device;
}

struct graph_run *graphs_next(uint32_t *at)
{
	while (*at < RUNS) {
		struct graph_run *r = &runs[(*at)++];
		if (r->correlation)
			return r;
	}
	return NULL;
}

void graphs_forget(void)
{
	DROP(graphs);
	memset(runs, 0, sizeof runs);
}
