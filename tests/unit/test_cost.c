/* The costs of operators: by hand, and against a plain loop over the elements. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "model/cost.h"
#include "model/roofline.h"

static struct cost cost(
	const char *operator, const char * dims, const char *types, const char *more)
{
	char args[1024];
	struct cost c = { 0 };
	snprintf(args, sizeof args, "{\"Ev Idx\":3,\"Input Dims\":%s,\"Input type\":%s%s}", dims,
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

#define FLOAT     "[\"float\",\"float\",\"float\",\"\",\"\",\"\"]"
#define SAYS(...) ",\"Concrete Inputs\":[" __VA_ARGS__ "]"

static void a_convolution_counts_its_outputs(void **state)
{
	static const char dims[] = "[[2,3,8,8],[5,3,3,3],[5],[],[],[]]";
	const struct cost plain = cost("aten::conv2d", dims, FLOAT,
		SAYS("\"\",\"\",\"\",\"[1, 1]\",\"[0, 0]\",\"[1, 1]\",\"1\""));
	assert_true(plain.flops == 2.0 * 2 * 5 * 6 * 6 * 3 * 3 * 3);
	const struct cost same = cost("aten::conv2d", dims, FLOAT,
		SAYS("\"\",\"\",\"\",\"[1, 1]\",\"[1, 1]\",\"[1, 1]\",\"1\""));
	assert_true(same.flops == 2.0 * 2 * 5 * 8 * 8 * 3 * 3 * 3);
	const struct cost half = cost("aten::convolution", dims, FLOAT,
		SAYS("\"\",\"\",\"\",\"[2, 2]\",\"[1, 1]\",\"[1, 1]\",\"False\",\"[0, 0]\",\"1\""));
	assert_true(half.flops == 2.0 * 2 * 5 * 4 * 4 * 3 * 3 * 3);
	const struct cost cudnn = cost("aten::cudnn_convolution", "[[2,3,8,8],[5,3,3,3],[],[]]",
		FLOAT, SAYS("\"\",\"\",\"[1, 1]\",\"[2, 2]\",\"[1, 1]\",\"1\""));
	assert_true(cudnn.flops == half.flops);
	assert_true(half.unit == GPU_FP32 && half.matrix);
}

/* Counted by hand: places, times weights of all filters, times 2. */
static void convolutions_of_all_kinds_have_the_flops_that_a_hand_counts(void **state)
{
	static const struct {
		const char *operator, * dims, *says;
		double flops, bytes;
	} table[] = {
		/* every second pixel of a filter of three: it reaches over five, so 4 x 4 places */
		{ "aten::conv2d", "[[2,3,8,8],[5,3,3,3],[]]",
			SAYS("\"\",\"\",\"\",\"[1, 1]\",\"[0, 0]\",\"[2, 2]\",\"1\""),
			2.0 * 2 * 16 * 135, 4 * (384 + 160 + 135) },
		/* two groups: a filter sees half the channels */
		{ "aten::_convolution", "[[1,4,6,6],[8,2,3,3],[8]]",
			SAYS("\"\",\"\",\"\",\"[1]\",\"[0]\",\"[1]\",\"False\",\"[0, 0]\",\"2\",\"False\""),
			2.0 * 16 * 144, 4 * (144 + 128 + 144) },
		/* each channel alone */
		{ "aten::_conv_depthwise2d", "[[1,4,6,6],[4,1,3,3],[],[]]",
			SAYS("\"\",\"\",\"[3, 3]\",\"\",\"[1, 1]\",\"[0, 0]\",\"[1, 1]\""),
			2.0 * 16 * 36, 4 * (144 + 64 + 36) },
		/* transposed: each pixel of the image meets each weight, 5 x 5 become 10 x 10 */
		{ "aten::conv_transpose2d", "[[1,4,5,5],[4,3,2,2],[]]",
			SAYS("\"\",\"\",\"\",\"[2, 2]\",\"[0, 0]\",\"[0, 0]\",\"1\",\"[1, 1]\""),
			2.0 * 25 * 48, 4 * (100 + 300 + 48) },
		{ "aten::convolution", "[[1,4,5,5],[4,3,2,2],[]]",
			SAYS("\"\",\"\",\"\",\"[2, 2]\",\"[0, 0]\",\"[1, 1]\",\"True\",\"[1, 1]\",\"1\""),
			2.0 * 25 * 48, 4 * (100 + 363 + 48) },
		{ "aten::cudnn_convolution_transpose", "[[1,4,5,5],[4,3,2,2],[]]",
			SAYS("\"\",\"\",\"[0, 0]\",\"[0, 0]\",\"[2, 2]\",\"[1, 1]\",\"1\",\"False\""),
			2.0 * 25 * 48, 4 * (100 + 300 + 48) },
		/* (20 + 2 2 - 13) / 2 + 1 = 6 places */
		{ "aten::conv1d", "[[2,3,20],[4,3,5],[]]",
			SAYS("\"\",\"\",\"\",\"[2]\",\"[2]\",\"[3]\",\"1\""), 2.0 * 2 * 6 * 60,
			4 * (120 + 48 + 60) },
		{ "aten::conv3d", "[[1,1,4,4,4],[2,1,3,3,3],[]]",
			SAYS("\"\",\"\",\"\",\"[1,1,1]\",\"[0,0,0]\",\"[1,1,1]\",\"1\""),
			2.0 * 8 * 54, 4 * (64 + 16 + 54) },
		{ "aten::cudnn_convolution_add_relu", "[[2,3,8,8],[5,3,3,3],[2,5,6,6]]",
			SAYS("\"\",\"\",\"\",\"1\",\"\",\"[1, 1]\",\"[0, 0]\",\"[1, 1]\",\"1\""),
			2.0 * 2 * 36 * 135, 4 * (384 + 360 + 135) },
		/* backward: a product for the image's gradient, one for the weight's */
		{ "aten::convolution_backward", "[[2,5,4,4],[2,3,8,8],[5,3,3,3]]",
			SAYS("\"\",\"\",\"\",\"[5]\",\"[1, 1]\",\"[0, 0]\",\"[2, 2]\",\"False\","
			     "\"[0, 0]\",\"1\",\"[True, True, True]\""),
			2 * 2.0 * 2 * 16 * 135, 4 * (160 + 2 * 384 + 2 * 135) },
		{ "aten::convolution_backward", "[[2,5,4,4],[2,3,8,8],[5,3,3,3]]",
			SAYS("\"\",\"\",\"\",\"[5]\",\"[1, 1]\",\"[0, 0]\",\"[2, 2]\",\"False\","
			     "\"[0, 0]\",\"1\",\"[False, True, True]\""),
			2.0 * 2 * 16 * 135, 4 * (160 + 384 + 135) },
		{ "aten::convolution_backward", "[[1,3,10,10],[1,4,5,5],[4,3,2,2]]",
			SAYS("\"\",\"\",\"\",\"[0]\",\"[2, 2]\",\"[0, 0]\",\"[1, 1]\",\"True\","
			     "\"[0, 0]\",\"1\",\"[True, True, False]\""),
			2 * 2.0 * 25 * 48, 4 * (300 + 2 * 100 + 2 * 48) },
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		const struct cost c = cost(table[i].operator, table[i].dims, FLOAT, table[i].says);
		if (c.flops != table[i].flops || c.bytes != table[i].bytes)
			fail_msg("%s of %s: %.0f FLOPs and %.0f bytes, not %.0f and %.0f",
				table[i].operator, table[i].dims, c.flops, c.bytes, table[i].flops,
				table[i].bytes);
	}
}

