/*
 * The kernel library on the simulated driver, with a test double of NVRTC: which kernel a plan
 * takes, what it launches, what is kept on the disk, and what is refused.
 */
#include "plan_test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "kernels/rows.cuh"

static char folder[] = "/tmp/weir-kernels-XXXXXX";
static int (*compiler_count)(void);

static struct weir_rows softmax_of(uint32_t type, int64_t rows, int64_t width)
{
	return (struct weir_rows){ .size = sizeof(struct weir_rows),
		.operation = WEIR_SOFTMAX,
		.type = type,
		.rows = rows,
		.width = width };
}

static struct weir_plan *plan_of(struct weir_kernels *k, const struct weir_rows *what)
{
	struct weir_plan *p;
	const int e = weir_rows_plan(k, what, &p);
	return made(e, p);
}

/* The arguments of a run's launch: in a capture, whose only node is then read. */
static struct rows_args launched(const struct weir_plan *p, const struct weir_rows_args *a,
	struct cu_kernel_node_params *ret)
{
	void *stream = capture_begin();
	struct rows_args args;
	OK(weir_rows_run(p, a, stream));
	capture_end(stream, ret, &args, sizeof args);
	return args;
}

static void *const at = (void *)0x7000000000;

static void a_fast_kernel_takes_aligned_rows_and_the_plain_one_all_else(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	const struct weir_rows what = softmax_of(WEIR_BF16, 1000, 4096);
	struct weir_plan *p = plan_of(k, &what);
	struct weir_rows_args a = { .size = sizeof a, .x = at, .y = at };
	struct cu_kernel_node_params fast, plain;
	const struct rows_args args = launched(p, &a, &fast);
	assert_ptr_equal(args.x.at, at);
	assert_int_equal(args.x.row, 4096);
	assert_int_equal(args.x.column, 1);
	assert_int_equal(args.rows, 1000);
	assert_int_equal(args.width, 4096);

	a.x = (char *)at + 2;
	launched(p, &a, &plain);
	assert_ptr_not_equal(fast.func, plain.func);
	assert_int_equal(plain.block_x, 256);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_bf16_v"));
	weir_plan_close(p);

	const struct weir_rows odd = softmax_of(WEIR_BF16, 1000, 4097);
	p = plan_of(k, &odd);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_bf16_plain"));
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* 32,768 columns need two blocks whose 8 warps have 3 slabs of 4 KB, and the blocks stay for all
 * rows. 33,024 columns are 129 pieces, of which 32 warps have 4 or 5. 256,000 of FP32 leave room
 * for one slab a warp. */
static void blocks_of_wide_rows_read_ahead_and_stay(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	const struct weir_rows what = softmax_of(WEIR_BF16, 100000, 32768),
			       few = softmax_of(WEIR_BF16, 3, 131072),
			       uneven = softmax_of(WEIR_BF16, 1000, 33024),
			       widest = softmax_of(WEIR_F32, 100, 256000);
	struct weir_rows_args a = { .size = sizeof a, .x = at, .y = at };
	struct cu_kernel_node_params node;
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_bf16_v8_t256_s3_b256_c2"));
	launched(p, &a, &node);
	assert_int_equal(node.block_x, 256);
	assert_int_equal(node.shared_bytes, 8 * 3 * (4096 + 8) + 16);
	assert_in_range(node.grid_x, 1, 1000);
	weir_plan_close(p);

	p = plan_of(k, &few);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_bf16_v8_t256_s3_b256_c8"));
	launched(p, &a, &node);
	assert_int_equal(node.grid_x, 3 * 8);
	weir_plan_close(p);

	p = plan_of(k, &uneven);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_bf16_v5_t256_s5_b256_c4"));
	weir_plan_close(p);

	p = plan_of(k, &widest);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_f32_v16_t512_s1_b512_c8"));
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void without_a_compiler_the_plain_kernels_run(void **state)
{
	struct weir_kernels *k = open_with("", "");
	for (uint32_t operation = WEIR_SOFTMAX; operation <= WEIR_RMS_NORM; operation++)
		for (uint32_t type = WEIR_F32; type <= WEIR_BF16; type++) {
			struct weir_rows what = softmax_of(type, 3, 64);
			what.operation = operation;
			struct weir_plan *p = plan_of(k, &what);
			const struct weir_rows_args a = { .size = sizeof a, .x = at, .y = at };
			OK(weir_rows_run(p, &a, NULL));
			assert_non_null(strstr(weir_plan_text(p), "built in"));
			assert_non_null(strstr(weir_plan_text(p), "needs NVRTC"));
			weir_plan_close(p);
		}
	weir_kernels_close(k);
}

static void a_compiler_that_refuses_leaves_the_plain_kernels(void **state)
{
	setenv("COMPILER", "refuse", 1);
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	const struct weir_rows what = softmax_of(WEIR_F32, 10, 64);
	struct weir_plan *p = plan_of(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_softmax_f32_plain (built in)"));
	weir_plan_close(p);
	weir_kernels_close(k);
	unsetenv("COMPILER");
}

static struct weir_gemm product_of(uint32_t type, int64_t m, int64_t n, int64_t k)
{
	return (struct weir_gemm){
		.size = sizeof(struct weir_gemm), .type = type, .m = m, .n = n, .k = k
	};
}

static struct weir_plan *plan_product(struct weir_kernels *k, const struct weir_gemm *what)
{
	struct weir_plan *p;
	const int e = weir_gemm_plan(k, what, &p);
	return made(e, p);
}

static void captured(const struct weir_plan *p, const struct weir_gemm_args *a,
	struct cu_kernel_node_params *ret, void *ret_args, size_t bytes)
{
	void *stream = capture_begin();
	OK(weir_gemm_run(p, a, stream));
	capture_end(stream, ret, ret_args, bytes);
}

static void expect_map(const struct tensor_map *map, const void *base, uint64_t columns,
	uint64_t rows, uint64_t pitch, unsigned box_columns, unsigned box_rows)
{
	const struct sim_tensor_map m = read_map(map);
	assert_int_equal(m.at, (uintptr_t)base);
	assert_int_equal(m.rank, 2);
	assert_int_equal(m.size[0], columns);
	assert_int_equal(m.size[1], rows);
	assert_int_equal(m.pitch[0], pitch);
	assert_int_equal(m.box[0], box_columns);
	assert_int_equal(m.box[1], box_rows);
}

/* Tiles of 128 x 112: m, n and k of a product, with rows that are further apart. */
static void a_product_describes_its_matrices_to_the_copy_engine(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_BF16, 1000, 904, 200);
	what.a_pitch = 208;
	what.b_transposed = 0;
	what.d_pitch = 1000;
	struct weir_plan *p = NULL;
	unsigned bm = 0, bn = 0;
	for (; what.choice < 17; what.choice++) {
		p = plan_product(k, &what);
		if (strstr(weir_plan_text(p), "128x112_pp"))
			break;
		weir_plan_close(p);
	}
	assert_int_not_equal(what.choice, 17);
	assert_int_equal(sscanf(strstr(weir_plan_text(p), "_nn_") + 4, "%ux%u", &bm, &bn), 2);
	char *const a = (char *)0x7000000000, *const b = (char *)0x7100000000,
		    *const d = (char *)0x7200000000;
	struct weir_gemm_args args = { .size = sizeof args, .a = a, .b = b, .d = d };
	struct cu_kernel_node_params node;
	struct tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_int_equal(node.block_x, 384);
	/* 4 clusters of 2 down, 9 across: fewer than run at a time. */
	assert_int_equal(node.grid_x, 2 * 4 * 9);
	assert_int_equal(t.m, 1000);
	assert_int_equal(t.n, 904);
	assert_int_equal(t.k, 200);
	expect_map(&t.a, a, 200, 1000, 416, 64, 128);
	expect_map(&t.b, b, 200, 904, 400, 64, 56); /* half of a tile: the cluster shares it */
	expect_map(&t.d, d, 904, 1000, 2000, 64, 64);
	expect_map(&t.d_tail, d, 904, 1000, 2000, 48, 64);
	assert_int_equal(read_map(&t.d).swizzle, 3);
	assert_int_equal(read_map(&t.d_tail).swizzle, 0);
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void a_product_that_the_copy_engine_cannot_read_is_plain(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_F16, 64, 64, 64);
	struct weir_plan *p = plan_product(k, &what);
	struct weir_gemm_args args = { .size = sizeof args, .a = (char *)at + 2, .b = at, .d = at };
	struct cu_kernel_node_params node;
	struct gemm_args g;
	assert_null(strstr(weir_plan_text(p), "plain"));
	captured(p, &args, &node, &g, sizeof g);
	assert_int_equal(node.block_x, 256);
	assert_ptr_equal(g.a, args.a);
	weir_plan_close(p);
	args.a = at;

	for (int i = 0; i < 4; i++) {
		what = product_of(i == 0 ? WEIR_F32 : WEIR_F16, 64, 64, i == 1 ? 62 : 64);
		what.d_pitch = i == 2 ? 66 : 0;
		what.a_transposed = what.b_transposed = i == 3;
		what.k = i == 3 ? 0 : what.k;
		p = plan_product(k, &what);
		/* Rows of D that the copy engine cannot write are none of its own to mma.sync. */
		assert_non_null(strstr(
			weir_plan_text(p), i == 2 ? "weir_gemm_f16_mma_128x128_s3" : "plain"));
		captured(p, &args, &node, &g, sizeof g);
		assert_int_equal(node.shared_bytes, i == 2 ? 98304 : 0);
		assert_int_equal(g.a_k, i == 3 ? 64 : 1);
		assert_int_equal(g.a_row, i == 3 ? 1 : i == 1 ? 62 : 64);
		assert_int_equal(g.d_row, i == 2 ? 66 : 64);
		weir_plan_close(p);
	}
	weir_kernels_close(k);
}

/* 10 rows: tiles of the weights' rows by 16, and a cluster's blocks share K or A.  129 rows have
 * other tiles. */
static void a_product_of_few_rows_has_tiles_of_the_weights(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_BF16, 10, 4096, 2048);
	const struct weir_gemm_args args = {
		.size = sizeof args, .a = at, .b = at, .d = at, .residual = at
	};
	struct cu_kernel_node_params node;
	struct few_args t;
	what.epilogue = WEIR_EPILOGUE_RESIDUAL;
	for (; what.choice < 6; what.choice++) {
		unsigned rows, stages, parts;
		struct weir_plan *p = plan_product(k, &what);
		what.b_stays = !what.b_stays;
		assert_int_equal(
			sscanf(weir_plan_text(p), "weir_gemm_bf16_residual_few_%ux16_s%u_p%u",
				&rows, &stages, &parts),
			3);
		captured(p, &args, &node, &t, sizeof t);
		assert_int_equal(node.block_x, 2 * rows + 32);
		assert_int_equal(node.grid_x, 4096 / rows * parts);
		assert_in_range(node.shared_bytes, stages * (rows + 16) * 128, 232448);
		expect_map(&t.a, at, 2048, 10, 4096, 64, 16);
		expect_map(&t.b, at, 2048, 4096, 4096, 64, rows);
		assert_int_equal(t.m, 10);
		assert_int_equal(t.d_row, 4096);
		weir_plan_close(p);
	}
	what.choice = 0;
	what.m = 129;
	struct weir_plan *p = plan_product(k, &what);
	assert_null(strstr(weir_plan_text(p), "_few_"));
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* Tiles of 128 x 112 of INT8: blocks of 128 along K, and a result of bytes in slices of 64. */
static void a_product_of_bytes_has_scales_and_another_result(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_S8, 1000, 912, 208);
	struct weir_plan *p = NULL;
	what.d_type = WEIR_S8;
	for (; what.choice < 16; what.choice++) {
		p = plan_product(k, &what);
		if (strstr(weir_plan_text(p), "_s8_to_s8_nn_128x112_pp"))
			break;
		weir_plan_close(p);
	}
	assert_int_not_equal(what.choice, 16);
	struct weir_gemm_args args = { .size = sizeof args, .a = at, .b = at, .d = at };
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_run(p, &args, NULL));
	args.a_scale = args.b_scale = at;
	struct cu_kernel_node_params node;
	struct tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_ptr_equal(t.a_scale, at);
	expect_map(&t.a, at, 208, 1000, 208, 128, 128);
	expect_map(&t.d, at, 912, 1000, 912, 64, 64);
	expect_map(&t.d_tail, at, 912, 1000, 912, 48, 64);
	assert_int_equal(read_map(&t.d).swizzle, 2);
	assert_int_equal(read_map(&t.d_tail).swizzle, 0);
	args.b_scale = (const float *)((char *)at + 2);
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_run(p, &args, NULL));
	weir_plan_close(p);

	what.n = 904; /* its rows of D are no multiple of 16 bytes */
	what.choice = 0;
	p = plan_product(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_gemm_s8_to_s8_mma_"));
	weir_plan_close(p);
	what.a_pitch = 209;
	p = plan_product(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_gemm_s8_to_s8_plain"));
	what.a_pitch = 0;
	weir_plan_close(p);
	weir_kernels_close(k);
	what.d_type = 0;
	k = open_with("", "");
	for (what.type = WEIR_S8; what.type <= WEIR_E4M3; what.type++) {
		p = plan_product(k, &what);
		assert_non_null(strstr(weir_plan_text(p), "_to_bf16_plain (built in)"));
		weir_plan_close(p);
	}
	weir_kernels_close(k);
}

/* Tiles of 128 x 112 of FP32 that is read as TF32: blocks of 32 along K, slices of 32 columns. */
static void a_product_of_tf32_is_of_fp32_in_memory(void **state)
{
	enum { FLOAT32 = 7, TFLOAT32 = 11 };
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_TF32, 1000, 912, 204);
	struct weir_plan *p = NULL;
	what.epilogue = WEIR_EPILOGUE_RESIDUAL;
	what.residual_pitch = 916;
	for (; what.choice < 17; what.choice++) {
		p = plan_product(k, &what);
		if (strstr(weir_plan_text(p), "_tf32_residual_nn_128x112_pp"))
			break;
		weir_plan_close(p);
	}
	assert_int_not_equal(what.choice, 17);
	struct weir_gemm_args args = {
		.size = sizeof args, .a = at, .b = at, .d = at, .residual = at
	};
	struct cu_kernel_node_params node;
	struct tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	expect_map(&t.a, at, 204, 1000, 816, 32, 128);
	expect_map(&t.b, at, 204, 912, 816, 32, 56);
	expect_map(&t.d, at, 912, 1000, 3648, 32, 64);
	expect_map(&t.d_tail, at, 912, 1000, 3648, 16, 64);
	expect_map(&t.residual, at, 912, 1000, 3664, 32, 64);
	assert_int_equal(read_map(&t.a).type, TFLOAT32);
	assert_int_equal(read_map(&t.d).type, FLOAT32);
	assert_int_equal(read_map(&t.residual).type, FLOAT32);
	weir_plan_close(p);

	what.choice = 0;
	what.d_type = WEIR_TF32;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_plan(k, &what, &p));
	weir_kernels_close(k);
	k = open_with("", "");
	what.d_type = WEIR_F32;
	p = plan_product(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_gemm_f32_plain (built in)"));
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* The launches of a run, and the struct that is the last one's first argument. */
static size_t launches(const struct weir_plan *p, const struct weir_gemm_args *args,
	struct split_args ret_copies[2], struct tiled_args *ret)
{
	void *stream = capture_begin(), *graph, *node[3];
	size_t n = 3;
	struct cu_kernel_node_params launch;
	OK(weir_gemm_run(p, args, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, node, &n));
	for (size_t i = 0; i < n; i++) {
		OK(cuGraphKernelNodeGetParams_v2(node[i], &launch));
		if (i + 1 < n)
			memcpy(&ret_copies[i], launch.params[0], sizeof *ret_copies);
		else
			memcpy(ret, launch.params[0], sizeof *ret);
	}
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
	return n;
}

/* TF32 with K as rows is copied to rows of adjacent K, of which each is 16 bytes or more. In two
 * parts both operands are, however they are stored. */
static void tf32_that_the_tensor_cores_cannot_read_is_copied_before(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_TF32, 1000, 912, 203);
	struct weir_gemm_args args = { .size = sizeof args, .a = at, .b = at, .d = at };
	struct split_args copies[2];
	struct tiled_args t;
	what.a_pitch = 204;
	what.b_transposed = 1;
	what.b_pitch = 913;
	struct weir_plan *p = plan_product(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_gemm_tf32_nn_"));
	assert_int_equal(weir_plan_workspace(p), 912 * 204 * 4);
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_run(p, &args, NULL));
	char *const workspace = args.workspace = (char *)at + (1 << 24);
	assert_int_equal(launches(p, &args, copies, &t), 2);
	assert_ptr_equal(copies[0].from, at);
	assert_ptr_equal(copies[0].high, workspace);
	assert_null(copies[0].low);
	assert_int_equal(copies[0].step_row, 1);
	assert_int_equal(copies[0].step_k, 913);
	assert_int_equal(read_map(&t.a).at, (uintptr_t)at);
	assert_int_equal(read_map(&t.b).at, (uintptr_t)workspace);
	assert_int_equal(read_map(&t.b).pitch[0], 204 * 4);
	weir_plan_close(p);

	const size_t a_bytes = 1000 * 204 * 4,
		     b_bytes = 912 * 204 * 4; /* whole lines of 128 bytes */
	what.type = WEIR_TF32X3;
	what.a_pitch = 203; /* no multiple of 16 bytes */
	p = plan_product(k, &what);
	assert_non_null(strstr(weir_plan_text(p), "weir_gemm_tf32x3_nn_"));
	assert_int_equal(weir_plan_workspace(p), 2 * (a_bytes + b_bytes));
	assert_int_equal(launches(p, &args, copies, &t), 3);
	assert_int_equal(copies[0].step_row, 203);
	assert_int_equal(copies[0].rows, 1000);
	assert_int_equal(copies[1].rows, 912);
	assert_ptr_equal(read_map(&t.a).at, workspace);
	assert_ptr_equal(read_map(&t.a_low).at, copies[0].low);
	assert_ptr_equal(read_map(&t.b).at, copies[1].high);
	assert_ptr_equal(read_map(&t.b_low).at, copies[1].low);
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* Three products of 128 x 112 tiles, that share B.  The second dimension of a matrix counts them.
 */
static void a_batch_is_one_launch_over_matrices_of_three_dimensions(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_gemm what = product_of(WEIR_BF16, 1000, 904, 200);
	struct weir_plan *p = NULL;
	what.batch = 3;
	what.a_batch = 1000 * 200 + 8;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_plan(k, &what, &p)); /* one D for all */
	what.d_batch = 1000 * 904;
	for (; what.choice < 17; what.choice++) {
		p = plan_product(k, &what);
		if (strstr(weir_plan_text(p), "_bf16_batch_nn_128x112_pp"))
			break;
		weir_plan_close(p);
	}
	assert_int_not_equal(what.choice, 17);
	struct weir_gemm_args args = { .size = sizeof args, .a = at, .b = at, .d = at };
	struct cu_kernel_node_params node;
	struct tiled_args t;
	captured(p, &args, &node, &t, sizeof t);
	assert_int_equal(t.batch, 3);
	assert_int_equal(t.a_step, 1);
	assert_int_equal(t.b_step, 0);
	const struct sim_tensor_map a = read_map(&t.a), b = read_map(&t.b), d = read_map(&t.d);
	assert_int_equal(a.rank, 3);
	assert_int_equal(a.size[1], 3);
	assert_int_equal(a.size[2], 1000);
	assert_int_equal(a.pitch[0], what.a_batch * 2);
	assert_int_equal(a.pitch[1], 400);
	assert_int_equal(a.box[1], 1);
	assert_int_equal(a.box[2], 128);
	assert_int_equal(b.size[1], 1);
	assert_int_equal(d.size[1], 3);
	assert_int_equal(d.pitch[0], 1000 * 904 * 2);
	weir_plan_close(p);

	what.choice = 0;
	what.a_batch += 1; /* no multiple of 16 bytes */
	p = plan_product(k, &what);
	struct gemm_args g;
	captured(p, &args, &node, &g, sizeof g);
	assert_non_null(strstr(weir_plan_text(p), "weir_gemm_bf16_plain"));
	assert_int_equal(g.batch, 3);
	assert_int_equal(g.a_batch, what.a_batch);
	assert_int_equal(g.b_batch, 0);
	assert_int_equal(node.grid_x, 16 * 15 * 3);
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void every_wrong_product_is_refused_in_words(void **state)
{
	struct weir_kernels *k = open_with("", "");
	struct weir_gemm wrong[15];
	struct weir_plan *p;
	for (size_t i = 0; i < 15; i++)
		wrong[i] = product_of(WEIR_F32, 4, 4, 4);
	wrong[0].size = 3;
	wrong[1].type = WEIR_TF32X3 + 1;
	wrong[2].epilogue = 7;
	wrong[3].m = -1;
	wrong[4].k = INT64_MAX;
	wrong[5].a_pitch = 3;
	wrong[6].epilogue = WEIR_EPILOGUE_SWIGLU;
	wrong[6].n = 5;
	wrong[7].b_transposed = 2;
	wrong[8].d_type = WEIR_BF16;
	wrong[9].type = WEIR_E4M3;
	wrong[9].d_type = WEIR_S8;
	wrong[10].type = WEIR_S8;
	wrong[10].epilogue = WEIR_EPILOGUE_RESIDUAL;
	wrong[11].batch = -1;
	wrong[12].a_batch = -16;
	wrong[13].batch = 1 << 29;
	wrong[13].b_batch = wrong[13].d_batch = INT64_MAX / 8;
	wrong[14].type = WEIR_S8;
	wrong[14].batch = 2;
	wrong[14].d_batch = 16;
	for (size_t i = 0; i < 15; i++)
		FAILS(i ? WEIR_KERNELS_ERROR_ARGUMENT : WEIR_KERNELS_ERROR_SIZE,
			weir_gemm_plan(k, &wrong[i], &p));

	struct weir_gemm what = product_of(WEIR_F32, 4, 4, 4);
	what.epilogue = WEIR_EPILOGUE_BIAS;
	p = plan_product(k, &what);
	struct weir_gemm_args a = { .size = sizeof a, .a = at, .b = at, .d = at };
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_run(p, &a, NULL));
	a.bias = at;
	OK(weir_gemm_run(p, &a, NULL));
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT,
		weir_rows_run(p, &(struct weir_rows_args){ .size = sizeof(struct weir_rows_args) },
			NULL));
	weir_plan_close(p);
	weir_kernels_close(k);
}

