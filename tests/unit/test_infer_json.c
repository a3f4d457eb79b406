/* Inference requests and answers as JSON with binary data behind it. */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "wire/infer.h"
#include "wire/real.h"

static struct infer_request request;
static struct infer_answer answer;
static struct buf out;

/* Reads a copy that ends where the body ends, so that sanitizers see what lies behind it. */
static int read_body(const char *text, size_t n, size_t json, struct error *err)
{
	static char *body;
	free(body);
	body = malloc(n ? n : 1);
	memcpy(body, text, n);
	infer_request_reset(&request);
	return infer_json_read(&request, body, n, json, err);
}

static void accept_json(const char *text)
{
	struct error err = { "" };
	if (read_body(text, strlen(text), strlen(text), &err))
		fail_msg("%s: %s", text, err.text);
}

static void refuse_json(const char *text, const char *part)
{
	struct error err = { "" };
	const int rc = read_body(text, strlen(text), strlen(text), &err);
	if (rc != -EINVAL || !strstr(err.text, part))
		fail_msg("%s: %d, %s", text, rc, err.text);
}

/* The request's inputs as an answer. */
static const char *echo(void)
{
	struct error err = { "" };
	size_t json;
	answer = (struct infer_answer){ .id = request.id,
		.model = SLICE("m"),
		.version = SLICE("1"),
		.outputs = request.inputs,
		.params = request.params };
	memcpy(answer.param, request.param, sizeof answer.param);
	for (unsigned i = 0; i < request.inputs; i++)
		answer.output[i] = request.input[i].tensor;
	out.n = 0;
	if (infer_json_put(&out, &answer, &json, &err))
		fail_msg("%s", err.text);
	assert_int_equal(json, 0);
	return buf_text(&out);
}

static void a_request_is_read(void **state)
{
	accept_json(" { \"id\" : \"\\u00e9\\n\", \"parameters\":{\"priority\":2,\"timeout\":1500,"
		    "\"sequence_id\":7,\"own\":\"x\",\"n\":-3,\"r\":2.5,\"b\":true,"
		    "\"u\":18446744073709551615},\"other\":[{\"a\":null}],\n"
		    "\"inputs\":[{\"name\":\"I\\u004e\",\"shape\":[2,2],\"datatype\":\"FP32\","
		    "\"data\":[[1,2.5],[-1e10,0.1]]}],"
		    "\"outputs\":[{\"name\":\"A\",\"parameters\":{\"classification\":3}},"
		    "{\"name\":\"B\",\"parameters\":{\"binary_data\":true}},"
		    "{\"name\":\"C\",\"parameters\":{\"shared_memory_region\":\"r\","
		    "\"shared_memory_offset\":4,\"shared_memory_byte_size\":8}}]} \n");
	assert_true(slice_is(request.id, "é\n"));
	assert_int_equal(request.priority, 2);
	assert_int_equal(request.timeout_us, 1500);
	assert_int_equal(request.sequence_id, 7);
	assert_int_equal(request.params, 5);
	assert_true(slice_is(request.param[0].s, "x") && request.param[0].kind == PARAM_TEXT);
	assert_true(request.param[1].kind == PARAM_INT && request.param[1].i == -3);
	assert_true(request.param[2].kind == PARAM_REAL && request.param[2].d == 2.5);
	assert_true(request.param[3].kind == PARAM_BOOL && request.param[3].b);
	assert_true(request.param[4].kind == PARAM_UINT && request.param[4].u == UINT64_MAX);
	const struct tensor *t = &request.input[0].tensor;
	assert_true(slice_is(t->name, "IN") && t->type == DTYPE_FP32 && t->shape.n == 2);
	assert_int_equal(t->bytes, 16);
	static const float values[] = { 1, 2.5f, -1e10f, 0.1f };
	assert_memory_equal(t->data, values, sizeof values);
	assert_int_equal(request.outputs, 3);
	assert_int_equal(request.output[0].classes, 3);
	assert_true(request.output[1].binary && !request.output[0].binary);
	assert_true(slice_is(request.output[2].region, "r"));
	assert_int_equal(request.output[2].offset, 4);
	assert_int_equal(request.output[2].region_bytes, 8);
}

