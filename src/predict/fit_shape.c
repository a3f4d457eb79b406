/*
 * Fits the model of predictor_shape.c. Each candidate is fitted without an eighth of the shapes and
 * tested on them, eight times. With fewer than nine shapes one is left out at a time.
 *
 * The candidate with the least mean relative error wins, and errors above a factor of four count as
 * four. Observations are weighted by 1/t^2, outliers less.
 *
 * A time is a sum of started waves and of rounds on the fullest SM. The first half wave costs no
 * less when it is not full, because it waits for memory. Each counts alone and times the work of a
 * block. That work is a scalar argument, a product of two, or bytes and FLOPs divided by the
 * blocks, each with its own ceiling.
 */
#include "predict/fit_shape.h"

#include "base/atomic.h"
#include "predict/fit_nnls.h"
#include "predict/score.h"

#define FOLDS       8
#define TURNS       3 /* of a fit, in which outliers lose weight */
#define OUTLIER     0.1f
#define WORST       2.0f
#define PAIRS_FROM  16
#define POWERS_FROM 8
#define RIDGE       0.03 /* of one shape's worth: a kernel's own law follows from its shapes */
#define PAIRED      4    /* arguments of which products are tried */
#define LARGEST     (1ull << 40)
#define ROUNDING    1e-6f /* of a number of waves */
#define HALF_FULL   0.5f
#define APART       0.05f /* what is nearer than this is the same */

static_assert(LINEAR_TERMS == NNLS_TERMS, "terms of a fit");

struct fitting {
	const struct kernel_shape *shape;
	uint32_t n, folds;
	/* the nearest shape of another fold, by shape; n: none */
	uint32_t nearest[SHAPES];
	float weight[SHAPES][SHAPES];   /* how much one says about another */
	struct normal all, fold[FOLDS]; /* sums for the linear candidate that is tried */
	float best;
	struct shape_fit fit;
};

float shape_scalar(uint64_t arg)
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
	memcpy(&bits, &x, sizeof bits);
	return (float)bits * (1.0f / (1 << 23));
}

static float gap(float a, float b)
{
	const float d = rough_log2(1 + a) - rough_log2(1 + b);
	return d < 0 ? -d : d;
}

static float distance(const struct kernel_shape *a, const struct kernel_shape *b)
{
	const float width = (float)load_relaxed(shared(&a->width));
	const float wider = (width - (float)b->width) * (1.0f / WIDTH_ONE);
	float sum = gap(load_float(&a->waves) * 64, b->waves * 64);
	sum += wider < 0 ? -wider : wider;
	for (int i = 0; i < PREDICT_ARGS; i++)
		sum += gap(load_float(&a->arg[i]), b->arg[i]);
	return sum;
}

static float scalar_of(const struct shape_fit *f, const struct kernel_shape *s)
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
	const bool fits = waves > -1e9f && waves < 1e9f; /* a file may say anything, NaN too */
	const float down = fits ? (float)(int64_t)waves : waves;
	return down < waves ? down + 1 : down;
}

/* Blocks of the SM that has most of them, as a multiple of what it holds at a time. */
static float rounds_of(const struct kernel_shape *s, float waves)
{
	const float resident = (float)load_relaxed(shared(&s->resident));
	return resident > 0 ? whole(waves * resident * (1 - ROUNDING)) / resident : waves;
}

/* As in question.c: the SM that has most blocks is ready last. */
static float bound_of(const struct kernel_shape *s)
{
	const float bytes = load_float(&s->bytes_ns), waves = load_float(&s->waves);
	const float flops = load_float(&s->flops_ns) * rounds_of(s, waves) / waves;
	return flops > bytes ? flops : bytes;
}

