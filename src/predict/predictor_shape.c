/*
 * Predicts a kernel in a new shape.
 *
 * A kernel of w waves, W = ceil(w) of them started, does work in each wave. The fullest SM goes
 * through r rounds, counted in waves. Often a scalar argument s gives the amount of work:
 *
 *	t = a + b W + c w + d r + e max(r, 1/2) + s (f + g W + h w + i r + j max(r, 1/2))
 *
 * No coefficient is negative. shape_refit() in fit_shape.c tries arguments and products of two, and
 * keeps the model that predicts held-out shapes best. Simple candidates are included (the nearest
 * shape, the usual ratio to the bound), so it is not worse than these. With fewer than four shapes
 * the nearest is scaled by the bounds.
 */

#include "base/atomic.h"
#include "base/hash.h"
#include "predict/fit_shape.h"
#include "predict/predictor.h"
#include "predict/score.h"

#define SETTLED       16
#define NEAR_SCALE    0.4f  /* log2: what a shape says about another, as a first guess */
#define SIBLING_NEAR  0.75f /* of siblings in what is predicted from one to three shapes */
#define SIBLING_RISE  3.0f  /* of their share, with how far off the kernel's own fit is */
#define SIBLING_MOST  0.5f
#define SIBLING_WORTH 0.03f /* log2: a fit that is off by more */
#define SIBLING_AWAY  0.2f  /* so unlike all shapes that siblings know nothing of it */

/* A kernel that was compiled anew under the same name, as tuners do, is another kernel; and a bound
 * from bytes or FLOPs says nothing about launches for which it is a yardstick. */
static uint64_t compiled_id(const struct predict_kernel *k, unsigned known_cost)
{
	const uint64_t regs = k->has_regs ? k->regs : 0;
	const uint64_t id = hash_mix(k->id ^ (regs << 32 | k->smem_static_bytes)) + known_cost;
	return id + !id;
}

static const struct kernel_slot *slot_find(const struct predict *p, uint64_t kernel)
{
	const struct kernel_slot *slots = tables_slots(p->tables);
	for (uint32_t i = 0; i < WINDOW; i++) {
		const struct kernel_slot *s = &slots[(kernel + i) & (p->tables->kernels - 1)];
		if (load_relaxed(shared(&s->head.kernel)) == kernel)
			return s;
	}
	return NULL;
}

const struct kernel_slot *shape_slot(
	const struct predict *p, const struct predict_kernel *k, unsigned known_cost)
{
	return slot_find(p, compiled_id(k, known_cost));
}

const char *fit_kind_word(enum fit_kind kind)
{
	static const char *const words[] = {
		[FIT_NONE] = "none",
		[FIT_LINEAR] = "linear",
		[FIT_BOUND] = "bound",
		[FIT_NEAREST] = "nearest",
		[FIT_RATIO] = "ratio",
		[FIT_POWER] = "power",
	};
	return words[kind <= FIT_POWER ? kind : FIT_NONE];
}

/* Among a kernel's shapes half a key is enough. */
static uint32_t short_key(const struct predict_question *q)
{
	return (uint32_t)(q->key >> 32);
}

static unsigned side_code(uint16_t side)
{
	if (side < 8)
		return 0;
	const int code = (int)(2 * approx_log2((float)side) - 4.5f);
	return code < 15 ? (unsigned)code : 15;
}

static struct kernel_shape shape_of(const struct predict_question *q)
{
	const struct predict_launch *l = q->launch;
	struct kernel_shape s = {
		.key = short_key(q),
		.waves = q->waves,
		.bytes_ns = q->bytes_ns,
		.flops_ns = q->flops_ns,
		.resident = (uint8_t)q->blocks_per_sm,
		.width = (uint8_t)(WIDTH_ONE * approx_log2((float)q->threads) + 0.5f),
		.tile = (uint8_t)(side_code(l->kernel->tile[0]) << 4 |
				  side_code(l->kernel->tile[1])),
	};
	for (uint32_t i = 0; i < l->args && i < PREDICT_ARGS; i++)
		s.arg[i] = shape_scalar(l->arg[i]);
	return s;
}

/* Shapes of which more or less is known tell only where bounds have no part in it. */
static bool may_predict(bool otherwise_known, enum fit_kind kind)
{
	return !otherwise_known || kind == FIT_LINEAR;
}

/* How much siblings count beside the kernel's own fit: the more, the worse it is, and not beyond
 * the shapes that are known. */
static float share_of_siblings(const struct shape_fit *fit, float nearest)
{
	const float share = SIBLING_RISE * fit->scale, inside = 1 - (1 - nearest) / SIBLING_AWAY;
	if (fit->kind == FIT_NONE)
		return SIBLING_NEAR;
	return inside > 0 ? inside * (share < SIBLING_MOST ? share : SIBLING_MOST) : 0;
}

/* How far a time that the kernel's own shapes tell is moved, as a log2.  Among the siblings' shapes
 * are this kernel's own, and how they lie tells more about it than bounds do.  If the kernel's own
 * fit is good, siblings are not worth the time to ask them. */
static float towards_siblings(const struct predict *p, const struct predict_question *q,
	const struct shape_fit *fit, float t)
{
	float ratio, nearest;
	if (fit->kind != FIT_NONE && fit->scale < SIBLING_WORTH)
		return 0;
	if (!sibling_ratio(p, q, &ratio, &nearest))
		return 0;
	return share_of_siblings(fit, nearest) * (ratio - approx_log2(t / q->bound_ns));
}

