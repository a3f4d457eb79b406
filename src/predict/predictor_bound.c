/*
 * The last predictor: the bound of a launch (question.c) times the usual ratio of such kernels.
 *
 * With bytes or FLOPs the bound is a roofline's. Otherwise it is a yardstick: the time if each
 * thread moved eight bytes. Learned ratios are kept apart by what was known, so they are never
 * mixed.
 */
#include "base/atomic.h"
#include "predict/predictor.h"

#include "predict/model.h"
#include "predict/score.h"
#include "predict/tables.h"

#define ENOUGH_FAMILY 4 /* launches of a family that tell something about it */
#define ENOUGH_ALL    8

/* The ratio of the family, or of all kernels of which as much is known. */
static const struct log_ratio_ring *log_ratio_of(
	const struct predict_tables *t, const struct predict_question *q, bool *ret_family)
{
	const unsigned known_cost = launch_known_cost(q->launch);
	const enum predict_family family = q->launch->kernel->family;
	const struct log_ratio_ring *ring =
		&t->log_ratios[family < FAMILIES ? family : 0][known_cost];
	*ret_family = family && log_ratio_count(ring) >= ENOUGH_FAMILY;
	if (*ret_family)
		return ring;
	ring = &t->log_ratios[FAMILY_UNKNOWN][known_cost];
	return log_ratio_count(ring) >= ENOUGH_ALL ? ring : NULL;
}

/* Before anything has run: what the model's launches needed, else within a factor of some ten. */
static void first_guess(const struct predict *p, const struct predict_question *q, float *ret_ratio,
	float *ret_scale)
{
	/* Pairs with predict_swap(). */
	const struct predict_model *m = load_acquire(&p->model);
	const unsigned known_cost = launch_known_cost(q->launch);
	*ret_ratio = 1.5f;
	*ret_scale = 2;
	if (!m || !m->file->families[FAMILY_UNKNOWN][known_cost].launches)
		return;
	*ret_ratio = m->file->families[FAMILY_UNKNOWN][known_cost].log_ratio;
	*ret_scale = 1;
}

static bool ask(const struct predict *p, const struct predict_question *q, struct predict_answer *a)
{
	bool family;
	const struct log_ratio_ring *ring = log_ratio_of(p->tables, q, &family);
	float ratio, scale;
	if (ring) {
		ratio = load_float(&ring->median);
		scale = load_float(&ring->deviation);
	} else {
		first_guess(p, q, &ratio, &scale);
	}
	score_answer(p->tables, PREDICT_BOUND, q->bound_ns, ratio, scale, a);
	a->class_only = !family || launch_known_cost(q->launch) == 0;
	return true;
}

/* Each launch once, so that those that repeat do not drown the others. */
static void learn(
	struct predict *p, const struct predict_question *q, const struct predict_sample *s)
{
	if (q->seen)
		return;
	const unsigned known_cost = launch_known_cost(q->launch);
	const enum predict_family family = q->launch->kernel->family;
	const float value = approx_log2((float)s->measured_ns / q->bound_ns);
	log_ratio_push(&p->tables->log_ratios[FAMILY_UNKNOWN][known_cost], value);
	if (family && family < FAMILIES)
		log_ratio_push(&p->tables->log_ratios[family][known_cost], value);
}

const struct predictor predictor_bound = {
	.shaped = true,
	.ask = ask,
	.learn = learn,
};
