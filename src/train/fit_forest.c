/*
 * Grows the forest of predict/forest.h by gradient boosting (Friedman 2001): each tree fits what
 * the trees before it left over.
 *
 * A split is sought among at most 255 thresholds of each feature, where a histogram adds up the
 * rows of a node. All rows go right where no split helps, so that each tree is perfect.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "base/xmalloc.h"
#include "train/fit.h"

#define BINS   256
#define SAMPLE 8192 /* rows that thresholds are chosen from */
#define RATE   0.25 /* of what a tree says, so much counts */
#define SHRINK 1.0  /* pulls leaves of little weight to 0 */
#define LEAST  2.0  /* weight of the rows of a leaf */

/* Sums over rows: residuals times weight, and weights, in one addition. */
typedef double sums __attribute__((vector_size(16)));
enum { RESIDUAL, WEIGHT };

/* By feature and bin.  Bin b: at least cut[b - 1], below cut[b]. */
typedef sums histogram[FEATURES][BINS];

struct growth {
	const struct fit_row *rows;
	size_t n;
	size_t cuts[FEATURES];
	float cut[FEATURES][BINS - 1];
	uint8_t (*bin)[FEATURES];             /* by row */
	float *residual;                      /* by row */
	uint32_t *order;                      /* of rows, those of a node side by side */
	histogram first, below[FIT_DEPTH][2]; /* of the nodes on the way down, and beside it */
	struct forest_node *nodes;            /* of the tree that grows */
	float *leaves;
};

/* If a feature has more values, each bin has about as many rows. */
static void find_cuts(struct growth *g, int f)
{
	const size_t n = g->n < SAMPLE ? g->n : SAMPLE;
	float v[SAMPLE];
	size_t distinct = 1, since = 0;
	for (size_t i = 0; i < n; i++)
		v[i] = g->rows[i * g->n / n].x[f];
	sort_floats(v, n);
	for (size_t i = 1; i < n; i++)
		distinct += v[i] != v[i - 1];
	const size_t step = distinct <= BINS ? 1 : (n + BINS - 1) / BINS;
	for (size_t i = 1; i < n; i++) {
		if (++since < step || v[i] == v[i - 1])
			continue;
		g->cut[f][g->cuts[f]++] = v[i];
		since = 0;
	}
	for (size_t i = 0; i < g->n; i++)
		g->bin[i][f] = (uint8_t)SEARCH(b, 0, g->cuts[f], g->cut[f][b] <= g->rows[i].x[f]);
}

static sums sums_of(const struct growth *g, uint32_t row)
{
	const double weight = (double)g->rows[row].weight;
	return (sums){ weight * (double)g->residual[row], weight };
}

static void add_rows(const struct growth *g, size_t from, size_t to, histogram h)
{
	memset(h, 0, FEATURES * sizeof *h);
	for (size_t i = from; i < to; i++) {
		const uint32_t row = g->order[i];
		const sums own = sums_of(g, row);
		for (int f = 0; f < FEATURES; f++)
			h[f][g->bin[row][f]] += own;
	}
}

/* Adds up the smaller side of a split. The other one has the rest. */
static void add_sides(
	struct growth *g, size_t from, size_t middle, size_t to, histogram all, histogram sides[2])
{
	const int small = to - middle < middle - from;
	add_rows(g, small ? middle : from, small ? to : middle, sides[small]);
	for (int f = 0; f < FEATURES; f++)
		for (size_t b = 0; b <= g->cuts[f]; b++)
			sides[!small][f][b] = all[f][b] - sides[small][f][b];
}

/* How much less the squared error is with a leaf for these rows. */
static double worth(sums s)
{
	return s[RESIDUAL] * s[RESIDUAL] / (s[WEIGHT] + SHRINK);
}

struct split {
	double worth; /* of both sides */
	uint32_t feature;
	size_t cut;
	sums left;
};

