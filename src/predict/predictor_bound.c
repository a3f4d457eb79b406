/*
 * The last of the predictors: the bound of a launch (question.h) times what such kernels usually
 * need of it.
 *
 * With bytes or FLOPs known the bound is a roofline's.  With neither it is only a yardstick: what
 * the launch would take if each thread moved eight bytes.  The learned ratios are kept apart by how
 * much was known, so one is never taken for the other.
 */
#include "predict/predictor.h"

#include "predict/model.h"
#include "predict/question.h"
#include "predict/score.h"
#include "predict/tables.h"

#include "base/banned.h"

#define ENOUGH_FAMILY 4 /* launches of a family that tell something about it */
#define ENOUGH_ALL    8

/* The ratio of the family, or of all kernels of which as much is known. */
static const struct effect_ring *effect_of(
	const struct predict_tables *t, const struct predict_question *q, bool *ret_family)
{
	const unsigned knowledge = launch_knowledge(q->launch);
	const enum predict_family family = q->launch->kernel->family;
	const struct effect_ring *ring = &t->effects[family < FAMILIES ? family : 0][knowledge];
	*ret_family = family && effect_count(ring) >= ENOUGH_FAMILY;
	if (*ret_family)
		return ring;
	ring = &t->effects[FAMILY_UNKNOWN][knowledge];
	return effect_count(ring) >= ENOUGH_ALL ? ring : NULL;
}

/* Before anything has run: what the model's launches needed, else within a factor of some ten. */
static void first_guess(const struct predict *p, const struct predict_question *q, float *ret_ratio,
	float *ret_unit)
{
	/* Pairs with predict_swap(). */
	const struct predict_model *m = atomic_load_explicit(&p->model, memory_order_acquire);
	const unsigned knowledge = launch_knowledge(q->launch);
	*ret_ratio = 1.5f;
	*ret_unit = 2;
	if (!m || !m->file->families[FAMILY_UNKNOWN][knowledge].launches)
		return;
	*ret_ratio = m->file->families[FAMILY_UNKNOWN][knowledge].effect;
	*ret_unit = 1;
}

static bool ask(const struct predict *p, const struct predict_question *q, struct predict_answer *a)
{
	bool family;
	const struct effect_ring *ring = effect_of(p->tables, q, &family);
	float ratio, unit;
	if (ring) {
		ratio = load_float(&ring->median);
		unit = load_float(&ring->typical);
	} else {
		first_guess(p, q, &ratio, &unit);
	}
	score_answer(p->tables, PREDICT_BOUND, q->bound_ns, ratio, unit, a);
	a->class_only = !family || launch_knowledge(q->launch) == 0;
	return true;
}

/* Each launch once, so that those that repeat do not drown the others. */
static void learn(
	struct predict *p, const struct predict_question *q, const struct predict_sample *s)
{
	if (q->seen)
		return;
	const unsigned knowledge = launch_knowledge(q->launch);
	const enum predict_family family = q->launch->kernel->family;
	const float value = approx_log2((float)s->measured_ns / q->bound_ns);
	effect_push(&p->tables->effects[FAMILY_UNKNOWN][knowledge], value);
	if (family && family < FAMILIES)
		effect_push(&p->tables->effects[family][knowledge], value);
}

const struct predictor predictor_bound = {
	.name = "bound",
	.shaped = true,
	.ask = ask,
	.learn = learn,
};
