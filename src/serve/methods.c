/*
 * Control methods: each is a function from a JSON object to a JSON object, with the fields of the
 * messages in api/infer.tbl, whichever protocol asked.  Methods that load models run on the
 * keeper's thread.
 */
#include <errno.h>
#include <inttypes.h>

#include "serve/internal.h"

static struct server *server_of(const struct exchange *x)
{
	return x->loop->server;
}

/* "" if there is no text. */
static struct slice text_of(const json_t *request, const char *key)
{
	const json_t *v = json_object_get(request, key);
	return json_is_string(v) ? (struct slice){ json_string_value(v), json_string_length(v) }
				 : (struct slice){ "", 0 };
}

static int find_version(
	const struct exchange *x, const json_t *request, struct version **ret, struct error *err)
{
	return models_find(&server_of(x)->models, text_of(request, "name"),
		text_of(request, "version"), ret, err);
}

static int live(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	*ret = json_pack("{s:b}", "live", 1);
	return 0;
}

bool server_is_ready(const struct server *s)
{
	return load_acquire(&s->ready) && !load_acquire(&s->draining);
}

static int ready(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	*ret = json_pack("{s:b}", "ready", server_is_ready(server_of(x)));
	return 0;
}

static int health_check(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const struct slice service = text_of(request, "service");
	if (service.n && !slice_is(service, "inference.GRPCInferenceService"))
		return error_set(
			err, -ENOENT, "there is no service '%.*s' here", SLICE_ARG(service));
	*ret = json_pack(
		"{s:s}", "status", server_is_ready(server_of(x)) ? "SERVING" : "NOT_SERVING");
	return 0;
}

static int describe_server(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	*ret = json_pack("{s:s, s:s, s:[s,s,s,s,s,s,s,s,s,s,s]}", "name", server_of(x)->o.id,
		"version", WEIR_VERSION, "extensions", "classification", "model_repository",
		"model_repository(unload_dependents)", "schedule_policy", "model_configuration",
		"system_shared_memory", "binary_tensor_data", "parameters", "statistics", "trace",
		"logging");
	return 0;
}

static int model_ready(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	struct version *v;
	const int e = find_version(x, request, &v, err);
	/* Clients of gRPC ask so whether there is a model at all. */
	if (e && e != -EAGAIN && !(x->grpc && e == -ENOENT))
		return e;
	if (!e)
		version_unref(v);
	/* Over REST there is a name beside it. */
	*ret = x->grpc ? json_pack("{s:b}", "ready", !e)
		       : json_pack("{s:O, s:b}", "name", json_object_get(request, "name"), "ready",
				 !e);
	return 0;
}

static json_t *tensors_json(const struct version_tensor *t, unsigned n)
{
	json_t *all = json_array();
	for (unsigned i = 0; i < n; i++) {
		json_t *shape = json_array();
		for (unsigned d = 0; d < t[i].spec.shape.n; d++)
			json_array_append_new(shape, json_integer(t[i].spec.shape.dims[d]));
		json_array_append_new(
			all, json_pack("{s:s, s:s, s:o}", "name", t[i].spec.name, "datatype",
				     dtype_rows[t[i].spec.type].name, "shape", shape));
	}
	return all;
}

static json_t *versions_json(struct server *s, const struct version *v)
{
	json_t *all = json_array();
	pthread_rwlock_rdlock(&s->models.lock);
	for (size_t i = 0; i < v->model->versions.n; i++)
		json_array_append_new(all, json_string(v->model->versions.v[i]->text));
	pthread_rwlock_unlock(&s->models.lock);
	return all;
}

static int describe_model(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	struct version *v;
	const int e = find_version(x, request, &v, err);
	if (e)
		return e;
	const char *platform = *v->config->platform ? v->config->platform : v->config->backend;
	*ret = json_pack("{s:s, s:o, s:s, s:o, s:o}", "name", v->model->name, "versions",
		versions_json(server_of(x), v), "platform",
		strcmp(platform, "onnxruntime") == 0 ? "onnxruntime_onnx" : platform, "inputs",
		tensors_json(v->in, v->loaded->ins), "outputs",
		tensors_json(v->out, v->loaded->outs));
	version_unref(v);
	return 0;
}

static int config(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	struct version *v;
	const int e = find_version(x, request, &v, err);
	if (e)
		return e;
	*ret = json_pack("{s:o}", "config", config_json(v->config));
	version_unref(v);
	return 0;
}

static int one_model_stats(struct exchange *x, json_t *request, json_t *all, struct error *err)
{
	struct version *v;
	const int e = find_version(x, request, &v, err);
	if (e)
		return e;
	json_array_append_new(all, stats_json(v));
	version_unref(v);
	return 0;
}

