/*
 * Plans of convolutions on the simulated driver, with a test double of NVRTC: what they tell the
 * copy engine, which of them are plain, and what is refused.
 */
#include "plan_test.h"

#include "kernels/conv.cuh"

static char *const a = (char *)0x7000000000, *const b = (char *)0x7100000000,
		   *const d = (char *)0x7200000000;

/* 3 x 3 at stride 2 of images of 29 x 40, whose output is 15 x 20. */
static struct weir_conv small(void)
{
	return (struct weir_conv){ .size = sizeof(struct weir_conv),
		.type = WEIR_BF16,
		.n = 4,
		.h = 29,
		.w = 40,
		.c = 72,
		.k = 136,
		.r = 3,
		.s = 3,
		.stride_h = 2,
		.stride_w = 2,
		.pad_h = 1,
		.pad_w = 1 };
}

static struct weir_plan *plan_of(struct weir_kernels *k, const struct weir_conv *what)
{
	struct weir_plan *p;
	const int e = weir_conv_plan(k, what, &p);
	return made(e, p);
}

static void captured(const struct weir_plan *p, const struct weir_gemm_args *args,
	struct cu_kernel_node_params *ret, void *ret_args, size_t bytes)
{
	void *stream = capture_begin();
	OK(weir_conv_run(p, args, stream));
	capture_end(stream, ret, ret_args, bytes);
}

static void expect_map(const struct tensor_map *map, const void *at, unsigned rank,
	const uint64_t *sizes, const uint64_t *pitches, const unsigned *box, const unsigned *steps)
{
	const struct sim_tensor_map m = read_map(map);
	assert_int_equal(m.at, (uintptr_t)at);
	assert_int_equal(m.rank, rank);
	assert_int_equal(m.swizzle, 3);
	for (unsigned i = 0; i < rank; i++) {
		assert_int_equal(m.size[i], sizes[i]);
		assert_int_equal(m.step[i], steps ? steps[i] : 1);
		if (i > 0)
			assert_int_equal(m.pitch[i - 1], pitches[i - 1]);
	}
	for (unsigned i = 0; box[i]; i++)
		assert_int_equal(m.box[i], box[i]);
}

static void expect_corners(
	const struct tensor_map *map, int first_x, int first_y, int last_x, int last_y)
{
	const struct sim_tensor_map m = read_map(map);
	assert_int_equal(m.first[0], first_x);
	assert_int_equal(m.first[1], first_y);
	assert_int_equal(m.last[0], last_x);
	assert_int_equal(m.last[1], last_y);
}

