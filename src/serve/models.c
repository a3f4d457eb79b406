/*
 * The served models: models by name, each with the versions that are loaded.  A change loads the
 * new versions beside the old, and swaps the lists under the lock.  Requests that run keep their
 * version.  A model that does not load changes nothing, and `reason` says why.
 */
#include "serve/internal.h"

#include <errno.h>
#include <inttypes.h>

void version_ref(struct version *v)
{
	add_relaxed(&v->refs, 1);
}

void version_unref(struct version *v)
{
	/* The thread that frees it sees what all did with it. */
	if (atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) == 1)
		keeper_bury(v->device->server, v);
}

struct model *models_by_name(struct models *m, struct slice name)
{
	for (size_t i = 0; i < m->list.n; i++)
		if (slice_is(name, m->list.v[i]->name))
			return m->list.v[i];
	return NULL;
}

static struct version *version_of(const struct model *m, uint64_t number, bool latest)
{
	if (latest)
		return m->versions.n ? m->versions.v[m->versions.n - 1] : NULL;
	for (size_t i = 0; i < m->versions.n; i++)
		if (m->versions.v[i]->number == number)
			return m->versions.v[i];
	return NULL;
}

static int not_there(
	const struct model *m, struct slice name, struct slice version, struct error *err)
{
	if (!m)
		return error_set(err, -ENOENT, "Request for unknown model: '%.*s' is not found",
			SLICE_ARG(name));
	if (version.n)
		return error_set(err, m->versions.n ? -ENOENT : -EAGAIN,
			"Request for unknown model: '%s' version %.*s is not at ready state",
			m->name, SLICE_ARG(version));
	return error_set(err, -EAGAIN,
		"Request for unknown model: '%s' has no available versions%s%s", m->name,
		m->reason ? ": " : "", m->reason ? m->reason : "");
}

int models_find(struct models *m, struct slice model, struct slice version, struct version **ret,
	struct error *err)
{
	uint64_t number = 0;
	int e = 0;
	if (version.n && !slice_u64(version, &number))
		return error_set(err, -EINVAL,
			"failed to get model version from '%.*s': it is no number",
			SLICE_ARG(version));
	pthread_rwlock_rdlock(&m->lock);
	const struct model *found = models_by_name(m, model);
	struct version *v = found ? version_of(found, number, version.n == 0) : NULL;
	if (v) {
		version_ref(v);
		*ret = v;
	} else {
		e = not_there(found, model, version, err);
	}
	pthread_rwlock_unlock(&m->lock);
	return e;
}

static void unref_all(version_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		version_unref(list->v[i]);
	array_free(list);
}

/* The keeper's thread makes all changes.  The model takes the list, if there is one. */
static void set_state(struct models *m, struct model *model, enum model_state state,
	const char *reason, const version_list *list)
{
	pthread_rwlock_wrlock(&m->lock);
	version_list old = model->versions;
	model->versions = list ? *list : old;
	model->state = state;
	free(model->reason);
	model->reason = reason ? xstrdup(reason) : NULL;
	pthread_rwlock_unlock(&m->lock);
	if (list)
		unref_all(&old);
}

static struct model *get_model(struct models *m, const char *name)
{
	struct model *found = models_by_name(m, slice_of(name));
	if (found)
		return found;
	found = xcalloc(1, sizeof *found);
	found->name = xstrdup(name);
	pthread_rwlock_wrlock(&m->lock);
	*array_push(&m->list) = found;
	pthread_rwlock_unlock(&m->lock);
	return found;
}

/* The versions of the policy: those that are loaded and unchanged, and the others anew. */
static int load_versions(struct server *s, struct model *model, const struct store_model *from,
	version_list *list, struct error *err)
{
	const bool same = model->config_fingerprint == from->config_fingerprint;
	array_each(const struct store_version, which, from->versions) {
		if (!which->selected)
			continue;
		struct version *v = same ? version_of(model, which->number, false) : NULL;
		if (v && v->fingerprint == which->fingerprint) {
			version_ref(v);
		} else {
			const int e = version_load(s, from, which, &v, err);
			if (e)
				return e;
			v->model = model;
		}
		*array_push(list) = v;
	}
	return list->n ? 0
		       : error_set(err, -ENOENT, "model '%s' has no version to load", from->name);
}