static int stats(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	struct models *m = &server_of(x)->models;
	const struct slice name = text_of(request, "name");
	json_t *all = json_array();
	int e = 0;
	if (name.n && text_of(request, "version").n) {
		e = one_model_stats(x, request, all, err);
	} else {
		pthread_rwlock_rdlock(&m->lock);
		if (name.n && !models_by_name(m, name))
			e = error_set(err, -ENOENT,
				"Request for unknown model: '%.*s' is not found", SLICE_ARG(name));
		for (size_t i = 0; i < m->list.n; i++)
			for (size_t k = 0; k < m->list.v[i]->versions.n; k++)
				if (!name.n || slice_is(name, m->list.v[i]->name))
					json_array_append_new(
						all, stats_json(m->list.v[i]->versions.v[k]));
		pthread_rwlock_unlock(&m->lock);
	}
	*ret = json_pack("{s:o}", "model_stats", all);
	return e;
}

static int watch(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	struct models *m = &server_of(x)->models;
	json_t *all = json_array();
	pthread_rwlock_rdlock(&m->lock);
	for (size_t i = 0; i < m->list.n; i++)
		for (size_t k = 0; k < m->list.v[i]->versions.n; k++)
			json_array_append_new(all, watch_json(m->list.v[i]->versions.v[k]));
	pthread_rwlock_unlock(&m->lock);
	*ret = json_pack("{s:I, s:o}", "monotonic_ns", (json_int_t)monotonic_ns(), "models", all);
	return 0;
}

static void add_index(json_t *all, const struct model *m, const struct version *v)
{
	static const char *const states[] = { "UNAVAILABLE", "LOADING", "READY", "UNLOADING" };
	json_t *row = json_pack("{s:s, s:s*}", "name", m->name, "version", v ? v->text : NULL);
	if (v || m->reason || m->state != MODEL_UNAVAILABLE) {
		json_object_set_new(row, "state", json_string(states[v ? MODEL_READY : m->state]));
		json_object_set_new(row, "reason", json_string(m->reason ? m->reason : ""));
	}
	json_array_append_new(all, row);
}

static int list_models(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	struct models *m = &server_of(x)->models;
	const bool only_ready = json_is_true(json_object_get(request, "ready"));
	json_t *all = json_array();
	pthread_rwlock_rdlock(&m->lock);
	for (size_t i = 0; i < m->list.n; i++) {
		const struct model *model = m->list.v[i];
		for (size_t k = 0; k < model->versions.n; k++)
			add_index(all, model, model->versions.v[k]);
		if (!model->versions.n && !only_ready)
			add_index(all, model, NULL);
	}
	pthread_rwlock_unlock(&m->lock);
	*ret = json_pack("{s:o}", "models", all);
	return 0;
}

static int check_control(const struct exchange *x, const json_t *request, struct error *err)
{
	if (text_of(request, "repository_name").n)
		return error_set(
			err, -EOPNOTSUPP, "'repository_name' specification is not supported");
	if (server_of(x)->o.control != CONTROL_EXPLICIT)
		return error_set(err, -EAGAIN,
			"explicit model load / unload is not allowed: start weir serve with "
			"--model-control=explicit");
	return 0;
}

static int load(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const int e = check_control(x, request, err);
	*ret = json_object();
	return e ? e
		 : models_load(server_of(x), text_of(request, "model_name").at,
			   json_object_get(request, "parameters"), err);
}

static int unload(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const int e = check_control(x, request, err);
	*ret = json_object();
	return e ? e : models_unload(server_of(x), text_of(request, "model_name").at, err);
}

static int shm_status(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const struct slice name = text_of(request, "name");
	json_t *regions;
	const int e = regions_json(server_of(x)->regions, name.n ? name.at : NULL, &regions, err);
	if (!e)
		*ret = json_pack("{s:o}", "regions", regions);
	return e;
}

static int shm_register(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const json_t *key = json_object_get(request, "key");
	const json_t *offset = json_object_get(request, "offset");
	const json_t *bytes = json_object_get(request, "byte_size");
	if (!json_is_string(key) || !json_is_integer(bytes) || json_integer_value(bytes) <= 0)
		return error_set(err, -EINVAL, "a region needs a 'key' and a 'byte_size' above 0");
	if (offset && (!json_is_integer(offset) || json_integer_value(offset) < 0))
		return error_set(err, -EINVAL, "the 'offset' of a region is a number from 0 on");
	*ret = json_object();
	return regions_register(server_of(x)->regions, text_of(request, "name").at,
		json_string_value(key), (uint64_t)json_integer_value(offset),
		(uint64_t)json_integer_value(bytes), err);
}

static int shm_unregister(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const struct slice name = text_of(request, "name");
	regions_unregister(server_of(x)->regions, name.n ? name.at : NULL);
	*ret = json_object();
	return 0;
}

static int cuda_status(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	*ret = json_pack("{s:{}}", "regions");
	return 0;
}

static int cuda_register(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const struct slice name = text_of(request, "name");
	return error_set(err, -EINVAL,
		"failed to register CUDA shared memory region: '%.*s', GPUs not supported",
		SLICE_ARG(name));
}

static int cuda_unregister(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	*ret = json_object();
	return 0;
}

