/* Reading launches and models: see launches.h. */
#include "cmd/cli/launches.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/bounded.h"
#include "base/shared_library.h"
#include "cmd/cli/child.h"
#include "cmd/cli/input.h"
#include "model/samples.h"
#include "trace/trace.h"

static int unreadable(const char *path)
{
	return complain(EXIT_USAGE, "%s can't be read: %s", path, strerror(errno));
}

static int read_whole(FILE *in, const char *path, size_t n, void **ret_bytes, size_t *ret_n)
{
	const size_t room = (n / MODEL_ALIGN + 1) * MODEL_ALIGN;
	char *bytes = xcheck(aligned_alloc(MODEL_ALIGN, room));
	if (fread(bytes, 1, n, in) != n) {
		free(bytes);
		return complain(EXIT_ENVIRONMENT, "%s can't be read whole", path);
	}
	bytes[n] = 0;
	*ret_bytes = bytes;
	*ret_n = n;
	return 0;
}

/* A file's bytes, aligned as a model must be, and terminated by a zero that is not counted; the
 * caller frees them. */
static int file_load(const char *path, void **ret_bytes, size_t *ret_n)
{
	FILE *in = fopen(path, "rb");
	struct stat st;
	int code;
	if (!in)
		return unreadable(path);
	if (fstat(fileno(in), &st))
		code = unreadable(path);
	else if (!S_ISREG(st.st_mode) || !st.st_size)
		code = complain(EXIT_USAGE, "%s is %s", path,
			S_ISDIR(st.st_mode)   ? "a directory, not a file"
			: S_ISREG(st.st_mode) ? "empty"
					      : "not a regular file");
	else
		code = read_whole(in, path, (size_t)st.st_size, ret_bytes, ret_n);
	fclose(in);
	return code;
}

int model_load(const char *path, struct predict_model *ret_m, void **ret_bytes)
{
	size_t n;
	struct error err;
	const int code = file_load(path, ret_bytes, &n);
	if (code)
		return code;
	if (!model_open(*ret_bytes, n, ret_m, &err))
		return 0;
	free(*ret_bytes);
	*ret_bytes = NULL;
	return complain(EXIT_USAGE, "%s: %s", path, err.text);
}

