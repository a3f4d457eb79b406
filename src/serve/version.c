/*
 * One version of a model: its file goes to the engine, its configuration is completed from what the
 * engine says, and a few batches of each size teach the batcher what they take.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

#include "serve/internal.h"
#include "store/config_queue.h"

static bool file_there(struct store *s, const char *model, uint64_t version, const char *file)
{
	struct error err;
	int fd;
	char *path;
	if (store_model_file(s, model, version, file, &fd, &path, &err))
		return false;
	close(fd);
	free(path);
	return true;
}

/* The engine that the configuration names, or of which the version's folder has a file. */
static int choose_engine(struct store *s, const char *model, struct version *v, struct error *err)
{
	struct model_config *c = v->config;
	const char *name = *c->backend ? c->backend : c->platform;
	if (*name) {
		v->engine = engine_find(name, err);
		return v->engine ? 0 : -EOPNOTSUPP;
	}
	struct buf files = { 0 };
	char backend[ENGINE_BACKEND];
	for (size_t i = 0; engines[i]; i++) {
		if (file_there(s, model, v->number, engines[i]->file)) {
			v->engine = engines[i];
			config_set_backend(c, engine_backend(v->engine, backend));
			buf_free(&files);
			return 0;
		}
		buf_printf(&files, "%s%s", files.n ? ", " : "", engines[i]->file);
	}
	const int e = error_set(err, -ENOENT,
		"version %" PRIu64 " of model '%s' has none of the files %s", v->number, model,
		buf_text(&files));
	buf_free(&files);
	return e;
}

static enum engine_place place_of(const struct model_config *c)
{
	for (unsigned i = 0; i < c->instance_groups; i++) {
		if (c->instance_group[i].kind == CONFIG_KIND_GPU)
			return ENGINE_ON_GPU;
		if (c->instance_group[i].kind == CONFIG_KIND_CPU)
			return ENGINE_ON_CPU;
	}
	return ENGINE_ANYWHERE;
}

/* As the configuration's text has them.  The caller frees both lists. */
static void read_accelerators(const struct model_config *c, struct engine_accelerator **ret,
	struct parameter **ret_parameters, unsigned *ret_n)
{
	const json_t *list = config_accelerators(c);
	ARRAY(struct engine_accelerator) all = { 0 };
	ARRAY(struct parameter) parameters = { 0 };
	size_t i, first = 0;
	const json_t *one;
	const char *key;
	json_t *value;
	json_array_foreach(list, i, one)
	{
		json_object_foreach(json_object_get(one, "parameters"), key, value)
		{
			*array_push(&parameters) =
				(struct parameter){ key, json_string_value(value) };
		}
		const char *name = json_string_value(json_object_get(one, "name"));
		*array_push(&all) = (struct engine_accelerator){ name ? name : "", NULL,
			(unsigned)(parameters.n - first) };
		first = parameters.n;
	}
	for (i = 0, first = 0; i < all.n; first += all.v[i++].parameters)
		all.v[i].parameter = parameters.v + first;
	*ret = all.v;
	*ret_parameters = parameters.v;
	*ret_n = (unsigned)all.n;
}

static struct shape with_rows(const struct shape *dims, bool batched)
{
	struct shape s = { .n = 0 };
	if (batched)
		s.dims[s.n++] = -1;
	for (unsigned i = 0; i < dims->n && s.n < SHAPE_DIMS; i++)
		s.dims[s.n++] = dims->dims[i];
	return s;
}

/* As the model itself has them.  The caller frees the list, whose names are the configuration's. */
static struct tensor_spec *specs_of(
	const struct config_tensor *of, unsigned n, const struct model_config *c)
{
	struct tensor_spec *all = xcalloc(n + 1, sizeof *all);
	for (unsigned i = 0; i < n; i++)
		all[i] = (struct tensor_spec){ (char *)of[i].name, of[i].type,
			with_rows(of[i].has_reshape ? &of[i].reshape : &of[i].dims,
				c->max_batch_size > 0),
			of[i].optional };
	return all;
}

