/* Answers the requests to weir monitor. */
#include "monitor/api.h"

#include <errno.h>

#ifdef WEIR_MICROHTTPD

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "event/level.h"
#include "monitor/change.h"
#include "monitor/prometheus.h"

#define TEXT    "text/plain; charset=utf-8"
#define METRICS "text/plain; version=0.0.4; charset=utf-8"
#define JSON    "application/json"

enum status {
	OK = 200,
	NO_CONTENT = 204,
	BAD_REQUEST = 400,
	UNAUTHORIZED = 401,
	FORBIDDEN = 403,
	NOT_FOUND = 404,
	METHOD_NOT_ALLOWED = 405,
	CONFLICT = 409,
	TOO_LARGE = 413,
	BROKEN = 500,
};

/* The body is what put() writes. */
static void write_answer(struct api_answer *a, unsigned status, const char *type,
	void (*put)(FILE *out, const void *of), const void *of)
{
	FILE *out = open_memstream(&a->body, &a->bytes);
	a->status = out ? status : BROKEN;
	a->type = type;
	if (!out)
		return;
	put(out, of);
	fclose(out);
}

static void put_error(FILE *out, const void *text)
{
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	json_str(&j, "error", text);
	json_end_document(&j);
}

static void refuse(struct api_answer *a, unsigned status, const char *text)
{
	write_answer(a, status, JSON, put_error, text);
}

static void put_health(FILE *out, const void *api)
{
	fputs("ok\n", out);
}

static void put_metrics(FILE *out, const void *of)
{
	const struct api *api = of;
	prometheus_put(out, api->watch, api->version);
}

/* A function for each view: program is what was asked for behind the question mark; NULL: all. */
static void put_programs(struct json *j, const struct watch *w, const char *program)
{
	watch_put_json(j, w);
}

static void put_policy(struct json *j, const struct watch *w, const char *program)
{
	json_str_or_null(j, "policy", *w->policy ? w->policy : NULL);
	json_bool(j, "open", w->open);
}

static const char *stop_name(uint32_t stopped)
{
	static const char *const names[] = { NULL, "size", "disk", "asked", "cut" };
	return stopped < 5 ? names[stopped] : "?";
}

static void put_recording(struct json *j, const struct recorded *p)
{
	const struct trace_header *h = recording_header(p->recording);
	json_begin_object(j, NULL);
	json_u64(j, "pid", p->pid);
	json_str(j, "program", p->name);
	json_str(j, "file", p->recording->path);
	json_str(j, "level", level_of_control(load_relaxed(&h->control)));
	json_bool(j, "args", load_relaxed(&h->control) & CONTROL_ARGS);
	json_bool(j, "flight", h->mode == TRACE_FLIGHT);
	json_str_or_null(j, "stopped", stop_name(load_relaxed(&h->stopped)));
	json_u64(j, "bytes", follow_file_bytes(p->recording->follow));
	json_u64(j, "calls", p->calls);
	json_u64(j, "launches", p->launches);
	json_u64(j, "lost_calls", load_relaxed(&h->lost));
	json_end_object(j);
}

static void put_recordings(struct json *j, const struct watch *w, const char *program)
{
	json_begin_array(j, "recordings");
	for (size_t i = 0; i < w->recordings.processes.n; i++)
		if (!program || !strcmp(w->recordings.processes.v[i].name, program))
			put_recording(j, &w->recordings.processes.v[i]);
	json_end_array(j);
}

static void put_regressions(struct json *j, const struct watch *w, const char *program)
{
	feed_put_json(j, &w->feed, program, w->ns);
}

struct view {
	const struct watch *watch;
	void (*put)(struct json *j, const struct watch *w, const char *program);
	const char *program;
};

static void put_view(FILE *out, const void *of)
{
	const struct view *v = of;
	struct json j;
	json_init(&j, out);
	json_begin_object(&j, NULL);
	v->put(&j, v->watch, v->program);
	json_end_document(&j);
}

static int set_class(const struct api *api, const char *id, const char *to, struct error *err)
{
	return change_class(api->watch->file, change_pid(id), to, err);
}

static int set_policy(const struct api *api, const char *id, const char *to, struct error *err)
{
	return change_policy(api->watch->file, to, err);
}

static int set_recording(const struct api *api, const char *id, const char *to, struct error *err)
{
	return change_recording(change_pid(id), to, err);
}

static int set_regression(const struct api *api, const char *id, const char *to, struct error *err)
{
	char *end;
	if (strcmp(to, "accepted") != 0)
		return error_set(err, -EINVAL, "a slowdown is switched to accepted");
	const uint64_t key = strtoull(id, &end, 16);
	if (strlen(id) != 16 || *end || regress_accept(api->watch->feed.regress, key))
		return error_set(err, -ESRCH, "no slowdown of the id %.20s is there", id);
	return 0;
}

struct route {
	const char *path; /* "*": a part that is an id */
	bool open;        /* to whoever reaches it */
	void (*view)(struct json *j, const struct watch *w, const char *program);
	void (*text)(FILE *out, const void *api);
	const char *type;
	const char *key; /* of what is put */
	int (*set)(const struct api *api, const char *id, const char *to, struct error *err);
};

