/*
 * run-pool [OPERATIONS [SEED]]: a pool used at random, each answer held against a simple account
 * (pool_model.h), all of its state now and then: no two blocks overlap, no handle is taken from
 * behind a block or before its frees are settled, and in the end all is there.  It aborts where
 * that does not hold.  The unit test does the same for a moment; this is for hundreds of millions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "pool_model.h"

#define SLOT      (UINT64_C(128) << 10)
#define SLOTS     128u
#define A_PHASE   1000000u /* operations with the same number of tags and handles */
#define LOOK      4096u    /* operations between two looks at all grains and all state */
#define BYTES_LOG 7u       /* of the largest usual block, over a grain */

static uint64_t seed;

static uint64_t some(uint64_t below)
{
	return (hash_mix(++seed) >> 32) * below >> 32;
}

static void step(struct pool_model *m, uint32_t tags, bool look)
{
	const uint32_t tag = (uint32_t)some(tags);
	const uint64_t what = some(256);
	if (what < 132)
		model_place(m, 1 + some(UINT64_C(512) << some(BYTES_LOG)), tag, look);
	else if (what < 134)
		model_place(m, 1 + some(4 * SLOT), tag, look);
	else if (what < 252 && m->blocks.n)
		model_release(m, some(m->blocks.n), tag);
	else if (what == 252)
		model_settle(m, tag);
	else if (what == 253)
		model_give_back(m);
	else
		model_ask(m, some(SLOTS * SLOT + SLOT));
	if (look)
		model_check(m);
}

/* Blocks come faster than they go until memory or addresses are short; each eighth of a phase
 * begins with most of them gone. */
static void thin_out(struct pool_model *m)
{
	for (size_t left = m->blocks.n / 8; m->blocks.n > left;)
		model_release(m, some(m->blocks.n), 0);
}

static void phase(uint64_t operations)
{
	const struct pool_shape shape = { SLOT * 8, SLOTS * SLOT, SLOT, 1u << 12 };
	const uint32_t tags = 1 + (uint32_t)some(6);
	struct pool_model *m = model_new(&shape, SLOTS / 4 + some(SLOTS));
	for (uint64_t i = 0; i < operations; i++) {
		step(m, tags, i % LOOK == 0);
		if (i % (A_PHASE / 8) == 0)
			thin_out(m);
	}
	const struct pool_counters c = m->pool->counters;
	printf("%8" PRIu64 " placed, %6" PRIu64 " refused, %6" PRIu64 " handles moved, at most "
	       "%3" PRIu32 " slots of %3" PRIu32 ", %" PRIu32 " tags\n",
		c.placed, c.refused, c.taken, c.busy_slots_peak, c.backed_slots_peak, tags);
	model_end(m);
	model_free(m);
}

int main(int argc, char **argv)
{
	uint64_t left = argc > 1 ? strtoull(argv[1], NULL, 10) : A_PHASE;
	seed = argc > 2 ? strtoull(argv[2], NULL, 10) << 40 : 0;
	while (left) {
		const uint64_t n = left < A_PHASE ? left : A_PHASE;
		phase(n);
		left -= n;
	}
	puts("all as it should be");
	return 0;
}
