/* Initialisation, devices, contexts, modules, launches, and misuse of all of them. */
#include "sim_test.h"

static void before_init(void)
{
	int version, count;
	void *ctx, *address;

	CHILD_EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
	CHILD_EXPECT(cuCtxGetCurrent(&ctx) == CUDA_ERROR_NOT_INITIALIZED);
	CHILD_EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) ==
		     CUDA_ERROR_NOT_INITIALIZED);
	CHILD_EXPECT(cuDriverGetVersion(&version) == 0 && version == 13000);
	CHILD_EXPECT(cuGetProcAddress_v2("cuInit", &address, 2000, 0, NULL) == 0 && address);
}

static void everything_but_a_few_needs_cuInit(void **state)
{
	SCRIPTED(NULL, before_init);
}

static void a_flag_given_to_cuInit_is_refused(void **state)
{
	FAILS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
}

static void fork_after_init(void)
{
	int status, count;

	CHILD_EXPECT(cuInit(0) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHILD_EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
		CHILD_EXPECT(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
		_exit(0);
	}
	CHILD_EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	CHILD_EXPECT(cuDeviceGetCount(&count) == 0);
}

static void a_forked_child_finds_the_driver_not_initialised(void **state)
{
	SCRIPTED(NULL, fork_after_init);
}

static void the_device_calls_itself_simulated(void **state)
{
	char name[64];
	int value;
	size_t bytes;

	test_context();
	OK(cuDeviceGetName(name, sizeof name, 0));
	assert_string_equal(name, "Weir simulated GPU");
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	assert_int_equal(value, 132);
	OK(cuDeviceTotalMem_v2(&bytes, 0));
	assert_true(bytes == (size_t)141 << 30);
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(name, sizeof name, 1));
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&value, -1));
}

static void every_attribute_has_an_answer(void **state)
{
	int value;

	test_context();
	for (int i = 1; i <= CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED; i++)
		OK(cuDeviceGetAttribute(&value, i, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, 0, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, 100000, 0));
}

static void every_error_has_a_name(void **state)
{
	char *text;

	OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
	assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	assert_string_equal(text, "out of memory");
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(12345, &text));
	assert_null(text);
}

static void contexts_are_a_stack_of_each_thread(void **state)
{
	void *primary = test_context(), *a, *b, *top;

	OK(cuCtxCreate_v2(&a, 0, 0));
	OK(cuCtxGetCurrent(&top));
	assert_ptr_equal(top, a);
	OK(cuCtxPushCurrent_v2(primary));
	OK(cuCtxPopCurrent_v2(&b));
	assert_ptr_equal(b, primary);
	OK(cuCtxDestroy_v2(a));
	OK(cuCtxGetCurrent(&top));
	assert_ptr_equal(top, primary);
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxGetCurrent(&top));
	assert_null(top);
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&top));
}

static void a_call_without_a_context_says_so(void **state)
{
	unsigned long long address;
	void *stream;

	test_context();
	OK(cuCtxSetCurrent(NULL));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&address, 16));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&stream, 0));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	FAILS(CUDA_ERROR_INVALID_CONTEXT,
		cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static void a_destroyed_context_is_refused(void **state)
{
	void *ctx;

	test_context();
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuCtxDestroy_v2(ctx));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(ctx));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(ctx));
	FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2((void *)0x1234567));
}

static void primary_contexts_are_counted(void **state)
{
	void *a, *b;
	unsigned flags;
	int active;

	test_context();
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	assert_ptr_equal(a, b);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 1);
	FAILS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&a, 7));
}

static void no_handle_makes_the_driver_crash(void **state)
{
	void *bad[] = { (void *)3, (void *)0x1234, (void *)-1, &bad };
	char *name;
	int value;
	void *out;

	test_context();
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(bad[i]));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&out, bad[i], "f"));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, bad[i]));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, 0, bad[i]));
		FAILS(CUDA_ERROR_INVALID_HANDLE, test_launch(bad[i], 1, 1, NULL));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(bad[i]));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(bad[i]));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(bad[i], NULL));
		FAILS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(bad[i]));
		FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(bad[i]));
		FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(bad[i], NULL));
		FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2((unsigned long long)bad[i]));
		FAILS(CUDA_ERROR_INVALID_VALUE, cuMemRelease((unsigned long long)bad[i]));
	}
}

