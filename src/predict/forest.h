/*
 * A forest of regression trees that is fast to evaluate. All trees are perfect and have one depth,
 * and their nodes lie in heap order. Eight trees are walked in step, without branches that depend
 * on data.
 *
 * Memory and model files have the same layout:
 *
 *	struct forest | struct forest_node [trees][2^depth] | float [trees][2^depth]
 *
 * Node 1 is the root and node 0 is unused. Below node i are 2i (the feature is less than the
 * threshold) and 2i+1. Leaves are numbered from the left. The answer is the bias plus one leaf of
 * each tree.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FOREST_STEP       8 /* trees are a multiple of this */
#define FOREST_MOST_TREES 512
#define FOREST_MOST_DEPTH 8

struct forest_node {
	float threshold;
	uint32_t feature;
};

struct forest {
	uint32_t trees, depth;
	float bias;
	uint32_t reserved;
	struct forest_node nodes[];
};

/* 0 when there can be no such forest. */
size_t forest_bytes(uint32_t trees, uint32_t depth);

static inline const float *forest_leaves(const struct forest *f)
{
	return (const float *)(f->nodes + ((size_t)f->trees << f->depth));
}

float forest_ask(const struct forest *f, const float *features);

/* The fault of a block of `bytes` bytes, or NULL: then forest_ask() may walk it with that many
 * features. */
const char *forest_check(const void *block, size_t bytes, uint32_t features);
