/* Models of PyTorch: the archive, the shared object, and models on the simulated driver, whose
 * kernels do nothing. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#include "engine/archive.h"
#include "engine/gpu_model.h"
#include "engine/torch_package.h"
#include "engines.h"

#define FOLDER "torch-model"

static struct buf zip, directory;
static unsigned zip_files;

static void put_number(struct buf *b, uint64_t n, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++, n >>= 8)
		buf_put(b, &(char){ (char)n }, 1);
}

static void zip_begin(void)
{
	zip.n = directory.n = zip_files = 0;
}

static size_t deflated(const void *data, size_t n, char *to, size_t room)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)data,
		.avail_in = (uInt)n,
		.next_out = (Bytef *)to,
		.avail_out = (uInt)room };
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void zip_add(const char *name, const void *data, size_t n, bool deflate_it, bool as_64_bits)
{
	const size_t at = zip.n;
	char *packed = xmalloc(n + 100);
	size_t packed_n = n;
	if (deflate_it)
		packed_n = deflated(data, n, packed, n + 100);
	else
		memcpy(packed, data, n);
	buf_put(&zip, "PK\3\4", 4);
	put_number(&zip, 0, 22);
	put_number(&zip, strlen(name), 2);
	put_number(&zip, 3, 2);
	buf_put_text(&zip, name);
	put_number(&zip, 0, 3);
	buf_put(&zip, packed, packed_n);
	free(packed);
	buf_put(&directory, "PK\1\2", 4);
	put_number(&directory, 0, 6);
	put_number(&directory, deflate_it ? 8 : 0, 2);
	put_number(&directory, 0, 4);
	put_number(&directory, crc32_z(0, data, n), 4);
	put_number(&directory, as_64_bits ? UINT32_MAX : packed_n, 4);
	put_number(&directory, as_64_bits ? UINT32_MAX : n, 4);
	put_number(&directory, strlen(name), 2);
	put_number(&directory, as_64_bits ? 4 + 4 + 24 + 4 : 0, 2);
	put_number(&directory, 0, 10);
	put_number(&directory, as_64_bits ? UINT32_MAX : at, 4);
	buf_put_text(&directory, name);
	if (as_64_bits) {
		put_number(&directory, 7, 2); /* of another kind */
		put_number(&directory, 4, 2);
		put_number(&directory, 0, 4);
		put_number(&directory, 1, 2);
		put_number(&directory, 24, 2);
		put_number(&directory, n, 8);
		put_number(&directory, packed_n, 8);
		put_number(&directory, at, 8);
	}
	zip_files++;
}

static void zip_end(bool as_64_bits)
{
	const uint64_t at = zip.n, end = at + directory.n;
	buf_put(&zip, directory.v, directory.n);
	if (as_64_bits) {
		buf_put(&zip, "PK\6\6", 4);
		put_number(&zip, 44, 8);
		put_number(&zip, 0, 12);
		put_number(&zip, zip_files, 8);
		put_number(&zip, zip_files, 8);
		put_number(&zip, directory.n, 8);
		put_number(&zip, at, 8);
		buf_put(&zip, "PK\6\7", 4);
		put_number(&zip, 0, 4);
		put_number(&zip, end, 8);
		put_number(&zip, 1, 4);
	}
	buf_put(&zip, "PK\5\6", 4);
	put_number(&zip, 0, 4);
	put_number(&zip, as_64_bits ? UINT16_MAX : zip_files, 2);
	put_number(&zip, as_64_bits ? UINT16_MAX : zip_files, 2);
	put_number(&zip, as_64_bits ? UINT32_MAX : directory.n, 4);
	put_number(&zip, as_64_bits ? UINT32_MAX : at, 4);
	put_number(&zip, 9, 2);
	buf_put_text(&zip, "a comment");
}

static void an_archive_gives_its_files(void **state)
{
	char text[5000];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * i % 7);
	for (unsigned k = 0; k < 8; k++) {
		const bool long_files = k & 1, long_list = k & 2, deflate_it = k & 4;
		struct archive a;
		struct buf got = { 0 };
		zip_begin();
		zip_add("one", text, sizeof text, deflate_it, long_files);
		zip_add("folder/two", text, 3, deflate_it, long_files);
		zip_add("none", text, 0, false, false);
		zip_end(long_list);
		assert_int_equal(archive_read(&a, buf_slice(&zip), &err), 0);
		assert_int_equal(a.file.n, 3);
		assert_memory_equal(a.file.v[1].name.at, "folder/two", 10);
		assert_int_equal(archive_unpack(&a, &a.file.v[0], &got, &err), 0);
		assert_int_equal(got.n, sizeof text);
		assert_memory_equal(got.v, text, sizeof text);
		assert_int_equal(archive_unpack(&a, &a.file.v[1], &got, &err), 0);
		assert_int_equal(archive_unpack(&a, &a.file.v[2], &got, &err), 0);
		assert_int_equal(got.n, sizeof text + 3);
		archive_free(&a);
		buf_free(&got);
	}
}

