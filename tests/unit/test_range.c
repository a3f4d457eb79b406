/* Ranges: PyTorch's messages, the numbers of strings, and ranges that never ended. */
#include "unit.h"

#include <stdio.h>

#include "hook/core/metadata.h"
#include "hook/range/operator.h"
#include "hook/core/strings.h"
#include "trace/activity.h"

/* The hook's trace: what was written last, and how often. */
static char written[STRING_MOST + 1];
static uint64_t written_id;
static unsigned writes;

bool meta_has_room(void)
{
	return true;
}

void meta_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes)
{
	assert_int_equal(id, META_STRING);
	assert_int_equal(count, 1);
	assert_true(bytes <= STRING_MOST);
	memcpy(written, text, bytes);
	written[bytes] = '\0';
	written_id = args[0];
	writes++;
}

static bool parse(const char *text, struct range_text *ret_range)
{
	*ret_range = (struct range_text){ 0 };
	return operator_parse(text, strlen(text), 0, ret_range);
}

static void the_name_and_sizes_of_an_operator_become_strings_its_numbers_fields(void **state)
{
	struct range_text r, other;
	strings_forget();
	assert_true(parse("aten::mm, seq = 12, op_id = 3, sizes = [[8, 512], [512, 64]], "
			  "input_op_ids = [(2,0), (0,-1)]",
		&r));
	assert_int_equal(r.kind, RANGE_OPERATOR);
	assert_int_equal(r.sequence, 12);
	assert_int_equal(r.external, 3);
	assert_int_equal(r.valid, RANGE_HAS_EXTERNAL | RANGE_HAS_SEQUENCE);
	assert_string_equal(written, "aten::mm");
	assert_int_equal(written_id, r.name);
	writes = 0;
	assert_true(parse("aten::mm, seq = 13, op_id = 9, sizes = [[8, 512], [512, 64]]", &other));
	assert_int_equal(writes, 0);
	assert_int_equal(other.name, r.name);
	assert_int_equal(other.args, r.args);
	assert_true(parse("aten::mm, op_id = 10, sizes = [[], [-1]]", &other));
	assert_int_equal(writes, 1);
	assert_string_equal(written, "{\"Input Dims\":[[], [-1]]}");
	assert_int_equal(other.valid, RANGE_HAS_EXTERNAL);
}

static bool is_operator(const char *name)
{
	return operator_is(name, strlen(name), string_id(name, strlen(name)));
}

static void a_name_alone_says_what_is_an_operator(void **state)
{
	struct range_text r;
	strings_forget();
	operator_forget();
	assert_true(is_operator("aten::mm"));
	assert_true(is_operator("record_param_comms"));
	assert_true(is_operator("AddmmBackward0"));
	assert_true(is_operator("MyNormBackward"));
	assert_false(is_operator("Backward0"));
	assert_false(is_operator("Optimizer.step#SGD.step"));
	assert_false(is_operator(""));
	assert_false(is_operator("MyNorm"));
	assert_true(parse("MyNorm, seq = 7, op_id = 3", &r));
	assert_true(is_operator("MyNorm"));
	operator_forget();
	assert_false(is_operator("MyNorm"));
}

static void the_type_of_the_module_around_stands_beside_the_sizes(void **state)
{
	static const char message[] = "aten::mm, op_id = 3, sizes = [[8], [8]]";
	static const char half[] = "{\"dtype\":\"float16\"}", whole[] = "{\"dtype\":\"float32\"}";
	struct range_text r, other;
	strings_forget();
	operator_forget();
	operator_set_args(7, half, strlen(half));
	operator_set_args(8, whole, strlen(whole));
	operator_set_args(8, whole, strlen(whole));
	operator_set_args(9, "{\"payload\":1}", 13);
	assert_true(operator_parse(message, strlen(message), 8, &r));
	assert_true(operator_parse(message, strlen(message), 7, &r));
	assert_true(operator_parse("aten::mm, op_id = 4", 19, 7, &other));
	assert_int_equal(other.args, 0);
	assert_true(operator_parse(message, strlen(message), 9, &other));
	assert_string_equal(written, "{\"Input Dims\":[[8], [8]]}");
	assert_int_not_equal(r.args, other.args);
	strings_forget();
	assert_true(operator_parse(message, strlen(message), 7, &r));
	assert_string_equal(written, "aten::mm"); /* the name comes last */
	strings_forget();
	string_id("aten::mm", 8);
	assert_true(operator_parse(message, strlen(message), 7, &r));
	assert_string_equal(written, "{\"Input Dims\":[[8], [8]],\"module dtype\":\"float16\"}");
}

