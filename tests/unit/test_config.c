/* Model configurations: text format, JSON, defaults, what contradicts a model. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "store/config_reader.h"
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
	json_t *object = json_loads(json, JSON_ALLOW_NUL, &why);
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

/* A configuration that is printed with all defaults is read as the same. */
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
	assert_string_equal(parameter_find(c->parameter, c->parameters, "threads"), "4");
	assert_null(parameter_find(c->parameter, c->parameters, "thread"));
	check_round_trip(c);
	config_free(c);
}

static void all_of_the_text_format_is_read(void **state)
{
	struct model_config *c = good(
		"# a comment\n"
		"name: 'a' \"b\" # and another\n"
		"  'c\\x41\\102\\n\\t\\\\\\'\\\"\\u00e9\\U0001F600\\ud83d\\ude00'; max_batch_size: 0x10,\n"
		"input { name: \"i\" data_type: 11 dims: 010 dims: - 1; dims: [ 2, 3 ], dims: [] }\n"
		"input: [ < name: 'j' data_type: TYPE_STRING optional: True >, "
		"{ name: 'k', optional: f } ];\r\n"
		"input: { name: \"l\" optional: 1 }; output []\n"
		"optimization { graph { level: -2147483648 } }\n"
		"parameters { key: 'weir.weight' value { string_value: '1.5e+1f' } }\n"
		"parameters { value { string_value: 'no key' } } parameters { key: 'no value' }\n"
		"parameters { key: 'no value' value < > }\n"
		"model_warmup { batch_size: 1 inputs { key: 'i' value { dims: 1 zero_data: false "
		"data_type: TYPE_BF16 } } }");
	assert_string_equal(c->name, "abcAB\n\t\\'\"\u00e9\U0001F600\U0001F600");
	assert_int_equal(c->max_batch_size, 16);
	assert_int_equal(c->inputs, 4);
	assert_int_equal(c->input[0].type, DTYPE_FP32);
	assert_int_equal(c->input[0].dims.n, 4);
	assert_int_equal(c->input[0].dims.dims[0], 8);
	assert_int_equal(c->input[0].dims.dims[1], -1);
	assert_int_equal(c->input[0].dims.dims[3], 3);
	assert_int_equal(c->input[1].type, DTYPE_BYTES);
	assert_true(c->input[1].optional && !c->input[2].optional && c->input[3].optional);
	assert_int_equal(c->outputs, 0);
	assert_int_equal(c->graph_level, INT32_MIN);
	assert_true(c->weir_weight == 15);
	assert_string_equal(parameter_find(c->parameter, c->parameters, ""), "no key");
	assert_string_equal(parameter_find(c->parameter, c->parameters, "no value"), "");
	assert_int_equal(c->parameters, 3);
	assert_true(c->warmup->input->zero);
	assert_false(c->warmup->input->random);
	assert_string_equal(c->warmup->input->file, "");
	check_round_trip(c);
	config_free(c);
}

