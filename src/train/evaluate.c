/* Splits, and who is asked what in them: see evaluate.h. */
#include "train/evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "predict/predict.h"
#include "predict/score.h"
#include "train/train.h"

#define PARTS_MOST    16
#define SIBLING_PARTS 8
#define LARGE         0.7

static const struct {
	const char *word, *what;
} splits[EVAL_SPLITS] = {
	[EVAL_PREQUENTIAL] = { "prequential", "predicted, then learnt, in order" },
	[EVAL_KERNEL] = { "kernel", "kernels never seen, nor their siblings" },
	[EVAL_SIBLING] = { "sibling", "kernels never seen, but siblings of theirs" },
	[EVAL_FAMILY] = { "family", "families never seen" },
	[EVAL_APPLICATION] = { "application", "applications never seen" },
	[EVAL_EXTRAPOLATION] = { "extrapolation", "the largest from the smaller" },
	[EVAL_RANDOM] = { "random", "rows at random: flatters" },
};

const char *eval_split_word(enum eval_split split)
{
	return splits[split].word;
}

const char *eval_split_what(enum eval_split split)
{
	return splits[split].what;
}

/* Everything that is asked and taught. */
struct evaluation {
	const struct predict_device *device;
	struct predict p;
	void *memory;
	struct baselines baselines;
	eval_points *points;
};

/* Tables in which nothing need be given up for want of room, as far as that is sensible. */
static int begin(
	struct evaluation *e, const struct predict_device *d, size_t launches, eval_points *points)
{
	struct predict_sizes sizes = { .launches = 1 << 16, .kernels = 1 << 8 };
	while (sizes.kernels < launches / 4 && sizes.kernels < 1 << 14)
		sizes.kernels *= 2;
	const size_t bytes = predict_bytes(&sizes);
	*e = (struct evaluation){ .device = d, .points = points };
	e->memory = xcheck(aligned_alloc(64, bytes));
	return predict_init(&e->p, e->memory, bytes, &sizes, d);
}

static void end(struct evaluation *e)
{
	free(e->memory);
	baseline_fini(&e->baselines);
}

/* The shapes at this known cost, or if there are none, the most at another. */
static uint32_t shapes_known(const struct predict *p, const struct predict_launch *l)
{
	const struct kernel_slot *own = shape_slot(p, l->kernel, launch_known_cost(l));
	uint32_t most = own ? own->head.shapes : 0;
	for (unsigned other = 0; other < KNOWN_COSTS && !own; other++) {
		const struct kernel_slot *slot = shape_slot(p, l->kernel, other);
		if (slot && slot->head.shapes > most)
			most = slot->head.shapes;
	}
	return most;
}

static void ask(struct evaluation *e, const struct predict_sample *s)
{
	struct predict_question q = { .launch = &s->launch, .device = e->device };
	struct predict_answer a;
	if (s->launch.contended || !(s->measured_ns > 0) || !question_shape(&q))
		return;
	struct eval_point *p = array_push(e->points);
	q.key = s->launch.key;
	predict_ask(&e->p, &s->launch, &a);
	*p = (struct eval_point){
		.measured_ns = (float)s->measured_ns,
		.t50_ns = a.t50_ns,
		.t90_ns = a.t90_ns,
		.confidence = a.confidence,
		.tier = a.tier,
		.class_only = a.class_only,
		.family = s->launch.kernel->family,
		.known_cost = launch_known_cost(&s->launch),
		.shapes = shapes_known(&e->p, &s->launch),
	};
	baseline_ask(&e->baselines, &q, p->baseline_ns);
}

static void learn(struct evaluation *e, const struct predict_sample *s)
{
	struct predict_question q = { .launch = &s->launch, .device = e->device };
	if (!predict_learn(&e->p, s) || s->launch.contended || !question_shape(&q))
		return;
	q.key = s->launch.key;
	baseline_learn(&e->baselines, &q, s->measured_ns);
}

