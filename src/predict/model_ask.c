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
	float x[FEATURES], outputs[NETWORK_OUTPUTS];
	ret_a->unseen = !family || !own->launches;
	feature_fill(q, ret_a->unseen ? all->log_ratio : own->log_ratio, x);
	for (int i = 0; i < FEATURES; i++)
		x[i] = clamp(x[i], f->low[i], f->high[i]);
	const struct model_family *known = own->launches >= ENOUGH ? own : all;
	ret_a->scale = known->scale * (ret_a->unseen ? WIDER : 1);
	if (f->kind == MODEL_FOREST) {
		ret_a->log_ratio = forest_ask(m->forest, x);
	} else {
		network_ask(m->network, x, outputs);
		ret_a->log_ratio = outputs[NETWORK_P50];
		/* quantiles of a normal distribution lie so far apart */
		const float width = (outputs[NETWORK_P90] - outputs[NETWORK_P10]) / 2.56f +
				    (outputs[NETWORK_P99] - outputs[NETWORK_P50]) / 2.33f;
		ret_a->scale = (ret_a->scale + (width > 0 ? width / 2 : 0)) / 2;
	}
	ret_a->scale = clamp(ret_a->scale, 0, SCALE_MOST);
	ret_a->log_ratio = clamp(ret_a->log_ratio, f->answer_low, f->answer_high);
}
