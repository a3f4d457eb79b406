/*
 * weir predict learns the launches of the given files and predicts the time of one launch, with the
 * reason. Without a launch it lists all kernels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/table.h"
#include "base/text.h"
#include "cmd/cli/command.h"
#include "cmd/cli/launches.h"
#include "cmd/cli/values.h"
#include "predict/predictor.h"

#define NAME_CUT 110 /* characters of a kernel's name */

static const struct predict_sizes sizes = { .launches = 1 << 16, .kernels = 1 << 12 };

struct job {
	const struct options *options;
	struct dataset data;
	struct predict_device device;
	struct predict p;
	void *memory, *model_bytes;
	struct predict_model model;
	struct predict_kernel kernel;
	struct predict_launch launch;
	bool kernel_known; /* it is in the files */
};

static int bad_value(const char *name, const char *text, const char *what)
{
	return complain(EXIT_USAGE, "--%s=%s: %s", name, text, what);
}

/* "64", "64,2", "64,2,1"; what is not given is 1. */
static int take_dims(const struct options *o, const char *name, uint32_t dims[static 3])
{
	const char *text = opt_str(o, name);
	if (!text)
		return complain(EXIT_USAGE, "--%s is missing: X, X,Y or X,Y,Z", name);
	char *at = (char *)text;
	for (int i = 0; i < 3; i++) {
		dims[i] = 1;
		if (i && !*at)
			continue;
		at += i > 0;
		const char *start = at;
		const unsigned long long value = strtoull(at, &at, 10);
		if (at == start || *start < '0' || *start > '9' || !value || value > UINT32_MAX ||
			(*at && *at != ','))
			return bad_value(name, text, "X, X,Y or X,Y,Z with numbers from 1");
		dims[i] = (uint32_t)value;
	}
	return *at ? bad_value(name, text, "there are three dimensions at most") : 0;
}

static int take_u32(const struct options *o, const char *name, uint32_t *io_value, bool *ret_has)
{
	uint64_t value = *io_value;
	const int code = take_size(o, name, 0, UINT32_MAX, &value);
	*io_value = (uint32_t)value;
	if (ret_has && opt_str(o, name))
		*ret_has = true;
	return code;
}

static int take_cost(const struct options *o, const char *name, double *ret_value, bool *ret_has)
{
	const char *text = opt_str(o, name);
	char *end;
	if (!text)
		return 0;
	*ret_value = strtod(text, &end);
	if (*end || end == text || !isfinite(*ret_value) || *ret_value <= 0)
		return bad_value(name, text, "not a number above 0");
	*ret_has = true;
	return 0;
}

static int take_args(const struct options *o, struct predict_launch *l)
{
	for (int i = 0; opt_nth(o, "arg", i); i++) {
		const char *text = opt_nth(o, "arg", i);
		char *end;
		if (i == PREDICT_ARGS)
			return complain(
				EXIT_USAGE, "--arg: at most %d arguments are used", PREDICT_ARGS);
		l->arg[l->args++] = strtoull(text, &end, 0);
		if (*end || end == text || *text == '-')
			return bad_value("arg", text, "not a whole number from 0");
	}
	return 0;
}

static int take_unit(const struct options *o, struct predict_launch *l)
{
	const char *text = opt_str(o, "unit");
	for (int unit = 0; unit < GPU_UNITS; unit++)
		if (!strcmp(text, gpu_unit_word((enum gpu_unit)unit))) {
			l->unit = (enum gpu_unit)unit;
			return 0;
		}
	return bad_value("unit", text, "there are fp64, fp32, tf32, fp16 and fp8");
}

/* One that the files do not have is answered for from what they know of its siblings; another is
 * a slip, to which the answer would be a time all the same.  Without files any kernel is new. */
static int take_new_kernel(struct job *job, const char *name)
{
	struct text_short n;
	predict_kernel_name(&job->kernel, name, 0);
	for (size_t i = 0; i < job->data.samples.n; i++)
		if (job->data.samples.v[i].launch.kernel->group == job->kernel.group)
			return 0;
	if (!job->data.samples.n)
		return 0;
	return complain(EXIT_USAGE,
		"--kernel=%s: no kernel of the files has that in its name, and none differs from it "
		"in template arguments alone. Without --kernel they are listed",
		text_short(&n, name, NAME_CUT));
}

/* The kernel of the files that the name means: the same name, else the only one that contains it.
 */
