/* Models of kernels, and what all engines on a GPU share, on the simulated driver.  Its kernels do
 * nothing, so copies and fills are what is compared. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/shared_library.h"
#include "engine/gpu_model.h"
#include "engines.h"

#define FOLDER "kernels-model"

static const char image[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			    ".visible .entry work(.param .u64 a, .param .u32 b)\n{\n\tret;\n}\n";

static void put_file(const char *name, const void *data, size_t bytes)
{
	char path[200];
	snprintf(path, sizeof path, FOLDER "/%s", name);
	FILE *f = fopen(path, "w");
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	fclose(f);
}

static struct engine_config config = { .name = "m", .max_batch_size = 6 };

static int try_load(const char *json, struct engine_model **ret)
{
	put_file("kernels.json", json, strlen(json));
	return load_config("kernels", FOLDER "/kernels.json", &config, ret);
}

static struct gpu_model *load(const char *json)
{
	struct engine_model *m;
	if (try_load(json, &m))
		fail_msg("%s", err.text);
	return (struct gpu_model *)m;
}

#define SPEC(name) "{\"name\":\"" name "\",\"datatype\":\"FP32\",\"shape\":[-1,2]}"
#define HEAD                                                                                       \
	"{\"image\":\"model.ptx\",\"inputs\":[" SPEC("X") "],\"outputs\":[" SPEC("Y") "," SPEC(    \
		"W") "],\"buffers\":[{\"name\":\"w\",\"bytes\":48,\"file\":\"w.bin\"},"            \
		     "{\"name\":\"t\",\"bytes\":{\"rows\":8}}],\"launches\":["
#define WORK                                                                                       \
	"{\"kernel\":\"work\",\"grid\":[{\"rows\":1,\"over\":4},1,1],\"block\":[128,1,1],"         \
	"\"arguments\":[{\"buffer\":\"t\",\"offset\":8},{\"u32\":{\"rows\":1}}]}"
#define COPIES                                                                                     \
	"{\"copy\":{\"from\":\"X\",\"to\":\"t\",\"bytes\":{\"rows\":8}}},"                         \
	"{\"copy\":{\"from\":\"t\",\"to\":\"Y\",\"bytes\":{\"rows\":8}}},"                         \
	"{\"copy\":{\"from\":\"w\",\"to\":\"W\",\"bytes\":{\"rows\":8}}}"

/* As many rows as a batch has, from several requests; Y is X, and W the first rows of w. */
static unsigned replays, staged /* rows, by bit */;
static void run_rows(struct gpu_model *m, uint32_t rows, float first)
{
	float x[12], w[12];
	struct engine_piece p[6];
	for (uint32_t i = 0; i < 12; i++) {
		x[i] = first + (float)i;
		w[i] = (float)i * 10;
	}
	struct gpu_pinned *pinned[6] = { 0 };
	for (uint32_t i = 0; i < rows; i++) {
		p[i] = (struct engine_piece){ &x[2 * i], 8, 1, staged >> i & 1 };
		if (!p[i].staged)
			continue;
		assert_int_equal(gpu_pinned_take(m->gpu, 8, &pinned[i], &err), 0);
		p[i].data = memcpy(pinned[i]->data, &x[2 * i], 8);
	}
	begin_run();
	give_pieces(0, DTYPE_FP32, SHAPE(rows, 2), p, rows);
	if (engine_run(&m->base, &run, &err))
		fail_msg("%s", err.text);
	replays += run.replayed;
	check_output(0, DTYPE_FP32, SHAPE(rows, 2), x, rows * 8);
	check_output(1, DTYPE_FP32, SHAPE(rows, 2), w, rows * 8);
	engine_run_end(&m->base, &run);
	for (uint32_t i = 0; i < rows; i++)
		gpu_pinned_give(m->gpu, pinned[i]);
}

