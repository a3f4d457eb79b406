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

/* made: otherwise it was not judged without siblings */
static void put_row(struct table *t, const char *name, const struct train_score *siblings,
	const struct train_score *alone, bool made)
{
	table_cell(t, "%s", name);
	table_cell(t, "%.1f/%.1f", 100 * (double)siblings->median, 100 * (double)siblings->p90);
	table_cell_if(t, made, "%.1f/%.1f", 100 * (double)alone->median, 100 * (double)alone->p90);
}

static void print_report(const struct train_report *r, const char *path, bool made)
{
	struct number a, b, c;
	printf("%s launches of %s kernels, %s without siblings\n\n", number_count(&a, r->launches),
		number_count(&b, r->kernels), number_count(&c, r->groups));
	struct table table = table_of(
		"<relative error on unseen kernels, %: median / p90|>with siblings|>without siblings");
	put_row(&table, "the model", &r->siblings.forest, &r->alone.forest, made);
	put_row(&table, "usual ratio to the bound", &r->siblings.ratio, &r->alone.ratio, made);
	table_print(&table, stdout);
	if (made)
		printf("\n%s is written\n", path);
}

static void json_score(struct json *j, const char *key, const struct train_score *s, bool there)
{
	if (!there) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	json_put_real(j, "median_ape", (double)s->median);
	json_put_real(j, "p90_ape", (double)s->p90);
	json_end_object(j);
}

static void json_scores(struct json *j, const char *key, const struct train_scores *s, bool there)
{
	json_begin_object(j, key);
	json_score(j, "forest", &s->forest, there);
	json_score(j, "ratio", &s->ratio, there);
	json_end_object(j);
}

static void print_json(const struct train_report *r, const char *path, bool made)
{
	struct json j;
	json_begin_document(&j, stdout);
	json_u64(&j, "launches", r->launches);
	json_u64(&j, "kernels", r->kernels);
	json_u64(&j, "groups", r->groups);
	json_scores(&j, "siblings_seen", &r->siblings, true);
	json_scores(&j, "held_out", &r->alone, made);
	json_str_or_null(&j, "file", made ? path : NULL);
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
	struct train_options how = { .created = (uint64_t)time(NULL) };
	struct dataset d = { 0 };
	struct predict_device device;
	int code = opt_argc(o) ? launches_load(o, 0, &d)
			       : complain(EXIT_USAGE,
					 "name traces or tables of launches: weir train FILE...");
	if (!code)
		code = launches_device(o, &d, &device);
	if (!code)
		code = train(o, &how, &d, &device);
	dataset_fini(&d);
	return code;
}