static bool ask_slot(const struct predict *p, const struct predict_question *q, uint64_t kernel,
	bool otherwise_known, struct predict_answer *a)
{
	const struct kernel_slot *slot = slot_find(p, kernel);
	struct slot_head head;
	if (!slot || !copy_stable(&head, slot, sizeof head, &slot->head.sequence) ||
		head.kernel != kernel || !head.shapes)
		return false;
	const struct kernel_shape shape = shape_of(q);
	const struct shape_fit *fit = &head.fit;
	const bool fitted = fit->kind != FIT_NONE;
	float t;
	if (!may_predict(otherwise_known, (enum fit_kind)fit->kind))
		return false;
	if (!fit_predict(fit, slot, head.shapes, &shape, (float)q->device->floor_ns, &t) ||
		head.sequence != load_acquire(shared(&slot->head.sequence)))
		return false;
	score_answer(p->tables, fitted ? PREDICT_SHAPE : PREDICT_NEAR, t,
		towards_siblings(p, q, fit, t), fitted ? fit->scale : NEAR_SCALE, a);
	return true;
}

static bool ask(const struct predict *p, const struct predict_question *q, struct predict_answer *a)
{
	const struct predict_kernel *k = q->launch->kernel;
	const unsigned known_cost = launch_known_cost(q->launch);
	if (ask_slot(p, q, compiled_id(k, known_cost), false, a))
		return true;
	for (unsigned other = 0; other < KNOWN_COSTS; other++)
		if (other != known_cost && ask_slot(p, q, compiled_id(k, other), true, a))
			return true;
	return false;
}

static struct kernel_slot *place(struct predict_tables *t, uint64_t kernel)
{
	struct kernel_slot *slots = tables_slots(t), *oldest = NULL;
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct kernel_slot *s = &slots[(kernel + i) & (t->kernels - 1)];
		if (s->head.kernel == kernel)
			return s;
		if (!oldest || (oldest->head.kernel &&
				       (!s->head.kernel || s->head.last < oldest->head.last)))
			oldest = s;
	}
	return oldest;
}

/* The shape's time is followed as in predictor_history.c, more simply: refits smooth the rest. */
static void revise(struct kernel_shape *s, float t)
{
	s->n += s->n < 16;
	if (!expect_inside(s->n > 1, "what is revised was seen before"))
		return;
	const float off = approx_log2(t / s->t_ns);
	const bool cold = s->n == 2 && off < -0.15f;
	s->t_ns = cold ? t : s->t_ns * approx_exp2(off / (float)s->n);
}

/* New shapes are worth a fit while there are few, then each fourth; old ones when much was seen. */
static bool worth_a_fit(const struct slot_head *h, bool fresh)
{
	if (h->shapes < FIT_FEWEST)
		return false;
	return fresh ? h->shapes <= 32 || h->next % 4 == 0 : h->stale >= 64;
}

static struct kernel_shape *shape_find(struct kernel_slot *slot, uint32_t key)
{
	for (uint32_t i = 0; i < slot->head.shapes && i < SHAPES; i++)
		if (slot->shape[i].key == key)
			return &slot->shape[i];
	return NULL;
}

/* The shape's place in the slot: where it stands, or that of the one longest there. */
static struct kernel_shape *shape_place(struct kernel_slot *slot, uint32_t key)
{
	struct kernel_shape *found = shape_find(slot, key);
	if (found)
		return found;
	slot->head.shapes += slot->head.shapes < SHAPES;
	if (!expect_inside(slot->head.shapes <= SHAPES, "a slot has no more shapes than room"))
		slot->head.shapes = SHAPES;
	return &slot->shape[slot->head.next++ % SHAPES];
}

static void learn(
	struct predict *p, const struct predict_question *q, const struct predict_sample *s)
{
	const uint64_t kernel = compiled_id(q->launch->kernel, launch_known_cost(q->launch));
	struct kernel_slot *at = place(p->tables, kernel);
	if (!expect_inside(
		    in_window(kernel, (size_t)(at - tables_slots(p->tables)), p->tables->kernels),
		    "a slot is in its kernel's window"))
		return;
	/* of what is known well each eighth observation is enough: history has them all */
	if (q->seen > SETTLED && q->seen % 8 && at->head.kernel == kernel &&
		shape_find(at, short_key(q)))
		return;
	struct kernel_slot slot = *at;
	if (slot.head.kernel != kernel)
		slot = (struct kernel_slot){ .head = { .kernel = kernel,
						     .known_cost = launch_known_cost(q->launch) } };
	struct kernel_shape *shape = shape_place(&slot, short_key(q));
	const bool fresh = shape->key != short_key(q) || !shape->n;
	if (fresh) {
		*shape = shape_of(q);
		shape->t_ns = (float)s->measured_ns;
		shape->n = 1;
	} else {
		revise(shape, (float)s->measured_ns);
	}
	shape_set_residual(&slot, (size_t)(shape - slot.shape));
	slot.head.last = (uint32_t)(s->order >> 20);
	slot.head.stale++;
	if (!expect_inside(
		    slot.head.kernel == kernel && slot.head.shapes, "a slot has its kernel's"))
		return;
	if (worth_a_fit(&slot.head, fresh))
		shape_refit(&slot);
	store_stable(at, &slot, sizeof slot, &at->head.sequence);
}

const struct predictor predictor_shape = {
	.shaped = true,
	.ask = ask,
	.learn = learn,
};
