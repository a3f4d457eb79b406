/* The descriptions that calls of libraries give of themselves: the words, and that a shape is
 * written once. */
#include "unit.h"

#include <string.h>

#include "hook/range/library.h"
#include "hook/core/metadata.h"
#include "hook/range/shape.h"
#include "hook/core/strings.h"
#include "model/cost.h"

_Atomic(void *) library_ask[LIBRARY_QUESTIONS];

static char written[STRING_MOST + 1];
static unsigned writes;

bool meta_has_room(void)
{
	return true;
}

void meta_text(
	enum meta_id id, const uint64_t *args, uint32_t count, const char *text, uint32_t bytes)
{
	assert_int_equal(id, META_STRING);
	assert_true(bytes <= STRING_MOST);
	memcpy(written, text, bytes);
	written[bytes] = '\0';
	writes++;
}

struct layout {
	uint64_t rows, cols;
	int32_t type, batch;
	bool refuses;
};

static int give(void *to, size_t room, const void *from, size_t bytes)
{
	if (room != bytes)
		return 7;
	memcpy(to, from, bytes);
	return 0;
}

static int ask_layout(void *of, int attribute, void *to, size_t room, size_t *ret_bytes)
{
	const struct layout *l = of;
	if (l->refuses)
		return 7;
	switch (attribute) {
	case 0:
		return give(to, room, &l->type, 4);
	case 2:
		return give(to, room, &l->rows, 8);
	case 3:
		return give(to, room, &l->cols, 8);
	case 5:
		return give(to, room, &l->batch, 4);
	default:
		return 7;
	}
}

static int ask_matmul(void *of, int attribute, void *to, size_t room, size_t *ret_bytes)
{
	const int32_t *v = of; /* compute, transpose A, epilogue */
	const int at = attribute == 0 ? 0 : attribute == 3 ? 1 : attribute == 7 ? 2 : -1;
	return at < 0 ? 7 : give(to, room, &v[at], 4);
}

static int ask_dims(void *of, int wanted, int32_t *type, int32_t *count, int32_t *dims)
{
	const int32_t *v = of; /* type, how many, each */
	*type = v[0];
	*count = v[1];
	for (int32_t i = 0; i < v[1] && i < wanted; i++)
		dims[i] = v[2 + i];
	return 0;
}

static int ask_tensor(
	void *of, int wanted, int32_t *type, int32_t *count, int32_t *dims, int32_t *strides)
{
	return ask_dims(of, wanted, type, count, dims);
}

static int ask_filter(
	void *of, int wanted, int32_t *type, int32_t *format, int32_t *count, int32_t *dims)
{
	*format = 0;
	return ask_dims(of, wanted, type, count, dims);
}

static int begin(void **state)
{
	strings_forget();
	writes = 0;
	library_ask[ASK_LAYOUT] = (void *)ask_layout;
	library_ask[ASK_MATMUL] = (void *)ask_matmul;
	library_ask[ASK_TENSOR] = (void *)ask_tensor;
	library_ask[ASK_FILTER] = (void *)ask_filter;
	return 0;
}

static const struct product plain = { .m = 2,
	.n = 3,
	.k = 4,
	.batch = 1,
	.type = TYPE_S,
	.type_b = TYPE_S,
	.type_c = TYPE_S,
	.compute = UNSAID };

static void the_words_of_a_product(void **state)
{
	struct product p = plain;
	assert_true(product_args(&p));
	assert_string_equal(written, "{\"m\":2,\"n\":3,\"k\":4,\"type\":\"float32\"}");
	p.m = INT64_MAX;
	p.n = 0;
	p.k = INT64_MIN;
	p.batch = -1;
	p.type = 28;
	p.type_b = 29;
	p.type_c = 14;
	p.compute = 68;
	p.epilogue = 2 | 128 | 4;
	assert_true(product_args(&p));
	assert_string_equal(written,
		"{\"m\":9223372036854775807,\"n\":0,\"k\":-9223372036854775808,\"batch\":-1,"
		"\"type\":\"float8_e4m3\",\"type_b\":\"float8_e5m2\",\"type_c\":\"bfloat16\","
		"\"compute\":\"float32\",\"epilogue\":\"relu_aux_bias\"}");
	assert_int_equal(writes, 2);
}

static void an_unknown_type_is_left_out(void **state)
{
	static const int32_t types[] = { UNSAID, INT32_MIN, INT32_MAX, 6, 34, 63 };
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct product p = plain;
		p.type = p.type_b = p.type_c = p.compute = types[i];
		assert_true(product_args(&p));
		assert_string_equal(written, "{\"m\":2,\"n\":3,\"k\":4}");
	}
}

static void compute_types_of_new_and_old_versions_have_names(void **state)
{
	static const struct {
		int32_t type;
		const char *end;
	} all[] = { { 77, "\"compute\":\"float32_by_tf32\"}" }, { 64, "\"compute\":\"float16\"}" },
		{ 2, "\"compute\":\"float16\"}" }, { 0, "\"compute\":\"float32\"}" },
		{ 79, "\"compute\":\"float64_by_integers\"}" } };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct product p = plain;
		p.compute = all[i].type;
		product_args(&p);
		assert_non_null(strstr(written, all[i].end));
	}
}

