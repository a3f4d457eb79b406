/* Memory: allocation, copies in all directions, fills, pools, virtual memory, arrays. */
#include "sim_test.h"

enum { SIZE = 4096 };

static unsigned long long device_memory(size_t size)
{
	unsigned long long address;

	test_context();
	OK(cuMemAlloc_v2(&address, size));
	return address;
}

static void bytes_come_back_as_they_went(void **state)
{
	unsigned long long a = device_memory(SIZE), b = device_memory(SIZE);
	char from[SIZE], to[SIZE];

	for (int i = 0; i < SIZE; i++)
		from[i] = (char)(i * 7);
	OK(cuMemcpyHtoD_v2(a, from, SIZE));
	OK(cuMemcpyDtoD_v2(b, a, SIZE));
	OK(cuMemcpyDtoH_v2(to, b, SIZE));
	assert_memory_equal(from, to, SIZE);
	memset(to, 0, SIZE);
	OK(cuMemcpy((unsigned long long)to, a, SIZE));
	assert_memory_equal(from, to, SIZE);
	OK(cuMemFree_v2(a));
	OK(cuMemFree_v2(b));
}

static void asynchronous_copies_are_there_after_a_sync(void **state)
{
	unsigned long long a = device_memory(SIZE);
	char from[SIZE] = "in order", to[SIZE];
	void *stream;

	OK(cuStreamCreate(&stream, 1));
	OK(cuMemcpyHtoDAsync_v2(a, from, SIZE, stream));
	OK(cuMemcpyDtoHAsync_v2(to, a, SIZE, stream));
	OK(cuStreamSynchronize(stream));
	assert_string_equal(to, "in order");
	OK(cuStreamDestroy_v2(stream));
	OK(cuMemFree_v2(a));
}

static void a_copy_beyond_an_allocation_is_refused(void **state)
{
	unsigned long long a = device_memory(100);
	char host[256] = { 0 };

	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, host, 101));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a + 1, host, 100));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, a + 60, 41));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host, 0x1000, 4));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, NULL, 4));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(a, (unsigned long long)host, 4));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, host, SIZE_MAX));
	OK(cuMemcpyHtoD_v2(a, host, 0));
	OK(cuMemFree_v2(a));
}

static void memory_is_freed_once_and_from_its_beginning(void **state)
{
	unsigned long long a = device_memory(100);

	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a + 8));
	OK(cuMemFree_v2(a));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
	OK(cuMemFree_v2(0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&a, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 8));
}

static void rectangles_are_copied_row_by_row(void **state)
{
	unsigned long long a;
	size_t pitch;
	char from[8][16], to[8][16] = { 0 };

	test_context();
	OK(cuMemAllocPitch_v2(&a, &pitch, 10, 8, 4));
	assert_true(pitch >= 10 && pitch % 512 == 0);
	for (int i = 0; i < 8; i++)
		memset(from[i], 'a' + i, 16);
	struct cu_memcpy2d up = {
		.src_type = CU_MEMORYTYPE_HOST,
		.src_host = from,
		.src_pitch = 16,
		.dst_type = CU_MEMORYTYPE_DEVICE,
		.dst_device = a,
		.dst_pitch = pitch,
		.width_bytes = 10,
		.height = 8,
	};
	struct cu_memcpy2d down = {
		.src_type = CU_MEMORYTYPE_DEVICE,
		.src_device = a,
		.src_pitch = pitch,
		.src_y = 2,
		.dst_type = CU_MEMORYTYPE_HOST,
		.dst_host = to,
		.dst_pitch = 16,
		.dst_x = 1,
		.width_bytes = 3,
		.height = 4,
	};
	OK(cuMemcpy2D_v2(&up));
	OK(cuMemcpy2D_v2(&down));
	assert_memory_equal(to[0], "\0ccc\0", 5);
	assert_memory_equal(to[3], "\0fff\0", 5);
	up.height = 9;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&up));
	up.height = SIZE_MAX / 2;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&up));
	OK(cuMemFree_v2(a));
}

static void boxes_are_copied_slice_by_slice(void **state)
{
	unsigned long long a = device_memory(64);
	char from[64], to[64] = { 0 };

	for (int i = 0; i < 64; i++)
		from[i] = (char)i;
	OK(cuMemcpyHtoD_v2(a, from, 64));
	struct cu_memcpy3d p = {
		.src_type = CU_MEMORYTYPE_DEVICE,
		.src_device = a,
		.src_pitch = 4,
		.src_height = 4,
		.src_z = 1,
		.dst_type = CU_MEMORYTYPE_HOST,
		.dst_host = to,
		.dst_pitch = 2,
		.dst_height = 2,
		.width_bytes = 2,
		.height = 2,
		.depth = 3,
	};
	OK(cuMemcpy3D_v2(&p));
	assert_memory_equal(to, ((char[]){ 16, 17, 20, 21, 32, 33, 36, 37, 48, 49, 52, 53 }), 12);
	p.depth = 4;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&p));
	OK(cuMemFree_v2(a));
}

