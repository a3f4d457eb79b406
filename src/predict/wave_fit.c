/*
 * Fitting the model of wave.c.  Each candidate is fitted without an eighth of the shapes and asked
 * for them, eight times over (with fewer than nine shapes: without one at a time); the one that is
 * off least on average wins, errors of more than a factor of four counting as four.  Relative
 * errors are what counts, so observations are weighted by 1/t^2.
 */
#include "predict/wave_fit.h"

#include "predict/nnls.h"
#include "predict/score.h"

#include "base/banned.h"

#define FOLDS      8
#define WORST      2.0f
#define PAIRS_FROM 16 /* shapes, before which products of arguments fit anything */
#define PAIRED     4  /* arguments of which products are tried */
#define LARGEST    (1ull << 40)
#define BETTER     0.95f /* what a more complicated candidate must reach of a simpler one */

static_assert(WAVE_TERMS == NNLS_TERMS, "terms of a fit");

struct fitting {
	const struct wave_shape *shape;
	uint32_t n, folds;
	/* the nearest shape of another fold, by shape; n: none */
	uint32_t nearest[SHAPES];
	float best;
	struct wave_fit fit;
};

float wave_scalar(uint64_t arg)
{
	return arg < LARGEST ? (float)arg : 0;
}

/* A logarithm, roughly: exponent and mantissa read as one number. */
static float rough_log2(float x)
{
	int32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return (float)bits * (1.0f / (1 << 23));
}

static float gap(float a, float b)
{
	const float d = rough_log2(1 + a) - rough_log2(1 + b);
	return d < 0 ? -d : d;
}

static float distance(const struct wave_shape *a, const struct wave_shape *b)
{
	float sum = gap(load_float(&a->waves) * 64, b->waves * 64);
	for (int i = 0; i < PREDICT_ARGS; i++)
		sum += gap(load_float(&a->arg[i]), b->arg[i]);
	return sum;
}

static float scalar_of(const struct wave_fit *f, const struct wave_shape *s)
{
	float value = 1;
	if (f->first < PREDICT_ARGS)
		value *= load_float(&s->arg[f->first]);
	if (f->second < PREDICT_ARGS)
		value *= load_float(&s->arg[f->second]);
	return value;
}

static float whole(float waves)
{
	const float down = waves < 1e9f ? (float)(int64_t)waves : waves;
	return down < waves ? down + 1 : down;
}

static void terms_of(
	const struct wave_fit *f, const struct wave_shape *s, float terms[static WAVE_TERMS])
{
	const float w = load_float(&s->waves), begun = whole(w);
	const bool scaled = f->first < PREDICT_ARGS;
	const float scalar = scaled ? scalar_of(f, s) : 0;
	terms[0] = 1;
	terms[1] = begun;
	terms[2] = w;
	terms[3] = begun * scalar;
	terms[4] = w * scalar;
	if (f->kind == WAVE_BOUND) {
		terms[3] = load_float(&s->bound_ns);
		terms[4] = 0;
	}
}

static float evaluate(const struct wave_fit *f, const struct wave_shape *s)
{
	float terms[WAVE_TERMS], t = 0;
	terms_of(f, s, terms);
	for (int i = 0; i < WAVE_TERMS; i++)
		t += f->weight[i] * terms[i];
	return t;
}

/* What the near shape says about another: its time, scaled by the bounds or by how far the model
 * is off there. */
static float transfer(
	const struct wave_fit *f, const struct wave_shape *near, const struct wave_shape *s)
{
	const float t = load_float(&near->t_ns);
	if (f->kind == WAVE_NONE || f->kind == WAVE_NEAREST)
		return t * s->bound_ns / load_float(&near->bound_ns);
	if (f->kind == WAVE_RATIO)
		return s->bound_ns * f->ratio;
	const float told = evaluate(f, s);
	return f->corrected ? told * t / evaluate(f, near) : told;
}

static uint32_t nearest_of(
	const struct kernel_slot *slot, uint32_t shapes, const struct wave_shape *shape)
{
	uint32_t near = 0;
	float least = distance(&slot->shape[0], shape);
	for (uint32_t i = 1; i < shapes && i < SHAPES; i++) {
		const float d = distance(&slot->shape[i], shape);
		if (d < least) {
			near = i;
			least = d;
		}
	}
	return near;
}

bool fit_predict(const struct wave_fit *fit, const struct kernel_slot *slot, uint32_t shapes,
	const struct wave_shape *shape, float cold, float *ret_ns)
{
	if (!shapes)
		return false;
	const uint32_t near = nearest_of(slot, shapes, shape);
	/* how two shapes of one kernel differ is what models of other kernels know best */
	const float apart = cold - load_float(&slot->cold[near]);
	const bool carry = fit->kind == WAVE_NONE && is_finite(apart);
	const float t = transfer(fit, &slot->shape[near], shape);
	*ret_ns = carry ? t * approx_exp2(apart) : t;
	return t > 0 && t < 1e18f && *ret_ns > 0;
}

static void find_nearest(struct fitting *f)
{
	for (uint32_t i = 0; i < f->n; i++) {
		float least = 0;
		f->nearest[i] = f->n;
		for (uint32_t j = 0; j < f->n; j++) {
			if (i % f->folds == j % f->folds)
				continue;
			const float d = distance(&f->shape[j], &f->shape[i]);
			if (f->nearest[i] == f->n || d < least) {
				f->nearest[i] = j;
				least = d;
			}
		}
	}
}

