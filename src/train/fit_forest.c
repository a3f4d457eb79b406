/*
 * Training a forest with XGBoost and bringing it into the form of predict/forest.h.
 *
 * XGBoost tells its trees as text, a line a node: `5:[f3<0.25] yes=7,no=8,missing=7`, or
 * `9:leaf=0.5`.  A leaf above the last level becomes a perfect subtree whose leaves are all alike.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/fit.h"
#include "train/xgboost.h"
#include "base/xmalloc.h"

#define NODES (1 << (FIT_DEPTH + 1)) /* at most, of one tree */

struct tree_node {
	bool there, leaf;
	unsigned feature, yes, no;
	float value; /* threshold, or leaf */
};

static int failed(const struct xgboost *x, struct error *err)
{
	return error_set(err, -EIO, "XGBoost failed: %.300s", x->error());
}

static bool parse_line(const char *line, struct tree_node nodes[static NODES])
{
	unsigned at, feature, yes, no;
	float value;
	if (sscanf(line, " %u:leaf=%f", &at, &value) == 2 && at < NODES) {
		nodes[at] = (struct tree_node){ true, true, 0, 0, 0, value };
		return true;
	}
	if (sscanf(line, " %u:[f%u<%f] yes=%u,no=%u", &at, &feature, &value, &yes, &no) != 5 ||
		at >= NODES || feature >= FEATURES || yes >= NODES || no >= NODES)
		return false;
	nodes[at] = (struct tree_node){ true, false, feature, yes, no, value };
	return true;
}

static bool parse_tree(const char *text, struct tree_node nodes[static NODES])
{
	memset(nodes, 0, NODES * sizeof nodes[0]);
	while (*text) {
		const char *newline = strchr(text, '\n');
		if (!parse_line(text, nodes))
			return false;
		text = newline ? newline + 1 : "";
	}
	return true;
}

/* The node `from` into place `at`, and all below it. */
static bool place(const struct tree_node nodes[static NODES], unsigned from, uint32_t at,
	uint32_t level, struct forest_node *heap, float *leaves)
{
	const struct tree_node *n = &nodes[from];
	if (!n->there || (level == FIT_DEPTH && !n->leaf) || !isfinite(n->value))
		return false;
	if (level == FIT_DEPTH) {
		leaves[at - (1u << FIT_DEPTH)] = n->value;
		return true;
	}
	heap[at] =
		n->leaf ? (struct forest_node){ 0 } : (struct forest_node){ n->value, n->feature };
	return place(nodes, n->leaf ? from : n->yes, 2 * at, level + 1, heap, leaves) &&
	       place(nodes, n->leaf ? from : n->no, 2 * at + 1, level + 1, heap, leaves);
}

static int convert(
	const struct xgboost *x, xgboost_handle booster, struct forest *f, struct error *err)
{
	struct tree_node nodes[NODES];
	const char **trees;
	uint64_t n;
	if (x->dump(booster, "", 0, "text", &n, &trees))
		return failed(x, err);
	if (n != f->trees)
		return error_set(err, -EIO, "XGBoost made %llu trees instead of %u",
			(unsigned long long)n, f->trees);
	float *leaves = (float *)(f->nodes + ((size_t)f->trees << FIT_DEPTH));
	for (uint32_t t = 0; t < f->trees; t++) {
		const size_t first = (size_t)t << FIT_DEPTH;
		if (!parse_tree(trees[t], nodes) ||
			!place(nodes, 0, 1, 0, f->nodes + first, leaves + first))
			return error_set(err, -EIO,
				"XGBoost describes its tree %u in words that are not understood",
				t);
	}
	return 0;
}

static int grow(const struct xgboost *x, xgboost_handle booster, xgboost_handle matrix,
	uint64_t seed, struct fit_progress *progress)
{
	char text[24], depth[12];
	const struct {
		const char *name, *value;
	} settings[] = {
		{ "verbosity", "0" },
		{ "objective", "reg:squarederror" },
		{ "base_score", "0" },
		{ "max_depth", depth },
		{ "eta", "0.25" },
		{ "lambda", "1" },
		{ "min_child_weight", "2" },
		{ "tree_method", "hist" },
		{ "nthread", "1" },
		{ "seed", text },
	};
	snprintf(depth, sizeof depth, "%d", FIT_DEPTH);
	snprintf(text, sizeof text, "%u", (unsigned)(seed & 0x7fffffff));
	int bad = 0;
	for (size_t i = 0; !bad && i < sizeof settings / sizeof settings[0]; i++)
		bad = x->set(booster, settings[i].name, settings[i].value);
	for (int round = 0; !bad && round < FIT_TREES; round++) {
		bad = x->update(booster, round, matrix);
		fit_step(progress);
	}
	return bad;
}

/* Features row by row, then targets as far from the mean as they are, then weights. */
static float *table_of(const struct fit_row *rows, size_t n, float *ret_bias)
{
	float *data = xmalloc(n * (FEATURES + 2) * sizeof(float));
	float *targets = data + n * FEATURES, *weights = targets + n;
	double sum = 0, all = 0;
	for (size_t i = 0; i < n; i++) {
		sum += (double)(rows[i].weight * rows[i].y);
		all += (double)rows[i].weight;
	}
	*ret_bias = (float)(sum / all);
	for (size_t i = 0; i < n; i++) {
		memcpy(data + i * FEATURES, rows[i].x, FEATURES * sizeof(float));
		targets[i] = rows[i].y - *ret_bias;
		weights[i] = rows[i].weight;
	}
	return data;
}

int fit_forest(const struct fit_row *rows, size_t n, uint64_t seed, struct fit_progress *progress,
	struct forest **ret_forest, struct error *err)
{
	const struct xgboost *x = xgboost_load();
	xgboost_handle matrix = NULL, booster = NULL;
	if (!x)
		return error_set(err, -ENOSYS,
			"trees need XGBoost's library: install it (Debian: libxgboost0)");
	struct forest *f = xcalloc(1, forest_bytes(FIT_TREES, FIT_DEPTH));
	float *data = table_of(rows, n, &f->bias);
	f->trees = FIT_TREES;
	f->depth = FIT_DEPTH;
	int ret = -EIO;
	if (x->matrix_create(data, n, FEATURES, NAN, &matrix) ||
		x->matrix_set(matrix, "label", data + n * FEATURES, n) ||
		x->matrix_set(matrix, "weight", data + n * (FEATURES + 1), n) ||
		x->create(&matrix, 1, &booster) || grow(x, booster, matrix, seed, progress)) {
		failed(x, err);
		goto out;
	}
	ret = convert(x, booster, f, err);
out:
	if (booster)
		x->free(booster);
	if (matrix)
		x->matrix_free(matrix);
	free(data);
	if (ret)
		free(f);
	else
		*ret_forest = f;
	return ret;
}