static void the_type_of_autocast_stands_behind_that_of_the_module(void **state)
{
	static const char message[] = "aten::mm, op_id = 3, sizes = [[8], [8]]";
	static const struct {
		const char *module, *operator;
	} table[] = {
		{ "{\"dtype\":\"float32\",\"autocast\":\"bfloat16\"}",
			"{\"Input Dims\":[[8], [8]],\"module dtype\":\"float32\","
			"\"module autocast\":\"bfloat16\"}" },
		{ "{\"dtype\":\"float32\",\"autocast\":\"float16\",\"conv\":{\"groups\":1}}",
			"{\"Input Dims\":[[8], [8]],\"module dtype\":\"float32\","
			"\"module autocast\":\"float16\",\"module conv\":{\"groups\":1}}" },
		{ "{\"dtype\":\"float32\",\"autocast\":\"\"}", "{\"Input Dims\":[[8], [8]]}" },
		{ "{\"dtype\":\"float32\",\"autocast\":\"float16\"",
			"{\"Input Dims\":[[8], [8]]}" },
		{ "{\"dtype\":\"float32\",\"autocast\":16}", "{\"Input Dims\":[[8], [8]]}" },
		{ "{\"autocast\":\"float16\"}", "{\"Input Dims\":[[8], [8]]}" },
	};
	struct range_text r;
	for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		strings_forget();
		operator_forget();
		string_id("aten::mm", 8);
		operator_set_args(7 + i, table[i].module, strlen(table[i].module));
		assert_true(operator_parse(message, strlen(message), 7 + i, &r));
		assert_string_equal(written, table[i].operator);
	}
}

static void a_convolution_says_how_it_goes(void **state)
{
	static const char message[] = "aten::conv2d, op_id = 3, sizes = [[8], [8]]";
	static const char conv[] = "{\"dtype\":\"float16\",\"conv\":{\"stride\":[2,2],\"groups\":1,"
				   "\"transposed\":false}}";
	static const char *const wrong[] = { "{\"dtype\":\"float16\",\"conv\":{\"stride\":{}}}",
		"{\"dtype\":\"float16\",\"conv\":{\"stride\":[2,2]}",
		"{\"dtype\":\"\",\"conv\":{}}", "{\"dtype\":\"float16\",\"conv\":{\"A\":1}}",
		"{\"dtype\":\"float16\",\"conv\":{" };
	struct range_text r;
	strings_forget();
	operator_forget();
	string_id("aten::conv2d", 12);
	operator_set_args(7, conv, strlen(conv));
	for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		operator_set_args(8 + i, wrong[i], strlen(wrong[i]));
	assert_true(operator_parse(message, strlen(message), 7, &r));
	assert_string_equal(written,
		"{\"Input Dims\":[[8], [8]],\"module dtype\":\"float16\",\"module conv\":"
		"{\"stride\":[2,2],\"groups\":1,\"transposed\":false}}");
	for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		strings_forget();
		string_id("aten::conv2d", 12);
		assert_true(operator_parse(message, strlen(message), 8 + i, &r));
		assert_string_equal(written, "{\"Input Dims\":[[8], [8]]}");
	}
}

static void many_types_of_modules_are_not_all_kept(void **state)
{
	char text[64];
	operator_forget();
	for (uint32_t i = 1; i < 100; i++)
		operator_set_args(
			i, text, (size_t)snprintf(text, sizeof text, "{\"dtype\":\"type%u\"}", i));
	memset(text, 'x', sizeof text);
	operator_set_args(200, text, sizeof text);
	operator_forget();
}

static void what_has_neither_a_sequence_nor_a_namespace_is_an_annotation(void **state)
{
	struct range_text r;
	assert_true(parse("Optimizer.step#SGD.step, op_id = 7", &r));
	assert_int_equal(r.kind, RANGE_ANNOTATION);
	assert_true(parse("one, two, op_id = 7", &r));
	assert_int_equal(r.kind, RANGE_ANNOTATION);
	assert_string_equal(written, "one, two");
	assert_true(parse("MmBackward0, seq = 1, op_id = 7", &r));
	assert_int_equal(r.kind, RANGE_OPERATOR);
	assert_true(parse("c10d::allreduce_, op_id = 7", &r));
	assert_int_equal(r.kind, RANGE_OPERATOR);
	assert_true(parse("record_param_comms, op_id = 7", &r));
	assert_int_equal(r.kind, RANGE_OPERATOR);
}

