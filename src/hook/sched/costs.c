/* Learns the device time of launches from marks. */
#include "hook/sched/costs.h"

#include <string.h>

#include "base/atomic.h"
#include "hook/core/hook_table.h"
#include "hook/core/own_calls.h"

#define COSTS  4096u
#define PROBES 32u

static struct cost costs[COSTS], further;
static _Atomic uint32_t generation = 1;

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Copies of one size class are alike. */
static uint64_t key_of(const struct launch_shape *l)
{
	uint64_t h = mix(0, (uintptr_t)l->what);
	if (l->bytes)
		return mix(h, 64 - (uint64_t)__builtin_clzll(l->bytes)) | 1;
	h = mix(h, l->grid[0] | (uint64_t)l->grid[1] << 32);
	h = mix(h, l->grid[2] | (uint64_t)l->block[0] << 32);
	h = mix(h, l->block[1] | (uint64_t)l->block[2] << 32);
	return mix(h, l->shared | (uint64_t)l->plain << 32) | 1;
}

/* A handle of cuLibraryGetKernel() has to become a function first. */
static uint32_t ask_resident(const struct launch_shape *l)
{
	int n = 0;
	void *function = NULL;
	const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	if (!l->what || !threads || threads > 1024 ||
		!real_at(FN_cuOccupancyMaxActiveBlocksPerMultiprocessor))
		return 0;
	real_cuOccupancyMaxActiveBlocksPerMultiprocessor *const ask =
		REAL(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	if (!ask(&n, (void *)l->what, (int)threads, l->shared))
		return (uint32_t)n;
	if (real_at(FN_cuKernelGetFunction) &&
		!REAL(cuKernelGetFunction)(&function, (void *)l->what) &&
		!ask(&n, function, (int)threads, l->shared))
		return (uint32_t)n;
	return 0;
}

/* A copy's time by its bytes, at what a slow link carries. */
static float copy_guess(const struct launch_shape *l)
{
	return l->what ? 0 : 2000 + (float)l->bytes / 8;
}

/* The same kernel in another shape, measured: its time by the number of blocks. */
static float sibling(const struct cost *c, const void *what)
{
	const uint64_t blocks = load_relaxed(&c->blocks);
	if (!what || !blocks)
		return 0;
	for (uint32_t i = 0; i < COSTS; i++) {
		const struct cost *s = &costs[i];
		const uint64_t other = load_relaxed(&s->blocks);
		if (load_relaxed(&s->what) == what && cost_is_measured(s) && other)
			return load_relaxed(&s->mean_ns) *
			       (blocks > other ? (float)blocks / (float)other : 1);
	}
	return 0;
}

static void fill(struct cost *c, const struct launch_shape *l)
{
	struct own_calls own;
	store_relaxed(&c->blocks, launch_blocks(l));
	own_calls_begin(&own);
	store_relaxed(&c->resident, l->block[0] ? ask_resident(l) : 0);
	own_calls_end(&own);
	store_relaxed(&c->guess_ns, l->bytes ? copy_guess(l) : sibling(c, l->what));
	/* Pairs with fresh(): who sees the generation sees what was learnt in it. */
	store_release(&c->generation, load_relaxed(&generation));
	store_release(&c->what, l->what);
	store_release(&c->plain, l->plain);
}

/* Begins anew if another function lies at the handle now. */
static struct cost *fresh(struct cost *c, const struct launch_shape *l)
{
	uint32_t seen = load_acquire(&c->generation);
	const uint32_t now = load_acquire(&generation);
	if (seen == now || !seen)
		return c;
	store_relaxed(&c->plain, false); /* until it is known again */
	if (replace_if(&c->generation, &seen, now, acq_rel, relaxed)) {
		store_relaxed(&c->count, 0);
		store_relaxed(&c->bounds, 0);
		store_relaxed(&c->mean_ns, 0);
		store_relaxed(&c->off_ns, 0);
		fill(c, l);
	}
	return c;
}

struct cost *costs_of(const struct launch_shape *l)
{
	const uint64_t key = key_of(l);
	for (uint32_t i = 0; i < PROBES; i++) {
		struct cost *c = &costs[((key >> 20) + i) % COSTS];
		uint64_t seen = load_relaxed(&c->key);
		if (seen == key)
			return fresh(c, l);
		if (seen)
			continue;
		if (replace_if(&c->key, &seen, key, acq_rel, relaxed)) {
			fill(c, l);
			return c;
		}
		if (seen == key)
			return c;
	}
	return &further;
}

/* Of what was never measured. */
static uint64_t guessed(const struct cost *c, uint64_t unknown)
{
	const float guess = load_relaxed(&c->guess_ns);
	return guess > 0 ? (uint64_t)guess : unknown;
}

uint64_t cost_mean(const struct cost *c, uint64_t unknown)
{
	return cost_is_measured(c) ? (uint64_t)load_relaxed(&c->mean_ns) : guessed(c, unknown);
}

/* p90 of a normal distribution: 1.28 standard deviations, each 1.25 mean distances. */
uint64_t cost_t90(const struct cost *c, uint64_t unknown)
{
	return cost_is_measured(c)
		       ? (uint64_t)(load_relaxed(&c->mean_ns) + 1.6f * load_relaxed(&c->off_ns))
		       : guessed(c, unknown);
}

/* A value far from all before counts as half an accident. */
static float bounded(uint32_t count, float mean, float ns)
{
	if (count < 4)
		return ns;
	return ns > 3 * mean ? 3 * mean : ns < mean / 3 ? mean / 3 : ns;
}

void cost_learn(struct cost *c, float ns)
{
	const uint32_t count = load_relaxed(&c->count);
	const float mean = load_relaxed(&c->mean_ns), before = load_relaxed(&c->off_ns);
	ns = bounded(count, mean, ns);
	const float weight = count < 8 ? 1.0f / (float)(count + 1) : 0.125f;
	const float off = ns > mean ? ns - mean : mean - ns;
	if (count) /* the first is from an idle device, and longer than it will be */
		store_relaxed(&c->off_ns, count < 4 ? off : before + weight * (off - before));
	store_relaxed(&c->mean_ns, mean + weight * (ns - mean));
	store_release(&c->count, count + 1);
}

void cost_correct(struct cost *c, float scale)
{
	if (cost_is_measured(c))
		cost_learn(c, load_relaxed(&c->mean_ns) * scale);
}

void costs_expire(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_acq_rel);
}

void costs_forget(void)
{
	further = (struct cost){ 0 };
	memset(costs, 0, sizeof costs);
}
