/* See graph_runs.h. */
#include "hook/online/graph_runs.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "hook/pages.h"

#define SLOTS  1024u
#define WINDOW 8u
#define RUNS   64u

static struct slot {
	uint64_t exec, signature;
} slots[SLOTS] OWN_PAGES;

static struct graph_run runs[RUNS];
static uint32_t next_run;

uint64_t graphs_signature(uint64_t sum)
{
	return sum ? hash_mix(~sum) | 1 : 0;
}

/* The graph's slot, else a free one made its own, else the first of the window. */
static struct slot *slot_of(uint64_t exec, bool make)
{
	const uint64_t first = hash_mix(exec);
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct slot *s = &slots[(first + i) % SLOTS];
		uint64_t seen = 0;
		if (__atomic_load_n(&s->exec, __ATOMIC_ACQUIRE) == exec)
			return s;
		if (make && __atomic_compare_exchange_n(&s->exec, &seen, exec, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return s;
	}
	return make ? &slots[first % SLOTS] : NULL;
}

void graphs_set(uint64_t exec, uint64_t signature)
{
	struct slot *s = slot_of(exec, signature != 0);
	if (!s)
		return;
	if (s->exec != exec) {
		__atomic_store_n(&s->signature, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&s->exec, exec, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->signature, signature, __ATOMIC_RELEASE);
}

uint64_t graphs_find(uint64_t exec)
{
	const struct slot *s = slot_of(exec, false);
	return s ? __atomic_load_n(&s->signature, __ATOMIC_ACQUIRE) : 0;
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
	DROP(slots);
	memset(runs, 0, sizeof runs);
}