static void terms_of(
	const struct shape_fit *f, const struct kernel_shape *s, float terms[static LINEAR_TERMS])
{
	const float w = load_float(&s->waves), begun = whole(w);
	const float rounds = rounds_of(s, w);
	const float held = rounds > HALF_FULL ? rounds : HALF_FULL;
	terms[0] = 1;
	terms[1] = begun;
	terms[2] = rounds;
	terms[3] = held;
	if (f->kind == FIT_BOUND) {
		const float bytes = load_float(&s->bytes_ns), flops = load_float(&s->flops_ns);
		terms[4] = bytes;
		terms[5] = bytes * held / w;
		terms[6] = flops;
		terms[7] = flops * begun / w;
		terms[8] = flops * rounds / w;
		terms[9] = flops * held / w;
		return;
	}
	const float scalar = f->first < PREDICT_ARGS ? scalar_of(f, s) : 0;
	terms[4] = w;
	terms[5] = scalar;
	terms[6] = begun * scalar;
	terms[7] = w * scalar;
	terms[8] = rounds * scalar;
	terms[9] = held * scalar;
}

static float evaluate(const struct shape_fit *f, const struct kernel_shape *s)
{
	float terms[LINEAR_TERMS], t = 0;
	terms_of(f, s, terms);
	for (int i = 0; i < LINEAR_TERMS; i++)
		t += f->weight[i] * terms[i];
	return t;
}

static void powers_of(const struct kernel_shape *s, float terms[static POWER_TERMS])
{
	const float w = load_float(&s->waves);
	terms[0] = 1;
	terms[1] = log2_of(w * 64);
	terms[2] = log2_of(rounds_of(s, w) * 64);
	terms[3] = (float)load_relaxed(shared(&s->width)) * (1.0f / WIDTH_ONE);
	terms[4] = log2_of(load_float(&s->bytes_ns));
	terms[5] = log2_of(load_float(&s->flops_ns));
	for (int i = 0; i < PREDICT_ARGS; i++)
		terms[6 + i] = log2_of(load_float(&s->arg[i]));
	const uint8_t tile = load_relaxed(shared(&s->tile));
	terms[6 + PREDICT_ARGS] = log2_of(whole(w));
	terms[7 + PREDICT_ARGS] = (float)(tile >> 4) / 2;
	terms[8 + PREDICT_ARGS] = (float)(tile & 15) / 2;
}

static float power_predicted(const struct shape_fit *f, const struct kernel_shape *s)
{
	float terms[POWER_TERMS], sum = 0;
	powers_of(s, terms);
	for (int i = 0; i < POWER_TERMS; i++)
		sum += f->weight[i] * terms[i];
	return approx_exp2(sum);
}

/* The fit's prediction for a shape, without a look at the shapes around. */
static float predicted(const struct shape_fit *f, const struct kernel_shape *s)
{
	if (f->kind == FIT_NONE || f->kind == FIT_NEAREST)
		return bound_of(s);
	if (f->kind == FIT_RATIO)
		return bound_of(s) * f->ratio;
	if (f->kind == FIT_POWER)
		return power_predicted(f, s);
	return evaluate(f, s);
}

/* How much a shape says about another that is so far away. */
static float nearness(float distance)
{
	const float d = distance + APART;
	return 1 / (d * d * d);
}

static float residual(const struct shape_fit *f, const struct kernel_shape *s)
{
	const float t = load_float(&s->t_ns) / predicted(f, s);
	return t > 1e-18f && t < 1e18f ? approx_log2(t) : 0;
}

void shape_set_residual(struct kernel_slot *slot, size_t at)
{
	if (!expect_inside(at < SHAPES, "a shape is inside its slot"))
		return;
	const float r = residual(&slot->head.fit, &slot->shape[at]) * RESIDUAL_ONE;
	slot->residual[at] = (int16_t)(r > INT16_MAX ? INT16_MAX : r > INT16_MIN ? r : INT16_MIN);
}

static float around(const struct kernel_slot *slot, uint32_t shapes, const struct kernel_shape *s)
{
	float sum = 0, weights = 0;
	for (uint32_t i = 0; i < shapes && i < SHAPES; i++) {
		const float w = nearness(distance(&slot->shape[i], s));
		sum += w * (float)load_relaxed(shared(&slot->residual[i]));
		weights += w;
	}
	return sum / (weights * RESIDUAL_ONE);
}

