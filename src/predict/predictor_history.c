/*
 * Predicts a launch from its own earlier times.
 *
 * An average of logarithms follows the median, and an outlier counts as three deviations. Two
 * extreme launches in a row are a new regime, and the entry begins anew. Old observations weigh
 * less: after ten seconds of silence the count is halved, so the next one moves the estimate
 * further.
 */
#include "predict/predictor.h"

#include "base/atomic.h"
#include "predict/score.h"
#include "predict/tables.h"

#define SILENCE            (10000000000u >> 20)
#define OUT_OF_SCALE       1.0f   /* twice or half */
#define FIRST_DEVIATION    0.02f  /* before a second observation */
#define FIRST_NOISE_NS     150.0f /* of a launch that is repeated, however short */
#define TRANSFER_DEVIATION 0.11f  /* devices of a kind differ by 8 %: Sinha et al., SC 2022 */
#define COLD_START         0.15f  /* a first run that was slower than this said little */

static bool find(const struct predict *p, uint64_t key, struct entry *ret_e)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		const struct entry *e = history_home(p, key + i);
		if (load_relaxed(shared(&e->key)) == key)
			return copy_stable(ret_e, e, sizeof *e, &e->sequence) && ret_e->key == key;
	}
	return false;
}

uint32_t history_seen(const struct predict *p, uint64_t key)
{
	struct entry e;
	return find(p, key, &e) ? e.n : 0;
}

/* Fills in all of the answer: what it was before does not matter. */
__attribute__((hot)) bool history_ask(
	const struct predict *p, const struct predict_question *q, struct predict_answer *a)
{
	struct entry e;
	if (!find(p, q->key, &e))
		return false;
	score_answer(p->tables, e.n > 1 ? PREDICT_EXACT : PREDICT_ONCE, e.p50_ns, 0, e.log_p90, a);
	a->launches = true;
	a->blocks_per_sm = e.blocks_per_sm;
	a->occupancy = e.occupancy;
	a->waves = e.waves;
	a->sm_fill = e.sm_fill;
	a->lane_efficiency = e.lane_efficiency;
	return true;
}

/* The key's entry, or the one to give up for it: a free one, else that of the oldest news. */
static struct entry *place(struct predict_tables *t, uint64_t key)
{
	struct entry *entries = tables_entries(t), *oldest = NULL;
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct entry *e = &entries[(key + i) & (t->launches - 1)];
		if (e->key == key)
			return e;
		if (!oldest || (oldest->key && (!e->key || e->last < oldest->last)))
			oldest = e;
	}
	return oldest;
}

static void begin(struct entry *e, float t)
{
	e->n = 1;
	e->p50_ns = e->ewma_ns = t;
	e->deviation = FIRST_DEVIATION;
	e->log_p90 = 1.6f * FIRST_DEVIATION + FIRST_NOISE_NS / t;
	e->outliers = 0;
}

void history_transfer(struct entry *e)
{
	if (!e->key)
		return;
	e->n = 0;
	e->outliers = 0;
	e->other_ns = 0;
	e->deviation = e->deviation > TRANSFER_DEVIATION ? e->deviation : TRANSFER_DEVIATION;
	e->log_p90 =
		e->log_p90 > 1.6f * TRANSFER_DEVIATION ? e->log_p90 : 1.6f * TRANSFER_DEVIATION;
}

static float clamp(float x, float most)
{
	return x > most ? most : x < -most ? -most : x;
}

static void second(struct entry *e, float t, float off)
{
	const bool cold = off < -COLD_START;
	e->n = 2;
	e->p50_ns = cold ? t : e->p50_ns * approx_exp2(off / 2);
	e->ewma_ns = cold ? t : (e->ewma_ns + t) / 2;
	if (!cold)
		e->deviation = (e->deviation + (off < 0 ? -off : off) / 2) / 2;
	e->log_p90 = 1.6f * e->deviation;
}

static void more(struct entry *e, float t, float off)
{
	e->n += e->n < UINT32_MAX;
	if (!expect_inside(e->n > 2, "a third observation comes after two"))
		return;
	const float weight = e->n < 10 ? 1.0f / (float)e->n : 0.1f;
	const float most = 3 * (e->deviation > 0.005f ? e->deviation : 0.005f);
	const float distance = off < 0 ? -off : off;
	const float step = weight * (e->deviation > SCALE_LEAST ? e->deviation : SCALE_LEAST);
	e->p50_ns *= approx_exp2(weight * clamp(off, e->n > 4 ? most : OUT_OF_SCALE));
	e->ewma_ns += weight * (t - e->ewma_ns);
	e->deviation += weight / 2 * (distance - e->deviation);
	e->log_p90 += step * (off > e->log_p90 ? 0.9f : -0.1f);
	if (e->log_p90 < SCALE_LEAST)
		e->log_p90 = SCALE_LEAST;
}

static void observe(struct entry *e, float t)
{
	const float off = approx_log2(t / e->p50_ns);
	const bool unseen = off > OUT_OF_SCALE || off < -OUT_OF_SCALE;
	e->min_ns = !e->n || t < e->min_ns ? t : e->min_ns;
	if (!e->n) {
		begin(e, t);
	} else if (e->n == 1) {
		second(e, t, off);
	} else if (!unseen) {
		e->outliers = 0;
		more(e, t, off);
	} else if (++e->outliers > 1) {
		e->other_ns = e->p50_ns;
		begin(e, t);
	}
}

static struct entry fresh(const struct predict_question *q, float t)
{
	struct predict_answer fit = { 0 };
	question_fit(q, &fit);
	struct entry e = {
		.key = q->key,
		.min_ns = t,
		.waves = fit.waves,
		.occupancy = fit.occupancy,
		.sm_fill = fit.sm_fill,
		.lane_efficiency = fit.lane_efficiency,
		.blocks_per_sm = (uint16_t)fit.blocks_per_sm,
	};
	begin(&e, t);
	return e;
}

static void learn(
	struct predict *p, const struct predict_question *q, const struct predict_sample *s)
{
	struct entry *at = place(p->tables, q->key);
	if (!expect_inside(
		    p->mask == p->tables->launches - 1, "who asks looks where it is learned"))
		return;
	if (!expect_inside(in_window(q->key, (size_t)(at - tables_entries(p->tables)),
				   p->tables->launches),
		    "an entry is in its key's window"))
		return;
	const float t = (float)s->measured_ns;
	const uint32_t now = (uint32_t)(s->order >> 20);
	struct entry e = *at;
	if (e.key != q->key) {
		e = fresh(q, t);
	} else {
		if (now - e.last > SILENCE && now > e.last && e.n > 3)
			e.n /= 2;
		observe(&e, t);
	}
	e.last = now;
	if (!expect_inside(e.key == q->key && e.n, "what was learned is of its key"))
		return;
	store_stable(at, &e, sizeof e, &at->sequence);
}

const struct predictor predictor_history = {
	.ask = history_ask,
	.learn = learn,
};
