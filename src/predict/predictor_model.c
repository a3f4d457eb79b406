/* Predicts a kernel that never ran here with a trained model. */
#include "base/atomic.h"
#include "predict/predictor.h"

#include "predict/model.h"
#include "predict/score.h"

static bool ask(const struct predict *p, const struct predict_question *q, struct predict_answer *a)
{
	/* Pairs with predict_swap(): who sees the pointer sees the model. */
	const struct predict_model *m = load_acquire(&p->model);
	struct model_answer answer;
	if (!m)
		return false;
	model_ask(m, q, &answer);
	/* A model says no more of a family that was not in training than the usual ratio does. */
	if (answer.unseen)
		return false;
	score_answer(p->tables, PREDICT_COLD, q->bound_ns, answer.log_ratio, answer.scale, a);
	/* Without siblings that ran here it is nearer than the usual ratio among programs like
	 * those of its training; among others not for 90 %. */
	a->class_only = true;
	return true;
}

const struct predictor predictor_model = {
	.shaped = true,
	.ask = ask,
};