static void keys_come_in_any_order(void **state)
{
	accept_json("{\"inputs\":[{\"data\":[\"\\\"\\u00e9\",\"b\"],\"datatype\":\"BYTES\","
		    "\"name\":\"X\",\"shape\":[2]},{\"datatype\":\"INT8\",\"data\":[[[1]]],"
		    "\"shape\":[],\"name\":\"Y\"}]}");
	assert_string_equal(echo(),
		"{\"model_name\":\"m\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"X\","
		"\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"\\\"é\",\"b\"]},{\"name\":\"Y\","
		"\"datatype\":\"INT8\",\"shape\":[],\"data\":[1]}]}");
}

static void values_print_as_they_were_read(void **state)
{
	static const struct {
		const char *type, *data, *printed; /* NULL: the same */
		int elements;
	} rows[] = {
		{ "BOOL", "true,false", NULL, 2 },
		{ "UINT8", "0,255", NULL, 2 },
		{ "UINT16", "0,65535", NULL, 2 },
		{ "UINT32", "0,4294967295", NULL, 2 },
		{ "UINT64", "0,-0,18446744073709551615", "0,0,18446744073709551615", 3 },
		{ "INT8", "-128,127", NULL, 2 },
		{ "INT16", "-32768,32767", NULL, 2 },
		{ "INT32", "-2147483648,2147483647", NULL, 2 },
		{ "INT64", "-9223372036854775808,9223372036854775807,-0",
			"-9223372036854775808,9223372036854775807,0", 3 },
		{ "FP32", "0.1,-0.0,16777216,3.4028235e38,1e-45,0.10000000149011612",
			"0.1,-0.0,16777216.0,3.4028235e+38,1.4013e-45,0.1", 6 },
		{ "FP32", "NaN,Infinity,-Infinity,Inf,-Inf",
			"NaN,Infinity,-Infinity,Infinity,-Infinity", 5 },
		{ "FP64", "0.1,1.7976931348623157e+308,5e-324,9007199254740993,0.3",
			"0.1,1.7976931348623157e+308,4.94065645841247e-324,9007199254740992.0,0.3",
			5 },
		{ "BYTES", "\"\",\"\\u0000\\/\\ud83d\\ude00\\b\\f\\n\\r\\t\\\\\\\"\\u001f\\u07ff\"",
			"\"\",\"\\u0000/😀\\b\\f\\n\\r\\t\\\\\\\"\\u001f߿\"", 2 },
	};
	char text[500];
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		snprintf(text, sizeof text,
			"{\"inputs\":[{\"name\":\"a\",\"shape\":[%d],\"datatype\":\"%s\",\"data\":[%s]}]}",
			rows[i].elements, rows[i].type, rows[i].data);
		accept_json(text);
		snprintf(text, sizeof text, "\"data\":[%s]}]}",
			rows[i].printed ? rows[i].printed : rows[i].data);
		if (!strstr(echo(), text))
			fail_msg("%s is not in %s", text, out.v);
	}
}

/* A value of a type from a seed: each magnitude is as likely. */
static uint64_t pick(uint64_t seed)
{
	const uint64_t bits = hash_mix(seed * 0x9e3779b97f4a7c15u + 1);
	return bits >> hash_mix(bits) % 64;
}

static void fill(char *values, size_t n, enum dtype type, uint64_t seed)
{
	const unsigned bytes = dtype_rows[type].bytes;
	for (size_t i = 0; i < n; i++, values += bytes) {
		uint64_t v = pick(seed + i * 977);
		if (type == DTYPE_FP32 || type == DTYPE_FP64)
			v = hash_mix(v);
		if (type == DTYPE_BOOL)
			v &= 1;
		memcpy(values, &v, bytes);
		float f;
		double d;
		memcpy(&f, &v, sizeof f);
		memcpy(&d, &v, sizeof d);
		/* The bits of NaN are not kept. */
		if ((type == DTYPE_FP32 && isnan(f)) || (type == DTYPE_FP64 && isnan(d)))
			memset(values, 0, bytes);
	}
}

