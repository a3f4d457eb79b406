/* Engines of include/weir/engine.h: the examples, on the simulated driver too, and engines that
 * break its rules. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/gpu_model.h"
#include "engines.h"

#define FOLDER "shared-engine"

static struct engine_config config = { .name = "m", .max_batch_size = 4 };

static int try_load(const char *json, struct engine_model **ret)
{
	FILE *f = fopen(FOLDER "/engine.json", "w");
	fputs(json, f);
	fclose(f);
	return load_config("engine", FOLDER "/engine.json", &config, ret);
}

static struct engine_model *load(const char *json)
{
	struct engine_model *m = NULL;
	if (try_load(json, &m))
		fail_msg("%s", err.text);
	return m;
}

static void an_engine_runs_the_rows_of_all_pieces(void **state)
{
	struct engine_model *m = load("{\"engine\":\"scale\",\"factor\":3}");
	assert_int_equal(m->ins, 1);
	assert_string_equal(m->out->name, "Y");
	/* Not where a float can be. */
	_Alignas(float) char room[50];
	const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	float y[12];
	for (unsigned i = 0; i < COUNT_OF(y); i++)
		y[i] = 3 * x[i];
	memcpy(room + 1, x, sizeof x);
	const struct engine_piece p[] = { { room + 1, 16, 1, false }, { room + 17, 32, 2, false } };
	begin_run();
	give_pieces(0, DTYPE_FP32, SHAPE(3, 4), p, 2);
	assert_int_equal(engine_run(m, &run, &err), 0);
	check_output(0, DTYPE_FP32, SHAPE(3, 4), y, sizeof y);
	engine_run_end(m, &run);
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 4), room + 1, 16);
	assert_int_equal(engine_run(m, &run, &err), 0);
	check_output(0, DTYPE_FP32, SHAPE(1, 4), y, 16);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void a_fault_of_a_run_is_the_engines_sentence(void **state)
{
	struct engine_model *m = NULL;
	check_error(try_load("{\"engine\":\"scale\"}", &m), -EIO,
		"model m: engine.json needs a number as factor");
	assert_null(m);
	m = load("{\"engine\":\"scale\",\"factor\":3}");
	const float x[] = { 1, 2, INFINITY, 4 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 4), x, sizeof x);
	check_error(engine_run(m, &run, &err), -EIO, "model m: number 2 of X is not finite");
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 4), (float[]){ 1, 2, 3, 4 }, sizeof x);
	assert_int_equal(engine_run(m, &run, &err), 0);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void an_engine_on_the_gpu_becomes_graphs_and_its_memory_returns(void **state)
{
	options.engines = EXAMPLES;
	struct engine_model *m = load("{\"engine\":\"shift\"}");
	assert_true(m->engine->pads);
	unsigned replays = 0;
	for (unsigned i = 0; i < 6; i++) {
		unsigned char x[24], y[24] = { 7 };
		for (unsigned k = 0; k < sizeof x; k++)
			x[k] = (unsigned char)(10 * i + k);
		memcpy(y + 1, x, sizeof x - 1);
		begin_run();
		give(0, DTYPE_UINT8, SHAPE(3, 8), x, sizeof x);
		if (engine_run(m, &run, &err))
			fail_msg("%s", err.text);
		replays += run.replayed;
		check_output(0, DTYPE_UINT8, SHAPE(3, 8), y, sizeof y);
		engine_run_end(m, &run);
		if (i > 2)
			put_away(&((struct gpu_model *)m)->space);
	}
	assert_int_equal(replays, 4);
	assert_null(atomic_load(&m->no_graphs));
	engine_unload(m);
}

/* Runs the sizes three times each, as a warm-up does, and settles. */
static struct engine_model *warm(const char *json)
{
	options.engines = WRONG;
	struct engine_model *m = load(json);
	for (unsigned i = 0; i < 6; i++) {
		const uint32_t rows = i < 3 ? 1 : 2;
		begin_run();
		give(0, DTYPE_INT32, SHAPE(rows, 2), (int32_t[]){ 1, 2, 3, 4 }, rows * 8);
		assert_int_equal(engine_run(m, &run, &err), 0);
		engine_run_end(m, &run);
	}
	assert_int_equal(engine_settle(m, &err), 0);
	return m;
}

static void a_graph_that_gives_something_else_is_not_used(void **state)
{
	struct engine_model *m = warm("{\"engine\":\"device\",\"does\":\"counts\"}");
	assert_non_null(
		strstr(atomic_load(&m->no_graphs), "the graph of 1 rows gave other answers"));
	engine_unload(m);
	/* Each graph is right until the other size has run. */
	m = warm("{\"engine\":\"device\",\"does\":\"remembers\"}");
	assert_non_null(strstr(atomic_load(&m->no_graphs), "gave other answers"));
	for (uint32_t rows = 1; rows <= 2; rows++) {
		const int32_t y[] = { 0x01010101, 0x01010101, 0x02020202, 0x02020202 };
		begin_run();
		give(0, DTYPE_INT32, SHAPE(rows, 2), (int32_t[]){ 1, 2, 3, 4 }, rows * 8);
		assert_int_equal(engine_run(m, &run, &err), 0);
		assert_false(run.replayed);
		assert_int_equal(*(const int32_t *)run.out[0].data, y[2 * rows - 2]);
		engine_run_end(m, &run);
	}
	engine_unload(m);
}

