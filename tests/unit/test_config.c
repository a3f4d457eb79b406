/* Model configurations: text format, JSON, defaults, what contradicts a model. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "store/model_config.h"

static struct error err;
static char warnings[4096];

static struct model_config *read_n(const char *text, size_t n)
{
	struct model_config *c = NULL;
	struct buf b = { 0 };
	err.text[0] = '\0';
	const int e = config_read(text, n, "config.pbtxt", &c, &b, &err);
	assert_true(e == 0 || (e == -EINVAL && !c && *err.text));
	snprintf(warnings, sizeof warnings, "%s", buf_text(&b));
	buf_free(&b);
	return c;
}

static struct model_config *read_text(const char *text)
{
	return read_n(text, strlen(text));
}

static struct model_config *good(const char *text)
{
	struct model_config *c = read_text(text);
	if (!c)
		print_error("%s\nin: %s\n", err.text, text);
	assert_non_null(c);
	return c;
}

static void check_bad(const char *text, const char *message)
{
	struct model_config *c = read_text(text);
	if (c || strcmp(err.text, message) != 0)
		print_error("%s\ngave: %s\n", text, c ? "no error" : err.text);
	assert_null(c);
	assert_string_equal(err.text, message);
}

static struct model_config *read_json(const char *json)
{
	json_error_t why;
	json_t *object = json_loads(json, 0, &why);
	struct model_config *c = NULL;
	struct buf b = { 0 };
	if (!object)
		print_error("%s\n", why.text);
	assert_non_null(object);
	err.text[0] = '\0';
	const int e = config_from_json(object, "the request", &c, &b, &err);
	assert_true(e == 0 || (e == -EINVAL && !c && *err.text));
	json_decref(object);
	snprintf(warnings, sizeof warnings, "%s", buf_text(&b));
	buf_free(&b);
	return c;
}

/* What is printed with all defaults is read as the same. */
static void check_round_trip(const struct model_config *c)
{
	struct model_config *again = NULL;
	struct buf b = { 0 };
	json_t *first = config_json(c);
	assert_int_equal(config_from_json(first, "again", &again, &b, &err), 0);
	json_t *second = config_json(again);
	assert_true(json_equal(first, second));
	json_decref(first);
	json_decref(second);
	config_free(again);
	buf_free(&b);
}

static void check_json(const struct model_config *c, const char *want)
{
	json_t *v = config_json(c);
	char *text = json_dumps(v, JSON_COMPACT);
	assert_string_equal(text, want);
	free(text);
	json_decref(v);
	check_round_trip(c);
}

static void an_image_model_is_read_as_it_is_written(void **state)
{
	struct model_config *c = good("name: \"images\"\n"
				      "platform: \"onnxruntime_onnx\"\n"
				      "max_batch_size : 0\n"
				      "input [\n"
				      "  {\n"
				      "    name: \"data_0\"\n"
				      "    data_type: TYPE_FP32\n"
				      "    format: FORMAT_NCHW\n"
				      "    dims: [ 3, 224, 224 ]\n"
				      "    reshape { shape: [ 1, 3, 224, 224 ] }\n"
				      "  }\n"
				      "]\n"
				      "output [\n"
				      "  {\n"
				      "    name: \"fc6_1\"\n"
				      "    data_type: TYPE_FP32\n"
				      "    dims: [ 1000 ]\n"
				      "    reshape { shape: [ 1, 1000, 1, 1 ] }\n"
				      "    label_filename: \"labels.txt\"\n"
				      "  }\n"
				      "]\n");
	assert_string_equal(warnings, "");
	assert_string_equal(c->name, "images");
	assert_string_equal(c->platform, "onnxruntime_onnx");
	assert_string_equal(c->backend, "");
	assert_int_equal(c->max_batch_size, 0);
	assert_int_equal(c->inputs, 1);
	assert_int_equal(c->input->type, DTYPE_FP32);
	assert_int_equal(c->input->dims.n, 3);
	assert_int_equal(c->input->dims.dims[1], 224);
	assert_true(c->input->has_reshape);
	assert_int_equal(c->input->reshape.n, 4);
	assert_string_equal(c->output->label_filename, "labels.txt");
	check_round_trip(c);
	config_free(c);
}