static int find_kernel(struct job *job, const char *name)
{
	const struct predict_sample *found = NULL;
	struct text_short n[3];
	bool exact = false;
	for (size_t i = 0; i < job->data.samples.n && !exact; i++) {
		const struct predict_sample *s = &job->data.samples.v[i];
		const char *own = job->data.names.v[s->name];
		exact = !strcmp(own, name);
		if (!exact && !strstr(own, name))
			continue;
		if (!exact && found && found->name != s->name)
			return complain(EXIT_USAGE,
				"--kernel=%s: several kernels of the files have that in their name: "
				"'%s' and '%s'",
				text_short(&n[0], name, NAME_CUT),
				text_short(&n[1], job->data.names.v[found->name], NAME_CUT),
				text_short(&n[2], own, NAME_CUT));
		found = s;
	}
	job->kernel_known = found;
	if (!found)
		return take_new_kernel(job, name);
	job->kernel = *found->launch.kernel;
	return 0;
}

static int take_launch(struct job *job)
{
	const struct options *o = job->options;
	struct predict_launch *l = &job->launch;
	struct predict_kernel *k = &job->kernel;
	int code = find_kernel(job, opt_str(o, "kernel"));
	l->kernel = k;
	if (!code)
		code = take_dims(o, "grid", l->grid);
	if (!code)
		code = take_dims(o, "block", l->block);
	if (!code)
		code = take_u32(o, "regs", &k->regs, &k->has_regs);
	if (!code)
		code = take_u32(o, "smem", &k->smem_static_bytes, NULL);
	if (!code)
		code = take_u32(o, "dynamic", &l->smem_dynamic_bytes, NULL);
	if (!code)
		code = take_cost(o, "bytes", &l->bytes, &l->has_bytes);
	if (!code)
		code = take_cost(o, "flops", &l->flops, &l->has_flops);
	if (!code)
		code = take_unit(o, l);
	return code ? code : take_args(o, l);
}

static const char *tier_sentence(enum predict_tier tier)
{
	static const char *const sentences[PREDICT_TIERS] = {
		[PREDICT_UNKNOWN] = "nothing is known",
		[PREDICT_BOUND] =
			"the device's ceilings, times the usual ratio of such kernels to them",
		[PREDICT_COLD] = "a model that was trained on other kernels",
		[PREDICT_NEAR] = "the nearest of the few shapes in which the kernel ran",
		[PREDICT_SHAPE] = "the kernel's own model, from the shapes in which it ran",
		[PREDICT_ONCE] = "this very launch, which ran once",
		[PREDICT_EXACT] = "this very launch, which ran before",
	};
	return sentences[tier];
}

/* "10 to 100 us" */
static const char *magnitude(struct number *n, float ns)
{
	const double low = pow(10, floor(log10((double)ns)));
	struct number a, b;
	snprintf(n->text, sizeof n->text, "%.15s to %.15s", number_ns(&a, (uint64_t)low),
		number_ns(&b, (uint64_t)(10 * low)));
	return n->text;
}

static const char *bound_words(const struct predict_question *q)
{
	static const char *const words[] = { "as if each thread moved 8 bytes; bytes and FLOPs are "
					     "not known",
		"by the bytes or FLOPs that are known", "by bytes and FLOPs" };
	if ((double)q->bound_ns <= q->device->floor_ns)
		return "no kernel is shorter";
	return words[launch_known_cost(q->launch)];
}

static void print_time(const struct job *job, const struct predict_answer *a)
{
	struct number n, m;
	if (a->class_only)
		printf("  order of magnitude %s; nothing finer is known\n",
			magnitude(&n, a->t50_ns));
	else
		printf("  median %s, p90 %s (%.0f %% of similar predictions were within ±20 %%)\n",
			number_ns(&n, (uint64_t)a->t50_ns), number_ns(&m, (uint64_t)a->t90_ns),
			100 * (double)a->confidence);
	if (!job->kernel_known && job->data.samples.n)
		printf("  kernel     not in the files; siblings of it are\n");
	printf("  predictor  %s: %s\n", predict_tier_word(a->tier), tier_sentence(a->tier));
	const struct kernel_slot *slot =
		shape_slot(&job->p, &job->kernel, launch_known_cost(&job->launch));
	const unsigned seen = history_seen(&job->p, job->launch.key);
	if (slot && slot->head.shapes)
		printf("  known      %u shape%s of the kernel, model: %s; this launch %u time%s\n",
			slot->head.shapes, slot->head.shapes == 1 ? "" : "s",
			fit_kind_word((enum fit_kind)slot->head.fit.kind), seen,
			seen == 1 ? "" : "s");
}

