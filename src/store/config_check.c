/* Checks of a configuration that concern several fields, or the value of one: see config_reader.h.
 */
#include <string.h>

#include "store/config_reader.h"

static const json_t *get(const json_t *tree, const char *name)
{
	return json_object_get(tree, name);
}

static int check_dims(struct config_reader *r, const char *name, const char *field,
	const json_t *list, const struct shape *s, unsigned batch)
{
	const unsigned line = config_line_of(r, json_array_get(list, 0));
	if (s->n + batch > SHAPE_DIMS)
		return config_fail(r, line, "%s of %s has more than %u dimensions", field, name,
			SHAPE_DIMS - batch);
	for (unsigned i = 0; i < s->n; i++)
		if (s->dims[i] < 1 && s->dims[i] != -1)
			return config_fail(r, config_line_of(r, json_array_get(list, i)),
				"a dimension in %s of %s is %lld; it is 1 or more, or -1 for any "
				"size",
				field, name, (long long)s->dims[i]);
	return 0;
}

/* The product of the known dimensions, and how many are not; false: the product is too large. */
static bool multiply(const struct shape *s, uint64_t *ret_product, unsigned *ret_open)
{
	struct shape known = { 0 };
	*ret_open = 0;
	for (unsigned i = 0; i < s->n; i++)
		if (s->dims[i] == -1)
			++*ret_open;
		else
			known.dims[known.n++] = s->dims[i];
	return !shape_elements(&known, ret_product);
}

static int check_tensor(struct config_reader *r, const struct model_config *c, const char *what,
	unsigned i, const struct config_tensor *all)
{
	const struct config_tensor *t = &all[i];
	const json_t *tree = json_array_get(get(c->tree, what), i);
	const json_t *reshape = get(get(tree, "reshape"), "shape");
	const unsigned line = config_line_of(r, tree), batch = c->max_batch_size > 0;
	if (!*t->name)
		return config_fail(r, line, "this %s has no name", what);
	for (unsigned k = 0; k < i; k++)
		if (!strcmp(all[k].name, t->name))
			return config_fail(
				r, line, "there are two %ss with the name %s", what, t->name);
	int e = check_dims(r, t->name, "dims", get(tree, "dims"), &t->dims, batch);
	if (!e)
		e = check_dims(r, t->name, "reshape", reshape, &t->reshape, batch);
	uint64_t a, b;
	unsigned open_a, open_b;
	if (!e && (!multiply(&t->dims, &a, &open_a) || !multiply(&t->reshape, &b, &open_b)))
		return config_fail(r, line, "%s has more elements than fit", t->name);
	if (!e && t->has_reshape && (a != b || open_a != open_b))
		return config_fail(r, line,
			"dims and reshape of %s have different numbers of elements", t->name);
	return e;
}

static int check_level(
	struct config_reader *r, const struct config_batching *b, const char *key, unsigned line)
{
	const unsigned long long level = strtoull(key, NULL, 10);
	if (level >= 1 && level <= b->priority_levels)
		return 0;
	return config_fail(r, line,
		"priority_queue_policy has the level %s, and priority_levels is %u", key,
		b->priority_levels);
}

static int check_batching(struct config_reader *r, const struct model_config *c)
{
	const struct config_batching *b = &c->dynamic_batching;
	const json_t *tree = get(c->tree, "dynamic_batching");
	const json_t *sizes = get(tree, "preferred_batch_size");
	for (unsigned i = 0; i < b->preferreds; i++)
		if (b->preferred[i] < 1 || (uint32_t)b->preferred[i] > c->max_batch_size)
			return config_fail(r, config_line_of(r, json_array_get(sizes, i)),
				"preferred_batch_size has %d, and max_batch_size is %u",
				b->preferred[i], c->max_batch_size);
	if (b->default_priority > b->priority_levels ||
		(b->priority_levels && !b->default_priority))
		return config_fail(r, config_line_of(r, tree),
			"default_priority_level is %u, and priority_levels is %u",
			b->default_priority, b->priority_levels);
	for (unsigned i = 0; i < b->level_policies; i++) {
		const char *key = b->level_policy[i].key;
		const int e = check_level(
			r, b, key, config_line_of(r, get(get(tree, "priority_queue_policy"), key)));
		if (e)
			return e;
	}
	return 0;
}

static int check_versions(struct config_reader *r, const struct model_config *c)
{
	const struct config_version_policy *p = &c->version_policy;
	const json_t *tree = get(c->tree, "version_policy");
	const unsigned line = config_line_of(r, tree);
	if (p->has_latest && !p->latest)
		return config_fail(r, line, "num_versions of latest is 1 or more");
	if (p->has_specific && !p->specifics)
		return config_fail(r, line, "specific lists no version");
	for (unsigned i = 0; i < p->specifics; i++)
		if (p->specific[i] < 1)
			return config_fail(r, line, "a version is 1 or more, not %lld",
				(long long)p->specific[i]);
	return 0;
}