static int load_model(struct server *s, const struct store_model *from, struct error *err)
{
	struct model *model = get_model(&s->models, from->name);
	version_list list = { 0 };
	int e = 0;
	model->fingerprint = from->fingerprint;
	if (!model->versions.n)
		set_state(&s->models, model, MODEL_LOADING, NULL, NULL);
	if (from->problem)
		e = error_set(err, -EINVAL, "%s", from->problem);
	e = e ? e : load_versions(s, model, from, &list, err);
	if (e) {
		const struct error why = *err;
		set_state(&s->models, model, model->versions.n ? MODEL_READY : MODEL_UNAVAILABLE,
			why.text, NULL);
		unref_all(&list);
		fprintf(stderr, "weir serve: model '%s' is not loaded%s: %s\n", from->name,
			model->versions.n ? " anew, and goes on as it was" : "", why.text);
		return e;
	}
	model->config_fingerprint = from->config_fingerprint;
	set_state(&s->models, model, MODEL_READY, NULL, &list);
	return 0;
}

static void unload_model(struct server *s, struct model *model, const char *reason)
{
	const version_list none = { 0 };
	set_state(&s->models, model, MODEL_UNAVAILABLE, reason, &none);
	model->fingerprint = 0;
}

static const struct store_model *find_stored(const struct store_models *all, const char *name)
{
	for (size_t i = 0; i < all->models.n; i++)
		if (strcmp(all->models.v[i].name, name) == 0)
			return &all->models.v[i];
	return NULL;
}

static bool wanted(struct server *s, const char *name)
{
	if (s->o.control != CONTROL_EXPLICIT)
		return true;
	const struct model *m = models_by_name(&s->models, slice_of(name));
	return m && m->wanted;
}

/* Settled: somebody says that nothing is being copied now. */
int models_scan(struct server *s, bool settled, struct error *err)
{
	struct store_models all = { 0 };
	struct error why; /* which load_model() has told */
	const int e = store_scan(s->models.store, &all, err);
	if (e)
		return e;
	array_each(const struct store_model, from, all.models) {
		if (from->warnings && *from->warnings &&
			!get_model(&s->models, from->name)->fingerprint)
			fprintf(stderr, "%s", from->warnings);
		const struct model *m = get_model(&s->models, from->name);
		if (wanted(s, from->name) && (settled || from->settled) &&
			m->fingerprint != from->fingerprint)
			load_model(s, from, &why);
	}
	for (size_t i = 0; i < s->models.list.n; i++) {
		struct model *m = s->models.list.v[i];
		if (m->versions.n && !find_stored(&all, m->name))
			unload_model(s, m, "its folder is gone");
	}
	store_models_free(&all);
	return 0;
}

static int load_asked(
	struct server *s, const char *name, const json_t *parameters, struct error *err)
{
	struct store_models all = { 0 };
	int e = store_override(s->models.store, name, parameters, err);
	e = e ? e : store_scan(s->models.store, &all, err);
	if (e)
		return e;
	const struct store_model *from = find_stored(&all, name);
	if (!from)
		e = error_set(err, -ENOENT, "the repository has no such model");
	else
		e = load_model(s, from, err);
	if (!e)
		models_by_name(&s->models, slice_of(name))->wanted = true;
	store_models_free(&all);
	return e;
}

int models_load(struct server *s, const char *name, const json_t *parameters, struct error *err)
{
	struct error why = { "" };
	const int e = load_asked(s, name, parameters, &why);
	return e ? error_set(err, e, "failed to load '%s': %s", name, why.text) : 0;
}

int models_unload(struct server *s, const char *name, struct error *err)
{
	struct model *m = models_by_name(&s->models, slice_of(name));
	if (!m)
		return error_set(
			err, -ENOENT, "failed to unload '%s': there is no such model", name);
	m->wanted = false;
	unload_model(s, m, "unloaded");
	return 0;
}

int models_open(struct server *s, struct error *err)
{
	struct models *m = &s->models;
	int e = store_open(s->o.repository, &m->store, err);
	if (e)
		return e;
	for (unsigned i = 0; i < s->o.loads; i++)
		get_model(m, s->o.load[i])->wanted = true;
	e = models_scan(s, true, err);
	if (e)
		return e;
	bool all = true;
	for (size_t i = 0; i < m->list.n; i++) {
		const struct model *model = m->list.v[i];
		all &= model->versions.n || !wanted(s, model->name);
		if (model->wanted && !model->fingerprint)
			fprintf(stderr, "weir serve: the repository has no model '%s'\n",
				model->name);
	}
	return all || !s->o.strict
		       ? 0
		       : error_set(err, -EINVAL, "with --strict, all models have to load");
}

/* All threads have ended, but for what they left to bury. */
void models_close(struct server *s)
{
	struct models *m = &s->models;
	for (size_t i = 0; i < m->list.n; i++) {
		struct model *model = m->list.v[i];
		unref_all(&model->versions);
		free_all(model->reason, model->name, model);
	}
	array_free(&m->list);
}
