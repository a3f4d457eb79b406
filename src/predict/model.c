/*
 * Reading, asking and replacing models: see model.h.  A file comes from outside, so everything in
 * it is looked at before anything of it is used.
 */
#include "predict/model.h"

#include <errno.h>

#include "base/atomic.h"
#include "base/crc.h"
#include "predict/approx.h"
#include "predict/predict.h"
#include "predict/predictor.h"
#include "predict/score.h"

#define STEPS     10   /* of the test for monotony, each four times the blocks */
#define SAG       0.7f /* time may fall to so much of the most before it counts */
#define SAGS_MOST 0.2  /* share of the steps that may */

static int refuse(struct error *err, const char *why)
{
	return error_set(err, -EINVAL, "%s", why);
}

static int check_start(const struct model_file *f, size_t n, struct error *err)
{
	if (n < sizeof *f || memcmp(f->magic, MODEL_MAGIC, sizeof f->magic))
		return refuse(err, "this is not a model: its first bytes are not those of one");
	if (f->version != MODEL_VERSION)
		return error_set(err, -EINVAL,
			"the model has format version %u and this program reads version %u: train "
			"it anew",
			f->version, MODEL_VERSION);
	if (f->file_bytes != n || f->header_bytes != sizeof *f)
		return error_set(err, -EINVAL,
			"the model is cut short or has something behind it: %zu bytes instead of "
			"%llu",
			n, (unsigned long long)f->file_bytes);
	const size_t from = offsetof(struct model_file, check) + sizeof f->check;
	if (f->check != crc32c((const char *)f + from, n - from))
		return refuse(err, "the model is damaged: its checksum is wrong");
	if (f->schema != feature_schema())
		return refuse(err, "the model has other features than this program: train it "
				   "with this version of weir");
	return 0;
}

static bool family_sensible(const struct model_family *f)
{
	return is_finite(f->log_ratio) && is_finite(f->scale) && f->scale >= 0;
}

static int check_numbers(const struct model_file *f, struct error *err)
{
	bool sensible = is_finite(f->answer_low) && is_finite(f->answer_high) &&
			f->answer_low <= f->answer_high;
	for (int i = 0; i < FEATURES; i++)
		sensible = sensible && is_finite(f->low[i]) && is_finite(f->high[i]) &&
			   f->low[i] <= f->high[i];
	for (int i = 0; i < FAMILIES * KNOWN_COSTS; i++)
		sensible =
			sensible && family_sensible(&f->families[i / KNOWN_COSTS][i % KNOWN_COSTS]);
	if (!sensible)
		return refuse(err, "a number of the model is not finite, or a range is empty");
	if (!memchr(f->device, 0, sizeof f->device))
		return refuse(err, "the model's device has a name without end");
	return 0;
}

static int check_forest(const struct model_file *f, struct error *err)
{
	const uint64_t offset = f->forest_offset;
	if (offset % MODEL_ALIGN || offset < sizeof *f || offset > f->file_bytes ||
		f->forest_bytes > f->file_bytes - offset)
		return refuse(err, "the forest is not inside the file");
	const char *wrong = forest_check(model_forest(f), f->forest_bytes, FEATURES);
	return wrong ? refuse(err, wrong) : 0;
}

/* The time of ever more blocks of one kernel: how often it sags below what fewer took. */
static unsigned sags(
	const struct predict_model *m, struct predict_launch *l, const struct predict_device *d)
{
	unsigned count = 0;
	float most = 0;
	for (uint32_t step = 0; step < STEPS; step++) {
		l->grid[0] = 1u << 2 * step;
		if (l->has_bytes)
			l->bytes = 4096.0 * l->grid[0];
		if (l->has_flops)
			l->flops = 4e6 * l->grid[0];
		struct predict_question q = { .launch = l, .device = d };
		struct model_answer a;
		if (!question_shape(&q))
			return count;
		model_ask(m, &q, &a);
		const float t = q.bound_ns * approx_exp2(a.log_ratio);
		count += t < SAG * most;
		most = t > most ? t : most;
	}
	return count;
}