static void the_device_reads_staged_rows_between_others(void **state)
{
	struct gpu_model *m = load(HEAD COPIES "]}"); /* launches are counted below */
	struct engine_staged none = { 0 }, large = { 0 };
	static uint8_t bytes[100000];
	for (staged = 0; staged < 64; staged++)
		run_rows(m, 6, (float)staged);
	staged = 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 1000);
	struct gpu_pinned *spare;
	assert_int_equal(gpu_pinned_take(m->gpu, sizeof bytes, &spare, &err), 0);
	gpu_pinned_give(m->gpu, spare);
	assert_false(engine_stage(&m->base, bytes, 100, &none));
	assert_true(engine_stage(&m->base, bytes, sizeof bytes, &large));
	assert_memory_equal(large.data, bytes, sizeof bytes);
	engine_unstage(&m->base, &none);
	engine_unstage(&m->base, &large);
	assert_null(large.data);
	engine_unload(&m->base);
}

/* Loops copy to what was pinned before there were clients, and pin nothing themselves. */
static void no_request_waits_for_memory_to_be_pinned(void **state)
{
	enum { COLUMNS = 16384, MOST = 40 };
	static float x[6][COLUMNS];
	static uint8_t bytes[sizeof *x];
	struct engine_staged s[MOST] = { 0 };
	struct engine_piece p = { x, sizeof x, 6, false };
	struct gpu_model *m =
		load("{\"image\":\"model.ptx\",\"inputs\":[{\"name\":\"X\",\"datatype\":\"FP32\","
		     "\"shape\":[-1,16384]}],\"outputs\":[{\"name\":\"Y\",\"datatype\":\"FP32\","
		     "\"shape\":[-1,16384]}],\"launches\":[{\"copy\":{\"from\":\"X\",\"to\":\"Y\","
		     "\"bytes\":{\"rows\":65536}}}]}");
	begin_run();
	give_pieces(0, DTYPE_FP32, SHAPE(6, COLUMNS), &p, 1);
	assert_int_equal(engine_run(&m->base, &run, &err), 0);
	engine_run_end(&m->base, &run);
	unsigned before = 0, n = 0;
	while (before < MOST && engine_stage(&m->base, bytes, sizeof bytes, &s[before]))
		before++;
	assert_true(before < 12); /* of the run: no block is made for them */
	assert_int_equal(engine_settle(&m->base, &err), 0);
	for (n = before; n < MOST && engine_stage(&m->base, bytes, sizeof bytes, &s[n]);)
		n++;
	assert_true(n >= 12 && n < MOST); /* two batches of six, and an end */
	for (unsigned i = 0; i < n; i++)
		engine_unstage(&m->base, &s[i]);
	assert_true(engine_stage(&m->base, bytes, sizeof bytes, &s[0]));
	engine_unstage(&m->base, &s[0]);
	engine_unload(&m->base);
}

static void rows_run_padded_and_from_the_third_run_on_as_a_graph(void **state)
{
	struct gpu_model *m = load(HEAD WORK "," COPIES "]}");
	replays = 0;
	for (uint32_t round = 0; round < 4; round++)
		for (uint32_t rows = 1; rows <= 6; rows++)
			run_rows(m, rows, (float)(round * 100 + rows));
	unsigned plans = 0;
	for (const struct gpu_plan *p = m->plan; p; p = p->next, plans++)
		assert_non_null(p->graph);
	assert_int_equal(plans, 4); /* 1, 2, 4, 6 */
	assert_int_equal(replays, 24 - 2 * plans);
	assert_int_equal(engine_settle(&m->base, &err), 0);
	for (const struct gpu_plan *p = m->plan; p; p = p->next)
		assert_non_null(p->graph);
	assert_null(atomic_load(&m->base.no_graphs));
	engine_unload(&m->base);
}

static void a_model_without_graphs_has_the_same_answers(void **state)
{
	static const struct parameter none = { "graphs", "0" };
	config.parameter = &none;
	config.parameters = 1;
	struct gpu_model *m = load(HEAD WORK "," COPIES "]}");
	replays = 0;
	config.parameters = 0;
	replays = 0;
	for (uint32_t i = 0; i < 4; i++)
		run_rows(m, 3, (float)i);
	assert_int_equal(replays, 0);
	engine_unload(&m->base);
}

