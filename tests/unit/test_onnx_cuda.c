/* ONNX models on the GPU, with a runtime that the test made and the simulated driver. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/gpu_model.h"
#include "engines.h"

#define FOLDER "onnx-cuda"
#define WIDTH  4

static struct parameter of_cuda[2] = { { "driver", NULL } };
static struct engine_accelerator accelerator[2] = { { "cuda", of_cuda, 1 } };
static struct engine_config config = {
	.name = "m", .max_batch_size = 4, .accelerator = accelerator, .accelerators = 1
};

static int try_load(const char *text, struct engine_model **ret)
{
	FILE *f = fopen(FOLDER "/model.onnx", "w");
	fputs(text, f);
	fclose(f);
	return load_config("onnxruntime", FOLDER "/model.onnx", &config, ret);
}

static struct engine_model *load(void)
{
	struct engine_model *m = NULL;
	if (try_load("1 4", &m)) /* FP32 */
		fail_msg("%s", err.text);
	return m;
}

static bool ask(struct engine_model *m, uint32_t rows, float first)
{
	float x[4 * WIDTH];
	char w[16];
	memset(w, 0x5a, sizeof w);
	for (uint32_t i = 0; i < rows * WIDTH; i++)
		x[i] = first + (float)i;
	begin_run();
	give(0, DTYPE_FP32, SHAPE(rows, WIDTH), x, rows * WIDTH * sizeof *x);
	if (engine_run(m, &run, &err))
		fail_msg("%s", err.text);
	check_output(0, DTYPE_FP32, SHAPE(rows, WIDTH), x, rows * WIDTH * sizeof *x);
	check_output(1, DTYPE_UINT8, SHAPE(16), w, sizeof w);
	const bool replayed = run.replayed;
	engine_run_end(m, &run);
	return replayed;
}

static void rows_run_padded_and_as_graphs(void **state)
{
	struct engine_model *m = load();
	unsigned replays = 0;
	assert_string_equal(m->engine->name, "onnx on CUDA");
	assert_true(m->engine->pads);
	for (unsigned round = 0; round < 5; round++)
		for (uint32_t rows = 1; rows <= 4; rows++)
			replays += ask(m, rows, (float)(round * 100));
	assert_int_equal(engine_settle(m, &err), 0);
	assert_null(atomic_load(&m->no_graphs));
	assert_int_equal(replays, 20 - 2 * 3); /* sizes 1, 2, 4 */
	engine_unload(m);
}

/* A graph copies from the host what a run copied, and nothing else. */
static void graphs_copy_from_the_host_what_was_there(void **state)
{
	static const struct {
		const char *from, *why;
	} rows[] = { { "provider", NULL }, { "driver", "memory of the host" },
		{ "function", "a function of the host" } };
	accelerator[0].parameters = 2;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		of_cuda[1] = (struct parameter){ "host", rows[i].from };
		struct engine_model *m = load();
		unsigned replays = 0;
		for (unsigned k = 0; k < 12; k++)
			replays += ask(m, 1 + k % 3, (float)k);
		assert_int_equal(engine_settle(m, &err), 0);
		const char *why = atomic_load(&m->no_graphs);
		if (rows[i].why)
			assert_non_null(strstr(why, rows[i].why));
		else
			assert_null(why);
		assert_int_equal(replays, rows[i].why ? 0 : 12 - 3 * 2);
		engine_unload(m);
	}
	accelerator[0].parameters = 1;
}

/* Each of two sessions has its own memory, and finds it where it was. */
static void memory_leaves_and_returns(void **state)
{
	struct engine_model *a = load(), *b = load();
	for (unsigned i = 0; i < 6; i++) {
		ask(a, 1 + i % 4, (float)i);
		ask(b, 1 + i % 3, (float)i + 50);
		put_away(&((struct gpu_model *)(i % 2 ? a : b))->space);
	}
	engine_unload(a);
	assert_true(ask(b, 1, 7));
	engine_unload(b);
}

static void what_a_run_takes_stays_its_plans(void **state)
{
	struct engine_model *m = load();
	struct gpu_model *g = (struct gpu_model *)m;
	for (unsigned i = 0; i < 3; i++)
		for (uint32_t rows = 1; rows <= 4; rows *= 2)
			ask(m, rows, 1);
	const size_t used = g->space.used;
	for (unsigned i = 0; i < 50; i++)
		ask(m, 1 + i % 4, (float)i);
	assert_int_equal(g->space.used, used);
	engine_unload(m);
}