static void equal_shapes_are_one_string(void **state)
{
	struct product p = plain;
	const uint32_t id = product_args(&p);
	for (int i = 0; i < 10; i++)
		assert_int_equal(product_args(&p), id);
	assert_int_equal(writes, 1);
	p.k++;
	assert_int_not_equal(product_args(&p), id);
	assert_int_equal(writes, 2);
}

static void what_is_written_has_the_cost_that_was_asked_for(void **state)
{
	struct cost c;
	for (int64_t size = 1; size < 5000; size = size * 3 + 1) {
		struct product p = plain;
		p.m = size, p.n = size + 1, p.k = size + 2, p.batch = 5;
		product_args(&p);
		assert_true(cost_of("cublasSgemmStridedBatched", written, &c));
		assert_true(c.flops == 2.0 * 5 * size * (size + 1) * (size + 2));
	}
}

static void a_product_of_descriptors(void **state)
{
	struct layout a = { 64, 32, 28, 4, false }, b = { 64, 16, 29, 4, false },
		      d = { 32, 16, 14, 4, false };
	int32_t transposed[] = { 68, 1, 4 }, as_it_is[] = { 68, 0, 1 };
	assert_true(matmul_args(transposed, &a, &b, &d));
	assert_string_equal(written,
		"{\"m\":32,\"n\":16,\"k\":64,\"batch\":4,\"type\":\"float8_e4m3\","
		"\"type_b\":\"float8_e5m2\",\"type_c\":\"bfloat16\",\"compute\":\"float32\","
		"\"epilogue\":\"bias\"}");
	assert_true(matmul_args(as_it_is, &a, &b, &d));
	assert_non_null(strstr(written, "\"k\":32,"));
	assert_null(strstr(written, "epilogue"));
}

static void descriptors_that_do_not_answer_say_nothing(void **state)
{
	struct layout l = { 1, 1, 0, 1, false }, mute = { .refuses = true };
	int32_t desc[] = { 68, 0, 1 }, t[] = { 0, 2, 1, 1 };
	assert_int_equal(matmul_args(NULL, &l, &l, &l), 0);
	assert_int_equal(matmul_args(desc, NULL, &l, &l), 0);
	assert_int_equal(matmul_args(desc, &l, NULL, &l), 0);
	assert_int_equal(matmul_args(desc, &l, &l, NULL), 0);
	assert_int_equal(matmul_args(desc, &l, &l, &mute), 0);
	assert_int_equal(matmul_args(desc, &mute, &l, &l), 0);
	assert_int_equal(conv_args(NULL, t, t), 0);
	assert_int_equal(conv_args(t, NULL, t), 0);
	assert_int_equal(conv_args(t, t, NULL), 0);
	memset(library_ask, 0, sizeof library_ask);
	assert_int_equal(matmul_args(desc, &l, &l, &l), 0);
	assert_int_equal(conv_args(t, t, t), 0);
	assert_int_equal(writes, 0);
}

static void a_convolution_of_descriptors(void **state)
{
	int32_t x[] = { 2, 4, 1, 3, 8, 8 }, w[] = { 2, 4, 5, 3, 3, 3 }, y[] = { 2, 4, 1, 5, 6, 6 };
	struct cost c;
	const uint32_t id = conv_args(x, w, y);
	assert_string_equal(written, "{\"input\":[1,3,8,8],\"filter\":[5,3,3,3],"
				     "\"output\":[1,5,6,6],\"type\":\"float16\"}");
	assert_true(cost_of("cudnnConvolutionForward", written, &c));
	assert_true(c.flops == 2.0 * 5 * 6 * 6 * 3 * 3 * 3);
	assert_int_equal(conv_args(x, w, y), id);
	assert_int_equal(writes, 1);
}

static void a_tensor_of_more_dimensions_than_there_are_says_nothing(void **state)
{
	int32_t most[10] = { 0, 8, 1, 1, 1, 1, 1, 1, 1, INT32_MIN }, more[11] = { 0, 9 },
		none[] = { 0, 0 }, less[] = { 0, -1 };
	assert_true(conv_args(most, most, most));
	assert_non_null(strstr(written, "-2147483648]"));
	assert_int_equal(conv_args(more, most, most), 0);
	assert_int_equal(conv_args(most, none, most), 0);
	assert_int_equal(conv_args(most, most, less), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_words_of_a_product, begin),
		cmocka_unit_test_setup(an_unknown_type_is_left_out, begin),
		cmocka_unit_test_setup(compute_types_of_new_and_old_versions_have_names, begin),
		cmocka_unit_test_setup(equal_shapes_are_one_string, begin),
		cmocka_unit_test_setup(what_is_written_has_the_cost_that_was_asked_for, begin),
		cmocka_unit_test_setup(a_product_of_descriptors, begin),
		cmocka_unit_test_setup(descriptors_that_do_not_answer_say_nothing, begin),
		cmocka_unit_test_setup(a_convolution_of_descriptors, begin),
		cmocka_unit_test_setup(
			a_tensor_of_more_dimensions_than_there_are_says_nothing, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
