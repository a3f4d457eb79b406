/* What operators must do: by hand, and against a plain loop over the elements. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "report/cost.h"

static struct cost cost(
	const char *operator, const char * dims, const char *types, const char *more)
{
	char args[1024];
	struct cost c = { 0 };
	snprintf(args, sizeof(args), "{\"Ev Idx\":3,\"Input Dims\":%s,\"Input type\":%s%s}", dims,
		types, more);
	if (!cost_of(operator, args, &c))
		fail_msg("%s of %s has no cost", operator, args);
	return c;
}

static void check(
	const char *operator, const char * dims, const char *types, double flops, double bytes)
{
	const struct cost c = cost(operator, dims, types, "");
	if (c.flops != flops || c.bytes != bytes)
		fail_msg("%s of %s: %.0f FLOPs and %.0f bytes, not %.0f and %.0f", operator, dims,
			c.flops, c.bytes, flops, bytes);
}

#define HALF2 "[\"c10::Half\",\"c10::Half\"]"
#define HALF3 "[\"c10::Half\", \"c10::Half\", \"c10::Half\", \"Scalar\"]"

static void a_product_is_two_flops_for_each_row_column_and_step(void **state)
{
	check("aten::mm", "[[4,8],[8,16]]", HALF2, 2 * 4 * 8 * 16, 2 * (4 * 8 + 8 * 16 + 4 * 16));
	check("aten::addmm", "[[16], [4, 8], [8, 16], []]", HALF3, 2 * 4 * 8 * 16,
		2 * (4 * 8 + 8 * 16 + 4 * 16));
	check("aten::bmm", "[[3,4,8],[3,8,16]]", HALF2, 3 * 2 * 4 * 8 * 16,
		3 * 2 * (4 * 8 + 8 * 16 + 4 * 16));
	check("aten::matmul", "[[3,4,8],[8,16]]", HALF2, 3 * 2 * 4 * 8 * 16,
		2 * (3 * 4 * 8 + 8 * 16 + 3 * 4 * 16));
	check("aten::matmul", "[[4,8],[3,8,16]]", HALF2, 3 * 2 * 4 * 8 * 16,
		2 * (4 * 8 + 3 * 8 * 16 + 3 * 4 * 16));
	check("aten::matmul", "[[4,8],[8]]", HALF2, 2 * 4 * 8, 2 * (4 * 8 + 8 + 4));
	check("aten::linear", "[[3,4,8],[16,8]]", HALF2, 3 * 2 * 4 * 8 * 16,
		2 * (3 * 4 * 8 + 8 * 16 + 3 * 4 * 16));
}

static void a_convolution_counts_its_outputs(void **state)
{
	static const char dims[] = "[[2,3,8,8],[5,3,3,3],[5],[],[],[]]";
	static const char types[] = "[\"float\",\"float\",\"float\",\"\",\"\",\"\"]";
	const struct cost plain = cost("aten::conv2d", dims, types, "");
	assert_true(plain.flops == 2.0 * 2 * 5 * 6 * 6 * 3 * 3 * 3);
	const struct cost same = cost("aten::conv2d", dims, types,
		",\"Concrete Inputs\":[\"\",\"\",\"\",\"[1, 1]\",\"[1, 1]\",\"[1, 1]\"]");
	assert_true(same.flops == 2.0 * 2 * 5 * 8 * 8 * 3 * 3 * 3);
	const struct cost half = cost("aten::convolution", dims, types,
		",\"Concrete Inputs\":[\"\",\"\",\"\",\"[2, 2]\",\"[1, 1]\",\"[1, 1]\"]");
	assert_true(half.flops == 2.0 * 2 * 5 * 4 * 4 * 3 * 3 * 3);
	const struct cost cudnn = cost("aten::cudnn_convolution", "[[2,3,8,8],[5,3,3,3],[],[]]",
		"[\"float\",\"float\",\"\",\"\"]",
		",\"Concrete Inputs\":[\"\",\"\",\"[1, 1]\",\"[2, 2]\"]");
	assert_true(cudnn.flops == half.flops);
	assert_true(half.unit == GPU_FP32 && half.matrix);
}

static void attention_is_two_products(void **state)
{
	check("aten::scaled_dot_product_attention", "[[2,4,16,8],[2,4,32,8],[2,4,32,8],[]]", HALF3,
		2 * 4 * (2.0 * 16 * 8 * 32 + 2.0 * 16 * 32 * 8),
		2 * 2 * 4 * 8 * (2.0 * 16 + 32 + 32));
}

static void elements_are_broadcast(void **state)
{
	check("aten::add", "[[4,1,3],[2,1],[]]", "[\"float\",\"float\",\"Scalar\"]", 4 * 2 * 3,
		4 * (12 + 2 + 24));
	check("aten::mul", "[[5],[]]", "[\"c10::Half\",\"Scalar\"]", 5, 2 * (5 + 5));
	check("aten::layer_norm", "[[8,16],[]]", "[\"float\",\"ScalarList\"]", 8 * 8 * 16,
		2 * 4 * 8 * 16);
	check("aten::sum", "[[8,16],[]]", "[\"double\",\"\"]", 8 * 16, 8 * 8 * 16);
	check("aten::copy_", "[[7],[7],[]]", "[\"c10::Half\",\"float\",\"Scalar\"]", 0, 7 * 6);
	check("aten::embedding", "[[100,8],[3,4]]", "[\"float\",\"long int\"]", 0,
		2 * 12 * 8 * 4 + 12 * 8);
	check("aten::gather", "[[100,8],[],[3,4]]", "[\"float\",\"Scalar\",\"long int\"]", 0,
		2 * 12 * 4 + 12 * 8);
	check("aten::fill_", "[[3,3],[]]", "[\"bool\",\"Scalar\"]", 0, 9);
}

static void a_type_that_is_not_known_leaves_the_bytes_out(void **state)
{
	const struct cost c =
		cost("aten::mm", "[[4,8],[8,16]]", "[\"c10::Strange\",\"c10::Half\"]", "");
	assert_true(c.has_flops);
	assert_false(c.has_bytes);
	assert_false(c.has_unit);
	struct cost list;
	assert_false(cost_of("aten::cat",
		"{\"Input Dims\":[[[1],[8,64]],[]],\"Input type\":[\"TensorList\",\"Scalar\"]}",
		&list));
}

static void the_unit_follows_type_and_kernel(void **state)
{
	assert_int_equal(cost("aten::mm", "[[4,8],[8,16]]", HALF2, "").unit, GPU_FP16);
	assert_int_equal(cost("aten::relu", "[[4,8]]", "[\"c10::Half\"]", "").unit, GPU_FP32);
	assert_int_equal(cost_unit_of_kernel(GPU_FP32, "ampere_tf32_s1688gemm"), GPU_TF32);
	assert_int_equal(cost_unit_of_kernel(GPU_FP32, "ampere_sgemm_128x64_tn"), GPU_FP32);
	assert_int_equal(cost_unit_of_kernel(GPU_FP16, "tf32"), GPU_FP16);
}

static void a_live_recording_tells_shapes_and_the_type_of_the_module(void **state)
{
	static const char args[] =
		"{\"Input Dims\":[[4, 8], [8, 16]],\"module dtype\":\"float16\"}";
	struct cost c;
	assert_true(cost_of("aten::mm", args, &c));
	assert_true(c.flops == 2 * 4 * 8 * 16);
	assert_true(c.has_bytes && c.bytes == 2 * (4 * 8 + 8 * 16 + 4 * 16));
	assert_int_equal(c.unit, GPU_FP16);
	assert_true(cost_of("aten::mm", "{\"Input Dims\":[[4, 8], [8, 16]]}", &c));
	assert_true(c.has_flops);
	assert_false(c.has_bytes || c.has_unit);
	/* Indices are of another type, and a convolution has strides that are not told. */
	assert_false(cost_of("aten::embedding",
		"{\"Input Dims\":[[9, 8], [3]],\"module dtype\":\"float16\"}", &c));
	assert_false(cost_of("aten::convolution",
		"{\"Input Dims\":[[1, 3, 9, 9], [4, 3, 3, 3]],\"module dtype\":\"float16\"}", &c));
}