static int is_model(const struct dirent *e)
{
	static const char suffix[] = ".weir-model";
	const size_t n = strlen(e->d_name), s = sizeof suffix - 1;
	return n > s && !strcmp(e->d_name + n - s, suffix);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool load_if_it_fits(const char *path, const struct predict_device *d,
	struct predict_model *ret_m, void **ret_bytes)
{
	struct error err;
	if (model_load(path, ret_m, ret_bytes))
		return false;
	if (!model_fits_device(ret_m, d, &err))
		return true;
	free(*ret_bytes);
	*ret_bytes = NULL;
	return false;
}

/* As the hook chooses (hook/online/history_file.c): the first by name. */
bool model_default(const struct predict_device *d, struct predict_model *ret_m, void **ret_bytes,
	char ret_path[static PATH_MAX])
{
	char directory[PATH_MAX];
	struct dirent **entries;
	bool found = false;
	const int n = library_path("models", directory, sizeof directory)
			      ? -1
			      : scandir(directory, &entries, is_model, by_bytes);
	for (int i = 0; i < n; i++) {
		if (!found && snprintf(ret_path, PATH_MAX, "%s/%s", directory, entries[i]->d_name) <
				      PATH_MAX)
			found = load_if_it_fits(ret_path, d, ret_m, ret_bytes);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return found;
}

static int other_device(const char *path)
{
	return complain(EXIT_USAGE,
		"%s ran on another device than the launches before: give files of one kind of "
		"device",
		path);
}

/* Takes the trace's facts of the device, if it has them. */
static int take_device(
	struct dataset *d, const struct meta *m, const struct meta_device *on, const char *path)
{
	const unsigned cc = (on->capability >> 16) * 10 + (on->capability & 0xffff);
	const char *name = on->name == META_NONE ? "" : m->names.v[on->name].text;
	if ((d->cc && cc && cc != d->cc) ||
		(d->sms && on->multiprocessors && on->multiprocessors != d->sms) ||
		(d->device[0] && name[0] && strcmp(d->device, name)))
		return other_device(path);
	d->cc = cc ? cc : d->cc;
	d->sms = on->multiprocessors ? on->multiprocessors : d->sms;
	if (name[0] && strlen(name) < sizeof d->device)
		memcpy(d->device, name, strlen(name) + 1);
	return 0;
}

static int take_sample(struct dataset *d, const struct launch_samples *all, const struct sample *s,
	uint32_t app, const struct meta *m, const char *path)
{
	const struct sample_kernel *k = all->kernels.v[s->p.name];
	const int code = s->on ? take_device(d, m, s->on, path) : 0;
	if (code)
		return code;
	struct predict_sample *to = array_push(&d->samples);
	*to = s->p;
	to->launch.kernel = dataset_kernel(d, &k->k);
	to->name = dataset_name(d, k->name);
	to->app = app;
	return 0;
}

static int take_samples(
	struct dataset *d, const struct trace *t, const struct meta *m, const char *path)
{
	struct launch_samples samples;
	struct error err;
	int code = 0;
	if (launch_samples_load(t, m, &samples, &err))
		return complain(EXIT_USAGE, "%s: %s", path, err.text);
	for (size_t i = 0; i < samples.v.n && !code; i++) {
		const struct sample *s = &samples.v.v[i];
		const char *program = m->processes.v[s->p.app].executable;
		const uint32_t app = dataset_app(d, program);
		code = take_sample(d, &samples, s, app, m, path);
	}
	launch_samples_fini(&samples);
	return code;
}

static int take_trace(struct dataset *d, const char *path)
{
	struct trace *t;
	struct meta m = { 0 };
	struct error err;
	if (trace_open(path, &t, &err))
		return complain(EXIT_USAGE, "%s", err.text);
	const size_t before = d->samples.n;
	int code = meta_load(t, &m, &err) ? complain(EXIT_USAGE, "%s: %s", path, err.text) : 0;
	if (!code)
		code = take_samples(d, t, &m, path);
	if (!code && d->samples.n == before)
		code = complain(EXIT_USAGE,
			"%s has no kernel with a device time: record with --gpu --args", path);
	meta_fini(&m);
	trace_close(t);
	return code;
}

static int take_table(struct dataset *d, const char *path)
{
	void *text;
	size_t n;
	struct error err;
	int code = file_load(path, &text, &n);
	if (code)
		return code;
	const size_t before = d->samples.n;
	if (dataset_csv(d, text, n, path, &err))
		code = complain(EXIT_USAGE, "%s", err.text);
	else if (d->samples.n == before)
		code = complain(EXIT_USAGE,
			"%s has no launch with a time: its column 'ns' is empty or not there",
			path);
	free(text);
	return code;
}

int launches_load(const struct options *o, int first, struct dataset *d)
{
	int code = 0;
	for (int i = first; i < opt_argc(o) && !code; i++) {
		const char *path = opt_argv(o)[i];
		code = input_is_recording(path) ? take_trace(d, path) : take_table(d, path);
	}
	return code;
}

/* The only row of the table that has so many multiprocessors of that kind, or NULL. */
static const char *only_name(unsigned cc, uint32_t sms)
{
	const struct gpu *found = NULL;
	for (size_t i = 0; i < gpu_count; i++)
		if (gpus[i].cc == cc && gpus[i].sms == sms) {
			if (found)
				return NULL;
			found = &gpus[i];
		}
	return found ? found->name : NULL;
}

/* "V100-SXM, A100 40GB, …": each names its row. */
static const char *known_devices(char *to, size_t size)
{
	struct bounded b = { .to = to, .size = size };
	for (size_t i = 0; i < gpu_count; i++) {
		bounded_put(&b, i ? ", " : "");
		for (const char *p = gpus[i].name; *p; p++)
			if (*p != '*')
				bounded_char(&b, *p);
			else if (p != gpus[i].name && p[1] && p[1] != '-')
				bounded_char(&b, ' ');
	}
	return bounded_end(&b);
}

static int unknown_device(const char *name, unsigned cc)
{
	char known[1024];
	return complain(EXIT_USAGE,
		"nothing is known of a device '%s'%s, so nothing can be predicted for it. The known devices are: %s",
		name, cc ? " of that compute capability" : "", known_devices(known, sizeof known));
}

int launches_device(
	const struct options *o, const struct dataset *d, struct predict_device *ret_device)
{
	const char *name = opt_str(o, "device");
	if (!name && d->device[0])
		name = d->device;
	if (!name && d->cc && d->sms)
		name = only_name(d->cc, d->sms);
	if (!name)
		return complain(EXIT_USAGE,
			"the files don't name the device. Give --device with the driver's name for it, "
			"or with one of: %s",
			known_devices((char[1024]){ "" }, 1024));
	return predict_device_find(name, d->cc, d->sms, ret_device) ? unknown_device(name, d->cc)
								    : 0;
}