/* Faulty texts, and the message about each, behind the name of the file. */
static const struct {
	const char *text, *message;
} wrong[] = {
	{ "max_batch_size: 1\nmax_batchsize: 2", "2: ModelConfig has no field max_batchsize, did "
						 "you mean max_batch_size?" },
	{ "zzzzzzzz: 2", "1: ModelConfig has no field zzzzzzzz" },
	{ "maxBatchSize: 2", "1: ModelConfig has no field maxBatchSize, did you mean "
			     "max_batch_size?" },
	{ "\n\nensemble_scheduling { step [ { model_name: \"a\" } ] }",
		"3: ensemble_scheduling is not possible: a request runs one model, so let the "
		"client call the models one after another" },
	{ "max_batch_size: 2 max_batch_size: 3", "1: max_batch_size stands there twice" },
	{ "max_batch_size: [2]", "1: max_batch_size takes one value, not a list" },
	{ "max_batch_size 2", "1: a colon was expected, not 2" },
	{ "max_batch_size: 2.0", "1: max_batch_size takes a whole number, not 2.0" },
	{ "max_batch_size: 1e2", "1: max_batch_size takes a whole number, not 1e2" },
	{ "max_batch_size: 0x", "1: max_batch_size takes a whole number, not 0x" },
	{ "max_batch_size: 09", "1: max_batch_size takes a whole number, not 09" },
	{ "max_batch_size: 2147483648", "1: the number of max_batch_size is too large" },
	{ "max_batch_size: 99999999999999999999",
		"1: max_batch_size takes a whole number, not 99999999999999999999" },
	{ "max_batch_size: -1", "1: max_batch_size is -1; it is 0 or more" },
	{ "max_batch_size: 'a'", "1: max_batch_size takes no string" },
	{ "max_batch_size: a", "1: max_batch_size takes a number, not a" },
	{ "max_batch_size:", "1: the text ends where a value was expected" },
	{ "name: 3", "1: name takes no number" },
	{ "name: abc", "1: name takes a string in quotes, not abc" },
	{ "name: 'abc", "1: the string of name has no closing ' in its line" },
	{ "name: 'ab\nc'", "1: the string of name has no closing ' in its line" },
	{ "name: 'ab\\", "1: the string of name has an escape that does not exist" },
	{ "name: '\\q'", "1: the string of name has an escape that does not exist" },
	{ "name: '\\ud83d'", "1: the string of name has an escape that does not exist" },
	{ "name: '\\400'", "1: the string of name has an escape that does not exist" },
	{ "name: '\\0'", "1: the string of name is not UTF-8, or it has a zero byte" },
	{ "name: '\\377'", "1: the string of name is not UTF-8, or it has a zero byte" },
	{ "input {\n  name: 'a'\n", "1: ModelInput has no closing }" },
	{ "input <\n  name: 'a'\n}", "3: the name of a field was expected, not }" },
	{ "input [\n { name: 'a' }\n { name: 'b' }\n]", "3: , or ] was expected, not {" },
	{ "input {\n name: 'a' dims: [ 1, ]\n}", "2: a value was expected, not ]" },
	{ "input: 3", "1: { was expected, not 3" },
	{ "[x.y]: 3", "1: the name of a field was expected, not [" },
	{ "input { data_type: FP32 }", "1: data_type takes a type such as TYPE_FP32, not FP32" },
	{ "input { data_type: 15 }", "1: data_type has no value 15" },
	{ "input { format: NHWC }",
		"1: format takes FORMAT_NONE or another of its values, not NHWC" },
	{ "input { format: -1 }", "1: format has no value -1" },
	{ "input { optional: 2 }", "1: optional takes no number" },
	{ "input { optional: yes }", "1: optional takes true or false, not yes" },
	{ "input {\n dims: 1\n}", "1: this input has no name" },
	{ "input {name: 'a'}\noutput {name: 'a'}\noutput {name: 'a'}",
		"3: there are two outputs with the name a" },
	{ "input { name: 'a' dims: [\n1,\n0 ] }", "3: a dimension in dims of a is 0; it is 1 "
						  "or more, or -1 for any size" },
	{ "input { name: 'a' dims: [1,1,1,1,1,1,1,1,1] }",
		"1: dims of a has more than 8 dimensions" },
	{ "max_batch_size: 1\ninput { name: 'a' dims: [1,1,1,1,1,1,1,1] }",
		"2: dims of a has more than 7 dimensions" },
	{ "input { name: 'a' dims: [4294967296, 4294967296] }", "1: a has more elements than fit" },
	{ "input { name: 'a' dims: [2, 3]\nreshape { shape: 5 } }",
		"1: dims and reshape of a have different numbers of elements" },
	{ "dynamic_batching {\npreferred_batch_size: 2 }",
		"2: preferred_batch_size has 2, and max_batch_size is 0" },
	{ "dynamic_batching { priority_levels: 2 }",
		"1: default_priority_level is 0, and priority_levels is 2" },
	{ "dynamic_batching { priority_levels: 1 default_priority_level: 2 }",
		"1: default_priority_level is 2, and priority_levels is 1" },
	{ "dynamic_batching {\npriority_queue_policy { key: 1 value {} } }",
		"2: priority_queue_policy has the level 1, and priority_levels is 0" },
	{ "dynamic_batching { max_queue_delay_microseconds: -1 }",
		"1: max_queue_delay_microseconds takes no number below 0" },
	{ "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
		"1: the number of max_queue_delay_microseconds is too large" },
	{ "dynamic_batching {}\nsequence_batching {}",
		"2: sequence_batching is not possible: Weir keeps no state between requests" },
	{ "version_policy { all {} latest { num_versions: 1 } }",
		"1: ModelVersionPolicy has either all or latest, not both" },
	{ "version_policy { latest {} }", "1: num_versions of latest is 1 or more" },
	{ "version_policy { specific {} }", "1: specific lists no version" },
	{ "version_policy { specific { versions: 0 } }", "1: a version is 1 or more, not 0" },
	{ "\ninstance_group { count: -2 }",
		"2: count of an instance_group is -2; it is 1 or more" },
	{ "instance_group { kind: KIND_CPU gpus: 0 }",
		"1: this instance_group lists gpus, and its kind has none" },
	{ "instance_group { gpus: -1 }", "1: a GPU has a number of 0 or more, not -1" },
	{ "model_warmup { name: 'w' }", "1: batch_size of a model_warmup is 0; it is 1 to 1" },
	{ "model_warmup { batch_size: 1 inputs { key: 'a' value { dims: 1 } } }",
		"1: the warm-up input a needs data_type, and one of zero_data, random_data and "
		"input_data_file" },
	{ "model_warmup { batch_size: 1 inputs { key: 'a' value {\ndims: -1 zero_data: true "
	  "data_type: TYPE_BOOL } } }",
		"1: the dimensions of the warm-up input a are known ones" },
	{ "\nparameters { key: 'weir.deadline' value { string_value: '1' } }",
		"2: Weir has no field deadline, did you mean deadline_us?" },
	{ "parameters { key: 'weir.deadline_us' value { string_value: '1ms' } }",
		"1: deadline_us takes a whole number, not 1ms" },
	{ "parameters { key: 'weir.deadline_us' value { string_value: '1 2' } }",
		"1: the end of the value was expected, not 2" },
	{ "parameters { key: 'weir.weight' value { string_value: '0' } }",
		"1: weir.weight is 0; it is .001 to 1000" },
	{ "parameters { key: 'weir.weight' value { string_value: 'nan' } }",
		"1: weight takes a number, not nan" },
	{ "max_batch_size: 4\nparameters { key: 'weir.buckets' value { string_value: '2,2' } }",
		"2: weir.buckets are ascending batch sizes up to max_batch_size, which is 4" },
	{ "max_batch_size: 4 parameters { key: 'weir.buckets' value { string_value: '8' } }",
		"1: weir.buckets are ascending batch sizes up to max_batch_size, which is 4" },
};

