/* Shape and bound of a launch. */
#include "predict/predictor.h"

#define YARDSTICK_BYTES 8 /* a thread: one word in, one word out */

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

unsigned launch_known_cost(const struct predict_launch *l)
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
	const float last = q->flops_ns * q->imbalance;
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
	q->imbalance = (float)(most * sms) / (float)q->blocks;
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