static void a_damaged_archive_is_refused_in_a_sentence(void **state)
{
	struct archive a;
	struct buf got = { 0 };
	check_error(archive_read(&a, (struct slice){ "PK\5\6", 4 }, &err), -EINVAL,
		"it is no zip archive");
	zip_begin();
	zip_add("one", "some text", 9, false, false);
	zip_end(false);
	zip.v[33 + 3] ^= 1; /* behind the name */
	assert_int_equal(archive_read(&a, buf_slice(&zip), &err), 0);
	check_error(archive_unpack(&a, &a.file.v[0], &got, &err), -EINVAL,
		"the file one in the zip archive is damaged");
	archive_free(&a);
	zip.v[zip.n - 9 - 22 + 10] = 2; /* files */
	check_error(archive_read(&a, buf_slice(&zip), &err), -EINVAL,
		"the list of files in the zip archive is damaged");
	archive_free(&a);
	buf_free(&got);
}

static void read_file(const char *path, struct buf *b)
{
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	b->n = 0;
	for (size_t n; (n = fread(buf_more(b, 65536), 1, 65536, f)) > 0;)
		b->n += n;
	fclose(f);
}

static void only_what_weir_has_is_renamed(void **state)
{
	struct buf b = { 0 };
	struct torch_calls calls = { .name = { 0 } };
	unsigned own = 0;
	read_file(TORCH "/alone.so", &b);
	assert_int_equal(torch_object_calls(&b, &calls, &err), 0);
	for (size_t i = 0; i < calls.name.n; i++) {
		assert_true(!strncmp(calls.name.v[i], "aoti_torch_", 11) ||
			    !strncmp(calls.name.v[i], "cuda", 4));
		own += !strcmp(calls.name.v[i], "cudaMalloc");
	}
	assert_int_equal(own, 1);
	assert_false(calls.catches);
	assert_int_equal(torch_object_rename(&b, &err), 0);
	array_free(&calls.name);
	assert_int_equal(torch_object_calls(&b, &calls, &err), 0);
	assert_int_equal(calls.name.n, 0);
	assert_non_null(memmem(b.v, b.n, "weirMalloc", 11));
	assert_non_null(memmem(b.v, b.n, "cuModuleLoad", 13));
	b.n = 70;
	check_error(torch_object_rename(&b, &err), -EINVAL, "it is no shared object of 64 bits");
	buf_free(&b);
}

