/* Models of PyTorch: the archive, the shared object, what Weir has in libtorch's place, and models
 * on the simulated driver, whose kernels do nothing. */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>

#include "engine/archive.h"
#include "engine/gpu_model.h"
#include "engine/torch_object.h"
#include "engine/torch_package.h"
#include "engine/torch_shim.h"
#include "engines.h"

#define FOLDER "torch-model"

/* ---- archives ---- */

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

/* ---- shared objects ---- */

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

/* ---- models ---- */

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
	/* Of 1, 2 and 4 rows, and not the first two runs of each. */
	assert_int_equal(replays, 6);
	assert_null(atomic_load(&m->no_graphs));
	engine_unload(m);
	files_of_models_are_gone();
}

static void without_graphs_a_model_runs_in_the_same_memory(void **state)
{
	static const struct engine_parameter off = { "graphs", "0" };
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
		/* Of 4 rows that are columns in memory: the last row is not asked for. */
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

/* ---- what Weir has in libtorch's place ---- */

typedef torch_handle handle;
#define CALLED(ret, name, ...) ret name(__VA_ARGS__);
CALLED(int32_t, weir_torch_empty_strided, int64_t, const int64_t *, const int64_t *, int32_t,
	int32_t, int32_t, handle *)
CALLED(int32_t, weir_torch_create_tensor_from_blob_v2, void *, int64_t, const int64_t *,
	const int64_t *, int64_t, int32_t, int32_t, int32_t, handle *, int32_t, const uint8_t *,
	int64_t)
CALLED(int32_t, weir_torch__reinterpret_tensor, handle, int64_t, const int64_t *, const int64_t *,
	int64_t, handle *)
CALLED(int32_t, weir_torch__alloc_from_pool, handle, int64_t, int32_t, int64_t, const int64_t *,
	const int64_t *, handle *)
CALLED(int32_t, weir_torch_new_tensor_handle, handle, handle *)
CALLED(int32_t, weir_torch_assign_tensors_out, handle, handle *)
CALLED(int32_t, weir_torch_clone, handle, handle *)
CALLED(int32_t, weir_torch_clone_preserve_strides, handle, handle *)
CALLED(int32_t, weir_torch_copy_, handle, handle, int32_t)
CALLED(int32_t, weir_torch_zero_, handle)
CALLED(int32_t, weir_torch_get_mutable_data_ptr, handle, void **)
CALLED(int32_t, weir_torch_get_const_data_ptr, handle, const void **)
CALLED(int32_t, weir_torch_get_storage_size, handle, int64_t *)
CALLED(int32_t, weir_torch_get_storage_offset, handle, int64_t *)
CALLED(int32_t, weir_torch_get_numel, handle, int64_t *)
CALLED(int32_t, weir_torch_get_size, handle, int64_t, int64_t *)
CALLED(int32_t, weir_torch_get_stride, handle, int64_t, int64_t *)
CALLED(int32_t, weir_torch_get_device_type, handle, int32_t *)
CALLED(int32_t, weir_torch_get_device_index, handle, int32_t *)
CALLED(int32_t, weir_torch_get_layout, handle, int32_t *)
CALLED(int32_t, weir_torch_is_contiguous, handle, bool *)
CALLED(int32_t, weir_torch_is_defined, handle, bool *)
CALLED(size_t, weir_torch_dtype_element_size, int32_t)
CALLED(bool, weir_torch_grad_mode_is_enabled, void)
CALLED(void, weir_torch_grad_mode_set_enabled, bool)
CALLED(void, weir_torch_check, bool, const char *, const char *, uint32_t, const char *)
CALLED(void, weir_torch_warn, const char *, const char *, uint32_t, const char *)
CALLED(int32_t, weir_torch_create_cuda_stream_guard, void *, int32_t, void **)
CALLED(int32_t, weir_torch_delete_cuda_stream_guard, void *)
CALLED(int32_t, weir_torch_get_current_cuda_stream, int32_t, void **)
CALLED(int32_t, weir_torch_create_cuda_guard, int32_t, void **)
CALLED(int32_t, weir_torch_delete_cuda_guard, void *)
CALLED(int32_t, weir_torch_cuda_guard_set_index, void *, int32_t)
CALLED(int32_t, weir_torch_create_device_guard, int32_t, void **)
CALLED(int32_t, weir_torch_delete_device_guard, void *)
CALLED(int32_t, weir_torch_device_guard_set_index, void *, int32_t)
CALLED(int, weirGetDevice, int *)
CALLED(int, weirSetDevice, int)
CALLED(int, weirGetLastError, void)
CALLED(const char *, weirGetErrorString, int)
CALLED(int, weirMalloc, void **, size_t)
CALLED(int, weirFree, void *)
CALLED(int, weirMemcpy, void *, const void *, size_t, int)
CALLED(int, weirMemcpyAsync, void *, const void *, size_t, int, void *)
CALLED(int, weirStreamSynchronize, void *)
CALLED(int, weirEventCreate, void **)
CALLED(int, weirEventDestroy, void *)
CALLED(int, weirEventQuery, void *)
CALLED(int, weirEventSynchronize, void *)
CALLED(int, weirEventRecord, void *, void *)

#define F32       6
#define DIMS(...) ((int64_t[]){ __VA_ARGS__ })

static struct torch_shim shim;
static struct gpu_space space;
static struct gpu_holes own;

static void enter(void)
{
	struct gpu *g;
	assert_int_equal(gpu_open(options.cuda, &g, &err), 0);
	shim = (struct torch_shim){ .gpu = g, .space = &space };
	assert_int_equal(g->cu.cuStreamCreateWithPriority(&shim.stream, 1, 0), 0);
	assert_int_equal(gpu_space_init(&space, g, shim.stream, 0, &err), 0);
	torch_shim_enter(&shim, &own);
}

static void leave(void)
{
	assert_int_equal(shim.storage.n, 0);
	assert_int_equal(shim.block.n, 0);
	torch_shim_leave();
	torch_shim_fini(&shim);
	gpu_space_share(&space, &own);
	gpu_space_fini(&space);
}

static handle on(int32_t device, int64_t rows, int64_t columns, int64_t stride)
{
	handle t = NULL;
	if (weir_torch_empty_strided(2, DIMS(rows, columns), DIMS(stride, 1), F32, device, 0, &t))
		fail_msg("%s", shim.why.text);
	return t;
}

static void *data(handle t)
{
	void *at = NULL;
	assert_int_equal(weir_torch_get_data_ptr(t, &at), 0);
	return at;
}

static void drop(handle t)
{
	assert_int_equal(weir_torch_delete_tensor_object(t), 0);
}

static void check_why(const char *part)
{
	if (!strstr(shim.why.text, part))
		fail_msg("'%s' is not in: %s", part, shim.why.text);
	shim.why.text[0] = 0;
}

static void tensors_say_what_they_are(void **state)
{
	enter();
	handle t = on(TORCH_CUDA, 3, 4, 8), gap;
	int64_t n, *list;
	int32_t k;
	bool is;
	void *at;
	const void *constant;
	weir_torch_get_dim(t, &n);
	assert_int_equal(n, 2);
	weir_torch_get_numel(t, &n);
	assert_int_equal(n, 12);
	weir_torch_get_storage_size(t, &n);
	assert_int_equal(n, (2 * 8 + 4) * 4);
	weir_torch_get_storage_offset(t, &n);
	assert_int_equal(n, 0);
	weir_torch_get_sizes(t, &list);
	assert_memory_equal(list, DIMS(3, 4), 16);
	weir_torch_get_strides(t, &list);
	assert_memory_equal(list, DIMS(8, 1), 16);
	assert_int_equal(weir_torch_get_size(t, -1, &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(weir_torch_get_stride(t, 0, &n), 0);
	assert_int_equal(n, 8);
	assert_int_equal(weir_torch_get_size(t, 2, &n), 1);
	check_why("a tensor has no dimension 2");
	weir_torch_get_dtype(t, &k);
	assert_int_equal(k, F32);
	weir_torch_get_device_type(t, &k);
	assert_int_equal(k, TORCH_CUDA);
	weir_torch_get_device_index(t, &k);
	assert_int_equal(k, 0);
	weir_torch_get_layout(t, &k);
	assert_int_equal(k, 0);
	weir_torch_is_contiguous(t, &is);
	assert_false(is);
	weir_torch_is_defined(t, &is);
	assert_true(is);
	weir_torch_get_mutable_data_ptr(t, &at);
	weir_torch_get_const_data_ptr(t, &constant);
	assert_true(at == data(t) && constant == at);
	gap = on(TORCH_CUDA, 1, 4, 99);
	weir_torch_is_contiguous(gap, &is);
	assert_true(is);
	drop(gap);
	drop(t);
	leave();
}

static void views_share_memory_until_the_last_is_gone(void **state)
{
	enter();
	handle t = on(TORCH_CUDA, 2, 4, 4), view, pool, same, last;
	const size_t used = space.used;
	assert_int_equal(weir_torch__reinterpret_tensor(t, 1, DIMS(2), DIMS(1), 4, &view), 0);
	assert_ptr_equal(data(view), (char *)data(t) + 16);
	assert_int_equal(
		weir_torch__alloc_from_pool(t, 8, 4 /* int64 */, 1, DIMS(1), DIMS(1), &pool), 0);
	assert_ptr_equal(data(pool), (char *)data(t) + 8);
	assert_int_equal(weir_torch__alloc_from_pool(t, 9, F32, 1, DIMS(1), DIMS(1), &last), 1);
	check_why("a tensor of type 6 is at byte 9 of a pool");
	assert_int_equal(weir_torch_new_tensor_handle(view, &same), 0);
	assert_int_equal(weir_torch_assign_tensors_out(view, &last), 0);
	assert_true(data(same) == data(view) && data(last) == data(view));
	void *at = data(t);
	drop(t);
	drop(view);
	drop(pool);
	drop(same);
	handle other = on(TORCH_CUDA, 2, 4, 4);
	assert_true(data(other) != at);
	drop(other);
	drop(last);
	t = on(TORCH_CUDA, 2, 4, 4);
	drop(t);
	assert_true(space.used <= used + 512);
	/* What lives longer than a plan's holes returns to the space. */
	t = on(TORCH_CUDA, 2, 4, 4);
	torch_shim_disown(&shim, &own);
	const size_t before = space.hole.list.n;
	drop(t);
	assert_true(space.hole.list.n > before || before > 0);
	leave();
}

static void wrong_tensors_are_refused(void **state)
{
	enter();
	handle t = NULL;
	assert_int_equal(weir_torch_empty_strided(1, DIMS(4), DIMS(1), 99, 1, 0, &t), 1);
	check_why("a tensor has type 99 and 1 dimensions");
	assert_int_equal(weir_torch_empty_strided(1, DIMS(-4), DIMS(1), F32, 1, 0, &t), 1);
	check_why("negative size");
	assert_int_equal(
		weir_torch_empty_strided(2, DIMS(INT64_MAX, 2), DIMS(INT64_MAX, 1), F32, 1, 0, &t),
		1);
	check_why("a tensor is too large");
	assert_int_equal(weir_torch_empty_strided(1, DIMS(4), DIMS(1), F32, 13, 0, &t), 1);
	check_why("a tensor is for a device of kind 13");
	assert_int_equal(
		weir_torch_empty_strided(1, DIMS((int64_t)1 << 50), DIMS(1), F32, 1, 0, &t), 1);
	check_why("bytes are more than");
	assert_int_equal(weir_torch_create_tensor_from_blob_v2(
				 NULL, 1, DIMS(1), DIMS(1), 0, F32, 1, 0, &t, 5, NULL, 0),
		1);
	check_why("a weight has the layout 5");
	assert_null(t);
	assert_int_equal(weir_torch_empty_strided(2, DIMS(0, 4), DIMS(4, 1), F32, 1, 0, &t), 0);
	drop(t);
	leave();
}

static void copies_keep_what_is_there(void **state)
{
	enter();
	handle host = on(TORCH_CPU, 2, 3, 3), gpu = on(TORCH_CUDA, 2, 3, 3), back, clone, blob;
	float x[] = { 1, 2, 3, 4, 5, 6 };
	memcpy(data(host), x, sizeof x);
	assert_int_equal(weir_torch_copy_(gpu, host, 0), 0);
	assert_int_equal(weir_torch_clone(gpu, &clone), 0);
	assert_true(data(clone) != data(gpu));
	back = on(TORCH_CPU, 2, 3, 3);
	assert_int_equal(weir_torch_copy_(back, clone, 1), 0);
	assert_memory_equal(data(back), x, sizeof x);
	assert_int_equal(weir_torch_zero_(gpu), 0);
	assert_int_equal(weir_torch_copy_(clone, gpu, 0), 0);
	assert_int_equal(weir_torch_copy_(back, clone, 0), 0);
	assert_memory_equal(data(back), ((float[6]){ 0 }), sizeof x);
	assert_int_equal(weir_torch_copy_(back, host, 0), 0);
	assert_memory_equal(data(back), x, sizeof x);
	assert_int_equal(weir_torch_zero_(back), 0);
	assert_int_equal(*(float *)data(back), 0);
	drop(clone);
	/* An address of somebody else, from the second element on, and with gaps. */
	assert_int_equal(weir_torch_create_tensor_from_blob(
				 x, 2, DIMS(2, 1), DIMS(3, 1), 1, F32, TORCH_CPU, 0, &blob),
		0);
	assert_int_equal(*(float *)data(blob), 2);
	assert_int_equal(weir_torch_clone_preserve_strides(blob, &clone), 0);
	assert_int_equal(((float *)data(clone))[3], 5);
	drop(clone);
	assert_int_equal(weir_torch_clone(blob, &clone), 1);
	check_why("with gaps");
	assert_int_equal(weir_torch_copy_(gpu, blob, 0), 1);
	check_why("a copy changes the type or the strides");
	assert_int_equal(weir_torch_zero_(blob), 1);
	check_why("with gaps");
	drop(blob);
	drop(back);
	drop(gpu);
	drop(host);
	leave();
}

static void work_goes_to_the_stream_of_the_guard(void **state)
{
	enter();
	void *at, *guard, *before = shim.stream, *other = &at;
	assert_int_equal(weir_torch_get_current_cuda_stream(0, &at), 0);
	assert_ptr_equal(at, before);
	assert_int_equal(weir_torch_create_cuda_stream_guard(other, 0, &guard), 0);
	assert_int_equal(weir_torch_get_current_cuda_stream(0, &at), 0);
	assert_ptr_equal(at, other);
	assert_int_equal(weir_torch_delete_cuda_stream_guard(guard), 0);
	assert_ptr_equal(shim.stream, before);
	assert_int_equal(weir_torch_create_cuda_guard(0, &guard), 0);
	assert_int_equal(weir_torch_cuda_guard_set_index(guard, 0), 0);
	assert_int_equal(weir_torch_delete_cuda_guard(guard), 0);
	assert_int_equal(weir_torch_create_device_guard(1, &guard), 1);
	check_why("the model is for the device 1");
	assert_int_equal(weir_torch_device_guard_set_index(guard, 0), 0);
	assert_int_equal(weir_torch_delete_device_guard(guard), 0);
	weir_torch_grad_mode_set_enabled(true);
	assert_false(weir_torch_grad_mode_is_enabled());
	weir_torch_warn("f", "file", 1, "text");
	weir_torch_check(true, "f", "file", 1, "text");
	assert_string_equal(shim.why.text, "");
	weir_torch_check(false, "f", "file", 1, "rows > 0");
	check_why("a check of the model failed: rows > 0");
	leave();
}

static void the_runtimes_calls_reach_the_driver(void **state)
{
	enter();
	int device = 7;
	void *at, *event;
	char x[600] = "some text", y[600] = "";
	assert_int_equal(weirGetDevice(&device), 0);
	assert_int_equal(device, 0);
	assert_int_equal(weirSetDevice(0), 0);
	assert_int_equal(weirSetDevice(1), 100);
	assert_int_equal(weirGetLastError(), 0);
	assert_string_equal(weirGetErrorString(0), "no error");
	assert_string_equal(weirGetErrorString(2), "CUDA_ERROR_OUT_OF_MEMORY");
	assert_int_equal(weirMalloc(&at, sizeof x), 0);
	assert_int_equal(weirMemcpy(at, x, sizeof x, 1), 0);
	assert_int_equal(weirMemcpyAsync((char *)at + 300, at, 300, 3, shim.stream), 0);
	assert_int_equal(weirMemcpy(y, at, sizeof y, 2), 0);
	assert_string_equal(y + 300, "some text");
	assert_int_equal(weirMemcpy(y, x, 3, 0), 0);
	assert_int_equal(weirMemcpy(y, x, 3, 9), 1);
	assert_int_equal(weirEventCreate(&event), 0);
	assert_int_equal(weirEventRecord(event, shim.stream), 0);
	assert_int_equal(weirEventSynchronize(event), 0);
	assert_int_equal(weirEventQuery(event), 0);
	assert_int_equal(weirEventDestroy(event), 0);
	assert_int_equal(weirStreamSynchronize(shim.stream), 0);
	assert_int_equal(weirFree(y), 1);
	assert_int_equal(weirFree(at), 0);
	assert_int_equal(weirFree(NULL), 0);
	assert_int_equal(weirMalloc(&at, (size_t)1 << 50), 2);
	check_why("bytes are more than");
	leave();
	assert_int_equal(weirMalloc(&at, 1), 100);
	assert_int_equal(weirMemcpy(y, x, 3, 0), 100);
}

static void numbers_are_those_of_pytorch(void **state)
{
	static const struct {
		const char *name;
		int32_t number, bytes;
	} rows[] = { { "dtype_uint8", 0, 1 }, { "dtype_int8", 1, 1 }, { "dtype_int16", 2, 2 },
		{ "dtype_int32", 3, 4 }, { "dtype_int64", 4, 8 }, { "dtype_float16", 5, 2 },
		{ "dtype_float32", 6, 4 }, { "dtype_float64", 7, 8 }, { "dtype_complex32", 8, 4 },
		{ "dtype_complex64", 9, 8 }, { "dtype_complex128", 10, 16 },
		{ "dtype_bool", 11, 1 }, { "dtype_bfloat16", 15, 2 },
		{ "dtype_float8_e5m2", 23, 1 }, { "dtype_float8_e4m3fn", 24, 1 },
		{ "dtype_uint16", 27, 2 }, { "dtype_uint32", 28, 4 }, { "dtype_uint64", 29, 8 },
		{ "device_type_cpu", 0, 0 }, { "device_type_cuda", 1, 0 },
		{ "layout_strided", 0, 0 }, { "memory_format_contiguous_format", 0, 0 } };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char name[80];
		int32_t (*number)(void);
		snprintf(name, sizeof name, "weir_torch_%s", rows[i].name);
		/* The program exports them, for models. */
		void *symbol = dlsym(RTLD_DEFAULT, name);
		assert_non_null(symbol);
		memcpy(&number, &symbol, sizeof symbol);
		assert_int_equal(number(), rows[i].number);
		if (rows[i].bytes)
			assert_int_equal(
				weir_torch_dtype_element_size(rows[i].number), rows[i].bytes);
	}
	assert_int_equal(weir_torch_dtype_element_size(16), 0);
	assert_int_equal(weir_torch_dtype_element_size(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_archive_gives_its_files),
		cmocka_unit_test(a_damaged_archive_is_refused_in_a_sentence),
		cmocka_unit_test(what_is_no_package_of_one_model_is_refused),
		cmocka_unit_test(numbers_are_those_of_pytorch),
		/* From here on left out where there is no simulated driver. */
		cmocka_unit_test(only_what_weir_has_is_renamed),
		cmocka_unit_test(tensors_say_what_they_are),
		cmocka_unit_test(views_share_memory_until_the_last_is_gone),
		cmocka_unit_test(wrong_tensors_are_refused),
		cmocka_unit_test(copies_keep_what_is_there),
		cmocka_unit_test(work_goes_to_the_stream_of_the_guard),
		cmocka_unit_test(the_runtimes_calls_reach_the_driver),
		cmocka_unit_test(a_model_runs_without_libtorch_as_graphs_and_its_memory_returns),
		cmocka_unit_test(without_graphs_a_model_runs_in_the_same_memory),
		cmocka_unit_test(outputs_of_any_strides_come_row_by_row),
		cmocka_unit_test(a_shared_object_runs_as_it_is),
		cmocka_unit_test(what_a_model_gives_is_checked),
		cmocka_unit_test(what_can_not_run_is_refused_in_a_sentence),
		/* Last: libtorch stays. */
		cmocka_unit_test(libtorch_runs_what_weir_alone_can_not),
	};
	mkdir(FOLDER, 0700);
	setenv("TMPDIR", FOLDER, 1);
	config = (struct engine_config){
		.name = "m", .max_batch_size = 4, .in = in, .ins = 1, .out = out, .outs = 2
	};
	options.torch = true;
	const size_t without = find_simulated_driver(SIMULATED_DRIVER) ? 0 : 14;
	return _cmocka_run_group_tests(
		"models of PyTorch", tests, COUNT_OF(tests) - without, NULL, NULL);
}