static void memory_that_left_comes_back_to_graphs_and_weights(void **state)
{
	struct gpu_model *m = load(HEAD WORK "," COPIES "]}");
	replays = 0;
	size_t free_with, free_without, total;
	int (*info)(size_t *, size_t *);
	const struct library_symbol symbol = { "cuMemGetInfo_v2", 0 };
	assert_int_equal(library_load(options.cuda, &symbol, 1, &info), 0);
	for (uint32_t i = 0; i < 3; i++)
		run_rows(m, 2, (float)i);
	info(&free_with, &total);
	for (uint32_t i = 0; i < 3; i++) {
		put_away(&m->space);
		info(&free_without, &total);
		assert_int_equal(free_without - free_with, m->space.mapped);
		run_rows(m, 2, (float)i + 50);
	}
	assert_int_equal(replays, 4);
	/* A plan that came later is kept too. */
	run_rows(m, 6, 7);
	put_away(&m->space);
	run_rows(m, 6, 8);
	engine_unload(&m->base);
	info(&free_without, &total);
	assert_true(free_without > free_with);
}

#define OWN_HEAD                                                                                   \
	"{\"inputs\":[" SPEC("X") "],\"outputs\":[" SPEC("Y") "," SPEC(                            \
		"W") "],\"buffers\":[{\"name\":\"w\",\"bytes\":48,\"file\":\"w.bin\"},"            \
		     "{\"name\":\"v\",\"bytes\":8},{\"name\":\"t\",\"bytes\":{\"rows\":8}}],"      \
		     "\"launches\":["
#define OWN_WORK                                                                                      \
	"{\"gemm\":{\"type\":\"f32\",\"epilogue\":\"bias-gelu\",\"m\":{\"rows\":1},\"n\":2,"          \
	"\"k\":2,\"a\":\"X\",\"b\":\"w\",\"d\":\"t\",\"bias\":\"v\"}},"                               \
	"{\"softmax\":{\"type\":\"f32\",\"rows\":{\"rows\":1},\"width\":2,\"x\":\"t\",\"y\":\"t\"}}," \
	"{\"rms-norm\":{\"type\":\"f32\",\"rows\":{\"rows\":1},\"width\":2,\"x\":\"t\","              \
	"\"y\":\"t\",\"weight\":\"v\"}}"

/* Each launches once a run.  The kernels do nothing, so the copies give what is checked. */
static void steps_name_kernels_of_weir(void **state)
{
	struct gpu_model *m = load(OWN_HEAD OWN_WORK "," COPIES "]}");
	replays = 0;
	for (uint32_t round = 0; round < 4; round++)
		for (uint32_t rows = 1; rows <= 6; rows++)
			run_rows(m, rows, (float)(round * 100 + rows));
	assert_int_equal(replays, 24 - 2 * 4);
	assert_null(atomic_load(&m->base.no_graphs));
	engine_unload(&m->base);

	/* Four plans of this model have launched 36 times; the third launch of the next run fails.
	 */
	m = load(OWN_HEAD OWN_WORK "," COPIES "]}");
	const float x[2] = { 1, 2 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, sizeof x);
	check_error(engine_run(&m->base, &run, &err), -EIO, "cuLaunchKernelEx");
	run_rows(m, 1, 3);
	engine_unload(&m->base);
}

static void steps_of_weir_that_are_wrong_say_what(void **state)
{
	static const struct {
		const char *step, *part;
	} wrong[] = {
		{ "{\"gemm\":7}", "no object" },
		{ "{\"gemm\":{},\"softmax\":{}}", "not alone" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"q\"}}", "b names no buffer" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\"}}", "d is missing" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":2}}", "k" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":2,\"k\":2,"
		  "\"type\":\"f64\"}}",
			"type 'f64'" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":2,\"k\":2,"
		  "\"epilogue\":\"tan\"}}",
			"epilogue 'tan'" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":-2,\"k\":2}}",
			"from 0 to 2^30" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":2,\"k\":2,"
		  "\"epilogue\":\"bias\"}}",
			"bias and residual are given where" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":2,\"k\":2,"
		  "\"bias\":\"v\"}}",
			"bias and residual are given where" },
		{ "{\"gemm\":{\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\",\"m\":1,\"n\":2,\"k\":2,"
		  "\"type\":\"s8\"}}",
			"a_scale and b_scale" },
		{ "{\"softmax\":{\"x\":\"X\",\"y\":\"Y\",\"rows\":1,\"width\":1000000000000}}",
			"2^60" },
		{ "{\"softmax\":{\"x\":\"X\",\"y\":\"Y\",\"rows\":1,\"width\":2,\"type\":\"s8\"}}",
			"type is none" },
		{ "{\"softmax\":{\"x\":\"X\",\"y\":\"Y\",\"rows\":1,\"width\":2,\"weight\":\"v\"}}",
			"softmax" },
		{ "{\"rms-norm\":{\"x\":\"X\",\"y\":\"Y\",\"rows\":\"1\",\"width\":2}}",
			"rows is no amount" },
	};
	struct engine_model *m;
	char json[2000];
	for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
		snprintf(json, sizeof json, OWN_HEAD "%s]}", wrong[i].step);
		check_error(try_load(json, &m) < 0, true, wrong[i].part);
	}
	struct gpu_model *g =
		load(OWN_HEAD "{\"gemm\":{\"type\":\"f32\",\"m\":{\"rows\":1},\"n\":2,"
			      "\"k\":7,\"a\":\"X\",\"b\":\"w\",\"d\":\"Y\"}}]}");
	const float x[2] = { 1, 2 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, sizeof x);
	check_error(engine_run(&g->base, &run, &err), -EINVAL, "a needs 28 bytes");
	engine_unload(&g->base);
}