static int load_file(struct server *s, const char *model, struct version *v, struct error *err)
{
	const struct model_config *c = v->config;
	const char *file = *c->default_model_filename ? c->default_model_filename : v->engine->file;
	int fd;
	char *path;
	if (v->engine->code && store_is_inline(s->models.store, model))
		return error_set(err, -EINVAL,
			"model %s: its file is code, which no load request may bring", model);
	int e = store_model_file(s->models.store, model, v->number, file, &fd, &path, err);
	if (e)
		return e;
	struct engine_accelerator *accelerators;
	struct parameter *of_accelerators;
	unsigned n;
	read_accelerators(c, &accelerators, &of_accelerators, &n);
	struct tensor_spec *in = specs_of(c->input, c->inputs, c);
	struct tensor_spec *out = specs_of(c->output, c->outputs, c);
	const struct engine_config ec = { .name = model,
		.place = place_of(c),
		.accelerator = accelerators,
		.accelerators = n,
		.max_batch_size = c->max_batch_size,
		.bucket = c->weir_bucket,
		.buckets = c->weir_buckets,
		.parameter = c->parameter,
		.parameters = c->parameters,
		.graph_level = c->graph_level,
		.in = in,
		.ins = c->inputs,
		.out = out,
		.outs = c->outputs };
	e = engine_load(v->engine, &s->o.engine, &ec, fd, path, &v->loaded, err);
	free_all(accelerators, of_accelerators, in, out);
	close(fd);
	free(path);
	return e;
}

static void read_labels(
	struct store *s, const char *model, const char *file, struct version_tensor *t)
{
	struct error err;
	int fd;
	char *path, *line = NULL;
	size_t room = 0;
	ARRAY(char *) labels = { 0 };
	if (!file || !*file || store_side_file(s, model, file, &fd, &path, &err))
		return;
	free(path);
	FILE *in = fdopen(fd, "r");
	for (ssize_t n; in && (n = getline(&line, &room, in)) > 0;)
		*array_push(&labels) = xstrndup(line, (size_t)n - (line[n - 1] == '\n'));
	free(line);
	if (in)
		fclose(in);
	t->labels = labels.v;
	t->nlabels = labels.n;
}

/* In the model's order; config_complete() has seen to it that each has its row. */
static struct version_tensor *tensors_of(struct server *s, const char *model,
	const struct version *v, const struct tensor_spec *spec, unsigned n,
	const struct config_tensor *of, unsigned nof)
{
	struct version_tensor *all = xcalloc(n + 1, sizeof *all);
	for (unsigned i = 0; i < n; i++) {
		const struct config_tensor *c = NULL;
		for (unsigned k = 0; k < nof; k++)
			if (strcmp(of[k].name, spec[i].name) == 0)
				c = &of[k];
		struct version_tensor *t = &all[i];
		t->spec = spec[i];
		t->spec.name = xstrdup(spec[i].name);
		if (!c)
			continue;
		t->spec.type = c->type;
		t->spec.optional |= c->optional;
		t->spec.shape = with_rows(&c->dims, v->batched);
		t->has_reshape = c->has_reshape;
		t->reshape = with_rows(&c->reshape, v->batched);
		read_labels(s->models.store, model, c->label_filename, t);
	}
	return all;
}

static void free_tensors(struct version_tensor *all, unsigned n)
{
	for (unsigned i = 0; all && i < n; i++) {
		for (size_t k = 0; k < all[i].nlabels; k++)
			free(all[i].labels[k]);
		free_all(all[i].labels, all[i].spec.name);
	}
	free(all);
}

bool version_has_free_size(const struct version *v)
{
	bool has = false;
	for (unsigned i = 0; i < v->loaded->ins; i++)
		for (unsigned d = v->batched ? 1 : 0; d < v->in[i].spec.shape.n; d++)
			has |= v->in[i].spec.shape.dims[d] < 0;
	return has;
}

static bool varies(const struct version *v)
{
	bool has = version_has_free_size(v);
	for (unsigned i = 0; i < v->loaded->ins; i++)
		has |= v->in[i].spec.optional;
	return has;
}