/* Places at which a filter fits, one after the other. */
static unsigned places(
	unsigned in, unsigned kernel, unsigned stride, unsigned pad, unsigned dilation)
{
	unsigned n = 0;
	for (unsigned at = 0; at + dilation * (kernel - 1) < in + 2 * pad; at += stride)
		n++;
	return n;
}

static void a_convolution_has_the_flops_of_a_plain_loop(void **state)
{
	for (unsigned i = 0; i < 300; i++) {
		const unsigned kernel = 1 + i % 4, stride = 1 + i % 3, pad = i % 5,
			       dilation = 1 + i % 2;
		const unsigned groups = 1 + i % 2, in = 9 + i % 7, channels = 2 * groups, out = 4;
		const unsigned n = places(in, kernel, stride, pad, dilation);
		double flops = 0;
		char dims[96], says[160];
		for (unsigned y = 0; y < n; y++)
			for (unsigned x = 0; x < n; x++)
				for (unsigned f = 0; f < out; f++)
					flops += 2.0 * (channels / groups) * kernel * kernel;
		snprintf(dims, sizeof dims, "[[1,%u,%u,%u],[%u,%u,%u,%u],[]]", channels, in, in,
			out, channels / groups, kernel, kernel);
		snprintf(says, sizeof says,
			SAYS("\"\",\"\",\"\",\"[%u, %u]\",\"[%u, %u]\",\"[%u, %u]\",\"%u\""),
			stride, stride, pad, pad, dilation, dilation, groups);
		const struct cost c = cost("aten::conv2d", dims, FLOAT, says);
		if (c.flops != flops)
			fail_msg("%s%s: %.0f FLOPs, not %.0f", dims, says, c.flops, flops);
	}
}

/* For old traces, and for paddings by name: the operators inside say the numbers. */
static void a_convolution_that_does_not_say_how_has_no_cost(void **state)
{
	static const char *const says[] = { "", ",\"Concrete Inputs\":[]",
		SAYS("\"\",\"\",\"\",\"[1, 1]\",\"\\\"same\\\"\",\"[1, 1]\",\"1\""),
		SAYS("\"\",\"\",\"\",\"[1, 1]\"") };
	for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
		char args[400];
		struct cost c;
		snprintf(args, sizeof args,
			"{\"Input Dims\":[[2,3,8,8],[5,3,3,3]],\"Input type\":%s%s}", FLOAT,
			says[i]);
		assert_false(cost_of("aten::conv2d", args, &c));
	}
}

static void a_live_recording_tells_of_the_convolution_around(void **state)
{
	static const char args[] =
		"{\"Input Dims\":[[2, 3, 8, 8], [5, 3, 3, 3]],\"module dtype\":\"float16\","
		"\"module conv\":{\"stride\":[2,2],\"padding\":[1,1],\"dilation\":[1,1],"
		"\"output_padding\":[0,0],\"groups\":1,\"transposed\":false}}";
	static const char grown[] =
		"{\"Input Dims\":[[1, 4, 5, 5], [4, 3, 2, 2]],\"module dtype\":\"float16\","
		"\"module conv\":{\"stride\":[2,2],\"padding\":[0,0],\"dilation\":[1,1],"
		"\"output_padding\":[0,0],\"groups\":1,\"transposed\":true}}";
	static const char kept[] =
		"{\"Input Dims\":[[2, 3, 8, 8], [5, 3, 3, 3]],\"module dtype\":\"float16\","
		"\"module conv\":{\"stride\":[1,1],\"padding\":\"same\",\"dilation\":[1,1],"
		"\"output_padding\":[0,0],\"groups\":1,\"transposed\":false}}";
	struct cost c;
	assert_true(cost_of("aten::conv2d", args, &c));
	assert_true(c.flops == 2.0 * 2 * 16 * 135);
	assert_true(c.bytes == 2 * (384 + 160 + 135));
	assert_true(cost_of("aten::cudnn_convolution", args, &c));
	assert_true(c.flops == 2.0 * 2 * 16 * 135);
	assert_true(cost_of("aten::cudnn_convolution", kept, &c));
	assert_true(c.flops == 2.0 * 2 * 64 * 135);
	assert_true(cost_of("aten::cudnn_convolution_transpose", grown, &c));
	assert_true(c.flops == 2.0 * 25 * 48);
	assert_false(cost_of("aten::cudnn_convolution_transpose", args, &c));
	/* Steps back are in no module, and tell of no mask: both gradients. */
	assert_true(cost_of("aten::convolution_backward",
		"{\"Input Dims\":[[2, 5, 4, 4], [2, 3, 8, 8], [5, 3, 3, 3], []]}", &c));
	assert_true(c.flops == 2 * 2.0 * 2 * 16 * 135 && c.several && !c.has_bytes);
	assert_true(cost_of("aten::convolution_backward",
		"{\"Input Dims\":[[1, 4, 10, 10], [1, 4, 5, 5], [4, 4, 2, 2], []]}", &c));
	assert_true(c.flops == 2 * 2.0 * 25 * 64);
}

