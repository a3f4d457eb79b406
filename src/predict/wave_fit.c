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

#define FOLDS       8
#define WORST       2.0f
#define PAIRS_FROM  16 /* shapes, before which products of arguments fit anything */
#define POWERS_FROM 8
#define PAIRED      4 /* arguments of which products are tried */
#define LARGEST     (1ull << 40)
#define APART       0.05f /* what is nearer than this is the same */
#define BETTER      0.95f /* what a more complicated candidate must reach of a simpler one */

static_assert(WAVE_TERMS == NNLS_TERMS, "terms of a fit");

struct fitting {
	const struct wave_shape *shape;
	uint32_t n, folds;
	/* the nearest shape of another fold, by shape; n: none */
	uint32_t nearest[SHAPES];
	float weight[SHAPES][SHAPES]; /* how much one says about another */
	float best;
	struct wave_fit fit;
};

float wave_scalar(uint64_t arg)
{
	return arg < LARGEST ? (float)arg : 0;
}

static float log2_of(float x)
{
	return approx_log2(1 + x);
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
	const float width = (float)__atomic_load_n(&a->width, __ATOMIC_RELAXED);
	const float wider = (width - (float)b->width) * (1.0f / WIDTH_ONE);
	float sum = gap(load_float(&a->waves) * 64, b->waves * 64);
	sum += wider < 0 ? -wider : wider;
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

static void powers_of(const struct wave_shape *s, float terms[static POWER_TERMS])
{
	terms[0] = 1;
	terms[1] = log2_of(load_float(&s->waves) * 64);
	terms[2] = (float)__atomic_load_n(&s->width, __ATOMIC_RELAXED) * (1.0f / WIDTH_ONE);
	terms[3] = log2_of(load_float(&s->bound_ns));
	for (int i = 0; i < PREDICT_ARGS; i++)
		terms[4 + i] = log2_of(load_float(&s->arg[i]));
}

static float power_told(const struct wave_fit *f, const struct wave_shape *s)
{
	float terms[POWER_TERMS], sum = 0;
	powers_of(s, terms);
	for (int i = 0; i < POWER_TERMS; i++)
		sum += f->weight[i] * terms[i];
	return approx_exp2(sum);
}

/* What the fit says of a shape, without a look at those around. */
static float told(const struct wave_fit *f, const struct wave_shape *s)
{
	if (f->kind == WAVE_NONE || f->kind == WAVE_NEAREST)
		return load_float(&s->bound_ns);
	if (f->kind == WAVE_RATIO)
		return load_float(&s->bound_ns) * f->ratio;
	if (f->kind == WAVE_POWER)
		return power_told(f, s);
	return evaluate(f, s);
}

/* How much a shape says about another that is so far away. */
static float nearness(float distance)
{
	const float d = distance + APART;
	return 1 / (d * d * d);
}

static float residual(const struct wave_fit *f, const struct wave_shape *s)
{
	const float t = load_float(&s->t_ns) / told(f, s);
	return t > 1e-18f && t < 1e18f ? approx_log2(t) : 0;
}

void wave_note(struct kernel_slot *slot, size_t at)
{
	const float r = residual(&slot->head.fit, &slot->shape[at]) * RESIDUAL_ONE;
	slot->residual[at] = (int16_t)(r > INT16_MAX ? INT16_MAX : r < INT16_MIN ? INT16_MIN : r);
}

static float around(const struct kernel_slot *slot, uint32_t shapes, const struct wave_shape *s)
{
	float sum = 0, weights = 0;
	for (uint32_t i = 0; i < shapes && i < SHAPES; i++) {
		const float w = nearness(distance(&slot->shape[i], s));
		sum += w * (float)__atomic_load_n(&slot->residual[i], __ATOMIC_RELAXED);
		weights += w;
	}
	return sum / (weights * RESIDUAL_ONE);
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
	float t = told(fit, shape);
	if (fit->corrected == MEND_AROUND) {
		t *= approx_exp2(around(slot, shapes, shape));
	} else if (fit->corrected == MEND_NEAREST || fit->kind == WAVE_NONE) {
		const uint32_t near = nearest_of(slot, shapes, shape);
		const struct wave_shape *other = &slot->shape[near];
		t *= load_float(&other->t_ns) / told(fit, other);
		/* how two shapes of one kernel differ is what models of other kernels know best */
		const float apart = cold - load_float(&slot->cold[near]);
		if (fit->kind == WAVE_NONE && is_finite(apart))
			t *= approx_exp2(apart);
	}
	*ret_ns = t;
	return t > 0 && t < 1e18f;
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
			f->weight[i][j] = nearness(d);
			if (f->nearest[i] == f->n || d < least) {
				f->nearest[i] = j;
				least = d;
			}
		}
	}
}