static const char image[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			    ".visible .entry add(.param .u64 a, .param .u64 b)\n{\n\tret;\n}\n";

static struct tensor_spec in[] = { { (char[]){ "X" }, DTYPE_FP32, { 2, { -1, 2 } }, false } };
static struct tensor_spec out[] = { { (char[]){ "Y" }, DTYPE_FP32, { 2, { -1, 2 } }, false },
	{ (char[]){ "W" }, DTYPE_FP32, { 2, { -1, 2 } }, false } };
static struct engine_config config;

#define IN_MODEL "m/data/aotinductor/model/"
static int try_load(const char *object, const char *does, struct engine_model **ret)
{
	struct buf b = { 0 };
	char path[300];
	snprintf(path, sizeof path, TORCH "/%s.so", object);
	read_file(path, &b);
	zip_begin();
	zip_add("m/data/weights/none", "", 0, false, false);
	zip_add(IN_MODEL "x.wrapper.so", b.v, b.n, true, false);
	zip_add(IN_MODEL "add.ptx", image, sizeof image, true, false);
	zip_add(IN_MODEL "does", does, strlen(does), false, false);
	zip_add(IN_MODEL "x.wrapper.cpp", "int", 3, false, false);
	zip_add(IN_MODEL "x.wrapper_metadata.json", "{\"AOTI_DEVICE_KEY\": \"cuda\"}", 27, false,
		false);
	zip_end(false);
	buf_free(&b);
	FILE *f = fopen(FOLDER "/model.pt2", "w");
	assert_int_equal(fwrite(zip.v, 1, zip.n, f), zip.n);
	fclose(f);
	return load_config("torch_aoti", FOLDER "/model.pt2", &config, ret);
}

static struct engine_model *load(const char *object, const char *does)
{
	struct engine_model *m = NULL;
	if (try_load(object, does, &m))
		fail_msg("%s", err.text);
	return m;
}

static int try_run(struct engine_model *m, uint32_t rows, float first, float *x)
{
	for (uint32_t i = 0; i < 2 * rows; i++)
		x[i] = first + (float)i;
	begin_run();
	give(0, DTYPE_FP32, SHAPE(rows, 2), x, rows * 8);
	return engine_run(m, &run, &err);
}

static bool run_rows(struct engine_model *m, uint32_t rows, float first)
{
	static const float w[] = { 10, 20, 30, 40, 50, 60, 70, 80 };
	float x[8];
	if (try_run(m, rows, first, x))
		fail_msg("%s", err.text);
	check_output(0, DTYPE_FP32, SHAPE(rows, 2), x, rows * 8);
	check_output(1, DTYPE_FP32, SHAPE(rows, 2), w, rows * 8);
	engine_run_end(m, &run);
	return run.replayed;
}

static void files_of_models_are_gone(void)
{
	char *all = xasprintf("ls -d %s/weir-torch-* 2>/dev/null | wc -l", getenv("TMPDIR"));
	FILE *f = popen(all, "r");
	int n = -1;
	assert_int_equal(fscanf(f, "%d", &n), 1);
	pclose(f);
	assert_int_equal(n, 0);
	free(all);
}

static void a_model_runs_without_libtorch_as_graphs_and_its_memory_returns(void **state)
{
	struct engine_model *m = load("alone", "");
	assert_true(m->engine->pads);
	assert_true(m->bytes >= 32);
	unsigned replays = 0;
	for (unsigned i = 0; i < 12; i++) {
		replays += run_rows(m, 1 + i % 4, (float)(100 * i));
		if (i % 5 == 4)
			put_away(&((struct gpu_model *)m)->space);
		if (i == 7)
			assert_int_equal(engine_settle(m, &err), 0);
	}
	/* Graphs of 1, 2 and 4 rows, and not the first two runs of each. */
	assert_int_equal(replays, 6);
	assert_null(atomic_load(&m->no_graphs));
	engine_unload(m);
	files_of_models_are_gone();
}

static void models_share_nothing(void **state)
{
	struct engine_model *one = load("alone", ""), *other = load("alone", "");
	run_rows(one, 2, 1);
	run_rows(other, 2, 2);
	engine_unload(one);
	engine_unload(other);
}

static void without_graphs_a_model_runs_in_the_same_memory(void **state)
{
	static const struct parameter off = { "graphs", "0" };
	config.parameter = &off;
	config.parameters = 1;
	struct gpu_model *m = (struct gpu_model *)load("alone", "");
	for (unsigned i = 0; i < 3; i++)
		run_rows(&m->base, 4, (float)i);
	const size_t used = m->space.used;
	for (unsigned i = 0; i < 30; i++)
		assert_false(run_rows(&m->base, 4, (float)i));
	assert_int_equal(m->space.used, used);
	engine_unload(&m->base);
	config.parameters = 0;
}

static void outputs_of_any_strides_come_row_by_row(void **state)
{
	struct engine_model *m = load("alone", "strided");
	for (unsigned i = 0; i < 3; i++) {
		float x[8];
		assert_int_equal(try_run(m, 3, 7, x), 0);
		/* A tensor of 4 rows that are columns in memory: the last row is not asked for. */
		const float want[] = { 7, 11, 8, 12, 9, 0 };
		check_output(0, DTYPE_FP32, SHAPE(3, 2), want, sizeof want);
		engine_run_end(m, &run);
	}
	engine_unload(m);
}

static void a_shared_object_runs_as_it_is(void **state)
{
	struct engine_model *m = NULL;
	struct buf b = { 0 };
	read_file(TORCH "/alone.so", &b);
	FILE *f = fopen(FOLDER "/model.so", "w");
	assert_int_equal(fwrite(b.v, 1, b.n, f), b.n);
	fclose(f);
	f = fopen(FOLDER "/add.ptx", "w");
	fputs(image, f);
	fclose(f);
	buf_free(&b);
	if (load_config("pytorch", FOLDER "/model.so", &config, &m))
		fail_msg("%s", err.text);
	run_rows(m, 2, 5);
	engine_unload(m);
	files_of_models_are_gone();
}

static void what_a_model_gives_is_checked(void **state)
{
	static const struct {
		const char *does, *part;
	} wrong[] = {
		{ "fail", "model m: the run failed: the server's standard error says why" },
		{ "check", "model m: the run failed: a check of the model failed: rows are even" },
		{ "wrong-type", "output Y has the type FP16 and not FP32" },
		{ "wrong-shape", "output Y has another shape than config.pbtxt says" },
	};
	for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
		struct engine_model *m = load("alone", wrong[i].does);
		float x[8];
		check_error(try_run(m, 4, 0, x), -EIO, wrong[i].part);
		engine_unload(m);
	}
	struct engine_model *m = NULL;
	check_error(try_load("alone", "too-large", &m), -EIO, "can't be loaded: ");
	assert_non_null(strstr(err.text, "bytes are more than"));
	assert_null(m);
}