static void print_fit(const struct predict_question *q, const struct predict_answer *a)
{
	struct number n;
	printf("  bound      %s, %s\n", number_ns(&n, (uint64_t)q->bound_ns), bound_words(q));
	printf("  fit        %.4g waves of %u blocks an SM; occupancy %.0f %%, SMs with blocks %.0f "
	       "%%, lanes with a thread %.0f %%\n",
		(double)a->waves, a->blocks_per_sm, 100 * (double)a->occupancy,
		100 * (double)a->sm_fill, 100 * (double)a->lane_efficiency);
}

static void print_features(const float features[static FEATURES])
{
	struct table t = table_of("<feature|>value|<meaning");
	for (int i = 0; i < FEATURES; i++) {
		table_cell(&t, "%s", feature_name((enum feature)i));
		table_cell(&t, "%.4g", (double)features[i]);
		table_cell(&t, "%s", feature_what((enum feature)i));
	}
	putchar('\n');
	table_end(&t, stdout, "  ", "  ", 0);
}

static void json_answer(struct json *j, const struct predict_answer *a)
{
	json_bool(j, "launches", a->launches);
	json_str(j, "predictor", predict_tier_word(a->tier));
	json_bool(j, "class_only", a->class_only);
	json_put_real(j, "t50_ns", a->tier ? (double)a->t50_ns : NAN);
	json_put_real(j, "t90_ns", a->tier ? (double)a->t90_ns : NAN);
	json_put_real(j, "confidence", a->tier ? (double)a->confidence : NAN);
	json_u64(j, "blocks_per_sm", a->blocks_per_sm);
	json_put_real(j, "occupancy", (double)a->occupancy);
	json_put_real(j, "waves", (double)a->waves);
	json_put_real(j, "sm_fill", (double)a->sm_fill);
	json_put_real(j, "lane_efficiency", (double)a->lane_efficiency);
}

static void print_json(const struct job *job, const struct predict_question *q,
	const struct predict_answer *a, const float features[static FEATURES])
{
	struct json j;
	json_begin_document(&j, stdout);
	json_bool(&j, "kernel_known", job->kernel_known);
	json_str(&j, "family", predict_family_word(job->kernel.family));
	json_answer(&j, a);
	json_u64(&j, "seen", history_seen(&job->p, job->launch.key));
	if (a->launches) {
		json_put_real(&j, "bound_ns", (double)q->bound_ns);
		json_begin_object(&j, "features");
		for (int i = 0; i < FEATURES; i++)
			json_put_real(&j, feature_name((enum feature)i), (double)features[i]);
		json_end_object(&j);
	}
	json_end_document(&j);
}

static int answer_one(struct job *job)
{
	struct predict_question q = { .launch = &job->launch, .device = &job->device };
	struct predict_answer a;
	float features[FEATURES];
	q.key = job->launch.key = predict_key(&job->launch);
	predict_ask(&job->p, &job->launch, &a);
	if (question_shape(&q))
		feature_fill(&q, 0, features);
	if (opt_flag(job->options, "json")) {
		print_json(job, &q, &a, features);
	} else if (a.launches) {
		print_time(job, &a);
		print_fit(&q, &a);
		if (opt_flag(job->options, "features"))
			print_features(features);
	} else {
		printf("  the device refuses the launch. `weir occupancy` says why\n");
	}
	return a.launches ? EXIT_YES : EXIT_NO;
}

/* The facts about one kernel of the files. */
struct kernel_row {
	uint32_t name;
	const struct predict_kernel *kernel; /* as it was compiled when first seen */
	size_t launches;
	double total_ns;
	double off; /* sum of |log2 error| when predicted before it was learnt */
	size_t predicted;
};

struct kernel_rows {
	ARRAY(struct kernel_row) v;
	struct map by_id;
};

static struct kernel_row *row_of(struct kernel_rows *rows, const struct predict_sample *s)
{
	uint32_t *at = map_get(&rows->by_id, MAP_KEY(s->launch.kernel->id));
	if (*at != MAP_NONE)
		return &rows->v.v[*at];
	struct kernel_row *r = array_push(&rows->v);
	*r = (struct kernel_row){ .name = s->name, .kernel = s->launch.kernel };
	*at = (uint32_t)rows->v.n - 1;
	return r;
}

static void learn_all(struct job *job, struct kernel_rows *rows)
{
	array_each(const struct predict_sample, s, job->data.samples) {
		struct kernel_row *r = row_of(rows, s);
		struct predict_answer a;
		predict_ask(&job->p, &s->launch, &a);
		if (!predict_learn(&job->p, s))
			continue;
		r->launches++;
		r->total_ns += s->measured_ns;
		if (a.tier && !s->launch.contended) {
			r->off += fabs(log2((double)a.t50_ns / s->measured_ns));
			r->predicted++;
		}
	}
}