/* More of the same work does not take less time. */
static int check_monotone(const struct predict_model *m, struct error *err)
{
	static const uint32_t threads[] = { 64, 128, 256, 1024 };
	struct predict_device d = { .sm = *occupancy_device_find(9, 0),
		.cc = 90,
		.sms = 132,
		.dram_bytes_ns = 4800,
		.has = 1u << GPU_FP32,
		.flops_ns = { [GPU_FP32] = 67e3 },
		.floor_ns = 1000 };
	unsigned count = 0, all = 0;
	for (int family = 0; family < FAMILIES; family++)
		for (size_t i = 0; i < 4 * sizeof threads / sizeof threads[0]; i++) {
			const struct predict_kernel k = { .id = 1,
				.family = (enum predict_family)family,
				.regs = 40,
				.has_regs = true };
			struct predict_launch l = { .kernel = &k,
				.grid = { 1, 1, 1 },
				.block = { threads[i / 4], 1, 1 },
				.unit = GPU_FP32,
				.has_bytes = i & 1,
				.bytes = 1,
				.has_flops = i & 2,
				.flops = 1 };
			/* where nothing was seen, nothing is promised */
			if (!m->file->families[family][launch_known_cost(&l)].launches)
				continue;
			count += sags(m, &l, &d);
			all += STEPS - 1;
		}
	if (count > SAGS_MOST * all)
		return error_set(err, -EINVAL,
			"the model is implausible: in %u of %u steps four times the blocks take "
			"less time",
			count, all);
	return 0;
}

int model_open(const void *bytes, size_t n, struct predict_model *ret_m, struct error *err)
{
	const struct model_file *f = bytes;
	struct predict_model m = { .file = f };
	if ((uintptr_t)bytes % MODEL_ALIGN)
		return refuse(err, "the model is not aligned in memory");
	int ret = check_start(f, n, err);
	if (!ret)
		ret = check_numbers(f, err);
	if (!ret)
		ret = check_forest(f, err);
	if (!ret) {
		m.forest = model_forest(f);
		ret = check_monotone(&m, err);
	}
	if (!ret)
		*ret_m = m;
	return ret;
}

/* Devices of one capability and size may still differ in memory, as H100 and H200 do. */
static bool same_memory(const struct model_file *f, const struct predict_device *d)
{
	const struct gpu *g = gpu_find(f->device, f->cc);
	return !g || g->dram_gb_per_s == d->dram_bytes_ns;
}

int model_fits_device(
	const struct predict_model *m, const struct predict_device *d, struct error *err)
{
	static const uint8_t any[16];
	const struct model_file *f = m->file;
	if (f->cc != d->cc || f->sms != d->sms)
		return error_set(err, -ENODEV,
			"the model is for %s (compute capability %u.%u, %u SMs) and this device has "
			"%u.%u and %u SMs: train one for it",
			f->device[0] ? f->device : "another device", f->cc / 10, f->cc % 10, f->sms,
			d->cc / 10, d->cc % 10, d->sms);
	if (!same_memory(f, d))
		return error_set(err, -ENODEV,
			"the model is for %s, whose memory is of another speed: train one for this "
			"device",
			f->device);
	if (memcmp(f->uuid, any, sizeof any) && memcmp(d->uuid, any, sizeof any) &&
		memcmp(f->uuid, d->uuid, sizeof any))
		return error_set(err, -ENODEV,
			"the model is for one other device of this kind, and says so by its UUID");
	return 0;
}

/* The median |log2 error| over the samples; false when none of them can be asked. */
static bool median_error(const struct predict_model *m, const struct predict_device *d,
	const struct predict_sample *samples, size_t n, float *ret_error)
{
	float off[MODEL_SHADOW];
	size_t asked = 0;
	for (size_t i = n > MODEL_SHADOW ? n - MODEL_SHADOW : 0; i < n; i++) {
		struct predict_question q = { .launch = &samples[i].launch, .device = d };
		struct model_answer a;
		const float measured = (float)samples[i].measured_ns;
		if (!(measured > 0) || samples[i].launch.contended || !question_shape(&q))
			continue;
		model_ask(m, &q, &a);
		const float e = approx_log2(measured / q.bound_ns) - a.log_ratio;
		off[asked++] = e < 0 ? -e : e;
	}
	if (asked)
		*ret_error = score_quantile(off, asked, 0.5);
	return asked;
}

int predict_offer(struct predict *p, const struct predict_model *m,
	const struct predict_sample *recent, size_t n, const struct predict_model **ret_old,
	struct error *err)
{
	const struct predict_device *d = &p->tables->device;
	const struct predict_model *now = load_acquire(&p->model);
	float old_error, new_error;
	const int ret = model_fits_device(m, d, err);
	if (ret)
		return ret;
	if (now && median_error(now, d, recent, n, &old_error) &&
		median_error(m, d, recent, n, &new_error) &&
		new_error > old_error * 1.05f + SCALE_LEAST)
		return error_set(err, -ERANGE,
			"the new model is worse on the last launches: median relative error %.1f %% "
			"instead of %.1f %%. The old one stays",
			100 * (double)(approx_exp2(new_error) - 1),
			100 * (double)(approx_exp2(old_error) - 1));
	*ret_old = predict_swap(p, m);
	return 0;
}
