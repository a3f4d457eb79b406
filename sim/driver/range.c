/*
 * Which memory is whose.  Every piece of memory the driver knows is a range in one search
 * tree, ordered by address; ranges never overlap, so a comparison that calls overlapping
 * ranges equal finds the range of an address.
 *
 * Device memory is host memory: small pieces from the heap, large ones mapped without
 * reserve, so that a simulated 100 GB costs what the program touches.
 */
#include "driver/sim.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRAIN = 512, MAPPED_FROM = 1 << 16 };

static void *tree;
static uint64_t next_id = 1;

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->base + (x->size ? x->size : 1) <= y->base)
		return -1;
	if (y->base + (y->size ? y->size : 1) <= x->base)
		return 1;
	return 0;
}

struct range *range_find(uint64_t address)
{
	struct range key = { .base = address, .size = 1 };
	struct range **found = address == UINT64_MAX ? NULL : tfind(&key, &tree, compare);

	return found ? *found : NULL;
}

size_t range_room(const struct range *range, uint64_t address)
{
	uint64_t end = range->base + range->size;
	const bool mapped = range->kind == RANGE_MAPPED;

	while (mapped && (range = range_find(end)) && range->kind == RANGE_MAPPED)
		end += range->size;
	return end - address;
}

struct range *range_of(uint64_t address, size_t size)
{
	struct range *r = range_find(address);

	if (!r || size > range_room(r, address))
		return NULL;
	return r;
}

/* CUDA_ERROR_INVALID_VALUE where the range would overlap one that is known. */
int range_add(const struct range *like, struct range **ret_range)
{
	struct range *r = malloc(sizeof *r);

	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*r = *like;
	r->id = next_id++;
	struct range **slot = tsearch(r, &tree, compare);
	if (!slot || *slot != r) {
		free(r);
		return slot ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_range = r;
	return CUDA_SUCCESS;
}

void range_remove(struct range *range)
{
	tdelete(range, &tree, compare);
}

static void *back(size_t size)
{
	void *p;

	if (size >= MAPPED_FROM) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	if (posix_memalign(&p, GRAIN, size))
		return NULL;
	return memset(p, 0, size);
}

static void unback(uint64_t base, size_t size)
{
	if (size >= MAPPED_FROM)
		munmap((void *)base, size);
	else
		free((void *)base);
}

int range_alloc(struct context *ctx, size_t size, enum range_kind kind, struct pool *pool,
	struct range **ret_range)
{
	size_t full;

	if (__builtin_add_overflow(size, GRAIN - 1, &full))
		return CUDA_ERROR_OUT_OF_MEMORY;
	full &= ~(size_t)(GRAIN - 1);
	size_t charged = kind == RANGE_HOST ? 0 : full;
	int r = pool_take(pool, ctx->device, charged);
	if (r)
		return r;
	void *p = back(full);
	struct range like = {
		.base = (uint64_t)p,
		.size = size,
		.charged = charged,
		.kind = kind,
		.device = ctx->device,
		.ctx = ctx,
		.pool = pool,
	};
	r = p ? range_add(&like, ret_range) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		if (p)
			unback(like.base, full);
		pool_give(pool, ctx->device, charged);
	}
	return r;
}

/* Gives back the memory of a range that range_remove() has taken out of the tree. */
void range_free(struct range *range)
{
	size_t full = (range->size + GRAIN - 1) & ~(size_t)(GRAIN - 1);

	if (range->kind != RANGE_REGISTERED && range->kind != RANGE_MAPPED)
		unback(range->base, full);
	pool_give(range->pool, range->device, range->charged);
	free(range);
}

static const struct context *wanted;
static struct range *some;
static size_t graph_bytes;
static int graph_device;

static void visit(const void *node, VISIT order, int level)
{
	struct range *r = *(struct range *const *)node;

	/* Memory of pools and graphs is the device's. */
	if ((order == preorder || order == leaf) && r->ctx == wanted && r->kind != RANGE_ASYNC)
		some = r;
}

static void add_graphs(const void *node, VISIT order, int level)
{
	const struct range *r = *(struct range *const *)node;

	if ((order == preorder || order == leaf) && r->of_graph && r->device == graph_device)
		graph_bytes += r->charged;
}

size_t ranges_of_graphs(int device)
{
	graph_bytes = 0;
	graph_device = device;
	twalk(tree, add_graphs);
	return graph_bytes;
}

void ranges_free(struct context *ctx)
{
	for (;;) {
		some = NULL;
		wanted = ctx;
		twalk(tree, visit);
		if (!some)
			return;
		range_remove(some);
		range_free(some);
	}
}
