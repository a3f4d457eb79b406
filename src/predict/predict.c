/*
 * The chain: who is asked in which order, and who learns what.  See predict.h.
 */
#include "predict/predict.h"

#include "predict/predictor.h"
#include "predict/score.h"
#include "predict/tables.h"

#define SETTLED 4 /* observations after which an entry tells of slowdowns */

static const struct predictor *const predictors[] = {
	&predictor_history,
	&predictor_shape,
	&predictor_sibling,
	&predictor_model,
	&predictor_bound,
};
#define PREDICTORS (sizeof predictors / sizeof predictors[0])

const char *predict_tier_word(enum predict_tier tier)
{
	static const char *const words[PREDICT_TIERS] = {
		[PREDICT_UNKNOWN] = "unknown",
		[PREDICT_BOUND] = "bound",
		[PREDICT_COLD] = "cold",
		[PREDICT_NEAR] = "near",
		[PREDICT_SHAPE] = "shape",
		[PREDICT_ONCE] = "once",
		[PREDICT_EXACT] = "exact",
	};
	return words[tier < PREDICT_TIERS ? tier : PREDICT_UNKNOWN];
}

/* The predictors behind history, which is the first. */
static __attribute__((noinline, cold)) void ask_others(
	const struct predict *p, struct predict_question *q, struct predict_answer *ret_a)
{
	bool shaped = false;
	*ret_a = (struct predict_answer){ 0 };
	for (size_t i = 1; i < PREDICTORS; i++) {
		if (predictors[i]->shaped && !shaped) {
			if (!question_shape(q))
				return;
			question_fit(q, ret_a);
			shaped = true;
		}
		if (predictors[i]->ask(p, q, ret_a))
			return;
	}
}

static inline void ask_chain(
	const struct predict *p, struct predict_question *q, struct predict_answer *ret_a)
{
	if (history_ask(p, q, ret_a))
		return;
	if (q->launch->whole)
		*ret_a = (struct predict_answer){ 0 };
	else
		ask_others(p, q, ret_a);
}

static struct predict_question question_of(const struct predict *p, const struct predict_launch *l)
{
	return (struct predict_question){
		.launch = l,
		.device = &p->tables->device,
		.key = l->key ? l->key : predict_key(l),
	};
}

/* A launch finds cold caches: lines are asked for as soon as it is known which. */
__attribute__((hot)) void predict_ask(
	const struct predict *p, const struct predict_launch *l, struct predict_answer *ret_answer)
{
	__builtin_prefetch(&p->tables->hot);
	struct predict_question q = question_of(p, l);
	__builtin_prefetch(history_home(p, q.key));
	ask_chain(p, &q, ret_answer);
	const float slower = load_float(&p->tables->hot.slower[l->contended]);
	ret_answer->t50_ns *= slower;
	ret_answer->t90_ns *= slower;
}

/* The next power of two of nothing: what happens beside others says nothing about the kernel. */
static void learn_contended(struct predict *p, const struct predict_question *q,
	const struct predict_answer *a, double measured_ns)
{
	if (history_seen(p, q->key) >= SETTLED && a->tier == PREDICT_EXACT)
		slowdown_push(p->tables, true, approx_log2((float)measured_ns / a->t50_ns));
}

static void learn_alone(struct predict *p, struct predict_question *q,
	const struct predict_answer *a, const struct predict_sample *s)
{
	struct predict_sample calm = *s;
	calm.measured_ns /= (double)p->tables->hot.slower[0];
	q->seen = history_seen(p, q->key);
	if (q->seen >= SETTLED && a->tier == PREDICT_EXACT)
		slowdown_push(p->tables, false, approx_log2((float)s->measured_ns / a->t50_ns));
	if (a->tier)
		score_push(p->tables, a, calm.measured_ns);
	for (size_t i = 0; i < (s->launch.whole ? 1 : PREDICTORS); i++)
		if (predictors[i]->learn)
			predictors[i]->learn(p, q, &calm);
}

bool predict_learn(struct predict *p, const struct predict_sample *s)
{
	struct predict_tables *t = p->tables;
	struct predict_question q = question_of(p, &s->launch);
	struct predict_answer a;
	t->sealed = 0;
	if (!(s->measured_ns > 0 && s->measured_ns < 1e15) || !question_shape(&q)) {
		t->ignored++;
		return false;
	}
	ask_chain(p, &q, &a);
	if (s->launch.contended)
		learn_contended(p, &q, &a, s->measured_ns);
	else
		learn_alone(p, &q, &a, s);
	t->learned++;
	return true;
}

const struct predict_model *predict_swap(struct predict *p, const struct predict_model *model)
{
	return atomic_exchange_explicit(&p->model, model, memory_order_acq_rel);
}