static void a_message_of_another_form_is_no_operator(void **state)
{
	static const char *const texts[] = { "", ",", "forward", "a, b",
		", op_id = ", "x, op_id = y", "x, seq = 1",
		"x, op_id = 1, sizes = ", "x, op_id = 1, sizes = [",
		"x, op_id = 1, sizes = [[1], [2]", "x, op_id = 1 and more",
		"x, op_id = 1, sizes = [[\"]]", "x, op_id = 1, sizes = [[[1]]]",
		"x, op_id = 1, sizes = ]", "x, op_id = 1, input_op_ids = " };
	struct range_text r;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (parse(texts[i], &r))
			fail_msg("taken for an operator: %s", texts[i]);
}

static void sizes_that_are_too_long_are_left_out(void **state)
{
	static char text[65536] = "aten::cat, op_id = 5, sizes = [";
	struct range_text r;
	for (size_t n = strlen(text); n < 60000; n += 5)
		memcpy(text + n, "[12],", 5);
	text[strlen(text) - 1] = ']';
	assert_true(parse(text, &r));
	assert_int_equal(r.args, 0);
	assert_string_equal(written, "aten::cat");
}

static void a_text_is_written_once(void **state)
{
	strings_forget();
	writes = 0;
	const uint32_t id = string_id("forward", 7), other = string_id("forwar", 6);
	assert_int_not_equal(id, 0);
	assert_int_not_equal(id, other);
	assert_int_equal(string_id("forward", 7), id);
	assert_int_equal(writes, 2);
	assert_int_not_equal(string_once("forward", 7), id);
	assert_int_equal(writes, 3);
}

static void a_full_table_writes_texts_again_and_loses_none(void **state)
{
	char text[16];
	strings_forget();
	writes = 0;
	for (int i = 0; i < 200000; i++) {
		const int n = snprintf(text, sizeof text, "%d", i);
		const unsigned before = writes;
		const uint32_t id = string_id(text, (uint64_t)n);
		assert_int_equal(writes, before + 1);
		assert_int_equal(written_id, id);
		assert_string_equal(written, text);
	}
	assert_int_equal(string_id("0", 1), string_id("0", 1));
	assert_int_not_equal(string_id("199999", 6), string_id("199999", 6));
}

static void a_range_that_never_ended_ends_with_the_recording(void **state)
{
	struct range in[] = { { .ticks = 100, .dur = 7, .kind = RANGE_NVTX },
		{ .ticks = 200, .dur = 0xdeadbeef, .kind = RANGE_NVTX, .valid = RANGE_OPEN },
		{ .ticks = 900, .dur = 1, .kind = RANGE_NVTX_SPAN, .valid = RANGE_OPEN } };
	const struct chunk_buf buf = {
		.payload = (uint8_t *)in,
		.bytes = sizeof in,
		.payload_room = sizeof in,
		.last_ticks = 700,
	};
	struct range r;
	size_t at = 0;
	assert_true(range_next(&buf, &at, &r));
	assert_int_equal(r.dur, 7);
	assert_true(range_next(&buf, &at, &r));
	assert_int_equal(r.dur, 500);
	assert_true(range_next(&buf, &at, &r));
	assert_int_equal(r.dur, 0);
	assert_false(range_next(&buf, &at, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_name_and_sizes_of_an_operator_become_strings_its_numbers_fields),
		cmocka_unit_test(a_name_alone_says_what_is_an_operator),
		cmocka_unit_test(the_type_of_the_module_around_stands_beside_the_sizes),
		cmocka_unit_test(the_type_of_autocast_stands_behind_that_of_the_module),
		cmocka_unit_test(a_convolution_says_how_it_goes),
		cmocka_unit_test(many_types_of_modules_are_not_all_kept),
		cmocka_unit_test(what_has_neither_a_sequence_nor_a_namespace_is_an_annotation),
		cmocka_unit_test(a_message_of_another_form_is_no_operator),
		cmocka_unit_test(sizes_that_are_too_long_are_left_out),
		cmocka_unit_test(a_text_is_written_once),
		cmocka_unit_test(a_full_table_writes_texts_again_and_loses_none),
		cmocka_unit_test(a_range_that_never_ended_ends_with_the_recording),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