static void fit_linear(const struct fitting *f, uint32_t without, struct wave_fit *c)
{
	float terms[WAVE_TERMS];
	double scaled[WAVE_TERMS];
	struct normal n = { 0 };
	for (uint32_t i = 0; i < f->n; i++) {
		if (i % f->folds == without)
			continue;
		terms_of(c, &f->shape[i], terms);
		for (int k = 0; k < WAVE_TERMS; k++)
			scaled[k] = (double)terms[k] / (double)f->shape[i].t_ns;
		normal_add(&n, scaled);
	}
	normal_solve(&n, scaled);
	for (int k = 0; k < WAVE_TERMS; k++)
		c->weight[k] = (float)scaled[k];
}

static void fit_power(const struct fitting *f, uint32_t without, struct wave_fit *c)
{
	float terms[POWER_TERMS];
	struct power_sums sums = { 0 };
	for (uint32_t i = 0; i < f->n; i++) {
		if (i % f->folds == without)
			continue;
		powers_of(&f->shape[i], terms);
		power_add(&sums, terms, approx_log2(f->shape[i].t_ns));
	}
	power_solve(&sums, c->weight);
}

static float magnitude(float off)
{
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

/* To all shapes but those of the fold; to all for fold == folds. */
static void fit_without(const struct fitting *f, uint32_t fold, struct wave_fit *c)
{
	c->ratio = c->kind == WAVE_RATIO ? ratio_median(f, fold) : 0;
	if (c->kind == WAVE_POWER)
		fit_power(f, fold, c);
	else if (c->kind == WAVE_LINEAR || c->kind == WAVE_BOUND)
		fit_linear(f, fold, c);
}

/* As around(), from the shapes of the other folds. */
static float around_held_out(const struct fitting *f, const float *residuals, uint32_t i)
{
	float sum = 0, weights = 0;
	for (uint32_t j = 0; j < f->n; j++) {
		const float w = i % f->folds == j % f->folds ? 0 : f->weight[i][j];
		sum += w * residuals[j];
		weights += w;
	}
	return sum / weights;
}

/* Errors of the held-out shapes, with each way to mend. */
static void cross_validate(
	const struct fitting *f, const struct wave_fit *candidate, float off[static MENDS][SHAPES])
{
	for (uint32_t fold = 0; fold < f->folds; fold++) {
		struct wave_fit c = *candidate;
		float residuals[SHAPES];
		fit_without(f, fold, &c);
		for (uint32_t i = 0; i < f->n; i++)
			residuals[i] = residual(&c, &f->shape[i]);
		for (uint32_t i = fold; i < f->n; i += f->folds) {
			const float r = residuals[i];
			off[MEND_NONE][i] = magnitude(r);
			off[MEND_NEAREST][i] = magnitude(r - residuals[f->nearest[i]]);
			off[MEND_AROUND][i] = magnitude(r - around_held_out(f, residuals, i));
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

/* The sum of its errors, the best way. */
static float try_candidate(struct fitting *f, enum wave_kind kind, int first, int second)
{
	float off[MENDS][SHAPES], least = 0;
	struct wave_fit c = {
		.kind = (uint8_t)kind, .first = (uint8_t)first, .second = (uint8_t)second
	};
	cross_validate(f, &c, off);
	for (int mend = kind == WAVE_NEAREST; mend < MENDS; mend++) {
		if (kind == WAVE_RATIO && mend)
			break;
		c.corrected = (uint8_t)mend;
		const float sum = take_if_better(f, &c, off[mend]);
		if (mend == (kind == WAVE_NEAREST) || sum < least)
			least = sum;
	}
	return least;
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
	if (f.n >= POWERS_FROM)
		try_candidate(&f, WAVE_POWER, NO_ARG, NO_ARG);
	fit_without(&f, f.folds, &f.fit);
	slot->head.fit = f.fit;
	slot->head.stale = 0;
	for (uint32_t i = 0; i < f.n; i++)
		wave_note(slot, i);
}
