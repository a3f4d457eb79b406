/* Engines by name, and the synthetic one. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "engines.h"

#define FILE_NAME "engine-model.json"

static int load_rows(const char *json, uint32_t max_batch_size, struct engine_model **ret)
{
	FILE *f = fopen(FILE_NAME, "w");
	fputs(json, f);
	fclose(f);
	const struct engine_config c = { .name = "m", .max_batch_size = max_batch_size };
	return load_config("synthetic", FILE_NAME, &c, ret);
}

#define X_FP32 "{\"name\":\"X\",\"datatype\":\"FP32\",\"shape\":[-1,2]}"
#define ECHO   "{\"inputs\":[" X_FP32 "],\"outputs\":[" X_FP32 "]"

static struct engine_model *load(const char *json)
{
	struct engine_model *m;
	if (load_rows(json, 8, &m))
		fail_msg("%s", err.text);
	return m;
}

static uint64_t took_ns(struct engine_model *m, int want)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	const int e = engine_run(m, &run, &err);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_int_equal(e, want);
	if (!e)
		engine_run_end(m, &run);
	return (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000 + (uint64_t)b.tv_nsec -
	       (uint64_t)a.tv_nsec;
}

static void engines_are_found_by_platform_and_backend(void **state)
{
	assert_string_equal(engine_find("onnxruntime_onnx", &err)->name, "onnx");
	assert_string_equal(engine_find("onnxruntime", &err)->name, "onnx");
	assert_string_equal(engine_find("synthetic", &err)->name, "synthetic");
	const char *none[] = { "", " ", "onnx", "onnxruntime onnxruntime_onnx", "tensorrt_plan" };
	for (unsigned i = 0; i < COUNT_OF(none); i++)
		assert_null(engine_find(none[i], &err));
	assert_string_equal(err.text,
		"there is no engine for 'tensorrt_plan', only for: onnxruntime "
		"onnxruntime_onnx pytorch torch_aoti kernels engine synthetic");
}

static void a_synthetic_model_gives_back_the_rows_of_all_pieces(void **state)
{
	struct engine_model *m = load(ECHO "}");
	assert_int_equal(m->ins, 1);
	assert_int_equal(m->outs, 1);
	assert_string_equal(m->in->name, "X");
	const float x[] = { 1, 2, 3, 4, 5, 6 };
	const struct engine_piece p[] = { { x, 16, 2, false }, { x + 4, 8, 1, false } };
	begin_run();
	give_pieces(0, DTYPE_FP32, SHAPE(3, 2), p, 2);
	assert_int_equal(engine_run(m, &run, &err), 0);
	check_output(0, DTYPE_FP32, SHAPE(3, 2), x, sizeof x);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void other_outputs_depend_on_their_row_alone(void **state)
{
	struct engine_model *m = load("{\"inputs\":[" X_FP32 "],\"outputs\":["
				      "{\"name\":\"Y\",\"datatype\":\"FP32\",\"shape\":[-1,3]},"
				      "{\"name\":\"Z\",\"datatype\":\"BOOL\",\"shape\":[-1]}]}");
	const float x[] = { 1, 2, 3, 4, 1, 2 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(3, 2), x, sizeof x);
	assert_int_equal(engine_run(m, &run, &err), 0);
	const unsigned char *y = run.out[0].data, *z = run.out[1].data;
	assert_int_equal(run.out[0].bytes, 36);
	assert_int_equal(run.out[1].bytes, 3);
	assert_memory_equal(y, y + 24, 12);
	assert_memory_not_equal(y, y + 12, 12);
	for (unsigned i = 0; i < 36; i++)
		assert_true(y[i] < 64 && y[i] == y[i / 12 * 12]);
	for (unsigned i = 0; i < 3; i++)
		assert_true(z[i] < 2);
	engine_run_end(m, &run);
	/* Nobody asks for the first. */
	run.out[0].wanted = false;
	assert_int_equal(engine_run(m, &run, &err), 0);
	assert_null(run.out[0].data);
	assert_int_equal(run.out[1].bytes, 3);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void strings_go_with_strings(void **state)
{
	struct engine_model *m =
		load("{\"inputs\":[{\"name\":\"S\",\"datatype\":\"BYTES\",\"shape\":[-1]}],"
		     "\"outputs\":[{\"name\":\"T\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}");
	const char s[] = "\2\0\0\0ab\0\0\0\0";
	begin_run();
	give(0, DTYPE_BYTES, SHAPE(2), s, sizeof s - 1);
	assert_int_equal(engine_run(m, &run, &err), 0);
	check_output(0, DTYPE_BYTES, SHAPE(2), s, sizeof s - 1);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void a_run_takes_what_the_file_says_by_rows(void **state)
{
	const char *how[] = { "sleep", "spin" };
	const float x[6] = { 0 };
	begin_run();
	for (unsigned i = 0; i < COUNT_OF(how); i++) {
		char json[400];
		snprintf(json, sizeof json, ECHO ",\"us\":1000,\"us_per_row\":500,\"how\":\"%s\"}",
			how[i]);
		struct engine_model *m = load(json);
		give(0, DTYPE_FP32, SHAPE(1, 2), x, 8);
		assert_true(took_ns(m, 0) >= 1500000);
		give(0, DTYPE_FP32, SHAPE(3, 2), x, 24);
		assert_true(took_ns(m, 0) >= 2500000);
		engine_unload(m);
	}
	struct engine_model *m = load(ECHO ",\"hiccups\":{\"probability\":1,\"us\":3000}}");
	assert_true(took_ns(m, 0) >= 3000000);
	engine_unload(m);
}

static void every_nth_run_fails_when_asked(void **state)
{
	struct engine_model *m = load(ECHO ",\"fail_every\":3}");
	const float x[2] = { 0 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, 8);
	for (unsigned i = 1; i <= 9; i++)
		took_ns(m, i % 3 ? 0 : -EIO);
	check_error(-EIO, -EIO, "model m: the run failed");
	engine_unload(m);
}

static void what_does_not_fit_the_model_is_refused(void **state)
{
	struct engine_model *m = load(ECHO "}");
	const float x[6] = { 0 };
	begin_run();
	check_error(engine_run(m, &run, &err), -EINVAL, "model m: input X is missing");
	give(0, DTYPE_INT32, SHAPE(3, 2), x, 24);
	check_error(engine_run(m, &run, &err), -EINVAL, "input X has the type INT32 and not FP32");
	give(0, DTYPE_FP32, SHAPE(2, 3), x, 24);
	check_error(
		engine_run(m, &run, &err), -EINVAL, "input X has the shape [2,3] and not [-1,2]");
	give(0, DTYPE_FP32, SHAPE(-1, 2), x, 24);
	check_error(engine_run(m, &run, &err), -EINVAL, "input X has the shape [-1,2]");
	give(0, DTYPE_FP32, SHAPE(3, 2), x, 20);
	check_error(engine_run(m, &run, &err), -EINVAL, "input X has 20 bytes and not 24");
	engine_unload(m);
}

static void a_file_that_is_wrong_is_refused_in_words(void **state)
{
	const struct {
		const char *json, *part;
	} wrong[] = {
		{ "{", "model m: " FILE_NAME ":1: " },
		{ "[]", "model m: " FILE_NAME ": Expected object" },
		{ ECHO ",\"laency\":3}", "laency" },
		{ ECHO ",\"how\":\"run\"}", "how is 'run'" },
		{ ECHO ",\"us\":-1}", "negative" },
		{ ECHO ",\"us\":1e30}", "above" },
		{ "{\"inputs\":[],\"outputs\":[" X_FP32 "]}", "'inputs' is not a list of 1 to 64" },
		{ "{\"inputs\":[" X_FP32 "],\"outputs\":[" X_FP32 ",{}]}",
			"number 2 of 'outputs'" },
		{ "{\"inputs\":[" X_FP32
		  "],\"outputs\":[{\"name\":\"S\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}",
			"X and S can't be made of each other" },
	};
	for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
		struct engine_model *m = NULL;
		check_error(load_rows(wrong[i].json, 8, &m), -EINVAL, wrong[i].part);
		assert_null(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engines_are_found_by_platform_and_backend),
		cmocka_unit_test(a_synthetic_model_gives_back_the_rows_of_all_pieces),
		cmocka_unit_test(other_outputs_depend_on_their_row_alone),
		cmocka_unit_test(strings_go_with_strings),
		cmocka_unit_test(a_run_takes_what_the_file_says_by_rows),
		cmocka_unit_test(every_nth_run_fails_when_asked),
		cmocka_unit_test(what_does_not_fit_the_model_is_refused),
		cmocka_unit_test(a_file_that_is_wrong_is_refused_in_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