/* How often the compiler is needed for one plan by a library that was just opened. */
static int compiled_by_a_plan(const char *cache)
{
	const int before = compiler_count();
	struct weir_kernels *k = open_with(cache, WEIR_COMPILER);
	const struct weir_rows what = softmax_of(WEIR_F16, 10, 64);
	weir_plan_close(plan_of(k, &what));
	weir_kernels_close(k);
	return compiler_count() - before;
}

/* Calls back for each file. */
static int each_file(const char *in, void (*change)(const char *path))
{
	int n = 0;
	DIR *d = opendir(in);
	assert_non_null(d);
	for (struct dirent *entry; (entry = readdir(d));) {
		char path[700];
		snprintf(path, sizeof path, "%s/%s", in, entry->d_name);
		if (entry->d_name[0] == '.')
			continue;
		change(path);
		n++;
	}
	closedir(d);
	return n;
}

static void is_private(const char *path)
{
	struct stat s;
	OK(stat(path, &s));
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_non_null(strstr(path, ".cubin"));
}

static void flip_last(const char *path)
{
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	OK(fseek(f, -1, SEEK_END));
	const int c = fgetc(f);
	OK(fseek(f, -1, SEEK_END));
	fputc(c ^ 1, f);
	OK(fclose(f));
}

static void cut_short(const char *path)
{
	struct stat s;
	OK(stat(path, &s));
	OK(truncate(path, s.st_size / 2));
}

