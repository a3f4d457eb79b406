/*
 * Predicts a new kernel from its siblings.
 *
 * Kernels whose names differ only in template arguments and numbers share a slot, one for each
 * grade of known cost and unit. A slot keeps shapes that ran as points: the logarithms of
 * feature.h, each in its own scale. Universal kriging (a Gaussian process on a regression) predicts
 * log2(time / bound). It has a trend through all points, with a ridge towards the level, and the
 * residuals of near points weighted by covariance. Trend and weights are recomputed when enough new
 * points wait, because weights balance each other. A question is a sum over the points.
 *
 * The trained model errs differently and is asked too. The further the nearest point is, the more
 * it counts.
 */
#include "predict/predictor.h"

#include "base/atomic.h"
#include "base/hash.h"
#include "predict/model.h"
#include "predict/score.h"

#define FEWEST   4     /* shapes that make a fit */
#define SETTLED  4     /* launches after which a shape's time is known well enough */
#define OLDEST   16    /* shapes among which the one to go is chosen */
#define TOGETHER 16    /* shapes that are looked at together */
#define POINT    128   /* steps of a coordinate to a factor of two */
#define FARTHEST 8000  /* steps */
#define RIDGE    20.0f /* points that it takes to tilt the trend */
#define LENGTH   6.5f  /* distance at which covariance has gone down to 0.61 */
#define NOISE    0.01f /* variance of one launch, as a share of that between launches */

/* How much the model counts, and how far off the answer may be (log2), by the covariance of the
 * nearest point: what was best on held-out kernels of the zoo, seldom sensitive. */
#define MODEL_LEAST   0.1f
#define MODEL_RISE    2.0f
#define MODEL_MOST    0.6f
#define SCALE_SIBLING 0.07f
#define SCALE_APART   0.19f
#define SCALE_FAR     0.58f

/* The coordinates, and how far a step of a feature is. */
static const struct {
	enum feature feature;
	float scale;
} terms[SIBLING_TERMS] = {
	{ FEATURE_waves, 1 },
	{ FEATURE_tail, 2 },
	{ FEATURE_threads, 1 },
	{ FEATURE_occupancy, 2 },
	{ FEATURE_warps, 1 },
	{ FEATURE_grid_x, 1 },
	{ FEATURE_grid_y, 1 },
	{ FEATURE_regs, 8 },
	{ FEATURE_smem, 1 },
	{ FEATURE_element, 1 },
	{ FEATURE_tile_m, 1 },
	{ FEATURE_tile_n, 1 },
	{ FEATURE_unit, 1 },
	{ FEATURE_bytes, 1 },
	{ FEATURE_flops, 1 },
	{ FEATURE_intensity, 1 },
	{ FEATURE_grain, 1 },
	{ FEATURE_effort, 1 },
	{ FEATURE_piece, 1 },
	{ FEATURE_portion, 1 },
	{ FEATURE_arg0, 1 },
	{ FEATURE_arg1, 1 },
	{ FEATURE_arg2, 1 },
	{ FEATURE_arg3, 1 },
};

static uint64_t sibling_id(const struct predict_launch *l)
{
	const uint64_t grade = launch_known_cost(l) * GPU_UNITS + l->unit;
	const uint64_t id = hash_mix(~l->kernel->group) + grade;
	return id + !id;
}

static void point_of(const struct predict_question *q, int16_t ret_x[static SIBLING_TERMS])
{
	float f[FEATURES];
	feature_fill(q, 0, f);
	for (int i = 0; i < SIBLING_TERMS; i++) {
		const float x = f[terms[i].feature] * terms[i].scale * POINT;
		ret_x[i] = (int16_t)(x > FARTHEST ? FARTHEST : x > -FARTHEST ? x : -FARTHEST);
	}
}

static float squared_distance(
	const int16_t a[static SIBLING_TERMS], const int16_t b[static SIBLING_TERMS])
{
	int32_t sum = 0;
	for (int i = 0; i < SIBLING_TERMS; i++) {
		const int16_t d = (int16_t)(a[i] - b[i]);
		sum += d * d >> 4;
	}
	return (float)sum * (16.0f / (POINT * POINT));
}

