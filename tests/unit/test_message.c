/* Control messages of gRPC: what protoc.py does not compare. */
#include "unit.h"

#include <errno.h>
#include <jansson.h>

#include "base/base64.h"
#include "store/model_config.h"
#include "wire/message.h"

static void assert_read(const char *name, const char *bytes, size_t n, const char *expected)
{
	struct error err = { .text = "" };
	json_t *value, *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
	if (message_read(name, bytes, n, &value, &err))
		fail_msg("%s", err.text);
	if (!json_equal(value, wanted))
		fail_msg("%s", json_dumps(value, JSON_ENCODE_ANY));
	json_decref(value);
	json_decref(wanted);
}

static void read_refused(const char *name, const char *bytes, size_t n, const char *sentence)
{
	struct error err = { .text = "" };
	json_t *value;
	assert_int_equal(message_read(name, bytes, n, &value, &err), -EINVAL);
	if (strcmp(err.text, sentence) != 0)
		fail_msg("%s", err.text);
}

#define READ(name, bytes, expected)    assert_read(name, bytes, sizeof bytes - 1, expected)
#define REFUSED(name, bytes, sentence) read_refused(name, bytes, sizeof bytes - 1, sentence)

static void fields_are_read_however_they_were_sent(void **state)
{
	(void)state;
	READ("ModelTensorReshape", "\x0a\x02\x01\x02\x08\x03", "{\"shape\": [1, 2, 3]}");
	READ("ModelTensorReshape", "", "{}");
	READ("ModelTensorReshape", "\x0a\x00", "{\"shape\": []}");
	/* The last of a field counts, and of a oneof. */
	READ("ModelReadyRequest",
		"\x0a\x01"
		"a\x0a\x01"
		"b",
		"{\"name\": \"b\"}");
	READ("InferParameter", "\x08\x01\x10\x05", "5");
	READ("InferParameter", "", "null");
	READ("InferParameter", "\x28\x07", "7");
	/* A field with another form, and one that nobody knows. */
	READ("ServerLiveResponse", "\x0d\x01\x02\x03\x04\x50\x05\x08\x01", "{\"live\": true}");
	/* An enum's number that a later version has. */
	READ("HealthCheckResponse", "\x08\x63", "{\"status\": 99}");
	READ("LogSettingsRequest", "\x0a\x0a\x0a\x04info\x12\x02\x08\x00",
		"{\"settings\": {\"info\": false}}");
	/* An entry without a key, and one without a value. */
	READ("ModelOperations",
		"\x0a\x01"
		"x",
		"{\"op_library_filename\": [\"x\"]}");
	READ("ModelDynamicBatching", "\x3a\x02\x08\x02",
		"{\"priority_queue_policy\": {\"2\": {}}}");
	READ("ModelDynamicBatching", "\x3a\x02\x12\x00",
		"{\"priority_queue_policy\": {\"0\": {}}}");
}

static void what_is_no_message_is_refused(void **state)
{
	(void)state;
	REFUSED("ServerLiveResponse", "\x08",
		"a field of ServerLiveResponse is cut off or is no protobuf");
	REFUSED("ServerLiveResponse", "\x00",
		"a field of ServerLiveResponse is cut off or is no protobuf");
	REFUSED("ModelReadyRequest",
		"\x0a\x05"
		"ab",
		"a field of ModelReadyRequest is cut off or is no protobuf");
	REFUSED("ModelReadyRequest", "\x0a\x01\xff", "name of ModelReadyRequest is not UTF-8");
	REFUSED("ModelTensorReshape", "\x0a\x02\x01\xff", "shape of ModelTensorReshape is cut off");
	REFUSED("LogSettingsRequest", "\x0a\x05\x0a\x01\xff\x12\x00",
		"settings of LogSettingsRequest has a key that is not UTF-8");
	REFUSED("MemoryUsage", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"byte_size of MemoryUsage is 2^63 or more");
	REFUSED("InferParameter", "\x21\0\0\0\0\0\0\xf8\x7f",
		"double_param of InferParameter is no number");
}

static int put(const char *name, const char *text, struct buf *b, struct error *err)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
	int rc;
	assert_non_null(value);
	rc = message_put(name, value, b, err);
	json_decref(value);
	return rc;
}