static void the_configuration_says_where(void **state)
{
	config.place = ENGINE_ON_CPU;
	struct engine_model *m = load();
	assert_string_equal(m->engine->name, "onnx");
	engine_unload(m);
	config.place = ENGINE_ON_GPU;
	m = load();
	assert_string_equal(m->engine->name, "onnx on CUDA");
	engine_unload(m);
	config.place = ENGINE_ANYWHERE;
	assert_int_equal(rename(FOLDER "/libonnxruntime_providers_cuda.so", FOLDER "/away"), 0);
	m = load();
	assert_string_equal(m->engine->name, "onnx");
	engine_unload(m);
	assert_int_equal(rename(FOLDER "/away", FOLDER "/libonnxruntime_providers_cuda.so"), 0);
}

static void what_fails_is_never_the_cpu_in_silence(void **state)
{
	struct engine_model *m = NULL;
	of_cuda[1] = (struct parameter){ "fail", "append" };
	accelerator[0].parameters = 2;
	check_error(try_load("1 4", &m), -EIO,
		"model m: the CUDA provider of ONNX Runtime: the provider can't be loaded");
	of_cuda[1].key = "unknown";
	check_error(try_load("1 4", &m), -EIO, "an unknown option of the provider");
	of_cuda[1] = (struct parameter){ "fail", "run" };
	m = load();
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, WIDTH), (float[WIDTH]){ 0 }, WIDTH * sizeof(float));
	check_error(engine_run(m, &run, &err), -EIO, "the run failed: the run ran out");
	engine_unload(m);
	of_cuda[1] = (struct parameter){ "enable_skip_layer_norm_strict_mode", "0" };
	engine_unload(load());
	accelerator[0].parameters = 1;
	check_error(try_load("no model", &m), -EIO, "this is no model");
	check_error(try_load("8 4", &m), -EINVAL, "X has strings, which no GPU takes");
}

static void the_configuration_says_how_far_it_is_optimised(void **state)
{
	static const struct {
		int asked;
		const char *level;
	} rows[] = { { -1, "1" }, { 1, "2" }, { 0, "99" }, { 2, "0" } };
	struct engine_model *m = NULL;
	accelerator[0].parameters = 2;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		config.graph_level = rows[i].asked;
		of_cuda[1] = (struct parameter){ "level", rows[i].level };
		engine_unload(load());
	}
	config.graph_level = -1;
	check_error(try_load("1 4", &m), -EIO, "another level of optimisation is asked for");
	config.graph_level = 0;
	accelerator[0].parameters = 1;
}

static void tensorrt_is_asked_for_before_cuda(void **state)
{
	static const struct parameter half = { "trt_fp16_enable", "1" };
	struct engine_model *m = NULL;
	accelerator[1] = accelerator[0];
	accelerator[0] = (struct engine_accelerator){ "tensorrt", &half, 1 };
	config.accelerators = 2;
	check_error(try_load("1 4", &m), -EIO,
		"model m: the TensorRT provider of ONNX Runtime: there is no TensorRT");
	accelerator[0].name = "openvino";
	check_error(try_load("1 4", &m), -EINVAL, "there is no accelerator 'openvino' on a GPU");
	accelerator[0] = accelerator[1];
	config.accelerators = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_run_padded_and_as_graphs),
		cmocka_unit_test(graphs_copy_from_the_host_what_was_there),
		cmocka_unit_test(memory_leaves_and_returns),
		cmocka_unit_test(what_a_run_takes_stays_its_plans),
		cmocka_unit_test(the_configuration_says_where),
		cmocka_unit_test(what_fails_is_never_the_cpu_in_silence),
		cmocka_unit_test(the_configuration_says_how_far_it_is_optimised),
		cmocka_unit_test(tensorrt_is_asked_for_before_cuda),
	};
	if (!find_simulated_driver(SIMULATED_DRIVER))
		return 77;
	mkdir(FOLDER, 0700);
	/* Which providers there are, what lies beside the runtime says. */
	unlink(FOLDER "/libonnxruntime.so.1");
	assert_int_equal(link(FALSE_ONNXRUNTIME, FOLDER "/libonnxruntime.so.1"), 0);
	unlink(FOLDER "/libonnxruntime_providers_cuda.so");
	assert_int_equal(link(FALSE_PROVIDER, FOLDER "/libonnxruntime_providers_cuda.so"), 0);
	options.onnxruntime = "./" FOLDER "/libonnxruntime.so.1";
	of_cuda[0].value = options.cuda;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