static uint32_t nearest_of(
	const struct kernel_slot *slot, uint32_t shapes, const struct kernel_shape *shape)
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

/* As the nearest shape, scaled by what the fit says of both; what no kernel is shorter than is not
 * scaled, where there is no fit yet. */
static float by_nearest(
	const struct shape_fit *fit, const struct kernel_shape *near, float t, float least_ns)
{
	const float known = load_float(&near->t_ns), ratio = t / predicted(fit, near);
	if (fit->kind != FIT_NONE || known < least_ns)
		return known * ratio;
	return least_ns + (known - least_ns) * ratio;
}

bool fit_predict(const struct shape_fit *fit, const struct kernel_slot *slot, uint32_t shapes,
	const struct kernel_shape *shape, float least_ns, float *ret_ns)
{
	if (!shapes)
		return false;
	float t = predicted(fit, shape);
	if (fit->corrected == CORRECTION_AROUND || fit->corrected == CORRECTION_HALF) {
		const float about = around(slot, shapes, shape);
		t *= approx_exp2(fit->corrected == CORRECTION_HALF ? about / 2 : about);
	} else if (fit->corrected == CORRECTION_NEAREST || fit->kind == FIT_NONE) {
		t = by_nearest(fit, &slot->shape[nearest_of(slot, shapes, shape)], t, least_ns);
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

static float magnitude(float off)
{
	const float size = off < 0 ? -off : off;
	return size < WORST ? size : WORST;
}

static void linear_solve(const struct normal *n, struct shape_fit *c)
{
	double weights[LINEAR_TERMS];
	normal_solve(n, weights);
	for (int k = 0; k < LINEAR_TERMS; k++)
		c->weight[k] = (float)weights[k];
}

/* The sums of all shapes and of each fold.  One launch in some is slower than it ever is again:
 * what the fit to all is off by most counts least. */
static void linear_sum(struct fitting *f, const struct shape_fit *candidate)
{
	struct shape_fit c = *candidate;
	float terms[LINEAR_TERMS];
	double scaled[LINEAR_TERMS];
	for (int turn = 0; turn < TURNS; turn++) {
		memset(&f->all, 0, sizeof f->all);
		memset(f->fold, 0, sizeof f->fold);
		for (uint32_t i = 0; i < f->n; i++) {
			const float off = turn ? magnitude(residual(&c, &f->shape[i])) : 0;
			const float weight = off > OUTLIER ? OUTLIER / off : 1;
			terms_of(&c, &f->shape[i], terms);
			for (int k = 0; k < LINEAR_TERMS; k++)
				scaled[k] = (double)terms[k] / (double)f->shape[i].t_ns;
			normal_add(&f->all, scaled, (double)weight);
			normal_add(&f->fold[i % f->folds], scaled, (double)weight);
		}
		linear_solve(&f->all, &c);
	}
}

static void fit_linear(const struct fitting *f, uint32_t without, struct shape_fit *c)
{
	struct normal n = f->all;
	if (without < f->folds)
		normal_less(&n, &f->fold[without]);
	linear_solve(&n, c);
}

static void fit_power(const struct fitting *f, uint32_t without, struct shape_fit *c)
{
	float terms[POWER_TERMS];
	struct power_sums sums = { 0 };
	for (uint32_t i = 0; i < f->n; i++) {
		if (i % f->folds == without)
			continue;
		powers_of(&f->shape[i], terms);
		power_add(&sums, terms, approx_log2(f->shape[i].t_ns));
	}
	power_solve(&sums, RIDGE, c->weight);
}

static float ratio_median(const struct fitting *f, uint32_t without)
{
	float ratios[SHAPES];
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n; i++)
		if (i % f->folds != without)
			ratios[n++] = f->shape[i].t_ns / bound_of(&f->shape[i]);
	return score_quantile(ratios, n, 0.5);
}

static bool is_linear(const struct shape_fit *c)
{
	return c->kind == FIT_LINEAR || c->kind == FIT_BOUND;
}

/* To all shapes but those of the fold; to all for fold == folds. */
static void fit_without(const struct fitting *f, uint32_t fold, struct shape_fit *c)
{
	c->ratio = c->kind == FIT_RATIO ? ratio_median(f, fold) : 0;
	if (c->kind == FIT_POWER)
		fit_power(f, fold, c);
	else if (is_linear(c))
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

/* Errors of the held-out shapes, with each way to correct them. */
static void cross_validate(
	struct fitting *f, const struct shape_fit *candidate, float off[static CORRECTIONS][SHAPES])
{
	if (is_linear(candidate))
		linear_sum(f, candidate);
	for (uint32_t fold = 0; fold < f->folds; fold++) {
		struct shape_fit c = *candidate;
		float residuals[SHAPES];
		fit_without(f, fold, &c);
		for (uint32_t i = 0; i < f->n; i++)
			residuals[i] = residual(&c, &f->shape[i]);
		for (uint32_t i = fold; i < f->n; i += f->folds) {
			const float r = residuals[i];
			off[CORRECTION_NONE][i] = magnitude(r);
			off[CORRECTION_NEAREST][i] = magnitude(r - residuals[f->nearest[i]]);
			const float about = around_held_out(f, residuals, i);
			off[CORRECTION_AROUND][i] = magnitude(r - about);
			off[CORRECTION_HALF][i] = magnitude(r - about / 2);
		}
	}
}

static float take_if_better(
	struct fitting *f, const struct shape_fit *candidate, float off[static SHAPES])
{
	float sum = 0;
	for (uint32_t i = 0; i < f->n; i++)
		sum += off[i];
	if (f->fit.kind != FIT_NONE && sum >= f->best)
		return sum;
	f->best = sum;
	f->fit = *candidate;
	f->fit.scale = score_quantile(off, f->n, 0.5);
	return sum;
}

/* The sum of its errors, the best way. */
static float try_candidate(struct fitting *f, enum fit_kind kind, int first, int second)
{
	float off[CORRECTIONS][SHAPES], least = 0;
	struct shape_fit c = {
		.kind = (uint8_t)kind, .first = (uint8_t)first, .second = (uint8_t)second
	};
	cross_validate(f, &c, off);
	for (int correction = kind == FIT_NEAREST; correction < CORRECTIONS; correction++) {
		if (kind == FIT_RATIO && correction)
			break;
		c.corrected = (uint8_t)correction;
		const float sum = take_if_better(f, &c, off[correction]);
		if (correction == (kind == FIT_NEAREST) || sum < least)
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
				(struct ranked){ i, try_candidate(f, FIT_LINEAR, i, NO_ARG) });
	for (uint32_t i = 0; f->n >= PAIRS_FROM && i < n; i++)
		for (uint32_t j = 0; j <= i; j++)
			try_candidate(f, FIT_LINEAR, best[i].arg, best[j].arg);
}

static void try_all(struct fitting *f, unsigned known_cost)
{
	try_candidate(f, FIT_NEAREST, NO_ARG, NO_ARG);
	try_candidate(f, FIT_RATIO, NO_ARG, NO_ARG);
	try_candidate(f, FIT_LINEAR, NO_ARG, NO_ARG);
	if (known_cost)
		try_candidate(f, FIT_BOUND, NO_ARG, NO_ARG);
	try_scalars(f);
	if (f->n >= POWERS_FROM)
		try_candidate(f, FIT_POWER, NO_ARG, NO_ARG);
	if (is_linear(&f->fit))
		linear_sum(f, &f->fit);
}

void shape_refit(struct kernel_slot *slot)
{
	struct fitting f = { .shape = slot->shape, .n = slot->head.shapes };
	if (!expect_inside(f.n && f.n <= SHAPES, "as many shapes are fitted as a slot holds"))
		return;
	f.folds = f.n < FOLDS ? f.n : FOLDS;
	find_nearest(&f);
	try_all(&f, slot->head.known_cost);
	fit_without(&f, f.folds, &f.fit);
	slot->head.fit = f.fit;
	slot->head.stale = 0;
	for (uint32_t i = 0; i < f.n; i++)
		shape_set_residual(slot, i);
}