static int prequential(const struct predict_device *d, const struct predict_sample *samples,
	size_t n, const struct predict_model *model, struct fit_progress *progress,
	eval_points *points)
{
	struct evaluation e;
	int ret = begin(&e, d, n, points);
	if (!ret)
		predict_swap(&e.p, model);
	for (size_t i = 0; i < n && !ret; i++) {
		ask(&e, &samples[i]);
		if (!ret)
			learn(&e, &samples[i]);
		if (i % (n / 64 + 1) == 0)
			fit_step(progress);
	}
	end(&e);
	return ret;
}

/* The part in which a launch is, fewer than PARTS_MOST; each part is held out once, those of
 * extrapolation but for the small one. */
static unsigned part_of(enum eval_split split, const struct predict_sample *s, size_t i,
	const struct predict_device *d, float large_ns)
{
	struct predict_question q = { .launch = &s->launch, .device = d };
	switch (split) {
	case EVAL_KERNEL:
		return (unsigned)(hash_mix(s->launch.kernel->group) % 8);
	case EVAL_FAMILY:
		return s->launch.kernel->family % PARTS_MOST;
	case EVAL_APPLICATION:
		return s->app % PARTS_MOST;
	case EVAL_EXTRAPOLATION:
		return question_shape(&q) && q.bound_ns > large_ns;
	default:
		return (unsigned)(hash_mix(i) % 5);
	}
}

static float large_bound(
	const struct predict_device *d, const struct predict_sample *samples, size_t n)
{
	float *bounds = xcalloc(n + 1, sizeof *bounds), large = 0;
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		struct predict_question q = { .launch = &samples[i].launch, .device = d };
		if (question_shape(&q))
			bounds[count++] = q.bound_ns;
	}
	if (count)
		large = score_quantile(bounds, count, LARGE);
	free(bounds);
	return large;
}

/* A model like `like`, without what is held out. */
static int fit_rest(const struct predict_device *d, const struct predict_sample *rest, size_t n,
	const struct predict_model *like, struct model_file **ret_file, struct error *err)
{
	const struct train_options o = { 0 };
	struct train_rows rows;
	train_rows_of(d, rest, n, &rows);
	const int ret = train_fit(d, &rows, like->file, &o, ret_file, err);
	train_rows_fini(&rows);
	return ret;
}

struct relative {
	uint64_t group, id;
};

ORDERING(by_group, struct relative, ORDER(a->group, b->group), ORDER(a->id, b->id))

/* The parts of one group, whose kernels stand together. */
static void deal(struct map *turns, const struct relative *v, size_t n, bool lonely)
{
	uint32_t turn = 0;
	for (size_t i = 0; i < n; i++) {
		if (i && v[i].id == v[i - 1].id)
			continue;
		uint32_t *at = map_get(turns, MAP_KEY(v[i].id));
		*at = lonely ? PARTS_MOST : turn++ % SIBLING_PARTS;
	}
}

/* Siblings are dealt out in turn, so that each part leaves some of them behind; kernels without are
 * in a part that is never held out. */
static void deal_siblings(const struct predict_sample *samples, size_t n, uint8_t *part)
{
	struct relative *v = xcalloc(n + 1, sizeof *v);
	struct map turns = { 0 };
	for (size_t i = 0; i < n; i++)
		v[i] = (struct relative){ samples[i].launch.kernel->group,
			samples[i].launch.kernel->id };
	qsort(v, n, sizeof *v, by_group);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && v[to].group == v[from].group;)
			to++;
		const bool lonely = v[from].id == v[to - 1].id;
		deal(&turns, v + from, to - from, lonely);
	}
	for (size_t i = 0; i < n; i++)
		part[i] = (uint8_t)map_find(&turns, MAP_KEY(samples[i].launch.kernel->id));
	map_fini(&turns);
	free(v);
}

