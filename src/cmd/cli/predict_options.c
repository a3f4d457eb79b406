/* Prepares the model and the history for the injected library. */
#include "cmd/cli/predict_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/shared_library.h"
#include "cmd/cli/input.h"
#include "event/predicted.h"
#include "model/samples.h"
#include "weir_options.h"

/* A file as the program finds it, wherever it goes; it need not be there. */
static int absolute(const char *path, char *ret_full, size_t size)
{
	char here[PATH_MAX] = "";
	if (strchr(path, ','))
		return complain(
			EXIT_USAGE, "%s can't be used: its name must not hold a comma", path);
	if (*path != '/' && !getcwd(here, sizeof here))
		return complain(EXIT_ENVIRONMENT,
			"the whole path of %s is unknown: %s. Give a path that begins with a slash",
			path, strerror(errno));
	if (snprintf(ret_full, size, "%s%s%s", here, *path == '/' ? "" : "/", path) >= (int)size)
		return complain(EXIT_USAGE, "the name %s is too long", path);
	return 0;
}

/* The UUID of all devices that the process saw, as the hook has it. */
static void uuid_of(const struct meta *m, uint32_t process, uint8_t ret_uuid[16])
{
	struct predict_uuids all = { 0 };
	for (size_t i = 0; i < m->devices.n; i++)
		if (m->devices.v[i].process == process)
			predict_uuid_add(&all, m->devices.v[i].uuid);
	memcpy(ret_uuid, all.all, sizeof all.all);
}

static int device_of(const struct meta *m, const char *path, struct predict_device *ret_d)
{
	bool known;
	if (!m->devices.n)
		return complain(EXIT_USAGE,
			"%s does not name its devices. Record it again, with --gpu", path);
	const struct meta_device *d = &m->devices.v[0];
	const unsigned cc = (d->capability >> 16) * 10 + (d->capability & 0xffff);
	if (predict_device_any(m->names.v[d->name].text, cc, d->multiprocessors, ret_d, &known))
		return complain(EXIT_USAGE, "the device of %s is not known: %s", path,
			m->names.v[d->name].text);
	uuid_of(m, d->process, ret_d->uuid);
	return 0;
}

static int write_tables(struct predict_options *f, const void *memory, size_t bytes)
{
	const char *directory = getenv("TMPDIR");
	const char *const place = directory && *directory ? directory : "/tmp";
	const int e = scratch_begin(&f->made, &place, 1, "history");
	if (e)
		return complain(
			EXIT_ENVIRONMENT, "nothing can be written in %s: %s", place, strerror(-e));
	const int fd = open(f->made.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const bool whole = fd >= 0 && write(fd, memory, bytes) == (ssize_t)bytes;
	const int why = errno;
	if (fd >= 0)
		close(fd);
	if (whole)
		return 0;
	return complain(EXIT_ENVIRONMENT, "%s can't be written: %s", f->made.path, strerror(why));
}

static int learn(
	struct predict_options *f, const struct launch_samples *all, const struct predict_device *d)
{
	const struct predict_sizes sizes = { PREDICTED_LAUNCHES, PREDICTED_KERNELS };
	const size_t bytes = predict_bytes(&sizes);
	struct predict p;
	void *memory = xcheck(aligned_alloc(64, (bytes + 63) / 64 * 64));
	if (predict_init(&p, memory, bytes, &sizes, d)) {
		free(memory);
		return complain(EXIT_ENVIRONMENT, "there is no memory for what was learnt");
	}
	for (size_t i = 0; i < all->v.n; i++) {
		struct predict_sample s = all->v.v[i].p;
		s.launch.has_flops = s.launch.has_bytes = false; /* no launch tells them */
		predict_learn(&p, &s);
	}
	predict_seal(&p);
	const int code = write_tables(f, memory, bytes);
	free(memory);
	return code;
}

static int learn_from(struct predict_options *f, const struct trace *t, const char *path)
{
	struct meta m;
	struct launch_samples all;
	struct predict_device d;
	struct error err;
	if (meta_load(t, &m, &err))
		return complain(EXIT_ENVIRONMENT, "%s", err.text);
	int code = device_of(&m, path, &d);
	if (!code && launch_samples_load(t, &m, &all, &err)) {
		code = complain(EXIT_ENVIRONMENT, "%s", err.text);
	} else if (!code) {
		code = all.v.n ? learn(f, &all, &d)
			       : complain(EXIT_USAGE,
					 "%s has no kernel with a device time: record it "
					 "again, with --gpu",
					 path);
		launch_samples_fini(&all);
	}
	meta_fini(&m);
	return code;
}

static int from_trace(struct predict_options *f, const char *path)
{
	struct trace *t;
	struct error err;
	if (trace_open(path, &t, &err))
		return complain(EXIT_USAGE, "%s", err.text);
	const int code = learn_from(f, t, path);
	trace_close(t);
	return code;
}

static int add(struct predict_options *f, const char *key, const char *path)
{
	char full[PATH_MAX];
	const size_t at = strlen(f->config);
	const int code = absolute(path, full, sizeof full);
	if (!code)
		snprintf(f->config + at, sizeof f->config - at, "%s=%s,", key, full);
	return code;
}

/* Which of the installed ones it is, only the program will see. */
static void add_models(struct predict_options *f)
{
	char path[PATH_MAX];
	const size_t at = strlen(f->config);
	if (!library_path("models", path, sizeof path) && !strchr(path, ','))
		snprintf(f->config + at, sizeof f->config - at, WEIR_OPTION_models "=%s,", path);
}

/* NULL: an installed one. */
static int add_model(struct predict_options *f, const char *model)
{
	if (!model)
		add_models(f);
	if (!model || !strcmp(model, "none"))
		return 0;
	if (access(model, R_OK))
		return complain(
			EXIT_USAGE, "the model %s can't be read: %s", model, strerror(errno));
	return add(f, WEIR_OPTION_model, model);
}

int predict_options_prepare(struct predict_options *f, const struct options *o)
{
	const char *model = opt_str(o, "predict"), *history = opt_str(o, "history");
	int code;
	*f = (struct predict_options){ .wanted = model || history };
	if (!f->wanted)
		return 0;
	memcpy(f->config, WEIR_OPTION_predict ",", sizeof WEIR_OPTION_predict ",");
	code = add_model(f, model && *model ? model : NULL);
	if (!code && history && input_is_recording(history)) {
		code = from_trace(f, history);
		return code ? code : add(f, WEIR_OPTION_warm, f->made.path);
	}
	return !code && history ? add(f, WEIR_OPTION_history, history) : code;
}

void predict_options_done(struct predict_options *f)
{
	scratch_remove(&f->made);
}