static void read_latency(struct server *s, const char *model, struct version *v)
{
	struct error err;
	FILE *in = store_kept_open(s->models.store, STORE_LATENCY, model, v->number);
	if (!in)
		return;
	pthread_mutex_lock(&v->device->lock);
	batch_latency_read(v->queue, in, &err);
	pthread_mutex_unlock(&v->device->lock);
	fclose(in);
}

static void write_latency(struct server *s, const struct version *v)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	if (!out)
		return;
	pthread_mutex_lock(&v->device->lock);
	batch_latency_put(v->queue, out);
	pthread_mutex_unlock(&v->device->lock);
	/* A repository that can't be written to is served without. */
	if (fclose(out) == 0)
		store_kept_write(
			s->models.store, STORE_LATENCY, v->config->name, v->number, text, n);
	free(text);
}

/* For who simulates the server: what the model adds to its configuration. */
static void write_model(struct server *s, const struct version *v)
{
	const struct engine_model *m = v->loaded;
	char *text = config_model_text(m->in, m->ins, m->out, m->outs);
	if (text)
		store_kept_write(s->models.store, STORE_MODEL, v->config->name, v->number, text,
			strlen(text));
	free(text);
}

static int load(struct server *s, const char *model, struct version *v, struct error *err)
{
	int e = choose_engine(s->models.store, model, v, err);
	e = e ? e : load_file(s, model, v, err);
	if (e)
		return e;
	const struct engine_model *m = v->loaded;
	if (config_accelerators(v->config) && !m->engine->memory)
		fprintf(stderr,
			"%s: model '%s' runs without its gpu_execution_accelerator, on the CPU\n",
			v->config->file, model);
	e = config_complete(v->config, m->in, m->ins, m->out, m->outs, err);
	if (!e && m->engine->pads)
		e = config_pad(v->config, err);
	if (e)
		return e;
	if (v->config->max_batch_size > BATCH_MOST)
		return error_set(err, -EINVAL, "%s: max_batch_size is %u, and %u is the most",
			v->config->file, v->config->max_batch_size, BATCH_MOST);
	v->batched = v->config->max_batch_size > 0;
	v->loaded->has_rows = v->batched;
	v->in = tensors_of(s, model, v, m->in, m->ins, v->config->input, v->config->inputs);
	v->out = tensors_of(s, model, v, m->out, m->outs, v->config->output, v->config->outputs);
	v->shapes_vary = varies(v);
	v->limits.queue = config_queue(v->config, s->o.delay_ns);
	v->queue_most = v->limits.queue.max_queue;
	store_relaxed(&v->deadline_us, v->config->weir_deadline_us);
	device_add(v->device, v);
	read_latency(s, model, v);
	e = warm_up(s, model, v, err);
	if (!e) {
		write_model(s, v);
		write_latency(s, v);
	}
	return e;
}

int version_load(struct server *s, const struct store_model *from,
	const struct store_version *which, struct version **ret, struct error *err)
{
	const uint64_t began = monotonic_ns();
	struct version *v = xcalloc(1, sizeof *v);
	atomic_init(&v->refs, 1);
	v->number = which->number;
	snprintf(v->text, sizeof v->text, "%" PRIu64, v->number);
	v->fingerprint = which->fingerprint;
	v->device = &s->device;
	int e = config_from_json(from->config->tree, from->config->file, &v->config, NULL, err);
	if (!e)
		config_set_name(v->config, from->name);
	e = e ? e : load(s, from->name, v, err);
	malloc_trim(0); /* the file, and what the engine made of it on the way */
	if (e) {
		version_free(s, v);
		return e;
	}
	store_relaxed(&v->load_ns, monotonic_ns() - began);
	*ret = v;
	return 0;
}

void version_free(struct server *s, struct version *v)
{
	if (v->queue) {
		write_latency(s, v);
		device_drop(v->device, v);
	}
	if (v->loaded) {
		free_tensors(v->in, v->loaded->ins);
		free_tensors(v->out, v->loaded->outs);
	}
	engine_unload(v->loaded);
	config_free(v->config);
	map_fini(&v->groups);
	free(v);
}