#define LIVE(dims, lists)                                                                          \
	"{\"Input Dims\":" dims ",\"module dtype\":\"float16\",\"module conv\":{" lists "}}"
#define LISTS(stride, padding, dilation, grown, groups, transposed)                                \
	"\"stride\":" stride ",\"padding\":" padding ",\"dilation\":" dilation                     \
	",\"output_padding\":" grown ",\"groups\":" #groups ",\"transposed\":" #transposed

/*
 * A module has a number a dimension; a convolution of one dimension is run as one of two, of images
 * that are 1 high.  Filters of 5 that step by 2 over 20 with 2 around: 10 places, and 3 x 4 x 5
 * weights.
 */
static void a_live_convolution_has_the_flops_of_its_module(void **state)
{
#define LINE      LISTS("[2]", "[2]", "[1]", "[0]", 1, false)
#define LINE_KEPT LISTS("[1]", "\"same\"", "[3]", "[0]", 1, false)
#define LINE_BACK LISTS("[2]", "[2]", "[1]", "[1]", 1, true)
#define BOX       LISTS("[1,2,2]", "[0,1,1]", "[1,1,1]", "[0,0,0]", 2, false)
	static const struct {
		const char *operator, * args;
		double flops, bytes;
	} table[] = {
		{ "aten::conv1d", LIVE("[[2, 3, 20], [4, 3, 5], [4]]", LINE), 2.0 * 20 * 60,
			2 * (120 + 80 + 60) },
		{ "aten::convolution", LIVE("[[2, 3, 20], [4, 3, 5], [4]]", LINE), 2.0 * 20 * 60,
			2 * (120 + 80 + 60) },
		{ "aten::_convolution", LIVE("[[2, 3, 1, 20], [4, 3, 1, 5]]", LINE), 2.0 * 20 * 60,
			2 * (120 + 80 + 60) },
		{ "aten::cudnn_convolution", LIVE("[[2, 3, 1, 20], [4, 3, 1, 5]]", LINE),
			2.0 * 20 * 60, 2 * (120 + 80 + 60) },
		{ "aten::conv1d", LIVE("[[2, 3, 20], [4, 3, 5]]", LINE_KEPT), 2.0 * 40 * 60,
			2 * (120 + 160 + 60) },
		{ "aten::cudnn_convolution", LIVE("[[2, 3, 1, 20], [4, 3, 1, 5]]", LINE_KEPT),
			2.0 * 40 * 60, 2 * (120 + 160 + 60) },
		/* (10 - 1) 2 - 4 + 5 + 1 = 20 places of 3 channels; each of 10 meets each weight */
		{ "aten::conv_transpose1d", LIVE("[[2, 4, 10], [4, 3, 5]]", LINE_BACK),
			2.0 * 20 * 60, 2 * (80 + 120 + 60) },
		{ "aten::cudnn_convolution_transpose",
			LIVE("[[2, 4, 1, 10], [4, 3, 1, 5]]", LINE_BACK), 2.0 * 20 * 60,
			2 * (80 + 120 + 60) },
		{ "aten::conv2d",
			LIVE("[[2, 3, 1, 20], [4, 3, 1, 5]]",
				LISTS("[1,2]", "[1,2]", "[1,1]", "[0,0]", 1, false)),
			2.0 * 3 * 20 * 60, 2 * (120 + 3 * 80 + 60) },
		/* 4 x 4 x 4 places; a filter sees half of 4 channels */
		{ "aten::conv3d", LIVE("[[1, 4, 6, 8, 8], [6, 2, 3, 3, 3]]", BOX),
			2.0 * 64 * 6 * 54, 2 * (4 * 384 + 6 * 64 + 6 * 54) },
		{ "aten::cudnn_convolution", LIVE("[[1, 4, 6, 8, 8], [6, 2, 3, 3, 3]]", BOX),
			2.0 * 64 * 6 * 54, 2 * (4 * 384 + 6 * 64 + 6 * 54) },
	};
	struct cost c;
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		c = (struct cost){ 0 };
		if (!cost_of(table[i].operator, table[i].args, &c) || c.flops != table[i].flops ||
			c.bytes != table[i].bytes)
			fail_msg("%s of %s: %.0f FLOPs and %.0f bytes, not %.0f and %.0f",
				table[i].operator, table[i].args, c.flops, c.bytes, table[i].flops,
				table[i].bytes);
	}
}

