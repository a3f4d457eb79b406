/* The features of a launch: see feature.h. */
#include "predict/feature.h"

#include <string.h>

#include "base/hash.h"
#include "predict/approx.h"
#include "predict/fit_shape.h"

/* 0 for nothing, and continuous. */
static float log2_of(float x)
{
	return approx_log2(1 + x);
}

/* Largest first. */
static void put_scalars(const struct predict_launch *l, float f[static FEATURES])
{
	float top[3] = { 0 }, product = 0;
	for (int i = 0; i < 4; i++)
		f[FEATURE_arg0 + i] = 0;
	for (uint32_t i = 0; i < l->args && i < PREDICT_ARGS; i++) {
		float value = log2_of(shape_scalar(l->arg[i]));
		product += value;
		if (i < 4)
			f[FEATURE_arg0 + i] = value;
		for (int k = 0; k < 3; k++)
			if (value > top[k]) {
				const float smaller = top[k];
				top[k] = value;
				value = smaller;
			}
	}
	f[FEATURE_scalar] = top[0];
	f[FEATURE_scalar2] = top[1];
	f[FEATURE_scalar3] = top[2];
	f[FEATURE_scalars] = product;
}

/* Both sides of the roofline, the one of FLOPs as question.c has it. */
static float intensity(const struct predict_question *q, double flops_a_byte)
{
	const struct predict_device *d = q->device;
	const enum gpu_unit unit = q->launch->unit;
	if (unit >= GPU_UNITS || !(d->has >> unit & 1))
		return 0;
	return approx_log2((
		float)(flops_a_byte * (double)q->imbalance * d->dram_bytes_ns / d->flops_ns[unit]));
}

static void put_cost(const struct predict_question *q, float f[static FEATURES])
{
	static const enum feature scalars[] = { FEATURE_scalar, FEATURE_scalar2, FEATURE_scalar3 };
	double bytes = 0, flops = 0;
	const bool has_bytes = launch_bytes(q->launch, &bytes);
	const bool has_flops = launch_flops(q->launch, &flops);
	const float all = (float)q->blocks * (float)q->threads;
	f[FEATURE_known] = (float)(has_bytes + 2 * has_flops);
	f[FEATURE_bytes] = has_bytes ? log2_of((float)bytes) : 0;
	f[FEATURE_flops] = has_flops ? log2_of((float)flops) : 0;
	f[FEATURE_grain] = has_bytes ? log2_of((float)bytes / all) : 0;
	f[FEATURE_portion] = has_bytes ? log2_of((float)bytes / (float)q->blocks) : 0;
	f[FEATURE_piece] = has_flops ? log2_of((float)flops / (float)q->blocks) : 0;
	f[FEATURE_effort] = has_flops ? log2_of((float)flops / all) : 0;
	for (int i = 0; i < 3; i++)
		f[FEATURE_step + i] = has_flops ? f[FEATURE_effort] - f[scalars[i]] : 0;
	f[FEATURE_unit] = (float)q->launch->unit;
	f[FEATURE_intensity] = has_bytes && has_flops ? intensity(q, flops / bytes) : 0;
}

static void put_kernel(const struct predict_question *q, float f[static FEATURES])
{
	const struct predict_kernel *k = q->launch->kernel;
	f[FEATURE_regs] = k->has_regs ? (float)k->regs / 256 : -1;
	f[FEATURE_smem] =
		log2_of((float)k->smem_static_bytes + (float)q->launch->smem_dynamic_bytes);
	f[FEATURE_local] = k->has_local ? log2_of((float)k->local_bytes) : 0;
	f[FEATURE_family] = (float)k->family;
	f[FEATURE_stage] = f[FEATURE_smem] - f[FEATURE_threads];
	f[FEATURE_tile_m] = k->tile[0] ? approx_log2((float)k->tile[0]) : 0;
	f[FEATURE_tile_n] = k->tile[1] ? approx_log2((float)k->tile[1]) : 0;
	f[FEATURE_tile] =
		k->tile[0] ? f[FEATURE_tile_m] + f[FEATURE_tile_n] - f[FEATURE_threads] : 0;
	f[FEATURE_element] = (float)k->element_bytes;
}

void feature_fill(
	const struct predict_question *q, float log_ratio, float ret_features[static FEATURES])
{
	const struct predict_launch *l = q->launch;
	float *f = ret_features;
	struct predict_answer fit = { 0 };
	question_fit(q, &fit);
	const float whole = (float)(uint64_t)q->waves;
	f[FEATURE_waves] = log2_of(q->waves);
	f[FEATURE_tail] = q->waves / (whole < q->waves ? whole + 1 : whole);
	f[FEATURE_threads] = log2_of((float)q->threads);
	f[FEATURE_occupancy] = fit.occupancy;
	f[FEATURE_bound] = approx_log2(q->bound_ns);
	f[FEATURE_effect] = log_ratio;
	f[FEATURE_blocks] = log2_of((float)q->blocks);
	f[FEATURE_grid_x] = log2_of((float)l->grid[0]);
	f[FEATURE_grid_y] = log2_of((float)l->grid[1]);
	f[FEATURE_grid_z] = log2_of((float)l->grid[2]);
	f[FEATURE_block_x] = log2_of((float)l->block[0]);
	f[FEATURE_per_sm] = (float)q->blocks_per_sm;
	f[FEATURE_crowd] = approx_log2(q->imbalance);
	f[FEATURE_warps] = log2_of(
		fit.occupancy * (float)q->device->sm.warps_per_sm * (q->waves < 1 ? q->waves : 1));
	put_scalars(l, f);
	put_cost(q, f);
	put_kernel(q, f);
}

#define ROW(name, what) { #name, what },
static const struct {
	const char *name, *what;
} rows[FEATURES] = { FEATURE_LIST(ROW) };
#undef ROW

const char *feature_name(enum feature f)
{
	return rows[f].name;
}

const char *feature_what(enum feature f)
{
	return rows[f].what;
}

uint64_t feature_schema(void)
{
	uint64_t h = FEATURES;
	for (int i = 0; i < FEATURES; i++) {
		h = hash_mix(h ^ hash_bytes(rows[i].name, strlen(rows[i].name)));
		h = hash_mix(h ^ hash_bytes(rows[i].what, strlen(rows[i].what)));
	}
	/* numbers of families are a feature, too */
	for (int i = 0; i < FAMILIES; i++) {
		const char *word = predict_family_word((enum predict_family)i);
		h = hash_mix(h ^ hash_bytes(word, strlen(word)));
	}
	return h;
}
