/*
 * weir train makes a model from recorded launches. train/train.c does the work. This file has the
 * input, the progress bar and the messages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/table.h"
#include "cmd/cli/command.h"
#include "cmd/cli/launches.h"
#include "cmd/cli/output.h"
#include "cmd/cli/values.h"
#include "train/train.h"

static int put_model(void *context, FILE *out)
{
	const struct model_file *f = context;
	return fwrite(f, 1, f->file_bytes, out) == f->file_bytes ? 0 : -errno;
}

static int write_model(const char *path, struct model_file *f)
{
	const int e = output_write(path, put_model, f);
	return e ? complain(EXIT_ENVIRONMENT, "%s can't be written: %s", path, strerror(-e)) : 0;
}

static int take_options(const struct options *o, struct train_options *to)
{
	const char *kind = opt_str(o, "kind");
	uint64_t seed;
	if (!opt_argc(o))
		return complain(
			EXIT_USAGE, "name traces or tables of launches: weir train FILE...");
	if (!size_parse(opt_str(o, "seed"), &seed))
		return complain(EXIT_USAGE, "--seed=%s is not a whole number", opt_str(o, "seed"));
	to->forest = strcmp(kind, "network") != 0;
	to->network = strcmp(kind, "forest") != 0;
	if (strcmp(kind, "auto") && to->forest && to->network)
		return complain(EXIT_USAGE, "--kind=%s: there are auto, forest and network", kind);
	to->seed = seed;
	to->created = (uint64_t)time(NULL);
	return 0;
}

static const char *chosen_word(enum model_kind kind)
{
	return kind == MODEL_FOREST ? "forest" : "network";
}

struct kind_row {
	const char *name;
	const struct train_score *siblings, *alone;
};

static void cell_score(struct table *t, const struct train_score *s)
{
	table_cell_if(t, s->there, "%.1f/%.1f", 100 * (double)s->median, 100 * (double)s->p90);
}

static void print_report(const struct train_report *r, const char *path, bool made)
{
	const struct kind_row rows[] = {
		{ "forest", &r->siblings.forest, &r->alone.forest },
		{ "network", &r->siblings.network, &r->alone.network },
		{ "usual ratio to the bound", &r->siblings.ratio, &r->alone.ratio },
	};
	struct number a, b, c;
	printf("%s launches of %s kernels, %s without siblings\n\n", number_count(&a, r->launches),
		number_count(&b, r->kernels), number_count(&c, r->groups));
	struct table table = table_of(
		"<relative error on unseen kernels, %: median / p90|>with siblings|>without siblings");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (!rows[i].siblings->there)
			continue;
		table_cell(&table, "%s", rows[i].name);
		cell_score(&table, rows[i].siblings);
		cell_score(&table, rows[i].alone);
	}
	table_print(&table, stdout);
	if (r->without_xgboost)
		printf("\nno forest: XGBoost's library is not installed (Debian: libxgboost0)\n");
	if (made)
		printf("\n%s: predictions are those of the %s\n", path, chosen_word(r->chosen));
}

static void json_score(struct json *j, const char *key, const struct train_score *s)
{
	if (!s->there) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	json_put_real(j, "median_ape", (double)s->median);
	json_put_real(j, "p90_ape", (double)s->p90);
	json_end_object(j);
}

static void json_scores(struct json *j, const char *key, const struct train_scores *s)
{
	json_begin_object(j, key);
	json_score(j, "forest", &s->forest);
	json_score(j, "network", &s->network);
	json_score(j, "ratio", &s->ratio);
	json_end_object(j);
}

static void print_json(const struct train_report *r, const char *path, bool made)
{
	struct json j;
	json_begin_document(&j, stdout);
	json_u64(&j, "launches", r->launches);
	json_u64(&j, "kernels", r->kernels);
	json_u64(&j, "groups", r->groups);
	json_scores(&j, "siblings_seen", &r->siblings);
	json_scores(&j, "held_out", &r->alone);
	json_bool(&j, "xgboost", !r->without_xgboost);
	if (made) {
		json_str(&j, "kind", chosen_word(r->chosen));
		json_str(&j, "file", path);
	} else {
		json_put_null(&j, "kind");
		json_put_null(&j, "file");
	}
	json_end_document(&j);
}

static int train(const struct options *o, struct train_options *how, const struct dataset *d,
	const struct predict_device *device)
{
	const char *path = opt_str(o, "output");
	struct train_report report;
	struct model_file *f = NULL;
	struct progress bar;
	struct error err;
	how->device = opt_str(o, "device") ? opt_str(o, "device") : d->device;
	how->progress = (struct fit_progress){ .show = progress_show, .data = &bar };
	progress_init(&bar, "training");
	const int ret = train_model(device, d->samples.v, d->samples.n, how, &f, &report, &err);
	progress_fini(&bar);
	int code = 0;
	if (ret)
		code = complain(ret == -EDOM      ? EXIT_NO
				: ret == -ENODATA ? EXIT_USAGE
						  : EXIT_ENVIRONMENT,
			"%s", err.text);
	else
		code = write_model(path, f);
	if (!ret || ret == -EDOM) {
		if (opt_flag(o, "json"))
			print_json(&report, path, !code);
		else
			print_report(&report, path, !code);
	}
	free(f);
	return code;
}

int cmd_train(const struct options *o)
{
	struct train_options how = { 0 };
	struct dataset d = { 0 };
	struct predict_device device;
	int code = take_options(o, &how);
	if (!code)
		code = launches_load(o, 0, &d);
	if (!code)
		code = launches_device(o, &d, &device);
	if (!code)
		code = train(o, &how, &d, &device);
	dataset_fini(&d);
	return code;
}