/* Steps back are in no module, and have the output's gradient, so no padding is asked for. */
static void a_live_step_back_needs_no_padding(void **state)
{
	static const struct {
		const char *dims;
		double flops;
	} table[] = {
		{ "[[2, 4, 10], [2, 3, 20], [4, 3, 5], []]", 2 * 2.0 * 20 * 60 },
		{ "[[2, 4, 1, 10], [2, 3, 1, 20], [4, 3, 1, 5], []]", 2 * 2.0 * 20 * 60 },
		{ "[[2, 5, 4, 4], [2, 3, 8, 8], [5, 3, 3, 3], []]", 2 * 2.0 * 32 * 135 },
		{ "[[1, 6, 4, 4, 4], [1, 4, 6, 8, 8], [6, 2, 3, 3, 3], []]",
			2 * 2.0 * 64 * 6 * 54 },
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		char args[200];
		struct cost c = { 0 };
		snprintf(args, sizeof args, "{\"Input Dims\":%s}", table[i].dims);
		if (!cost_of("aten::convolution_backward", args, &c) || c.flops != table[i].flops)
			fail_msg("%s: %.0f FLOPs, not %.0f", args, c.flops, table[i].flops);
	}
}

/* Outside of a module for convolutions nothing tells how it goes. */
static void a_live_convolution_of_no_module_has_no_cost(void **state)
{
	static const struct {
		const char *operator, * dims;
	} table[] = {
		{ "aten::conv1d", "[[2, 3, 20], [4, 3, 5]]" },
		{ "aten::cudnn_convolution", "[[2, 3, 1, 20], [4, 3, 1, 5]]" },
		{ "aten::conv2d", "[[2, 3, 8, 8], [5, 3, 3, 3]]" },
		{ "aten::conv3d", "[[1, 4, 6, 8, 8], [6, 2, 3, 3, 3]]" },
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		char args[200];
		struct cost c;
		snprintf(args, sizeof args, "{\"Input Dims\":%s,\"module dtype\":\"float16\"}",
			table[i].dims);
		assert_false(cost_of(table[i].operator, args, &c));
	}
}

static void attention_is_two_products(void **state)
{
	check("aten::scaled_dot_product_attention", "[[2,4,16,8],[2,4,32,8],[2,4,32,8],[]]", HALF3,
		2 * 4 * (2.0 * 16 * 8 * 32 + 2.0 * 16 * 32 * 8),
		2 * 2 * 4 * 8 * (2.0 * 16 + 32 + 32));
}

/* 2 sequences, 4 heads, 16 queries, 32 keys, 8 deep; values 8 deep. */
#define BHSD   "[[2,4,16,8],[2,4,32,8],[2,4,32,8]"
#define BSHD   "[[2,16,4,8],[2,32,4,8],[2,32,4,8]"
#define NONE_5 ",[],[],[],[],[]"
#define GRAD   "[[2,4,16,8],[2,4,16,8],[2,4,32,8],[2,4,32,8]"
#define GRAD_S "[[2,16,4,8],[2,16,4,8],[2,32,4,8],[2,32,4,8]"
#define HALF4  "[\"c10::Half\",\"c10::Half\",\"c10::Half\",\"c10::Half\"]"

/* Queries, heads and depth of both, and two products forward. */
#define WHOLE (2 * 2.0 * 2 * 4 * 16 * 32 * 8)

static void attention_has_the_layout_of_its_operator(void **state)
{
	static const struct {
		const char *operator, * dims, *says;
		double flops;
	} table[] = {
		{ "scaled_dot_product_attention", BHSD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"0.\",\"False\"", WHOLE },
		{ "_scaled_dot_product_flash_attention", BHSD NONE_5 "]",
			"\"\",\"\",\"\",\"0.\",\"False\",\"False\"", WHOLE },
		{ "_flash_attention_forward", BSHD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"0.\",\"False\",\"False\"",
			WHOLE },
		{ "_scaled_dot_product_efficient_attention", BHSD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"True\",\"0.\",\"False\"", WHOLE },
		{ "_efficient_attention_forward", BSHD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"0.\",\"0\",\"True\"", WHOLE },
		{ "_scaled_dot_product_cudnn_attention", BHSD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"True\",\"0.\",\"False\",\"False\"", WHOLE },
		{ "_cudnn_attention_forward", BHSD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"True\",\"0.\",\"False\"",
			WHOLE },
		{ "_scaled_dot_product_flash_attention_backward", GRAD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"0.\",\"False\"",
			2.5 * WHOLE },
		{ "_flash_attention_backward", GRAD_S NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"0.\",\"False\"",
			2.5 * WHOLE },
		{ "_efficient_attention_backward", GRAD_S NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"\",\"0.\",\"\",\"\","
			"\"0\"",
			2.5 * WHOLE },
		{ "_cudnn_attention_backward", GRAD NONE_5 "]",
			"\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"0.\","
			"\"False\"",
			2.5 * WHOLE },
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		char name[80], says[256];
		snprintf(name, sizeof name, "aten::%s", table[i].operator);
		snprintf(says, sizeof says, ",\"Concrete Inputs\":[%s]", table[i].says);
		const struct cost c = cost(name, table[i].dims, HALF4, says);
		if (c.flops != table[i].flops || c.at_most)
			fail_msg("%s: %.0f FLOPs%s, not %.0f", name, c.flops,
				c.at_most ? " at most" : "", table[i].flops);
	}
}

/* Pairs by a plain loop: queries see keys up to their own place, from the first or from the last.
 */
static double seen(int queries, int keys, bool from_last)
{
	double pairs = 0;
	for (int q = 0; q < queries; q++)
		for (int k = 0; k < keys; k++)
			pairs += k <= q + (from_last ? keys - queries : 0);
	return pairs;
}

