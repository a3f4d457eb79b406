/*
 * weir eval: what predictions are worth, in splits that cannot flatter, beside plain baselines. The
 * arithmetic is in train/evaluate.c and train/measure.c.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "cmd/cli/launches.h"
#include "cmd/cli/values.h"
#include "train/evaluate.h"

#define DECADES    7 /* from below 1 us, 1 to 10 us ... to above 1 s */
#define WELL_KNOWN 8 /* shapes, from which on a kernel's own model is told of apart */

struct job {
	const struct options *options;
	struct predict_device device;
	struct predict_model model;
	struct dataset data;
	struct eval_filter filter; /* what the options leave */
	struct json json;
	bool print_json;
};

/* The rows of tiers, best first, and below that of shapes the part of it that is well known. */
static const struct {
	const char *word, *key;
	enum predict_tier tier;
	uint32_t shapes;
} tier_rows[] = {
	{ "exact", "exact", PREDICT_EXACT, 0 },
	{ "once", "once", PREDICT_ONCE, 0 },
	{ "shape", "shape", PREDICT_SHAPE, 0 },
	{ "shape, of 8 or more", "shape_of_8", PREDICT_SHAPE, WELL_KNOWN },
	{ "near", "near", PREDICT_NEAR, 0 },
	{ "cold", "cold", PREDICT_COLD, 0 },
	{ "bound", "bound", PREDICT_BOUND, 0 },
};
#define TIER_ROWS (sizeof tier_rows / sizeof tier_rows[0])

static struct eval_filter of_tier(const struct job *job, size_t row)
{
	struct eval_filter f = job->filter;
	f.tier = tier_rows[row].tier;
	f.shapes = tier_rows[row].shapes;
	return f;
}

static struct eval_filter of_decade(const struct job *job, int decade)
{
	struct eval_filter f = job->filter;
	const float from = decade ? powf(10, (float)decade + 2) : 0;
	const float below = decade + 1 < DECADES ? powf(10, (float)decade + 3) : INFINITY;
	f.from_ns = MAX(from, f.from_ns);
	f.below_ns = MIN(below, f.below_ns);
	return f;
}

static const char *decade_word(int decade)
{
	static const char *const words[DECADES] = { "below 1 us", "1 to 10 us", "10 to 100 us",
		"0.1 to 1 ms", "1 to 10 ms", "10 to 100 ms", "above 0.1 s" };
	return words[decade];
}

static struct eval_cell cell_of(const eval_points *points, struct eval_filter f, int predictor)
{
	struct eval_cell c = { 0 };
	eval_measure(points, f, predictor, &c);
	return c;
}

static void put_cell(struct table *t, const struct eval_cell *c)
{
	table_cell_if(t, c->n, "%.1f/%.0f", 100 * c->median, 100 * c->p90);
}

/* One line: how many, how well, and how well the others. */
static void print_line(
	struct table *t, const char *name, const eval_points *points, struct eval_filter f)
{
	const struct eval_cell own = cell_of(points, f, 0);
	if (!own.n)
		return;
	table_cell(t, "%s", name);
	table_count(t, own.n);
	put_cell(t, &own);
	table_cell(t, "%.1f", 100 * own.coverage);
	table_cell(t, "%.3f", own.tau);
	for (int predictor = 1; predictor < EVAL_PREDICTORS; predictor++) {
		const struct eval_cell c = cell_of(points, f, predictor);
		put_cell(t, &c);
	}
}

static void print_regret(
	struct table *t, const char *name, const eval_points *points, struct eval_filter f)
{
	if (!cell_of(points, f, 0).n)
		return;
	table_cell(t, "%s", name);
	for (int predictor = 0; predictor < EVAL_PREDICTORS; predictor++) {
		const struct eval_cell c = cell_of(points, f, predictor);
		table_cell_if(t, c.n, "%.2f", 100 * c.regret);
	}
}

/* The cost of running the shortest first, by each of these predictions. */
static void print_regrets(struct job *job, const eval_points *points)
{
	struct table t =
		table_of("<regret of shortest first, %|>weir|>last|>median|>ratio|>nearest");
	print_regret(&t, "all", points, job->filter);
	for (size_t row = 0; row < TIER_ROWS; row++)
		print_regret(&t, tier_rows[row].word, points, of_tier(job, row));
	table_print(&t, stdout);
	putchar('\n');
}

static void print_split(struct job *job, enum eval_split split, const eval_points *points)
{
	struct table t = table_of(
		"<relative error, %: median / p90|>launches|>weir|>p90 coverage, %|>tau|>last|>median|>ratio|>nearest");
	print_line(&t, "all", points, job->filter);
	for (size_t row = 0; row < TIER_ROWS; row++)
		print_line(&t, tier_rows[row].word, points, of_tier(job, row));
	for (int decade = 0; decade < DECADES; decade++)
		print_line(&t, decade_word(decade), points, of_decade(job, decade));
	printf("%s: %s\n", eval_split_word(split), eval_split_what(split));
	table_print(&t, stdout);
	putchar('\n');
	print_regrets(job, points);
}

static void json_cell(struct json *j, const char *key, const struct eval_cell *c)
{
	if (!c->n) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	json_u64(j, "launches", c->n);
	json_put_real(j, "median_ape", c->median);
	json_put_real(j, "p90_ape", c->p90);
	json_put_real(j, "median_log_error", c->log_median);
	json_put_real(j, "time_weighted_ape", c->weighted);
	json_put_real(j, "kendall_tau", c->tau);
	json_put_real(j, "shortest_first_regret", c->regret);
	if (c->has_t90) {
		json_put_real(j, "t90_coverage", c->coverage);
		json_put_real(j, "t90_pinball", c->pinball);
	}
	json_end_object(j);
}