static void a_handle_of_the_wrong_kind_is_refused(void **state)
{
	void *stream, *event, *f = test_function("empty");

	OK(cuStreamCreate(&stream, 0));
	OK(cuEventCreate(&event, 0));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(event));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(stream));
	FAILS(CUDA_ERROR_INVALID_HANDLE, test_launch(stream, 1, 1, NULL));
	FAILS(CUDA_ERROR_INVALID_HANDLE, test_launch(f, 1, 1, event));
	OK(cuStreamDestroy_v2(stream));
	OK(cuEventDestroy_v2(event));
}

static void a_handle_used_after_its_end_is_refused(void **state)
{
	void *stream, *event, *module, *f;

	test_context();
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamDestroy_v2(stream));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(stream));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
	OK(cuEventCreate(&event, 0));
	OK(cuEventDestroy_v2(event));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
	OK(cuModuleLoadData(&module, (void *)test_ptx));
	OK(cuModuleGetFunction(&f, module, "empty"));
	OK(cuModuleUnload(module));
	FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
	FAILS(CUDA_ERROR_INVALID_HANDLE, test_launch(f, 1, 1, NULL));
}

static void a_launch_is_checked_as_the_driver_does(void **state)
{
	void *f = test_function("empty"), *add = test_function("add");
	unsigned long long a = 0;
	unsigned n = 1;
	void *params[] = { &a, &a, &n }, *holes[] = { &a, NULL, &n };

	OK(test_launch(f, 1, 1024, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, test_launch(f, 0, 1, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, test_launch(f, 1, 0, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, test_launch(f, 1, 1025, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE,
		cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE,
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_HANDLE, test_launch(NULL, 1, 1, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, test_launch(add, 1, 1, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE,
		cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, holes, NULL));
	OK(cuLaunchKernel(add, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE,
		cuLaunchKernel(add, 1, 1, 1, 257, 1, 1, 0, NULL, params, NULL));
}

static void more_dynamic_shared_memory_must_be_asked_for(void **state)
{
	void *f = test_function("empty");

	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 200000, NULL, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE,
		cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 240000));
}

static void a_cooperative_launch_must_fit_the_device(void **state)
{
	void *f = test_function("empty");

	OK(cuLaunchCooperativeKernel(f, 132 * 2, 1, 1, 1024, 1, 1, 0, NULL, NULL));
	FAILS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
		cuLaunchCooperativeKernel(f, 132 * 2 + 1, 1, 1, 1024, 1, 1, 0, NULL, NULL));
}

static void launch_attributes_are_read(void **state)
{
	struct cu_launch_attribute attr = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION };
	struct cu_launch_config config = {
		.grid_x = 6,
		.grid_y = 1,
		.grid_z = 1,
		.block_x = 32,
		.block_y = 1,
		.block_z = 1,
		.attrs = &attr,
		.attr_count = 1,
	};
	void *f = test_function("empty");

	attr.u.cluster.x = 2;
	attr.u.cluster.y = attr.u.cluster.z = 1;
	OK(cuLaunchKernelEx(&config, f, NULL, NULL));
	attr.u.cluster.x = 4;
	FAILS(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, f, NULL, NULL));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(NULL, f, NULL, NULL));
}

static void cuda_2_style_launches_work(void **state)
{
	void *add = test_function("add");

	OK(cuFuncSetBlockShape(add, 32, 1, 1));
	OK(cuParamSetSize(add, 20));
	OK(cuParamSeti(add, 16, 5));
	OK(cuLaunchGrid(add, 4, 2));
}

static void occupancy_follows_threads_and_shared_memory(void **state)
{
	void *f = test_function("empty");
	int blocks, grid, block;

	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1024, 0));
	assert_int_equal(blocks, 2);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 0));
	assert_int_equal(blocks, 32);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 100000));
	assert_int_equal(blocks, 2);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
	assert_int_equal(block, 1024);
	assert_int_equal(grid, 264);
}