static void a_causal_mask_counts_what_it_lets_through(void **state)
{
	static const int lengths[][2] = { { 16, 16 }, { 16, 32 }, { 32, 16 }, { 1, 16 } };
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		const int q = lengths[i][0], k = lengths[i][1];
		char dims[128];
		snprintf(dims, sizeof dims, "[[1,1,%d,8],[1,1,%d,8],[1,1,%d,8],[],[],[]]", q, k, k);
		assert_true(cost("aten::scaled_dot_product_attention", dims, HALF3,
				    SAYS("\"\",\"\",\"\",\"\",\"0.\",\"True\""))
				    .flops == 4 * 8 * seen(q, k, false));
		snprintf(dims, sizeof dims, "[[1,%d,1,8],[1,%d,1,8],[1,%d,1,8],[],[],[]]", q, k, k);
		assert_true(cost("aten::_flash_attention_forward", dims, HALF3,
				    SAYS("\"\",\"\",\"\",\"\",\"\",\"16\",\"16\",\"0.\",\"True\""))
				    .flops == 4 * 8 * seen(q, k, true));
		assert_true(cost("aten::_efficient_attention_forward", dims, HALF3,
				    SAYS("\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"0.\",\"2\""))
				    .flops == 4 * 8 * seen(q, k, true));
	}
	/* Live recordings say no mask. */
	struct cost c;
	assert_true(cost_of("aten::scaled_dot_product_attention",
		"{\"Input Dims\":" BHSD "],\"module dtype\":\"float16\"}", &c));
	assert_true(c.at_most && c.flops == WHOLE);
	/* A window lets less through than the shapes tell. */
	assert_false(cost("aten::_flash_attention_forward", BSHD NONE_5 "]", HALF3,
		SAYS("\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"0.\",\"False\",\"False\",\"\",\"4\""))
			     .has_flops);
	assert_true(cost("aten::_flash_attention_forward", BSHD NONE_5 "]", HALF3,
		SAYS("\"\",\"\",\"\",\"\",\"\",\"16\",\"32\",\"0.\",\"False\",\"False\",\"\",\"-1\""))
			    .has_flops);
}