ORDERING(by_total, struct kernel_row, ORDER(b->total_ns, a->total_ns))

static uint32_t shapes_of(
	const struct job *job, const struct predict_kernel *k, const char **ret_model)
{
	const struct kernel_slot *most = NULL;
	for (unsigned known_cost = 0; known_cost < KNOWN_COSTS; known_cost++) {
		const struct kernel_slot *slot = shape_slot(&job->p, k, known_cost);
		if (slot && (!most || slot->head.shapes > most->head.shapes))
			most = slot;
	}
	*ret_model = fit_kind_word(most ? (enum fit_kind)most->head.fit.kind : FIT_NONE);
	return most ? most->head.shapes : 0;
}

static void print_kernels(const struct job *job, const struct kernel_rows *rows)
{
	struct table t = table_of(">time|>launches|>shapes|<model|>mean error|<kernel");
	array_each(const struct kernel_row, r, rows->v) {
		const char *model;
		const uint32_t shapes = shapes_of(job, r->kernel, &model);
		table_ns(&t, (uint64_t)r->total_ns);
		table_count(&t, r->launches);
		table_cell(&t, shapes < SHAPES ? "%u" : "%u+", shapes);
		table_cell(&t, "%s", model);
		table_cell_if(&t, r->predicted, "%.1f %%",
			100 * (exp2(r->off / (double)r->predicted) - 1));
		table_cell_name(&t, text_kernel(job->data.names.v[r->name]), NAME_CUT);
	}
	table_print(&t, stdout);
}

static void json_kernels(const struct job *job, const struct kernel_rows *rows)
{
	struct json j;
	json_begin_document(&j, stdout);
	json_begin_array(&j, "kernels");
	array_each(const struct kernel_row, r, rows->v) {
		const char *model;
		const uint32_t shapes = shapes_of(job, r->kernel, &model);
		json_begin_object(&j, NULL);
		json_str(&j, "kernel", job->data.names.v[r->name]);
		json_u64(&j, "launches", r->launches);
		json_put_real(&j, "total_ns", r->total_ns);
		json_u64(&j, "shapes", shapes);
		json_str(&j, "model", model);
		json_put_real(
			&j, "mean_log2_error", r->predicted ? r->off / (double)r->predicted : NAN);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_document(&j);
}

static int answer_all(const struct job *job, struct kernel_rows *rows)
{
	SORT(rows->v, by_total);
	if (opt_flag(job->options, "json"))
		json_kernels(job, rows);
	else
		print_kernels(job, rows);
	return EXIT_YES;
}

static int prepare(struct job *job)
{
	const char *path = opt_str(job->options, "model");
	const size_t bytes = predict_bytes(&sizes);
	struct error err;
	int code = launches_load(job->options, 0, &job->data);
	if (!code)
		code = launches_device(job->options, &job->data, &job->device);
	const bool none = path && !strcmp(path, "none");
	const bool given = path && !none;
	char installed[PATH_MAX];
	bool model = given;
	if (!code && !path)
		model = model_default(&job->device, &job->model, &job->model_bytes, installed);
	if (!code && given)
		code = model_load(path, &job->model, &job->model_bytes);
	if (!code && given && model_fits_device(&job->model, &job->device, &err))
		code = complain(EXIT_USAGE, "%s: %s", path, err.text);
	if (code)
		return code;
	job->memory = xcheck(aligned_alloc(64, bytes));
	if (predict_init(&job->p, job->memory, bytes, &sizes, &job->device))
		return complain(EXIT_ENVIRONMENT, "there is not enough memory");
	predict_swap(&job->p, model ? &job->model : NULL);
	return 0;
}

int cmd_predict(const struct options *o)
{
	struct job job = { .options = o };
	struct kernel_rows rows = { 0 };
	const bool one = opt_str(o, "kernel");
	if (!one && !opt_argc(o))
		return complain(EXIT_USAGE,
			"name traces or tables of launches, or one launch: --kernel NAME --grid X "
			"--block X --device NAME");
	int code = prepare(&job);
	if (!code && one)
		code = take_launch(&job);
	if (!code) {
		learn_all(&job, &rows);
		code = one ? answer_one(&job) : answer_all(&job, &rows);
	}
	array_free(&rows.v);
	map_fini(&rows.by_id);
	free(job.memory);
	free(job.model_bytes);
	dataset_fini(&job.data);
	return code;
}
