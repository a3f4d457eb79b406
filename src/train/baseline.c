/* Plain predictors: see baseline.h. */
#include "train/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/question.h"
#include "predict/score.h"

static struct baseline_shape shape_of(const struct predict_question *q)
{
	const struct predict_launch *l = q->launch;
	struct baseline_shape s = { .key = q->key, .bound_ns = q->bound_ns };
	for (int i = 0; i < 3; i++)
		s.place[i] = log2f((float)l->grid[i]);
	s.place[3] = log2f((float)q->threads);
	for (uint32_t i = 0; i < l->args && i < PREDICT_ARGS; i++)
		s.place[4 + i] = log2f(1 + (float)l->arg[i]);
	return s;
}

static float distance(const struct baseline_shape *a, const struct baseline_shape *b)
{
	float sum = 0;
	for (int i = 0; i < 4 + PREDICT_ARGS; i++)
		sum += fabsf(a->place[i] - b->place[i]);
	return sum;
}

static float nearest(const struct baseline_kernel *k, const struct baseline_shape *s)
{
	const uint32_t n = k->shapes < BASELINE_SPAN ? k->shapes : BASELINE_SPAN;
	const struct baseline_shape *best = &k->shape[0];
	for (uint32_t i = 1; i < n; i++)
		if (distance(&k->shape[i], s) < distance(best, s))
			best = &k->shape[i];
	return best->t_ns * s->bound_ns / best->bound_ns;
}

/* The median of the newest of a ring. */
static float median(const float *v, size_t n)
{
	float copy[BASELINE_SPAN];
	const size_t count = n < BASELINE_SPAN ? n : BASELINE_SPAN;
	memcpy(copy, v, count * sizeof copy[0]);
	return score_quantile(copy, count, 0.5);
}

static float family_ratio(const struct baselines *b, const struct predict_question *q)
{
	const unsigned known_cost = launch_known_cost(q->launch);
	const enum predict_family families[] = { q->launch->kernel->family, FAMILY_UNKNOWN };
	for (int i = 0; i < 2; i++) {
		const size_t n = b->ratios[families[i]][known_cost].n;
		const float *v = b->ratios[families[i]][known_cost].v;
		if (n)
			return median(n > BASELINE_SPAN ? v + n - BASELINE_SPAN : v, n);
	}
	return NAN;
}

static const struct baseline_kernel *find(const struct baselines *b, uint64_t id)
{
	const uint32_t at = map_find(&b->kernels, MAP_KEY(id));
	return at == MAP_NONE ? NULL : b->kernel.v[at];
}

void baseline_ask(
	const struct baselines *b, const struct predict_question *q, float ret_ns[static BASELINES])
{
	const struct baseline_kernel *k = find(b, q->launch->kernel->id);
	if (!k) {
		const float t = q->bound_ns * family_ratio(b, q);
		for (int i = 0; i < BASELINES; i++)
			ret_ns[i] = t;
		return;
	}
	const struct baseline_shape s = shape_of(q);
	const uint32_t last = map_find(&b->keys, MAP_KEY(q->key));
	ret_ns[BASELINE_LAST] = last == MAP_NONE ? k->last_ns : b->last.v[last];
	ret_ns[BASELINE_MEDIAN] = median(k->t_ns, k->n);
	ret_ns[BASELINE_RATIO] = q->bound_ns * median(k->ratio, k->n);
	ret_ns[BASELINE_NEAREST] = nearest(k, &s);
}

static struct baseline_kernel *get(
	struct baselines *b, const struct predict_question *q, float ratio)
{
	struct baseline_kernel **k = MAP_ROW(
		&b->kernels, MAP_KEY(q->launch->kernel->id), &b->kernel, xcalloc(1, sizeof **k));
	const unsigned known_cost = launch_known_cost(q->launch);
	const enum predict_family family = q->launch->kernel->family;
	*array_push(&b->ratios[FAMILY_UNKNOWN][known_cost]) = ratio;
	if (family)
		*array_push(&b->ratios[family][known_cost]) = ratio;
	return *k;
}

void baseline_learn(struct baselines *b, const struct predict_question *q, double measured_ns)
{
	const float t = (float)measured_ns;
	struct baseline_kernel *k = get(b, q, t / q->bound_ns);
	uint32_t *at = map_get(&b->keys, MAP_KEY(q->key));
	if (*at == MAP_NONE) {
		array_reserve(&b->last, 1);
		*at = (uint32_t)b->last.n++;
		struct baseline_shape *s = &k->shape[k->shapes++ % BASELINE_SPAN];
		*s = shape_of(q);
		s->t_ns = t;
	}
	b->last.v[*at] = t;
	k->last_ns = t;
	k->t_ns[k->n % BASELINE_SPAN] = t;
	k->ratio[k->n++ % BASELINE_SPAN] = t / q->bound_ns;
}

void baseline_fini(struct baselines *b)
{
	for (size_t i = 0; i < b->kernel.n; i++)
		free(b->kernel.v[i]);
	array_free(&b->kernel);
	array_free(&b->last);
	for (int i = 0; i < FAMILIES * 3; i++)
		array_free(&b->ratios[i / 3][i % 3]);
	map_fini(&b->kernels);
	map_fini(&b->keys);
}
