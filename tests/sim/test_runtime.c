/*
 * The runtime test double, driven as compiled programs drive it: a fat binary wrapper is
 * registered before main(), with PTX in a hand-built container, and kernels are launched
 * through pushed configurations.
 */
#include "sim_test.h"

/* Objects of nvcc and C programs call these; void * stands for all handles. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
	int limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int external,
	size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(
	struct dim3 grid, struct dim3 block, size_t shared, void *stream);
int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void *stream);
int __cudaGetKernel(void **kernel, const void *function);
int __cudaLaunchKernel(void *kernel, struct dim3 grid, struct dim3 block, void **args,
	size_t shared, void *stream);
int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args,
	size_t shared, void *stream);
int cudaLaunchKernel_ptsz(const void *function, struct dim3 grid, struct dim3 block, void **args,
	size_t shared, void *stream);
int cudaMalloc(void **address, size_t size);
int cudaFree(void *address);
int cudaMemcpy(void *dst, const void *src, size_t size, int kind);
int cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t size, int kind, void *stream);
int cudaMemcpyToSymbol(const void *symbol, const void *src, size_t size, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t size, size_t offset, int kind);
int cudaMemset(void *address, int value, size_t size);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int code);
const char *cudaGetErrorString(int code);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaRuntimeGetVersion(int *version);
int cudaStreamCreate(void **stream);
int cudaStreamDestroy(void *stream);
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamEndCapture(void *stream, void **graph);
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *exec, void *stream);
int cudaGraphExecDestroy(void *exec);
int cudaGraphDestroy(void *graph);
int cudaStreamSynchronize(void *stream);
int cudaGetDeviceCount(int *count);
int cudaSetDevice(int device);
int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
	unsigned long long flags, int *status);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, const void *function, int threads, size_t shared);

/* A container with one plain PTX entry. */
struct __attribute__((packed)) fatbin {
	uint32_t magic;
	uint16_t version, header;
	uint64_t size;
	struct __attribute__((packed)) {
		uint16_t kind, version;
		uint32_t header;
		uint64_t size;
		uint32_t compressed, zero, minor, arch;
		uint64_t zero2, flags, zero3, plain;
	} entry;
	char text[sizeof test_ptx];
};

static struct fatbin fatbin = {
	.magic = 0xba55ed50,
	.version = 1,
	.header = 16,
	.size = 64 + sizeof test_ptx,
	.entry = { .kind = 1, .version = 0x101, .header = 64, .size = sizeof test_ptx, .arch = 80 },
};

static struct {
	int magic, version;
	const void *data;
	void *more;
} wrapper = { 0x466243b1, 1, &fatbin, NULL };

static void **handle;
static char shadow_counter[4];

