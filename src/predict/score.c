/* Scores, effects and the slowdown: see score.h. */
#include "predict/score.h"

#include "base/banned.h"

#define ENOUGH       10 /* scores, before which the first guess stands */
#define EVERY        8
#define LEAST_ODDS   52 /* a twentieth */
#define LEAN_STEP    0.01f
#define LEAN_MOST    0.0999f
#define DEAD_BAND    0.03f /* a slowdown of 2 % is noise */
#define SLOWDOWN_LOG 2.0f  /* nothing slows everything fourfold: that is another program */

/* Heapsort: in place, no recursion, no library. */
static void sift(float *v, size_t at, size_t n)
{
	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && v[child + 1] > v[child])
			child++;
		if (v[at] >= v[child])
			return;
		const float t = v[at];
		v[at] = v[child];
		v[child] = t;
	}
}

static void sort(float *v, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift(v, i, n);
	for (size_t end = n; end-- > 1;) {
		const float t = v[0];
		v[0] = v[end];
		v[end] = t;
		sift(v, 0, end);
	}
}

/* Of n + 1 values, of which one is still to come: that is why the last counts as the next. */
float score_quantile(float *values, size_t n, double q)
{
	sort(values, n);
	const size_t rank = (size_t)((double)(n + 1) * q + 0.999999);
	return values[rank > n ? n - 1 : rank ? rank - 1 : 0];
}

static float magnitude(float x)
{
	return x < 0 ? -x : x;
}

static uint16_t odd_of(float x)
{
	const float scaled = x * ODDS_ONE;
	return scaled < LEAST_ODDS   ? (uint16_t)LEAST_ODDS
	       : scaled > UINT16_MAX ? UINT16_MAX
				     : (uint16_t)scaled;
}

static void first_odds(struct predict_tables *t, enum predict_tier tier)
{
	const struct odds first = { odd_of(SCORE_FIRST_Q90), odd_of(SCORE_FIRST_TYPICAL) };
	for (int duration = 0; duration < DURATIONS; duration++)
		score_odds_store(t, tier, duration, first);
}

void score_init(struct predict_tables *t)
{
	for (int tier = 0; tier < PREDICT_TIERS; tier++)
		first_odds(t, (enum predict_tier)tier);
}

void score_forget(struct predict_tables *t, enum predict_tier tier)
{
	memset(t->scores[tier], 0, sizeof(t->scores[tier]));
	first_odds(t, tier);
}

static struct odds odds_of(const struct score_ring *ring)
{
	float sorted[SCORES];
	const size_t n = ring->n < SCORES ? ring->n : SCORES;
	struct odds odds;
	memcpy(sorted, ring->score, n * sizeof(sorted[0]));
	odds.q90 = odd_of(score_quantile(sorted, n, 0.9 + (double)ring->lean));
	for (size_t i = 0; i < n; i++)
		sorted[i] = magnitude(ring->score[i]);
	odds.typical = odd_of(score_quantile(sorted, n, 0.5));
	return odds;
}

/* Moved so that what is told holds nine times out of ten in the long run, whatever comes. */
static float lean_after(float lean, bool held)
{
	lean += LEAN_STEP * (held ? -0.1f : 0.9f);
	return lean > LEAN_MOST ? LEAN_MOST : lean < -LEAN_MOST ? -LEAN_MOST : lean;
}

/* Durations of which too little has come true go by their neighbour. */
static void tell_odds(struct predict_tables *t, enum predict_tier tier, int duration)
{
	const struct odds odds = odds_of(&t->scores[tier][duration]);
	score_odds_store(t, tier, duration, odds);
	for (int other = 0; other < DURATIONS; other++)
		if (t->scores[tier][other].n < ENOUGH)
			score_odds_store(t, tier, other, odds);
}

void score_push(struct predict_tables *t, const struct predict_answer *a, double measured_ns)
{
	const int duration = score_duration(a->t50_ns);
	struct score_ring *ring = &t->scores[a->tier][duration];
	const struct odds odds = score_odds_read(t, a->tier, a->t50_ns);
	const float width = approx_log2(a->t90_ns / a->t50_ns);
	const float unit = width * ODDS_ONE / (float)odds.q90;
	const float off = approx_log2((float)measured_ns / a->t50_ns);
	ring->score[ring->n++ % SCORES] = off / (unit > UNIT_LEAST ? unit : UNIT_LEAST);
	ring->lean = lean_after(ring->lean, measured_ns <= (double)a->t90_ns);
	if (ring->n >= ENOUGH && ring->n % EVERY == 0)
		tell_odds(t, a->tier, duration);
}

void effect_push(struct effect_ring *ring, float value)
{
	float sorted[EFFECTS];
	const uint32_t count = ring->n + 1;
	const size_t n = count < EFFECTS ? count : EFFECTS;
	ring->value[(count - 1) % EFFECTS] = value;
	memcpy(sorted, ring->value, n * sizeof(sorted[0]));
	const float median = score_quantile(sorted, n, 0.5);
	for (size_t i = 0; i < n; i++)
		sorted[i] = magnitude(ring->value[i] - median);
	store_float(&ring->median, median);
	store_float(&ring->typical, score_quantile(sorted, n, 0.5));
	/* Release, pairs with effect_count(): who sees the count sees its median. */
	__atomic_store_n(&ring->n, count, __ATOMIC_RELEASE);
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
	memcpy(sorted, s->value, sizeof(sorted));
	/* what moves everything moves nearly all of them, and the same way */
	const float low = score_quantile(sorted, SLOWDOWN_SPAN, 0.1);
	const float high = score_quantile(sorted, SLOWDOWN_SPAN, 0.9);
	const float median = score_quantile(sorted, SLOWDOWN_SPAN, 0.5);
	const bool common = low > DEAD_BAND || high < -DEAD_BAND;
	store_float(&t->hot.slower[contended], common ? approx_exp2(median) : 1);
}