static int check_group(struct config_reader *r, const struct model_config *c, unsigned i)
{
	const struct config_instance_group *g = &c->instance_group[i];
	const unsigned line = config_line_of(r, json_array_get(get(c->tree, "instance_group"), i));
	if (g->count < 0)
		return config_fail(
			r, line, "count of an instance_group is %d; it is 1 or more", g->count);
	if (g->gpus && (g->kind == CONFIG_KIND_CPU || g->kind == CONFIG_KIND_MODEL))
		return config_fail(
			r, line, "this instance_group lists gpus, and its kind has none");
	for (unsigned k = 0; k < g->gpus; k++)
		if (g->gpu[k] < 0)
			return config_fail(
				r, line, "a GPU has a number of 0 or more, not %d", g->gpu[k]);
	return 0;
}

static int check_warmup(struct config_reader *r, const struct model_config *c, unsigned i)
{
	const struct config_warmup *w = &c->warmup[i];
	const uint32_t most = c->max_batch_size ? c->max_batch_size : 1;
	const json_t *tree = json_array_get(get(c->tree, "model_warmup"), i);
	const unsigned line = config_line_of(r, tree);
	if (w->batch_size < 1 || w->batch_size > most)
		return config_fail(r, line, "batch_size of a model_warmup is %u; it is 1 to %u",
			w->batch_size, most);
	for (unsigned k = 0; k < w->inputs; k++) {
		const struct config_warmup_input *in = &w->input[k];
		const json_t *own = get(get(tree, "inputs"), in->key);
		const unsigned at = config_line_of(r, own);
		if (in->type == DTYPE_NONE || (!in->zero && !in->random && !*in->file))
			return config_fail(r, at,
				"the warm-up input %s needs data_type, and one of zero_data, "
				"random_data and input_data_file",
				in->key);
		int e = check_dims(
			r, in->key, "dims", get(own, "dims"), &in->dims, c->max_batch_size > 0);
		for (unsigned d = 0; !e && d < in->dims.n; d++)
			if (in->dims.dims[d] < 0)
				e = config_fail(r, at,
					"the dimensions of the warm-up input %s are known ones",
					in->key);
		if (e)
			return e;
	}
	return 0;
}

static int check_weir(struct config_reader *r, const struct model_config *c)
{
	const json_t *all = get(c->tree, "parameters");
	if (c->weir_weight < 1e-3 || c->weir_weight > 1e3)
		return config_fail(r, config_line_of(r, get(all, "weir.weight")),
			"weir.weight is %g; it is .001 to 1000", c->weir_weight);
	for (unsigned i = 0; i < c->weir_buckets; i++)
		if (c->weir_bucket[i] < (i ? c->weir_bucket[i - 1] + 1 : 1) ||
			c->weir_bucket[i] > c->max_batch_size)
			return config_fail(r, config_line_of(r, get(all, "weir.buckets")),
				"weir.buckets are ascending batch sizes up to max_batch_size, which "
				"is %u",
				c->max_batch_size);
	return 0;
}

/* Calls check() for i of [0, n) up to the first failure. */
static int check_each(struct config_reader *r, const struct model_config *c, unsigned n,
	int (*check)(struct config_reader *r, const struct model_config *c, unsigned i))
{
	int e = 0;
	for (unsigned i = 0; !e && i < n; i++)
		e = check(r, c, i);
	return e;
}

static int check_input(struct config_reader *r, const struct model_config *c, unsigned i)
{
	return check_tensor(r, c, "input", i, c->input);
}

static int check_output(struct config_reader *r, const struct model_config *c, unsigned i)
{
	return check_tensor(r, c, "output", i, c->output);
}

int config_check(struct config_reader *r, struct model_config *c)
{
	if (c->max_batch_size > INT32_MAX)
		return config_fail(r, config_line_of(r, get(c->tree, "max_batch_size")),
			"max_batch_size is %d; it is 0 or more", (int)c->max_batch_size);
	if (c->inputs > CONFIG_TENSORS || c->outputs > CONFIG_TENSORS)
		return config_fail(r, 0,
			"the model has %u inputs and %u outputs, and %d of each are "
			"possible",
			c->inputs, c->outputs, CONFIG_TENSORS);
	int e = check_each(r, c, c->inputs, check_input);
	if (!e)
		e = check_each(r, c, c->outputs, check_output);
	if (!e)
		e = check_batching(r, c);
	if (!e)
		e = check_versions(r, c);
	if (!e)
		e = check_each(r, c, c->instance_groups, check_group);
	if (!e)
		e = check_each(r, c, c->warmups, check_warmup);
	return e ? e : check_weir(r, c);
}