static void numbers_of_all_types_survive(void **state)
{
	enum { N = 64 };
	char values[N * 8];
	struct buf text = { 0 };
	size_t json;
	for (enum dtype type = DTYPE_BOOL; type < DTYPES; type++) {
		if (type == DTYPE_FP16 || type == DTYPE_BF16 || type == DTYPE_BYTES)
			continue;
		for (uint64_t round = 0; round < 300; round++) {
			fill(values, N, type, round);
			answer = (struct infer_answer){ .outputs = 1,
				.output = { { SLICE("a"), type, { 2, { 4, N / 4 } }, values,
					(size_t)dtype_rows[type].bytes * N } } };
			out.n = text.n = 0;
			assert_int_equal(infer_json_put(&out, &answer, &json, NULL), 0);
			const char *list = strstr(buf_text(&out), "\"outputs\":");
			buf_printf(&text, "{\"inputs\":%s", list + strlen("\"outputs\":"));
			accept_json(buf_text(&text));
			const struct tensor *t = &request.input[0].tensor;
			assert_int_equal(t->type, type);
			assert_int_equal(t->bytes, answer.output[0].bytes);
			assert_memory_equal(t->data, values, t->bytes);
		}
	}
	buf_free(&text);
}

static void strings_survive(void **state)
{
	static const char *const parts[] = { "a", "é", "€", "😀", "\"", "\\", "\n", "\x01", "\x7f" };
	struct buf values = { 0 }, text = { 0 };
	size_t json;
	for (uint64_t round = 0; round < 300; round++) {
		values.n = out.n = text.n = 0;
		for (uint64_t element = 0; element < 4; element++) {
			const size_t at = values.n;
			buf_put(&values, "\0\0\0", 4);
			for (uint64_t i = 0; i < pick(round + element) % 20; i++)
				buf_put_text(&values, parts[pick(round * 31 + element * 7 + i) %
							      COUNT_OF(parts)]);
			const uint32_t n = (uint32_t)(values.n - at - 4);
			memcpy(values.v + at, &n, sizeof n);
		}
		answer = (struct infer_answer){ .outputs = 1,
			.output = {
				{ SLICE("a"), DTYPE_BYTES, { 1, { 4 } }, values.v, values.n } } };
		assert_int_equal(infer_json_put(&out, &answer, &json, NULL), 0);
		json_t *parsed = json_loads(buf_text(&out), 0, NULL);
		assert_non_null(parsed);
		json_decref(parsed);
		buf_printf(&text, "{\"inputs\":%s", strstr(out.v, "\"outputs\":") + 10);
		accept_json(buf_text(&text));
		assert_int_equal(request.input[0].tensor.bytes, values.n);
		assert_memory_equal(request.input[0].tensor.data, values.v, values.n);
	}
	buf_free(&values);
	buf_free(&text);
}

/* The C library says what a number is, and that fewer digits would not do. */
static void numbers_are_exact_and_short(void **state)
{
	for (uint64_t i = 0; i < 200000; i++) {
		char text[64];
		struct decimal d;
		const uint64_t w = pick(i);
		const int e = (int)(hash_mix(i) % 80) - 40;
		const int n = snprintf(text, sizeof text, "%" PRIu64 "e%d,", w, e);
		assert_ptr_equal(decimal_read(text, text + n, &d), text + n - 1);
		assert_true(decimal_value(&d, false) == strtod(text, NULL));
		assert_true((float)decimal_value(&d, true) == strtof(text, NULL));
		char shortest[REAL_MOST], fewer[320];
		const double value = strtod(text, NULL);
		size_t bytes = real_put(shortest, value, false), seen = 0, digits = 0;
		assert_true(bytes < REAL_MOST);
		shortest[bytes] = 0;
		assert_true(strtod(shortest, NULL) == value);
		for (const char *c = shortest; *c && *c != 'e'; c++) {
			seen += *c != '.' && (seen || *c != '0');
			digits = *c >= '1' ? seen : digits;
		}
		snprintf(fewer, sizeof fewer, "%.*g", (int)digits - 1, value);
		assert_true(digits < 2 || strtod(fewer, NULL) != value);
	}
}