/* The host stub of add(): its address stands for the kernel. */
static void add(unsigned long long a, unsigned long long b, unsigned n)
{
	struct dim3 grid, block;
	size_t shared;
	void *stream, *kernel, *args[] = { &a, &b, &n };

	OK(__cudaGetKernel(&kernel, (void *)add));
	OK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
	(void)__cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

/* Does as nvcc's constructor. */
__attribute__((constructor)) static void register_program(void)
{
	static char add_name[] = "add", counter_name[] = "counter";

	memcpy(fatbin.text, test_ptx, sizeof test_ptx);
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(
		handle, (const char *)add, add_name, add_name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, shadow_counter, counter_name, counter_name, 0, 4, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
}

__attribute__((destructor)) static void unregister_program(void)
{
	__cudaUnregisterFatBinary(handle);
}

static const struct dim3 one = { 1, 1, 1 }, warp = { 32, 1, 1 }, huge = { 2048, 1, 1 };

static void a_triple_bracket_launch_reaches_the_kernel(void **state)
{
	assert_int_equal(__cudaPushCallConfiguration(one, warp, 0, NULL), 0);
	add(0, 0, 1);
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
}

static void a_launch_that_cannot_be_is_the_last_error_until_it_is_asked_for(void **state)
{
	__cudaPushCallConfiguration(one, huge, 0, NULL);
	add(0, 0, 1);
	assert_int_equal(cudaPeekAtLastError(), 9); /* cudaErrorInvalidConfiguration */
	assert_int_equal(cudaGetLastError(), 9);
	OK(cudaGetLastError());
	assert_string_equal(cudaGetErrorName(9), "cudaErrorInvalidConfiguration");
	assert_string_equal(cudaGetErrorString(9), "invalid configuration");
}

static void the_older_launch_functions_take_the_host_stub(void **state)
{
	unsigned long long a = 0;
	unsigned n = 0;
	void *args[] = { &a, &a, &n };

	OK(cudaLaunchKernel((void *)add, one, warp, args, 0, NULL));
	OK(cudaLaunchKernel_ptsz((void *)add, one, warp, args, 0, NULL));
	assert_int_equal(cudaLaunchKernel(&a, one, warp, args, 0, NULL), 98);
	assert_int_equal(cudaGetLastError(), 98); /* cudaErrorInvalidDeviceFunction */
}

static void memory_and_symbols_go_round(void **state)
{
	char text[16] = "round", back[16] = "";
	int seven = 7, read = 0;
	void *p;

	OK(cudaMalloc(&p, 16));
	OK(cudaMemcpy(p, text, 16, 1));
	OK(cudaMemcpyAsync_ptsz(back, p, 16, 4, NULL));
	assert_string_equal(back, "round");
	OK(cudaMemset(p, 0, 16));
	OK(cudaFree(p));
	assert_int_equal(cudaFree(p), 1);
	OK(cudaMemcpyToSymbol(shadow_counter, &seven, 4, 0, 1));
	OK(cudaMemcpyFromSymbol(&read, shadow_counter, 4, 0, 2));
	assert_int_equal(read, 7);
	assert_int_equal(cudaMemcpyToSymbol(shadow_counter, &seven, 4, 1, 1), 1);
	assert_int_equal(cudaMemcpyToSymbol(&read, &seven, 4, 0, 1), 13);
	cudaGetLastError();
}

static void captures_become_graphs(void **state)
{
	unsigned long long a = 0;
	unsigned n = 0;
	void *args[] = { &a, &a, &n }, *stream, *graph, *exec;

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, 0));
	OK(cudaLaunchKernel((void *)add, one, warp, args, 0, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
}

static void the_runtime_tells_about_devices_and_itself(void **state)
{
	int value, status;
	void *function;

	OK(cudaRuntimeGetVersion(&value));
	assert_int_equal(value, 13000);
	OK(cudaGetDeviceCount(&value));
	assert_int_equal(value, 1);
	assert_int_equal(cudaSetDevice(3), 101);
	cudaGetLastError();
	OK(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &function, 12000, 0, &status));
	assert_non_null(function);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, (void *)add, 256, 0));
	assert_int_equal(value, 8);
}

static void after_a_reset_everything_works_again(void **state)
{
	void *p;

	OK(cudaMalloc(&p, 16));
	OK(cudaDeviceReset());
	assert_int_equal(cudaFree(p), 1);
	cudaGetLastError();
	OK(cudaMalloc(&p, 16));
	__cudaPushCallConfiguration(one, warp, 0, NULL);
	add(0, 0, 1);
	OK(cudaGetLastError());
	OK(cudaFree(p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_triple_bracket_launch_reaches_the_kernel),
		cmocka_unit_test(a_launch_that_cannot_be_is_the_last_error_until_it_is_asked_for),
		cmocka_unit_test(the_older_launch_functions_take_the_host_stub),
		cmocka_unit_test(memory_and_symbols_go_round),
		cmocka_unit_test(captures_become_graphs),
		cmocka_unit_test(the_runtime_tells_about_devices_and_itself),
		cmocka_unit_test(after_a_reset_everything_works_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
