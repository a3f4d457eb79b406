/* One model's configuration: the tree, the structure that is filled from it, and its checks. */
#include "store/model_config.h"

#include <errno.h>

#include "store/config_reader.h"

/* The bytes of one value in an array; a shape is a value that has all its numbers. */
static size_t size_of(const struct config_field *f)
{
	switch (f->kind) {
	case KIND_MESSAGE:
		return f->message->bytes;
	case KIND_STRING:
		return sizeof(const char *);
	case KIND_BOOL:
		return sizeof(bool);
	case KIND_INT64:
	case KIND_UINT64:
		return sizeof(int64_t);
	case KIND_DOUBLE:
		return sizeof(double);
	default:
		return sizeof(uint32_t);
	}
}

static uint32_t enum_of(const struct config_field *f, const json_t *value)
{
	uint32_t i = 0;
	const char *word = json_string_value(value);
	if (f->kind == KIND_DTYPE)
		return word ? dtype_of_config(slice_of(word)) : DTYPE_NONE;
	while (word && strcmp(word, f->values[i]) != 0)
		i++;
	return i;
}

/* value NULL: the default. */
static void bind_value(
	struct model_config *c, const struct config_field *f, const json_t *value, void *to)
{
	const char *text = json_string_value(value);
	switch (f->kind) {
	case KIND_MESSAGE:
		config_bind(c, f->message, value, to);
		return;
	case KIND_STRING:
		*(const char **)to = text ? text : "";
		return;
	case KIND_BOOL:
		*(bool *)to = json_is_true(value);
		return;
	case KIND_INT64:
	case KIND_UINT64:
		*(int64_t *)to = json_integer_value(value);
		return;
	case KIND_DOUBLE:
		*(double *)to = json_real_value(value);
		return;
	case KIND_ENUM:
	case KIND_DTYPE:
		*(uint32_t *)to = enum_of(f, value);
		return;
	default:
		*(uint32_t *)to = (uint32_t)json_integer_value(value);
	}
}

/* Longer ones are refused by config_check(). */
static void bind_shape(const json_t *list, struct shape *to)
{
	*to = (struct shape){ .n = (unsigned)json_array_size(list) };
	for (unsigned i = 0; i < to->n && i < SHAPE_DIMS; i++)
		to->dims[i] = json_integer_value(json_array_get(list, i));
}

static void *take_memory(struct model_config *c, size_t n, size_t each)
{
	return n ? (*array_push(&c->memory) = xcalloc(n, each)) : NULL;
}

static void bind_list(
	struct model_config *c, const struct config_field *f, const json_t *list, char *to)
{
	const size_t n = json_array_size(list);
	char *v = take_memory(c, n, size_of(f));
	for (size_t i = 0; i < n; i++)
		bind_value(c, f, json_array_get(list, i), v + i * size_of(f));
	*(void **)to = v;
}

/* An element of a map begins with its key. */
static void bind_map(
	struct model_config *c, const struct config_field *f, const json_t *map, char *to)
{
	char *v = take_memory(c, json_object_size(map), size_of(f));
	const char *key;
	json_t *value;
	*(void **)to = v;
	json_object_foreach((json_t *)map, key, value)
	{
		bind_value(c, f, value, v);
		*(const char **)v = key;
		v += size_of(f);
	}
}

void config_bind(
	struct model_config *c, const struct config_message *m, const json_t *tree, void *to)
{
	for (const struct config_field *f = m->fields; f->name; f++) {
		const json_t *value = json_object_get(tree, f->name);
		char *at = (char *)to + f->at, *count = (char *)to + f->count_at;
		const bool many = f->label >= LABEL_MANY;
		/* A message of a oneof that is not there leaves the structure to the others. */
		const bool other = !value && f->label == LABEL_ONEOF && f->kind == KIND_MESSAGE;
		if (f->placed && f->kind == KIND_SHAPE)
			bind_shape(value, (struct shape *)at);
		else if (f->placed && f->label == LABEL_MANY)
			bind_list(c, f, value, at);
		else if (f->placed && many)
			bind_map(c, f, value, at);
		else if (f->placed && !other)
			bind_value(c, f, value, at);
		if (f->counted && many)
			*(unsigned *)count =
				(unsigned)(f->label == LABEL_MANY ? json_array_size(value)
								  : json_object_size(value));
		else if (f->counted)
			*(bool *)count = value;
	}
}