static void what_can_not_run_is_refused_in_a_sentence(void **state)
{
	struct engine_model *m = NULL;
	check_error(try_load("needs", "", &m), -EIO,
		"it needs libtorch for aoti_torch_cuda_addmm_out, and libtorch can't be loaded");
	check_error(try_load("old", "", &m), -EINVAL,
		"exports no AOTInductorModelContainerRunSingleThreaded");
	config.outs = 1;
	check_error(try_load("alone", "", &m), -EINVAL,
		"it takes 1 tensors and gives 2, and config.pbtxt names 1 and 1");
	config.outs = 2;
	options.torch = false;
	check_error(try_load("alone", "", &m), -EINVAL,
		"model m: it is code, which weir serve runs with --torch alone");
	options.torch = true;
	assert_null(m);
	files_of_models_are_gone();
}

static void check_package(const char *part)
{
	struct torch_package p;
	check_error(torch_package_open(&p, &zip, "m", &err), -EINVAL, part);
	torch_package_close(&p);
	files_of_models_are_gone();
}

static void what_is_no_package_of_one_model_is_refused(void **state)
{
	zip_begin();
	zip_add("m/data/model.so", "x", 1, false, false);
	zip_add(IN_MODEL "below/model.so", "x", 1, false, false);
	zip_end(false);
	check_package("it has no shared object in data/aotinductor/");
	zip_begin();
	zip_add(IN_MODEL "a.so", "x", 1, false, false);
	zip_add("m/data/aotinductor/other/b.so", "x", 1, false, false);
	zip_end(false);
	check_package("it has several shared objects");
	zip_begin();
	zip_add(IN_MODEL "a.so", "x", 1, false, false);
	zip_add(IN_MODEL "a_metadata.json", "{\"AOTI_DEVICE_KEY\" : \"cpu\"}", 27, false, false);
	zip_end(false);
	check_package("it was compiled for another device than cuda");
	zip_begin();
	zip_add(IN_MODEL "same", "x", 1, false, false);
	zip_add(IN_MODEL "same", "x", 1, false, false);
	zip_end(false);
	struct torch_package p;
	check_error(torch_package_open(&p, &zip, "m", &err), -EEXIST, "same can't be written");
	torch_package_close(&p);
}

static void libtorch_runs_what_weir_alone_can_not(void **state)
{
	options.libtorch = TORCH;
	config.outs = 1;
	struct engine_model *m = load("needs", "");
	assert_string_equal(
		atomic_load(&m->no_graphs), "no graphs are made of models that need libtorch");
	for (uint32_t i = 0; i < 3; i++) {
		float x[8];
		assert_int_equal(try_run(m, 3, (float)i, x), 0);
		check_output(0, DTYPE_FP32, SHAPE(3, 2), x, 24);
		engine_run_end(m, &run);
	}
	/* Beside it another one runs without. */
	config.outs = 2;
	struct engine_model *alone = load("alone", "");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(run_rows(alone, 2, 1), i > 1);
	engine_unload(alone);
	engine_unload(m);
	options.libtorch = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_archive_gives_its_files),
		cmocka_unit_test(a_damaged_archive_is_refused_in_a_sentence),
		cmocka_unit_test(what_is_no_package_of_one_model_is_refused),
		/* From here on left out where there is no simulated driver. */
		cmocka_unit_test(only_what_weir_has_is_renamed),
		cmocka_unit_test(a_model_runs_without_libtorch_as_graphs_and_its_memory_returns),
		cmocka_unit_test(models_share_nothing),
		cmocka_unit_test(without_graphs_a_model_runs_in_the_same_memory),
		cmocka_unit_test(outputs_of_any_strides_come_row_by_row),
		cmocka_unit_test(a_shared_object_runs_as_it_is),
		cmocka_unit_test(what_a_model_gives_is_checked),
		cmocka_unit_test(what_can_not_run_is_refused_in_a_sentence),
		/* Last: libtorch stays. */
		cmocka_unit_test(libtorch_runs_what_weir_alone_can_not),
	};
	mkdir(FOLDER, 0700);
	char *own = xasprintf(FOLDER "/%d", getpid()); /* an aborted run left others */
	mkdir(own, 0700);
	setenv("TMPDIR", own, 1);
	config = (struct engine_config){
		.name = "m", .max_batch_size = 4, .in = in, .ins = 1, .out = out, .outs = 2
	};
	options.torch = true;
	const size_t without = find_simulated_driver(SIMULATED_DRIVER) ? 0 : 9;
	const int failed = _cmocka_run_group_tests(
		"models of PyTorch", tests, COUNT_OF(tests) - without, NULL, NULL);
	rmdir(own);
	free(own);
	return failed;
}