/* 1 at the same place; of a Gaussian form. */
static float covariance(float squared_distance)
{
	return approx_exp2(squared_distance * (-0.72134752f / (LENGTH * LENGTH)));
}

/* Cholesky's method on the lower triangle of n rows, whose diagonal becomes its reciprocal; b
 * becomes the solution of m x = b. */
static void solve(float (*m)[SIBLING_SHAPES], uint32_t n, float *b)
{
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j <= i; j++) {
			float s[4] = { m[i][j] };
			uint32_t k = 0;
			for (; k + 4 <= j; k += 4)
				for (int lane = 0; lane < 4; lane++)
					s[lane] -= m[i][k + lane] * m[j][k + lane];
			for (; k < j; k++)
				s[0] -= m[i][k] * m[j][k];
			const float sum = s[0] + s[1] + s[2] + s[3];
			if (i == j)
				m[i][i] =
					approx_exp2(-0.5f * approx_log2(sum > 1e-6f ? sum : 1e-6f));
			else
				m[i][j] = sum * m[j][j];
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < i; k++)
			b[i] -= m[i][k] * b[k];
		b[i] *= m[i][i];
	}
	for (uint32_t i = n; i-- > 0;) {
		b[i] *= m[i][i];
		for (uint32_t k = 0; k < i; k++)
			b[k] -= m[i][k] * b[i];
	}
}

static float trend_at(const struct sibling_trend *trend, const int16_t x[static SIBLING_TERMS])
{
	float sum = trend->level;
	for (int i = 0; i < SIBLING_TERMS; i++)
		sum += trend->slope[i] * ((float)x[i] - trend->mean[i]);
	return sum;
}

static void fit_trend(
	const struct sibling_slot *s, float (*m)[SIBLING_SHAPES], struct sibling_trend *trend)
{
	const uint32_t n = s->head.shapes;
	*trend = (struct sibling_trend){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		trend->level += s->shape[i].ratio / (float)n;
		for (int k = 0; k < SIBLING_TERMS; k++)
			trend->mean[k] += (float)s->shape[i].x[k] / (float)n;
	}
	for (int k = 0; k < SIBLING_TERMS; k++) {
		for (int j = 0; j <= k; j++)
			m[k][j] = j == k ? RIDGE * POINT * POINT : 0;
		for (uint32_t i = 0; i < n; i++) {
			const float x = (float)s->shape[i].x[k] - trend->mean[k];
			trend->slope[k] += x * (s->shape[i].ratio - trend->level);
			for (int j = 0; j <= k; j++)
				m[k][j] += x * ((float)s->shape[i].x[j] - trend->mean[j]);
		}
	}
	solve(m, SIBLING_TERMS, trend->slope);
}

static void fit_weights(struct sibling_slot *s, float (*m)[SIBLING_SHAPES])
{
	const uint32_t n = s->head.shapes;
	float weight[SIBLING_SHAPES];
	if (!expect_inside(n <= SIBLING_SHAPES, "no more is weighted than there is room for"))
		return;
	for (uint32_t i = 0; i < n; i++) {
		weight[i] = s->shape[i].ratio - trend_at(&s->head.trend, s->shape[i].x);
		for (uint32_t j = 0; j < i; j++)
			m[i][j] = covariance(squared_distance(s->shape[i].x, s->shape[j].x));
		m[i][i] = 1 + NOISE;
	}
	solve(m, n, weight);
	for (uint32_t i = 0; i < n; i++)
		s->shape[i].weight = weight[i];
}

static uint32_t shapes_of(const struct sibling_slot *s, uint16_t kernel)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->head.shapes; i++)
		n += s->shape[i].kernel == kernel;
	return n;
}

