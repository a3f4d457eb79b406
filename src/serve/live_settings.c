/*
 * Settings of the scheduler that change while it runs: GET answers what they are now, and POST
 * changes those that it names, all or none.  A model's settings hold until it is loaded anew.
 */
#include <errno.h>

#include "serve/internal.h"

#define WEIGHT_MOST 1e6
#define US_MOST     (3600 * INT64_C(1000000))

static int read_weight(const json_t *value, const char *of, float *ret, struct error *err)
{
	const double n = json_number_value(value);
	if (!json_is_number(value) || n < 1 / WEIGHT_MOST || n > WEIGHT_MOST)
		return error_set(
			err, -EINVAL, "%s: a weight is a number from 0.000001 to 1000000", of);
	*ret = (float)n;
	return 0;
}

static int read_whole(const json_t *value, const char *key, const char *of, int64_t least,
	int64_t most, uint64_t *ret, struct error *err)
{
	const json_int_t n = json_integer_value(value);
	if (!json_is_integer(value) || n < least || n > most)
		return error_set(err, -EINVAL,
			"%s of model '%s' is a whole number from %lld to %lld", key, of,
			(long long)least, (long long)most);
	*ret = (uint64_t)n;
	return 0;
}

static int read_one(const char *key, const json_t *value, const struct version *v,
	struct version_limits *to, struct error *err)
{
	const char *model = v->model->name;
	uint64_t n = 0;
	int e;
	if (strcmp(key, "weight") == 0)
		return read_weight(value, model, &to->queue.weight, err);
	if (strcmp(key, "max_queue") == 0) {
		e = read_whole(value, key, model, 1, v->queue_most, &n, err);
		to->queue.max_queue = e ? to->queue.max_queue : (uint32_t)n;
		return e;
	}
	if (strcmp(key, "max_delay_us") == 0) {
		e = read_whole(value, key, model, 0, US_MOST, &n, err);
		to->queue.max_delay_ns = e ? to->queue.max_delay_ns : n * 1000;
		return e;
	}
	if (strcmp(key, "deadline_us") == 0)
		return read_whole(value, key, model, 0, US_MOST, &to->deadline_us, err);
	return error_set(err, -EINVAL,
		"a model has max_queue, max_delay_us, weight and deadline_us, and no '%s'", key);
}

/* With the device's lock. */
static int change_version(struct version *v, const json_t *change, bool apply, struct error *err)
{
	struct version_limits to = v->limits;
	to.deadline_us = load_relaxed(&v->deadline_us);
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)change, key, value)
	{
		const int e = read_one(key, value, v, &to, err);
		if (e)
			return e;
	}
	if (apply) {
		v->limits = to;
		store_relaxed(&v->deadline_us, to.deadline_us);
		batch_model_configure(v->queue, &to.queue);
	}
	return 0;
}

static int change_models(struct models *all, const json_t *change, bool apply, struct error *err)
{
	const char *name;
	json_t *of;
	int e = 0;
	if (change && !json_is_object(change))
		return error_set(err, -EINVAL, "'models' is an object with a key for each model");
	json_object_foreach((json_t *)change, name, of)
	{
		const struct model *m = models_by_name(all, slice_of(name));
		if (!m || !m->versions.n)
			return error_set(err, -ENOENT, "model '%s' is not served here", name);
		if (!json_is_object(of))
			return error_set(
				err, -EINVAL, "the settings of model '%s' are an object", name);
		for (size_t i = 0; !e && i < m->versions.n; i++)
			e = change_version(m->versions.v[i], of, apply, err);
		if (e)
			return e;
	}
	return 0;
}

static int change_policy(struct device *d, const json_t *value, bool apply, struct error *err)
{
	enum batch_policy policy;
	if (!value)
		return 0;
	if (!json_is_string(value) || batch_policy_find(json_string_value(value), &policy))
		return error_set(err, -EINVAL, "the policy is slack, delay, fifo or edf");
	if (apply) {
		d->policy = policy;
		batcher_set_policy(d->batcher, policy);
	}
	return 0;
}

static int change_classes(struct device *d, const json_t *value, bool apply, struct error *err)
{
	float weight[BATCH_CLASSES];
	if (!value)
		return 0;
	if (!json_is_array(value) || json_array_size(value) != BATCH_CLASSES)
		return error_set(
			err, -EINVAL, "class_weights is an array of %d numbers", BATCH_CLASSES);
	for (unsigned i = 0; i < BATCH_CLASSES; i++) {
		const int e =
			read_weight(json_array_get(value, i), "class_weights", &weight[i], err);
		if (e)
			return e;
	}
	for (unsigned i = 0; apply && i < BATCH_CLASSES; i++) {
		d->class_weights[i] = weight[i];
		batcher_set_class_weight(d->batcher, i, weight[i]);
	}
	return 0;
}

static int check_keys(const json_t *change, struct error *err)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)change, key, value)
	{
		if (strcmp(key, "policy") != 0 && strcmp(key, "class_weights") != 0 &&
			strcmp(key, "models") != 0)
			return error_set(err, -EINVAL,
				"there are policy, class_weights and models, and no '%s'", key);
	}
	return 0;
}

/* With both locks. */
static int change_all(struct server *s, const json_t *change, bool apply, struct error *err)
{
	int e = check_keys(change, err);
	e = e ? e : change_policy(&s->device, json_object_get(change, "policy"), apply, err);
	e = e ? e
	      : change_classes(&s->device, json_object_get(change, "class_weights"), apply, err);
	return e ? e : change_models(&s->models, json_object_get(change, "models"), apply, err);
}

static json_t *model_json(const struct version *v)
{
	return json_pack("{s:I, s:I, s:f, s:I}", "max_queue", (json_int_t)v->limits.queue.max_queue,
		"max_delay_us", (json_int_t)(v->limits.queue.max_delay_ns / 1000), "weight",
		(double)v->limits.queue.weight, "deadline_us",
		(json_int_t)load_relaxed(&v->deadline_us));
}

/* With both locks.  A model's settings are those of its latest version. */
static json_t *all_json(const struct server *s)
{
	json_t *models = json_object(), *classes = json_array();
	for (unsigned i = 0; i < BATCH_CLASSES; i++)
		json_array_append_new(classes, json_real((double)s->device.class_weights[i]));
	for (size_t i = 0; i < s->models.list.n; i++) {
		const struct model *m = s->models.list.v[i];
		if (m->versions.n)
			json_object_set_new(
				models, m->name, model_json(m->versions.v[m->versions.n - 1]));
	}
	return json_pack("{s:s, s:o, s:o}", "policy", batch_policy_name(s->device.policy),
		"class_weights", classes, "models", models);
}

int settings_live(struct server *s, const json_t *change, json_t **ret, struct error *err)
{
	pthread_rwlock_rdlock(&s->models.lock);
	pthread_mutex_lock(&s->device.lock);
	int e = change_all(s, change, false, err);
	if (!e && json_object_size(change)) {
		e = change_all(s, change, true, err);
		/* Deadlines may have changed. */
		pthread_cond_signal(&s->device.work);
	}
	if (!e)
		*ret = all_json(s);
	pthread_mutex_unlock(&s->device.lock);
	pthread_rwlock_unlock(&s->models.lock);
	return e;
}