static void make_empty(const char *path)
{
	OK(truncate(path, 0));
}

static void let_others_write(const char *path)
{
	OK(chmod(path, 0666));
}

static void replace_by_link(const char *path)
{
	char other[700];
	snprintf(other, sizeof other, "%s/other%s", folder, strrchr(path, '/') + 1);
	OK(rename(path, other));
	OK(symlink(other, path));
}

static void compiled_kernels_are_kept_and_damage_is_found(void **state)
{
	static void (*const damages[])(const char *) = { flip_last, cut_short, make_empty,
		let_others_write, replace_by_link };
	char cache[400];
	snprintf(cache, sizeof cache, "%s/deep/kernels", folder);
	assert_int_equal(compiled_by_a_plan(cache), 2); /* the fast kernel and the plain one */
	assert_int_equal(each_file(cache, is_private), 2);
	assert_int_equal(compiled_by_a_plan(cache), 0);
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		each_file(cache, damages[i]);
		assert_int_equal(compiled_by_a_plan(cache), 2);
		assert_int_equal(compiled_by_a_plan(cache), 0);
		each_file(cache, is_private);
	}
}

/* Pointers that are promised to be aligned need one kernel, and others are refused then. */
static void a_plan_for_aligned_pointers_compiles_one_kernel(void **state)
{
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	struct weir_rows row = softmax_of(WEIR_F16, 10, 64);
	struct weir_gemm gemm = product_of(WEIR_F16, 64, 64, 64);
	int before = compiler_count();
	row.aligned = gemm.aligned = 1;
	struct weir_plan *rows = plan_of(k, &row), *product = plan_product(k, &gemm);
	assert_int_equal(compiler_count() - before, 2);
	struct weir_rows_args r = { .size = sizeof r, .x = at, .y = at };
	struct weir_gemm_args g = { .size = sizeof g, .a = at, .b = at, .d = at };
	OK(weir_rows_run(rows, &r, NULL));
	OK(weir_gemm_run(product, &g, NULL));
	r.x = g.a = (char *)at + 2;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_rows_run(rows, &r, NULL));
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_gemm_run(product, &g, NULL));
	assert_non_null(strstr(weir_kernels_error(), "aligned"));
	weir_plan_close(rows);
	weir_plan_close(product);

	row.width = 63; /* whose rows no vector covers: the plain kernel takes any pointer */
	rows = plan_of(k, &row);
	OK(weir_rows_run(rows, &r, NULL));
	weir_plan_close(rows);
	weir_kernels_close(k);
}

