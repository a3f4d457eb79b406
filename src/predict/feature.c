/* The features of a launch: see feature.h. */
#include "predict/feature.h"

#include <string.h>

#include "base/hash.h"
#include "predict/approx.h"
#include "predict/bound.h"
#include "predict/wave_fit.h"

#include "base/banned.h"

/* 0 for nothing, and continuous. */
static float log2_of(float x)
{
	return approx_log2(1 + x);
}

/* Largest first. */
static void put_scalars(const struct predict_launch *l, float f[static FEATURES])
{
	float top[3] = { 0 }, product = 0;
	for (uint32_t i = 0; i < l->args && i < PREDICT_ARGS; i++) {
		float value = wave_scalar(l->arg[i]);
		product += log2_of(value);
		for (int k = 0; k < 3; k++)
			if (value > top[k]) {
				const float smaller = top[k];
				top[k] = value;
				value = smaller;
			}
	}
	f[FEATURE_scalar] = log2_of(top[0]);
	f[FEATURE_scalar2] = log2_of(top[1]);
	f[FEATURE_scalar3] = log2_of(top[2]);
	f[FEATURE_scalars] = product;
}

static void put_work(const struct predict_question *q, float f[static FEATURES])
{
	double bytes = 0, flops = 0;
	const bool has_bytes = launch_bytes(q->launch, &bytes);
	const bool has_flops = launch_flops(q->launch, &flops);
	const float all = (float)q->blocks * (float)q->threads;
	f[FEATURE_known] = (float)(has_bytes + 2 * has_flops);
	f[FEATURE_bytes] = has_bytes ? log2_of((float)bytes) : 0;
	f[FEATURE_flops] = has_flops ? log2_of((float)flops) : 0;
	f[FEATURE_grain] = has_bytes ? log2_of((float)bytes / all) : 0;
}

static void put_kernel(const struct predict_question *q, float f[static FEATURES])
{
	const struct predict_kernel *k = q->launch->kernel;
	f[FEATURE_regs] = k->has_regs ? (float)k->regs / 256 : -1;
	f[FEATURE_smem] =
		log2_of((float)k->smem_static_bytes + (float)q->launch->smem_dynamic_bytes);
	f[FEATURE_local] = k->has_local ? log2_of((float)k->local_bytes) : 0;
	f[FEATURE_family] = (float)k->family;
}

void feature_fill(
	const struct predict_question *q, float effect, float ret_features[static FEATURES])
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
	f[FEATURE_effect] = effect;
	f[FEATURE_blocks] = log2_of((float)q->blocks);
	f[FEATURE_grid_x] = log2_of((float)l->grid[0]);
	f[FEATURE_grid_y] = log2_of((float)l->grid[1]);
	f[FEATURE_grid_z] = log2_of((float)l->grid[2]);
	f[FEATURE_block_x] = log2_of((float)l->block[0]);
	f[FEATURE_per_sm] = (float)q->blocks_per_sm;
	put_scalars(l, f);
	put_work(q, f);
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
