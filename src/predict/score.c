/* Scores, log ratios and the slowdown: see score.h. */
#include "predict/score.h"

#include "base/sort.h"

#define ENOUGH         10 /* scores, before which the first guess stands */
#define EVERY          8
#define QUANTILE_LEAST 52 /* a twentieth */
#define SHIFT_STEP     0.01f
#define SHIFT_MOST     0.0999f
#define DEAD_BAND      0.03f /* a slowdown of 2 % is noise */
#define SLOWDOWN_LOG   2.0f  /* nothing slows everything fourfold: that is another program */

/* A quantile of n + 1 values, of which one is still to come: that is why the last counts as the
 * next. */
float score_quantile(float *values, size_t n, double q)
{
	sort_floats(values, n);
	const size_t rank = (size_t)((double)(n + 1) * q + 0.999999);
	if (!expect_inside(n && q > 0 && q < 1, "a quantile is of some values, between 0 and 1"))
		return 0;
	return values[rank > n ? n - 1 : rank ? rank - 1 : 0];
}

static float magnitude(float x)
{
	return x < 0 ? -x : x;
}

static uint16_t quantile_of(float x)
{
	const float scaled = x * QUANTILE_ONE;
	return scaled < QUANTILE_LEAST ? (uint16_t)QUANTILE_LEAST
	       : scaled > UINT16_MAX   ? UINT16_MAX
				       : (uint16_t)scaled;
}

static void first_quantiles(struct predict_tables *t, enum predict_tier tier)
{
	const struct quantiles first = { quantile_of(SCORE_FIRST_Q90),
		quantile_of(SCORE_FIRST_MEDIAN) };
	for (int duration = 0; duration < DURATIONS; duration++)
		score_quantiles_store(t, tier, duration, first);
}

void score_init(struct predict_tables *t)
{
	for (int tier = 0; tier < PREDICT_TIERS; tier++)
		first_quantiles(t, (enum predict_tier)tier);
}

void score_forget(struct predict_tables *t, enum predict_tier tier)
{
	memset(t->scores[tier], 0, sizeof t->scores[tier]);
	first_quantiles(t, tier);
}

static struct quantiles quantiles_of(const struct score_ring *ring)
{
	float sorted[SCORES];
	const size_t n = ring->n < SCORES ? ring->n : SCORES;
	struct quantiles quantiles;
	memcpy(sorted, ring->score, n * sizeof sorted[0]);
	quantiles.q90 = quantile_of(score_quantile(sorted, n, 0.9 + (double)ring->quantile_shift));
	for (size_t i = 0; i < n; i++)
		sorted[i] = magnitude(ring->score[i]);
	quantiles.median_abs = quantile_of(score_quantile(sorted, n, 0.5));
	return quantiles;
}

/* Moved so that what is predicted holds in 90 % of cases in the long run, whatever comes. */
static float shift_after(float quantile_shift, bool held)
{
	quantile_shift += SHIFT_STEP * (held ? -0.1f : 0.9f);
	return quantile_shift > SHIFT_MOST    ? SHIFT_MOST
	       : quantile_shift < -SHIFT_MOST ? -SHIFT_MOST
					      : quantile_shift;
}

/* Durations of which too little has come true go by their neighbour. */
static void store_quantiles(struct predict_tables *t, enum predict_tier tier, int duration)
{
	const struct quantiles quantiles = quantiles_of(&t->scores[tier][duration]);
	if (!expect_inside(quantiles.q90 >= QUANTILE_LEAST, "the p90 is above the p50"))
		return;
	score_quantiles_store(t, tier, duration, quantiles);
	for (int other = 0; other < DURATIONS; other++)
		if (t->scores[tier][other].n < ENOUGH)
			score_quantiles_store(t, tier, other, quantiles);
}

void score_push(struct predict_tables *t, const struct predict_answer *a, double measured_ns)
{
	const int duration = score_duration(a->t50_ns);
	if (!expect_inside(a->tier && a->tier < PREDICT_TIERS, "what is scored was predicted"))
		return;
	struct score_ring *ring = &t->scores[a->tier][duration];
	const struct quantiles quantiles = score_quantiles_read(t, a->tier, a->t50_ns);
	const float width = approx_log2(a->t90_ns / a->t50_ns);
	const float scale = width * QUANTILE_ONE / (float)quantiles.q90;
	const float off = approx_log2((float)measured_ns / a->t50_ns);
	ring->score[ring->n++ % SCORES] = off / (scale > SCALE_LEAST ? scale : SCALE_LEAST);
	ring->quantile_shift = shift_after(ring->quantile_shift, measured_ns <= (double)a->t90_ns);
	if (ring->n >= ENOUGH && ring->n % EVERY == 0)
		store_quantiles(t, a->tier, duration);
}

void log_ratio_push(struct log_ratio_ring *ring, float value)
{
	float sorted[LOG_RATIOS];
	const uint32_t count = ring->n + 1;
	const size_t n = count < LOG_RATIOS ? count : LOG_RATIOS;
	if (!expect_inside(count, "launches are counted upwards"))
		return;
	ring->value[(count - 1) % LOG_RATIOS] = value;
	memcpy(sorted, ring->value, n * sizeof sorted[0]);
	const float median = score_quantile(sorted, n, 0.5);
	for (size_t i = 0; i < n; i++)
		sorted[i] = magnitude(ring->value[i] - median);
	store_float(&ring->median, median);
	store_float(&ring->deviation, score_quantile(sorted, n, 0.5));
	/* Release, pairs with log_ratio_count(): who sees the count sees its median. */
	store_release(shared(&ring->n), count);
}

void slowdown_push(struct predict_tables *t, bool contended, float value)
{
	struct slowdown *s = &t->slowdown[contended];
	float sorted[SLOWDOWN_SPAN];
	if (magnitude(value) > SLOWDOWN_LOG)
		return;
	s->value[s->n++ % SLOWDOWN_SPAN] = value;
	if (s->n < SLOWDOWN_SPAN || s->n % EVERY)
		return;
	memcpy(sorted, s->value, sizeof sorted);
	/* what moves everything moves nearly all of them, and the same way */
	const float low = score_quantile(sorted, SLOWDOWN_SPAN, 0.1);
	const float high = score_quantile(sorted, SLOWDOWN_SPAN, 0.9);
	const float median = score_quantile(sorted, SLOWDOWN_SPAN, 0.5);
	const bool common = low > DEAD_BAND || high < -DEAD_BAND;
	store_float(&t->hot.slower[contended], common ? approx_exp2(median) : 1);
}