static void files_that_are_wrong_say_what(void **state)
{
	static const struct {
		const char *json, *part;
	} wrong[] = {
		{ "{", "kernels.json:1:" },
		{ "{}", "inputs" },
		{ "{\"image\":\"../x\",\"inputs\":[" SPEC("X") "],\"outputs\":[" SPEC(
			  "Y") "],\"launches\":[]}",
			"no name of a file" },
		{ "{\"image\":\"none\",\"inputs\":[" SPEC("X") "],\"outputs\":[" SPEC(
			  "Y") "],\"launches\":[]}",
			"No such file" },
		{ "{\"image\":\"w.bin\",\"inputs\":[" SPEC("X") "],\"outputs\":[" SPEC(
			  "Y") "],\"launches\":[]}",
			"no image" },
		{ HEAD "{\"kernel\":\"no\",\"grid\":[1,1,1],\"block\":[1,1,1]}]}",
			"no is no kernel" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[1,1],\"block\":[1,1,1]}]}",
			"three numbers" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[1,1,-1],\"block\":[1,1,1]}]}",
			"three numbers" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[1,1,1],\"block\":[1,1,1],\"arguments\":[{"
		       "\"buffer\":\"q\"}]}]}",
			"no buffer of this model" },
		{ HEAD "{\"copy\":{\"from\":\"X\",\"to\":\"q\",\"bytes\":1}}]}",
			"names no buffer" },
		{ HEAD "{\"copy\":{\"from\":\"X\",\"to\":\"Y\",\"bytes\":{\"over\":0}}}]}",
			"no amount" },
		{ HEAD "7]}", "no kernel, copy or fill" },
		{ HEAD "{\"fill\":{\"buffer\":\"t\",\"byte\":256,\"bytes\":1}}]}",
			"byte is a number from 0 to 255" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[1,0,1],\"block\":[1,1,1]}]}",
			"grid or block of 0" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[4294967297,1,1],\"block\":[1,1,1]}]}",
			"2^31 or more" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[1,1,1],\"block\":[1,1,1],"
		       "\"shared\":{\"rows\":400000000}}]}",
			"2^31 or more" },
		{ HEAD "{\"kernel\":\"work\",\"grid\":[1,1,1],\"block\":[1,1,1],\"arguments\":[{"
		       "\"u32\":4294967296}]}]}",
			"u32, u64, f32 or f64 that fits" },
		{ "{\"image\":\"model.ptx\",\"inputs\":[" SPEC("X") "],\"outputs\":[" SPEC(
			  "X") "],\"launches\":[]}",
			"X is there twice" },
	};
	struct engine_model *m;
	for (unsigned i = 0; i < COUNT_OF(wrong); i++)
		check_error(try_load(wrong[i].json, &m) < 0, true, wrong[i].part);
}

static void rows_need_a_batch_size(void **state)
{
	struct gpu_model *m = load(HEAD COPIES "]}");
	m->base.has_rows = false;
	const float x[4] = { 1, 2, 3, 4 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(2, 2), x, sizeof x);
	check_error(engine_run(&m->base, &run, &err), -EINVAL, "max_batch_size is 0");
	engine_unload(&m->base);
}