/* Drops one of the oldest, of the kernel that has most: none is crowded out by a busy sibling. */
static void drop_one(struct sibling_slot *s)
{
	uint32_t worst = 0, most = 0;
	for (uint32_t i = 0; i < OLDEST; i++) {
		const uint32_t n = shapes_of(s, s->shape[i].kernel);
		if (n > most) {
			most = n;
			worst = i;
		}
	}
	if (!expect_inside(most && worst < s->head.shapes, "the shape to go is one of all"))
		worst = 0;
	s->head.shapes--;
	memmove(&s->shape[worst], &s->shape[worst + 1],
		(s->head.shapes - worst) * sizeof s->shape[0]);
}

static void refit(struct predict_tables *t, struct sibling_slot *at)
{
	struct sibling_scratch *scratch = tables_scratch(t);
	struct sibling_slot *s = &scratch->slot;
	*s = *at;
	while (s->head.shapes > SIBLING_SHAPES)
		drop_one(s);
	if (!expect_inside(s->head.shapes >= FEWEST, "a fit is made of several shapes"))
		return;
	fit_trend(s, scratch->m, &s->head.trend);
	fit_weights(s, scratch->m);
	s->head.fitted = s->head.shapes;
	s->head.stale = 0;
	store_stable(at, s, sizeof *s, &at->head.sequence);
}

/* When a quarter as many wait as were fitted, or there is no more room; or when most of what was
 * known has run again. */
static bool worth_a_fit(const struct sibling_head *h)
{
	const uint32_t waiting = h->shapes - h->fitted;
	if (!expect_inside(h->fitted <= h->shapes, "no more is fitted than there is"))
		return false;
	return h->shapes >= FEWEST && (waiting == SIBLING_WAITING || 4 * waiting >= h->fitted ||
					      h->stale >= 2 * h->shapes);
}

static struct sibling_slot *place(struct predict_tables *t, uint64_t id)
{
	struct sibling_slot *slots = tables_siblings(t), *oldest = NULL;
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct sibling_slot *s = &slots[(id + i) & (tables_sibling_slots(t) - 1)];
		if (s->head.id == id)
			return s;
		if (!oldest ||
			(oldest->head.id && (!s->head.id || s->head.last < oldest->head.last)))
			oldest = s;
	}
	return oldest;
}

static uint32_t find(const struct sibling_slot *s, uint32_t key)
{
	uint32_t i = 0;
	while (i < s->head.shapes && s->shape[i].key != key)
		i++;
	return i;
}

/* As with a kernel's own shapes: a first run that was slower than the second is forgotten. */
static void revise(struct sibling_shape *shape, float ratio)
{
	const float off = ratio - shape->ratio;
	shape->n += shape->n < SETTLED; /* more, where history forgets that it ran */
	shape->ratio += shape->n == 2 && off < -0.15f ? off : off / (float)shape->n;
}

static void learn(
	struct predict *p, const struct predict_question *q, const struct predict_sample *sample)
{
	const struct predict_kernel *k = q->launch->kernel;
	const uint64_t id = sibling_id(q->launch);
	if (!k->group || q->seen >= SETTLED)
		return;
	struct sibling_slot *s = place(p->tables, id);
	struct sibling_head head = s->head;
	if (!expect_inside(in_window(id, (size_t)(s - tables_siblings(p->tables)),
				   tables_sibling_slots(p->tables)),
		    "a slot is in its group's window"))
		return;
	if (head.id != id)
		head = (struct sibling_head){ .id = id };
	const uint32_t key = (uint32_t)(q->key >> 32);
	const float ratio = approx_log2((float)sample->measured_ns / q->bound_ns);
	uint32_t at = head.id == s->head.id ? find(s, key) : 0;
	struct sibling_shape shape;
	if (at < head.shapes) {
		shape = s->shape[at];
		revise(&shape, ratio);
	} else {
		shape = (struct sibling_shape){
			.key = key, .kernel = (uint16_t)k->id, .n = 1, .ratio = ratio
		};
		point_of(q, shape.x);
		at = head.shapes++;
		if (!expect_inside(at < SIBLING_SHAPES + SIBLING_WAITING, "a shape has room"))
			return;
	}
	head.last = (uint32_t)(sample->order >> 20);
	head.stale++;
	change_begin(&s->head.sequence);
	head.sequence = s->head.sequence;
	store_words(&s->head, &head, sizeof head);
	store_words(&s->shape[at], &shape, sizeof shape);
	change_end(&s->head.sequence);
	if (worth_a_fit(&s->head))
		refit(p->tables, s);
}