static void only_the_folder_of_engines_is_searched(void **state)
{
	static const struct {
		const char *json, *part;
		int want;
	} wrong[] = {
		{ "{}", "needs the key engine", -EINVAL },
		{ "[]", "needs the key engine", -EINVAL },
		{ "{\"engine\":3}", "needs the key engine", -EINVAL },
		{ "{\"engine\":\"\"}", "engine is ''", -EINVAL },
		{ "{\"engine\":\"../engines/scale\"}", "engine is '../engines/scale'", -EINVAL },
		{ "{\"engine\":\"scale.so\"}", "small letters, digits", -EINVAL },
		{ "{\"engine\":\"nobody\"}", "nobody.so: No such file", -EIO },
		{ "{\"engine\":\"empty\"}", "empty.so is no engine: it exports no weir_engine",
			-EIO },
		{ "{\"engine\":\"old\"}", "was built for version 2 of weir/engine.h", -EIO },
		{ "{\"engine\":\"both\"}", "needs load, unload, and either run or enqueue", -EIO },
		{ "{\"engine\":\"text\"}", "text.so can't be loaded", -EIO },
	};
	FILE *text = fopen(WRONG "/text.so", "w");
	fputs("no shared object", text);
	fclose(text);
	options.engines = WRONG;
	for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
		struct engine_model *m = NULL;
		check_error(try_load(wrong[i].json, &m), wrong[i].want, wrong[i].part);
		assert_null(m);
	}
}

static void what_an_engine_says_of_a_model_is_checked(void **state)
{
	static const struct {
		const char *does, *part;
	} wrong[] = {
		{ "refuse", "model m: " FOLDER " wants m" },
		{ "refuse-silently", "model m: the engine can't load it" },
		{ "no-input", "gives 0 inputs, and not 1 to 64" },
		{ "many", "gives 65 inputs" },
		{ "no-name", "number 1 of the inputs no valid name" },
		{ "no-type", "number 1 of the inputs no valid name, type" },
		{ "bytes", "number 1 of the inputs no valid name, type" },
		{ "dims", "number 1 of the inputs no valid name, type or shape" },
		{ "negative", "number 1 of the inputs no valid name, type or shape" },
	};
	options.engines = WRONG;
	for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
		struct engine_model *m = NULL;
		char json[100];
		snprintf(json, sizeof json, "{\"engine\":\"any\",\"does\":\"%s\"}", wrong[i].does);
		check_error(try_load(json, &m), -EIO, wrong[i].part);
		assert_null(m);
	}
}

static void what_a_run_gives_is_checked(void **state)
{
	static const struct {
		const char *does, *part;
	} wrong[] = {
		{ "no-output", "the engine gave no output Y" },
		{ "silent", "the engine can't run it" },
		{ "lines", "model m: one twoaaa" },
		{ "wrong-shape", "output Y has another shape than the model says" },
		{ "wrong-rows", "output Y has another shape than the model says" },
		{ "wrong-rank", "output Y has too many dimensions" },
		{ "huge", "output Y is too large" },
		{ "unknown-output", "there is no output 1" },
		{ "twice", "output Y is there twice" },
	};
	options.engines = WRONG;
	for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
		char json[100];
		snprintf(json, sizeof json, "{\"engine\":\"any\",\"does\":\"%s\"}", wrong[i].does);
		struct engine_model *m = load(json);
		begin_run();
		give(0, DTYPE_INT32, SHAPE(1, 2), (int32_t[]){ 1, 2 }, 8);
		check_error(engine_run(m, &run, &err), -EIO, wrong[i].part);
		engine_unload(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_engine_runs_the_rows_of_all_pieces),
		cmocka_unit_test(a_fault_of_a_run_is_the_engines_sentence),
		cmocka_unit_test(only_the_folder_of_engines_is_searched),
		cmocka_unit_test(what_an_engine_says_of_a_model_is_checked),
		cmocka_unit_test(what_a_run_gives_is_checked),
		/* Last, and left out where there is no simulated driver. */
		cmocka_unit_test(an_engine_on_the_gpu_becomes_graphs_and_its_memory_returns),
		cmocka_unit_test(a_graph_that_gives_something_else_is_not_used),
	};
	mkdir(FOLDER, 0700);
	options.engines = EXAMPLES;
	const size_t without = find_simulated_driver(SIMULATED_DRIVER) ? 0 : 2;
	return _cmocka_run_group_tests(
		"engines of others", tests, COUNT_OF(tests) - without, NULL, NULL);
}
