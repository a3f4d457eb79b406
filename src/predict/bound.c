/*
 * Shape and bound of a launch, and the last of the predictors: the bound times what such kernels
 * usually need of it.
 *
 * With bytes or FLOPs known the bound is a roofline's.  With neither it is only a yardstick: what
 * the launch would take if each thread moved eight bytes.  The learned ratios are kept apart by how
 * much was known, so one is never taken for the other.
 */
#include "predict/bound.h"

#include "predict/model.h"
#include "predict/score.h"
#include "predict/tables.h"

#include "base/banned.h"

#define YARDSTICK_BYTES 8 /* a thread: one word in, one word out */
#define ENOUGH_FAMILY   4 /* launches of a family that tell something about it */
#define ENOUGH_ALL      8

static bool sensible(bool has, double value)
{
	return has && value > 0 && value < 1e30;
}

bool launch_bytes(const struct predict_launch *l, double *ret_bytes)
{
	*ret_bytes = l->bytes;
	return sensible(l->has_bytes, l->bytes);
}

bool launch_flops(const struct predict_launch *l, double *ret_flops)
{
	*ret_flops = l->flops;
	return sensible(l->has_flops, l->flops);
}

unsigned launch_knowledge(const struct predict_launch *l)
{
	double unused;
	return launch_bytes(l, &unused) + (unsigned)launch_flops(l, &unused);
}

/* As the driver does, which refuses a launch beyond these with CUDA_ERROR_INVALID_VALUE. */
static bool geometry_fits(const struct predict_launch *l)
{
	return l->grid[0] && l->grid[1] && l->grid[2] && l->grid[0] <= INT32_MAX &&
	       l->grid[1] <= UINT16_MAX && l->grid[2] <= UINT16_MAX && l->block[0] && l->block[1] &&
	       l->block[2] && l->block[0] <= 1024 && l->block[1] <= 1024 && l->block[2] <= 64;
}

static void bounds_of(struct predict_question *q)
{
	const struct predict_device *d = q->device;
	const struct predict_launch *l = q->launch;
	double bytes, flops, least = d->floor_ns;
	const bool has_bytes = launch_bytes(l, &bytes);
	const bool has_flops =
		launch_flops(l, &flops) && l->unit < GPU_UNITS && (d->has >> l->unit & 1);
	if (!has_bytes && !has_flops)
		bytes = (double)q->blocks * q->threads * YARDSTICK_BYTES;
	if ((has_bytes || !has_flops) && bytes / d->dram_bytes_ns > least)
		least = bytes / d->dram_bytes_ns;
	q->bytes_ns = (float)least;
	q->flops_ns = has_flops ? (float)(flops / d->flops_ns[l->unit]) : 0;
	/* the SM with most blocks is ready last: with 133 on 132, after twice the mean */
	const float last = q->flops_ns * q->crowd;
	q->bound_ns = last > q->bytes_ns ? last : q->bytes_ns;
}

bool question_shape(struct predict_question *q)
{
	const struct predict_launch *l = q->launch;
	if (!geometry_fits(l))
		return false;
	q->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	q->threads = l->block[0] * l->block[1] * l->block[2];
	const struct occupancy o = occupancy_of(
		&q->device->sm, &(struct occupancy_launch){
					.threads = q->threads,
					.regs = l->kernel->has_regs ? l->kernel->regs : 0,
					.smem_static_bytes = l->kernel->smem_static_bytes,
					.smem_dynamic_bytes = l->smem_dynamic_bytes,
					.barriers = l->kernel->barriers,
				});
	if (!o.blocks)
		return false;
	q->blocks_per_sm = o.blocks;
	q->waves = (float)q->blocks / (float)(o.blocks * q->device->sms);
	const uint64_t sms = q->device->sms, most = (q->blocks + sms - 1) / sms;
	q->crowd = (float)(most * sms) / (float)q->blocks;
	bounds_of(q);
	return true;
}

void question_fit(const struct predict_question *q, struct predict_answer *a)
{
	const uint32_t warps = (q->threads + OCCUPANCY_WARP - 1) / OCCUPANCY_WARP;
	const float resident = (float)(warps * q->blocks_per_sm);
	a->launches = true;
	a->blocks_per_sm = q->blocks_per_sm;
	a->occupancy = resident / (float)q->device->sm.warps_per_sm;
	a->waves = q->waves;
	a->sm_fill = q->blocks < q->device->sms ? (float)q->blocks / (float)q->device->sms : 1;
	a->lane_efficiency = (float)q->threads / (float)(warps * OCCUPANCY_WARP);
}

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