/* Three sequences, one behind the other; how long each is, only the device knows. */
static void sequences_of_several_lengths_count_when_their_sum_tells_all(void **state)
{
#define PACKED(q, k) "[[" #q ",4,8],[" #k ",4,8],[" #k ",4,8],[4],[4]]"
#define LONGEST(q, k, causal)                                                                      \
	SAYS("\"\",\"\",\"\",\"\",\"\",\"" #q "\",\"" #k "\",\"0.\",\"" #causal "\"")
	const char *name = "aten::_flash_attention_forward";
	const double each = 4.0 * 4 * 8;
	assert_true(cost(name, PACKED(30, 60), HALF3, LONGEST(10, 20, False)).flops ==
		    each * 3 * 10 * 20);
	assert_true(cost(name, PACKED(3, 60), HALF3, LONGEST(1, 40, False)).flops == each * 60);
	assert_true(cost(name, PACKED(3, 60), HALF3, LONGEST(1, 40, True)).flops == each * 60);
	assert_true(cost(name, PACKED(30, 60), HALF3, LONGEST(10, 20, True)).flops ==
		    each * 3 * seen(10, 20, true));
	const struct cost c = cost(name, PACKED(30, 60), HALF3, LONGEST(20, 40, False));
	assert_false(c.has_flops);
	assert_true(c.has_bytes && c.bytes == 2 * 4 * 8 * (30.0 + 30 + 60 + 60));
	/* Nested tensors come with a dimension in front, of one. */
	assert_true(cost("aten::_efficient_attention_forward",
			    "[[1,30,4,8],[1,60,4,8],[1,60,4,8],[],[4],[4]]", HALF3,
			    SAYS("\"\",\"\",\"\",\"\",\"\",\"\",\"10\",\"20\",\"0.\",\"0\""))
			    .flops == each * 3 * 10 * 20);
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

/* The part of an expanded tensor that is in memory is read: dimensions without a stride are one. */
static void expanded_tensors_are_read_once(void **state)
{
	const char *types = "[\"c10::Half\",\"Scalar\",\"long int\"]";
	assert_true(cost("aten::gather", "[[100,8],[],[3,8]]", types,
			    ",\"Input Strides\":[[8, 1], [], [1, 0]]")
			    .bytes == 2 * 24 * 2 + 3 * 8);
	assert_true(cost("aten::add", "[[4,8],[4,8],[]]", HALF3,
			    ",\"Input Strides\":[[8, 1], [0, 0], []]")
			    .bytes == 2 * (32 + 1 + 32));
	assert_true(cost("aten::bmm", "[[3,4,8],[3,8,16]]", HALF2,
			    ",\"Input Strides\":[[32, 8, 1], [0, 16, 1]]")
			    .bytes == 2 * (3 * 4 * 8 + 8 * 16 + 3 * 4 * 16));
	/* Other dimensions, or not all of them: as if nothing were said. */
	assert_true(cost("aten::add", "[[4,8],[4,8],[]]", HALF3, ",\"Input Strides\":[[8, 1], [0]]")
			    .bytes == 2 * (32 + 32 + 32));
	assert_true(cost("aten::add", "[[4,8],[4,8],[]]", HALF3, ",\"Input Strides\":[[0],[0],[]]")
			    .bytes == 2 * (32 + 32 + 32));
}

/* Rows that are looked up again and again come from a cache. */
static void what_is_looked_up_may_be_the_same(void **state)
{
	assert_true(
		cost("aten::embedding", "[[100,8],[3,4]]", "[\"float\",\"long int\"]", "").at_most);
	assert_false(cost("aten::mm", "[[4,8],[8,16]]", HALF2, "").at_most);
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

/* GPU_UNITS: by none whose peak is known. */
static enum gpu_unit unit_by(enum gpu_unit type, const char *kernel)
{
	struct cost c = { .unit = type, .has_unit = true, .matrix = true };
	const struct predict_product by = predict_product_of(kernel);
	cost_set_unit(&c, &by);
	return c.has_unit ? c.unit : GPU_UNITS;
}

static void the_unit_follows_type_and_kernel(void **state)
{
	assert_int_equal(cost("aten::mm", "[[4,8],[8,16]]", HALF2, "").unit, GPU_FP16);
	assert_int_equal(cost("aten::relu", "[[4,8]]", "[\"c10::Half\"]", "").unit, GPU_FP32);
	assert_int_equal(unit_by(GPU_FP32, "ampere_tf32_s1688gemm"), GPU_TF32);
	assert_int_equal(unit_by(GPU_FP32, "ampere_sgemm_128x64_tn"), GPU_FP32);
	assert_int_equal(unit_by(GPU_FP16, "tf32"), GPU_FP16);
	/* Products under autocast, below an operator that was asked for in FP32. */
	assert_int_equal(
		unit_by(GPU_FP32, "nvjet_sm90_hsh_96x128_64x7_2x1_v_bz_bias_TNN"), GPU_FP16);
	assert_int_equal(unit_by(GPU_FP32, "cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688"
					   "dgrad_optimized_tf32_128x64_32x3_nhwc>(int)"),
		GPU_TF32);
	assert_int_equal(unit_by(GPU_FP32, "cutlass_80_tensorop_i16832gemm_s8_imma"), GPU_UNITS);
	assert_int_equal(unit_by(GPU_FP32, "_ZN17cutlass__5x_cudnn23ImplicitGemmConvolutionI"
					   "NS_10tfloat32_tENS_9transform29PitchLinear"),
		GPU_TF32);
	assert_int_equal(unit_by(GPU_FP32, "_ZN17cutlass__5x_cudnn23ImplicitGemmConvolutionI"
					   "NS_10bfloat16_tENS_9transform29PitchLinear"),
		GPU_FP16);
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
	/* Indices are of another type, and a convolution has strides that are not known. */
	assert_false(cost_of("aten::embedding",
		"{\"Input Dims\":[[9, 8], [3]],\"module dtype\":\"float16\"}", &c));
	assert_false(cost_of("aten::convolution",
		"{\"Input Dims\":[[1, 3, 9, 9], [4, 3, 3, 3]],\"module dtype\":\"float16\"}", &c));
}

/* Products convert what they are given, in a module of FP32; what type the rest sees, nobody says.
 */
static void under_autocast_products_are_of_its_type(void **state)
{
#define CAST(dims)                                                                                 \
	"{\"Input Dims\":" dims ",\"module dtype\":\"float32\",\"module autocast\":\"bfloat16\""   \
	",\"module conv\":{" LISTS("[2]", "[2]", "[1]", "[0]", 1, false) "}}"
	static const struct {
		const char *operator, * args;
		double bytes;
	} table[] = {
		{ "aten::mm", CAST("[[4, 8], [8, 16]]"), 2 * (32 + 128 + 64) },
		{ "aten::addmm", CAST("[[16], [4, 8], [8, 16]]"), 2 * (32 + 128 + 64) },
		{ "aten::bmm", CAST("[[3, 4, 8], [3, 8, 16]]"), 3 * 2 * (32 + 128 + 64) },
		{ "aten::linear", CAST("[[4, 8], [16, 8], [16]]"), 2 * (32 + 128 + 64) },
		{ "aten::scaled_dot_product_attention", CAST(BHSD "]"),
			2 * 2 * 4 * 8 * (2.0 * 16 + 32 + 32) },
		{ "aten::convolution_backward",
			CAST("[[2, 5, 4, 4], [2, 3, 8, 8], [5, 3, 3, 3], []]"),
			2 * (160 + 2 * 384 + 2 * 135) },
		{ "aten::conv1d", CAST("[[2, 3, 20], [4, 3, 5]]"), 2 * (120 + 80 + 60) },
		{ "aten::cudnn_convolution", CAST("[[2, 3, 1, 20], [4, 3, 1, 5]]"),
			2 * (120 + 80 + 60) },
	};
	struct cost c;
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		c = (struct cost){ 0 };
		if (!cost_of(table[i].operator, table[i].args, &c) || !c.has_bytes ||
			c.bytes != table[i].bytes || c.unit != GPU_FP16)
			fail_msg("%s of %s: %.0f bytes, not %.0f", table[i].operator, table[i].args,
				c.bytes, table[i].bytes);
	}
	assert_true(cost_of("aten::gelu", CAST("[[4, 8]]"), &c));
	assert_true(c.flops == 320 && !c.has_bytes);
	assert_true(c.has_unit && c.unit == GPU_FP32);
	assert_false(cost_of("aten::copy_", CAST("[[4, 8], [4, 8]]"), &c));
	assert_true(cost_of("aten::mm",
		"{\"Input Dims\":[[4, 8], [8, 16]],\"module dtype\":\"float64\","
		"\"module autocast\":\"bfloat16\"}",
		&c));
	assert_true(c.bytes == 8 * (32 + 128 + 64) && c.unit == GPU_FP64);
}

/* A recording that does not tell of autocast has the type of the module, and the kernel another. */
static void bytes_are_not_known_where_the_kernel_contradicts_the_type(void **state)
{
	static const struct {
		enum gpu_unit type;
		const char *kernel;
		bool known;
	} table[] = { { GPU_FP32, "nvjet_sm90_hsh_96x128_64x7_2x1_v_bz_bias_TNN", false },
		{ GPU_FP32, "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", false },
		{ GPU_FP32, "cutlass_80_tensorop_i16832gemm_s8_imma", false },
		{ GPU_FP32, "ampere_tf32_s1688gemm", true },
		{ GPU_FP32, "ampere_sgemm_128x64_tn", true }, { GPU_FP32, "gemm", true },
		{ GPU_FP16, "nvjet_sm90_hsh_96x128_64x7_2x1_v_bz_bias_TNN", true } };
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		struct cost c = {
			.unit = table[i].type, .has_unit = true, .matrix = true, .has_bytes = true
		};
		const struct predict_product by = predict_product_of(table[i].kernel);
		cost_set_unit(&c, &by);
		if (c.has_bytes != table[i].known)
			fail_msg("bytes of %s", table[i].kernel);
	}
}

static struct cost call(const char *name, const char *args)
{
	struct cost c = { 0 };
	if (!cost_of(name, args, &c))
		fail_msg("%s of %s has no cost", name, args);
	return c;
}

/* A plain loop over the elements of C: a multiplication and an addition for each step. */
static double flops_of_loop(unsigned m, unsigned n, unsigned k, unsigned batch)
{
	double flops = 0;
	for (unsigned b = 0; b < batch; b++)
		for (unsigned i = 0; i < m * n; i++)
			for (unsigned step = 0; step < k; step++)
				flops += 2;
	return flops;
}

static void a_call_of_a_library_says_its_product(void **state)
{
	struct cost c = call("cublasGemmEx", "{\"m\":7,\"n\":5,\"k\":3,\"type\":\"float16\","
					     "\"compute\":\"float32\"}");
	assert_true(c.flops == flops_of_loop(7, 5, 3, 1));
	assert_true(c.bytes == 2 * (7 * 3 + 3 * 5 + 7 * 5));
	assert_true(c.matrix);
	assert_int_equal(c.unit, GPU_FP16);
	c = call("cublasSgemmStridedBatched",
		"{ \"m\" : 7, \"n\": 5, \"k\": 3, \"batch\": 4, \"type\": \"float32\" }");
	assert_true(c.flops == flops_of_loop(7, 5, 3, 4));
	assert_true(c.bytes == 4.0 * 4 * (7 * 3 + 3 * 5 + 7 * 5));
	assert_int_equal(c.unit, GPU_FP32);
	c = call("cublasLtMatmul",
		"{\"m\":64,\"n\":32,\"k\":16,\"type\":\"float8_e4m3\",\"type_b\":\"float8_e5m2\","
		"\"type_c\":\"bfloat16\",\"compute\":\"float32\",\"epilogue\":\"bias\"}");
	assert_true(c.flops == 2.0 * 64 * 32 * 16);
	assert_true(c.bytes == 64 * 16 + 16 * 32 + 2 * 64 * 32);
	assert_int_equal(c.unit, GPU_FP8);
	assert_true(
		call("cublasSgemv_v2_64", "{\"m\":9,\"n\":1,\"k\":4,\"type\":\"float32\"}").flops ==
		2 * 9 * 4);
	assert_true(
		call("cublasZgemm_v2", "{\"m\":7,\"n\":5,\"k\":3,\"type\":\"complex128\"}").flops ==
		4 * flops_of_loop(7, 5, 3, 1));
}

static void triangles_are_half_the_work_and_their_bytes_are_not_told(void **state)
{
	static const char args[] = "{\"m\":8,\"n\":4,\"k\":8,\"type\":\"float32\"}";
	struct cost c = call("cublasStrsm_v2", args);
	assert_true(c.flops == 8 * 4 * 8);
	assert_false(c.has_bytes);
	c = call("cublasSsymm_v2_64", args);
	assert_true(c.flops == 2 * 8 * 4 * 8);
	assert_false(c.has_bytes);
	assert_true(
		call("cublasZherk_v2", "{\"m\":8,\"n\":8,\"k\":4,\"type\":\"complex128\"}").flops ==
		4 * 8 * 8 * 4);
}

static void what_a_product_is_computed_by_is_its_unit(void **state)
{
	static const struct {
		const char *type, *compute;
		enum gpu_unit unit;
	} all[] = { { "float32", "float32", GPU_FP32 }, { "float32", "float32_by_tf32", GPU_TF32 },
		{ "float32", "float32_by_bfloat16", GPU_FP16 },
		{ "float16", "float32_by_tf32", GPU_FP16 }, { "float64", "float64", GPU_FP64 } };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		char args[256];
		snprintf(args, sizeof args,
			"{\"m\":1,\"n\":1,\"k\":1,\"type\":\"%s\",\"compute\":\"%s\"}", all[i].type,
			all[i].compute);
		assert_int_equal(call("cublasGemmEx", args).unit, all[i].unit);
	}
	assert_false(call("cublasGemmEx", "{\"m\":1,\"n\":1,\"k\":1,\"type\":\"int8\"}").has_unit);
	const struct cost unsaid = call("cublasGemmEx", "{\"m\":1,\"n\":1,\"k\":1}");
	assert_true(unsaid.has_flops && !unsaid.has_bytes && !unsaid.has_unit);
}