static void fills_write_elements(void **state)
{
	unsigned long long a = device_memory(64);
	unsigned words[16];
	unsigned char bytes[64];

	OK(cuMemsetD32_v2(a, 0x11223344, 16));
	OK(cuMemcpyDtoH_v2(words, a, 64));
	assert_int_equal(words[15], 0x11223344);
	OK(cuMemsetD16_v2(a, 0xabcd, 2));
	OK(cuMemsetD8_v2(a + 4, 7, 4));
	OK(cuMemcpyDtoH_v2(words, a, 64));
	assert_int_equal(words[0], 0xabcdabcd);
	assert_int_equal(words[1], 0x07070707);
	OK(cuMemsetD2D8_v2(a, 8, 1, 2, 8));
	OK(cuMemcpyDtoH_v2(bytes, a, 64));
	assert_memory_equal(bytes + 56, "\1\1\x22", 3);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a, 0, 17));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a + 2, 0, 1));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(0x10, 0, 1));
	OK(cuMemFree_v2(a));
}

static void pinned_memory_is_host_memory_the_driver_knows(void **state)
{
	void *p;
	unsigned flags, type;
	unsigned long long device;
	char own[64];

	test_context();
	OK(cuMemHostAlloc(&p, 100, 2));
	OK(cuMemHostGetFlags(&flags, p));
	assert_int_equal(flags, 2);
	OK(cuMemHostGetDevicePointer_v2(&device, p, 0));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	OK(cuMemFreeHost(p));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(p));
	OK(cuMemHostRegister_v2(own, 64, 0));
	FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(own, 64, 0));
	OK(cuMemHostUnregister(own));
	FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
}

static void pointers_tell_what_they_are(void **state)
{
	unsigned long long a = device_memory(SIZE), base;
	size_t size;
	unsigned type = 9;
	int ordinal = 9;
	int names[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	void *values[] = { &type, &ordinal };

	OK(cuMemGetAddressRange_v2(&base, &size, a + 100));
	assert_true(base == a && size == SIZE);
	OK(cuPointerGetAttributes(2, names, values, a));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ordinal, 0);
	OK(cuPointerGetAttributes(2, names, values, (unsigned long long)&a));
	assert_int_equal(type, 0);
	FAILS(CUDA_ERROR_INVALID_VALUE,
		cuPointerGetAttribute(
			&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (unsigned long long)&a));
	OK(cuMemFree_v2(a));
	FAILS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &size, a));
}

static void a_small_device(void)
{
	unsigned long long a, b;
	size_t unused, total;
	void *ctx;

	CHILD_EXPECT(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx));
	CHILD_EXPECT(!cuMemAlloc_v2(&a, 600 << 10));
	CHILD_EXPECT(cuMemAlloc_v2(&b, 600 << 10) == CUDA_ERROR_OUT_OF_MEMORY);
	CHILD_EXPECT(cuMemAlloc_v2(&b, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
	CHILD_EXPECT(!cuMemGetInfo_v2(&unused, &total));
	CHILD_EXPECT(total == 1 << 20 && unused == (1 << 20) - (600 << 10));
	CHILD_EXPECT(!cuMemFree_v2(a));
	CHILD_EXPECT(!cuMemAlloc_v2(&b, 1 << 20));
}

static void memory_runs_out_where_the_script_says(void **state)
{
	SCRIPTED("memory=1M", a_small_device);
}

static void pools_allocate_and_free_in_stream_order(void **state)
{
	unsigned long long a;
	uint64_t used;
	void *pool, *stream;
	char host[8] = { 0 };

	test_context();
	OK(cuStreamCreate(&stream, 0));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocFromPoolAsync(&a, 1000, pool, stream));
	OK(cuMemsetD8Async(a, 5, 1000, stream));
	OK(cuMemcpyDtoHAsync_v2(host, a, 8, stream));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, 1000);
	OK(cuMemFreeAsync(a, stream));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, stream));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(host[7], 5);
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
	OK(cuStreamDestroy_v2(stream));
}