/* As copy_words(), twice as fast. */
static void copy_shapes(struct sibling_shape *into, const struct sibling_shape *from, size_t n)
{
	typedef uint64_t __attribute__((may_alias)) wide_word;
	const wide_word *words = (const wide_word *)from;
	wide_word *copy = (wide_word *)into;
	for (size_t i = 0; i < n * sizeof *from / 8; i++)
		copy[i] = load_acquire(shared(&words[i]));
}

/* The weighted sum of the shapes from `from` on; several at a time, for the compiler's sake. */
static float weights_of(const struct sibling_shape *from, uint32_t n,
	const int16_t x[static SIBLING_TERMS], float *nearest)
{
	struct sibling_shape shape[TOGETHER];
	float like[TOGETHER], sum = 0;
	copy_shapes(shape, from, n);
	for (uint32_t i = 0; i < n; i++)
		like[i] = squared_distance(shape[i].x, x);
	for (uint32_t i = n; i < TOGETHER; i++)
		like[i] = 0;
	for (uint32_t i = 0; i < TOGETHER; i++)
		like[i] = covariance(like[i]);
	for (uint32_t i = 0; i < n; i++) {
		sum += shape[i].weight * like[i];
		*nearest = like[i] > *nearest ? like[i] : *nearest;
	}
	return sum;
}

bool sibling_ratio(const struct predict *p, const struct predict_question *q, float *ret_ratio,
	float *ret_nearest)
{
	const uint64_t id = sibling_id(q->launch);
	const struct sibling_slot *s = NULL;
	struct sibling_head head;
	int16_t x[SIBLING_TERMS];
	for (uint32_t i = 0; q->launch->kernel->group && i < WINDOW && !s; i++) {
		s = &tables_siblings(p->tables)[(id + i) & (tables_sibling_slots(p->tables) - 1)];
		if (load_relaxed(shared(&s->head.id)) != id)
			s = NULL;
	}
	if (!s || !copy_stable(&head, &s->head, sizeof head, &s->head.sequence) || head.id != id ||
		!head.fitted)
		return false;
	point_of(q, x);
	*ret_ratio = trend_at(&head.trend, x);
	*ret_nearest = 0;
	for (uint32_t i = 0; i < head.fitted && i < SIBLING_SHAPES; i += TOGETHER) {
		const uint32_t n = head.fitted - i < TOGETHER ? head.fitted - i : TOGETHER;
		*ret_ratio += weights_of(&s->shape[i], n, x, ret_nearest);
	}
	return is_finite(*ret_ratio) && head.sequence == load_acquire(shared(&s->head.sequence));
}

static bool ask(const struct predict *p, const struct predict_question *q, struct predict_answer *a)
{
	/* Pairs with predict_swap(): who sees the pointer sees the model. */
	const struct predict_model *m = load_acquire(&p->model);
	struct model_answer model;
	float ratio, nearest, apart = 0;
	if (!sibling_ratio(p, q, &ratio, &nearest))
		return false;
	const float far = 1 - nearest;
	if (m) {
		model_ask(m, q, &model);
		apart = model.unseen ? 0 : model.log_ratio - ratio;
	}
	float share = MODEL_LEAST + MODEL_RISE * far;
	share = share < MODEL_MOST ? share : MODEL_MOST;
	const float scale = SCALE_SIBLING + SCALE_APART * (apart < 0 ? -apart : apart) +
			    SCALE_FAR * (far < 0.5f ? far : 0.5f);
	score_answer(p->tables, PREDICT_COLD, q->bound_ns, ratio + share * apart, scale, a);
	return true;
}

const struct predictor predictor_sibling = {
	.shaped = true,
	.ask = ask,
	.learn = learn,
};