static void a_folder_that_cannot_be_written_costs_only_time(void **state)
{
	char file[400];
	snprintf(file, sizeof file, "%s/file", folder);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(compiled_by_a_plan(file), 2);
	assert_int_equal(compiled_by_a_plan(file), 2);
}

static void every_wrong_description_is_refused_in_words(void **state)
{
	struct weir_kernels *k = open_with("", "");
	const struct weir_rows good = softmax_of(WEIR_F32, 4, 4);
	struct weir_rows wrong[10];
	struct weir_plan *p;
	for (size_t i = 0; i < 10; i++)
		wrong[i] = good;
	wrong[0].size = 8;
	wrong[1].operation = 9;
	wrong[2].type = 0;
	wrong[3].rows = -1;
	wrong[4].has_weight = 1; /* a softmax has none */
	wrong[5].operation = WEIR_RMS_NORM;
	wrong[5].has_sum = 1; /* of what? */
	wrong[6].operation = WEIR_LAYER_NORM;
	wrong[6].epsilon = -1;
	wrong[7].x_row = INT64_MAX / 2;
	wrong[8].width = INT64_MAX;
	wrong[9].operation = WEIR_RMS_NORM;
	wrong[9].has_bias = 2;
	for (size_t i = 0; i < 10; i++) {
		const int e = weir_rows_plan(k, &wrong[i], &p);
		assert_int_equal(e, i ? WEIR_KERNELS_ERROR_ARGUMENT : WEIR_KERNELS_ERROR_SIZE);
		assert_true(strlen(weir_kernels_error()) > 10);
	}
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_rows_plan(k, NULL, &p));
	weir_kernels_close(k);
}