static void put_refused(const char *name, const char *text, const char *sentence)
{
	struct buf b = { 0 };
	struct error err = { .text = "" };
	buf_put_text(&b, "before");
	assert_int_equal(put(name, text, &b, &err), -EINVAL);
	if (strcmp(err.text, sentence) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(b.n, 6);
	buf_free(&b);
}

static void a_value_of_a_wrong_type_is_refused(void **state)
{
	(void)state;
	put_refused("ServerLiveResponse", "[]", "ServerLiveResponse is no object");
	put_refused("ServerLiveResponse", "{\"live\": 1}",
		"live of ServerLiveResponse is neither true nor false");
	put_refused("ModelReadyRequest", "{\"name\": 5}", "name of ModelReadyRequest is no text");
	put_refused(
		"ModelTensorReshape", "{\"shape\": 5}", "shape of ModelTensorReshape is no array");
	put_refused("ModelTensorReshape", "{\"shape\": [1, \"2\"]}",
		"shape of ModelTensorReshape is no integer of its range");
	put_refused("ModelWarmup", "{\"count\": -1}",
		"count of ModelWarmup is no integer of its range");
	put_refused("ModelConfig", "{\"max_batch_size\": 2147483648}",
		"max_batch_size of ModelConfig is no integer of its range");
	put_refused("MemoryUsage", "{\"byte_size\": -1}",
		"byte_size of MemoryUsage is no integer of its range");
	put_refused("HealthCheckResponse", "{\"status\": \"FINE\"}",
		"status of HealthCheckResponse is none of its names");
	put_refused("CudaSharedMemoryRegisterRequest", "{\"raw_handle\": \"a!\"}",
		"raw_handle of CudaSharedMemoryRegisterRequest is no base64");
	put_refused("LogSettingsResponse", "{\"settings\": {\"a\": 0.5}}",
		"a field of LogSettingsResponse.SettingValue has a value of a type that it can't have");
	put_refused("LogSettingsResponse", "{\"settings\": []}",
		"settings of LogSettingsResponse is no object");
	put_refused("ModelDynamicBatching", "{\"priority_queue_policy\": {\"first\": {}}}",
		"priority_queue_policy of ModelDynamicBatching has a key that is no number");
	put_refused("InferTensorContents", "{\"fp32_contents\": [true]}",
		"fp32_contents of InferTensorContents is no number");
}

static void what_is_not_sent_takes_no_bytes(void **state)
{
	struct buf b = { 0 };
	(void)state;
	assert_int_equal(
		put("ModelConfig",
			"{\"name\": \"\", \"max_batch_size\": 0, \"input\": [], \"parameters\": {}, \"platform\": null,"
			" \"unknown\": 5}",
			&b, NULL),
		0);
	assert_int_equal(put("ModelInstanceGroup", "{\"kind\": \"KIND_AUTO\", \"passive\": false}",
				 &b, NULL),
		0);
	assert_int_equal(put("TraceSettingRequest.SettingValue", "null", &b, NULL), 0);
	assert_int_equal(b.n, 0);
	/* A oneof says by being there which it is. */
	assert_int_equal(put("InferParameter", "false", &b, NULL), 0);
	assert_memory_equal(b.v, "\x08\x00", 2);
	b.n = 0;
	/* One value where a list of one is meant. */
	assert_int_equal(put("TraceSettingRequest.SettingValue", "\"OFF\"", &b, NULL), 0);
	assert_memory_equal(b.v, "\x0a\x03OFF", 5);
	buf_free(&b);
}

static void the_deepest_message_goes_both_ways(void **state)
{
	struct buf b = { 0 };
	(void)state;
	assert_int_equal(
		put("ModelConfigResponse",
			"{\"config\": {\"optimization\": {\"cuda\": {\"graph_spec\": [{\"graph_lower_bound\":"
			" {\"input\": {\"A\": {\"dim\": [1, 2]}}}}]}}}}",
			&b, NULL),
		0);
	assert_read("ModelConfigResponse", b.v, b.n,
		"{\"config\": {\"optimization\": {\"cuda\": {\"graph_spec\": [{\"graph_lower_bound\":"
		" {\"input\": {\"A\": {\"dim\": [1, 2]}}}}]}}}}");
	buf_free(&b);
}

static const char config[] =
	"{\"config\": {\"name\": \"m\", \"backend\": \"onnxruntime\", \"max_batch_size\": 8, \"input\":"
	" [{\"name\": \"A\", \"data_type\": \"TYPE_FP32\", \"dims\": [-1, 3]}], \"dynamic_batching\":"
	" {\"preferred_batch_size\": [4, 300], \"priority_queue_policy\": {\"1\": {\"max_queue_size\": 5}}},"
	" \"parameters\": {\"weir.deadline_us\": {\"string_value\": \"5000\"}}, \"version_policy\":"
	" {\"latest\": {\"num_versions\": 1}}, \"instance_group\": [{\"kind\": \"KIND_CPU\", \"count\": 1}]}}";

/* A copy whose last byte is the last of its memory, so that a sanitizer sees a read behind it. */
static int read_copy(const char *bytes, size_t n, struct error *err)
{
	char *copy = xmalloc(n + !n);
	json_t *value;
	int rc;
	memcpy(copy, bytes, n);
	rc = message_read("ModelConfigResponse", copy, n, &value, err);
	free(copy);
	if (!rc)
		json_decref(value);
	return rc;
}

static void bytes_may_end_or_be_wrong_anywhere(void **state)
{
	struct buf b = { 0 };
	(void)state;
	assert_int_equal(put("ModelConfigResponse", config, &b, NULL), 0);
	assert_read("ModelConfigResponse", b.v, b.n, config);
	for (size_t n = 1; n < b.n; n++) /* one field: it is complete at the end alone */
		assert_int_equal(read_copy(b.v, n, NULL), -EINVAL);
	for (size_t i = 0; i < b.n; i++) {
		const char was = b.v[i];
		for (int c = 0; c < 256; c++) {
			struct error err = { .text = "" };
			b.v[i] = (char)c;
			assert_true(!read_copy(b.v, b.n, &err) || *err.text);
		}
		b.v[i] = was;
	}
	buf_free(&b);
}

/* Whether all that is in `part` is in `whole`, too. */
static bool within(const json_t *part, json_t *whole)
{
	const char *key;
	json_t *value;
	if (json_is_array(part)) {
		for (size_t i = 0; i < json_array_size(part); i++)
			if (!within(json_array_get(part, i), json_array_get(whole, i)))
				return false;
		return json_array_size(part) == json_array_size(whole);
	}
	if (!json_is_object(part))
		return json_equal(part, whole);
	json_object_foreach((json_t *)part, key,
		value) if (!json_object_get(whole, key) ||
			   !within(value, json_object_get(whole, key))) return false;
	return true;
}

static void a_configuration_of_the_repository_can_be_sent(void **state)
{
	static const char text[] =
		"name: 'm' backend: 'onnxruntime' max_batch_size: 8\n"
		"input { name: 'A' data_type: TYPE_STRING dims: [ -1, 3 ] reshape { shape: [ 3, -1 ] } }\n"
		"output { name: 'Y' data_type: TYPE_FP32 dims: [ 1 ] label_filename: 'l' }\n"
		"version_policy { specific { versions: [ 1, 3 ] } }\n"
		"instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]\n"
		"dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100\n"
		" priority_levels: 2 default_priority_level: 1 default_queue_policy { max_queue_size: 5\n"
		" timeout_action: DELAY } priority_queue_policy { key: 2 value { max_queue_size: 9 } } }\n"
		"optimization { cuda { graphs: true graph_spec { batch_size: 4 input { key: 'A' value\n"
		" { dim: [ 3 ] } } } } }\n"
		"model_warmup { name: 'w' batch_size: 1 inputs { key: 'A' value { data_type: TYPE_STRING\n"
		" dims: [ 1, 3 ] zero_data: true } } }\n"
		"parameters { key: 'weir.deadline_us' value { string_value: '5000' } }\n";
	struct model_config *c;
	struct buf warnings = { 0 }, b = { 0 };
	struct error err = { .text = "" };
	json_t *sent, *got;
	(void)state;
	if (config_read(text, strlen(text), "config.pbtxt", &c, &warnings, &err))
		fail_msg("%s", err.text);
	sent = json_pack("{s:o}", "config", config_json(c));
	if (message_put("ModelConfigResponse", sent, &b, &err) ||
		message_read("ModelConfigResponse", b.v, b.n, &got, &err))
		fail_msg("%s", err.text);
	if (!within(got, sent))
		fail_msg("%s\n%s", json_dumps(got, 0), json_dumps(sent, 0));
	assert_int_equal(json_array_size(json_object_get(
				 json_object_get(json_object_get(json_object_get(got, "config"),
							 "version_policy"),
					 "specific"),
				 "versions")),
		2);
	json_decref(sent);
	json_decref(got);
	buf_free(&b);
	buf_free(&warnings);
	config_free(c);
}

static void base64_goes_both_ways(void **state)
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe\xfd", "//79" } };
	static const char *const wrong[] = { "Z", "Zg=", "Zg==x", "Z===", "=", "Zm9vY", "Zm 9" };
	struct buf b = { 0 };
	char back[BASE64_BYTES(8)];
	size_t n = 0;
	(void)state;
	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		b.n = 0;
		base64_put(&b, pairs[i][0], strlen(pairs[i][0]));
		assert_true(slice_is(buf_slice(&b), pairs[i][1]));
		assert_int_equal(base64_read(slice_of(pairs[i][1]), back, &n), 0);
		assert_true(slice_is((struct slice){ back, n }, pairs[i][0]));
	}
	assert_int_equal(base64_read(SLICE("Zg"), back, &n), 0); /* without its padding */
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		if (base64_read(slice_of(wrong[i]), back, &n) != -EINVAL)
			fail_msg("%s", wrong[i]);
	assert_int_equal(n, 1);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read_however_they_were_sent),
		cmocka_unit_test(what_is_no_message_is_refused),
		cmocka_unit_test(a_value_of_a_wrong_type_is_refused),
		cmocka_unit_test(what_is_not_sent_takes_no_bytes),
		cmocka_unit_test(the_deepest_message_goes_both_ways),
		cmocka_unit_test(bytes_may_end_or_be_wrong_anywhere),
		cmocka_unit_test(a_configuration_of_the_repository_can_be_sent),
		cmocka_unit_test(base64_goes_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