/* All but one part are learnt.  The model has seen those launches, so how far off it was there is
 * forgotten again: it would flatter.  So is what slowed the last of them: what is asked did not run
 * then. */
static void learn_rest(struct evaluation *e, const struct predict_model *m,
	const struct predict_sample *rest, size_t n)
{
	struct predict_tables *t = e->p.tables;
	predict_swap(&e->p, m);
	for (size_t i = 0; i < n; i++)
		learn(e, &rest[i]);
	score_forget(t, PREDICT_COLD);
	t->hot.slower[0] = 1;
}

/* Then the one is asked. */
static int hold_out(const struct predict_device *d, const struct predict_sample *samples, size_t n,
	const uint8_t *part, unsigned out, const struct predict_model *like, eval_points *points,
	struct error *err)
{
	struct predict_sample *rest = xcalloc(n + 1, sizeof *rest);
	struct evaluation e = { 0 };
	struct model_file *f = NULL;
	struct predict_model m;
	size_t kept = 0;
	int ret = begin(&e, d, n, points);
	for (size_t i = 0; i < n && !ret; i++)
		if (part[i] != out)
			rest[kept++] = samples[i];
	if (!ret)
		ret = fit_rest(d, rest, kept, like, &f, err);
	if (!ret) {
		m = (struct predict_model){ f, model_forest(f) };
		learn_rest(&e, &m, rest, kept);
	}
	for (size_t i = 0; i < n && !ret; i++)
		if (part[i] == out)
			ask(&e, &samples[i]);
	end(&e);
	free(f);
	free(rest);
	return ret;
}

static int held_out(enum eval_split split, const struct predict_device *d,
	const struct predict_sample *samples, size_t n, const struct predict_model *like,
	struct fit_progress *progress, eval_points *points, struct error *err)
{
	uint8_t *part = xcalloc(n + 1, 1);
	size_t count[PARTS_MOST + 1] = { 0 };
	unsigned parts = 0;
	const float large = split == EVAL_EXTRAPOLATION ? large_bound(d, samples, n) : 0;
	for (size_t i = 0; i < n; i++)
		part[i] = (uint8_t)part_of(split, &samples[i], i, d, large);
	if (split == EVAL_SIBLING)
		deal_siblings(samples, n, part);
	for (size_t i = 0; i < n; i++)
		parts += !count[part[i]]++;
	int ret = 0;
	if (parts < 2)
		ret = error_set(err, -ENODATA,
			"there is only one part to hold out, so nothing to learn from");
	for (unsigned out = split == EVAL_EXTRAPOLATION; out < PARTS_MOST && !ret; out++) {
		if (count[out])
			ret = hold_out(d, samples, n, part, out, like, points, err);
		fit_step(progress);
	}
	free(part);
	return ret;
}

int eval_run(enum eval_split split, const struct predict_device *d,
	const struct predict_sample *samples, size_t n, const struct predict_model *model,
	struct fit_progress *progress, eval_points *ret_points, struct error *err)
{
	eval_points points = { 0 };
	int ret;
	if (progress)
		progress->all = split == EVAL_PREQUENTIAL ? 64 : PARTS_MOST;
	if (split == EVAL_PREQUENTIAL)
		ret = prequential(d, samples, n, model, progress, &points);
	else
		ret = held_out(split, d, samples, n, model, progress, &points, err);
	if (!ret && !points.n)
		ret = error_set(err, -ENODATA, "there is no launch to predict");
	if (ret)
		array_free(&points);
	else
		*ret_points = points;
	return ret;
}

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
	const uint32_t n = MIN(k->shapes, BASELINE_SPAN);
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
	const size_t count = MIN(n, BASELINE_SPAN);
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
	array_free(&b->kernel, &b->last);
	for (int i = 0; i < FAMILIES * 3; i++)
		array_free(&b->ratios[i / 3][i % 3]);
	map_fini(&b->kernels, &b->keys);
}
