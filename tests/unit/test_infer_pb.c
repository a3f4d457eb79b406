/* Inference requests and answers of gRPC, beside the generic codec of message.h. */
#include "unit.h"

#include <errno.h>
#include <jansson.h>

#include "wire/infer.h"
#include "wire/message.h"

/* The request that a JSON text describes, or the sentence of the refusal. */
struct asked {
	struct infer_request r;
	struct buf message;
	struct error err;
	int rc;
};

static void put_json(const char *name, const char *text, struct buf *b)
{
	struct error err = { .text = "" };
	json_error_t where;
	json_t *value = json_loads(text, 0, &where);
	if (!value)
		fail_msg("%s: %s", where.text, text);
	if (message_put(name, value, b, &err))
		fail_msg("%s", err.text);
	json_decref(value);
}

static struct asked *ask(const char *text)
{
	struct asked *a = xcalloc(1, sizeof *a);
	put_json("ModelInferRequest", text, &a->message);
	a->rc = infer_pb_read(&a->r, a->message.v, a->message.n, &a->err);
	return a;
}

static void done(struct asked *a)
{
	infer_request_free(&a->r);
	buf_free(&a->message);
	free(a);
}

static void assert_slice(struct slice s, const char *text)
{
	if (!slice_is(s, text))
		fail_msg("'%.*s' is not '%s'", SLICE_ARG(s), text);
}

static void refused(const char *text, int code, const char *sentence)
{
	struct asked *a = ask(text);
	assert_int_equal(a->rc, code);
	if (!strstr(a->err.text, sentence))
		fail_msg("'%s' does not say '%s'", a->err.text, sentence);
	done(a);
}

static void raw_inputs_stay_in_the_message(void **state)
{
	struct asked *a =
		ask("{\"model_name\": \"m\", \"model_version\": \"3\", \"id\": \"x7\","
		    " \"inputs\": [{\"name\": \"A\", \"datatype\": \"FP32\", \"shape\": [1, 2]},"
		    " {\"name\": \"B\", \"datatype\": \"BYTES\", \"shape\": [2]}],"
		    " \"outputs\": [{\"name\": \"Y\"}],"
		    " \"raw_input_contents\": [\"AACAPwAAAEA=\", \"AQAAAGEAAAAA\"]}");
	const struct tensor *t = &a->r.input[0].tensor;
	(void)state;
	assert_int_equal(a->rc, 0);
	assert_slice(a->r.model, "m");
	assert_slice(a->r.version, "3");
	assert_slice(a->r.id, "x7");
	assert_int_equal(a->r.inputs, 2);
	assert_int_equal(a->r.outputs, 1);
	assert_slice(a->r.output[0].name, "Y");
	assert_slice(t->name, "A");
	assert_int_equal(t->type, DTYPE_FP32);
	assert_int_equal(t->shape.n, 2);
	assert_int_equal(t->bytes, 8);
	assert_memory_equal(t->data, ((float[]){ 1, 2 }), 8);
	assert_true((const char *)t->data > a->message.v &&
		    (const char *)t->data < a->message.v + a->message.n);
	assert_int_equal(a->r.memory.n, 0);
	done(a);
}

