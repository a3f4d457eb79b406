/*
 * How far answers are off, and what follows from it: the width of t90, confidence, and the
 * slowdown that is common to all kernels.
 *
 * A tier gives with each time a unit: how far off it thinks it may be, as a log2.  What came true
 * is kept as scores, log2(measured / t50) / unit, and t90 is t50 * 2^(unit * the scores' 90th
 * percentile).  So it holds nine times out of ten even where the tiers' own units are wrong, as
 * long as the near future is like the near past (split conformal prediction: Vovk, Gammerman and
 * Shafer 2005, over a sliding window).
 */
#ifndef WEIR_PREDICT_SCORE_H
#define WEIR_PREDICT_SCORE_H

#include "predict/approx.h"
#include "predict/predict.h"
#include "predict/tables.h"

/* How many units t90 is above t50 before there are scores. */
#define SCORE_FIRST_Q90 1.5f
#define UNIT_LEAST      0.0015f /* a tenth of a per cent: device timers are no finer */

/* An answer of ref_ns * 2^ratio, and its t90 and confidence. */
static inline void score_answer(const struct predict_tables *t, enum predict_tier tier,
	float ref_ns, float ratio, float unit, struct predict_answer *a)
{
	/* Errors taken for Laplacian: half of them are below the median, and so on. */
	const float within_20_pct = 0.26303441f;
	const float u = unit > UNIT_LEAST ? unit : UNIT_LEAST;
	a->tier = tier;
	a->class_only = false;
	a->t50_ns = ref_ns * approx_exp2(ratio);
	a->t90_ns = a->t50_ns * approx_exp2(load_float(&t->hot.tier[tier].q90) * u);
	a->confidence =
		1 - approx_exp2(-within_20_pct / (load_float(&t->hot.tier[tier].typical) * u));
}

/* What came of an answer that was given without the slowdown. */
void score_push(struct predict_tables *t, const struct predict_answer *a, double measured_ns);

void effect_push(struct effect_ring *ring, float value);

static inline uint32_t effect_count(const struct effect_ring *ring)
{
	return __atomic_load_n(&ring->n, __ATOMIC_ACQUIRE);
}

/* One more log2(measured / expected). */
void slowdown_push(struct predict_tables *t, bool contended, float value);

/* The q-quantile (0 to 1) of n values, which are reordered; n > 0. */
float score_quantile(float *values, size_t n, double q);

#endif
