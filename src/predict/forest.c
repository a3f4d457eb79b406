/* Walking a forest: see forest.h. */
#include "predict/forest.h"

#include <stdbool.h>

#include "predict/approx.h"

size_t forest_bytes(uint32_t trees, uint32_t depth)
{
	if (!trees || trees > FOREST_MOST_TREES || trees % FOREST_STEP || !depth ||
		depth > FOREST_MOST_DEPTH)
		return 0;
	return sizeof(struct forest) +
	       ((size_t)trees << depth) * (sizeof(struct forest_node) + sizeof(float));
}

/* Eight trees at a time: their loads do not wait for one another. */
static float walk_step(
	const struct forest_node *nodes, const float *leaves, uint32_t depth, const float *x)
{
	uint32_t at[FOREST_STEP] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	for (uint32_t level = 0; level < depth; level++)
		for (uint32_t t = 0; t < FOREST_STEP; t++) {
			const struct forest_node *n = &nodes[((size_t)t << depth) + at[t]];
			at[t] = 2 * at[t] + !(x[n->feature] < n->threshold);
		}
	float sum = 0;
	for (uint32_t t = 0; t < FOREST_STEP; t++)
		sum += leaves[((size_t)t << depth) + at[t] - (1u << depth)];
	return sum;
}

float forest_ask(const struct forest *f, const float *features)
{
	const struct forest_node *nodes = f->nodes;
	const float *leaves = forest_leaves(f);
	const size_t step = (size_t)FOREST_STEP << f->depth;
	float sum = f->bias;
	for (uint32_t t = 0; t < f->trees; t += FOREST_STEP, nodes += step, leaves += step)
		sum += walk_step(nodes, leaves, f->depth, features);
	return sum;
}

const char *forest_check(const void *block, size_t bytes, uint32_t features)
{
	const struct forest *f = block;
	if (bytes < sizeof *f)
		return "the forest is cut short";
	const size_t want = forest_bytes(f->trees, f->depth);
	if (!want)
		return "the forest has an impossible number of trees or levels";
	if (bytes < want)
		return "the forest is cut short";
	const size_t slots = (size_t)f->trees << f->depth;
	const float *leaves = forest_leaves(f);
	bool numbers = is_finite(f->bias);
	for (size_t i = 0; i < slots; i++) {
		const bool used = i & ((1u << f->depth) - 1);
		if (used && f->nodes[i].feature >= features)
			return "a tree asks for a feature that there is not";
		numbers = numbers && is_finite(leaves[i]) &&
			  (!used || is_finite(f->nodes[i].threshold));
	}
	return numbers ? NULL : "a number in the forest is not finite";
}