static void free_memory(struct model_config *c)
{
	for (size_t i = 0; i < c->memory.n; i++)
		free(c->memory.v[i]);
	c->memory.n = 0;
}

/* Weir's own settings are parameters, whose values are text. */
static int bind_weir(struct config_reader *r, struct model_config *c)
{
	json_t *tree = json_object();
	const struct config_reader before = *r;
	int e = 0;
	for (unsigned i = 0; !e && i < c->parameters; i++) {
		const struct parameter *p = &c->parameter[i];
		const struct config_field *f = NULL;
		if (strncmp(p->key, "weir.", 5) != 0)
			continue;
		r->line = config_line_of(
			r, json_object_get(json_object_get(c->tree, "parameters"), p->key));
		r->at = p->value;
		r->end = p->value + strlen(p->value);
		e = config_find_field(r, &config_Weir, slice_of(p->key + 5), &f);
		if (!e)
			e = config_read_value(r, &config_Weir, f, tree);
	}
	r->line = before.line;
	r->at = before.at;
	r->end = before.end;
	config_bind(c, &config_Weir, tree, c);
	if (!json_object_get(tree, "weight"))
		c->weir_weight = 1;
	json_decref(tree);
	return e;
}

static int bind_all(struct config_reader *r, struct model_config *c)
{
	free_memory(c);
	config_bind(c, &config_ModelConfig, c->tree, c);
	return bind_weir(r, c);
}

static int finish(struct config_reader *r, struct model_config *c, int e, struct model_config **ret)
{
	if (!e)
		e = bind_all(r, c);
	if (!e)
		e = config_check(r, c);
	array_free(&r->places);
	if (e)
		config_free(c);
	else
		*ret = c;
	return e;
}

static struct model_config *new_config(const char *file)
{
	struct model_config *c = xcalloc(1, sizeof *c);
	c->file = xstrdup(file);
	c->tree = json_object();
	return c;
}

int config_read(const char *text, size_t n, const char *file, struct model_config **ret,
	struct buf *warnings, struct error *err)
{
	struct config_reader r = { file, warnings, err, text, text + n, 1, { 0 } };
	struct model_config *c = new_config(file);
	return finish(&r, c, config_read_text(&r, &config_ModelConfig, '\0', c->tree), ret);
}

int config_from_json(const json_t *object, const char *file, struct model_config **ret,
	struct buf *warnings, struct error *err)
{
	struct config_reader r = { .file = file, .warnings = warnings, .err = err };
	struct model_config *c = new_config(file);
	return finish(&r, c, config_read_json(&r, &config_ModelConfig, object, c->tree), ret);
}

void config_free(struct model_config *c)
{
	if (!c)
		return;
	free_memory(c);
	array_free(&c->memory);
	json_decref(c->tree);
	free_all(c->file, c);
}

static void complete(struct model_config *c, const char *key, const char **field, const char *value)
{
	if (**field)
		return;
	json_object_set_new(c->tree, key, json_string(value));
	*field = json_string_value(json_object_get(c->tree, key));
}

void config_set_name(struct model_config *c, const char *name)
{
	complete(c, "name", &c->name, name);
}

void config_set_backend(struct model_config *c, const char *backend)
{
	complete(c, "backend", &c->backend, backend);
}

const json_t *config_accelerators(const struct model_config *c)
{
	const json_t *of =
		json_object_get(json_object_get(c->tree, "optimization"), "execution_accelerators");
	return json_object_get(of, "gpu_execution_accelerator");
}

const struct config_queue_policy *config_queue_policy(const struct model_config *c, uint64_t level)
{
	const struct config_batching *b = &c->dynamic_batching;
	for (unsigned i = 0; i < b->level_policies; i++)
		if (strtoull(b->level_policy[i].key, NULL, 10) == level)
			return &b->level_policy[i];
	return b->has_queue_policy ? &b->queue_policy : NULL;
}

/* The model's description of one tensor, without the batch dimension. */
static json_t *tree_of_spec(const struct tensor_spec *spec, unsigned skip)
{
	json_t *dims = json_array();
	for (unsigned i = skip; i < spec->shape.n; i++)
		json_array_append_new(dims, json_integer(spec->shape.dims[i]));
	json_t *tree = json_pack("{s:s, s:s, s:o}", "name", spec->name, "data_type",
		dtype_rows[spec->type].config, "dims", dims);
	if (spec->optional)
		json_object_set_new(tree, "optional", json_true());
	return tree;
}