/* By the rows that the model may get, of which 1,024 would need more than a kernel can have. */
/* Nothing that is padded has so many rows: the model fails, and in time. */
static void more_rows_than_2_to_the_31_are_run_as_they_are(void **state)
{
	struct gpu_model *m = load(HEAD WORK "," COPIES "]}");
	static const float row[2];
	const struct engine_piece p = { row, sizeof row, 1, false };
	begin_run();
	give_pieces(0, DTYPE_FP32, SHAPE((int64_t)UINT32_MAX, 2), &p, 1);
	assert_int_not_equal(engine_run(&m->base, &run, &err), 0);
	engine_unload(&m->base);
}

static void shared_memory_may_grow_with_rows(void **state)
{
	engine_unload(&load(HEAD "{\"kernel\":\"work\",\"grid\":[1,1,1],\"block\":[1,1,1],"
				 "\"shared\":{\"rows\":8192}}]}")
			       ->base);
}

static void copies_longer_than_a_buffer_do_not_run(void **state)
{
	struct gpu_model *m =
		load(HEAD "{\"copy\":{\"from\":\"w\",\"to\":\"W\",\"bytes\":{\"rows\":9}}}]}");
	const float x[2] = { 1, 2 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, sizeof x);
	check_error(engine_run(&m->base, &run, &err), -EINVAL, "longer than its buffer");
	engine_unload(&m->base);
}

/* The last test: one of its launches fails, and later one loses the device. */
static void a_launch_that_fails_fails_alone(void **state)
{
	struct gpu_model *m = load(HEAD WORK "," COPIES "]}");
	replays = 0;
	const float x[2] = { 1, 2 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, sizeof x);
	check_error(engine_run(&m->base, &run, &err), -EIO, "CUDA_ERROR_INVALID_VALUE");
	run_rows(m, 1, 3);
	begin_run();
	give(0, DTYPE_FP32, SHAPE(2, 2), (float[4]){ 0 }, 16);
	check_error(engine_run(&m->base, &run, &err), -EIO, "CUDA_ERROR_ILLEGAL_ADDRESS");
	check_error(engine_run(&m->base, &run, &err), -EIO, "the GPU is lost");
	engine_unload(&m->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_run_padded_and_from_the_third_run_on_as_a_graph),
		cmocka_unit_test(a_model_without_graphs_has_the_same_answers),
		cmocka_unit_test(memory_that_left_comes_back_to_graphs_and_weights),
		cmocka_unit_test(steps_name_kernels_of_weir),
		cmocka_unit_test(steps_of_weir_that_are_wrong_say_what),
		cmocka_unit_test(files_that_are_wrong_say_what),
		cmocka_unit_test(rows_need_a_batch_size),
		cmocka_unit_test(more_rows_than_2_to_the_31_are_run_as_they_are),
		cmocka_unit_test(shared_memory_may_grow_with_rows),
		cmocka_unit_test(copies_longer_than_a_buffer_do_not_run),
		cmocka_unit_test(the_device_reads_staged_rows_between_others),
		cmocka_unit_test(no_request_waits_for_memory_to_be_pinned),
		cmocka_unit_test(a_launch_that_fails_fails_alone),
	};
	float w[12];
	for (unsigned i = 0; i < 12; i++)
		w[i] = (float)i * 10;
	mkdir(FOLDER, 0700);
	put_file("w.bin", w, sizeof w);
	put_file("model.ptx", image, sizeof image - 1);
	if (!find_simulated_driver(SIMULATED_DRIVER)) {
		puts("skipped: there is no simulated driver");
		return 77;
	}
	/* The tests before the last one launch 16, 4 and 6 times: each plan twice and into its
	 * graph, and once more in the first test, which settles. */
	setenv("WEIR_SIM",
		"fault=cuLaunchKernel:27:1,fault=cuLaunchKernel:29:700,fault=cuLaunchKernelEx:39:1",
		1);
	setenv("XDG_CACHE_HOME", "", 1); /* and without HOME: nothing is kept */
	unsetenv("HOME");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
