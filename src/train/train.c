/* Rows, folds, and the file that comes of them: see train.h. */
#include "train/train.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/xmalloc.h"
#include "predict/approx.h"
#include "predict/predictor.h"
#include "predict/score.h"

#define FOLDS 5

/* The state of training: a family's usual ratio, over some of the rows. */
struct log_ratios {
	struct model_family family[FAMILIES][KNOWN_COSTS];
};

ORDERING(by_key, struct predict_sample *const, ORDER((*a)->launch.key, (*b)->launch.key),
	ORDER((*a)->measured_ns, (*b)->measured_ns))

static bool row_of(
	const struct predict_device *d, const struct predict_sample *median, struct train_row *row)
{
	struct predict_question q = { .launch = &median->launch, .device = d };
	if (!(median->measured_ns > 0 && median->measured_ns < 1e15) || !question_shape(&q))
		return false;
	*row = (struct train_row){
		.sample = median,
		.measured_ns = (float)median->measured_ns,
		.bound_ns = q.bound_ns,
		.y = approx_log2((float)median->measured_ns / q.bound_ns),
		.family = median->launch.kernel->family,
		.known_cost = launch_known_cost(&median->launch),
		.group = median->launch.kernel->group,
	};
	return true;
}

static size_t count_distinct(uint64_t *v, size_t n)
{
	size_t distinct = n > 0;
	qsort(v, n, sizeof v[0], order_u64);
	for (size_t i = 1; i < n; i++)
		distinct += v[i] != v[i - 1];
	return distinct;
}

static void count_rows(struct train_rows *r)
{
	uint64_t *ids = xcalloc(r->n + 1, sizeof *ids);
	for (size_t i = 0; i < r->n; i++)
		ids[i] = r->v[i].sample->launch.kernel->id;
	r->kernels = count_distinct(ids, r->n);
	for (size_t i = 0; i < r->n; i++)
		ids[i] = r->v[i].group;
	r->groups = count_distinct(ids, r->n);
	free(ids);
}

void train_rows_of(const struct predict_device *d, const struct predict_sample *samples, size_t n,
	struct train_rows *ret_rows)
{
	const struct predict_sample **sorted = xcalloc(n + 1, sizeof *sorted);
	struct train_rows r = { .v = xcalloc(n + 1, sizeof *r.v) };
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (!samples[i].launch.contended && samples[i].launch.key)
			sorted[kept++] = &samples[i];
	qsort(sorted, kept, sizeof *sorted, by_key);
	for (size_t from = 0, to; from < kept; from = to) {
		for (to = from; to < kept && sorted[to]->launch.key == sorted[from]->launch.key;)
			to++;
		r.n += row_of(d, sorted[from + (to - from) / 2], &r.v[r.n]);
	}
	free(sorted);
	count_rows(&r);
	*ret_rows = r;
}

void train_rows_fini(struct train_rows *r)
{
	free(r->v);
	*r = (struct train_rows){ 0 };
}

/* If there are too few groups or kernels, launches are dealt out one by one. */
static unsigned fold_of(const struct train_rows *r, const struct train_row *row)
{
	const bool whole = r->together ? r->groups >= FOLDS : r->kernels >= FOLDS;
	const uint64_t unit = r->together ? row->group : row->sample->launch.kernel->id;
	return (unsigned)(hash_mix(whole ? unit : row->sample->launch.key) % FOLDS);
}

/* Row by row into v, those of the family (FAMILY_UNKNOWN: all) and known cost outside the fold. */
static size_t gather(const struct train_rows *r, enum predict_family family, unsigned known_cost,
	unsigned without, float *v)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		if ((!family || r->v[i].family == family) && r->v[i].known_cost == known_cost &&
			fold_of(r, &r->v[i]) != without)
			v[n++] = r->v[i].y;
	return n;
}

/* If nothing was seen, the ratio is that of another known cost: better than none. */
static void log_ratios_of(
	const struct train_rows *r, unsigned without, float *scratch, struct log_ratios *e)
{
	memset(e, 0, sizeof *e);
	for (int f = 0; f < FAMILIES; f++)
		for (unsigned k = 0; k < KNOWN_COSTS; k++) {
			struct model_family *m = &e->family[f][k];
			const size_t n = gather(r, (enum predict_family)f, k, without, scratch);
			m->launches = (uint32_t)n;
			m->log_ratio =
				n ? score_quantile(scratch, n, 0.5) : e->family[0][k].log_ratio;
			m->scale = 1;
		}
}

static float usual(const struct log_ratios *e, const struct train_row *row)
{
	const struct model_family *own = &e->family[row->family][row->known_cost];
	return own->launches ? own->log_ratio
			     : e->family[FAMILY_UNKNOWN][row->known_cost].log_ratio;
}

/* A fifth of the rows is shown as if its family were unseen, so that the model learns what to do
 * then. */