static const struct tensor_spec *find_spec(
	const struct tensor_spec *spec, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(spec[i].name, name))
			return &spec[i];
	return NULL;
}

static int contradict(const struct model_config *c, struct error *err, const char *what,
	const char *name, const char *config, const char *model)
{
	return error_set(err, -EINVAL, "%s: %s %s is %s here, and the model says %s", c->file, what,
		name, config, model);
}

static int check_shape(const struct model_config *c, const char *what,
	const struct config_tensor *t, const struct tensor_spec *spec, struct error *err)
{
	struct shape asked = { 0 };
	const struct shape *own = t->has_reshape ? &t->reshape : &t->dims;
	const unsigned batch = c->max_batch_size > 0;
	if (batch)
		asked.dims[0] = -1;
	for (unsigned i = 0; i < own->n; i++)
		asked.dims[i + batch] = own->dims[i];
	asked.n = own->n + batch;
	if (shape_fits(&asked, &spec->shape))
		return 0;
	struct buf config = { 0 }, model = { 0 };
	shape_put(&config, &asked);
	buf_printf(&config, batch ? " with the batch dimension" : "");
	shape_put(&model, &spec->shape);
	const int e = contradict(c, err, what, t->name, buf_text(&config), buf_text(&model));
	buf_free(&config, &model);
	return e;
}

/* Fills in what the configuration's tensor leaves out. */
static void complete_tensor(
	json_t *tree, const struct config_tensor *t, const struct tensor_spec *spec, unsigned skip)
{
	json_t *whole = tree_of_spec(spec, skip);
	if (t->type == DTYPE_NONE)
		json_object_set(tree, "data_type", json_object_get(whole, "data_type"));
	if (!t->dims.n && !t->has_reshape)
		json_object_set(tree, "dims", json_object_get(whole, "dims"));
	json_decref(whole);
}

static int complete_list(struct model_config *c, const char *what, const struct config_tensor *t,
	unsigned n, const struct tensor_spec *spec, unsigned nspec, struct error *err)
{
	const unsigned skip = c->max_batch_size > 0;
	json_t *list = json_object_get(c->tree, what);
	for (unsigned i = 0; i < n; i++) {
		const struct tensor_spec *own = find_spec(spec, nspec, t[i].name);
		struct buf names = { 0 };
		for (unsigned k = 0; k < nspec; k++)
			buf_printf(&names, "%s%s", k ? ", " : "", spec[k].name);
		const int e = own ? 0
				  : error_set(err, -EINVAL, "%s: the model has no %s %s; it has %s",
					    c->file, what, t[i].name, buf_text(&names));
		buf_free(&names);
		if (e)
			return e;
		complete_tensor(json_array_get(list, i), &t[i], own, skip);
	}
	if (!list) {
		list = json_array();
		json_object_set_new(c->tree, what, list);
		for (unsigned i = 0; i < nspec; i++)
			json_array_append_new(list, tree_of_spec(&spec[i], skip));
	}
	return 0;
}

static int check_list(const struct model_config *c, const char *what, const struct config_tensor *t,
	unsigned n, const struct tensor_spec *spec, unsigned nspec, struct error *err)
{
	for (unsigned i = 0; i < n; i++) {
		const struct tensor_spec *own = find_spec(spec, nspec, t[i].name);
		if (t[i].type != own->type)
			return contradict(c, err, what, t[i].name, dtype_rows[t[i].type].config,
				dtype_rows[own->type].config);
		const int e = check_shape(c, what, &t[i], own, err);
		if (e)
			return e;
	}
	return 0;
}

/* The first tensor that has no batch dimension; NULL: all have one. */
static const struct tensor_spec *find_unbatched(const struct tensor_spec *spec, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!spec[i].shape.n || spec[i].shape.dims[0] != -1)
			return &spec[i];
	return NULL;
}

static int refuse_batches(
	const struct model_config *c, const struct tensor_spec *spec, struct error *err)
{
	struct buf shape = { 0 };
	shape_put(&shape, &spec->shape);
	const int e = error_set(err, -EINVAL,
		"%s: max_batch_size is %u here, and the model says that %s is %s, which has no "
		"batch dimension; say max_batch_size: 0",
		c->file, c->max_batch_size, spec->name, buf_text(&shape));
	buf_free(&shape);
	return e;
}

