/* Paths of REST and methods of gRPC. */
#include "unit.h"

#include <errno.h>
#include <jansson.h>

#include "wire/message.h"
#include "wire/route.h"
#include "wire/status.h"

static char names[ROUTE_NAMES];

static struct route_match found(const char *verb, const char *path)
{
	struct route_match m;
	struct error err = { .text = "" };
	if (route_find_rest(slice_of(verb), slice_of(path), names, &m, &err))
		fail_msg("%s %s: %s", verb, path, err.text);
	return m;
}

static void refused(const char *verb, const char *path, int code, const char *sentence)
{
	struct route_match m;
	struct error err = { .text = "" };
	const int rc = route_find_rest(slice_of(verb), slice_of(path), names, &m, &err);
	if (rc != code || !strstr(err.text, sentence))
		fail_msg("%s %s: %d, '%s'", verb, path, rc, err.text);
}

static void each_path_has_its_route(void **state)
{
	static const struct {
		const char *verb, *path;
		enum route route;
	} cases[] = {
		{ "GET", "/metrics", ROUTE_METRICS },
		{ "GET", "/v2", ROUTE_SERVER },
		{ "GET", "/v2/health/live", ROUTE_LIVE },
		{ "GET", "/v2/health/ready", ROUTE_READY },
		{ "GET", "/v2/models/m", ROUTE_MODEL },
		{ "GET", "/v2/models/m/versions/3", ROUTE_MODEL },
		{ "POST", "/v2/models/m/infer", ROUTE_INFER },
		{ "POST", "/v2/models/m/versions/3/infer", ROUTE_INFER },
		{ "GET", "/v2/models/m/ready", ROUTE_MODEL_READY },
		{ "GET", "/v2/models/m/versions/1/config", ROUTE_CONFIG },
		{ "GET", "/v2/models/stats", ROUTE_STATS },
		{ "GET", "/v2/models/m/stats", ROUTE_STATS },
		{ "GET", "/v2/models/m/versions/1/stats", ROUTE_STATS },
		{ "POST", "/v2/models/m/trace/setting", ROUTE_TRACE },
		{ "GET", "/v2/models/m/versions/1/trace/setting", ROUTE_TRACE },
		{ "GET", "/v2/trace/setting", ROUTE_TRACE },
		{ "POST", "/v2/logging", ROUTE_LOG },
		{ "POST", "/v2/repository/index", ROUTE_INDEX },
		{ "POST", "/v2/repository/models/m/load", ROUTE_LOAD },
		{ "POST", "/v2/repository/models/m/unload", ROUTE_UNLOAD },
		{ "GET", "/v2/systemsharedmemory/status", ROUTE_SHM_STATUS },
		{ "GET", "/v2/systemsharedmemory/region/r/status", ROUTE_SHM_STATUS },
		{ "POST", "/v2/systemsharedmemory/region/r/register", ROUTE_SHM_REGISTER },
		{ "POST", "/v2/systemsharedmemory/unregister", ROUTE_SHM_UNREGISTER },
		{ "POST", "/v2/cudasharedmemory/region/r/unregister", ROUTE_CUDA_SHM_UNREGISTER },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		if (found(cases[i].verb, cases[i].path).route != cases[i].route)
			fail_msg("%s", cases[i].path);
}

static void names_are_decoded(void **state)
{
	const struct route_match m = found("POST", "/v2/models/a%20b%2Fc/versions/12/infer");
	char *path = xasprintf("/v2/models/%0300d/infer", 0);
	(void)state;
	assert_true(slice_is(m.model, "a b/c"));
	assert_true(slice_is(m.version, "12"));
	assert_null(m.region.at);
	assert_true(slice_is(found("GET", "/v2/systemsharedmemory/region/r1/status").region, "r1"));
	refused("GET", "/v2/models/a%2", -EINVAL, "malformed %-escape");
	refused("GET", "/v2/models/a%zz", -EINVAL, "malformed %-escape");
	refused("GET", "/v2/models/a%00", -EINVAL, "control character");
	refused("POST", path, -EINVAL, "more than 255 bytes");
	free(path);
}

static void other_paths_and_verbs_are_refused(void **state)
{
	(void)state;
	refused("GET", "", -ENOENT, "no path");
	refused("GET", "v2", -ENOENT, "no path 'v2'");
	refused("GET", "/", -ENOENT, "no path");
	refused("GET", "/v2/", -ENOENT, "no path");
	refused("GET", "/v3", -ENOENT, "no path '/v3'");
	refused("GET", "/v2/models//ready", -ENOENT, "no path");
	refused("GET", "/v2/models/m/versions/one", -ENOENT, "no path");
	refused("GET", "/a/b/c/d/e/f/g/h/i", -ENOENT, "no path");
	refused("GET", "/\xff\x1b", -ENOENT, "no path '/?");
	refused("GET", "/v2/models/m/infer", -ENOSYS, "takes POST");
	refused("DELETE", "/v2/logging", -ENOSYS, "takes GET POST");
	refused("POS", "/v2/logging", -ENOSYS, "takes GET POST");
	refused("POST", "/v2/models/m/generate", -EOPNOTSUPP, "call infer");
	refused("POST", "/v2/models/m/versions/1/generate_stream", -EOPNOTSUPP, "call infer");
}

static void each_method_has_its_route(void **state)
{
	struct route_match m;
	struct error err = { .text = "" };
	size_t methods = 0;
	(void)state;
	for (size_t i = 0; i < route_row_count; i++) {
		const struct route_row *row = &route_rows[i];
		if (!row->method || row->route == ROUTE_NONE)
			continue;
		assert_int_equal(route_find_grpc(slice_of(row->method), &m, &err), 0);
		assert_int_equal(m.route, row->route);
		message_has(row->request, ""); /* aborts where there is no such message */
		message_has(row->answer, "");
		methods++;
	}
	assert_int_equal(methods, 21);
	assert_int_equal(
		route_find_grpc(SLICE("/inference.GRPCInferenceService/ModelInfer"), &m, &err), 0);
	assert_int_equal(m.route, ROUTE_INFER);
	assert_int_equal(route_find_grpc(SLICE("/grpc.health.v1.Health/Check"), &m, &err), 0);
	assert_int_equal(m.route, ROUTE_HEALTH_CHECK);
	assert_int_equal(
		route_find_grpc(SLICE("/grpc.health.v1.Health/Watch"), &m, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "call Check"));
	assert_int_equal(route_find_grpc(SLICE("/a.B/C"), &m, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "no method '/a.B/C'"));
}

static void assert_request(
	const char *verb, const char *path, const char *body, const char *expected)
{
	const struct route_match m = found(verb, path);
	struct error err = { .text = "" };
	json_t *request, *wanted = json_loads(expected, 0, NULL);
	if (route_request(&m, body ? json_loads(body, 0, NULL) : NULL, &request, &err))
		fail_msg("%s", err.text);
	if (!json_equal(request, wanted))
		fail_msg("%s: %s", path, json_dumps(request, 0));
	json_decref(request);
	json_decref(wanted);
}

static void the_path_and_the_body_make_one_request(void **state)
{
	const struct route_match m = found("POST", "/v2/logging");
	struct error err = { .text = "" };
	json_t *request;
	(void)state;
	assert_request("GET", "/v2/models/m/versions/2/config", NULL,
		"{\"name\": \"m\", \"version\": \"2\"}");
	assert_request("GET", "/v2/models/stats", NULL, "{}");
	assert_request("POST", "/v2/repository/index", "{\"ready\": true}", "{\"ready\": true}");
	assert_request("POST", "/v2/repository/models/m/load",
		"{\"parameters\": {\"config\": \"{}\"}}",
		"{\"model_name\": \"m\", \"parameters\": {\"config\": \"{}\"}}");
	assert_request("POST", "/v2/systemsharedmemory/region/r/register",
		"{\"key\": \"/k\", \"offset\": 0, \"byte_size\": 64}",
		"{\"name\": \"r\", \"key\": \"/k\", \"offset\": 0, \"byte_size\": 64}");
	assert_request("POST", "/v2/logging", "{\"log_info\": false}",
		"{\"settings\": {\"log_info\": false}}");
	assert_request("POST", "/v2/models/m/trace/setting", "{\"trace_rate\": \"5\"}",
		"{\"settings\": {\"trace_rate\": \"5\"}, \"model_name\": \"m\"}");
	assert_int_equal(route_request(&m, json_array(), &request, &err), -EINVAL);
}

static void assert_answer(
	const char *verb, const char *path, const char *answer, const char *expected)
{
	json_t *value = route_answer(found(verb, path).row, json_loads(answer, 0, NULL)),
	       *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
	if (!json_equal(value, wanted))
		fail_msg("%s: %s", path, json_dumps(value, JSON_ENCODE_ANY));
	json_decref(value);
	json_decref(wanted);
}

static void rest_sends_the_part_that_triton_sends(void **state)
{
	(void)state;
	assert_answer("GET", "/v2", "{\"name\": \"weir\"}", "{\"name\": \"weir\"}");
	assert_answer("GET", "/v2/models/m/config", "{\"config\": {\"name\": \"m\"}}",
		"{\"name\": \"m\"}");
	assert_answer("POST", "/v2/repository/index", "{\"models\": [{\"name\": \"m\"}]}",
		"[{\"name\": \"m\"}]");
	assert_answer("GET", "/v2/systemsharedmemory/status",
		"{\"regions\": {\"r\": {\"name\": \"r\", \"key\": \"/k\"}}}",
		"[{\"name\": \"r\", \"key\": \"/k\"}]");
	assert_answer("GET", "/v2/logging", "{\"settings\": {\"log_info\": true}}",
		"{\"log_info\": true}");
}

static void each_failure_has_two_codes(void **state)
{
	(void)state;
	assert_int_equal(status_of(0)->http, 200);
	assert_int_equal(status_of(-EINVAL)->http, 400);
	assert_int_equal(status_of(-EINVAL)->grpc, 3);
	assert_int_equal(status_of(-ENOENT)->http, 404);
	assert_int_equal(status_of(-ENOBUFS)->http, 429);
	assert_int_equal(status_of(-ETIME)->grpc, 4);
	assert_string_equal(status_of(-ETIME)->name, "DEADLINE_EXCEEDED");
	assert_int_equal(status_of(-ENOSYS)->http, 405);
	assert_int_equal(status_of(-EACCES)->grpc, 16);
	assert_int_equal(status_of(-EIO)->grpc, 13);
	assert_ptr_equal(status_of(-EDOM), status_of(-EIO));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_path_has_its_route),
		cmocka_unit_test(names_are_decoded),
		cmocka_unit_test(other_paths_and_verbs_are_refused),
		cmocka_unit_test(each_method_has_its_route),
		cmocka_unit_test(the_path_and_the_body_make_one_request),
		cmocka_unit_test(rest_sends_the_part_that_triton_sends),
		cmocka_unit_test(each_failure_has_two_codes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