static void fill(const struct predict_device *d, const struct log_ratios *e,
	const struct train_row *row, bool unseen, struct fit_row *ret_row)
{
	struct predict_kernel k = *row->sample->launch.kernel;
	struct predict_launch l = row->sample->launch;
	k.family = unseen ? FAMILY_UNKNOWN : k.family;
	l.kernel = &k;
	struct predict_question q = { .launch = &l, .device = d };
	question_shape(&q);
	const float all = e->family[FAMILY_UNKNOWN][row->known_cost].log_ratio;
	feature_fill(&q, unseen ? all : usual(e, row), ret_row->x);
	ret_row->y = row->y;
}

static size_t fill_all(const struct predict_device *d, const struct train_rows *r,
	const struct log_ratios *e, unsigned without, struct fit_row *ret_rows)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		if (fold_of(r, &r->v[i]) != without)
			fill(d, e, &r->v[i], hash_mix(r->v[i].sample->launch.key ^ 1) % 5 == 0,
				&ret_rows[n++]);
	return n;
}

/* Launches of which more is known are fewer, and must not drown among the others: each grade of
 * known cost weighs as much as any other. */
static void weigh(struct fit_row *rows, size_t n)
{
	size_t count[KNOWN_COSTS + 1] = { 0 };
	for (size_t i = 0; i < n; i++)
		count[(size_t)rows[i].x[FEATURE_known]]++;
	for (size_t i = 0; i < n; i++)
		rows[i].weight =
			(float)n / (float)(count[(size_t)rows[i].x[FEATURE_known]] * KNOWN_COSTS);
}

static void put_ranges(struct model_file *f, const struct fit_row *rows, size_t n)
{
	for (int k = 0; k < FEATURES; k++) {
		f->low[k] = f->high[k] = rows[0].x[k];
		for (size_t i = 1; i < n; i++) {
			f->low[k] = rows[i].x[k] < f->low[k] ? rows[i].x[k] : f->low[k];
			f->high[k] = rows[i].x[k] > f->high[k] ? rows[i].x[k] : f->high[k];
		}
	}
	f->answer_low = f->answer_high = rows[0].y;
	for (size_t i = 1; i < n; i++) {
		f->answer_low = rows[i].y < f->answer_low ? rows[i].y : f->answer_low;
		f->answer_high = rows[i].y > f->answer_high ? rows[i].y : f->answer_high;
	}
}

static void seal(struct model_file *f)
{
	const size_t from = offsetof(struct model_file, check) + sizeof f->check;
	f->check = crc32c((const char *)f + from, f->file_bytes - from);
}

static void put_head(struct model_file *f, const struct predict_device *d,
	const struct train_rows *r, const struct train_options *o)
{
	memcpy(f->magic, MODEL_MAGIC, sizeof f->magic);
	f->version = MODEL_VERSION;
	f->header_bytes = sizeof *f;
	f->schema = feature_schema();
	f->created = o->created;
	f->launches = r->n;
	f->kernels = (uint32_t)r->kernels;
	f->cc = d->cc;
	f->sms = d->sms;
	memcpy(f->uuid, d->uuid, sizeof f->uuid);
	for (size_t i = 0; o->device && o->device[i] && i + 1 < sizeof f->device; i++)
		f->device[i] = o->device[i];
}

static struct model_file *assemble(const struct forest *forest)
{
	const size_t bytes = forest_bytes(forest->trees, forest->depth);
	const size_t first = round_up(sizeof(struct model_file), MODEL_ALIGN),
		     all = first + round_up(bytes, MODEL_ALIGN);
	struct model_file *f = xcheck(aligned_alloc(MODEL_ALIGN, all));
	memset(f, 0, all);
	f->file_bytes = all;
	f->forest_bytes = bytes;
	f->forest_offset = first;
	memcpy((char *)f + first, forest, bytes);
	return f;
}

/* Everything but the folds' errors, from the rows outside the fold. */
static int fit_file(const struct predict_device *d, const struct train_rows *r, unsigned without,
	const struct train_options *o, struct fit_progress *progress, struct model_file **ret_file,
	struct error *err)
{
	struct fit_row *rows = xcalloc(r->n + 1, sizeof *rows);
	float *scratch = xcalloc(r->n + 1, sizeof *scratch);
	struct log_ratios e;
	log_ratios_of(r, without, scratch, &e);
	const size_t n = fill_all(d, r, &e, without, rows);
	weigh(rows, n);
	if (n) {
		struct forest *forest = fit_forest(rows, n, progress);
		struct model_file *f = assemble(forest);
		put_head(f, d, r, o);
		put_ranges(f, rows, n);
		memcpy(f->families, e.family, sizeof f->families);
		free(forest);
		*ret_file = f;
	}
	free(rows);
	free(scratch);
	return n ? 0 : error_set(err, -ENODATA, "there are no launches to train on");
}

int train_fit(const struct predict_device *d, const struct train_rows *rows,
	const struct model_file *like, const struct train_options *o, struct model_file **ret_bytes,
	struct error *err)
{
	struct fit_progress progress = o->progress;
	const int ret = fit_file(d, rows, FOLDS, o, &progress, ret_bytes, err);
	if (ret)
		return ret;
	for (int i = 0; like && i < FAMILIES * KNOWN_COSTS; i++)
		(*ret_bytes)->families[i / KNOWN_COSTS][i % KNOWN_COSTS].scale =
			like->families[i / KNOWN_COSTS][i % KNOWN_COSTS].scale;
	seal(*ret_bytes);
	return 0;
}