static void what_is_wrong_is_said_with_its_line(void **state)
{
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		char message[400];
		snprintf(message, sizeof message, "config.pbtxt:%s", wrong[i].message);
		check_bad(wrong[i].text, message);
	}
}

static const char *sample(const struct config_field *f)
{
	switch (f->kind) {
	case KIND_MESSAGE:
		return f->label == LABEL_MAP ? "{ key: 'a' value {} }" : "{}";
	case KIND_STRING:
		return f->label == LABEL_MAP ? "{ key: 'a' value: 'b' }" : ": 'a'";
	case KIND_BOOL:
		return ": true";
	default:
		return ": 1";
	}
}

/* Each row of api/config.tbl that is refused or ignored, in the messages around it. */
static unsigned check_uses(
	const struct config_message *m, const char *before, const char *behind, unsigned line)
{
	unsigned n = 0;
	for (const struct config_field *f = m->fields; f->name; f++) {
		char text[600], want[300], opening[300], closing[300];
		if (f->use == USE_REFUSED || f->use == USE_IGNORED) {
			snprintf(
				text, sizeof text, "%s%s %s%s", before, f->name, sample(f), behind);
			snprintf(want, sizeof want,
				f->use == USE_REFUSED ? "config.pbtxt:%u: %s is not possible: %s"
						      : "config.pbtxt:%u: Weir ignores %s: %s\n",
				line, f->name, f->why);
			config_free(read_text(text));
			assert_string_equal(f->use == USE_REFUSED ? err.text : warnings, want);
			n++;
		}
		const bool map = f->label == LABEL_MAP || f->label == LABEL_LEVELS;
		if (!f->message || f->use == USE_REFUSED)
			continue;
		snprintf(opening, sizeof opening, "%s%s {%s\n", before, f->name,
			map ? " key: 1 value {" : "");
		snprintf(closing, sizeof closing, "%s}%s", map ? "}" : "", behind);
		n += check_uses(f->message, opening, closing, line + 1);
	}
	return n;
}