static void typed_contents_become_the_bytes_of_the_type(void **state)
{
	static const struct {
		const char *type, *field, *values;
		size_t bytes;
		const char *expected;
	} cases[] = {
		{ "BOOL", "bool_contents", "true, false", 2, "\1\0" },
		{ "INT8", "int_contents", "-1, 127", 2, "\377\177" },
		{ "INT16", "int_contents", "-2, 258", 4, "\376\377\2\1" },
		{ "INT32", "int_contents", "-2, 1", 8, "\376\377\377\377\1\0\0\0" },
		{ "INT64", "int64_contents", "-1, 1", 16,
			"\377\377\377\377\377\377\377\377\1\0\0\0\0\0\0\0" },
		{ "UINT8", "uint_contents", "0, 255", 2, "\0\377" },
		{ "UINT16", "uint_contents", "0, 65535", 4, "\0\0\377\377" },
		{ "UINT32", "uint_contents", "7, 4294967295", 8, "\7\0\0\0\377\377\377\377" },
		{ "UINT64", "uint64_contents", "7, 256", 16, "\7\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0" },
		{ "FP32", "fp32_contents", "1.0, -2.0", 8, "\0\0\200\77\0\0\0\300" },
		{ "FP64", "fp64_contents", "1.0, -2.0", 16,
			"\0\0\0\0\0\0\360\77\0\0\0\0\0\0\0\300" },
		{ "BYTES", "bytes_contents", "\"YWI=\", \"\"", 10, "\2\0\0\0ab\0\0\0\0" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char *text =
			xasprintf("{\"inputs\": [{\"name\": \"A\", \"datatype\": \"%s\", \"shape\":"
				  " [2], \"contents\": {\"%s\": [%s]}}]}",
				cases[i].type, cases[i].field, cases[i].values);
		struct asked *a = ask(text);
		if (a->rc)
			fail_msg("%s: %s", cases[i].type, a->err.text);
		assert_int_equal(a->r.input[0].tensor.bytes, cases[i].bytes);
		assert_memory_equal(a->r.input[0].tensor.data, cases[i].expected, cases[i].bytes);
		done(a);
		free(text);
	}
}

static void an_element_may_come_alone(void **state)
{
	/* INT32 [2] with int_contents 5 and 6, and the shape, each in a field of its own. */
	static const char message[] = "\x2a\x12\x0a\x01"
				      "A\x12\x05INT32\x18\x02\x2a\x04\x10\x05\x10\x06";
	struct infer_request r = { 0 };
	struct error err = { .text = "" };
	(void)state;
	if (infer_pb_read(&r, message, sizeof message - 1, &err))
		fail_msg("%s", err.text);
	assert_int_equal(r.input[0].tensor.shape.n, 1);
	assert_memory_equal(r.input[0].tensor.data, ((int32_t[]){ 5, 6 }), 8);
	infer_request_free(&r);
}

static void parameters_go_to_their_places(void **state)
{
	struct asked *a = ask(
		"{\"parameters\": {\"priority\": 2, \"timeout\": 1500, \"sequence_id\": 9,"
		" \"mine\": \"yes\", \"factor\": 0.5, \"flag\": true},"
		" \"inputs\": [{\"name\": \"A\", \"datatype\": \"FP32\", \"shape\": [4], \"parameters\":"
		" {\"shared_memory_region\": \"in\", \"shared_memory_offset\": 64,"
		" \"shared_memory_byte_size\": 16}}],"
		" \"outputs\": [{\"name\": \"Y\", \"parameters\": {\"classification\": 3}},"
		" {\"name\": \"Z\", \"parameters\": {\"shared_memory_region\": \"out\","
		" \"shared_memory_byte_size\": 8, \"binary_data\": true, \"unknown\": 1}}]}");
	(void)state;
	assert_int_equal(a->rc, 0);
	assert_int_equal(a->r.priority, 2);
	assert_int_equal(a->r.timeout_us, 1500);
	assert_int_equal(a->r.sequence_id, 9);
	assert_int_equal(a->r.params, 3);
	for (unsigned i = 0; i < a->r.params; i++) {
		const struct param *p = &a->r.param[i];
		if (slice_is(p->name, "mine"))
			assert_slice(p->s, "yes");
		else if (slice_is(p->name, "factor"))
			assert_true(p->kind == PARAM_REAL && p->d == 0.5);
		else
			assert_true(slice_is(p->name, "flag") && p->kind == PARAM_BOOL && p->b);
	}
	assert_slice(a->r.input[0].region, "in");
	assert_int_equal(a->r.input[0].offset, 64);
	assert_int_equal(a->r.input[0].region_bytes, 16);
	assert_null(a->r.input[0].tensor.data);
	assert_int_equal(a->r.output[0].classes, 3);
	assert_slice(a->r.output[1].region, "out");
	assert_int_equal(a->r.output[1].region_bytes, 8);
	assert_true(a->r.output[1].binary);
	done(a);
}

static void a_priority_may_be_unsigned(void **state)
{
	/* parameters { key: "priority" value { uint64_param: 2 } }, as clients of Triton send it.
	 */
	static const char message[] = "\x22\x0e\x0a\x08priority\x12\x02\x28\x02";
	struct infer_request r = { 0 };
	(void)state;
	assert_int_equal(infer_pb_read(&r, message, sizeof message - 1, NULL), 0);
	assert_int_equal(r.priority, 2);
}

#define INPUT(type, shape) "{\"name\": \"A\", \"datatype\": \"" type "\", \"shape\": [" shape "]}"
#define TYPED(type, shape, contents)                                                               \
	"{\"inputs\": [{\"name\": \"A\", \"datatype\": \"" type "\", \"shape\": [" shape           \
	"], \"contents\": {" contents "}}]}"

static void what_does_not_fit_is_refused_by_name(void **state)
{
	char *many = xstrdup("{\"inputs\": [");
	(void)state;
	refused("{\"inputs\": [" INPUT("FP33", "1") "]}", -EINVAL, "no datatype 'FP33'");
	refused("{\"inputs\": [{\"name\": \"A\"}]}", -EINVAL, "'A' has no datatype");
	refused("{\"inputs\": [" INPUT("FP32", "1") "]}", -EINVAL, "'A' has 0 bytes");
	refused("{\"inputs\": [" INPUT("FP32", "1") "], \"raw_input_contents\": [\"AAAA\"]}",
		-EINVAL, "'A' has 3 bytes");
	refused("{\"inputs\": [" INPUT("FP32", "1, -1") "], \"raw_input_contents\": [\"\"]}",
		-EINVAL, "negative");
	refused("{\"inputs\": [" INPUT("FP32", "1,1,1,1,1,1,1,1,1") "]}", -EINVAL,
		"more than 8 dimensions");
	refused("{\"inputs\": [" INPUT("BYTES", "1") "], \"raw_input_contents\": [\"BQAAAGE=\"]}",
		-EINVAL, "'A'");
	refused("{\"inputs\": [" INPUT("INT8", "1") ", " INPUT(
			"INT8", "1") "], \"raw_input_contents\": [\"AA==\"]}",
		-EINVAL, "raw_input_contents has 1 elements, none for input 'A'");
	refused("{\"inputs\": [" INPUT(
			"INT8", "1") "], \"raw_input_contents\": [\"AA==\", \"AA==\"]}",
		-EINVAL, "raw_input_contents has 2 elements for 1 inputs");
	refused("{\"inputs\": [{\"name\": \"A\", \"datatype\": \"INT8\", \"shape\": [1], \"contents\":"
		" {\"int_contents\": [1]}}], \"raw_input_contents\": [\"AA==\"]}",
		-EINVAL, "all inputs or none");
	refused(TYPED("INT8", "1", "\"int_contents\": [200]"), -EINVAL, "not INT8");
	refused(TYPED("UINT16", "1", "\"uint_contents\": [65536]"), -EINVAL, "not UINT16");
	refused(TYPED("INT8", "2", "\"int_contents\": [2]"), -EINVAL, "'A' has 1 bytes");
	refused(TYPED("INT8", "1", "\"int_contents\": [2, 3]"), -EINVAL, "'A' has 2 bytes");
	refused(TYPED("INT8", "1", "\"fp32_contents\": [2.0]"), -EINVAL, "not those of INT8");
	refused(TYPED("FP16", "1", "\"fp32_contents\": [2.0]"), -EINVAL, "has to be in raw_input");
	refused("{\"parameters\": {\"timeout\": -1}}", -EINVAL, "'timeout' is not a whole number");
	refused("{\"parameters\": {\"priority\": \"high\"}}", -EINVAL,
		"'priority' is not a whole number");
	for (int i = 0; i <= INFER_TENSORS; i++) {
		char *more = xasprintf("%s%s" INPUT("INT8", "0"), many, i ? ", " : "");
		free(many);
		many = more;
	}
	char *all = xasprintf("%s]}", many);
	refused(all, -EINVAL, "at most 64 inputs");
	free(all);
	free(many);
}

static const char whole[] =
	"{\"model_name\": \"m\", \"id\": \"x\", \"parameters\": {\"a\": 5, \"b\": \"c\", \"d\": 1.5},"
	" \"inputs\": [{\"name\": \"A\", \"datatype\": \"INT32\", \"shape\": [2, 1], \"parameters\":"
	" {\"e\": true}, \"contents\": {\"int_contents\": [1, 300]}},"
	" {\"name\": \"B\", \"datatype\": \"BYTES\", \"shape\": [1], \"contents\":"
	" {\"bytes_contents\": [\"AAAA\"]}}], \"outputs\": [{\"name\": \"Y\"}]}";

/* A copy whose last byte is the last of its memory, so that a sanitizer sees a read behind it. */
static int read_copy(struct infer_request *r, const char *bytes, size_t n, struct error *err)
{
	char *copy = xmalloc(n + !n);
	int rc;
	memcpy(copy, bytes, n);
	infer_request_reset(r);
	rc = infer_pb_read(r, copy, n, err);
	free(copy);
	return rc;
}

static void a_message_may_end_anywhere(void **state)
{
	struct asked *a = ask(whole);
	struct infer_request *r = &a->r;
	size_t refused_count = 0;
	(void)state;
	assert_int_equal(a->rc, 0);
	for (size_t n = 0; n < a->message.n; n++) {
		struct error err = { .text = "" };
		const int rc = read_copy(r, a->message.v, n, &err);
		assert_true(!rc || (rc == -EINVAL && *err.text));
		refused_count += rc != 0;
	}
	/* A request that ends between two fields is a message, of which there are nine places. */
	assert_true(refused_count >= a->message.n - 9);
	done(a);
}

static void any_byte_may_be_wrong(void **state)
{
	struct asked *a = ask(whole);
	(void)state;
	for (size_t i = 0; i < a->message.n; i++) {
		const char was = a->message.v[i];
		for (int c = 0; c < 256; c++) {
			struct error err = { .text = "" };
			a->message.v[i] = (char)c;
			assert_true(
				!read_copy(&a->r, a->message.v, a->message.n, &err) || *err.text);
		}
		a->message.v[i] = was;
	}
	done(a);
}

static void unknown_fields_are_skipped(void **state)
{
	/* Field 100 as varint, 64 bits, bytes and 32 bits before a model's name. */
	static const char message[] = "\xa0\x06\x05\xa1\x06"
				      "12345678\xa2\x06\x02xx\xa5\x06"
				      "1234\x0a\x01m";
	struct infer_request r = { 0 };
	(void)state;
	assert_int_equal(infer_pb_read(&r, message, sizeof message - 1, NULL), 0);
	assert_slice(r.model, "m");
	/* A group, which proto3 does not have. */
	assert_int_equal(infer_pb_read(&r, "\xa3\x06\xa4\x06", 4, NULL), -EINVAL);
	/* A text that is not UTF-8. */
	assert_int_equal(infer_pb_read(&r, "\x1a\x01\xff", 3, NULL), -EINVAL);
}

static struct infer_answer *make_answer(void)
{
	static const float values[] = { 1, 2, 3 };
	struct infer_answer *a = xcalloc(1, sizeof *a);
	a->model = SLICE("m");
	a->version = SLICE("1");
	a->id = SLICE("x7");
	a->params = 5;
	a->param[0] = (struct param){ SLICE("b"), PARAM_BOOL, .b = true };
	a->param[1] = (struct param){ SLICE("i"), PARAM_INT, .i = -5 };
	a->param[2] = (struct param){ SLICE("r"), PARAM_REAL, .d = 0.25 };
	a->param[3] = (struct param){ SLICE("t"), PARAM_TEXT, .s = SLICE("text") };
	a->param[4] = (struct param){ SLICE("u"), PARAM_UINT, .u = 300 };
	a->outputs = 3;
	a->output[0] = (struct tensor){ SLICE("Y"), DTYPE_FP32, { 2, { 1, 3 } }, values, 12 };
	a->output[1] = (struct tensor){ SLICE("E"), DTYPE_INT64, { 1, { 0 } }, "", 0 };
	a->output[2] = (struct tensor){ SLICE("S"), DTYPE_INT8, { 1, { 300 } }, NULL, 300 };
	return a;
}

#define ANSWER                                                                                       \
	"{\"model_name\": \"m\", \"model_version\": \"1\", \"id\": \"x7\", \"parameters\": {\"b\":"  \
	" true, \"i\": -5, \"r\": 0.25, \"t\": \"text\", \"u\": 300}, \"outputs\": [{\"name\":"      \
	" \"Y\", \"datatype\": \"FP32\", \"shape\": [1, 3]}, {\"name\": \"E\", \"datatype\":"        \
	" \"INT64\", \"shape\": [0]}, {\"name\": \"S\", \"datatype\": \"INT8\", \"shape\": [300]}]," \
	" \"raw_output_contents\": [\"AACAPwAAAEAAAEBA\", \"\", \"\"]}"

/* The generic reader's findings in the bytes. */
static void assert_message(const char *name, const struct buf *b, const char *expected)
{
	struct error err = { .text = "" };
	json_t *value, *wanted = json_loads(expected, 0, NULL);
	char *text;
	assert_non_null(wanted);
	if (message_read(name, b->v, b->n, &value, &err))
		fail_msg("%s", err.text);
	text = json_dumps(value, JSON_SORT_KEYS);
	if (!json_equal(value, wanted))
		fail_msg("%s", text);
	free(text);
	json_decref(value);
	json_decref(wanted);
}

static void an_answer_has_raw_contents(void **state)
{
	struct infer_answer *a = make_answer();
	struct buf b = { 0 };
	(void)state;
	infer_pb_put(&b, a);
	assert_message("ModelInferResponse", &b, ANSWER);
	b.n = 0;
	infer_pb_put_stream(&b, a, NULL);
	assert_message("ModelStreamInferResponse", &b, "{\"infer_response\": " ANSWER "}");
	b.n = 0;
	infer_pb_put_stream(&b, NULL, "no such model");
	assert_message("ModelStreamInferResponse", &b, "{\"error_message\": \"no such model\"}");
	*a = (struct infer_answer){ 0 };
	b.n = 0;
	infer_pb_put(&b, a);
	assert_int_equal(b.n, 0);
	buf_free(&b);
	free(a);
}

static void memory_is_kept_for_the_next_request(void **state)
{
	struct asked *a = ask(whole);
	const char *memory = a->r.memory.v;
	(void)state;
	assert_non_null(memory);
	infer_request_reset(&a->r);
	assert_int_equal(infer_pb_read(&a->r, a->message.v, a->message.n, NULL), 0);
	assert_ptr_equal(a->r.memory.v, memory);
	done(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_inputs_stay_in_the_message),
		cmocka_unit_test(typed_contents_become_the_bytes_of_the_type),
		cmocka_unit_test(an_element_may_come_alone),
		cmocka_unit_test(parameters_go_to_their_places),
		cmocka_unit_test(a_priority_may_be_unsigned),
		cmocka_unit_test(what_does_not_fit_is_refused_by_name),
		cmocka_unit_test(a_message_may_end_anywhere),
		cmocka_unit_test(any_byte_may_be_wrong),
		cmocka_unit_test(unknown_fields_are_skipped),
		cmocka_unit_test(an_answer_has_raw_contents),
		cmocka_unit_test(memory_is_kept_for_the_next_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