/* The predictions for rows that were not seen. */
struct held_out {
	float *forest, *ratio; /* log2 errors by row, measured over predicted */
};

static void ask_fold(const struct predict_device *d, const struct train_rows *r, unsigned fold,
	const struct model_file *f, struct held_out *h)
{
	const struct predict_model m = { f, model_forest(f) };
	const struct log_ratios *e = (const struct log_ratios *)&f->families;
	for (size_t i = 0; i < r->n; i++) {
		const struct train_row *row = &r->v[i];
		if (fold_of(r, row) != fold)
			continue;
		struct predict_question q = { .launch = &row->sample->launch, .device = d };
		struct model_answer a;
		question_shape(&q);
		h->ratio[i] = row->y - usual(e, row);
		model_ask(&m, &q, &a);
		h->forest[i] = row->y - a.log_ratio;
	}
}

static struct train_score score_of(const float *off, size_t n, float *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabsf(exp2f(-off[i]) - 1);
	const float p90 = score_quantile(scratch, n, 0.9);
	return (struct train_score){ score_quantile(scratch, n, 0.5), p90 };
}

/* As model.h says: SCORE_FIRST_Q90 brings the 90th percentile back. */
static float scale_of(const struct train_rows *r, enum predict_family family, unsigned known_cost,
	const float *off, float *scratch)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		if ((!family || r->v[i].family == family) && r->v[i].known_cost == known_cost)
			scratch[n++] = off[i];
	const float p90 = n ? score_quantile(scratch, n, 0.9) : 1.5f;
	return p90 > SCALE_LEAST ? p90 / SCORE_FIRST_Q90 : SCALE_LEAST;
}

static void put_scales(
	struct model_file *f, const struct train_rows *r, const float *off, float *scratch)
{
	for (int family = 0; family < FAMILIES; family++)
		for (unsigned k = 0; k < KNOWN_COSTS; k++)
			f->families[family][k].scale =
				scale_of(r, (enum predict_family)family, k, off, scratch);
}

static int is_better(const struct train_scores *s, struct error *err)
{
	if (s->forest.median < s->ratio.median)
		return 0;
	return error_set(err, -EDOM,
		"no model is made: on unseen kernels its median relative error is %.1f %%, and that "
		"of the family's usual ratio to the bound alone is %.1f %%",
		100 * (double)s->forest.median, 100 * (double)s->ratio.median);
}

/* Errors by row, and what they come to. */
static int cross_validate(const struct predict_device *d, const struct train_rows *r,
	const struct train_options *o, struct fit_progress *progress, struct held_out *h,
	float *scratch, struct train_scores *ret_scores, struct error *err)
{
	for (unsigned fold = 0; fold < FOLDS; fold++) {
		struct model_file *f = NULL;
		const int ret = fit_file(d, r, fold, o, progress, &f, err);
		if (ret)
			return ret;
		ask_fold(d, r, fold, f, h);
		free(f);
	}
	ret_scores->ratio = score_of(h->ratio, r->n, scratch);
	ret_scores->forest = score_of(h->forest, r->n, scratch);
	return 0;
}

static int train_rows(const struct predict_device *d, struct train_rows *r,
	const struct train_options *o, struct model_file **ret_bytes, struct train_report *report,
	struct error *err)
{
	float *numbers = xcalloc(3 * r->n + 1, sizeof *numbers);
	struct held_out h = { numbers, numbers + r->n };
	float *scratch = numbers + 2 * r->n;
	struct fit_progress progress = o->progress;
	progress.all = (2 * FOLDS + 1) * FIT_TREES;
	int ret = cross_validate(d, r, o, &progress, &h, scratch, &report->siblings, err);
	if (!ret)
		ret = is_better(&report->siblings, err);
	r->together = true;
	if (!ret)
		ret = cross_validate(d, r, o, &progress, &h, scratch, &report->alone, err);
	if (!ret)
		ret = fit_file(d, r, FOLDS, o, &progress, ret_bytes, err);
	if (!ret) {
		put_scales(*ret_bytes, r, h.forest, scratch);
		seal(*ret_bytes);
	}
	free(numbers);
	return ret;
}

int train_model(const struct predict_device *d, const struct predict_sample *samples, size_t n,
	const struct train_options *o, struct model_file **ret_bytes,
	struct train_report *ret_report, struct error *err)
{
	struct train_rows r;
	struct train_report report = { 0 };
	int ret;
	train_rows_of(d, samples, n, &r);
	report.launches = r.n;
	report.kernels = r.kernels;
	report.groups = r.groups;
	if (r.n < TRAIN_FEWEST)
		ret = error_set(err, -ENODATA,
			"there are %zu different launches with a device time, and %d are needed: "
			"record more, with --gpu",
			r.n, TRAIN_FEWEST);
	else
		ret = train_rows(d, &r, o, ret_bytes, &report, err);
	train_rows_fini(&r);
	*ret_report = report;
	return ret;
}