static void an_empty_configuration_has_the_defaults(void **state)
{
	struct model_config *c = good(" # nothing\n");
	config_set_name(c, "m");
	assert_int_equal(c->inputs + c->outputs + c->parameters + c->instance_groups, 0);
	assert_false(c->has_dynamic_batching);
	assert_true(c->weir_weight == 1);
	check_json(c,
		"{\"name\":\"m\",\"platform\":\"\",\"backend\":\"\",\"runtime\":\"\","
		"\"version_policy\":{\"latest\":{\"num_versions\":1}},\"max_batch_size\":0,"
		"\"input\":[],\"output\":[],\"batch_input\":[],\"batch_output\":[],"
		"\"optimization\":{\"priority\":\"PRIORITY_DEFAULT\",\"input_pinned_memory\":"
		"{\"enable\":true},\"output_pinned_memory\":{\"enable\":true},"
		"\"gather_kernel_buffer_threshold\":0,\"eager_batching\":false},"
		"\"instance_group\":[{\"name\":\"m\",\"kind\":\"KIND_AUTO\",\"count\":1,"
		"\"gpus\":[],\"secondary_devices\":[],\"profile\":[],\"passive\":false,"
		"\"host_policy\":\"\"}],\"default_model_filename\":\"\",\"cc_model_filenames\":{},"
		"\"metric_tags\":{},\"parameters\":{},\"model_warmup\":[]}");
	config_free(c);
}

static void dynamic_batching_has_all_its_fields(void **state)
{
	struct model_config *c = good(
		"max_batch_size: 8\n"
		"dynamic_batching {\n"
		"  preferred_batch_size: [ 4, 8 ]\n"
		"  max_queue_delay_microseconds: 100\n"
		"  preserve_ordering: true\n"
		"  priority_levels: 3\n"
		"  default_priority_level: 2\n"
		"  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5000\n"
		"    allow_timeout_override: t max_queue_size: 10 }\n"
		"  priority_queue_policy { key: 3 value { max_queue_size: 0x20 } }\n"
		"  priority_queue_policy: { value: < default_timeout_microseconds: 7 > key: 1 }\n"
		"}\n"
		"parameters { key: \"weir.deadline_us\" value { string_value: \"20000\" } }\n"
		"parameters: [ { key: 'weir.buckets' value: { string_value: '1, 2,8' } },\n"
		"  { key: \"weir.weight\", value: { string_value: \"2.5\" } },\n"
		"  { key: \"threads\" value { string_value: \"4\" } } ]\n");
	const struct config_batching *b = &c->dynamic_batching;
	assert_true(c->has_dynamic_batching);
	assert_int_equal(b->preferreds, 2);
	assert_int_equal(b->preferred[1], 8);
	assert_int_equal(b->max_delay_us, 100);
	assert_true(b->preserve_ordering);
	assert_int_equal(b->priority_levels, 3);
	assert_int_equal(b->default_priority, 2);
	assert_int_equal(b->queue_policy.timeout_action, CONFIG_TIMEOUT_DELAY);
	assert_int_equal(b->queue_policy.timeout_us, 5000);
	assert_true(b->queue_policy.allow_override);
	assert_int_equal(config_queue_policy(c, 1)->timeout_us, 7);
	assert_int_equal(config_queue_policy(c, 2)->max_queue, 10);
	assert_int_equal(config_queue_policy(c, 3)->max_queue, 32);
	assert_int_equal(c->weir_deadline_us, 20000);
	assert_true(c->weir_weight == 2.5);
	assert_int_equal(c->weir_buckets, 3);
	assert_int_equal(c->weir_bucket[2], 8);
	assert_string_equal(config_parameter(c, "threads"), "4");
	assert_null(config_parameter(c, "thread"));
	check_round_trip(c);
	config_free(c);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	check_bad("max_batch_size: 1\nmax_batchsize: 2",
		"config.pbtxt:2: ModelConfig has no field max_batchsize, did you mean max_batch_size?");
	check_bad("zzz: 2", "config.pbtxt:1: ModelConfig has no field zzz");
	check_bad("\n\nensemble_scheduling { step [ { model_name: \"a\" } ] }",
		"config.pbtxt:3: ensemble_scheduling is not possible: a request runs one model, so let "
		"the client call the models one after another");
	check_bad("max_batch_size: 2 max_batch_size: 3",
		"config.pbtxt:1: max_batch_size stands there twice");
}

static void json_has_both_spellings(void **state)
{
	struct model_config *c = read_json(
		"{\"maxBatchSize\": 8, \"dynamic_batching\": {\"maxQueueDelayMicroseconds\": \"5\"},"
		"\"input\": [{\"name\": \"x\", \"dataType\": \"TYPE_STRING\", \"dims\": [\"-1\", 2]}]}");
	assert_non_null(c);
	assert_int_equal(c->max_batch_size, 8);
	assert_int_equal(c->dynamic_batching.max_delay_us, 5);
	assert_int_equal(c->input->type, DTYPE_BYTES);
	assert_int_equal(c->input->dims.dims[0], -1);
	check_round_trip(c);
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_model_is_read_as_it_is_written),
		cmocka_unit_test(an_empty_configuration_has_the_defaults),
		cmocka_unit_test(dynamic_batching_has_all_its_fields),
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(json_has_both_spellings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