static void two_mappings_of_one_handle_show_the_same_bytes(void **state)
{
	struct cu_mem_allocation_prop prop = { .type = 1, .location = { 1, 0 } };
	struct cu_mem_access_desc access = { .location = { 1, 0 }, .flags = 3 };
	unsigned long long base, handle;
	size_t grain;
	char text[16] = "both", back[16];

	test_context();
	OK(cuMemGetAllocationGranularity(&grain, &prop, 0));
	OK(cuMemAddressReserve(&base, 2 * grain, 0, 0, 0));
	OK(cuMemCreate(&handle, grain, &prop, 0));
	OK(cuMemMap(base, grain, 0, handle, 0));
	OK(cuMemMap(base + grain, grain, 0, handle, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(base, grain, 0, handle, 0));
	OK(cuMemSetAccess(base, 2 * grain, &access, 1));
	OK(cuMemRelease(handle));
	OK(cuMemcpyHtoD_v2(base, text, 16));
	OK(cuMemcpyDtoH_v2(back, base + grain, 16));
	assert_string_equal(back, "both");
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 2 * grain));
	OK(cuMemUnmap(base, 2 * grain));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(base, text, 16));
	OK(cuMemAddressFree(base, 2 * grain));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(base, 2 * grain));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
}

static void memory_handles_travel_as_file_descriptors(void **state)
{
	struct cu_mem_allocation_prop prop = { .type = 1, .handle_types = 1, .location = { 1, 0 } };
	unsigned long long handle, twin;
	int fd;

	test_context();
	OK(cuMemCreate(&handle, 2 << 20, &prop, 0));
	OK(cuMemExportToShareableHandle(&fd, handle, 1, 0));
	OK(cuMemImportFromShareableHandle(&twin, (void *)(intptr_t)fd, 1));
	OK(cuMemRelease(handle));
	OK(cuMemRelease(twin));
	close(fd);
}

static void arrays_keep_rows(void **state)
{
	struct cu_array_desc desc = { 4, 3, CU_AD_FORMAT_FLOAT, 1 }, back;
	float from[3][4], to[3][4] = { 0 };
	void *array;

	test_context();
	for (int i = 0; i < 12; i++)
		from[i / 4][i % 4] = (float)i;
	OK(cuArrayCreate_v2(&array, &desc));
	OK(cuArrayGetDescriptor_v2(&back, array));
	assert_int_equal(back.height, 3);
	struct cu_memcpy2d up = {
		.src_type = CU_MEMORYTYPE_HOST,
		.src_host = from,
		.dst_type = CU_MEMORYTYPE_ARRAY,
		.dst_array = array,
		.width_bytes = 16,
		.height = 3,
	};
	struct cu_memcpy2d down = {
		.src_type = CU_MEMORYTYPE_ARRAY,
		.src_array = array,
		.dst_type = CU_MEMORYTYPE_HOST,
		.dst_host = to,
		.width_bytes = 16,
		.height = 3,
	};
	OK(cuMemcpy2D_v2(&up));
	OK(cuMemcpy2D_v2(&down));
	assert_memory_equal(from, to, sizeof from);
	up.height = 4;
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&up));
	OK(cuArrayDestroy(array));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

static void a_row_may_not_reach_into_the_next(void **state)
{
	struct cu_array_desc desc = { 4, 2, CU_AD_FORMAT_FLOAT, 1 };
	char host[64] = { 0 };
	void *array;

	test_context();
	OK(cuArrayCreate_v2(&array, &desc));
	OK(cuMemcpyHtoA_v2(array, 0, host, 16));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(array, 0, host, 17));
	OK(cuArrayDestroy(array));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_runs_out_where_the_script_says),
		cmocka_unit_test(bytes_come_back_as_they_went),
		cmocka_unit_test(asynchronous_copies_are_there_after_a_sync),
		cmocka_unit_test(a_copy_beyond_an_allocation_is_refused),
		cmocka_unit_test(memory_is_freed_once_and_from_its_beginning),
		cmocka_unit_test(rectangles_are_copied_row_by_row),
		cmocka_unit_test(boxes_are_copied_slice_by_slice),
		cmocka_unit_test(fills_write_elements),
		cmocka_unit_test(pinned_memory_is_host_memory_the_driver_knows),
		cmocka_unit_test(pointers_tell_what_they_are),
		cmocka_unit_test(pools_allocate_and_free_in_stream_order),
		cmocka_unit_test(two_mappings_of_one_handle_show_the_same_bytes),
		cmocka_unit_test(memory_handles_travel_as_file_descriptors),
		cmocka_unit_test(arrays_keep_rows),
		cmocka_unit_test(a_row_may_not_reach_into_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