static void every_wrong_tensor_is_refused_and_nothing_is_launched(void **state)
{
	struct weir_kernels *k = open_with("", "");
	const struct weir_rows what = softmax_of(WEIR_F32, 4, 4);
	struct weir_plan *p = plan_of(k, &what);
	const struct weir_rows_args good = { .size = sizeof good, .x = at, .y = at };
	struct weir_rows_args a = good;
	a.y = NULL;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_rows_run(p, &a, NULL));
	a = good;
	a.weight = at;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_rows_run(p, &a, NULL));
	a = good;
	a.x = (char *)at + 2;
	FAILS(WEIR_KERNELS_ERROR_ARGUMENT, weir_rows_run(p, &a, NULL));
	a.size = 1;
	FAILS(WEIR_KERNELS_ERROR_SIZE, weir_rows_run(p, &a, NULL));
	OK(weir_rows_run(p, &good, NULL));

	/* The driver's own refusal is told with its name. */
	FAILS(WEIR_KERNELS_ERROR_DRIVER, weir_rows_run(p, &good, (void *)0x1234));
	assert_non_null(strstr(weir_kernels_error(), "cuLaunchKernelEx: CUDA_ERROR_"));
	weir_plan_close(p);

	const struct weir_rows nothing = softmax_of(WEIR_F32, 0, 4);
	p = plan_of(k, &nothing);
	OK(weir_rows_run(p, &(struct weir_rows_args){ .size = sizeof good }, NULL));
	weir_plan_close(p);
	weir_kernels_close(k);
}