static void a_field_that_is_not_used_is_refused_or_warned_of(void **state)
{
	const unsigned n = check_uses(&config_ModelConfig, "", "", 1);
	assert_in_range(n, 25, 60);
	/* The default value says the same as nothing, and so does an empty list. */
	config_free(good("model_transaction_policy { decoupled: false }\n"
			 "batch_input [ ] batch_output: [\n],\n"
			 "response_cache { enable: false } runtime: ''\n"
			 "input { name: 'a' allow_ragged_batch: false }"));
	assert_string_equal(warnings, "");
	assert_null(read_text("batch_input [ { } ]"));
}

static void json_has_both_spellings(void **state)
{
	struct model_config *c = read_json(
		"{\"maxBatchSize\": 8.0, \"dynamic_batching\": {\"maxQueueDelayMicroseconds\": \"5\","
		"\"priorityLevels\": 1, \"defaultPriorityLevel\": 1, \"preserveOrdering\": true,"
		"\"priorityQueuePolicy\": {\"1\": {\"timeoutAction\": 1}}},"
		"\"input\": [{\"name\": \"x\", \"dataType\": \"TYPE_STRING\", \"dims\": [\"-1\", 2],"
		"\"reshape\": null}], \"output\": [], \"sequence_batching\": null,"
		"\"parameters\": {\"weir.deadline_us\": {\"stringValue\": \"7\"}}}");
	assert_non_null(c);
	assert_int_equal(c->max_batch_size, 8);
	assert_int_equal(c->dynamic_batching.max_delay_us, 5);
	assert_true(c->dynamic_batching.preserve_ordering);
	assert_int_equal(config_queue_policy(c, 1)->timeout_action, CONFIG_TIMEOUT_DELAY);
	assert_null(config_queue_policy(c, 2));
	assert_int_equal(c->input->type, DTYPE_BYTES);
	assert_int_equal(c->input->dims.dims[0], -1);
	assert_false(c->input->has_reshape);
	assert_int_equal(c->weir_deadline_us, 7);
	check_round_trip(c);
	config_free(c);
}

