/*
 * The cost of placing and freeing a block in the pool (src/pool), in nanoseconds for the pair, with
 * so many live blocks and free ranges around it; and of finding the block of a pointer.  The least
 * of some rounds, since everything else on the machine only adds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/hash.h"
#include "pool/pool.h"

enum { PAIRS = 200000, ROUNDS = 15, LARGE = 64 };

static uint64_t *blocks, seed;

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t some(uint64_t below)
{
	return (hash_mix(++seed) >> 32) * below >> 32;
}

static uint64_t place(struct pool *p, uint64_t bytes)
{
	struct pool_place at;
	if (pool_place(p, bytes, 1, &at))
		abort();
	for (uint32_t slot = at.first_slot; at.missing && pool_next_missing(p, &at, &slot);)
		pool_back(p, slot, slot + 1);
	return at.address;
}

/* Sizes as tensors have them: from 512 bytes to 4 MiB, as many of each power. */
static uint64_t a_size(void)
{
	return (UINT64_C(512) << some(13)) + 512 * some(8);
}

static struct pool *filled(uint32_t live, uint32_t holes)
{
	const struct pool_shape shape = { UINT64_C(1) << 40, UINT64_C(256) << 30, 8u << 20,
		1u << 17 };
	struct pool *p = mmap(NULL, pool_memory(&shape), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || pool_init(p, &shape))
		abort();
	const uint32_t n = live + holes;
	for (uint32_t i = 0; i < n; i++)
		blocks[i] = place(p, a_size());
	/* Each of them alone between blocks: no two that lie beside each other. */
	uint32_t kept = 0;
	const uint32_t stride = n / holes;
	for (uint32_t i = 0; i < n; i++)
		if (i % stride == 1 && i / stride < holes)
			pool_free(p, blocks[i], 1);
		else
			blocks[kept++] = blocks[i];
	return p;
}

/* A size that was just freed: what a program does that repeats itself. */
static void same_again(struct pool *p, uint32_t live)
{
	for (int i = 0; i < PAIRS; i++)
		pool_free(p, place(p, 4096), 1);
}

/* Any block goes, and one of any size comes. */
static void any(struct pool *p, uint32_t live)
{
	for (int i = 0; i < PAIRS; i++) {
		uint64_t *b = &blocks[some(live)];
		pool_free(p, *b, 1);
		*b = place(p, a_size());
	}
}

/* Any block goes, and comes back in its own size. */
static void any_same(struct pool *p, uint32_t live)
{
	struct pool_block found = { 0 };
	for (int i = 0; i < PAIRS; i++) {
		uint64_t *b = &blocks[some(live)];
		pool_find(p, *b, &found);
		pool_free(p, *b, 1);
		*b = place(p, found.bytes);
	}
}

static void inside(struct pool *p, uint32_t live)
{
	struct pool_block found = { 0 };
	for (int i = 0; i < PAIRS; i++)
		if (!pool_find(p, blocks[some(live)] + some(512), &found))
			abort();
}

static void measure(
	const char *name, void (*work)(struct pool *, uint32_t), uint32_t live, uint32_t holes)
{
	double least = 1e30;
	struct pool *p = filled(live, holes);
	const uint32_t before = p->counters.free_ranges;
	for (int round = 0; round < ROUNDS; round++) {
		const double start = now_ns();
		work(p, live);
		const double ns = (now_ns() - start) / PAIRS;
		least = ns < least ? ns : least;
	}
	printf("  %-34s %6" PRIu32 " blocks, %5" PRIu32 " free ranges (%5" PRIu32
	       " after): %6.1f ns\n",
		name, live, before, p->counters.free_ranges, least);
	munmap(p, pool_memory(&p->shape));
}

int main(void)
{
	static const uint32_t sizes[][2] = { { 100, 10 }, { 10000, 1000 }, { 50000, 10000 } };
	blocks = calloc(1u << 17, sizeof *blocks);
	if (!blocks)
		return 1;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const uint32_t live = sizes[i][0], holes = sizes[i][1];
		measure("place and free 4 KiB", same_again, live, holes);
		measure("free any, place the same size", any_same, live, holes);
		measure("free any, place any size", any, live, holes);
		measure("find the block of a pointer", inside, live, holes);
	}
	free(blocks);
	return 0;
}
