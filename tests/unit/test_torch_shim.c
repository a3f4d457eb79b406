/* Weir's functions in the place of libtorch and the CUDA runtime, on the simulated driver. */
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>

#include "engine/torch_shim.h"
#include "engines.h"

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
CALLED(int32_t, weir_torch_empty_strided_pinned, int64_t, const int64_t *, const int64_t *, int32_t,
	int32_t, int32_t, handle *)
CALLED(int32_t, weir_torch_get_current_device_index, int32_t *)
CALLED(int32_t, weir_torch_cuda_caching_allocator_raw_alloc, uint64_t, void **)
CALLED(int32_t, weir_torch_cuda_caching_allocator_raw_delete, void *)
CALLED(int, weirStreamCreateWithFlags, void **, unsigned)
CALLED(int, weirStreamDestroy, void *)
CALLED(int, weirEventCreateWithFlags, void **, unsigned)
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
	/* A tensor that lives longer than a plan's holes returns to the space. */
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
	assert_int_equal(
		weir_torch_empty_strided_pinned(1, DIMS(4), DIMS(1), F32, TORCH_CPU, 0, &blob), 0);
	assert_int_equal(weir_torch_zero_(blob), 0);
	drop(blob);
	assert_int_equal(
		weir_torch_empty_strided_pinned(1, DIMS(4), DIMS(1), F32, TORCH_CUDA, 0, &blob), 1);
	check_why("pinned memory is for a device of kind 1");
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
	int32_t device = 7;
	assert_int_equal(weir_torch_get_current_device_index(&device), 0);
	assert_int_equal(device, 0);
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
	void *stream;
	assert_int_equal(weirStreamCreateWithFlags(&stream, 1), 0);
	assert_int_equal(weirEventCreateWithFlags(&event, 2), 0);
	assert_int_equal(weirMemcpyAsync(at, "other text", 11, 1, stream), 0);
	assert_int_equal(weirEventRecord(event, stream), 0);
	assert_int_equal(weirEventSynchronize(event), 0);
	assert_int_equal(weirMemcpy(y, at, sizeof y, 2), 0);
	assert_string_equal(y, "other text");
	assert_int_equal(weirEventDestroy(event), 0);
	assert_int_equal(weirStreamDestroy(stream), 0);
	void *raw;
	assert_int_equal(weir_torch_cuda_caching_allocator_raw_alloc(40, &raw), 0);
	assert_int_equal(weir_torch_cuda_caching_allocator_raw_delete(raw), 0);
	assert_int_equal(weir_torch_cuda_caching_allocator_raw_delete(raw), 1);
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
		cmocka_unit_test(numbers_are_those_of_pytorch),
		/* From here on left out where there is no simulated driver. */
		cmocka_unit_test(tensors_say_what_they_are),
		cmocka_unit_test(views_share_memory_until_the_last_is_gone),
		cmocka_unit_test(wrong_tensors_are_refused),
		cmocka_unit_test(copies_keep_what_is_there),
		cmocka_unit_test(work_goes_to_the_stream_of_the_guard),
		cmocka_unit_test(the_runtimes_calls_reach_the_driver),
	};
	const size_t without = find_simulated_driver(SIMULATED_DRIVER) ? 0 : 6;
	return _cmocka_run_group_tests(
		"libtorch's place", tests, COUNT_OF(tests) - without, NULL, NULL);
}