static void a_convolution_of_a_library_is_that_of_an_operator(void **state)
{
	static const char args[] = "{\"input\":[2,3,8,8],\"filter\":[5,3,3,3],"
				   "\"output\":[2,5,4,4],\"type\":\"float32\"}";
	const struct cost c = call("cudnnConvolutionForward", args);
	const struct cost like = cost("aten::convolution", "[[2,3,8,8],[5,3,3,3],[5],[],[],[]]",
		FLOAT, SAYS("\"\",\"\",\"\",\"[2, 2]\",\"[1, 1]\",\"[1, 1]\",\"False\""));
	assert_true(c.flops == like.flops);
	assert_true(c.bytes == like.bytes);
	assert_true(call("cudnnConvolutionBackwardFilter", args).flops == c.flops);
}

static void a_call_that_says_too_little_has_no_cost(void **state)
{
	static const char *const products[] = { "", "{}", "{\"m\":1,\"n\":1}",
		"{\"m\":1,\"n\":1,\"k\"", "{\"m\":1,\"n\":1,\"k\":", "{\"m\":1,\"n\":1,\"k\":-1}",
		"{\"m\":1e300,\"n\":1,\"k\":1}", "{\"m\":1,\"n\":1,\"k\":nan}",
		"{\"m\":1,\"n\":1,\"k\":1,\"batch\":\"many\"}",
		"{\"m\":1,\"n\":1,\"k\":0,\"batch\":7}" };
	static const char *const convolutions[] = { "", "{\"input\":[1]}",
		"{\"input\":[1],\"filter\":[1],\"output\":[",
		"{\"input\":[1],\"filter\":[1],\"output\":7}",
		"{\"input\":[1],\"filter\":[],\"output\":[1]}" };
	struct cost c;
	for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
		assert_false(cost_of("cublasGemmEx", products[i], &c));
	for (size_t i = 0; i < sizeof convolutions / sizeof convolutions[0]; i++)
		assert_false(cost_of("cudnnConvolutionForward", convolutions[i], &c));
	assert_false(cost_of("cudnnBackendExecute", "{\"m\":1,\"n\":1,\"k\":1}", &c));
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
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_false(cost_of("aten::mm", texts[i], &c));
	assert_false(cost_of("aten::unheard_of", "{\"Input Dims\":[[1],[1]]}", &c));
	assert_false(cost_of("", "", &c));
}