/* As Triton does it for a configuration that leaves out inputs or outputs. */
static void complete_batch(struct model_config *c, bool batches)
{
	if ((c->inputs && c->outputs) || json_object_get(c->tree, "max_batch_size") || !batches)
		return;
	json_object_set_new(c->tree, "max_batch_size", json_integer(CONFIG_DEFAULT_BATCH));
	if (!c->has_dynamic_batching)
		json_object_set_new(c->tree, "dynamic_batching", json_object());
	c->max_batch_size = CONFIG_DEFAULT_BATCH;
}

int config_complete(struct model_config *c, const struct tensor_spec *in, unsigned nin,
	const struct tensor_spec *out, unsigned nout, struct error *err)
{
	const struct tensor_spec *unbatched = find_unbatched(in, nin);
	unbatched = unbatched ? unbatched : find_unbatched(out, nout);
	if (c->max_batch_size && unbatched)
		return refuse_batches(c, unbatched, err);
	complete_batch(c, !unbatched && nin && nout);
	int e = complete_list(c, "input", c->input, c->inputs, in, nin, err);
	if (!e)
		e = complete_list(c, "output", c->output, c->outputs, out, nout, err);
	if (e)
		return e;
	struct config_reader r = { .file = c->file, .err = err };
	e = bind_all(&r, c);
	for (unsigned i = 0; !e && i < nin; i++) {
		bool there = in[i].optional;
		for (unsigned k = 0; k < c->inputs; k++)
			there |= !strcmp(c->input[k].name, in[i].name);
		if (!there)
			e = error_set(err, -EINVAL,
				"%s: the model has the input %s, and there is none of that name "
				"here",
				c->file, in[i].name);
	}
	if (!e)
		e = check_list(c, "input", c->input, c->inputs, in, nin, err);
	if (!e)
		e = check_list(c, "output", c->output, c->outputs, out, nout, err);
	return e;
}

/* What the model tells of its tensors is kept for those who do not load it. */
static json_t *trees_of_specs(const struct tensor_spec *spec, unsigned n)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, tree_of_spec(&spec[i], 0));
	return list;
}

char *config_model_text(
	const struct tensor_spec *in, unsigned nin, const struct tensor_spec *out, unsigned nout)
{
	json_t *tree = json_pack("{s:o, s:o}", "input", trees_of_specs(in, nin), "output",
		trees_of_specs(out, nout));
	char *text = json_dumps(tree, JSON_COMPACT);
	json_decref(tree);
	return text;
}

static void take_specs(const struct config_tensor *from, unsigned n, struct tensor_spec *to)
{
	for (unsigned i = 0; i < n; i++)
		to[i] = (struct tensor_spec){ (char *)from[i].name, from[i].type, from[i].dims,
			from[i].optional };
}

int config_complete_from(struct model_config *c, FILE *kept, struct error *err)
{
	struct tensor_spec in[CONFIG_TENSORS], out[CONFIG_TENSORS];
	struct model_config *own = NULL;
	json_error_t why;
	json_t *tree = json_loadf(kept, 0, &why);
	int e = tree ? config_from_json(tree, "what is kept of the model", &own, NULL, err)
		     : error_set(err, -EINVAL, "what is kept of the model: %s", why.text);
	if (!e) {
		take_specs(own->input, own->inputs, in);
		take_specs(own->output, own->outputs, out);
		e = config_complete(c, in, own->inputs, out, own->outputs, err);
	}
	config_free(own);
	json_decref(tree);
	return e;
}

int config_pad(struct model_config *c, struct error *err)
{
	struct buf sizes = { 0 };
	if (c->weir_buckets || !c->max_batch_size)
		return 0;
	for (uint32_t size = 1; size < c->max_batch_size; size *= 2)
		buf_printf(&sizes, "%u,", size);
	buf_printf(&sizes, "%u", c->max_batch_size);
	json_t *parameters = json_object_get(c->tree, "parameters");
	if (!parameters) {
		parameters = json_object();
		json_object_set_new(c->tree, "parameters", parameters);
	}
	json_object_set_new(
		parameters, "weir.buckets", json_pack("{s:s}", "string_value", buf_text(&sizes)));
	buf_free(&sizes);
	struct config_reader r = { .file = c->file, .err = err };
	return bind_all(&r, c);
}