static int trace(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const struct slice model = text_of(request, "model_name");
	struct models *m = &server_of(x)->models;
	pthread_rwlock_rdlock(&m->lock);
	const bool there = !model.n || models_by_name(m, model);
	pthread_rwlock_unlock(&m->lock);
	if (!there)
		return error_set(err, -EINVAL, "Request for unknown model: '%.*s' is not found",
			SLICE_ARG(model));
	return settings_trace(server_of(x), json_object_get(request, "settings"), ret, err);
}

static int logging(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	return settings_log(server_of(x), json_object_get(request, "settings"), ret, err);
}

/* A client that may ask for answers may not, by that alone, change how others are served. */
static int live_settings(struct exchange *x, json_t *request, json_t **ret, struct error *err)
{
	const struct server *s = server_of(x);
	if (json_object_size(request) && s->o.open && !s->tokens && !x->conn->trusted)
		return error_set(err, -EACCES,
			"a server that is open to other machines takes settings with a token only: start it "
			"with --token");
	return settings_live(server_of(x), request, ret, err);
}

typedef int (*control_function)(struct exchange *, json_t *, json_t **, struct error *);

static const struct control {
	control_function run;
	bool slow; /* for the keeper */
} controls[] = {
	[ROUTE_LIVE] = { live },
	[ROUTE_READY] = { ready },
	[ROUTE_SERVER] = { describe_server },
	[ROUTE_MODEL] = { describe_model },
	[ROUTE_MODEL_READY] = { model_ready },
	[ROUTE_CONFIG] = { config },
	[ROUTE_STATS] = { stats },
	[ROUTE_WEIR_MODELS] = { watch },
	[ROUTE_WEIR_SETTINGS] = { live_settings },
	[ROUTE_INDEX] = { list_models },
	[ROUTE_LOAD] = { load, true },
	[ROUTE_UNLOAD] = { unload, true },
	[ROUTE_SHM_STATUS] = { shm_status },
	[ROUTE_SHM_REGISTER] = { shm_register },
	[ROUTE_SHM_UNREGISTER] = { shm_unregister },
	[ROUTE_CUDA_SHM_STATUS] = { cuda_status },
	[ROUTE_CUDA_SHM_REGISTER] = { cuda_register },
	[ROUTE_CUDA_SHM_UNREGISTER] = { cuda_unregister },
	[ROUTE_TRACE] = { trace },
	[ROUTE_LOG] = { logging },
	[ROUTE_HEALTH_CHECK] = { health_check },
};

static int read_request(struct exchange *x, json_t **ret, struct error *err)
{
	const char *body = x->body.v + x->body_at;
	const size_t n = x->body.n - x->body_at;
	if (x->grpc)
		return message_read(x->match.row->request, body, n, ret, err);
	json_t *object = NULL;
	json_error_t why;
	if (n) {
		object = json_loadb(body, n, JSON_REJECT_DUPLICATES, &why);
		if (!object)
			return error_set(err, -EINVAL, "the body is no JSON object: %s, at byte %d",
				why.text, why.position);
	}
	return route_request(&x->match, object, ret, err);
}

/* False, over REST, is a status of its own. */
static int refused(const struct exchange *x, const json_t *answer, struct error *err)
{
	if (x->grpc || (x->match.route != ROUTE_READY && x->match.route != ROUTE_MODEL_READY) ||
		json_is_true(json_object_get(answer, "ready")))
		return 0;
	return error_set(err, -EINVAL, "%s",
		x->match.route == ROUTE_READY ? "the server is not ready"
					      : "the model is not ready");
}

static int put_answer(struct exchange *x, json_t *answer, struct error *err)
{
	int e = refused(x, answer, err);
	if (e || x->grpc) {
		e = e ? e : message_put(x->match.row->answer, answer, &x->answer, err);
		json_decref(answer);
		return e;
	}
	json_t *sent = route_answer(x->match.row, answer);
	char *text = json_dumps(sent, JSON_COMPACT | JSON_ENCODE_ANY);
	buf_put_text(&x->answer, text ? text : "{}");
	free(text);
	json_decref(sent);
	return 0;
}

static int run(struct exchange *x, struct error *err)
{
	json_t *request = NULL, *answer = NULL;
	int e = read_request(x, &request, err);
	e = e ? e : controls[x->match.route].run(x, request, &answer, err);
	if (e)
		json_decref(answer);
	else
		e = put_answer(x, answer, err);
	json_decref(request);
	return e;
}

void control_run(struct exchange *x)
{
	struct error err = { "" };
	x->status = run(x, &err);
	x->err = err;
}

void control_finish(struct exchange *x)
{
	const struct error err = x->err;
	if (x->conn && x->status)
		exchange_fail(x, x->status, "%s", err.text);
	else
		conn_answered(x);
}

void control_start(struct exchange *x)
{
	if (x->match.route == ROUTE_METRICS) {
		metrics_put(server_of(x), &x->answer);
		x->content_type = "text/plain; version=0.0.4; charset=utf-8";
		conn_answered(x);
		return;
	}
	if (controls[x->match.route].slow) {
		keeper_ask(server_of(x), x);
		return;
	}
	control_run(x);
	control_finish(x);
}