/* The class of an element-wise kernel of 100 us, and what it is based on. */
static struct roofline class_of(struct cost c)
{
	char name[] = "vectorized_elementwise_kernel<4, add>";
	struct activity_row row = { .kind = GPU_KERNEL,
		.name = name,
		.count = 1,
		.total_ns = 100000,
		.shape = { .grid = { 16384, 1, 1 }, .block = { 128, 1, 1 } } };
	struct report r = { .gpu = gpu_find("NVIDIA H200", 90), .gpu_sms = 132 };
	assert_non_null(r.gpu);
	hist_add(&row.hist, row.total_ns);
	roofline_add(r.gpu, &row.roofline, &c, row.total_ns);
	r.activities.v = &row;
	r.activities.n = 1;
	roofline_fill(&r);
	hist_fini(&row.hist);
	return row.roofline;
}

static void without_bytes_little_computing_tells_nothing(void **state)
{
	struct cost c = { .flops = 1e7, .has_flops = true, .unit = GPU_FP32, .has_unit = true };
	struct roofline l = class_of(c);
	assert_int_equal(l.class, BOUND_MEMORY);
	assert_int_equal(l.basis, BASIS_NAME);
	c.bytes = 1e6;
	c.has_bytes = true;
	l = class_of(c);
	assert_int_equal(l.class, BOUND_LATENCY);
	assert_int_equal(l.basis, BASIS_COST);
	c.bytes = 3e8;
	l = class_of(c);
	assert_int_equal(l.class, BOUND_MEMORY);
	assert_int_equal(l.basis, BASIS_COST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_product_is_two_flops_for_each_row_column_and_step),
		cmocka_unit_test(a_convolution_counts_its_outputs),
		cmocka_unit_test(convolutions_of_all_kinds_have_the_flops_that_a_hand_counts),
		cmocka_unit_test(a_convolution_has_the_flops_of_a_plain_loop),
		cmocka_unit_test(a_convolution_that_does_not_say_how_has_no_cost),
		cmocka_unit_test(a_live_recording_tells_of_the_convolution_around),
		cmocka_unit_test(a_live_convolution_has_the_flops_of_its_module),
		cmocka_unit_test(a_live_step_back_needs_no_padding),
		cmocka_unit_test(a_live_convolution_of_no_module_has_no_cost),
		cmocka_unit_test(attention_is_two_products),
		cmocka_unit_test(attention_has_the_layout_of_its_operator),
		cmocka_unit_test(a_causal_mask_counts_what_it_lets_through),
		cmocka_unit_test(sequences_of_several_lengths_count_when_their_sum_tells_all),
		cmocka_unit_test(elements_are_broadcast),
		cmocka_unit_test(expanded_tensors_are_read_once),
		cmocka_unit_test(what_is_looked_up_may_be_the_same),
		cmocka_unit_test(a_type_that_is_not_known_leaves_the_bytes_out),
		cmocka_unit_test(the_unit_follows_type_and_kernel),
		cmocka_unit_test(a_live_recording_tells_shapes_and_the_type_of_the_module),
		cmocka_unit_test(under_autocast_products_are_of_its_type),
		cmocka_unit_test(bytes_are_not_known_where_the_kernel_contradicts_the_type),
		cmocka_unit_test(a_call_of_a_library_says_its_product),
		cmocka_unit_test(triangles_are_half_the_work_and_their_bytes_are_not_told),
		cmocka_unit_test(what_a_product_is_computed_by_is_its_unit),
		cmocka_unit_test(a_convolution_of_a_library_is_that_of_an_operator),
		cmocka_unit_test(a_call_that_says_too_little_has_no_cost),
		cmocka_unit_test(nonsense_has_no_cost),
		cmocka_unit_test(without_bytes_little_computing_tells_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