#define INPUT(rest) "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT8\",\"shape\":[1]" rest "}]}"

static void what_is_no_request_is_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{ "[]", "byte 0: an object" },
		{ " x", "byte 1" },
		{ "{", "a string belongs" },
		{ "{}", "no `inputs`" },
		{ "{\"inputs\":[]} x", "follows" },
		{ "{\"inputs\":[],}", "a string belongs" },
		{ "{\"inputs\":[] \"a\":1}", "a comma" },
		{ "{\"inputs\":{}}", "an array belongs" },
		{ "{\"inputs\":[]", "a comma" },
		{ "{\"inputs\":[],\"inputs\":[]}", "stands twice" },
		{ "{\"inputs\":[],\"i\\u006eputs\":[]}", "stands twice" },
		{ "{\"inputs\":[],\"id\":7}", "a string" },
		{ "{\"inputs\":[],\"a\":tru}", "a number" },
		{ "{\"inputs\":[],\"a\":01}", "a number" },
		{ "{\"inputs\":[],\"a\":1.}", "a number" },
		{ "{\"inputs\":[],\"a\":.5}", "a number" },
		{ "{\"inputs\":[],\"a\":+1}", "a number" },
		{ "{\"inputs\":[],\"a\":1e}", "a number" },
		{ "{\"inputs\":[],\"a\":[1 2]}", "a comma" },
		{ "{\"inputs\":[],\"a\":\"\\x\"}", "a string" },
		{ "{\"inputs\":[],\"a\":\"\\ud800\"}", "a string" },
		{ "{\"inputs\":[],\"a\":\"\\udc00\\ud800\"}", "a string" },
		{ "{\"inputs\":[],\"a\":\"\\u12g4\"}", "a string" },
		{ "{\"inputs\":[],\"a\":\"\n\"}", "a string" },
		{ "{\"inputs\":[],\"a\":\"\xc0\x80\"}", "UTF-8" },
		{ "{\"inputs\":[],\"a\":\"\xff\"}", "UTF-8" },
		{ "{\"inputs\":[],\"a\":\"x", "does not end" },
		{ "{\"inputs\":[],\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", "nested" },
		{ "{\"inputs\":[],\"parameters\":{\"priority\":-1}}", "priority" },
		{ "{\"inputs\":[],\"parameters\":{\"timeout\":\"1\"}}", "timeout" },
		{ "{\"inputs\":[],\"parameters\":{\"a\":null}}", "`a`" },
		{ "{\"inputs\":[],\"parameters\":{\"a\":1,\"a\":1}}", "twice" },
		{ "{\"inputs\":[],\"parameters\":{\"binary_data_output\":1}}",
			"binary_data_output" },
		{ "{\"inputs\":[],\"outputs\":[{}]}", "no `name`" },
		{ "{\"inputs\":[],\"outputs\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "twice" },
		{ "{\"inputs\":[],\"outputs\":[{\"name\":\"a\",\"parameters\":{"
		  "\"shared_memory_region\":\"r\",\"binary_data\":true}}]}",
			"shared memory" },
		{ INPUT(""), "none or several" },
		{ INPUT(",\"data\":[1],\"parameters\":{\"binary_data_size\":1}"),
			"none or several" },
		{ INPUT(",\"parameters\":{\"binary_data_size\":-1}"), "number of bytes" },
		{ INPUT(",\"parameters\":{\"binary_data_size\":1}"), "only 0 bytes" },
		{ INPUT(",\"data\":1"), "an array" },
		{ INPUT(",\"data\":[]"), "fewer elements" },
		{ INPUT(",\"data\":[1,2]"), "more elements" },
		{ INPUT(",\"data\":[128]"), "range" },
		{ INPUT(",\"data\":[-129]"), "range" },
		{ INPUT(",\"data\":[1.0]"), "an integer" },
		{ INPUT(",\"data\":[1e2]"), "an integer" },
		{ INPUT(",\"data\":[\"1\"]"), "an integer" },
		{ INPUT(",\"data\":[99999999999999999999999]"), "range" },
		{ "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT8\",\"data\":[1]}]}", "without" },
		{ "{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"data\":[1]}]}", "without" },
		{ "{\"inputs\":[{\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]}]}",
			"no `name`" },
		{ "{\"inputs\":[{\"datatype\":\"INT9\"}]}", "INT9" },
		{ "{\"inputs\":[{\"shape\":[-1]}]}", "range" },
		{ "{\"inputs\":[{\"shape\":[1,1,1,1,1,1,1,1,1]}]}", "8 dimensions" },
		{ "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP64\",\"shape\":[9223372036854775807],"
		  "\"data\":[1]}]}",
			"more elements than the data" },
		{ "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1e39]}]}",
			"too large" },
		{ "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"BOOL\",\"shape\":[1],\"data\":[1]}]}",
			"true or false" },
		{ "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP16\",\"shape\":[1],\"data\":[1]}]}",
			"binary" },
		{ "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1]},"
		  "{\"name\":\"a\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1]}]}",
			"twice" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		refuse_json(rows[i].text, rows[i].part);
}

/* Whatever is missing behind any byte, it is noticed, and nothing behind the end is read. */
static void a_request_that_ends_early_is_refused(void **state)
{
	static const char text[] =
		"{\"id\":\"\\u00e9\\n\",\"inputs\":[{\"name\":\"a\",\"shape\":[2],"
		"\"datatype\":\"FP32\",\"data\":[1.5e3,-2]},{\"data\":[true,\"x\\n\"],"
		"\"name\":\"b\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":"
		"{\"shared_memory_region\":\"r\"}}],\"outputs\":[{\"name\":\"é\"}]}";
	for (size_t n = 1; n < sizeof text - 1; n++)
		assert_int_equal(read_body(text, n, n, NULL), -EINVAL);
}

static void a_nul_behind_a_request_is_refused(void **state)
{
	struct error err = { "" };
	assert_int_equal(read_body("{\"inputs\":[]}\0x", 15, 15, &err), -EINVAL);
	assert_non_null(strstr(err.text, "byte 13: something follows"));
}

static const char binary_json[] =
	"{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP16\",\"parameters\":"
	"{\"binary_data_size\":4}},{\"name\":\"b\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[7]},"
	"{\"name\":\"c\",\"shape\":[2],\"datatype\":\"BYTES\",\"parameters\":"
	"{\"binary_data_size\":11}}],\"outputs\":[{\"name\":\"x\"},{\"name\":\"y\",\"parameters\":"
	"{\"binary_data\":false}}],\"parameters\":{\"binary_data_output\":true}}";
static const char binary_data[] = "abcd\1\0\0\0x\2\0\0\0yz";

static int read_binary(const char *data, size_t n, struct error *err)
{
	char text[1000];
	memcpy(text, binary_json, sizeof binary_json - 1);
	memcpy(text + sizeof binary_json - 1, data, n);
	return read_body(text, sizeof binary_json - 1 + n, sizeof binary_json - 1, err);
}

static void binary_data_lies_behind_the_json(void **state)
{
	struct error err = { "" };
	assert_int_equal(read_binary(binary_data, sizeof binary_data - 1, &err), 0);
	assert_memory_equal(request.input[0].tensor.data, "abcd", 4);
	assert_memory_equal(request.input[1].tensor.data, "\7", 1);
	assert_int_equal(request.input[2].tensor.bytes, 11);
	assert_memory_equal(request.input[2].tensor.data, binary_data + 4, 11);
	assert_true(request.output[0].binary && !request.output[1].binary);

	size_t json;
	answer = (struct infer_answer){ .model = SLICE("m"), .outputs = 2 };
	answer.output[0] = request.input[0].tensor;
	answer.output[1] = request.input[2].tensor;
	answer.binary[0] = answer.binary[1] = true;
	out.n = 0;
	buf_put_text(&out, "before");
	assert_int_equal(infer_json_put(&out, &answer, &json, &err), 0);
	assert_int_equal(out.n, 6 + json + 15);
	assert_memory_equal(out.v + 6 + json, binary_data, 15);
	assert_non_null(strstr(out.v, "\"shape\":[2],\"parameters\":{\"binary_data_size\":11}}]}"));
}

static void binary_data_has_the_size_that_shapes_need(void **state)
{
	struct error err = { "" };
	for (size_t n = 0; n < sizeof binary_data - 1; n++)
		assert_int_equal(read_binary(binary_data, n, &err), -EINVAL);
	assert_int_equal(read_binary(binary_data, sizeof binary_data, &err), -EINVAL);
	assert_non_null(strstr(err.text, "1 bytes more"));
	assert_int_equal(read_binary("abcd\1\0\0\0x\3\0\0\0yz", 15, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'c'"));
	assert_int_equal(read_body("{}", 2, 3, &err), -EINVAL);
}

static void a_raw_request_is_one_tensor(void **state)
{
	assert_int_equal(read_body("abc", 3, 0, NULL), 0);
	assert_true(request.raw && request.binary_output);
	assert_int_equal(request.inputs, 1);
	assert_int_equal(request.input[0].tensor.bytes, 3);
	assert_memory_equal(request.input[0].tensor.data, "abc", 3);
}

static void what_json_cannot_hold_is_said(void **state)
{
	struct error err = { "" };
	size_t json;
	answer = (struct infer_answer){ .outputs = 1,
		.output = { { SLICE("a"), DTYPE_BYTES, { 1, { 1 } }, "\1\0\0\0\xff", 5 } } };
	out.n = 0;
	assert_int_equal(infer_json_put(&out, &answer, &json, &err), -EINVAL);
	assert_non_null(strstr(err.text, "binary_data"));
	answer.output[0] = (struct tensor){ SLICE("a"), DTYPE_BF16, { 1, { 1 } }, "xx", 2 };
	assert_int_equal(infer_json_put(&out, &answer, &json, &err), -EINVAL);
	answer.output[0].type = DTYPE_INT32;
	assert_int_equal(infer_json_put(&out, &answer, &json, &err), -EIO);
	assert_int_equal(out.n, 0);
}

/* The round trip must be able to fail. */
static void a_changed_value_is_noticed(void **state)
{
	accept_json(INPUT(",\"data\":[100]"));
	char *printed = strstr((char *)(uintptr_t)echo(), "100");
	assert_non_null(printed);
	printed[2] = '1';
	char text[200];
	snprintf(text, sizeof text, "{\"inputs\":%s", strstr(out.v, "\"outputs\":") + 10);
	const char before = 100;
	accept_json(text);
	assert_memory_not_equal(request.input[0].tensor.data, &before, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_read),
		cmocka_unit_test(keys_come_in_any_order),
		cmocka_unit_test(values_print_as_they_were_read),
		cmocka_unit_test(numbers_of_all_types_survive),
		cmocka_unit_test(strings_survive),
		cmocka_unit_test(numbers_are_exact_and_short),
		cmocka_unit_test(what_is_no_request_is_refused),
		cmocka_unit_test(a_request_that_ends_early_is_refused),
		cmocka_unit_test(a_nul_behind_a_request_is_refused),
		cmocka_unit_test(binary_data_lies_behind_the_json),
		cmocka_unit_test(binary_data_has_the_size_that_shapes_need),
		cmocka_unit_test(a_raw_request_is_one_tensor),
		cmocka_unit_test(what_json_cannot_hold_is_said),
		cmocka_unit_test(a_changed_value_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