static void nonsense_has_no_cost(void **state)
{
	static const char *const texts[] = { "", "{", "\"Input Dims\"",
		"\"Input Dims\":", "\"Input Dims\":[", "\"Input Dims\":[[", "\"Input Dims\":[[1",
		"\"Input Dims\":[[1,", "\"Input Dims\":[[-1,2],[2,3]]",
		"\"Input Dims\":[[1e300,2],[2,3]]", "\"Input Dims\":[[nan,2],[2,3]]",
		"\"Input Dims\":[[1,2]]", "\"Input Dims\":7",
		"\"Input Dims\":[[1,2,3,4,5,6,7,8,9],[1]]", "\"Input Dims\":[[[1,[",
		"\"Input Dims\":[]", "\"Input Dims\":{}", "\"Input Dims\":[\"a\",[1]]" };
	struct cost c;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(cost_of("aten::mm", texts[i], &c));
	assert_false(cost_of("aten::unheard_of", "{\"Input Dims\":[[1],[1]]}", &c));
	assert_false(cost_of("", "", &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_product_is_two_flops_for_each_row_column_and_step),
		cmocka_unit_test(a_convolution_counts_its_outputs),
		cmocka_unit_test(attention_is_two_products),
		cmocka_unit_test(elements_are_broadcast),
		cmocka_unit_test(a_type_that_is_not_known_leaves_the_bytes_out),
		cmocka_unit_test(the_unit_follows_type_and_kernel),
		cmocka_unit_test(a_live_recording_tells_shapes_and_the_type_of_the_module),
		cmocka_unit_test(nonsense_has_no_cost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
