/* One series of durations: windows come in, and an alarm is raised or ends.  See regress.h. */
#include "monitor/regress_series.h"

#include <math.h>
#include <string.h>

#include "base/expect.h"
#include "base/sort.h"
#include "monitor/rank.h"

#define SWING_WEIGHT (1.0f / 2160) /* of a window: six hours */
#define LOW_SHARE    0.8f  /* of the least effect, for the lower quantile, which is noisier */
#define TREND_MOST   0.05f /* that the base's own rise may explain */

static float median_of(const float *v, size_t n)
{
	float sorted[REGRESS_BASE];
	if (!expect(n <= REGRESS_BASE, "no more windows than a base has"))
		return 0;
	memcpy(sorted, v, n * sizeof *v);
	sort_floats(sorted, n);
	return rank_median(sorted, n);
}

/* Whether the base is an hour's without a hole: only then its rise is one of time. */
static bool is_unbroken(const struct regress_series *s)
{
	return s->unbroken >= REGRESS_BASE * REGRESS_STEP + REGRESS_CURRENT;
}

/* The base, sorted, as it would be now had it gone on rising as it did; one that fell is left as
 * it is: nobody is held to a fall. */
static void expected_of(const struct regress_series *s, float ret[REGRESS_BASE])
{
	const size_t n = s->base_n, half = n / 2;
	for (size_t i = 0; i < n; i++)
		ret[i] = s->base[(s->base_at + i) % n];
	const float rise =
		is_unbroken(s) ? median_of(ret + n - half, half) - median_of(ret, half) : 0;
	const float each = rise / (float)(n - half); /* from one window to the next */
	const float ahead = (float)REGRESS_CURRENT / 2 / REGRESS_STEP;
	const float most = each * ((float)(n - 1) / 2 + ahead);
	const float scale = most > TREND_MOST ? TREND_MOST / most : 1;
	for (size_t i = 0; i < n && each > 0; i++)
		ret[i] += each * scale * ((float)(n - 1 - i) + ahead);
	sort_floats(ret, n);
}

static void push_base(struct regress_series *s, float median)
{
	float sorted[REGRESS_BASE];
	if (++s->skipped < REGRESS_STEP)
		return;
	s->skipped = 0;
	if (s->base_n < REGRESS_BASE) {
		s->base[s->base_n++] = median;
	} else {
		s->base[s->base_at] = median;
		s->base_at = (uint16_t)((s->base_at + 1) % REGRESS_BASE);
	}
	if (s->base_n < REGRESS_LEAST)
		return;
	expected_of(s, sorted);
	s->expected = rank_median(sorted, s->base_n);
	s->expected_low = rank_quantile(sorted, s->base_n, REGRESS_LOW);
}

/* A value that leaves the current windows goes into the base, unless there is an alarm. */
static void push_current(struct regress_series *s, float median)
{
	if (s->current_n == REGRESS_CURRENT) {
		if (s->state != REGRESS_SLOWER)
			push_base(s, s->current[0]);
		memmove(s->current, s->current + 1, (REGRESS_CURRENT - 1) * sizeof *s->current);
		s->current_n--;
	}
	s->current[s->current_n++] = median;
	s->unbroken += s->unbroken < UINT16_MAX;
}

/* How far a series moves without being slower for good. */
static void learn_swing(struct regress_series *s)
{
	const float squared = s->swing * s->swing;
	s->swing = sqrtf(squared + (s->effect * s->effect - squared) * SWING_WEIGHT);
}

/* The test, which most windows do not come to. */
static void look(struct regress_series *s, const float current[REGRESS_CURRENT], double level)
{
	float expected[REGRESS_BASE];
	expected_of(s, expected);
	const double p = rank_p(expected, s->base_n, current, REGRESS_CURRENT);
	if (p > level)
		return;
	s->state = REGRESS_SLOWER;
	s->before = s->expected;
	s->after = s->expected + s->effect;
	s->p = p;
	s->level = level;
}

/* Windows that a burst is only partly in are above the others, but within their scatter: of that
 * the side below the median says how wide it is without bursts. */
static float least_effect(const struct regress_series *s)
{
	const float scatter = (float)REGRESS_SCATTERS * (s->expected - s->expected_low);
	return fmaxf((float)REGRESS_EFFECT, fmaxf(scatter, (float)REGRESS_SWINGS * s->swing));
}

/* Whether there was a test. */
static bool look_for_step(struct regress_series *s, double level)
{
	float current[REGRESS_CURRENT];
	memcpy(current, s->current, sizeof current);
	sort_floats(current, REGRESS_CURRENT);
	const float now = rank_median(current, REGRESS_CURRENT);
	if (s->state == REGRESS_SLOWER) { /* over when it is nearer to what was */
		s->effect = now - s->before;
		if (s->effect < (s->after - s->before) / 2)
			s->state = REGRESS_STEADY;
		return false;
	}
	const float least = least_effect(s);
	s->state = REGRESS_STEADY;
	s->effect = now - s->expected;
	learn_swing(s);
	if (s->effect < least ||
		rank_quantile(current, REGRESS_CURRENT, REGRESS_LOW) - s->expected_low <
			LOW_SHARE * least)
		return false;
	look(s, current, level);
	return true;
}

/* Days are those of its windows: one that runs eight hours a day has one in three. */
static void look_for_creep(struct regress_series *s, float median)
{
	if (s->state == REGRESS_SLOWER)
		return;
	s->day_sum += median;
	if (++s->day_n < REGRESS_DAY)
		return;
	const float mean = (float)(s->day_sum / (double)s->day_n);
	s->day_n = 0;
	s->day_sum = 0;
	if (!s->anchor) {
		s->anchor = mean;
		return;
	}
	s->crept = mean - s->anchor >= REGRESS_CREEP;
	if (s->crept) {
		s->before = s->anchor;
		s->after = mean;
		s->p = s->level = 0; /* there is no test */
	}
}

bool series_push(struct regress_series *s, float median, double level)
{
	push_current(s, median);
	look_for_creep(s, median);
	return s->current_n == REGRESS_CURRENT && s->base_n >= REGRESS_LEAST &&
	       look_for_step(s, level);
}

void series_accept(struct regress_series *s)
{
	s->state = REGRESS_LEARNS;
	s->crept = false;
	s->base_n = s->base_at = s->skipped = 0;
	s->day_n = 0;
	s->day_sum = 0;
	s->effect = s->anchor = 0;
}
