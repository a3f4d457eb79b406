/* Asking a model, which is all that a launch does with one: see model.h. */
#include "predict/model.h"
#include "predict/predictor.h"

#define ENOUGH     20    /* launches that make a family's own error worth believing */
#define SCALE_MOST 10.0f /* a thousandfold: nothing at all is known */
#define WIDER      1.5f  /* how much less is known of an unseen family */

/* A value that is no number, as the sum of two infinities, counts as the least. */
static float clamp(float x, float low, float high)
{
	return !(x > low) ? low : x > high ? high : x;
}

void model_ask(
	const struct predict_model *m, const struct predict_question *q, struct model_answer *ret_a)
{
	const struct model_file *f = m->file;
	const enum predict_family family = q->launch->kernel->family;
	const unsigned known_cost = launch_known_cost(q->launch);
	const struct model_family *all = &f->families[FAMILY_UNKNOWN][known_cost];
	const struct model_family *own = &f->families[family < FAMILIES ? family : 0][known_cost];
	float x[FEATURES];
	ret_a->unseen = !family || !own->launches;
	feature_fill(q, ret_a->unseen ? all->log_ratio : own->log_ratio, x);
	for (int i = 0; i < FEATURES; i++)
		x[i] = clamp(x[i], f->low[i], f->high[i]);
	const struct model_family *known = own->launches >= ENOUGH ? own : all;
	ret_a->scale = clamp(known->scale * (ret_a->unseen ? WIDER : 1), 0, SCALE_MOST);
	ret_a->log_ratio = clamp(forest_ask(m->forest, x), f->answer_low, f->answer_high);
}