static const struct route routes[] = {
	{ .path = "/healthz", .open = true, .text = put_health, .type = TEXT },
	{ .path = "/metrics", .open = true, .text = put_metrics, .type = METRICS },
	{ .path = "/v1/programs", .view = put_programs },
	{ .path = "/v1/programs/*/class", .key = "class", .set = set_class },
	{ .path = "/v1/policy", .view = put_policy, .key = "policy", .set = set_policy },
	{ .path = "/v1/recordings", .view = put_recordings },
	{ .path = "/v1/recordings/*", .key = "to", .set = set_recording },
	{ .path = "/v1/regressions", .view = put_regressions },
	{ .path = "/v1/regressions/*", .key = "to", .set = set_regression },
};

/* Whether the path is that of the route; what stands for its star goes to ret_id. */
static bool is_at(const char *route, const char *path, char ret_id[24])
{
	const size_t before = strcspn(route, "*");
	*ret_id = 0;
	if (strncmp(route, path, before) != 0)
		return false;
	if (!route[before])
		return !path[before];
	const size_t n = strcspn(path + before, "/");
	if (!n || n >= 24)
		return false;
	memcpy(ret_id, path + before, n);
	ret_id[n] = 0;
	return !strcmp(route + before + 1, path + before + n);
}

static const struct route *find_route(const char *path, char ret_id[24])
{
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		if (is_at(routes[i].path, path, ret_id))
			return &routes[i];
	return NULL;
}

/* An object of one key, which is a text: 0, or -EINVAL with a sentence. */
static int read_body(const struct api_request *r, const char *key, char ret[64], struct error *err)
{
	json_error_t why;
	const char *name;
	json_t *value, *root = json_loadb(r->body, r->body_bytes, JSON_REJECT_DUPLICATES, &why);
	int e = 0;
	if (!root)
		return error_set(
			err, -EINVAL, "the body is no JSON: %s (line %d)", why.text, why.line);
	const char *text = json_string_value(json_object_get(root, key));
	json_object_foreach(root, name, value) if (strcmp(name, key) != 0) e =
		error_set(err, -EINVAL, "there is no key \"%.40s\" here, but \"%s\"", name, key);
	if (!e && (!text || strlen(text) >= 64))
		e = error_set(err, -EINVAL, "the body is to be an object, {\"%s\": \"...\"}", key);
	if (!e)
		snprintf(ret, 64, "%s", text);
	json_decref(root);
	return e;
}

static int read_put(const struct api_request *r, const char *key, char ret[64], struct error *err)
{
	if (r->body_bytes)
		return read_body(r, key, ret, err);
	const char *text = r->argument(r->data, key);
	if (!text)
		return error_set(err, -EINVAL,
			"%s is missing: say it in the body, {\"%s\": \"...\"}", key, key);
	snprintf(ret, 64, "%s", text); /* what is longer is none of those that there are */
	return 0;
}

static void answer_put(const struct api *api, const struct api_request *r,
	const struct route *route, const char *id, struct api_answer *a)
{
	char to[64];
	struct error err;
	int e = read_put(r, route->key, to, &err);
	e = e ? e : route->set(api, id, to, &err);
	switch (e) {
	case 0:
		a->status = NO_CONTENT;
		break;
	case -EINVAL:
		refuse(a, BAD_REQUEST, err.text);
		break;
	case -EPERM:
		refuse(a, FORBIDDEN, err.text);
		break;
	case -EBUSY:
		refuse(a, CONFLICT, err.text);
		break;
	default:
		refuse(a, NOT_FOUND, err.text);
	}
}

static void answer_get(const struct api *api, const struct api_request *r,
	const struct route *route, struct api_answer *a)
{
	if (route->text)
		write_answer(a, OK, route->type, route->text, api);
	else
		write_answer(a, OK, JSON, put_view,
			&(struct view){ api->watch, route->view, r->argument(r->data, "program") });
}

static const char *methods(const struct route *r)
{
	const bool reads = r->text || r->view;
	return r->set ? reads ? "GET, HEAD, PUT" : "PUT" : "GET, HEAD";
}

/* Whether there is an answer already: of who may not, or does not know what there is. */
static bool answer_stranger(
	const struct api_request *r, const struct route *route, struct api_answer *a)
{
	const bool hidden = route && !route->open && r->may == API_READS;
	if (!route || hidden)
		refuse(a, NOT_FOUND, "nothing is here. Metrics are at /metrics");
	else if (!route->open && r->may == API_UNKNOWN)
		refuse(a, UNAUTHORIZED,
			"this needs the token: a header Authorization: Bearer TOKEN");
	else if (r->too_long)
		refuse(a, TOO_LARGE, "the body is too long");
	else
		return false;
	return true;
}

void api_ask(const struct api *api, const struct api_request *r, struct api_answer *a)
{
	char id[24];
	const struct route *route = find_route(r->path, id);
	const bool get = !strcmp(r->method, "GET") || !strcmp(r->method, "HEAD");
	const bool put = !strcmp(r->method, "PUT");
	if (answer_stranger(r, route, a))
		return;
	if (!(get && (route->text || route->view)) && !(put && route->set)) {
		a->allow = methods(route);
		refuse(a, METHOD_NOT_ALLOWED,
			"this method is not allowed here. The header Allow lists the others");
	} else if (route->text != put_health && api->look(api->data)) {
		refuse(a, BROKEN, "programs can't be looked at");
	} else if (put) {
		answer_put(api, r, route, id, a);
	} else {
		answer_get(api, r, route, a);
	}
}

#endif