static void a_convolution_describes_its_images_to_the_copy_engine(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	const struct weir_conv what = small();
	struct weir_plan *p = plan_of(k, &what);
	unsigned bm, bn, clm;
	const char *name = strstr(weir_plan_text(p), "weir_conv_bf16_nn_");
	assert_non_null(name);
	assert_int_equal(sscanf(name, "weir_conv_bf16_nn_%ux%u", &bm, &bn), 2);
	clm = strstr(name, "_c2x1") ? 2 : 1;
	const struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	struct cu_kernel_node_params node;
	struct conv_tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_int_equal(t.product.m, 4 * 15 * 20);
	assert_int_equal(t.product.n, 136);
	assert_int_equal(t.product.k, 9 * 128); /* 72 channels are two blocks */
	assert_int_equal(t.channels, 72);
	assert_int_equal(t.first_tap, 0);
	expect_map(&t.product.a, a, 4, (uint64_t[]){ 72, 40, 29, 4 },
		(uint64_t[]){ 144, 144 * 40, 144 * 40 * 29 }, (unsigned[]){ 64, bm, 0 },
		(unsigned[]){ 1, 2, 2, 1 });
	expect_corners(
		&t.product.a, -1, -1, -2, -1); /* the last read begins at 37 of 40, 27 of 29 */
	expect_map(&t.product.b, b, 3, (uint64_t[]){ 72, 9, 136 }, (uint64_t[]){ 144, 144 * 9 },
		(unsigned[]){ 64, 1, bn / clm, 0 }, NULL);
	expect_map(&t.product.d, d, 2, (uint64_t[]){ 136, 1200 }, (uint64_t[]){ 272 },
		(unsigned[]){ 64, 64, 0 }, NULL);
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* The gradient of the input, at stride 1: pixels of the output's gradient, and filters from the
 * last tap on. */
static void a_gradient_reads_the_filters_backwards(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_conv what = small();
	what.pass = WEIR_CONV_INPUT;
	what.stride_h = what.stride_w = 1;
	what.pad_w = 0;
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_conv_bf16_nt_"));
	const struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	struct cu_kernel_node_params node;
	struct conv_tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_int_equal(t.product.m, 4 * 29 * 40);
	assert_int_equal(t.product.n, 72);
	assert_int_equal(t.product.k, 9 * 192);
	assert_int_equal(t.first_tap, 8);
	assert_int_equal(t.tap_step, -1);
	expect_corners(&t.product.a, -2, -1, 0, -1); /* the output is 29 x 38 */
	expect_map(&t.product.b, b, 3, (uint64_t[]){ 72, 9, 136 }, (uint64_t[]){ 144, 144 * 9 },
		(unsigned[]){ 64, 1, 64, 0 }, NULL);
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* The same at a stride of 2 by 1, where each second line of pixels is a phase: even ones read the
 * middle of three taps, and odd ones the others. */
static void a_gradient_at_a_stride_is_in_phases(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_conv what = small();
	what.pass = WEIR_CONV_INPUT;
	what.stride_w = 1;
	what.epilogue = WEIR_EPILOGUE_RESIDUAL;
	struct weir_plan *p = plan_of(k, &what);
	int bm;
	assert_int_equal(sscanf(weir_plan_text(p), "weir_conv_bf16_residual_nt_%d", &bm), 1);
	assert_non_null(strstr(weir_plan_text(p), "_phased "));
	char *const residual = d + (1 << 24);
	const struct weir_gemm_args args = {
		.size = sizeof args, .a = a, .b = b, .d = d, .residual = residual
	};
	struct cu_kernel_node_params node;
	struct conv_phased_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_int_equal(t.conv.product.n, 72);
	assert_int_equal(t.conv.row_step, -2 * 3);
	assert_int_equal(t.conv.tap_step, -1);
	assert_int_equal(t.phases, 2);
	for (int odd = 0; odd < 2; odd++) {
		const struct conv_phase *const f = &t.phase[!odd]; /* that of most taps is first */
		const size_t at = odd ? 40 * 144 : 0;
		assert_int_equal(f->y.taps, 1 + odd);
		assert_int_equal(f->blocks, (1 + odd) * 3 * 3);
		assert_int_equal(f->first_tap, odd ? 8 : 5);
		expect_map(&f->a, a, 4, (uint64_t[]){ 136, 40, 15, 4 },
			(uint64_t[]){ 272, 272 * 40, 272 * 40 * 15 }, (unsigned[]){ 64, 0 }, NULL);
		expect_corners(&f->a, -1, 0, -1, -odd);
		assert_int_equal(f->tiles, tile_count(4 * (15 - odd) * 40, bm));
		for (int i = 0; i < 2; i++) {
			expect_map(i ? &f->residual : &f->d, (i ? residual : d) + at, 4,
				(uint64_t[]){ 72, 40, odd ? 14 : 15, 4 },
				(uint64_t[]){ 144, 2 * 144 * 40, 144 * 40 * 29 },
				(unsigned[]){ 64, 64, 0 }, NULL);
			expect_corners(i ? &f->residual : &f->d, 0, 0, 0, 0);
		}
	}
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* The same of a run of two launches. */
static void captured_two(const struct weir_plan *p, const struct weir_gemm_args *args,
	void *ret_first, size_t first_bytes, void *ret_second, size_t second_bytes,
	unsigned *ret_block)
{
	void *stream = capture_begin(), *graph, *node[2];
	size_t n = 2;
	struct cu_kernel_node_params first, second;
	OK(weir_conv_run(p, args, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, node, &n));
	assert_int_equal(n, 2);
	OK(cuGraphKernelNodeGetParams_v2(node[0], &first));
	OK(cuGraphKernelNodeGetParams_v2(node[1], &second));
	memcpy(ret_first, first.params[0], first_bytes);
	memcpy(ret_second, second.params[0], second_bytes);
	*ret_block = first.block_x;
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
}

/* The gradient of the filters: two launches, of which the second one adds up what the first leaves
 * in the workspace. */
static void a_gradient_of_filters_sums_parts_of_the_pixels(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_conv what = small();
	what.pass = WEIR_CONV_FILTERS;
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_conv_bf16_tt_"));
	const size_t sums = 136 * 9 * 72 * sizeof(float), bytes = weir_plan_workspace(p);
	assert_int_equal(bytes % sums, 0);
	assert_int_not_equal(bytes, 0);
	struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_conv_run(p, &args, NULL));
	args.workspace = d + (1 << 24);

	struct conv_tiled_args t;
	struct conv_sum_args s;
	unsigned block;
	captured_two(p, &args, &t, sizeof t, &s, sizeof s, &block);
	assert_int_equal(block, 384);
	assert_int_equal(t.product.m, 136);
	assert_int_equal(t.product.n, 9 * 128);
	assert_int_equal(t.parts, bytes / sums);
	assert_true(t.parts * t.product.k >= 4 * 15 * 20);
	assert_true(t.product.k % 64 == 0);
	assert_ptr_equal(t.sums, args.workspace);
	expect_map(&t.product.a, a, 2, (uint64_t[]){ 136, 1200 }, (uint64_t[]){ 272 },
		(unsigned[]){ 64, 64, 0 }, NULL);
	expect_map(&t.product.b, b, 4, (uint64_t[]){ 72, 40, 29, 4 },
		(uint64_t[]){ 144, 144 * 40, 144 * 40 * 29 }, (unsigned[]){ 64, 64, 0 },
		(unsigned[]){ 1, 2, 2, 1 });
	assert_ptr_equal(s.sums, args.workspace);
	assert_ptr_equal(s.d, d);
	assert_int_equal(s.elements, 136 * 9 * 72);
	assert_int_equal(s.parts, t.parts);
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* Images of 35 x 48 pixels of 8 channels, where a window of 8 pixels begins at every second one,
 * and 7 taps below each other of 64 channels. */
static void a_first_layer_is_packed_into_the_workspace(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_conv what = small();
	what.h = 30;
	what.w = 41;
	what.c = 3;
	what.r = what.s = 7;
	what.pad_h = what.pad_w = 3;
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_conv_bf16_nn_"));
	const size_t images = 4 * 35 * 48 * 16;
	assert_int_equal(weir_plan_workspace(p), images + 136 * 7 * 128);
	struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_conv_run(p, &args, NULL));
	char *const workspace = args.workspace = d + (1 << 24);
	struct conv_pack_args pack;
	struct conv_tiled_args t;
	unsigned block;
	captured_two(p, &args, &pack, sizeof pack, &t, sizeof t, &block);
	assert_int_equal(block, 256);
	assert_ptr_equal(pack.a, a);
	assert_ptr_equal(pack.b, b);
	assert_ptr_equal(pack.images, workspace);
	assert_ptr_equal(pack.filters, workspace + images);
	assert_int_equal(pack.pixels, 4 * 35 * 48);
	assert_int_equal(pack.rows, 136 * 7);
	assert_int_equal(t.product.m, 4 * 15 * 21);
	assert_int_equal(t.product.k, 7 * 64);
	assert_int_equal(t.x.taps, 1);
	const struct sim_tensor_map map = read_map(&t.product.a);
	expect_map(&t.product.a, workspace, 4, (uint64_t[]){ 64, 21, 35, 4 },
		(uint64_t[]){ 32, 48 * 16, 35 * 48 * 16 }, (unsigned[]){ 64, map.box[1], 0 },
		(unsigned[]){ 1, 1, 2, 1 });
	expect_corners(&t.product.a, 0, 0, 0, -6);
	expect_map(&t.product.b, workspace + images, 3, (uint64_t[]){ 64, 7, 136 },
		(uint64_t[]){ 128, 128 * 7 }, (unsigned[]){ 64, 1, 0 }, NULL);

	struct conv_args g;
	struct cu_kernel_node_params node;
	args.a = a + 2; /* which the plain kernel takes, as it is */
	captured(p, &args, &node, &g, sizeof g);
	assert_int_equal(g.channels, 3);
	assert_int_equal(g.x.taps, 7);
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void what_the_copy_engine_cannot_gather_is_plain(void **state)
{
	static const char *const names[] = { "f32_plain", "bf16_plain", "bf16_plain", "bf16_plain",
		"bf16_plain", "bf16_direct", "bf16_filters", "bf16_plain", "bf16_plain" };
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct weir_conv what = small();
		what.type = i == 0 ? WEIR_F32 : WEIR_BF16;
		what.c = i == 1 ? 12 : i == 6 ? 3 : 72;
		what.k = i == 2 ? 130 : i == 5 ? 72 : 136;
		what.stride_w = i == 3 ? 9 : i == 7 ? 3 : 2; /* 6 phases */
		what.groups = i == 4 ? 2 : i == 5 ? 72 : 0;
		what.pass = i == 6   ? WEIR_CONV_FILTERS
			    : i == 7 ? WEIR_CONV_INPUT
				     : WEIR_CONV_FORWARD;
		what.pad_h = i == 8 ? 129 : 1;
		struct weir_plan *p = plan_of(k, &what);
		struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
		struct cu_kernel_node_params node;
		struct conv_args g;
		if (!strstr(weir_plan_text(p), names[i]))
			fail_msg("%zu: %s", i, weir_plan_text(p));
		captured(p, &args, &node, &g, sizeof g);
		assert_int_equal(node.block_x, 256);
		assert_ptr_equal(g.a, i == 6 ? b : a);
		/* Tap 0 of the gradient is the last of the filters. */
		assert_ptr_equal(g.b, i == 6 ? a : i == 7 ? b + 8 * 72 * 2 : b);
		assert_int_equal(g.groups, i == 4 ? 2 : i == 5 ? 72 : 1);
		weir_plan_close(p);
	}
	const struct weir_conv what = small();
	struct weir_plan *p = plan_of(k, &what);
	const struct weir_gemm_args args = { .size = sizeof args, .a = a + 2, .b = b, .d = d };
	struct cu_kernel_node_params node;
	struct conv_args g;
	captured(p, &args, &node, &g, sizeof g);
	assert_int_equal(node.block_x, 256);
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void without_a_compiler_the_plain_kernels_run(void **state)
{
	struct weir_kernels *k = open_with("", "");
	for (uint32_t i = 0; i < 9; i++) {
		struct weir_conv what = small();
		what.type = WEIR_F32 + i / 3;
		what.groups = i % 3 == 1 ? 8 : 1;
		what.c = 8;
		what.k = 64;
		what.pass = i % 3;
		struct weir_plan *p = plan_of(k, &what);
		const struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
		assert_non_null(strstr(weir_plan_text(p), "built in"));
		OK(weir_conv_run(p, &args, NULL));
		weir_plan_close(p);
	}
	weir_kernels_close(k);
}

/* The kernels, and the maps, are those of a product: pixels by channels, and filters by channels.
 */
static void one_tap_that_leaves_out_no_pixel_is_a_product(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	const struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	for (uint32_t pass = WEIR_CONV_FORWARD; pass <= WEIR_CONV_INPUT; pass++) {
		struct weir_conv what = small();
		what.pass = pass;
		what.r = what.s = what.stride_h = what.stride_w = 1;
		what.pad_h = what.pad_w = 0;
		struct weir_plan *p = plan_of(k, &what);
		assert_non_null(strstr(
			weir_plan_text(p), pass ? "weir_gemm_bf16_nt_" : "weir_gemm_bf16_nn_"));
		struct cu_kernel_node_params node;
		struct tiled_args t;
		captured(p, &args, &node, &t, sizeof t);
		const uint64_t read = pass ? 136 : 72, written = pass ? 72 : 136;
		assert_int_equal(t.m, 4 * 29 * 40);
		assert_int_equal(t.n, written);
		assert_int_equal(t.k, read);
		expect_map(&t.a, a, 2, (uint64_t[]){ read, 4 * 29 * 40 }, (uint64_t[]){ 2 * read },
			(unsigned[]){ 64, 0 }, NULL);
		expect_map(&t.b, b, 2, (uint64_t[]){ 72, 136 }, (uint64_t[]){ 144 },
			(unsigned[]){ 64, 0 }, NULL);
		expect_map(&t.d, d, 2, (uint64_t[]){ written, 4 * 29 * 40 },
			(uint64_t[]){ 2 * written }, (unsigned[]){ 64, 64, 0 }, NULL);
		weir_plan_close(p);
	}
	weir_kernels_close(k);
}

/* 48 channels of INT8 fit into 64 bytes, which are a block of K then. */
static void few_filters_stay_and_few_channels_make_short_blocks(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_conv what = small();
	what.type = WEIR_S8;
	what.c = 48;
	what.k = 64;
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "_n_h9 "));
	const struct weir_gemm_args args = {
		.size = sizeof args, .a = a, .b = b, .d = d, .b_scale = (const float *)d
	};
	struct cu_kernel_node_params node;
	struct conv_tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_int_equal(t.product.k, 9 * 64);
	const struct sim_tensor_map pixels = read_map(&t.product.a),
				    filters = read_map(&t.product.b);
	assert_int_equal(pixels.box[0], 64);
	assert_int_equal(pixels.swizzle, 2);
	assert_int_equal(filters.box[0], 64);
	assert_int_equal(filters.swizzle, 2);
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* INT8: blocks of 128 channels, scales of the filters alone, and a result of another type. */
static void a_convolution_of_int8_has_scales_of_filters(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_conv what = small();
	what.type = WEIR_S8;
	what.c = 80;
	what.k = 144;
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_conv_s8_to_bf16_nn_"));
	struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_conv_run(p, &args, NULL));
	args.b_scale = (const float *)(d + (1 << 24));
	struct cu_kernel_node_params node;
	struct conv_tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_ptr_equal(t.product.b_scale, args.b_scale);
	assert_null(t.product.a_scale);
	assert_int_equal(t.product.k, 9 * 128);
	const struct sim_tensor_map map = read_map(&t.product.a);
	expect_map(&t.product.a, a, 4, (uint64_t[]){ 80, 40, 29, 4 },
		(uint64_t[]){ 80, 80 * 40, 80 * 40 * 29 }, (unsigned[]){ 128, map.box[1], 0 },
		(unsigned[]){ 1, 2, 2, 1 });
	expect_map(&t.product.b, b, 3, (uint64_t[]){ 80, 9, 144 }, (uint64_t[]){ 80, 720 },
		(unsigned[]){ 128, 1, 0 }, NULL);
	args.a_scale = args.b_scale;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_conv_run(p, &args, NULL));
	weir_plan_close(p);

	args.a_scale = NULL;
	what.c = 8; /* rows of pixels that the copy engine cannot read */
	what.d_type = WEIR_S8;
	p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_conv_s8_plain"));
	struct conv_args g;
	captured(p, &args, &node, &g, sizeof g);
	assert_ptr_equal(g.b_scale, args.b_scale);
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void every_wrong_convolution_is_refused_in_words(void **state)
{
	struct weir_kernels *k = open_with("", "");
	struct weir_conv wrong[17];
	struct weir_plan *p;
	for (size_t i = 0; i < 17; i++)
		wrong[i] = small();
	wrong[14].d_type = WEIR_F32;
	wrong[15].type = wrong[16].type = WEIR_S8;
	wrong[15].pass = WEIR_CONV_INPUT;
	wrong[16].epilogue = WEIR_EPILOGUE_RESIDUAL;
	wrong[0].size = 3;
	wrong[1].type = WEIR_E4M3;
	wrong[2].epilogue = WEIR_EPILOGUE_SWIGLU;
	wrong[3].pass = 3;
	wrong[4].pass = WEIR_CONV_FILTERS;
	wrong[4].epilogue = WEIR_EPILOGUE_BIAS;
	wrong[5].groups = 5;
	wrong[6].h = 0;
	wrong[7].pad_w = -1;
	wrong[8].dilation_h =
		15; /* the filter is 31 high, as the padded image, but one tap more is not */
	wrong[8].r = 4;
	wrong[9].n = INT64_MAX;
	wrong[10].c = INT64_MAX / 2;
	wrong[11].r = INT64_MAX;
	wrong[12].n = -1;
	wrong[13].k = 0;
	for (size_t i = 0; i < 17; i++)
		FAILS(i ? WEIR_KERNELS_ERROR_ARGUMENT : WEIR_KERNELS_ERROR_SIZE,
			weir_conv_plan(k, &wrong[i], &p));
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_conv_plan(k, NULL, &p));

	struct weir_conv what = small();
	what.epilogue = WEIR_EPILOGUE_RESIDUAL;
	p = plan_of(k, &what);
	struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_conv_run(p, &args, NULL));
	args.residual = d;
	OK(weir_conv_run(p, &args, NULL));
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_run(p, &args, NULL));
	weir_plan_close(p);
	weir_kernels_close(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_convolution_describes_its_images_to_the_copy_engine),
		cmocka_unit_test(a_gradient_reads_the_filters_backwards),
		cmocka_unit_test(a_gradient_at_a_stride_is_in_phases),
		cmocka_unit_test(a_gradient_of_filters_sums_parts_of_the_pixels),
		cmocka_unit_test(a_first_layer_is_packed_into_the_workspace),
		cmocka_unit_test(what_the_copy_engine_cannot_gather_is_plain),
		cmocka_unit_test(without_a_compiler_the_plain_kernels_run),
		cmocka_unit_test(one_tap_that_leaves_out_no_pixel_is_a_product),
		cmocka_unit_test(few_filters_stay_and_few_channels_make_short_blocks),
		cmocka_unit_test(a_convolution_of_int8_has_scales_of_filters),
		cmocka_unit_test(every_wrong_convolution_is_refused_in_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