static void without_a_context_it_does_not_open(void **state)
{
	struct weir_kernels *k;
	test_context();
	OK(cuCtxSetCurrent(NULL));
	FAILS(WEIR_KERNELS_ERROR_NO_CONTEXT, weir_kernels_open(NULL, &k));
	test_context();
}

static void *plan_and_run(void *of)
{
	struct weir_kernels *k = of;
	test_context();
	for (int i = 0; i < 50; i++) {
		const struct weir_rows what =
			softmax_of(WEIR_F32 + (uint32_t)i % 3, 7, 32 << i % 5);
		const struct weir_rows_args a = { .size = sizeof a, .x = at, .y = at };
		struct weir_plan *p;
		if (weir_rows_plan(k, &what, &p) || weir_rows_run(p, &a, NULL))
			return (void *)weir_kernels_error();
		weir_plan_close(p);
	}
	return NULL;
}

static void threads_share_a_library_and_outlive_its_handle(void **state)
{
	enum { THREADS = 8 };
	pthread_t thread[THREADS];
	struct weir_kernels *k = open_with("", WEIR_COMPILER);
	const struct weir_rows what = softmax_of(WEIR_F32, 7, 32);
	struct weir_plan *p = plan_of(k, &what);
	for (int i = 0; i < THREADS; i++)
		OK(pthread_create(&thread[i], NULL, plan_and_run, k));
	for (int i = 0; i < THREADS; i++) {
		void *wrong;
		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	weir_kernels_close(k);
	const struct weir_rows_args a = { .size = sizeof a, .x = at, .y = at };
	OK(weir_rows_run(p, &a, NULL));
	weir_plan_close(p);
}

static int set_up(void **state)
{
	void *compiler = dlopen(WEIR_COMPILER, RTLD_NOW);
	assert_non_null(compiler);
	*(void **)&compiler_count = dlsym(compiler, "compiler_count");
	return !mkdtemp(folder);
}

static void remove_all(const char *path)
{
	if (remove(path)) { /* a folder with files in it */
		each_file(path, remove_all);
		remove(path);
	}
}

static int tear_down(void **state)
{
	remove_all(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fast_kernel_takes_aligned_rows_and_the_plain_one_all_else),
		cmocka_unit_test(blocks_of_wide_rows_read_ahead_and_stay),
		cmocka_unit_test(without_a_compiler_the_plain_kernels_run),
		cmocka_unit_test(a_compiler_that_refuses_leaves_the_plain_kernels),
		cmocka_unit_test(a_product_describes_its_matrices_to_the_copy_engine),
		cmocka_unit_test(a_product_that_the_copy_engine_cannot_read_is_plain),
		cmocka_unit_test(a_product_of_few_rows_has_tiles_of_the_weights),
		cmocka_unit_test(a_product_of_bytes_has_scales_and_another_result),
		cmocka_unit_test(a_product_of_tf32_is_of_fp32_in_memory),
		cmocka_unit_test(tf32_that_the_tensor_cores_cannot_read_is_copied_before),
		cmocka_unit_test(a_batch_is_one_launch_over_matrices_of_three_dimensions),
		cmocka_unit_test(every_wrong_product_is_refused_in_words),
		cmocka_unit_test(compiled_kernels_are_kept_and_damage_is_found),
		cmocka_unit_test(a_plan_for_aligned_pointers_compiles_one_kernel),
		cmocka_unit_test(a_folder_that_cannot_be_written_costs_only_time),
		cmocka_unit_test(every_wrong_description_is_refused_in_words),
		cmocka_unit_test(every_wrong_tensor_is_refused_and_nothing_is_launched),
		cmocka_unit_test(without_a_context_it_does_not_open),
		cmocka_unit_test(threads_share_a_library_and_outlive_its_handle),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