static void try_feature(
	const struct growth *g, const histogram h, uint32_t f, sums all, struct split *best)
{
	sums left = { 0 };
	for (size_t b = 0; b < g->cuts[f]; b++) {
		left += h[f][b];
		const sums right = all - left;
		const double both = worth(left) + worth(right);
		if (left[WEIGHT] >= LEAST && right[WEIGHT] >= LEAST && both > best->worth)
			*best = (struct split){
				.worth = both, .feature = f, .cut = b, .left = left
			};
	}
}

/* Brings the rows on the left of the split before the others, and returns where those begin. */
static size_t part(struct growth *g, const struct split *s, size_t from, size_t to)
{
	size_t middle = from;
	for (size_t i = from; i < to; i++) {
		const uint32_t row = g->order[i];
		if (g->bin[row][s->feature] > s->cut)
			continue;
		g->order[i] = g->order[middle];
		g->order[middle++] = row;
	}
	return middle;
}

static void put_leaf(struct growth *g, float *leaf, size_t from, size_t to, sums all)
{
	*leaf = (float)(RATE * all[RESIDUAL] / (all[WEIGHT] + SHRINK));
	for (size_t i = from; i < to; i++)
		g->residual[g->order[i]] -= *leaf;
}

/* The node of these rows, which add up to `all`, and all nodes below it. */
static void grow(struct growth *g, uint32_t level, uint32_t at, size_t from, size_t to, sums all,
	histogram h)
{
	if (level == FIT_DEPTH) {
		put_leaf(g, &g->leaves[at - (1u << FIT_DEPTH)], from, to, all);
		return;
	}
	struct split best = { .worth = worth(all) };
	size_t middle = from;
	for (uint32_t f = 0; f < FEATURES && all[WEIGHT] >= 2 * LEAST; f++)
		try_feature(g, h, f, all, &best);
	const bool helps = best.worth > worth(all);
	g->nodes[at] = helps ? (struct forest_node){ g->cut[best.feature][best.cut], best.feature }
			     : (struct forest_node){ .threshold = -FLT_MAX };
	if (helps)
		middle = part(g, &best, from, to);
	if (level + 1 < FIT_DEPTH)
		add_sides(g, from, middle, to, h, g->below[level]);
	grow(g, level + 1, 2 * at, from, middle, best.left, g->below[level][0]);
	grow(g, level + 1, 2 * at + 1, middle, to, all - best.left, g->below[level][1]);
}

static float mean_of(const struct fit_row *rows, size_t n)
{
	double sum = 0, all = 0;
	for (size_t i = 0; i < n; i++) {
		sum += (double)(rows[i].weight * rows[i].y);
		all += (double)rows[i].weight;
	}
	return (float)(sum / all);
}

struct forest *fit_forest(const struct fit_row *rows, size_t n, struct fit_progress *progress)
{
	struct forest *forest = xcalloc(1, forest_bytes(FIT_TREES, FIT_DEPTH));
	struct growth *g = xcalloc(1, sizeof *g);
	*forest =
		(struct forest){ .trees = FIT_TREES, .depth = FIT_DEPTH, .bias = mean_of(rows, n) };
	g->rows = rows;
	g->n = n;
	g->bin = xcalloc(n, sizeof *g->bin);
	g->residual = xcalloc(n, sizeof *g->residual);
	g->order = xcalloc(n, sizeof *g->order);
	for (int f = 0; f < FEATURES; f++)
		find_cuts(g, f);
	for (size_t i = 0; i < n; i++) {
		g->residual[i] = rows[i].y - forest->bias;
		g->order[i] = (uint32_t)i;
	}
	for (size_t t = 0; t < FIT_TREES; t++) {
		g->nodes = forest->nodes + (t << FIT_DEPTH);
		g->leaves = (float *)forest_leaves(forest) + (t << FIT_DEPTH);
		sums all = { 0 };
		add_rows(g, 0, n, g->first);
		for (size_t b = 0; b < BINS; b++)
			all += g->first[0][b];
		grow(g, 0, 1, 0, n, all, g->first);
		fit_step(progress);
	}
	free(g->bin);
	free(g->residual);
	free(g->order);
	free(g);
	return forest;
}

void fit_step(struct fit_progress *p)
{
	if (p && p->show)
		p->show(p->data, ++p->done, p->all);
}
