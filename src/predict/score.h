/*
 * Tracks the errors of answers, from which t90, the confidence and the common slowdown of all
 * kernels follow.
 *
 * A tier gives each time a scale, its own estimate of the error as a log2. A score is log2(measured
 * / t50) / scale, and t90 is t50 * 2^(scale * the 90th percentile of scores). So t90 holds in 90 %
 * of cases even if the tiers' scales are wrong, as long as the near future resembles the near past.
 * This is split conformal prediction (Vovk, Gammerman and Shafer 2005) over a sliding window.
 *
 * Otherwise the quantile moves: a little up after each time above its t90, and a ninth as much down
 * after any other. This is adaptive conformal inference (Gibbs and Candes 2021). Short kernels vary
 * more, so durations are kept apart (Mondrian, in Vovk's words).
 */
#pragma once

#include "base/atomic.h"
#include "predict/approx.h"
#include "predict/predictor.h"
#include "predict/tables.h"

/* Before there are scores: errors taken for Laplacian, and scales for the median of their
 * absolutes, 90 % are below 2.3 scales. */
#define SCORE_FIRST_Q90    2.3f
#define SCORE_FIRST_MEDIAN 1.0f
#define SCALE_LEAST        0.0015f /* a tenth of a per cent: device timers are no finer */

/* The duration class of a time: fewer than DURATIONS. */
static inline int score_duration(float ns)
{
	return (ns >= 2e3f) + (ns >= 1e4f) + (ns >= 1e5f) + (ns >= 1e6f);
}

/* The place of the quantiles of a tier and duration.  Both are read as one word. */
static inline any_word *score_quantiles(
	struct predict_tables *t, enum predict_tier tier, int duration)
{
	return (any_word *)&t->hot.quantiles[PREDICT_TIERS - 1 - tier][duration];
}

static inline struct quantiles score_quantiles_read(
	const struct predict_tables *t, enum predict_tier tier, float t50_ns)
{
	const uint32_t word = load_relaxed(
		shared(score_quantiles((struct predict_tables *)t, tier, score_duration(t50_ns))));
	struct quantiles quantiles;
	memcpy(&quantiles, &word, sizeof quantiles);
	return quantiles;
}

static inline void score_quantiles_store(
	struct predict_tables *t, enum predict_tier tier, int duration, struct quantiles quantiles)
{
	uint32_t word;
	if (!expect_inside(tier < PREDICT_TIERS && (unsigned)duration < DURATIONS &&
				   quantiles.q90 && quantiles.median_abs,
		    "quantiles are above 0, and have a place"))
		return;
	memcpy(&word, &quantiles, sizeof word);
	store_relaxed(shared(score_quantiles(t, tier, duration)), word);
}

/* An answer of ref_ns * 2^ratio, and its t90 and confidence. */
static inline void score_answer(const struct predict_tables *t, enum predict_tier tier,
	float ref_ns, float ratio, float scale, struct predict_answer *a)
{
	/* Errors taken for Laplacian: half of them are below the median, and so on. */
	const float within_20_pct = 0.26303441f;
	const float u = scale > SCALE_LEAST ? scale : SCALE_LEAST;
	a->tier = tier;
	a->class_only = false;
	a->t50_ns = ref_ns * approx_exp2(ratio);
	const struct quantiles quantiles = score_quantiles_read(t, tier, a->t50_ns);
	a->t90_ns = a->t50_ns * approx_exp2((float)quantiles.q90 / QUANTILE_ONE * u);
	a->confidence =
		1 - approx_exp2(-within_20_pct * QUANTILE_ONE / ((float)quantiles.median_abs * u));
}

/* The quantiles before anything has come true. */
void score_init(struct predict_tables *t);

/* Forgets what came of a tier's answers. */
void score_forget(struct predict_tables *t, enum predict_tier tier);

/* Adds the score of an answer that was given without the slowdown. */
void score_push(struct predict_tables *t, const struct predict_answer *a, double measured_ns);

void log_ratio_push(struct log_ratio_ring *ring, float value);

static inline uint32_t log_ratio_count(const struct log_ratio_ring *ring)
{
	return load_acquire(shared(&ring->n));
}

/* One more log2(measured / expected). */
void slowdown_push(struct predict_tables *t, bool contended, float value);

/* The q-quantile (0 to 1) of n values, which are reordered; n > 0. */
float score_quantile(float *values, size_t n, double q);