static void proc_addresses_depend_on_the_version(void **state)
{
	void *v1, *v2, *per_thread;
	int status;

	OK(cuGetProcAddress_v2("cuMemAlloc", &v1, 2000, 0, &status));
	OK(cuGetProcAddress_v2("cuMemAlloc", &v2, 13000, 0, &status));
	assert_ptr_not_equal(v1, v2);
	assert_ptr_equal(v2, cuMemAlloc_v2);
	OK(cuGetProcAddress_v2("cuLaunchKernel", &per_thread, 12000, 2, &status));
	assert_ptr_equal(per_thread, cuLaunchKernel_ptsz);
	OK(cuGetProcAddress_v2("cuCtxGetCurrent", &v1, 12000, 2, &status));
	assert_ptr_equal(v1, cuCtxGetCurrent);
	OK(cuGetProcAddress_v2("cuGetProcAddress", &v1, 12000, 0, &status));
	assert_ptr_equal(v1, cuGetProcAddress_v2);
	OK(cuGetProcAddress_v2("cuGetProcAddress", &v1, 11030, 0, &status));
	assert_ptr_equal(v1, cuGetProcAddress);
}

static void a_symbol_that_is_not_there_is_told_apart_from_one_too_new(void **state)
{
	void *address = &address;
	int status = -1;

	OK(cuGetProcAddress_v2("", &address, 0, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	assert_null(address);
	OK(cuGetProcAddress_v2("cuLibraryLoadData", &address, 11000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	FAILS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress_v2("cuNothing", &address, 12000, 0, NULL));
	FAILS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNothing", &address, 12000, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &address, 14000, 0));
	FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &address, 12000, 0));
}

static void no_private_table_is_answered(void **state)
{
	unsigned char id[16] = { 0 };
	void *table;

	for (int i = 0; i < 256; i++) {
		memset(id, i, sizeof id);
		FAILS(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, id));
	}
}

static void what_is_not_simulated_says_not_supported(void **state)
{
	void *out;

	test_context();
	FAILS(CUDA_ERROR_NOT_SUPPORTED, cuTexRefCreate(&out));
	FAILS(CUDA_ERROR_NOT_SUPPORTED, cuLinkCreate_v2(0, NULL, NULL, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_but_a_few_needs_cuInit),
		cmocka_unit_test(a_forked_child_finds_the_driver_not_initialised),
		cmocka_unit_test(a_flag_given_to_cuInit_is_refused),
		cmocka_unit_test(the_device_calls_itself_simulated),
		cmocka_unit_test(every_attribute_has_an_answer),
		cmocka_unit_test(every_error_has_a_name),
		cmocka_unit_test(contexts_are_a_stack_of_each_thread),
		cmocka_unit_test(a_call_without_a_context_says_so),
		cmocka_unit_test(a_destroyed_context_is_refused),
		cmocka_unit_test(primary_contexts_are_counted),
		cmocka_unit_test(no_handle_makes_the_driver_crash),
		cmocka_unit_test(a_handle_of_the_wrong_kind_is_refused),
		cmocka_unit_test(a_handle_used_after_its_end_is_refused),
		cmocka_unit_test(a_launch_is_checked_as_the_driver_does),
		cmocka_unit_test(more_dynamic_shared_memory_must_be_asked_for),
		cmocka_unit_test(a_cooperative_launch_must_fit_the_device),
		cmocka_unit_test(launch_attributes_are_read),
		cmocka_unit_test(cuda_2_style_launches_work),
		cmocka_unit_test(occupancy_follows_threads_and_shared_memory),
		cmocka_unit_test(proc_addresses_depend_on_the_version),
		cmocka_unit_test(a_symbol_that_is_not_there_is_told_apart_from_one_too_new),
		cmocka_unit_test(no_private_table_is_answered),
		cmocka_unit_test(what_is_not_simulated_says_not_supported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