static void what_is_wrong_in_json_is_said(void **state)
{
	static const struct {
		const char *json, *message;
	} rows[] = {
		{ "[]", "ModelConfig is an object" },
		{ "{\"max_batch\": 2}", "ModelConfig has no field max_batch" },
		{ "{\"maxBatchsize\": 2}",
			"ModelConfig has no field maxBatchsize, did you mean max_batch_size?" },
		{ "{\"max_batch_size\": 2.5}",
			"max_batch_size takes a number, not a value of another "
			"kind" },
		{ "{\"max_batch_size\": \"x\"}", "max_batch_size takes a number, not x" },
		{ "{\"max_batch_size\": \"-3000000000\"}",
			"the number of max_batch_size is too large" },
		{ "{\"max_batch_size\": [2]}",
			"max_batch_size takes a number, not a value of another "
			"kind" },
		{ "{\"name\": 2}", "name takes no number" },
		{ "{\"name\": \"a\\u0000b\"}",
			"the string of name is not UTF-8, or it has a zero byte" },
		{ "{\"input\": {}}", "input takes a list" },
		{ "{\"input\": [2]}", "ModelInput is an object" },
		{ "{\"input\": [{\"optional\": 1}]}",
			"optional takes true or false, not a value of another kind" },
		{ "{\"parameters\": []}", "parameters takes an object" },
		{ "{\"dynamic_batching\": {\"priority_queue_policy\": {\"x\": {}}}}",
			"a key of priority_queue_policy is a whole number, not x" },
		{ "{\"maxBatchSize\": 1, \"max_batch_size\": 1}",
			"max_batch_size stands there twice" },
		{ "{\"model_transaction_policy\": {\"decoupled\": true}}",
			"decoupled is not possible: each request gets exactly one response" },
		{ "{\"ensembleScheduling\": {\"step\": []}}",
			"ensemble_scheduling is not possible: a request runs one model, so let the "
			"client call the models one after another" },
		{ "{\"parameters\": {\"weir.x\": {\"string_value\": \"1\"}}}",
			"Weir has no field x" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char message[400];
		struct model_config *c = read_json(rows[i].json);
		snprintf(message, sizeof message, "the request: %s", rows[i].message);
		assert_string_equal(err.text, message);
		assert_null(c);
	}
	struct model_config *c = read_json("{\"metricTags\": {\"a\": \"b\"}}");
	assert_non_null(c);
	assert_string_equal(warnings,
		"the request: Weir ignores metric_tags: metrics have the labels `model` and `version`\n");
	config_free(c);
}

static struct tensor_spec spec_of(
	const char *name, enum dtype type, unsigned n, int64_t a, int64_t b)
{
	return (struct tensor_spec){ (char *)name, type, { n, { a, b } }, false };
}

static void a_model_completes_its_configuration(void **state)
{
	const struct tensor_spec in[] = { spec_of("a", DTYPE_INT32, 2, -1, 16),
		spec_of("b", DTYPE_BYTES, 2, -1, -1) };
	const struct tensor_spec out = spec_of("c", DTYPE_FP32, 2, -1, 4);
	struct model_config *c = good("");
	assert_int_equal(config_complete(c, in, 2, &out, 1, &err), 0);
	assert_int_equal(c->max_batch_size, CONFIG_DEFAULT_BATCH);
	assert_true(c->has_dynamic_batching);
	assert_int_equal(c->inputs, 2);
	assert_string_equal(c->input[1].name, "b");
	assert_int_equal(c->input[1].type, DTYPE_BYTES);
	assert_int_equal(c->input[1].dims.n, 1);
	assert_int_equal(c->output->dims.dims[0], 4);
	check_round_trip(c);
	/* Once more changes nothing. */
	json_t *before = config_json(c);
	assert_int_equal(config_complete(c, in, 2, &out, 1, &err), 0);
	json_t *after = config_json(c);
	assert_true(json_equal(before, after));
	json_decref(before);
	json_decref(after);
	config_free(c);

	c = good("max_batch_size: 0 dynamic_batching { max_queue_delay_microseconds: 9 }");
	assert_int_equal(config_complete(c, in, 2, &out, 1, &err), 0);
	assert_int_equal(c->max_batch_size, 0);
	assert_int_equal(c->input->dims.n, 2);
	assert_int_equal(c->dynamic_batching.max_delay_us, 9);
	config_free(c);

	c = good("max_batch_size: 8 input [ { name: 'b' }, { name: 'a' dims: 16 } ] "
		 "output { name: 'c' reshape { shape: 4 } dims: [2, 2] }");
	assert_int_equal(config_complete(c, in, 2, &out, 1, &err), 0);
	assert_int_equal(c->max_batch_size, 8);
	assert_false(c->has_dynamic_batching);
	assert_int_equal(c->input[0].dims.dims[0], -1);
	assert_int_equal(c->input[1].type, DTYPE_INT32);
	assert_int_equal(c->output->type, DTYPE_FP32);
	assert_int_equal(c->output->dims.n, 2);
	config_free(c);

	const struct tensor_spec fixed = spec_of("a", DTYPE_INT32, 2, 1, 16);
	c = good("");
	assert_int_equal(config_complete(c, &fixed, 1, &out, 1, &err), 0);
	assert_int_equal(c->max_batch_size, 0);
	assert_int_equal(c->input->dims.n, 2);
	config_free(c);
}

static void a_contradiction_names_both_sides(void **state)
{
	const struct tensor_spec in[] = { spec_of("a", DTYPE_INT32, 2, -1, 16),
		{ (char[]){ "b" }, DTYPE_FP32, { 2, { -1, 3 } }, true } };
	const struct tensor_spec out = spec_of("c", DTYPE_FP32, 1, 4, 0);
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "max_batch_size: 2",
			"max_batch_size is 2 here, and the model says that c is [4], "
			"which has no batch dimension; say max_batch_size: 0" },
		{ "input { name: 'x' }", "the model has no input x; it has a, b" },
		{ "output { name: 'x' }", "the model has no output x; it has c" },
		{ "input { name: 'b' }",
			"the model has the input a, and there is none of that name here" },
		{ "input { name: 'a' data_type: TYPE_INT64 }",
			"input a is TYPE_INT64 here, and the model says TYPE_INT32" },
		{ "input { name: 'a' dims: [-1, 17] }",
			"input a is [-1,17] here, and the model says [-1,16]" },
		{ "input { name: 'a' dims: [-1, -1] }",
			"input a is [-1,-1] here, and the model says [-1,16]" },
		{ "input { name: 'a' dims: 16 }",
			"input a is [16] here, and the model says [-1,16]" },
		{ "output { name: 'c' dims: 4 reshape { shape: [2, 2] } }",
			"output c is [2,2] here, and the model says [4]" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char message[400];
		struct model_config *c = good(rows[i].text);
		assert_int_equal(config_complete(c, in, 2, &out, 1, &err), -EINVAL);
		snprintf(message, sizeof message, "config.pbtxt: %s", rows[i].message);
		assert_string_equal(err.text, message);
		config_free(c);
	}
	const struct tensor_spec batched = spec_of("c", DTYPE_FP32, 2, -1, 4);
	struct model_config *c = good("max_batch_size: 2 output { name: 'c' dims: 5 }");
	assert_int_equal(config_complete(c, in, 2, &batched, 1, &err), -EINVAL);
	assert_string_equal(err.text, "config.pbtxt: output c is [-1,5] with the batch dimension "
				      "here, and the model says [-1,4]");
	config_free(c);
	/* An input that the model can do without may be missing. */
	c = good("input { name: 'a' }");
	assert_int_equal(config_complete(c, in, 2, &out, 1, &err), 0);
	config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_model_is_read_as_it_is_written),
		cmocka_unit_test(an_empty_configuration_has_the_defaults),
		cmocka_unit_test(dynamic_batching_has_all_its_fields),
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(all_of_the_text_format_is_read),
		cmocka_unit_test(a_field_that_is_not_used_is_refused_or_warned_of),
		cmocka_unit_test(json_has_both_spellings),
		cmocka_unit_test(what_is_wrong_in_json_is_said),
		cmocka_unit_test(a_model_completes_its_configuration),
		cmocka_unit_test(a_contradiction_names_both_sides),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