/* The sums over the shapes of a fold; over all folds for fold == folds. */
static void accumulate(
	const struct fitting *f, const struct wave_fit *c, uint32_t fold, struct normal *n)
{
	float terms[WAVE_TERMS];
	double scaled[WAVE_TERMS];
	for (uint32_t i = 0; i < f->n; i++) {
		if (fold < f->folds && i % f->folds != fold)
			continue;
		terms_of(c, &f->shape[i], terms);
		for (int k = 0; k < WAVE_TERMS; k++)
			scaled[k] = (double)terms[k] / (double)f->shape[i].t_ns;
		normal_add(n, scaled);
	}
}

static void solve(const struct normal *n, struct wave_fit *c)
{
	double x[WAVE_TERMS];
	normal_solve(n, x);
	for (int k = 0; k < WAVE_TERMS; k++)
		c->weight[k] = (float)x[k];
}

static float off_by(float t, float measured)
{
	const float off = t > 0 && t < 1e18f ? approx_log2(t / measured) : WORST;
	const float size = off < 0 ? -off : off;
	return size < WORST ? size : WORST;
}

static float ratio_median(const struct fitting *f, uint32_t without)
{
	float ratios[SHAPES];
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n; i++)
		if (i % f->folds != without)
			ratios[n++] = f->shape[i].t_ns / f->shape[i].bound_ns;
	return score_quantile(ratios, n, 0.5);
}

/* Errors of the held-out shapes, straight and corrected by the nearest. */
static void cross_validate(const struct fitting *f, const struct wave_fit *candidate,
	float straight[static SHAPES], float corrected[static SHAPES])
{
	struct normal all = { 0 };
	accumulate(f, candidate, f->folds, &all);
	for (uint32_t fold = 0; fold < f->folds; fold++) {
		struct normal part = { 0 }, rest = all;
		struct wave_fit c = *candidate;
		accumulate(f, &c, fold, &part);
		normal_subtract(&rest, &part);
		solve(&rest, &c);
		c.ratio = c.kind == WAVE_RATIO ? ratio_median(f, fold) : 0;
		for (uint32_t i = fold; i < f->n; i += f->folds) {
			const struct wave_shape *s = &f->shape[i], *near = &f->shape[f->nearest[i]];
			c.corrected = 0;
			straight[i] = off_by(transfer(&c, near, s), s->t_ns);
			c.corrected = 1;
			corrected[i] = off_by(transfer(&c, near, s), s->t_ns);
		}
	}
}

static float take_if_better(
	struct fitting *f, const struct wave_fit *candidate, float off[static SHAPES])
{
	float sum = 0;
	for (uint32_t i = 0; i < f->n; i++)
		sum += off[i];
	if (f->fit.kind != WAVE_NONE && sum >= f->best * BETTER)
		return sum;
	f->best = sum;
	f->fit = *candidate;
	f->fit.scale = score_quantile(off, f->n, 0.5);
	return sum;
}

/* The sum of its errors, the better way. */
static float try_candidate(struct fitting *f, enum wave_kind kind, int first, int second)
{
	float straight[SHAPES], corrected[SHAPES];
	struct wave_fit c = {
		.kind = (uint8_t)kind, .first = (uint8_t)first, .second = (uint8_t)second
	};
	cross_validate(f, &c, straight, corrected);
	const float plain = take_if_better(f, &c, straight);
	if (kind != WAVE_LINEAR && kind != WAVE_BOUND)
		return plain;
	c.corrected = 1;
	const float mended = take_if_better(f, &c, corrected);
	return mended < plain ? mended : plain;
}

static bool varies(const struct fitting *f, int arg)
{
	for (uint32_t i = 1; i < f->n; i++)
		if (f->shape[i].arg[arg] != f->shape[0].arg[arg])
			return true;
	return false;
}

struct ranked {
	int arg;
	float off;
};

/* One more among the n best, which are in order; how many they are then. */
static uint32_t rank(struct ranked best[static PAIRED + 1], uint32_t n, struct ranked one)
{
	uint32_t at = n;
	for (; at > 0 && one.off < best[at - 1].off; at--)
		best[at] = best[at - 1];
	best[at] = one;
	return n < PAIRED ? n + 1 : PAIRED;
}

/* The arguments, each alone; then, with enough shapes, products of the best few. */
static void try_scalars(struct fitting *f)
{
	struct ranked best[PAIRED + 1];
	uint32_t n = 0;
	for (int i = 0; i < PREDICT_ARGS; i++)
		if (varies(f, i))
			n = rank(best, n,
				(struct ranked){ i, try_candidate(f, WAVE_LINEAR, i, NO_ARG) });
	for (uint32_t i = 0; f->n >= PAIRS_FROM && i < n; i++)
		for (uint32_t j = 0; j <= i; j++)
			try_candidate(f, WAVE_LINEAR, best[i].arg, best[j].arg);
}

void wave_refit(struct kernel_slot *slot)
{
	struct fitting f = { .shape = slot->shape, .n = slot->head.shapes };
	f.folds = f.n < FOLDS ? f.n : FOLDS;
	find_nearest(&f);
	try_candidate(&f, WAVE_NEAREST, NO_ARG, NO_ARG);
	try_candidate(&f, WAVE_RATIO, NO_ARG, NO_ARG);
	try_candidate(&f, WAVE_LINEAR, NO_ARG, NO_ARG);
	if (slot->shape[0].knowledge)
		try_candidate(&f, WAVE_BOUND, NO_ARG, NO_ARG);
	try_scalars(&f);
	struct normal all = { 0 };
	accumulate(&f, &f.fit, f.folds, &all);
	solve(&all, &f.fit);
	f.fit.ratio = ratio_median(&f, f.folds);
	slot->head.fit = f.fit;
	slot->head.stale = 0;
}