static void json_line(
	struct job *job, const char *name, const eval_points *points, struct eval_filter f)
{
	static const char *const keys[EVAL_PREDICTORS] = { "weir", "last_value", "kernel_median",
		"kernel_ratio", "nearest_shape" };
	struct eval_cell own = cell_of(points, f, 0);
	if (!own.n)
		return;
	json_begin_object(&job->json, name);
	for (int predictor = 0; predictor < EVAL_PREDICTORS; predictor++) {
		const struct eval_cell c = cell_of(points, f, predictor);
		json_cell(&job->json, keys[predictor], &c);
	}
	json_end_object(&job->json);
}

static void json_split(struct job *job, enum eval_split split, const eval_points *points)
{
	json_begin_object(&job->json, eval_split_word(split));
	json_line(job, "all", points, job->filter);
	json_begin_object(&job->json, "predictors");
	for (size_t row = 0; row < TIER_ROWS; row++)
		json_line(job, tier_rows[row].key, points, of_tier(job, row));
	json_end_object(&job->json);
	json_begin_object(&job->json, "durations");
	for (int decade = 0; decade < DECADES; decade++)
		json_line(job, decade_word(decade), points, of_decade(job, decade));
	json_end_object(&job->json);
	json_end_object(&job->json);
}

/* A split that has nothing to hold out is left out, with the reason. */
static int run_split(struct job *job, enum eval_split split)
{
	eval_points points;
	struct progress bar;
	struct fit_progress progress = { .show = progress_show, .data = &bar };
	struct error err;
	progress_init(&bar, eval_split_word(split));
	const int ret = eval_run(split, &job->device, job->data.samples.v, job->data.samples.n,
		&job->model, &progress, &points, &err);
	progress_fini(&bar);
	if (ret == -ENODATA && !job->print_json)
		printf("%s: left out: %s\n\n", eval_split_word(split), err.text);
	else if (ret == -ENODATA)
		json_put_null(&job->json, eval_split_word(split));
	if (ret)
		return ret == -ENODATA ? 0 : complain(EXIT_ENVIRONMENT, "%s", err.text);
	if (job->print_json)
		json_split(job, split, &points);
	else
		print_split(job, split, &points);
	array_free(&points);
	return 0;
}

/* The splits that the options name, or all. */
static bool wanted(const struct options *o, enum eval_split split)
{
	for (int i = 0; opt_nth(o, "split", i); i++)
		if (!strcmp(opt_nth(o, "split", i), eval_split_word(split)))
			return true;
	return !opt_nth(o, "split", 0);
}

static int check_splits(const struct options *o)
{
	for (int i = 0; opt_nth(o, "split", i); i++) {
		bool known = false;
		for (int s = 0; s < EVAL_SPLITS; s++)
			known = known || !strcmp(opt_nth(o, "split", i),
						 eval_split_word((enum eval_split)s));
		if (!known)
			return complain(EXIT_USAGE,
				"--split=%s: there are prequential, kernel, sibling, family, "
				"application, extrapolation and random",
				opt_nth(o, "split", i));
	}
	return 0;
}

static int take_ns(const struct options *o, const char *name, float *to)
{
	uint64_t ns = 0;
	const int code = take_number(o, name, 0, UINT64_MAX, &ns);
	if (opt_str(o, name))
		*to = (float)ns;
	return code;
}

/* The family's word, or "no-" and the word: all but that one. */
static int take_family(const struct options *o, struct eval_filter *f)
{
	const char *text = opt_str(o, "family");
	if (!text)
		return 0;
	f->but_family = !strncmp(text, "no-", 3);
	f->family = predict_family_find(text + (f->but_family ? 3 : 0));
	if (f->family)
		return 0;
	return complain(EXIT_USAGE,
		"--family=%s: there is no such family. See api/family.tbl or the column `family` of "
		"weir export -f dataset have them",
		text);
}

static int take_filter(const struct options *o, struct eval_filter *f)
{
	*f = (struct eval_filter){ .tier = PREDICT_TIERS, .below_ns = INFINITY };
	f->known_cost = opt_flag(o, "known") ? 2 : 0;
	int code = take_ns(o, "from", &f->from_ns);
	if (!code)
		code = take_ns(o, "below", &f->below_ns);
	return code ? code : take_family(o, f);
}

static int run_all(struct job *job)
{
	int code = 0;
	if (job->print_json) {
		json_begin_document(&job->json, stdout);
		json_u64(&job->json, "launches", job->data.samples.n);
		json_begin_object(&job->json, "splits");
	}
	for (int s = 0; s < EVAL_SPLITS && !code; s++)
		if (wanted(job->options, (enum eval_split)s))
			code = run_split(job, (enum eval_split)s);
	if (job->print_json) {
		json_end_object(&job->json);
		json_end_object(&job->json);
		putchar('\n');
	}
	return code;
}

int cmd_eval(const struct options *o)
{
	struct job job = { .options = o, .print_json = opt_flag(o, "json") };
	void *bytes = NULL;
	struct error err;
	if (opt_argc(o) < 2)
		return complain(EXIT_USAGE,
			"name a model and traces or tables of launches: weir eval MODEL FILE...");
	int code = check_splits(o);
	if (!code)
		code = take_filter(o, &job.filter);
	if (!code)
		code = model_load(opt_argv(o)[0], &job.model, &bytes);
	if (!code)
		code = launches_load(o, 1, &job.data);
	if (!code)
		code = launches_device(o, &job.data, &job.device);
	if (!code && model_fits_device(&job.model, &job.device, &err))
		code = complain(EXIT_USAGE, "%s: %s", opt_argv(o)[0], err.text);
	if (!code)
		code = run_all(&job);
	dataset_fini(&job.data);
	free(bytes);
	return code;
}
